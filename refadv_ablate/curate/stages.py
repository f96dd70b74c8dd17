"""Each stage: its part of the config, its work, and what it prints."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refadv_ablate import assets
from refadv_ablate.curate.annotation.items import Item, load_items
from refadv_ablate.curate.common import Common, say
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.results import cost as cost
from refadv_ablate.curate.results import export as export
from refadv_ablate.curate.results import items_or_none, price
from refadv_ablate.curate.results import status as status
from refadv_ablate.curate.settings import Verify
from refadv_ablate.curate.showing import progress, relative
from refadv_ablate.errors import UserError

if TYPE_CHECKING:
    from refadv_ablate.curate.generation.writing import Tally, Work


def prepare(common: Common, config: Any) -> int:
    """Scenes from the source."""
    from refadv_ablate.curate.prepare import prepare as work

    source = assets.build(config.source, "source")
    selection = assets.build(config.prepare, "prepare")
    done = work(source, selection, common.out, common.limit, progress(common.progress, "images"))
    say(f"{done.pictures} images → {done.scenes} scenes ({done.new} new) with {done.candidates} candidates")
    for reason, n in done.drops.most_common():
        say(f"  {n} × left out: {reason}")
    say(f"scenes: {relative(common.out / 'scenes.jsonl')}, tagged images: {relative(common.out / 'tagged')}")
    return 0 if done.scenes else 1


def judge(common: Common, config: Any) -> int:
    """Query 1."""
    from refadv_ablate.curate.generation import writing

    if _steps(config) == 1:
        raise UserError("method=one_step has no judge: go on with compose method=one_step")
    work = _work(common, config, "scenes")
    if common.dry_run:
        return _estimate(common, config, "judged", "scenes", list(writing.judge_keys(work).values()), 2)
    return _report(writing.judge(work), "scenes judged", common.out / "judged.jsonl")


def compose(common: Common, config: Any) -> int:
    """Query 2, or the single query of the ablation."""
    from refadv_ablate.curate.generation import composing

    work, two = _work(common, config, "answers"), _steps(config) == 2
    if common.dry_run:
        if two:
            keys = [unit.key for unit in composing.compose_units(work).values()]
            return _estimate(common, config, "composed", "members of pairs", keys, 1)
        keys = list(composing.one_step_keys(work).values())
        return _estimate(common, config, "composed", "scenes", keys, 2)
    tally = composing.compose(work) if two else composing.compose_in_one_step(work)
    code = _report(tally, "answers", common.out / "composed.jsonl")
    say(f"{tally.expressions} new expressions passed the checks, {tally.dropped.total()} were dropped")
    for reason, n in tally.dropped.most_common():
        say(f"  {n} × dropped: {reason}")
    return code


def _work(common: Common, config: Any, title: str) -> Work:
    from refadv_ablate.curate.generation.writing import Work

    prompts, checks = assets.build(config.prompts, "prompts"), assets.build(config.checks, "checks")
    model = assets.build(config.llm, "llm")
    return Work(common.scenes(), model, prompts, checks, common.out, progress(common.progress, title))


def _estimate(common: Common, config: Any, ledger: str, what: str, keys: list[str], targets: int) -> int:
    from refadv_ablate.curate import estimate as work
    from refadv_ablate.curate.cost import Figures

    there = {row["key"] for row in Ledger(common.out / f"{ledger}.jsonl")}
    plan = work.Plan(what, len(keys), sum(key in there for key in keys), targets)
    figures = assets.build(config.cost, "cost")
    for line in work.estimate(plan, common.out, price(config), figures, figures != Figures()):
        say(line)
    return 0


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
    items = load_items(common.out, scenes) if page == "/" else items_or_none(common.out, scenes)
    checks = assets.build(config.checks, "checks")
    answers, authored = Ledger(common.out / "answers.jsonl"), Ledger(common.out / "authored.jsonl")
    with answers.writing(), authored.writing():
        desk = Desk(scenes, items, settings, answers, authored, checks, common.seed)
        shown = "localhost" if settings.host in ("127.0.0.1", "0.0.0.0") else settings.host  # noqa: S104 - shown only
        say(f"open http://{shown}:{settings.port}{page} ({len(items)} expressions, {', '.join(names)})")
        say(f"progress and agreement: http://{shown}:{settings.port}/progress")
        for line in _warnings(settings, items):
            say(line)
        say("Ctrl-C stops it; answers are on disk as soon as the page shows the next step")
        sys.stdout.flush()
        serve(application(desk, settings.allowed_hosts()), settings.host, settings.port)
    return 0


def _warnings(settings: Verify, items: list[Item]) -> list[str]:
    """What whoever starts the page should know."""
    found = []
    if len(settings.annotators) < settings.needed:
        found.append(
            f"{len(settings.annotators)} annotators can't give verify.needed={settings.needed} verdicts: "
            "nothing will be kept; name more, or ask for fewer"
        )
    elif not settings.own:
        short = [
            i for i in items if i.human and len({*settings.annotators} - {i.made["author"]}) < settings.needed
        ]
        if short:
            found.append(
                f"{len(short)} expressions can't be kept: without their author fewer than "
                f"verify.needed={settings.needed} people are left to judge them; name one more annotator"
            )
    if settings.host not in ("127.0.0.1", "localhost", "::1"):
        found.append("anybody in this network can open the page and answer under any of these names")
    return found


def label_studio(common: Common, config: Any) -> int:
    """Tasks out, annotations in."""
    from refadv_ablate.curate.annotation import label_studio as work

    settings = assets.build(config.label_studio, "label_studio")
    items = load_items(common.out, common.scenes())
    path = (settings.path or common.out / "label_studio.json").absolute()
    if settings.action == "export":
        interface = work.write_tasks(items, settings, path)
        say(f"{len(items)} tasks: {relative(path)}; labelling interface: {relative(interface)}")
        return 0
    names = {str(key): name for key, name in (settings.annotators or {}).items()}
    answers, problems = work.read_annotations(path, {i.id: i for i in items}, names)
    new = work.take(answers, Ledger(common.out / "answers.jsonl"))
    say(f"{new} new answers of {len(answers)} in {relative(path)}")
    for problem in problems[:20]:
        say(f"  not used: {problem}")
    if len(problems) > 20:
        say(f"  and {len(problems) - 20} more")
    return 1 if problems else 0


def audit(common: Common, config: Any) -> int:
    """The ablations on this set and on others."""
    from refadv_ablate.curate import audit as work

    settings = assets.build(config.audit, "audit")
    folder = (settings.data or common.out / "export" / "test").absolute()
    for line in work.audit(settings, folder, common.out / "audit"):
        say(line)
    return 0


def _steps(config: Any) -> int:
    return int(config.method.steps)


def _report(tally: Tally, what: str, path: Path) -> int:
    """Prints what a stage did; 1 where something wasn't answered."""
    if sys.stderr.isatty():
        print(file=sys.stderr)
    used = tally.usage
    say(f"{tally.done} {what} now, {tally.there} were there: {relative(path)}")
    say(f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out, ${used.usd:.4g}")
    for reason, n in tally.rejected.most_common(10):
        say(f"  {n} × rejected after a repair: {reason}")
    for failure in tally.failed[:10]:
        say(f"  not answered: {failure}")
    if tally.failed:
        say(f"{len(tally.failed)} were not answered; the same command asks them again")
    return 1 if tally.failed else 0
