"""Sets of tokens in a dependency parse, and what the rules for descriptors ask about them."""

from __future__ import annotations

import re
from typing import Any

from perturbations import lexicon as lx
from perturbations.rewriters import Descriptor

FRAME = "This is "
"""What stands before the expression in the sentence that is parsed."""

Token = Any
"""spacy.tokens.Token; spaCy publishes no types and is loaded only where it is used."""
Tokens = frozenset[int]
"""Indices of tokens in the parsed sentence."""

NEGATORS = frozenset({"not", "n't", "never", "neither", "no", "without", "nor"})
_QUOTATION = re.compile(r"(?<!\w)(?:“.+?”|\".+?\"|['‘].+?['’])(?!\w)")


def subtree(token: Token) -> Tokens:
    """The token with all below it, less clauses that are about someone else (see `strays`)."""
    tokens = {t.i for t in token.subtree}
    for below in token.subtree:
        if below != token and strays(below, token):
            tokens -= {t.i for t in below.subtree}
            tokens -= {below.left_edge.i - 1} if token.doc[below.left_edge.i - 1].text == "," else set()
    first = last = token.i
    while first - 1 in tokens:
        first -= 1
    while last + 1 in tokens and not set_off(token.doc, last + 1):
        last += 1
    return frozenset(range(first, last + 1))


def set_off(doc: Any, i: int) -> bool:
    """Whether the comma at `i` opens a part that stands for itself (", not the one with a hat")."""
    return doc[i].text == "," and (doc[i + 1].lower_ in lx.AFTER_COMMA)


def strays(clause: Token, above: Token) -> bool:
    """Whether a clause hangs on a garment or thing though it tells of a person or of the head.

    "the man in a white top not facing the camera": the parser gives the top a face.
    """
    if clause.head.lower_ in lx.PERSONS | {"one", "ones"} or clause.i < clause.head.i:
        return False
    if clause.dep_ == "prep":
        worn = [c for c in clause.children if c.dep_ == "pobj" and c.lower_ in lx.BODY_NOUNS | lx.WORN]
        means = any(c.dep_ == "poss" for thing in worn for c in thing.children)  # "with its hands"
        denied = any(
            c.dep_ == "neg"
            for a in clause.ancestors
            if above.is_ancestor(a) or a == above
            for c in a.children
        )
        return clause.lower_ in {"with", "without"} and bool(worn) and not means and not denied
    if clause.dep_ not in {"acl", "relcl"}:
        return False
    relatives = {c.lower_ for c in clause.subtree if c.i <= clause.i}
    if relatives & {"who", "whom", "whose"} or about_person(clause):
        return True
    negated = any(c.dep_ == "neg" for c in clause.children)
    graded = any(c.tag_ in {"RBR", "JJR", "JJS"} for c in clause.children)
    return "that" in relatives and (negated or graded or clause.lower_ in lx.STANDING_VERBS)


def about_person(clause: Token) -> bool:
    """Whether the verb of a clause is one that people and animals do."""
    return clause.dep_ in {"acl", "relcl"} and clause.lower_ in lx.PERSON_VERBS


def negated_above(token: Token, head: Token) -> bool:
    """Whether a negation between token and head governs it: it goes only with what is negated."""
    for above in token.ancestors:
        if above == head or above.is_ancestor(head):
            return False
        if token.doc[above.left_edge.i - 1].lower_ in NEGATORS:
            return True
        if above.lower_ in NEGATORS or any(c.dep_ == "neg" or c.lower_ in NEGATORS for c in above.children):
            own = any(c.dep_ == "neg" for c in token.children)
            return not (own and token.dep_ == "conj")
    return False


def shares_negation(first: Token) -> bool:
    """Whether one negation holds for all parts of a coordination ("neither red nor white")."""
    below = [c for c in first.children if c.i < first.i or c.dep_ in {"preconj", "neg", "cc"}]
    if any(c.lower_ in {"neither", "nor", "either", "both"} for c in below):
        return True
    negated = any(c.lower_ in NEGATORS for c in first.children) or first.head.lower_ in NEGATORS
    return negated and not all(any(c.dep_ == "neg" for c in part.children) for part in chain(first))


def chain(first: Token) -> list[Token]:
    """What is joined to `first` by conjunctions and commas, in order."""
    follows = next((c for c in first.children if c.dep_ == "conj"), None)
    return [] if follows is None else [follows, *chain(follows)]


