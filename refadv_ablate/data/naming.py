"""What an image is called: its whole relative name, or its last component where that is enough.

`kitchen/0001.png` and `office/0001.png` are two images, so the last component names an image only where
no two names of the set share it. COCO's names (COCO_train2014_000000000009.jpg) are unique by
themselves: sets that put other folders before them still mean one photograph.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from refadv_ablate.storage.remembered import Remembered

_REF_SUFFIX = re.compile(r"(COCO_\w+_\d{12})_\d+(\.\w+)$")
_COCO = re.compile(r"(COCO_\w+_)?\d{12}\.\w+$")


def full_name(name: str) -> str:
    """The relative name with forward slashes, without "./" and UNC's reference number before the suffix."""
    tidy = posixpath.normpath(name.strip().replace("\\", "/")) if name.strip() else ""
    return _REF_SUFFIX.sub(r"\1\2", tidy)


def last(name: str) -> str:
    """The last component of a full name."""
    return name.rpartition("/")[2]


def coco_name(name: str) -> bool:
    """Whether the last component is one of COCO's, which no two photographs share."""
    return _COCO.match(last(name)) is not None


def ends_with(name: str, tail: str) -> bool:
    """Whether `tail` is `name` or its last components."""
    return name == tail or name.endswith(f"/{tail}")


@dataclass(frozen=True, slots=True)
class Names:
    """What the names of a whole set say. shared: last components that several of its images have.

    folders: how many folders the names lie in; None where the set was not looked through.
    """

    shared: frozenset[str] = frozenset()
    folders: int | None = None

    def key(self, full: str) -> str:
        """What examples on one image share: the last component where it is unique, else the whole name."""
        base = last(full)
        if base in self.shared:
            return full
        return base if self.folders is not None or coco_name(base) else full


UNKNOWN = Names()
"""Of a set that was not looked through."""


def names_of(full_names: Iterable[str]) -> Names:
    """Looks through the full names of a set."""
    known = Remembered()
    shared: set[str] = set()
    folders: set[str] = set()
    for full in full_names:
        folder, _, base = full.rpartition("/")
        folders.add(folder)
        if known.setdefault(base, full) != full:
            shared.add(base)
    return Names(frozenset(shared), len(folders))
