"""The texts of the curation queries: files found by name, checked, and told apart by their digest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from refadv_ablate.errors import UserError, nearest
from refadv_ablate.seeding import digest

_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_SHORT = 12
"""Hexadecimal digits of a digest as records show it."""

FIRST = {
    "judge": "c60ef33865f8f578ec8276798767189e0eac28753e4a5275f6405a2fa3594c08",
    "compose": "3e5932eb0cc4c1ad3be47e8435cb348e4b38d0af2ee21511b3140e55cd7ab1fa",
    "one_step": "376a47de54bab486be4372281e8b0cd3d6633f3778b9cf01b2ddf77e3ae26084",
}
"""Digests of the texts of version 0.1.0, whose rows call them 1: what was paid for stays answered."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The texts of one query. repair: the turn after an answer that can't be used, with {problem}."""

    system: str | None
    user: str
    repair: str

    def filled(self, values: Mapping[str, object]) -> str:
        """The user's text with its placeholders filled; what is filled in is not looked at again."""
        return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), self.user)

    @property
    def digest(self) -> str:
        """Of all that is sent besides the scene."""
        return digest(self.system, self.user, self.repair)


@cache
def folder_of(name: str) -> Path:
    """A folder of conf/curate/prompt_text, or one's own where the name is a path. Raises UserError."""
    from refadv_ablate.assets import asset_dir

    shipped = asset_dir("conf") / "curate" / "prompt_text"
    path = Path(name).expanduser().absolute() if "/" in name else shipped / name
    if not path.is_dir():
        known = [one.name for one in shipped.iterdir() if one.is_dir()]
        hint = "give the path of a folder" if "/" in name else nearest(name, known)
        raise UserError(f"prompts.folder={name}: there is no folder {path}; {hint}")
    return path


def stage(folder: str, name: str, known: frozenset[str]) -> Stage:
    """The texts of the stage `name`, in which each of the placeholders `known` must stand and no other may.

    Files: NAME.txt, repair.txt, and NAME.system.txt or system.txt (no system message where neither is).
    Raises UserError that names the file.
    """
    at = folder_of(folder)
    system = next((p for p in (at / f"{name}.system.txt", at / "system.txt") if p.is_file()), None)
    return Stage(
        None if system is None else _read(system, frozenset()),
        _read(at / f"{name}.txt", known),
        _read(at / "repair.txt", frozenset({"problem"})),
    )


def version(name: str, texts: Stage) -> int | list[str]:
    """What stands for the texts in the key of an answer."""
    return 1 if texts.digest == FIRST[name] else ["texts", texts.digest]


def short(texts: Stage) -> str:
    """The digest as records and exported sets show it."""
    return texts.digest[:_SHORT]


def _read(path: Path, known: frozenset[str]) -> str:
    from refadv_ablate.prompting.prompts import read_text

    if not path.is_file():
        raise UserError(f"the prompt file {path} is missing: write it, or choose other prompts=")
    text = read_text(path)
    found = set(_PLACEHOLDER.findall(text))
    if strange := sorted(found - known):
        raise UserError(f"the prompt file {path} has {{{strange[0]}}}; {nearest(strange[0], known)}")
    if lacking := sorted(known - found):
        raise UserError(f"the prompt file {path} lacks {{{lacking[0]}}}; add it where it belongs")
    return text
