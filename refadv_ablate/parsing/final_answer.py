"""The final answer within a reply's text, and why an answer without a box has none."""

from __future__ import annotations

import re
import unicodedata

from refadv_ablate.parsing.brackets import Group, Value, Word, scan
from refadv_ablate.types import NoBox

# NFKC turns full-width digits, commas and brackets into plain ones, but leaves these as they are.
_CJK = str.maketrans({"【": "[", "】": "]", "〔": "[", "〕": "]", "、": ",", "。": "."})
TRACE = re.compile(r"<\s*(/?)\s*(?:think|thinking|reasoning|thought)\s*>|◁(/?)think▷", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:i(?:['’]?m| am)? (?:sorry|unable|not able|can(?:not|['’]t| not)|could(?:n['’]t| not)|won['’]t"
    r"|do(?:n['’]t| not) (?:see|have|know))|sorry,|(?:unable|not able) to"
    r"|can(?:not|['’]t| not) (?:be )?(?:locat|find|found|identif|determin|provid|help|assist|see|tell|answer)"
    r"|there (?:is|are|does|appears?)(?: to be| not seem to be)?(?: no|n['’]t| not)"
    r"|does(?: not|n['’]t) (?:appear|contain|show|exist|match|have)|no (?:such|matching|visible)"
    r"|(?:is|are) not (?:visible|present|shown|in the image)|none of the|as an ai"
    r"|please (?:provide|specify|clarify))|无法|抱歉|对不起|没有|不能",
    re.IGNORECASE,
)
PLACEHOLDERS = frozenset(
    {"x1", "x2", "y1", "y2", "xmin", "ymin", "xmax", "ymax", "x_min", "y_min", "x_max", "y_max"}
)
"""Names of corners, which stand for numbers where an answer repeats the question's format."""


def final_answer(text: str) -> str | NoBox:
    """What follows the thinking trace, within `<answer>` where there is one, in plain punctuation."""
    text = unicodedata.normalize("NFKC", text).translate(_CJK)
    trace = list(TRACE.finditer(text))
    if trace:
        if "/" not in trace[-1].groups():
            return NoBox("truncated", "the thinking trace is not closed, so there is no answer")
        text = text[trace[-1].end() :]
    inside = re.split(r"</?answer>", text[max(text.rfind("<answer>"), 0) :], flags=re.IGNORECASE)
    text = inside[1] if len(inside) > 1 and inside[1].strip() else text
    if '\\"' in text and not re.search(r'(?<!\\)"', text.strip().strip('"')):
        text = text.strip().strip('"').replace('\\"', '"').replace("\\n", "\n")
    return text


def no_box(text: str) -> NoBox:
    """Why a final answer without a box has none."""
    if not text.strip():
        return NoBox("empty", "nothing follows the thinking trace")
    groups = scan(text)
    atoms = [leaf for group in groups for leaf in leaves(group)]
    words = {str(atom).lower() for atom in atoms if isinstance(atom, Word)}
    if groups and not atoms and all(group.closed for group in groups):
        return NoBox("empty", "the answer lists no box")
    if words & PLACEHOLDERS or any("x1" in word for word in words):
        return NoBox("unparsable", "a placeholder such as [x1, y1, x2, y2] stands where numbers should")
    if words & {"nan", "inf", "infinity"}:
        return NoBox("unparsable", "a value is not a finite number")
    if words & {"true", "false"}:
        return NoBox("unparsable", "a truth value stands where a number should")
    if any("%" in word for word in words):
        return NoBox("unparsable", "percentages are not in the family's frame")
    if words <= {"null", "none"} and words:
        return NoBox("empty", "the answer lists no box")
    if groups and not groups[-1].closed:
        return NoBox("truncated", "the answer ends within a list")
    if re.search(r"<\|?loc_?\d+\|?>", text):
        return NoBox("unparsable", "location tokens of another family")
    if _REFUSAL.search(text):
        return NoBox("refused", "the answer says in prose that it gives no box")
    return NoBox("unparsable", "no box in the answer")


def leaves(group: Group) -> list[Value]:
    """Everything in a group and the groups inside it that is no group."""
    found: list[Value] = []
    for value in group.values():
        found += leaves(value) if isinstance(value, Group) else [value]
    return found
