"""What an expression is about, in the parse of "This is <expression>."."""

from __future__ import annotations

from perturbations import lexicon as lx
from perturbations.spans import Token


def head_of(body: list[Token]) -> Token | None:
    """What the expression is about: what "is" links to, or the first noun that ends a run of words."""
    if not body:
        return None
    links = {"attr", "acomp", "ccomp"}
    queue = [t for t in body[0].sent.root.children if t in body and t.dep_ in links]
    queue.sort(key=lambda t: (t.dep_ != "attr", t.i))
    for token in queue:
        head = _clause_head(token) if token.dep_ == "ccomp" else _linked_head(token)
        if head is not None:
            return _placed(head)
    for token in queue:  # a noun that the tagger takes for an adjective
        known = token.pos_ != "ADJ" or not any(c.dep_ == "det" for c in token.lefts)
        if not (known or _before_noun(token) or any(c.dep_ == "conj" for c in token.children)):
            return token
    first = next((t for t in body if t.pos_ in {"NOUN", "PROPN"} and not _before_noun(t)), None)
    return first or next((t for t in body if t.pos_ == "NUM" or t.lower_ in {"one", "ones"}), None)


def _clause_head(verb: Token) -> Token | None:
    """The subject, where the expression was read as a clause ("the wheel mounted on …")."""
    if verb.lower_ in lx.NOUNS_TAKEN_FOR_VERBS:
        return verb
    return next((c for c in verb.lefts if c.dep_ in {"nsubj", "nsubjpass"} and c.pos_ != "PRON"), None)


def _linked_head(token: Token) -> Token | None:
    """The noun itself; a superlative alone, or the noun before it ("the window farthest from …")."""
    if token.tag_ == "JJS":
        counted = next((c for c in token.lefts if c.pos_ == "NOUN"), None)
        if counted is not None:
            return counted
    noun = token.pos_ in {"NOUN", "PROPN", "NUM", "PRON"} or token.lower_ in lx.PERSONS
    return token if noun or (token.dep_ == "attr" and token.tag_ in {"JJR", "JJS"}) else None


def _placed(head: Token) -> Token:
    """The thing, where the parser took the word for its place ("rightmost square", "square left of")."""
    before, after = head.nbor(-1), head.nbor(1)
    if head.lower_ in {"left", "right"} and after.lower_ == "of" and before.pos_ in {"NOUN", "PROPN", "ADJ"}:
        return before
    if head.lower_ in lx.PLACE_ADJECTIVES:
        run = after
        while run.pos_ in {"ADJ", "NOUN", "PROPN"} and run.nbor(1).pos_ in {"ADJ", "NOUN", "PROPN"}:
            run = run.nbor(1)
        if run.pos_ in {"NOUN", "PROPN"}:
            return run
    return head


def _before_noun(token: Token) -> bool:
    """Whether the token stands inside a run of words that ends in another noun."""
    following = token.nbor(1) if token.i + 1 < len(token.doc) else None
    return following is not None and (following.pos_ in {"NOUN", "PROPN"} or following.text == "-")
