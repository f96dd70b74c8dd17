"""`python -m refadv_ablate.curate <stage>`: compose the config, run one stage, say what it did."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from refadv_ablate import __version__, assets
from refadv_ablate.errors import UserError, nearest, printable
from refadv_ablate.masking import censored, learn_words, mask_logs

PROGRAM = "refadv_ablate.curate"
FOLDER = "conf/curate"
KEYS = {
    "backend.base_url": "llm.base_url",
    "backend.served_name": "llm.model",
    "data.instances": "source.instances",
    "data.image_root": "source.images",
}
GROUPS = ("source", "llm", "prompts", "method")
DRY = ("judge", "compose")
"""Stages that know --dry-run."""
STAGES = {
    "prepare": "images with instance annotations → scenes with numbered candidates",
    "judge": "query 1: the most similar pair of each scene, and what tells it apart",
    "compose": "query 2: four expressions for each member of a pair (method=one_step: a single query)",
    "author": "a page on which people write expressions for pairs of their choice",
    "verify": "a page on which annotators find the referent blind, then judge the expression",
    "label_studio": "the same in Label Studio: label_studio.action=export or import",
    "status": "what each stage has done, agreement, keep rate",
    "export": "the kept expressions as a data set for data=ref_adv_s",
    "cost": "tokens and price per expression and per kept one, beside the paper's",
    "audit": "the three ablations on the new set and others: which is harder to shortcut",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 something is left undone, 2 a mistake in the command, 130 stopped."""
    words = list(sys.argv[1:] if argv is None else argv)
    learn_words(words)
    mask_logs()
    if not words or {"-h", "--help"} & set(words):
        print(help_text())
        return 0
    try:
        signal.signal(signal.SIGTERM, _terminate)
        return run(words[0], words[1:])
    except UserError as error:
        print(f"{PROGRAM}: {printable(censored(_in_own_words(str(error))))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\n{PROGRAM}: stopped; what is done is kept, the same command goes on", file=sys.stderr)
        return 130


def _in_own_words(text: str) -> str:
    """Parts that the main job shares name its keys; here they have other names."""
    for theirs, ours in KEYS.items():
        text = text.replace(theirs, ours)
    return text


def _terminate(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def help_text() -> str:
    """Stages, config groups and their options, and the keys with their defaults."""
    lines = [
        f"refadv-ablate {__version__}: make a Ref-Adv of your own",
        "",
        "  python -m refadv_ablate.curate STAGE key=value …",
        "  --dry-run after judge or compose: what it would ask and cost; nothing is asked",
        "",
        "stages, in their order:",
        *(f"  {name:<13} {about}" for name, about in STAGES.items()),
    ]
    for group in GROUPS:
        known = assets.options(f"curate/{group}")
        lines += ["", f"{group}=", *(f"  {name:<13} {about}" for name, about in known.items())]
    text = (assets.asset_dir(FOLDER) / "config.yaml").read_text(encoding="utf-8")
    keys = text.split("method: two_step")[1].strip().splitlines()
    lines += [
        "",
        "other keys, with their defaults:",
        *(f"  {line}" for line in keys if "_target_" not in line),
    ]
    return "\n".join(lines)


def run(stage: str, words: Sequence[str]) -> int:
    """One stage with its overrides."""
    if stage not in STAGES:
        raise UserError(f"there is no stage {stage!r}; {nearest(stage, STAGES)}")
    dry_run = "--dry-run" in words
    if dry_run and stage not in DRY:
        raise UserError(f"{stage} knows no --dry-run: only {' and '.join(DRY)} ask anybody; leave it out")
    words = [word for word in words if word != "--dry-run"]
    for word in words:
        if word.startswith("-"):
            raise UserError(f"unknown option {word!r}: a stage takes key=value words; --help lists them")
    assets.check(words, FOLDER, GROUPS)
    config = assets.compose(words, folder=FOLDER)
    from refadv_ablate.curate import stages
    from refadv_ablate.curate.common import Common

    function: Callable[[Any, Any], int] = getattr(stages, stage)
    return function(Common.of(config, dry_run), config)
