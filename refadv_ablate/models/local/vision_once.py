"""One pass of the vision encoder for all requests of a batch that show the same image."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from refadv_ablate.models.local.batching import Batch


def vision_owner(model: Any) -> Any | None:
    """The module whose `get_image_features` the forward pass calls; None where there is none."""
    inner = getattr(model, "model", None)
    return inner if hasattr(inner, "get_image_features") else None


@contextmanager
def shared(owner: Any, batch: Batch) -> Iterator[None]:
    """Within, the features of each distinct image are computed once and handed out to each of its places.

    The forward pass asks for the features of all images of the batch but is given the pixels of the
    distinct ones only; positions and masks are not touched.
    """
    compute = owner.get_image_features

    @wraps(compute)  # generate looks at the signature
    def features(*args: Any, **options: Any) -> Any:
        once = [_of_distinct(value, batch) for value in args]
        told = {name: _of_distinct(value, batch) for name, value in options.items()}
        found = compute(*once, **told)
        found.pooler_output = _handed_out(found.pooler_output, batch)
        layers = getattr(found, "deepstack_features", None)
        if layers is not None:  # Qwen3-VL: features of several depths, one entry each
            found.deepstack_features = [_handed_out(layer, batch) for layer in layers]
        return found

    owner.get_image_features = features
    try:
        yield
    finally:
        del owner.get_image_features  # the instance's: the class's own shows again


def _of_distinct(value: Any, batch: Batch) -> Any:
    """Per-image arguments (sizes, grids) of the distinct images; everything else as it is."""
    import torch

    per_image = torch.is_tensor(value) and value.dim() == 2 and value.shape[0] == len(batch.index)
    return value[list(batch.first)] if per_image else value


def _handed_out(value: Any, batch: Batch) -> Any:
    """From one entry per distinct image (a sequence, or the rows of a tensor) to one per place."""
    import torch

    if not torch.is_tensor(value):
        return tuple(value[i] for i in batch.index)
    rows = [value.shape[0] * n // sum(batch.rows) for n in batch.rows]
    parts = torch.split(value, rows)  # raises where the rows are not in proportion to the pixels
    return torch.cat([parts[i] for i in batch.index])
