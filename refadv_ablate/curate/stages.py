"""Each stage: its part of the config, its work, and what it prints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refadv_ablate import __version__, assets
from refadv_ablate.curate.annotation.agreement import agreement
from refadv_ablate.curate.annotation.agreement import lines as agreement_lines
from refadv_ablate.curate.annotation.answers import Outcome, outcomes, sheet
from refadv_ablate.curate.annotation.items import Item, load_items
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene, load_scenes
from refadv_ablate.curate.settings import Verify
from refadv_ablate.curate.showing import progress, relative
from refadv_ablate.errors import UserError
from refadv_ablate.types import Json, Price


@dataclass(frozen=True, slots=True)
class Common:
    """The scalar keys of conf/curate/config.yaml."""

    out: Path
    seed: int
    limit: int | None
    progress: str

    @classmethod
    def of(cls, config: Any) -> Common:
        """Raises UserError for a value of the wrong type."""
        values = {name: config[name] for name in ("out", "seed", "limit", "progress")}
        common: Common = assets.build({"_target_": f"{__name__}.Common", **values}, "config")
        if common.limit is not None and common.limit < 1:
            raise UserError(f"limit={common.limit}: give at least 1, or leave it out for all scenes")
        return cls(common.out.absolute(), common.seed, common.limit, common.progress)

    def scenes(self) -> dict[str, Scene]:
        """The scenes that this command is about."""
        found = load_scenes(self.out)
        return dict(list(found.items())[: self.limit]) if self.limit else found


def prepare(common: Common, config: Any) -> int:
    """Scenes from the source."""
    from refadv_ablate.curate.prepare import prepare as work

    source = assets.build(config.source, "source")
    selection = assets.build(config.prepare, "prepare")
    done = work(source, selection, common.out, common.limit, progress(common.progress, "images"))
    _say(f"{done.pictures} images → {done.scenes} scenes ({done.new} new) with {done.candidates} candidates")
    for reason, n in done.drops.most_common():
        _say(f"  {n} × left out: {reason}")
    _say(f"scenes: {relative(common.out / 'scenes.jsonl')}, tagged images: {relative(common.out / 'tagged')}")
    return 0 if done.scenes else 1


def judge(common: Common, config: Any) -> int:
    """Query 1."""
    from refadv_ablate.curate.generation import writing

    if _steps(config) == 1:
        raise UserError("method=one_step has no judge: go on with compose method=one_step")
    model = assets.build(config.llm, "llm")
    tally = writing.judge(common.scenes(), model, common.out, progress(common.progress, "scenes"))
    return _report(tally, "scenes judged", common.out / "judged.jsonl")


def compose(common: Common, config: Any) -> int:
    """Query 2, or the single query of the ablation."""
    from refadv_ablate.curate.generation import writing

    model, checks = assets.build(config.llm, "llm"), assets.build(config.checks, "checks")
    work: Callable[..., writing.Tally] = (
        writing.compose if _steps(config) == 2 else writing.compose_in_one_step
    )
    tally = work(common.scenes(), model, checks, common.out, progress(common.progress, "answers"))
    status = _report(tally, "answers", common.out / "composed.jsonl")
    _say(f"{tally.expressions} new expressions passed the checks")
    return status


def author(common: Common, config: Any) -> int:
    """The page for writing."""
    return _serve(common, config, "/author")


def verify(common: Common, config: Any) -> int:
    """The page for verification."""
    return _serve(common, config, "/")


def _serve(common: Common, config: Any, page: str) -> int:
    try:
        from refadv_ablate.curate.annotation.server import application, serve
    except ImportError as error:
        raise UserError(
            f"the annotation page needs the package {error.name}: pip install 'refadv-ablate[curate]'"
        ) from error
    from refadv_ablate.curate.annotation.desk import Desk

    settings: Verify = assets.build(config.verify, "verify")
    names, scenes = settings.named(), common.scenes()
    items = load_items(common.out, scenes) if page == "/" else _items_or_none(common.out, scenes)
    checks = assets.build(config.checks, "checks")
    answers, authored = Ledger(common.out / "answers.jsonl"), Ledger(common.out / "authored.jsonl")
    with answers.writing(), authored.writing():
        desk = Desk(scenes, items, names, answers, authored, checks, common.seed)
        shown = "localhost" if settings.host in ("127.0.0.1", "0.0.0.0") else settings.host  # noqa: S104 - shown only
        _say(f"open http://{shown}:{settings.port}{page} ({len(items)} expressions, {', '.join(names)})")
        if settings.host not in ("127.0.0.1", "localhost", "::1"):
            _say("anybody in this network can open the page and answer under any of these names")
        _say("Ctrl-C stops it; answers are on disk as soon as the page shows the next step")
        sys.stdout.flush()
        serve(application(desk, settings.allowed_hosts()), settings.host, settings.port)
    return 0


def label_studio(common: Common, config: Any) -> int:
    """Tasks out, annotations in."""
    from refadv_ablate.curate.annotation import label_studio as work

    settings = assets.build(config.label_studio, "label_studio")
    items = load_items(common.out, common.scenes())
    path = (settings.path or common.out / "label_studio.json").absolute()
    if settings.action == "export":
        interface = work.write_tasks(items, settings, path)
        _say(f"{len(items)} tasks: {relative(path)}; labelling interface: {relative(interface)}")
        return 0
    names = {str(key): name for key, name in (settings.annotators or {}).items()}
    answers, problems = work.read_annotations(path, {i.id: i for i in items}, names)
    new = work.take(answers, Ledger(common.out / "answers.jsonl"))
    _say(f"{new} new answers of {len(answers)} in {relative(path)}")
    for problem in problems[:20]:
        _say(f"  not used: {problem}")
    if len(problems) > 20:
        _say(f"  and {len(problems) - 20} more")
    return 1 if problems else 0


def status(common: Common, config: Any) -> int:
    """Counts of every stage, and the agreement."""
    scenes = common.scenes()
    _say(f"{len(scenes)} scenes")
    for name, what in (("judged", "judgements"), ("composed", "compositions")):
        rows = Ledger(common.out / f"{name}.jsonl").rows()
        rejected = sum(row["status"] == "rejected" for row in rows)
        _say(f"{len(rows)} {what}, {rejected} of them rejected")
    items = _items_or_none(common.out, scenes)
    if items:
        found, facts = _verified(common, config, items)
        for line in facts:
            _say(line)
        for reason, n in _reasons(found).items():
            _say(f"  {n} × {reason}")
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
        _say(f"{split}: {n} expressions; ask a model: data=ref_adv_s data.path={relative(folder / split)}")
    return 0


def cost(common: Common, config: Any) -> int:
    """Per expression and per kept one."""
    from refadv_ablate.curate import cost as work

    paper = assets.build(config.cost, "cost")
    price = _price(config)
    stages = work.spent(common.out, price)
    scenes = load_scenes(common.out) if (common.out / "scenes.jsonl").exists() else {}
    items = [i for i in _items_or_none(common.out, scenes) if not i.human]
    found = _outcomes(common, config, items)
    decided = [o for o in found if o.state != "open"]
    rate = sum(o.state == "kept" for o in decided) / len(decided) if decided else None
    for line in work.lines(work.figures(stages, price, len(items), rate), stages, paper):
        _say(line)
    return 0


def audit(common: Common, config: Any) -> int:
    """The ablations on this set and on others."""
    from refadv_ablate.curate import audit as work

    settings = assets.build(config.audit, "audit")
    folder = (settings.data or common.out / "export" / "test").absolute()
    for line in work.audit(settings, folder, common.out / "audit"):
        _say(line)
    return 0


# ── what stages share ───────────────────────────────────────────────────────────────────────────


def _say(line: str) -> None:
    print(line)


def _steps(config: Any) -> int:
    return int(config.method.steps)


def _report(tally: Any, what: str, path: Path) -> int:
    """Prints what a stage did; 1 where something wasn't answered."""
    if sys.stderr.isatty():
        print(file=sys.stderr)
    used = tally.usage
    _say(f"{tally.done} {what} now, {tally.there} were there: {relative(path)}")
    _say(f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out, ${used.usd:.4g}")
    for reason, n in tally.rejected.most_common(10):
        _say(f"  {n} × rejected after a repair: {reason}")
    for failure in tally.failed[:10]:
        _say(f"  not answered: {failure}")
    if tally.failed:
        _say(f"{len(tally.failed)} were not answered; the same command asks them again")
    return 1 if tally.failed else 0


def _items_or_none(out: Path, scenes: Mapping[str, Scene]) -> list[Item]:
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


def _reasons(found: list[Outcome]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in found:
        if one.state == "dropped":
            counts[one.reason] = counts.get(one.reason, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def _price(config: Any) -> Price:
    """Prices alone: the cost of a set must not need the model's name or address."""
    llm = config.llm
    return Price(float(llm.price_input), float(llm.price_output))


def _provenance(common: Common, config: Any, found: list[Outcome], facts: list[str]) -> dict[str, Json]:
    from refadv_ablate.curate import cost as work

    price = _price(config)
    machine = [o for o in found if not o.item.human]
    decided = [o for o in machine if o.state != "open"]
    rate = sum(o.state == "kept" for o in decided) / len(decided) if decided else None
    written = Ledger(common.out / "composed.jsonl").rows()
    return {
        "version": __version__,
        "seed": common.seed,
        "scenes": len(common.scenes()),
        "agreement": facts,
        "dropped": _reasons(found),
        "cost": work.as_json(work.figures(work.spent(common.out, price), price, len(machine), rate)),
        "methods": sorted({str(row["method"]) for row in written}),
        "settings": {key: assets.plain(config[key]) for key in ("prepare", "checks", "export")},
    }
