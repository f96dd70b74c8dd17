"""Qualitative cases as the paper's Table 5 has them, picked by a rule instead of by hand: a page and LaTeX.

For each cell, each way in which an answer can flip and each bin of distractors, the flips are put in an
order that the seed alone decides, and the first few are shown beside the number that there were.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from refadv_ablate.errors import UserError
from refadv_ablate.report.loading.study import Study
from refadv_ablate.report.pages import case_page
from refadv_ablate.report.pages.case_page import Case, Group
from refadv_ablate.report.pages.gallery import FLIPS, Flip, Pair, flip, pairs_of
from refadv_ablate.report.pages.imagery import images_of
from refadv_ablate.report.pages.thumbnails import Thumbnails
from refadv_ablate.seeding import digest
from refadv_ablate.statistics.formatting import cell_name
from refadv_ablate.statistics.slices import number_label
from refadv_ablate.storage.jsonl import atomic
from refadv_ablate.types import ORIGINAL, ImageRef

KINDS: tuple[Flip, ...] = ("rw", "wr")
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Picked:
    """The flips of one cell, of one kind, in one bin: how many there are, and those that are shown."""

    cell: str
    kind: Flip
    bin: str
    total: int
    pairs: Sequence[Pair]


def pick(pairs: Iterable[Pair], cell: str, *, each: int = 1, seed: int = 0) -> list[Picked]:
    """At most `each` examples of each kind of flip and bin of distractors; an example counts once.

    Of an example with several draws the first that flips so stands for it.
    """
    groups: dict[tuple[Flip, str], dict[str, Pair]] = {}
    for original, perturbed in pairs:
        kind = flip(original, perturbed)
        if kind in KINDS and not perturbed.placebo:
            label = (
                UNKNOWN if original.distractors is None else number_label(original.distractors, "distractors")
            )
            groups.setdefault((kind, label), {}).setdefault(original.example_id, (original, perturbed))
    found = []
    for (kind, label), members in groups.items():
        order = sorted(members, key=lambda example: digest(seed, cell, kind, label, example))
        shown = [members[example] for example in order[:each]]
        found.append(Picked(cell, kind, label, len(members), shown))
    return sorted(found, key=lambda p: (KINDS.index(p.kind), p.bin == UNKNOWN, _low(p.bin)))


def _low(label: str) -> float:
    digits = "".join(c if c.isdigit() else " " for c in label).split()
    return float(digits[0]) if digits else 0.0


def write(folder: Path, study: Study, *, each: int, seed: int, command: str) -> list[Path]:
    """cases.html, cases.tex and cases_images/ for LaTeX; returns page and LaTeX file.

    Raises UserError where no answer flipped.
    """
    shutil.rmtree(folder / "cases_images", ignore_errors=True)  # of an earlier call
    groups = list(_groups(study, folder, each, seed))
    if not groups:
        raise UserError(
            "no answer of these results flipped between the original and a perturbed expression, so there is "
            "no case to show; give path=… results with a perturbation"
        )
    page, table = folder / "cases.html", folder / "cases.tex"
    for path, text in (
        (page, case_page.page(groups, each, seed, command)),
        (table, case_page.latex(groups, each, seed)),
    ):
        with atomic(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    return [page, table]


def _groups(study: Study, folder: Path, each: int, seed: int) -> Iterator[Group]:
    thumbnails, numbers = Thumbnails(), count(1)
    for cell, comparison in study.pairs:
        wanted = (ORIGINAL, comparison.operator)
        records = (record for record in cell.records() if record.condition in wanted)
        picked = pick(pairs_of(records), cell_name(comparison), each=each, seed=seed)
        image_of = (images_of(cell) if picked else None) or _no_image
        for one in picked:
            images = [(pair, image_of(pair[0].example_id)) for pair in one.pairs]
            cases = [_case(pair, image, thumbnails, folder, next(numbers)) for pair, image in images]
            yield Group(one.cell, comparison.operator, FLIPS[one.kind], one.bin, one.total, cases)


def _no_image(_id: str) -> ImageRef | None:
    return None


def _case(pair: Pair, image: ImageRef | None, thumbnails: Thumbnails, folder: Path, number: int) -> Case:
    original, perturbed = pair
    index = thumbnails.add(image)
    if index is None or image is None:
        return Case(original, perturbed)
    # a box that lies on another image than the one that is shown isn't drawn
    on_it = replace(perturbed, predicted=None) if perturbed.picture else perturbed
    drawn = case_page.draw(image, (original, on_it), folder, number)
    return Case(original, perturbed, thumbnails.sources[index], drawn)
