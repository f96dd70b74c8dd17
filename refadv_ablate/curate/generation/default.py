"""`prompts=default`: this project's own words for the two queries, and the single query of the ablation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel

from refadv_ablate.curate.generation import texts
from refadv_ablate.curate.generation.checks import Checks
from refadv_ablate.curate.generation.prompts import Made
from refadv_ablate.curate.generation.reading import read_each
from refadv_ablate.curate.generation.schemas import Composed, Composition, Judgement, judgement_fault
from refadv_ablate.curate.scenes import Scene

_PLACEHOLDERS = {
    "judge": frozenset({"n", "category"}),
    "compose": frozenset({"target", "distractor", "category", "groups", "pairs"}),
    "one_step": frozenset({"n", "category"}),
}


@dataclass(frozen=True, slots=True)
class Default:
    """folder: of conf/curate/prompt_text, or a path. Raises UserError where its texts aren't right."""

    folder: str = "default"
    name: ClassVar[str] = "default"
    judgement: ClassVar[type[BaseModel]] = Judgement
    composition: ClassVar[type[BaseModel]] = Composition

    def __post_init__(self) -> None:
        for stage in ("judge", "compose"):
            self.texts(stage)

    def texts(self, stage: str) -> texts.Stage:
        """Of judge, compose or one_step."""
        return texts.stage(self.folder, stage, _PLACEHOLDERS[stage])

    def judge(self, scene: Scene) -> str:
        """Query 1."""
        return self.texts("judge").filled({"n": len(scene.boxes), "category": scene.category})

    def one_step(self, scene: Scene) -> str:
        """The single query of the ablation."""
        return self.texts("one_step").filled({"n": len(scene.boxes), "category": scene.category})

    def judgement_fault(self, answer: Judgement, scene: Scene, checks: Checks) -> str:
        """Why it means nothing for the scene."""
        phrases = [p for d in answer.group_discriminators for p in (d.phrase_a, d.phrase_b)]
        phrases += [p for d in answer.pair_discriminators for p in (d.phrase_first, d.phrase_second)]
        return judgement_fault(answer, len(scene.boxes)) or checks.phrases_fault(phrases, scene.category)

    def compose(self, scene: Scene, judgement: Judgement, target: int) -> str:
        """Query 2: the discriminators numbered, those of the pair from the target's side."""
        first = target == judgement.pair[0]
        groups = [f"{i}. {d.phrase_a}" for i, d in enumerate(judgement.group_discriminators, 1)]
        pairs = []
        for i, d in enumerate(judgement.pair_discriminators, 1):
            own, other = (d.phrase_first, d.phrase_second) if first else (d.phrase_second, d.phrase_first)
            seen = "noticeable" if d.noticeable else "unnoticeable"
            pairs.append(f"{i}. ({seen}) target: {own}; hard distractor: {other}")
        return self.texts("compose").filled(
            {
                "target": target,
                "distractor": judgement.pair[1] if first else judgement.pair[0],
                "category": scene.category,
                "groups": "\n".join(groups),
                "pairs": "\n".join(pairs),
            }
        )

    def made(self, tree: Mapping[str, Any], judgement: Any, target: int) -> Iterator[Made]:
        """Each entry of `expressions`."""

        def read(one: Composed) -> Made:
            told = {"group": one.group, "pair": one.pair, "polarity": one.polarity}
            return Made(one.expression, (str(one.group), str(one.pair)), one.polarity, told)

        return read_each(tree, Composed, "expression", read)

    def set_fault(self, made: Sequence[Made]) -> str:
        """Combinations differ, and each polarity is there."""
        combinations = [one.combination for one in made]
        if len(set(combinations)) < len(combinations):
            return "two expressions use the same combination of discriminators"
        missing = {"positive", "negation", "both"} - {one.polarity for one in made}
        return f"no expression has the polarity {sorted(missing)[0]!r}" if missing else ""
