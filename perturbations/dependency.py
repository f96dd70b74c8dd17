"""From a dependency parse to the descriptors of an expression.

The parse is of "This is <expression>.": a small English parser reads a noun phrase far better as the
end of a sentence than alone. A descriptor is a set of tokens that can go together, found by the
relation of its root to what it modifies; relations that a verb, a preposition or a noun can't do
without are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perturbations import lexicon as lx
from perturbations.heads import head_of
from perturbations.rewriters import Extraction
from perturbations.spans import (
    FRAME,
    NEGATORS,
    Token,
    Tokens,
    about_person,
    chain,
    descriptor_of,
    inside_with,
    leftward,
    negated_above,
    negation,
    partitive,
    set_off,
    shares_negation,
    splits_quotes,
    stands_alone,
    strays,
    subtree,
    whole_words,
    with_commas,
    with_conjunction,
    with_inner_comma,
)

_CLAUSES = frozenset({"acl", "relcl", "advcl", "ccomp", "xcomp"})
_PREDICATES = frozenset({"ADP", "ADJ", "ADV", "PART", "AUX"})


def describe(text: str, doc: Any) -> Extraction:
    """Head and descriptors of `text`, whose framed parse is `doc`, in reading order."""
    body = [t for t in doc if t.idx >= len(FRAME) and t.i < len(doc) - 1]
    head = head_of(body)
    if head is None:
        return Extraction("", reason="no noun that the expression is about")
    kept = whole_words(frozenset({head.i}), doc)
    found = _found(body, head, kept, doc)
    if not found:
        found = {c: "compound" for c in _compounds(head, doc) if not c & kept}
    if not found and (rest := frozenset(t.i for t in body if t.i > max(kept))):
        found = {rest: "rest"}
    descriptors = [descriptor_of(text, doc, tokens, kind) for tokens, kind in found.items()]
    descriptors.sort(key=lambda d: d.spans)
    name = "".join(doc[i].text for i in sorted(kept))
    return Extraction(name, tuple(descriptors), "" if descriptors else "no descriptor beside the head noun")


def _found(body: list[Token], head: Token, kept: Tokens, doc: Any) -> dict[Tokens, str]:
    """Sets of tokens that can go, each with its kind: whole words, whole quotations, never the head."""
    found: dict[Tokens, str] = {}
    for token in body:
        for kind, tokens in _candidates(token, head, body):
            grown = negation(whole_words(tokens, doc), doc)
            torn = token.dep_ != "conj" and token.head.i in grown - tokens
            torn = torn or (bool(grown) and _cut_comparison(doc, max(grown)))
            if grown and not torn and not grown & kept and not splits_quotes(grown, doc):
                found.setdefault(grown, kind)
    return found


def _cut_comparison(doc: Any, last: int) -> bool:
    """Whether what is compared with would be left behind ("closest" of "closest to the door")."""
    graded = doc[last].tag_ in {"JJR", "JJS", "RBR", "RBS"}
    return graded and doc[last + 1].lower_ in {"to", "than", "from"}


def _candidates(token: Token, head: Token, body: list[Token]) -> Iterator[tuple[str, Tokens]]:
    """What can be deleted with `token` as its root."""
    if token == head or (negated_above(token, head) and not strays(token, head)):
        return
    if set_off(token.doc, token.i):
        end = next((t.i for t in body if t.i > token.i and (set_off(t.doc, t.i))), len(token.doc) - 1)
        yield "contrast", frozenset(range(token.i, end))
        return
    graded = token.tag_ in {"JJR", "RBR"} and token.i > head.i
    if token.is_ancestor(head) and (graded or token.lower_ in lx.PLACE_ADJECTIVES):
        beyond = {t.i for t in token.subtree if t.i >= token.i} if token.i > head.i else {token.i}
        yield "attribute", frozenset(beyond)
        return
    if token.is_ancestor(head):
        right = frozenset(t.i for t in token.subtree if t.i > head.right_edge.i and t in body)
        # not where a part of the body carries the clause ("with his back turned")
        if right and token.dep_ in _CLAUSES and token.doc[min(right) - 1].lower_ not in lx.BODY_NOUNS:
            yield "clause", with_commas(right, token.doc)
        return
    rule = _RULES.get(token.dep_)
    if rule is not None:
        yield from rule(token, head)


# ── rules, one for each kind of relation ────────────────────────────────────────────────────────


def _attribute(token: Token, head: Token) -> Iterator[tuple[str, Tokens]]:
    """Adjectives, participles and ordinals before a noun; comparatives and the like after it."""
    noun = _noun_of(token, head)
    if token.i > noun.i:
        if not inside_with(token, head):
            yield "attribute", with_commas(subtree(token), token.doc)
        return
    if token.lower_ in lx.DEGREES | lx.NEVER_ALONE or (token.lower_ == "little" and noun != head):
        return
    if token.nbor(1).lower_ == "than":
        return
    if noun.pos_ not in {"NOUN", "PROPN", "NUM", "PRON"} and noun != head:
        return
    if token.head != noun and not _beside(token, token.head):
        return  # grades the adjective after it
    garment = noun.lower_ == "top" and token.lower_ not in lx.PLACE_ADJECTIVES
    if noun != head and (noun.lower_ in lx.PLACE_NOUNS | lx.BODY_NOUNS) and not garment:
        return
    others = {t.i for t in token.subtree if t.dep_ == "det"}
    others |= {t.i for c in token.children if _beside(c, token) for t in c.subtree}
    tokens = leftward(subtree(token) - others, token.doc)
    counted = _counted_from(noun) if token.lower_ in lx.ORDINALS else None
    if counted is not None:
        yield "ordinal", tokens | subtree(counted)
        return
    yield "attribute", with_conjunction(with_inner_comma(tokens, token.doc), token.doc)


def _adverb(token: Token, head: Token) -> Iterator[tuple[str, Tokens]]:
    """What follows the head on its own ("lower than …", "left of …"), place words before a noun, and
    adverbs of a noun ("a spoon inside")."""
    if token.head.dep_ == "ROOT" and token.i > head.i:
        graded = token.tag_ in {"JJR", "RBR", "JJS", "RBS"} or token.lower_ in lx.PLACE_ADJECTIVES
        if graded and any(c.dep_ == "prep" for c in token.children):
            yield "attribute", with_commas(subtree(token), token.doc)
        elif token.dep_ == "attr":
            yield from _contrast(token, head)
        return
    of_noun = token.head == head or (token.head.pos_ == "NOUN" and token.i > token.head.i)
    place = token.lower_ in lx.PLACE_ADJECTIVES and token.i < token.head.i
    if place or (token.dep_ == "advmod" and of_noun):
        yield from _attribute(token, head)


def _noun_of(token: Token, head: Token) -> Token:
    """The noun at the end of the run of words that the token stands in."""
    noun = token.head
    while noun != head and noun.i > token.i and noun.dep_ in {"amod", "compound", "nmod", "npadvmod"}:
        noun = noun.head
    return head if noun.is_ancestor(head) and token.i < head.i else noun


def _beside(token: Token, adjective: Token) -> bool:
    """Whether two adjectives stand side by side though one hangs on the other ("lower smaller wheel")."""
    if token.i > adjective.i or adjective.dep_ not in {"amod", "compound", "nmod", "npadvmod"}:
        return False
    if token.lower_ in lx.PLACE_ADJECTIVES | lx.ORDINALS:
        return bool(token.nbor(1).text != "-")
    graded = token.lower_ in lx.DEGREES | lx.SHADES or token.nbor(1).text == "-"
    return not graded and token.pos_ in {"ADJ", "NOUN"} and token.dep_ in {"amod", "advmod", "npadvmod"}


def _counted_from(noun: Token) -> Token | None:
    """The phrase that an ordinal counts from ("third chair from the left")."""
    return next((c for c in noun.rights if c.dep_ == "prep" and c.lower_ == "from"), None)


def _compound(token: Token, head: Token) -> Iterator[tuple[str, Tokens]]:
    """Compound parts that describe ("foreground", "back-row", "metal"), not those that name the kind."""
    hyphened = token.i > 0 and (token.nbor(-1).text == "-" or token.nbor(1).text == "-")
    if token.lower_ in lx.ATTRIBUTIVE_NOUNS or hyphened:
        yield from _attribute(token, head)


def _phrase(token: Token, head: Token) -> Iterator[tuple[str, Tokens]]:
    """Prepositional phrases."""
    if not any(c.dep_ in {"pobj", "pcomp", "prep"} for c in token.children):
        return
    above = token.head
    if above.pos_ in {"ADP", "ADV", "SCONJ"} or (above.pos_ == "ADJ" and above != head):
        return
    if token.lower_ in {"as", "than"} or any(c.lower_ in {"it", "them"} for c in token.children):
        return
    if _counted_from(above) == token and any(t.lower_ in lx.ORDINALS for t in above.subtree if t.i < above.i):
        return  # goes with the ordinal
    if token.lower_ == "of" and (above != head or partitive(above)):
        return
    if not strays(token, above):
        sentence = above.dep_ == "ROOT"
        if above.pos_ in {"VERB", "AUX"} and not sentence and not stands_alone(above, token):
            return
        if inside_with(token, head):
            return
    if any(c.dep_ == "conj" for c in token.children) and not shares_negation(token):
        yield from _coordinated(token)
    else:
        tokens = _with_predicate(leftward(subtree(token), token.doc), token)
        yield from _before_conjunction("phrase", tokens, token.doc)
    yield from _objects(token)


def _with_predicate(tokens: Tokens, token: Token) -> Tokens:
    """With what a with-phrase says of its object ("with arms down by their sides")."""
    thing = next((c for c in token.children if c.dep_ == "pobj"), None)
    if token.lower_ != "with" or thing is None:
        return tokens
    while (follows := token.doc[max(tokens) + 1]).i < len(token.doc) - 1:
        of_body = thing.lower_ in lx.BODY_NOUNS and follows.pos_ in {"ADV", "ADJ", "VERB"}
        of_body = (
            of_body
            or thing.pos_ == "PRON"
            or (thing.lower_ in lx.BODY_NOUNS and follows.dep_ in {"prt", "advmod"})
        )
        state = follows.tag_ == "VBN" and follows.lower_ not in lx.PERSON_VERBS | lx.ALONE_VERBS
        state = state or follows.lower_ in {"open", "closed", "visible"}
        if follows.dep_ in {"relcl", "cc"} or about_person(follows) or not (of_body or state):
            break
        tokens = tokens | {t.i for t in follows.subtree if t.i >= follows.i and t.text not in {".", ","}}
    return tokens


def _objects(token: Token) -> Iterator[tuple[str, Tokens]]:
    """One of the things that a preposition or verb names together ("a red top and a white hull")."""
    if token.lower_ in lx.BETWEEN:
        return
    for thing in (c for c in token.children if c.dep_ in {"pobj", "dobj"}):
        yield from _coordinated(thing)


def _clause(token: Token, head: Token) -> Iterator[tuple[str, Tokens]]:
    """Relative and participial clauses, whole, and each of the clauses joined by a conjunction."""
    if inside_with(token, head) and not strays(token, head):
        return
    if token.dep_ in {"xcomp", "ccomp"} and token.head.dep_ != "ROOT":
        return
    conjuncts = [c for c in token.children if c.dep_ == "conj"]
    tokens = leftward(_to_second_phrase(token, subtree(token)), token.doc)
    if not conjuncts or shares_negation(token):
        yield from _before_conjunction("clause", tokens, token.doc)
    else:
        yield from _coordinated(token)
    yield from _objects(token)


def _to_second_phrase(verb: Token, tokens: Tokens) -> Tokens:
    """Up to a second phrase of place, a descriptor of its own ("standing by the car on the left")."""
    places = [c for c in verb.rights if c.dep_ == "prep" and c.lower_ in lx.PLACING]
    alone = verb.lower_ in lx.ALONE_VERBS and not any(c.dep_ in {"dobj", "cc"} for c in verb.children)
    if len(places) < 2 or not alone:
        return tokens
    return frozenset(i for i in tokens if i < places[1].left_edge.i)


def _before_conjunction(kind: str, tokens: Tokens, doc: Any) -> Iterator[tuple[str, Tokens]]:
    """The tokens; with a conjunction after them that goes on in kind ("on the bike but not riding")."""
    after = max(tokens) + 1
    comma = doc[after].text == "," and doc[after + 1].dep_ == "cc"
    joint = after + 1 if comma else after
    if doc[joint].dep_ != "cc":
        bare_verb = doc[after].text == "," and doc[after + 1].tag_ in {"VBZ", "VBP", "VBD"}
        if not bare_verb:  # its subject would go
            yield kind, with_commas(tokens, doc)
        return
    follows = doc[joint + 2] if doc[joint + 1].lower_ == "not" else doc[joint + 1]
    if _goes_on(follows) or (comma and follows.tag_ in {"WP", "WP$", "WDT"}):
        yield kind, tokens | set(range(after, joint + 1))


def _goes_on(token: Token) -> bool:
    """Whether a phrase or clause begins here, rather than a noun that the tagger takes for a verb."""
    return token.pos_ in _PREDICATES or token.tag_ in {"VBG", "VBN", "VBZ"}


def _joined(token: Token, head: Token) -> Iterator[tuple[str, Tokens]]:
    """What a conjunction adds to the head or its clause, where the parser joined it there."""
    follows = token.nbor(1)
    if (token.head == head or token.head.is_ancestor(head)) and _goes_on(follows):
        part = next((c for c in token.head.children if c.dep_ == "conj" and c.i > token.i), follows)
        yield "conjunct", with_commas(frozenset(range(token.i, max(subtree(part)) + 1)), token.doc)


def _coordinated(first: Token) -> Iterator[tuple[str, Tokens]]:
    """Each part of "A, B and C", with the conjunction or comma that joins it."""
    parts = [first, *chain(first)]
    if len(parts) < 2 or shares_negation(first):
        return
    doc = first.doc
    for k, part in enumerate(parts):
        start = part.left_edge.i
        end = parts[k + 1].left_edge.i if k + 1 < len(parts) else max(subtree(part)) + 1
        tokens = set(range(start, end))
        if k == 0:
            if part.dep_ == "relcl":  # the relative pronoun stays for the clause that follows
                follows = doc[parts[1].left_edge.i]
                if follows.tag_ not in {"WDT", "WP", "WP$"}:
                    tokens -= {t.i for t in part.lefts if t.tag_ in {"WDT", "WP"}}
        else:
            joint = start - 1
            while joint > parts[k - 1].i and (doc[joint].dep_ in {"cc", "punct"} and doc[joint].text != "-"):
                tokens.add(joint)
                joint -= 1
            while end - 1 in tokens and k + 1 < len(parts) and doc[end - 1].dep_ in {"cc", "punct"}:
                tokens.discard(end - 1)
                end -= 1
        yield "conjunct", frozenset(tokens)


def _contrast(token: Token, head: Token) -> Iterator[tuple[str, Tokens]]:
    """ "…, not the one with a hat": a second noun set against the head."""
    tokens = leftward(subtree(token), token.doc)
    negated = any(token.doc[i].lower_ in NEGATORS for i in tokens)
    if token.dep_ == "appos" or (negated and token.head == head):
        yield "contrast", with_commas(with_conjunction(tokens, token.doc), token.doc)


def _possessor(token: Token, head: Token) -> Iterator[tuple[str, Tokens]]:
    """ "the man's hand" → "the hand"; a pronoun says too little to be a descriptor."""
    own = token.head != head and token.head.lower_ in lx.BODY_NOUNS | lx.PLACE_NOUNS
    if token.pos_ == "PRON" or token.tag_ == "WP$" or own:
        return
    yield "possessor", subtree(token) - {c.i for c in token.lefts if c.dep_ == "det"}


_RULES = {
    "amod": _attribute,
    "advmod": _adverb,
    "npadvmod": _adverb,
    "acomp": _adverb,
    "nmod": _compound,
    "compound": _compound,
    "prep": _phrase,
    "agent": _phrase,
    "acl": _clause,
    "relcl": _clause,
    "advcl": _clause,
    "xcomp": _clause,
    "appos": _contrast,
    "conj": _contrast,
    "attr": _adverb,
    "cc": _joined,
    "poss": _possessor,
}


def _compounds(head: Token, doc: Any) -> list[Tokens]:
    """The compound parts of the head, for expressions that have no other descriptor."""
    return [whole_words(subtree(c), doc) for c in head.lefts if c.dep_ in {"compound", "nmod"}]
