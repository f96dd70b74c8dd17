"""`--dry-run`: the cells that a command would run, how each stands, and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from refadv_ablate import assets
from refadv_ablate.errors import UserError
from refadv_ablate.masking import censored
from refadv_ablate.running.job import Job


def list_cells(words: Sequence[str]) -> int:
    """The cells that the command would run, and how each stands."""

    choices = []
    for override in assets.parse(words):
        values = list(override.sweep_iterator()) if override.is_sweep_override() else None
        key = override.get_key_element()
        choices.append([f"{key}={v}" for v in values] if values else [override.input_line])
    total = lacking = 0
    for combination in product(*choices):
        try:
            cells = Job.of(assets.compose(list(combination))).cells
        except UserError as error:  # such as data that isn't there yet
            print(censored(f"{'not ready':<11} {' '.join(combination)}: {error}"))
            lacking += 1
            continue
        for cell in cells:
            total += 1
            print(f"{cell.state() or 'new':<11} {cell.folder.name}")
    print(f"{total} cells" + (f", {lacking} jobs that lack something" if lacking else ""))
    return 1 if lacking else 0
