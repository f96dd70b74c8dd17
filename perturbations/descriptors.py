"""From words and what parses say of them to the descriptors of the referent.

A descriptor is what tells one thing of the referent, listed whole: "in a red hat" is one, "red" in it
is none. See docs/decisions/014-descriptors-of-the-referent.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perturbations import lexicon as lx
from perturbations.chunks import Chunk, chunks
from perturbations.modifiers import modifiers
from perturbations.noun_phrase import Phrase, noun_phrase
from perturbations.rewriters import Descriptor, Extraction
from perturbations.telegraphic import telegraphic
from perturbations.units import Unit, units
from perturbations.words import Word

Range = tuple[int, int]
"""Words from … to (exclusive)."""


def describe(text: str, words: Sequence[Word]) -> Extraction:
    """Head and descriptors of `text`, in reading order. Any text is answered: one whose words fit no rule
    has no descriptors, and the reason names the fault."""
    try:
        return _described(text, words)
    except (IndexError, ValueError, StopIteration, RecursionError) as error:
        # A fault of the rules in one odd text must not end a run over thousands of others.
        return Extraction("", reason=f"its words fit no rule ({type(error).__name__})")


def _described(text: str, words: Sequence[Word]) -> Extraction:
    start, found = _leading_contrast(text, words)
    if len(words) > start + 1 and words[start].low == "half" and words[start + 1].kind == "det":
        start += 1  # "half a person on the right"
    loose = start >= len(words) or words[start].kind not in {"det", "poss"}
    phrase = noun_phrase(words, start, loose)
    if phrase is None:
        return Extraction("", reason="no noun that the expression is about")
    placed = words[phrase.noun].low in lx.PLACE_NOUNS | lx.PLACE_ADJECTIVES
    parted = words[phrase.noun].low in {"half", "side", "end", "part", "piece"} and phrase.end < len(words)
    whole = parted and words[phrase.end].low == "of" and noun_phrase(words, phrase.end + 1) is not None
    headless = loose and (not phrase.nominal or placed) and not whole
    end, noun = (phrase.end, phrase.noun) if headless else _partitive(words, phrase)
    named = words[noun].low
    hurried = telegraphic(words, loose)
    cut = chunks(words, end, loose, animate=named in lx.ANIMATES if hurried else None)
    after = units(words, cut, named, hurried)
    found += _headless(text, words, phrase) if headless else _before(text, words, phrase)
    found += [d for k in range(len(after)) for d in _unit(text, words, after, k)]
    found = _counted(text, found)
    if not found and not headless:
        found = _compound(text, words, phrase)
    if not found and phrase.end < end:  # "bowl of soup"
        found = [_made(text, words, (phrase.end, end), [(phrase.end, end)], "attribute")]
    found.sort(key=lambda d: d.spans)
    reason = "" if found else "no descriptor beside the head noun"
    return Extraction("" if headless else words[noun].text, tuple(found), reason)


def _leading_contrast(text: str, words: Sequence[Word]) -> tuple[int, list[Descriptor]]:
    """ "not the lady, the man in shorts": what is meant comes second."""
    if not words or words[0].kind != "neg":
        return 0, []
    comma = next((w.index for w in words if w.kind == "comma"), None)
    if comma is None or noun_phrase(words, comma + 1) is None:
        return 1, []
    return comma + 1, [_made(text, words, (0, comma), [(0, comma + 1)], "negated")]


def _partitive(words: Sequence[Word], phrase: Phrase) -> tuple[int, int]:
    """Where the head ends and which noun names what is meant ("slice of watermelon", "left of the two")."""
    end, noun = phrase.end, phrase.noun
    if end < len(words) and words[end].low in {"of", "among"}:
        first = words[noun]
        partial = first.low in lx.PARTITIVES or not phrase.nominal or first.low in lx.PLACE_ADJECTIVES
        inner = noun_phrase(words, end + 1) if partial else None
        if inner is not None:
            named = first.low in {"one", "left", "right", "two", "three", "all"} or not phrase.nominal
            return inner.end, inner.noun if named or first.low in lx.PLACE_NOUNS else noun
    return end, noun


def _before(text: str, words: Sequence[Word], phrase: Phrase) -> list[Descriptor]:
    found = []
    for m in modifiers(words, phrase):
        start, end = m.start, m.end
        if end < phrase.noun and words[end].kind in {"comma", "cc"}:
            end += 1
            if end < phrase.noun and words[end].kind == "cc":
                end += 1
        else:
            while start > phrase.first and words[start - 1].kind in {"comma", "cc"}:
                start -= 1
        choice = any(phrase.first <= k < phrase.noun and words[k].low == "or" for k in (m.start - 1, m.end))
        made = _made(text, words, (m.start, m.end), [(start, end)], m.kind)
        found.append(replace(made, doubt=2 if choice else m.doubt))
    return found


def _headless(text: str, words: Sequence[Word], phrase: Phrase) -> list[Descriptor]:
    """Without a noun for the thing meant ("front row second from right") the whole phrase is one."""
    if phrase.nominal:
        return [_made(text, words, (phrase.start, phrase.end), [(phrase.start, phrase.end)], "location")]
    return [
        _made(text, words, (k, k + 1), [(k, k + 1)], "attribute")
        for k in range(phrase.start, phrase.end)
        if words[k].kind in {"adj", "place"}
    ]


# ── after the noun ──────────────────────────────────────────────────────────────────────────────


def _unit(text: str, words: Sequence[Word], all_units: Sequence[Unit], k: int) -> list[Descriptor]:
    unit = all_units[k]
    if unit.split:
        return _parts(text, words, unit)
    first = unit.parts[0][0]
    start, end = _own(words, first), unit.end
    cut_start, cut_end = first.start, end
    follows = all_units[k + 1].parts[0][0] if k + 1 < len(all_units) else None
    if follows is not None and follows.joint and not first.joint:
        cut_start, cut_end = (start if not first.comma else cut_start), _own(words, follows)
    elif follows is not None and follows.comma and k == 0 and not follows.negated and follows.kind != "noun":
        cut_end = _own(words, follows)
    loses = _leaves_contrast(words, follows) or (follows is not None and follows.kind == "clause")
    doubt = max(unit.doubt, 2 if loses else 0)
    made = _made(text, words, (start, end), [(cut_start, cut_end)], _kind(words, unit.chunks))
    return [replace(made, doubt=doubt, votes=tuple(unit.votes))]


def _leaves_contrast(words: Sequence[Word], follows: Chunk | None) -> bool:
    """Whether a bare contrast after it would lose what it is set against ("in pink, not blue")."""
    bare = follows is not None and follows.negated and follows.kind in {"grade", "contrast"}
    return bare and follows is not None and follows.end - follows.key == 1


def _parts(text: str, words: Sequence[Word], unit: Unit) -> list[Descriptor]:
    """Each of several joined by a conjunction or commas, so that the others stay as they are."""
    found = []
    parts = unit.parts
    for k, part in enumerate(parts):
        end = part[-1].end
        if k == 0:
            start = cut_start = _first_part(words, part, parts[1][0])
            cut_end = _own(words, parts[1][0])
        else:
            start, cut_start, cut_end = _own(words, part[0]), part[0].start, end
            last = k == len(parts) - 1
            if not last and not part[0].joint and parts[k + 1][0].joint and not parts[k + 1][0].comma:
                cut_start, cut_end = start, _own(words, parts[k + 1][0])
        listed = len(parts) > 2 and k == len(parts) - 1
        made = _made(text, words, (start, end), [(cut_start, cut_end)], _kind(words, part))
        found.append(replace(made, doubt=max(unit.doubt, 1 if listed else 0), votes=tuple(unit.votes)))
    return found


def _first_part(words: Sequence[Word], part: Sequence[Chunk], follows: Chunk) -> int:
    """Where the first of several parts begins: after what it shares with the next."""
    first = part[0]
    if follows.kind in {"noun", "odd"}:
        named = next((c for c in part if c.noun is not None), first)
        return _phrase_start(words, named)
    if first.kind != "relative":
        return _own(words, first)
    k = first.key + 1
    shares = follows.kind == "finite" or any(w.low in _BE for w in words[k : first.end])
    if not shares and words[first.key].low != "whose":
        return first.key  # "that has mustard on it but not forming a word"
    if words[first.key].low == "whose":
        while k < first.end and words[k].kind not in {"aux", "fin"}:
            k += 1
    if follows.kind != "finite":
        while k < first.end and words[k].kind == "aux":
            k += 1
    return k


_BE = frozenset({"is", "are", "was", "were", "isn't", "aren't"})


def _phrase_start(words: Sequence[Word], chunk: Chunk) -> int:
    """Where the noun phrase at the end of a chunk begins."""
    for k in range(chunk.key, chunk.end):
        phrase = noun_phrase(words, k)
        if phrase is not None and phrase.noun == chunk.noun and words[k].kind not in {"ing", "ed", "prep"}:
            return k
    return chunk.key


def _own(words: Sequence[Word], chunk: Chunk) -> int:
    """The first word that is no connector: a negation or an adverb of degree is its own."""
    k = chunk.start
    while k < chunk.key and words[k].kind in {"comma", "cc", "punct"}:
        k += 1
    return k


def _counted(text: str, found: list[Descriptor]) -> list[Descriptor]:
    """An ordinal with what it counts from is one descriptor ("third chair from the left")."""
    ordinal = next((d for d in found if d.kind == "ordinal" and len(d.spans) == 1), None)
    if ordinal is None:
        return found
    after = [d for d in found if d.spans > ordinal.spans and d.cuts]
    from_there = (d for d in after if d.text.lower().startswith("from "))
    counted = next(from_there, None) or next((d for d in after if _beside(text, ordinal, d)), None)
    if counted is None:
        return found
    both = replace(
        ordinal,
        text=f"{ordinal.text} … {counted.text}",
        spans=ordinal.spans + counted.spans,
        cuts=ordinal.cuts + counted.cuts,
        doubt=counted.doubt,
    )
    return [both, *(d for d in found if d is not ordinal and d is not counted)]


def _beside(text: str, ordinal: Descriptor, place: Descriptor) -> bool:
    """Whether a place directly after the noun is what the ordinal counts from ("first guy on the left")."""
    between = text[ordinal.spans[0][1] : place.spans[0][0]].split()
    return (
        place.kind == "location"
        and len(between) <= 2
        and place.text.lower().startswith(("on ", "in ", "at "))
    )


def _compound(text: str, words: Sequence[Word], phrase: Phrase) -> list[Descriptor]:
    """The compound part of the noun, for expressions that have no other descriptor."""
    if phrase.noun - 1 < phrase.first or words[phrase.noun - 1].kind not in {"noun", "adj"}:
        return []
    span = (phrase.first, phrase.noun)
    return [replace(_made(text, words, span, [span], "compound"), doubt=1)]


_KINDS = {
    "relative": "clause",
    "verb": "action",
    "grade": "attribute",
    "contrast": "negated",
    "noun": "attribute",
}


def _kind(words: Sequence[Word], part: Sequence[Chunk]) -> str:
    first = part[0]
    inside = words[first.start : part[-1].end]
    if first.negated:
        return "negated"
    if any(w.low in lx.ORDINALS for w in words[first.key : first.key + 1]):
        return "ordinal"
    if first.kind in {"grade", "relative"} and any(
        w.low in lx.COMPARATIVES or w.tag in {"JJR", "RBR"} for w in inside
    ):
        return "comparison"
    if first.kind == "prep":
        told = {words[c.noun].low for c in part if c.noun is not None}
        if any(w.low in {"a", "an"} for w in inside):
            told -= {"top"}  # a garment
        return "location" if told & (lx.SIDES | lx.PLACE_NOUNS) else _relation(words, first)
    return _KINDS.get(first.kind, "attribute")


def _relation(words: Sequence[Word], first: Chunk) -> str:
    told = None if first.noun is None else words[first.noun].low
    worn = words[first.key].low in {"with", "in", "without", "of"} or told in lx.WORN | lx.BODY
    return "attribute" if worn else "relation"


def _made(text: str, words: Sequence[Word], own: Range, cuts: Sequence[Range], kind: str) -> Descriptor:
    """Word ranges → character ranges of the expression."""
    spans = (_characters(words, own),)
    return Descriptor(
        text[spans[0][0] : spans[0][1]], kind, spans, tuple(_characters(words, c) for c in cuts)
    )


def _characters(words: Sequence[Word], span: Range) -> tuple[int, int]:
    return words[span[0]].start, words[span[1] - 1].end
