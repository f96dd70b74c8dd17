"""judge and compose: the two queries of the paper, or the one of its ablation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from refadv_ablate.curate.generation import llm, prompts
from refadv_ablate.curate.generation.checks import Checks, duplicates, plain
from refadv_ablate.curate.generation.llm import LLM, Answer, Question
from refadv_ablate.curate.generation.schemas import (
    Composed,
    Composition,
    Judgement,
    OneStep,
    judgement_fault,
    one_step_fault,
)
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import digest
from refadv_ablate.types import Json, Usage


@dataclass(slots=True)
class Tally:
    """What a stage did: new units, those that were there, refusals with their reasons, and the cost."""

    done: int = 0
    there: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    expressions: int = 0
    usage: Usage = field(default_factory=Usage)


Heard = Callable[[int], None]
"""Is told how many units are done."""


def judge(scenes: Mapping[str, Scene], model: LLM, out: Path, heard: Heard) -> Tally:
    """Query 1 for each scene that judged.jsonl lacks."""

    def question(scene: Scene) -> Question[Judgement]:
        n = len(scene.boxes)
        return Question(
            scene.id, prompts.judge(scene), scene.marked(), Judgement, lambda a: judgement_fault(a, n)
        )

    ledger = Ledger(out / "judged.jsonl")
    with ledger.writing():
        keys = {scene.id: digest("judge", scene.content(), model.identity()) for scene in scenes.values()}
        todo, tally = _todo(ledger, keys)
        for answer in llm.ask(model, (question(scenes[unit]) for unit in todo)):
            value = None if answer.value is None else answer.value.model_dump()
            _note(tally, answer)
            if not answer.error:
                row = {"judgement": value, "expressions": 0}
                ledger.append(_row({"scene": answer.key}, keys[answer.key], answer, row))
            heard(tally.done)
    return tally


def compose(scenes: Mapping[str, Scene], model: LLM, checks: Checks, out: Path, heard: Heard) -> Tally:
    """Query 2 for each member of each judged pair that composed.jsonl lacks."""
    judged = judgements(out, scenes)
    units = {f"{scene}#{target}": (scene, target) for scene, j in judged.items() for target in j.pair}

    def question(unit: str) -> Question[Composition]:
        scene_id, target = units[unit]
        scene = scenes[scene_id]
        text = prompts.compose(scene, judged[scene_id], target)

        def fault(answer: Composition) -> str:
            return composition_fault(answer, checks, scene.category)

        return Question(unit, text, scene.marked(), Composition, fault)

    ledger = Ledger(out / "composed.jsonl")
    with ledger.writing():
        keys = {
            unit: digest(
                "compose", scenes[s].content(), judged[s].model_dump(), t, model.identity(), asdict(checks)
            )
            for unit, (s, t) in units.items()
        }
        todo, tally = _todo(ledger, keys)
        seen = _texts_by_scene(ledger, set(keys.values()))
        for answer in llm.ask(model, (question(unit) for unit in todo)):
            scene_id, target = units[answer.key]
            made = _salvage(answer)
            kept, dropped = _keep(made, checks, scenes[scene_id].category, seen.setdefault(scene_id, set()))
            _note(tally, answer, len(kept))
            if not answer.error:
                pair = judged[scene_id].pair
                about = {"scene": scene_id, "target": target, "pair": pair, "method": "two_step"}
                rows = {"expressions": [one.model_dump() for one in kept], "dropped": dropped}
                ledger.append(_row(about, keys[answer.key], answer, rows))
            heard(tally.done)
    return tally


def compose_in_one_step(
    scenes: Mapping[str, Scene], model: LLM, checks: Checks, out: Path, heard: Heard
) -> Tally:
    """The ablation that the paper rejected: pair and expressions from a single query."""

    def question(scene: Scene) -> Question[OneStep]:
        n = len(scene.boxes)
        return Question(
            scene.id, prompts.one_step(scene), scene.marked(), OneStep, lambda a: one_step_fault(a, n)
        )

    ledger = Ledger(out / "composed.jsonl")
    with ledger.writing():
        keys = {
            s.id: digest("one step", s.content(), model.identity(), asdict(checks)) for s in scenes.values()
        }
        todo, tally = _todo(ledger, keys)
        for answer in llm.ask(model, (question(scenes[unit]) for unit in todo)):
            seen: set[str] = set()
            rows: list[dict[str, Any]] = []
            for one in answer.value.targets if answer.value else ():
                made = [Composed(group=1, pair=1, polarity="positive", expression=t) for t in one.expressions]
                kept, dropped = _keep(made, checks, scenes[answer.key].category, seen, polarity=False)
                told: list[Json] = [{"expression": k.expression} for k in kept]
                rows.append({"target": one.target, "expressions": told, "dropped": dropped})
            _note(tally, answer, sum(len(row["expressions"]) for row in rows))
            if not answer.error:
                pair = answer.value.pair if answer.value else None
                about = {"scene": answer.key, "pair": pair, "method": "one_step"}
                ledger.append(_row(about, keys[answer.key], answer, {"targets": rows}))
            heard(tally.done)
    return tally


def judgements(out: Path, scenes: Mapping[str, Scene]) -> dict[str, Judgement]:
    """The accepted judgements, the latest of each scene. Raises UserError where there are none."""
    found = {}
    for row in Ledger(out / "judged.jsonl"):
        if row["scene"] in scenes:
            found[row["scene"]] = row["judgement"]
    accepted = {scene: Judgement.model_validate(value) for scene, value in found.items() if value}
    if not accepted:
        raise UserError(
            f"{out / 'judged.jsonl'} has no accepted judgement: run the stage judge first, with the same out="
        )
    return accepted


def composition_fault(answer: Composition, checks: Checks, category: str) -> str:
    """The first thing that makes a composition worth a repair."""
    combinations = [(one.group, one.pair) for one in answer.expressions]
    if len(set(combinations)) < len(combinations):
        return "two expressions use the same combination of discriminators"
    if missing := {"positive", "negation", "both"} - {one.polarity for one in answer.expressions}:
        return f"no expression has the polarity {sorted(missing)[0]!r}"
    for number, one in enumerate(answer.expressions, 1):
        fault = checks.fault(one.expression, category) or checks.polarity_fault(one.expression, one.polarity)
        if fault:
            return f"expression {number} ({one.expression!r}): {fault}"
    if repeated := duplicates([one.expression for one in answer.expressions]):
        return f"expression {repeated[0] + 1} repeats another one"
    return ""


def _salvage(answer: Answer[Composition]) -> Sequence[Composed]:
    """The expressions; also those of an answer that still has one bad expression after its repair."""
    if answer.value is not None:
        return answer.value.expressions
    tree = llm.json_object(answer.text)
    try:
        return Composition.model_validate(tree).expressions if tree else ()
    except ValueError:
        return ()


def _keep(
    made: Sequence[Composed], checks: Checks, category: str, seen: set[str], polarity: bool = True
) -> tuple[list[Composed], list[Json]]:
    """Those that pass each check alone and repeat nothing of their scene; the others with their reason."""
    kept: list[Composed] = []
    dropped: list[Json] = []
    for one in made:
        fault = checks.fault(one.expression, category)
        if not fault and polarity:
            fault = checks.polarity_fault(one.expression, one.polarity)
        if not fault and polarity and (one.group, one.pair) in {(k.group, k.pair) for k in kept}:
            fault = "its combination of discriminators is used already"
        if not fault and plain(one.expression) in seen:
            fault = "it repeats another expression of the scene"
        if fault:
            dropped.append({"expression": one.expression, "reason": fault})
        else:
            seen.add(plain(one.expression))
            kept.append(one)
    return kept, dropped


# ── ledgers of stages ───────────────────────────────────────────────────────────────────────────


def _todo(ledger: Ledger, keys: Mapping[str, str]) -> tuple[list[str], Tally]:
    """Units whose latest row was not made from the same scene, prompts and model."""
    there = {row["key"] for row in ledger}
    todo = [unit for unit, key in keys.items() if key not in there]
    return todo, Tally(there=len(keys) - len(todo))


def _texts_by_scene(ledger: Ledger, current: set[str]) -> dict[str, set[str]]:
    """What the rows that still count say already."""
    seen: dict[str, set[str]] = {}
    for row in ledger:
        for one in row.get("expressions", ()) if row["key"] in current else ():
            seen.setdefault(row["scene"], set()).add(plain(one["expression"]))
    return seen


def _row(
    about: Mapping[str, Json], key: str, answer: Answer[Any], more: Mapping[str, Json]
) -> dict[str, Json]:
    return {
        **about,
        "status": "ok" if answer.value is not None else "rejected",
        "reason": answer.problem,
        **more,
        "answer": answer.text,
        "attempts": answer.attempts,
        "input_tokens": answer.usage.input_tokens,
        "output_tokens": answer.usage.output_tokens,
        "usd": answer.usage.usd,
        "key": key,
    }


def _note(tally: Tally, answer: Answer[Any], expressions: int = 0) -> None:
    tally.done += 1
    tally.expressions += expressions
    tally.usage = llm.total(tally.usage, answer.usage)
    if answer.error:
        tally.failed.append(f"{answer.key}: {answer.error}")
    elif answer.value is None:
        tally.rejected[answer.problem] += 1
