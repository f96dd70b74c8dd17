"""judge: the first query of the paper, and what all stages that ask the LLM share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from refadv_ablate.curate.generation import llm, texts
from refadv_ablate.curate.generation.checks import Checks
from refadv_ablate.curate.generation.llm import LLM, Answer, Question
from refadv_ablate.curate.generation.prompts import Prompts
from refadv_ablate.curate.generation.sifting import kind
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene
from refadv_ablate.seeding import digest
from refadv_ablate.types import Json, Usage


@dataclass(slots=True)
class Tally:
    """What a stage did: new units, those that were there, refusals with their reasons, and the cost."""

    done: int = 0
    there: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    expressions: int = 0
    usage: Usage = field(default_factory=Usage)


Heard = Callable[[int], None]
"""Is told how many units are done."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a stage works with."""

    scenes: Mapping[str, Scene]
    model: LLM
    prompts: Prompts
    checks: Checks
    out: Path
    heard: Heard

    def identity(self, stage: str) -> dict[str, Json]:
        """What determines an answer of the stage besides the scene: model, sampling, words."""
        version = texts.version(stage, self.prompts.texts(stage))
        return {**self.model.identity(), "prompts": version}

    def record(self, stage: str) -> str:
        """Keeps the words of the stage in prompts.jsonl, once for each version; returns their digest."""
        used = self.prompts.texts(stage)
        ledger = Ledger(self.out / "prompts.jsonl")
        with ledger.writing():
            if not any(row["digest"] == texts.short(used) for row in ledger):
                words = {"system": used.system, "user": used.user, "repair": used.repair}
                about = {"digest": texts.short(used), "prompts": self.prompts.name, "stage": stage}
                ledger.append({**about, **words})
        return texts.short(used)


def judge_keys(work: Work) -> dict[str, str]:
    """Scene id → key of its judgement. Words that the checks allow make it another question."""
    allowed = [sorted(work.checks.allowed)] if work.checks.allowed else []
    identity = work.identity("judge")
    return {s.id: digest("judge", s.content(), identity, *allowed) for s in work.scenes.values()}


def judge(work: Work) -> Tally:
    """Query 1 for each scene that judged.jsonl lacks."""
    prompts, used = work.prompts, work.prompts.texts("judge")

    def question(scene: Scene) -> Question[BaseModel]:
        def fault(answer: BaseModel) -> str:
            return prompts.judgement_fault(answer, scene, work.checks)

        return Question(scene.id, prompts.judge(scene), used, scene.marked(), prompts.judgement, fault)

    ledger, keys = Ledger(work.out / "judged.jsonl"), judge_keys(work)
    with ledger.writing():
        todo, tally = missing(ledger, keys)
        version = work.record("judge") if todo else ""
        for answer in llm.ask(work.model, (question(work.scenes[unit]) for unit in todo)):
            value = None if answer.value is None else answer.value.model_dump()
            note(tally, answer)
            if not answer.error:
                about = {"scene": answer.key, "prompts": prompts.name, "judge_prompt": version}
                ledger.append(row(about, keys[answer.key], answer, {"judgement": value, "expressions": 0}))
            work.heard(tally.done)
    return tally


# ── ledgers of stages ───────────────────────────────────────────────────────────────────────────


def missing(ledger: Ledger, keys: Mapping[str, str]) -> tuple[list[str], Tally]:
    """Units that no row was made for from the same scene, words and model."""
    there = {one["key"] for one in ledger}
    todo = [unit for unit, key in keys.items() if key not in there]
    return todo, Tally(there=len(keys) - len(todo))


def row(
    about: Mapping[str, Json], key: str, answer: Answer[Any], more: Mapping[str, Json]
) -> dict[str, Json]:
    """A line of a stage's ledger: the answer as it came, what it was read as, and what it cost."""
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


def note(tally: Tally, answer: Answer[Any], expressions: int = 0) -> None:
    """Counts an answer."""
    tally.done += 1
    tally.expressions += expressions
    tally.usage = llm.total(tally.usage, answer.usage)
    if answer.error:
        tally.failed.append(f"{answer.key}: {answer.error}")
    elif answer.value is None:
        tally.rejected[kind(answer.problem)] += 1
