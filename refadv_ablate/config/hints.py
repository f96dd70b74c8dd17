"""What a person probably meant by an option that there isn't."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

FEW = 12
"""So many choices are all named; of more only the near ones, and where to read the others."""


def option(group: str, value: str, texts: Mapping[str, str]) -> str:
    """A clause to end a sentence about an unknown option; `texts`: option → its YAML as text."""
    meant = _meant(group, value, texts)
    if len(texts) <= FEW:
        return " ".join(filter(None, (meant, f"choices: {', '.join(sorted(texts))}")))
    near = get_close_matches(value, sorted(texts), n=4, cutoff=0.5)
    others = f"near it: {', '.join(near)}; " if len(near) > 1 else ""
    return f"{meant + ' ' if meant else ''}{others}all {len(texts)}: python -m refadv_ablate --help {group}"


def _meant(group: str, value: str, texts: Mapping[str, str]) -> str:
    words = value.split()
    if len(words) > 1 and all(word in texts for word in words):
        return f"separate with commas, in quotes: '{group}=[{','.join(words)}]';"
    if owner := _owner(value, texts):
        return f"a checkpoint goes to its family: {group}={owner} {group}.checkpoint={value};"
    folded = {name.casefold(): name for name in texts}
    exact = folded.get(value.casefold())
    sure = get_close_matches(value, sorted(texts), n=1, cutoff=0.8)
    told = [name for name in sorted(texts) if _told(value, texts[name])]
    near = get_close_matches(value, sorted(texts), n=1, cutoff=0.5)
    found = next(iter([*([exact] if exact else []), *sure, *told[:1], *near]), "")
    return f"did you mean {found!r}?" if found else ""


def _owner(value: str, texts: Mapping[str, str]) -> str:
    """The family whose checkpoints are named like this one."""
    for name, text in sorted(texts.items()):
        found = re.search(r"^checkpoint: (\S+/\S+)", text, re.MULTILINE)
        if found and "${package_path" not in found[1]:
            parts = map(re.escape, re.split(r"\$\{[^}]*\}", found[1]))
            if re.fullmatch("[A-Za-z0-9.-]+".join(parts), value, re.IGNORECASE):
                return name
    return ""


def _told(value: str, text: str) -> bool:
    """Whether an option's YAML uses the word: its class, its keys or its comment."""
    word = re.sub(r"[^a-z0-9]", "", value.casefold())
    return len(word) >= 4 and word in re.sub(r"[^a-z0-9\n ]", "", text.casefold())


def sizes(text: str) -> list[str]:
    """The sizes that the first comment of a model family's YAML lists."""
    found = re.search(r"\(size=([^)]*)\)", text.partition("\n")[0])
    return [size.strip() for size in found[1].split(",")] if found else []


def recipes_with(key: str, texts: Mapping[str, str]) -> list[str]:
    """The recipes that have this key of their own; `texts`: recipe, such as paper=x → its YAML as text."""
    return [name for name, text in texts.items() if re.search(rf"^{re.escape(key)}:", text, re.MULTILINE)]
