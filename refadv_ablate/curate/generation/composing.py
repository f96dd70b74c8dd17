"""compose: the second query of the paper, or the single query of its ablation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from refadv_ablate.curate.generation import llm
from refadv_ablate.curate.generation.checks import plain
from refadv_ablate.curate.generation.default import Default
from refadv_ablate.curate.generation.llm import Question
from refadv_ablate.curate.generation.prompts import Made, Prompts
from refadv_ablate.curate.generation.schemas import OneStep, one_step_fault
from refadv_ablate.curate.generation.sifting import first_fault, kind, sift
from refadv_ablate.curate.generation.writing import Tally, Work, missing, note, row
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import digest
from refadv_ablate.types import Json


@dataclass(frozen=True, slots=True)
class Unit:
    """One member of a judged pair. version: of the words that the judge was asked in."""

    scene: Scene
    judgement: Any
    target: int
    version: str
    key: str


def compose_units(work: Work) -> dict[str, Unit]:
    """By scene#target. Raises UserError where no judgement was accepted."""
    identity, checks, units = work.identity("compose"), asdict(work.checks), {}
    for scene_id, (judgement, version) in judgements(work.out, work.scenes, work.prompts).items():
        scene = work.scenes[scene_id]
        for target in judgement.pair:
            key = digest("compose", scene.content(), judgement.model_dump(), target, identity, checks)
            units[f"{scene_id}#{target}"] = Unit(scene, judgement, target, version, key)
    return units


def compose(work: Work) -> Tally:
    """Query 2 for each member of each judged pair that composed.jsonl lacks."""
    units = compose_units(work)
    keys = {name: unit.key for name, unit in units.items()}
    ledger = Ledger(work.out / "composed.jsonl")
    with ledger.writing():
        todo, tally = missing(ledger, keys)
        version = work.record("compose") if todo else ""
        seen = _texts_by_scene(ledger, set(keys.values()))
        for answer in llm.ask(work.model, (_question(work, name, units[name]) for name in todo)):
            unit = units[answer.key]
            texts = seen.setdefault(unit.scene.id, set())
            made = work.prompts.made(llm.json_object(answer.text) or {}, unit.judgement, unit.target)
            kept, dropped = sift(made, work.checks, unit.scene.category, texts)
            _count(tally, answer, kept, dropped)
            if not answer.error:
                about = {"scene": unit.scene.id, "target": unit.target, "pair": list(unit.judgement.pair)}
                words = {"judge_prompt": unit.version, "compose_prompt": version}
                about |= {"method": "two_step", "prompts": work.prompts.name, **words}
                ledger.append(row(about, unit.key, answer, _told(kept, dropped)))
            work.heard(tally.done)
    return tally


def _question(work: Work, name: str, unit: Unit) -> Question[BaseModel]:
    prompts = work.prompts

    def fault(answer: BaseModel) -> str:
        made = list(prompts.made(answer.model_dump(), unit.judgement, unit.target))
        return prompts.set_fault(made) or first_fault(made, work.checks, unit.scene.category)

    text = prompts.compose(unit.scene, unit.judgement, unit.target)
    used = prompts.texts("compose")
    return Question(name, text, used, unit.scene.marked(), prompts.composition, fault)


def one_step_keys(work: Work) -> dict[str, str]:
    """Scene id → key of its answer."""
    identity, checks = work.identity("one_step"), asdict(work.checks)
    return {s.id: digest("one step", s.content(), identity, checks) for s in work.scenes.values()}


def compose_in_one_step(work: Work) -> Tally:
    """The ablation that the paper rejected: pair and expressions from a single query."""
    used = work.prompts.texts("one_step")
    assert isinstance(work.prompts, Default)
    asked = work.prompts.one_step

    def question(scene: Scene) -> Question[OneStep]:
        n = len(scene.boxes)
        return Question(scene.id, asked(scene), used, scene.marked(), OneStep, lambda a: one_step_fault(a, n))

    ledger, keys = Ledger(work.out / "composed.jsonl"), one_step_keys(work)
    with ledger.writing():
        todo, tally = missing(ledger, keys)
        version = work.record("one_step") if todo else ""
        for answer in llm.ask(work.model, (question(work.scenes[unit]) for unit in todo)):
            seen: set[str] = set()
            rows: list[dict[str, Any]] = []
            for one in answer.value.targets if answer.value else ():
                made = [Made(text) for text in one.expressions]
                kept, dropped = sift(made, work.checks, work.scenes[answer.key].category, seen)
                tally.expressions += len(kept)
                tally.dropped.update(kind(d["reason"]) for d in dropped)
                rows.append({"target": one.target, **_told(kept, dropped)})
            note(tally, answer)
            if not answer.error:
                pair = answer.value.pair if answer.value else None
                about = {"scene": answer.key, "pair": pair, "method": "one_step"}
                about |= {"prompts": work.prompts.name, "compose_prompt": version}
                ledger.append(row(about, keys[answer.key], answer, {"targets": rows}))
            work.heard(tally.done)
    return tally


def judgements(out: Path, scenes: Mapping[str, Scene], prompts: Prompts) -> dict[str, tuple[Any, str]]:
    """The accepted judgements of these prompts, the latest of each scene, with the digest of their words.

    Raises UserError where there are none.
    """
    found: dict[str, dict[str, Any]] = {}
    others: set[str] = set()
    for one in Ledger(out / "judged.jsonl"):
        name = str(one.get("prompts", Default.name))  # rows of version 0.1.0 don't say
        if name != prompts.name:
            others.add(name)
        elif one["scene"] in scenes:
            found[one["scene"]] = one
    accepted = {
        scene: (prompts.judgement.model_validate(one["judgement"]), str(one.get("judge_prompt", "")))
        for scene, one in found.items()
        if one["judgement"]
    }
    if not accepted:
        there = (
            f" of prompts={prompts.name} (there are some of {', '.join(sorted(others))})" if others else ""
        )
        raise UserError(
            f"{out / 'judged.jsonl'} has no accepted judgement{there}: run the stage judge first, with the "
            "same out= and prompts="
        )
    return accepted


def _texts_by_scene(ledger: Ledger, current: set[str]) -> dict[str, set[str]]:
    """What the rows that still count say already."""
    seen: dict[str, set[str]] = {}
    for one in ledger:
        for made in one.get("expressions", ()) if one["key"] in current else ():
            seen.setdefault(one["scene"], set()).add(plain(made["expression"]))
    return seen


def _told(kept: Sequence[Made], dropped: Sequence[Json]) -> dict[str, Json]:
    """What a row says of the expressions."""
    return {"expressions": [{"expression": m.expression, **m.fields} for m in kept], "dropped": list(dropped)}


def _count(tally: Tally, answer: Any, kept: Sequence[Made], dropped: Sequence[Json]) -> None:
    note(tally, answer, len(kept))
    tally.dropped.update(kind(one["reason"]) for one in dropped)
