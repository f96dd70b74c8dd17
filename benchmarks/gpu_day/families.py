"""The families of conf/model as `make gpu` asks them: the smallest checkpoint of each, and its engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

TRANSFORMERS, OWN, SERVER, OFFLINE = "transformers", "own engine", "vLLM server", "vLLM offline"
EVERY = (TRANSFORMERS, SERVER, OFFLINE)
SERVED = (SERVER, OFFLINE)


@dataclass(frozen=True)
class Family:
    """A YAML of conf/model at its smallest.

    words: of the command, besides model=. gb: declared size of the weights, for a hub that doesn't tell.
    engines: in the order in which they are asked. share: of the rows that are asked; less than 1 where an
    answer takes thousands of tokens. context: tokens of prompt and answer that vLLM allows. tiny: builder in
    tests/models/tiny.py that stands for it in a rehearsal. remote_code: whether it runs code from the hub.
    label: a name other than the YAML's.
    """

    model: str
    words: tuple[str, ...] = ()
    gb: float = 0.0
    engines: tuple[str, ...] = EVERY
    share: float = 1.0
    context: int = 8192
    tiny: str = ""
    remote_code: bool = False
    label: str = ""

    @property
    def name(self) -> str:
        """How reports call it."""
        return self.label or self.model


THINKS = {"share": 0.2, "context": 16384}
FAMILIES = (
    Family("internvl3", ("model.size=1B",), 2.0, tiny="internvl"),
    Family("internvl3_5", ("model.size=1B",), 2.2, tiny="internvl"),
    Family("qwen2_5_vl", ("model.size=3B",), 7.6, tiny="qwen2_5_vl"),
    Family("qwen3_vl", ("model.size=2B",), 4.4, tiny="qwen3_vl"),
    Family("qwen3_vl_thinking", ("model.size=2B",), 4.4, tiny="qwen3_vl", **THINKS),  # type: ignore[arg-type]
    Family("rex_omni", (), 7.6, tiny="qwen2_5_vl"),
    Family("minicpm_v", ("model.checkpoint=openbmb/MiniCPM-V-4.7-1B",), 3.0),
    Family("paligemma2", (), 6.2, SERVED),
    Family("grounding_dino", ("model.size=tiny",), 0.8, (OWN,), tiny="grounding_dino"),
    Family(
        "mm_grounding_dino",
        ("model.checkpoint=openmmlab-community/mm_grounding_dino_tiny_o365v1_goldg_v3det",),
        0.8, (OWN,), tiny="mm_grounding_dino",
    ),
    Family(
        "owlv2", ("model.checkpoint=google/owlv2-base-patch16-ensemble",), 0.7, (OWN,), tiny="owlv2"
    ),
    Family("florence2", ("model.size=base",), 0.6, (OWN,), tiny="florence2"),
    Family("glm4_6v", ("model.checkpoint=zai-org/GLM-4.6V-Flash",), 20.6, tiny="glm4v_moe"),
    Family(
        "glm4_5v",
        ("model.checkpoint=zai-org/GLM-4.1V-9B-Thinking", "model.sampling.max_new_tokens=4096"),
        20.6, tiny="glm4v_moe", **THINKS,  # type: ignore[arg-type]
    ),
    Family("kimi_vl", (), 33.0, SERVED, remote_code=True),
    Family("qwen3_5", ("model.size=27B", "model.thinking=false"), 56.0, tiny="qwen3_5"),
)  # fmt: skip
"""Small ones first, so that a day that ends early has most of them."""

LEFT_OUT = {
    "cogvlm_grounding": "its code from the hub needs transformers 4.41 or older, which runs in none of the "
    "environments here; vLLM has no class for it",
}
"""A YAML with weights that is asked on no engine → why."""
CONTROL = "no such checkpoint"
"""Stands in a rehearsal for a family that fails: the others have to go on, and the file has to say so."""


def rehearsed(folder: Path, chosen: Sequence[str]) -> tuple[Family, ...]:
    """What a rehearsal asks: trained checkpoints on all engines, one that isn't there, random ones of each
    architecture through their family's own YAML. Random ones are made in folder where they are needed."""
    trained = [Family(name, context=1024) for name in ("tiny_qwen2_5_vl", "tiny_internvl3")]
    nowhere = (f"model.checkpoint={folder / 'nowhere'}",)
    broken = Family("internvl3", nowhere, engines=(TRANSFORMERS,), label=CONTROL)
    random = [_tiny(family, folder) for family in FAMILIES if family.tiny]
    return tuple(f for f in (*trained, broken, *random) if not chosen or f.name in chosen)


def _tiny(family: Family, folder: Path) -> Family:
    kept = [word for word in family.words if not word.startswith(("model.checkpoint=", "model.sampling."))]
    words = [*kept, f"model.checkpoint={folder / family.tiny}"]
    engines = tuple(engine for engine in family.engines if engine not in SERVED)
    if OWN not in engines:
        words.append("model.sampling.max_new_tokens=16")
    return replace(family, words=tuple(words), engines=engines)


def made(family: Family, folder: Path) -> None:
    """Builds the random checkpoint of a rehearsed family, once."""
    if family.tiny and not (folder / family.tiny / "config.json").is_file():
        from transformers.utils import logging

        from tests.models import tiny

        logging.disable_progress_bar()
        getattr(tiny, family.tiny)(folder / family.tiny)
