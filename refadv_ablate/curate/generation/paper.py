"""`prompts=paper`: the two queries by the steps and field names of the paper's Listings 1 and 2."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel

from refadv_ablate.curate.generation import texts
from refadv_ablate.curate.generation.checks import Checks
from refadv_ablate.curate.generation.listings import (
    POLARITY,
    Expression,
    Listing1,
    Listing2,
    expression_fault,
    listing1_fault,
)
from refadv_ablate.curate.generation.prompts import Made
from refadv_ablate.curate.generation.reading import read_each
from refadv_ablate.curate.scenes import Scene
from refadv_ablate.errors import UserError

_PLACEHOLDERS = {
    "judge": frozenset({"num_objects", "target_class"}),
    "compose": frozenset({"num_objects", "target_class", "image_context", "query1_json", "target_id"}),
}


@dataclass(frozen=True, slots=True)
class Paper:
    """folder: of conf/curate/prompt_text, or a path. Raises UserError where its texts aren't right."""

    folder: str = "paper"
    name: ClassVar[str] = "paper"
    judgement: ClassVar[type[BaseModel]] = Listing1
    composition: ClassVar[type[BaseModel]] = Listing2

    def __post_init__(self) -> None:
        for stage in ("judge", "compose"):
            self.texts(stage)

    def texts(self, stage: str) -> texts.Stage:
        """Of judge or compose. Raises UserError for one_step, which the paper doesn't print."""
        if stage not in _PLACEHOLDERS:
            raise UserError(
                f"the paper prints no text for method={stage}: choose prompts=default, or method=two_step"
            )
        return texts.stage(self.folder, stage, _PLACEHOLDERS[stage])

    def judge(self, scene: Scene) -> str:
        """Listing 1."""
        return self.texts("judge").filled(_about(scene))

    def judgement_fault(self, answer: Listing1, scene: Scene, checks: Checks) -> str:
        """Why it means nothing for the scene."""
        fault = listing1_fault(answer, len(scene.boxes))
        return fault or checks.phrases_fault(answer.phrases(), scene.category)

    def compose(self, scene: Scene, judgement: Listing1, target: int) -> str:
        """Listing 2, with the whole answer to Listing 1 as its observations."""
        more = f"{scene.left_out} more of them, tiny or crowded, carry no integer. " if scene.left_out else ""
        told = json.dumps(judgement.model_dump(), ensure_ascii=False)
        about = {"image_context": more, "query1_json": told, "target_id": target}
        return self.texts("compose").filled(_about(scene) | about)

    def made(self, tree: Mapping[str, Any], judgement: Listing1, target: int) -> Iterator[Made]:
        """Each entry of `expressions`."""
        used: set[str] = set()

        def read(one: Expression) -> Made:
            fault = expression_fault(one, judgement, target, used)
            used.add(one.id)
            polarity = POLARITY[one.inpair_phrase]
            told = {k: v for k, v in one.model_dump().items() if k != "text"} | {"polarity": polarity}
            combination = (*one.group_dids, *one.pair_dids)
            return Made(one.text, combination, polarity, told, fault, _negates(one, judgement))

        return read_each(tree, Expression, "text", read)

    def set_fault(self, made: Sequence[Made]) -> str:
        """Combinations differ."""
        combinations = [one.combination for one in made]
        if len(set(combinations)) < len(combinations):
            return "two expressions use the same combination of group_dids and pair_dids"
        return ""


def _about(scene: Scene) -> dict[str, object]:
    return {"num_objects": len(scene.boxes), "target_class": scene.category}


def _negates(one: Expression, judgement: Listing1) -> bool:
    """Whether a phrase that the text was to use negates by itself, as "without a handle" does."""
    from refadv_ablate.data.negation import negated

    group = [d.A for d in judgement.group_discriminators if d.id in one.group_dids]
    return any(negated(phrase) for phrase in (one.inpair_positive_phrase, *group))
