"""OpenImages box annotations (validation and train CSV of V5 to V7): corners as fractions of the image.

Columns: ImageID, LabelName, XMin, XMax, YMin, YMax, and where present IsGroupOf (a crowd), IsDepiction and
IsInside (left out: a drawing of the thing, a view from within it). Class names come from
class-descriptions*.csv (LabelName, DisplayName) in the same folder; without it a category is its LabelName.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from refadv_ablate.boxes import Box
from refadv_ablate.errors import UserError

NEEDED = ("ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax")
LEFT_OUT = ("IsDepiction", "IsInside")


def rows(path: Path, wanted: Collection[str] | None) -> Iterator[tuple[str, str, Box, bool]]:
    """(image id, category, box in fractions of the image, whether it is a group) of the wanted images.

    The train CSV has 14.6 million rows, so it is read line by line and only wanted images are kept (all of
    them for None). Raises UserError for a file of another form and for a number that is none.
    """
    names = class_names(path.parent)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            if missing := [name for name in NEEDED if name not in header]:
                raise UserError(f"{path} is no OpenImages box file: it lacks the column {missing[0]}")
            places = {
                name: header.index(name) for name in (*NEEDED, "IsGroupOf", *LEFT_OUT) if name in header
            }
            image = places["ImageID"]
            for cells in reader:
                if len(cells) > image and (wanted is None or cells[image] in wanted):
                    yield from _row(path, reader.line_num, cells, places, names)
    except OSError as error:
        raise UserError(f"{path} can't be read ({error.strerror}); set data.instances to the CSV") from error


def _row(
    path: Path, line: int, cells: list[str], places: Mapping[str, int], names: Mapping[str, str]
) -> Iterator[tuple[str, str, Box, bool]]:
    try:
        if any(cells[places[name]] == "1" for name in LEFT_OUT if name in places):
            return
        corners = [float(cells[places[name]]) for name in ("XMin", "YMin", "XMax", "YMax")]
        group = "IsGroupOf" in places and cells[places["IsGroupOf"]] == "1"
        label = cells[places["LabelName"]]
    except (IndexError, ValueError) as error:
        raise UserError(f"{path}:{line}: not a row of OpenImages boxes ({error})") from error
    if not all(0 <= value <= 1 for value in corners):
        raise UserError(f"{path}:{line}: corners are fractions of the image, not {corners}")
    try:
        box = Box(*corners)
    except ValueError:
        return  # no area: no instance
    yield cells[places["ImageID"]], names.get(label, label).lower(), box, group


def class_names(folder: Path) -> dict[str, str]:
    """LabelName → DisplayName of every class-descriptions*.csv beside the boxes; empty without one."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*class-descriptions*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows_of = (cells for cells in csv.reader(file) if len(cells) >= 2 and cells[0][:1] == "/")
            found.update((cells[0], cells[1]) for cells in rows_of)
    return found
