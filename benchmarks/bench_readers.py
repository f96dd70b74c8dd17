"""Readers of answers: time over length. Linear is a ratio of about 2 for twice the text."""

from __future__ import annotations

import time

from refadv_ablate.boxes import Box
from refadv_ablate.parsing.dialects import JsonBoxes, TaggedBoxes
from refadv_ablate.prompting.som import MarkNumbers

LENGTH = 100_000
TEN_MB = 10_000_000
GOAL = 2.5
UNITS = {
    "one `<` and blanks": ("<", " "),
    "`<ref>`": ("", "<ref>"),
    "`<box>`": ("", "<box>"),
    "`[`": ("", "["),
    '`["`': ("", '["'),
    "one digit": ("[", "9"),
    "JSON lines": ("", '{"bbox_2d": [11, 22, 33, 44], "label": "a man"}\n'),
    "prose with verdicts": ("", "The answer is [11, 22, 33, 44], not the man at [55, 66, 77, 88]. "),
    "named candidates": ("", "Man B: [11, 22, 33, 44] holds a cup.\n"),
    "corners by name": ("", "x1=11, y1=22, x2=33, y2=44; "),
    "prose without a box": ("", "There is a man beside the woman who is not in the picture, so no. "),
    "tool calls": ("", '<tool_call>{"name": "zoom", "arguments": {"bbox": [1, 2, 3, 4]}}</tool_call>'),
}


def run() -> list[dict[str, object]]:
    """A row for each kind of text: 100,000 against 200,000 characters; two of 10 million."""
    readers = {
        "qwen": JsonBoxes(pairs=True),
        "internvl": TaggedBoxes(first=True),
        "som": MarkNumbers((Box(1, 2, 3, 4),)),
    }
    rows = []
    for what, (start, unit) in UNITS.items():
        once, twice = 0.0, 0.0
        for reader in readers.values():
            once += _seconds(reader, start, unit, LENGTH)
            twice += _seconds(reader, start, unit, 2 * LENGTH)
        ratio = twice / once
        rows.append(
            {
                "what": f"read 0.2 MB of {what}",
                "against": "0.1 MB",
                "ours": f"{twice:.2f} s",
                "theirs": f"{once:.2f} s",
                "ratio": f"{ratio:.2f}",
                "goal": f"≤ {GOAL}",
                "met": "yes" if ratio <= GOAL else "no",
                "n": f"{len(readers)} readers, best of 2",
            }
        )
    for what in ("one `<` and blanks", "prose with verdicts"):
        taken = _seconds(readers["qwen"], *UNITS[what], TEN_MB, times=1)
        rows.append(
            {"what": f"read 10 MB of {what}", "against": "–", "ours": f"{taken:.1f} s", "n": "1 reader, once"}
        )
    return rows


def _seconds(
    reader: JsonBoxes | TaggedBoxes | MarkNumbers, start: str, unit: str, length: int, times: int = 2
) -> float:
    text = start + unit * (length // len(unit))
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        reader.read(text)
        best = min(best, time.process_time() - began)
    return best
