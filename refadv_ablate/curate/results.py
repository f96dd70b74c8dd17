"""What came of it: status, export and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from refadv_ablate import __version__, assets
from refadv_ablate.curate.annotation.agreement import Share, agreement
from refadv_ablate.curate.annotation.agreement import lines as agreement_lines
from refadv_ablate.curate.annotation.answers import Outcome, outcomes, sheet
from refadv_ablate.curate.annotation.items import Item, load_items
from refadv_ablate.curate.common import Common, say
from refadv_ablate.curate.generation.sifting import by_kind, kind
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene, load_scenes
from refadv_ablate.curate.settings import Verify
from refadv_ablate.curate.showing import relative
from refadv_ablate.errors import UserError
from refadv_ablate.types import Json, Price


def status(common: Common, config: Any) -> int:
    """Counts of every stage, and the agreement."""
    scenes = common.scenes()
    say(f"{len(scenes)} scenes")
    for name, what in (("judged", "judgements"), ("composed", "compositions")):
        rows = Ledger(common.out / f"{name}.jsonl").rows()
        rejected = sum(row["status"] == "rejected" for row in rows)
        say(f"{len(rows)} {what}, {rejected} of them rejected")
        for reason, n in Counter(kind(row["reason"]) for row in rows if row["reason"]).most_common(10):
            say(f"  {n} × rejected after a repair: {reason}")
    for reason, n in by_kind(Ledger(common.out / "composed.jsonl")).most_common():
        say(f"  {n} × expression dropped: {reason}")
    items = items_or_none(common.out, scenes)
    if items:
        found, facts = _verified(common, config, items)
        for line in facts:
            say(line)
        for reason, n in _reasons(found).items():
            say(f"  {n} × {reason}")
        for line in _by_prompts(found):
            say(line)
    return 0


def export(common: Common, config: Any) -> int:
    """The kept expressions."""
    from refadv_ablate.curate import exporting

    settings = assets.build(config.export, "export")
    items = load_items(common.out, common.scenes())
    found, facts = _verified(common, config, items)
    kept = [o.item for o in found if o.state == "kept"]
    folder = (settings.to or common.out / "export").absolute()
    counts = exporting.export(kept, settings, folder, common.seed, _provenance(common, config, found, facts))
    for split, n in counts.items():
        say(f"{split}: {n} expressions; ask a model: data=ref_adv_s data.path={relative(folder / split)}")
    return 0


def cost(common: Common, config: Any) -> int:
    """Per expression and per kept one."""
    from refadv_ablate.curate import cost as work

    paper = assets.build(config.cost, "cost")
    prices = price(config)
    stages = work.spent(common.out, prices)
    scenes = load_scenes(common.out) if (common.out / "scenes.jsonl").exists() else {}
    items = [i for i in items_or_none(common.out, scenes) if not i.human]
    rate = _keep_rate(_outcomes(common, config, items))
    for line in work.lines(work.figures(stages, prices, len(items), rate), stages, paper):
        say(line)
    return 0


# ── what they share ─────────────────────────────────────────────────────────────────────────────


def items_or_none(out: Path, scenes: Mapping[str, Scene]) -> list[Item]:
    """All expressions; none where there are none yet."""
    try:
        return load_items(out, scenes)
    except UserError:
        return []


def _outcomes(common: Common, config: Any, items: list[Item]) -> list[Outcome]:
    settings: Verify = assets.build(config.verify, "verify")
    return outcomes(items, sheet(Ledger(common.out / "answers.jsonl")), settings.needed)


def _verified(common: Common, config: Any, items: list[Item]) -> tuple[list[Outcome], list[str]]:
    settings: Verify = assets.build(config.verify, "verify")
    answers = sheet(Ledger(common.out / "answers.jsonl"))
    found = outcomes(items, answers, settings.needed)
    return found, agreement_lines(agreement(items, answers, found, settings.needed))


def _keep_rate(found: list[Outcome]) -> float | None:
    """Of those that are decided; None where none is."""
    decided = [o for o in found if o.state != "open"]
    return sum(o.state == "kept" for o in decided) / len(decided) if decided else None


def _by_prompts(found: list[Outcome]) -> list[str]:
    """The keep rate of each way of making expressions, where there is more than one."""
    kept: dict[str, list[bool]] = {}
    for one in found:
        if one.state != "open":
            made = one.item.made
            name = "people" if one.item.human else f"prompts={made['prompts']}, {made['method']}"
            kept.setdefault(name, []).append(one.state == "kept")
    if len(kept) < 2:
        return []
    return [f"kept of those by {name}: {Share(sum(said), len(said))}" for name, said in sorted(kept.items())]


def _reasons(found: list[Outcome]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in found:
        if one.state == "dropped":
            counts[one.reason] = counts.get(one.reason, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def price(config: Any) -> Price:
    """Prices alone: the cost of a set must not need the model's name or address."""
    llm = config.llm
    return Price(float(llm.price_input), float(llm.price_output))


def _provenance(common: Common, config: Any, found: list[Outcome], facts: list[str]) -> dict[str, Json]:
    from refadv_ablate.curate import cost as work

    prices = price(config)
    machine = [o for o in found if not o.item.human]
    rate = _keep_rate(machine)
    written = Ledger(common.out / "composed.jsonl").rows()
    return {
        "version": __version__,
        "seed": common.seed,
        "scenes": len(common.scenes()),
        "agreement": facts,
        "dropped": _reasons(found),
        "cost": work.as_json(work.figures(work.spent(common.out, prices), prices, len(machine), rate)),
        "methods": sorted({str(row["method"]) for row in written}),
        "prompts": Ledger(common.out / "prompts.jsonl").rows(),
        "settings": {key: assets.plain(config[key]) for key in ("prepare", "checks", "export")},
    }
