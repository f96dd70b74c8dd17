"""Nested lists and objects out of any text: what JSON is when a language model writes it.

Strict JSON readers refuse what models really write: trailing commas, single quotes, leading zeros
(`012`), `;` between boxes, `(…)` for lists, prose before and after, a list cut by the token limit.
This reader is total and linear: every text gives a list of groups, possibly empty. A number is a whole
token or none: `12O`, `1/2`, `10-20`, `10²`, `12_0` and `10.0.0.1` are words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_DEPTH = 60
"""Deeper brackets are read as stray characters: no answer nests so far, and a walk may recurse."""

# one way alone to take a run of digits: a long one that is no number must not be tried in every split
NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_CLOSER = {"[": "]", "{": "}", "(": ")"}
# A parenthesis in prose opens a group only where a number follows: `(12, 34)`, not `(the left one)`.
_OPEN = re.compile(r"[\[{]|\((?=\s{0,8}[-+]?[\d.(\[])")
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<comment>(?<=\s)(?://|\#\s)[^\n]*|/\*.{{0,2000}}?\*/)
    | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*"|'(?:[^'\\\n]|\\.){{0,300}}'(?=\s{{0,9}}[,:\]}}]))
    | (?P<number>{NUMBER})(?:\s?(?P<unit>px|pixels?|%))?(?=[\s,;:=\[\]{{}}()"'<>\\]|$)
    | (?P<open>[\[{{(])
    | (?P<close>[\]}})])
    | (?P<mark>[,;:=])
    | (?P<dots>\.{{2,}}|…+)
    | (?P<word>[^\s,;:=\[\]{{}}()"'<>…]+)
    | (?P<other>\S)
    )""",
    re.VERBOSE | re.DOTALL,
)
_UNQUOTED = re.compile(_TOKEN.pattern.replace("(?P<string>", "(?P<string>(?!)"), _TOKEN.flags)


class Word(str):
    """Something in a group that is neither a number, a string nor a group: `x1`, `true`, `NaN`, `%`."""

    __slots__ = ()


@dataclass(slots=True)
class Group:
    """What stands between two brackets. `closed` is false where the text ends before the bracket does.

    items: (key or None, value) in written order; keys come from `key: value` and `key = value`.
    loose: for each comma between two values, whether a blank follows it.
    """

    opener: str
    start: int
    end: int = -1
    closed: bool = False
    items: list[tuple[str | None, Value]] = field(default_factory=list)
    loose: list[bool] = field(default_factory=list)

    def values(self) -> list[Value]:
        """The values without their keys."""
        return [value for _, value in self.items]

    def groups(self) -> Iterator[Group]:
        """Groups directly inside."""
        return (value for _, value in self.items if isinstance(value, Group))


Value = float | str | Word | Group


def scan(text: str) -> list[Group]:
    """The outermost groups of a text in order; at most the last one is not closed."""
    roots: list[Group] = []
    stack: list[Group] = []
    key: str | None = None
    position, pattern = 0, _TOKEN
    while True:
        if not stack:
            found = _OPEN.search(text, position)
            if found is None:
                break
            group = Group(found[0], found.start())
            roots.append(group)
            stack.append(group)
            key, position = None, found.end()
            continue
        token = pattern.match(text, position)
        if token is None:
            break
        if token["other"] == '"':
            # no closing quote follows: looking for it again at every later quote would be quadratic
            pattern = _UNQUOTED
        position = token.end()
        if token["mark"] == ",":
            stack[-1].loose.append(text[position : position + 1].isspace())
        if not token["comment"]:
            key = _take(token, stack, key)
    for group in stack:
        group.end = len(text)
        _finish_rows(group)
    return roots


def _take(token: re.Match[str], stack: list[Group], key: str | None) -> str | None:
    """Puts one token where it belongs; returns the key that waits for its value."""
    kind, top = token.lastgroup, stack[-1]
    if kind == "unit":
        kind = "number"
    written = token[kind or "other"]
    if kind == "open" and len(stack) < MAX_DEPTH:
        group = Group(written, token.start(kind))
        top.items.append((key, group))
        stack.append(group)
    elif kind == "close":
        _close(written, token.end(), stack)
    elif kind == "mark":
        return _mark(written, top, key)
    else:
        top.items.append((key, _atom(token, kind or "other", written)))
    return None


def _atom(token: re.Match[str], kind: str, written: str) -> Value:
    if kind == "string":
        return re.sub(r"\\(.)", r"\1", written[1:-1], flags=re.DOTALL)
    if kind == "number":
        number = float(written)
        # a percentage is a number in another frame than the one next to it
        return number if math.isfinite(number) and token["unit"] != "%" else Word(token[0].strip())
    return Word(written)


def _mark(written: str, top: Group, key: str | None) -> str | None:
    if written in ":=":
        if top.items and isinstance(top.items[-1][1], str) and top.items[-1][0] is None:
            return str(top.items.pop()[1])
        top.items.append((key, Word(written)))  # `10:30` is a time, no two numbers
    if written == ";":
        rows = Group("[", top.start, closed=True)
        split = next((i + 1 for i in range(len(top.items) - 1, -1, -1) if top.items[i][0] == ";"), 0)
        rows.items = top.items[split:]
        top.items[split:] = [(";", rows)]
    return None


def _finish_rows(group: Group) -> None:
    """`[1,2,3,4;5,6,7,8]` is a list of two rows, as `;` says in CogVLM's answers; `[1;2;3;4]` is one."""
    rows = [value for key, value in group.items if key == ";" and isinstance(value, Group)]
    if rows:
        rest = [item for item in group.items if item[0] != ";"]
        last = Group("[", group.start, closed=group.closed, items=rest)
        rows += [last] if rest else []
        if all(len(row.items) == 1 for row in rows):
            group.items = [row.items[0] for row in rows]
        else:
            group.items = [(None, row) for row in rows]


def _close(written: str, end: int, stack: list[Group]) -> None:
    """Closes the innermost group with that bracket; groups inside it that lack theirs end there too."""
    depth = next((i for i in range(len(stack) - 1, -1, -1) if _CLOSER[stack[i].opener] == written), None)
    if depth is None:
        stack[-1].items.append((None, Word(written)))
        return
    for group in stack[depth:]:
        group.end, group.closed = end, True
        _finish_rows(group)
    del stack[depth:]
