"""The images of a cell's examples, through the data that its config names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from refadv_ablate import assets
from refadv_ablate.errors import UserError
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.types import Data, ImageRef


def data_of(cell: Cell) -> Data | None:
    """The data set of a cell's config; None where it has none or it can't be opened here any more."""
    recipe = cell.config.get("data")
    if not isinstance(recipe, Mapping) or "_target_" not in recipe:
        return None
    try:
        data: Data = assets.build(recipe, "data")
    except UserError:
        return None
    return data


def images_of(cell: Cell, wanted: Collection[str] | None = None) -> Callable[[str], ImageRef | None] | None:
    """Example id → image, of those that are wanted (None: all); None where the data can't be had."""
    data = data_of(cell)
    if data is None:
        return None
    try:
        refs = {example.id: example.image for example in data if wanted is None or example.id in wanted}
    except UserError:
        return None
    return refs.get