def partitive(noun: Token) -> bool:
    """Whether an "of" after this noun belongs to it ("one of", "side of", "the taller of")."""
    return noun.lower_ in lx.PARTITIVES or noun.tag_ in {"JJR", "JJS"} or noun.pos_ == "NUM"


def stands_alone(verb: Token, less: Token) -> bool:
    """Whether a verb still says something without this phrase."""
    others = [c for c in verb.children if c != less and c.dep_ in {"dobj", "acomp", "attr", "oprd"}]
    return bool(others) or (verb.pos_ == "VERB" and verb.lower_ in lx.ALONE_VERBS)


def inside_with(token: Token, head: Token) -> bool:
    """Whether what follows the noun of a with-phrase carries it ("with zipper open")."""
    for above in token.ancestors:
        if above == head:
            return False
        if above.dep_ == "prep" and above.lower_ in {"with", "without"}:
            return True
    return False


def leftward(tokens: Tokens, doc: Any) -> Tokens:
    """With the words of degree and negation that stand just before."""
    grown = set(tokens)
    while (i := min(grown) - 1) > 1:
        before = doc[i]
        joined = before.text == "-" or before.lower_ in lx.DEGREES | {"not", "never", "n't"}
        adverb = before.pos_ == "ADV" and before.lower_.endswith("ly")
        bare = before.pos_ == "ADP" and not any(c.dep_ in {"pobj", "pcomp"} for c in before.children)
        if not (joined or adverb or (bare and doc[i + 1].pos_ == "ADP")):
            break
        grown.add(i)
    return frozenset(grown)


def with_commas(tokens: Tokens, doc: Any) -> Tokens:
    """With the comma that set the phrase off, before it; and a conjunction that would be the end."""
    before = min(tokens) - 1
    if before > 1 and doc[before].dep_ == "cc" and doc[max(tokens) + 1].is_punct:
        tokens, before = tokens | {before}, before - 1
    return tokens | {before} if before > 1 and doc[before].text in {",", ";"} else tokens


def with_inner_comma(tokens: Tokens, doc: Any) -> Tokens:
    """With the comma after an attribute in a row of them ("dark, fitted jeans"), or before the last."""
    before, after = min(tokens) - 1, max(tokens) + 1
    if after < len(doc) and doc[after].text == ",":
        return tokens | {after}
    last = before > 1 and doc[before].text == "," and doc[after].pos_ in {"NOUN", "PROPN"}
    return tokens | {before} if last else tokens


def negation(tokens: Tokens, doc: Any) -> Tokens:
    """With a negation just before it."""
    before = min(tokens, default=0) - 1
    return tokens | {before} if before > 1 and doc[before].lower_ in {"not", "never", "n't"} else tokens


def with_conjunction(tokens: Tokens, doc: Any) -> Tokens:
    """With the conjunction just before."""
    before = min(tokens) - 1
    return tokens | {before} if before > 1 and doc[before].dep_ == "cc" else tokens


def whole_words(tokens: Tokens, doc: Any) -> Tokens:
    """Grown to whole words: what hyphens and the like join is not torn apart."""
    grown = set(tokens)
    for i in sorted(tokens):
        j = i
        while j > 2 and not doc[j - 1].whitespace_ and _glued(doc[j - 1], doc[j]):
            j -= 1
            grown.add(j)
        j = i
        while j + 1 < len(doc) - 1 and not doc[j].whitespace_ and _glued(doc[j], doc[j + 1]):
            j += 1
            grown.add(j)
    return frozenset(grown)


def _glued(left: Token, right: Token) -> bool:
    stops = ",;:.()“”\"'"
    return left.text not in stops and right.text not in stops and not right.text.startswith(("'", "’"))


def splits_quotes(tokens: Tokens, doc: Any) -> bool:
    """Whether the tokens hold a part of a quotation and not all of it."""
    for match in _QUOTATION.finditer(doc.text, len(FRAME)):
        inside = {t.i for t in doc if match.start() <= t.idx < match.end()}
        if 0 < len(inside & tokens) < len(inside):
            return True
    return False


def descriptor_of(text: str, doc: Any, tokens: Tokens, kind: str) -> Descriptor:
    """Token indices → character ranges of the expression."""
    spans: list[tuple[int, int]] = []
    last = -2
    for i in sorted(tokens):
        start, end = doc[i].idx - len(FRAME), doc[i].idx + len(doc[i]) - len(FRAME)
        if i == last + 1 and spans:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        last = i
    words = " … ".join(text[a:b] for a, b in spans)
    return Descriptor(words.strip(" ,;"), kind, tuple(spans))
