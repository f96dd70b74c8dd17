"""A list of candidates and a sentence that names one of them: "Man B matches.", "the second one is meant"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from refadv_ablate.types import NoBox

_ID = r"(?:[A-HJ-Z]|\d{1,2}|[甲乙丙丁])"
_CJK = r"[\u3040-\u9fff\uac00-\ud7a3]"
_LABEL = re.compile(
    rf"(?:(?P<noun>[^\W\d_]{{2,20}}?)[ #]*)?(?:(?<![\w.,])|(?<={_CJK}))"
    rf"(?P<id>{_ID})(?![\w.,]\d|\w)[)\]\"'*]{{0,3}}\s{{0,3}}"
    r"(?:[:.=)|(–—-]|\bis\b|\bat\b|\bis at\b|$|[^\W\d_]|[在是])"
)
_ORDINALS = (
    (r"the (?:first|former)\b|第一|1st\b|最初", 0),
    (r"the (?:second)\b|第二|2nd\b", 1),
    (r"the third\b|第三|3rd\b", 2),
    (r"the fourth\b|第四|4th\b", 3),
    (r"the (?:last|latter)\b|最后一|後者|后者", -1),
)
_JUDGES = re.compile(
    r"\b(?:match(?:es)?|correct|answer|target|referent|described|is|fits|holds?|wears?"
    r"|has|only|satisfies|meant|choose|pick|select\w*|therefore|so)\b"
    r"|符合|正确|答案|目标|正解|答え|정답|일치|richtig|passt|correspond|coincide|подходит"
    r"|соответствует|يطابق",
    re.IGNORECASE,
)
_DECIDES = re.compile(
    r"\b(?:match(?:es)?|correct|answer|target|referent)\b|符合|正确|答案|正解|정답|일치|passt", re.IGNORECASE
)
_NOT = re.compile(
    r"(?:\bnot|n['’]t|\bunlike|\bthan|\brather than|\bto|\bof|\bbeside|\bnear|\band|不是"
    r"|不同于)\s+(?:the\s+)?\S{0,20}\s?$",
    re.IGNORECASE,
)


def named(leads: Sequence[str], labels: Sequence[str], tail: str) -> int | NoBox | None:
    """Which of the candidates the text behind them names: its index, none of them, or no word about it.

    leads: the text right before each; labels: what each is called in the list itself, "" if nothing.
    """
    sentences = [s for s in re.split(r"(?<=[.!?])(?=\s|[^\x00-\x7f])|\n", tail) if _JUDGES.search(s)]
    if not sentences or len(leads) < 2:
        return None
    ids = [_label(lead, label) for lead, label in zip(leads, labels, strict=True)]
    known = [i for i in ids if i]
    unique = len(known) == len(ids) and len(set(known)) == len(ids)
    for sentence in reversed(sentences):
        clauses = [sentence, *reversed(re.split(r"[,;，；]", sentence))] if unique else []
        each = [_mentions(clause, ids) for clause in clauses]
        found = next((f for f in each if len(set(f)) == 1), each[0] if each else [])
        if len(set(found)) == 1:
            return found[0]
        if found:
            return NoBox("unparsable", "the answer names more than one of the candidates that it lists")
        for pattern, index in _ORDINALS:
            if re.search(pattern, sentence, re.IGNORECASE) and index < len(leads):
                return index % len(leads)
    if unique and any(noun for noun, _ in known) and any(_DECIDES.search(s) for s in sentences):
        return NoBox("unparsable", "candidates are listed, and the sentence behind them names none of them")
    return None


def _label(lead: str, label: str) -> tuple[str, str] | None:
    if label:
        found = re.search(
            rf"(?:([^\W\d_]{{2,20}}?)[ #]*)?(?:(?<!\w)|(?<=[\u3040-\u9fff\uac00-\ud7a3]))({_ID})$",
            label.strip(),
        )
        return ((found[1] or "").lower(), found[2]) if found else None
    line = re.split(r"[\n;]|(?<=[^\d][.!?])\s+(?=\S)", lead)[-1]
    found = next(_LABEL.finditer(line), None)
    return ((found["noun"] or "").lower(), found["id"]) if found else None


def _mentions(sentence: str, ids: Sequence[tuple[str, str] | None]) -> list[int]:
    """Indices of the candidates that a sentence names and doesn't merely set against another."""
    found = []
    for index, known in enumerate(ids):
        noun, name = known or ("", "")
        kind = rf"(?:{re.escape(noun)}|candidate|option|number|object|box|region|item|no\.?|#)"
        cjk = bool(re.fullmatch(r"[甲乙丙丁]", name))
        pattern = (
            rf"{kind}[ #]*{name}(?![A-Za-z0-9])"
            if noun and not cjk
            else rf"(?<!\w){name}(?![A-Za-z0-9]|[.,]\d)"
            if not cjk
            else name
        )
        hits = list(re.finditer(pattern, sentence, re.IGNORECASE if noun else 0))
        found += [index] if any(not _NOT.search(sentence[: hit.start()]) for hit in hits) else []
    return found
