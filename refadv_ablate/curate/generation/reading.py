"""The expressions in an answer's JSON, each read by itself, so that a misshapen one spoils no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from refadv_ablate.curate.generation.prompts import Made

Form = TypeVar("Form", bound=BaseModel)


def read_each(
    tree: Mapping[str, Any], form: type[Form], text: str, made: Callable[[Form], Made]
) -> Iterator[Made]:
    """What `made` makes of each entry of the list `expressions`; a misshapen one is a fault of its own.

    text: the field of an entry that holds the expression. Nothing where there is no such list.
    """
    found = tree.get("expressions")
    for entry in found if isinstance(found, list) else ():
        try:
            one = form.model_validate(entry)
        except ValidationError as error:
            yield Made(_text_of(entry, text), fault=_misshapen(error))
        else:
            yield made(one)


def _text_of(entry: Any, field: str) -> str:
    """What a misshapen entry says, to show it beside the reason."""
    return str(entry.get(field, ""))[:400] if isinstance(entry, dict) else str(entry)[:400]


def _misshapen(error: ValidationError) -> str:
    """The first thing in which an entry isn't as the form asks."""
    told = error.errors()[0]
    return f"it is not as the form asks: {'.'.join(map(str, told['loc'])) or 'the entry'}: {told['msg']}"
