"""What a deletion must stand up to, whoever made it: grammar, words, polarity, and a second parse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from perturbations import grammar
from perturbations import lexicon as lx
from perturbations.descriptors import describe
from perturbations.negation import flip
from perturbations.parsing import parsed
from perturbations.rewriters import Descriptor, Extraction, Job
from perturbations.words import Word

CHECKS = ("grammar", "words", "polarity", "parse")
"""In this order; the first that fails is the reason of a refusal."""
_LINKS = grammar.RELATIVES | grammar.CONJUNCTIONS | grammar.COPULAS | grammar.ARTICLES


@dataclass(frozen=True, slots=True)
class Finding:
    """The check that a rewrite failed and why; both "" where it stood up to all."""

    check: str = ""
    fault: str = ""


def verify(jobs: Sequence[Job], rewrites: Sequence[str], pipeline: str | None) -> list[Finding]:
    """For each rewrite what is wrong with it. pipeline: of spaCy, for reading the result again."""
    found = [text_finding(job, text) for job, text in zip(jobs, rewrites, strict=True)]
    passed = [i for i, finding in enumerate(found) if not finding.fault]
    texts = [t for i in passed for t in (jobs[i].expression, rewrites[i])]
    read = parsed(texts, pipeline)
    for k, i in enumerate(passed):
        old, new = (
            describe(t, w) for t, w in zip(texts[2 * k : 2 * k + 2], read[2 * k : 2 * k + 2], strict=True)
        )
        fault = _moved(jobs[i], old, new) or _without_antecedent(jobs[i], read[2 * k])
        found[i] = Finding("parse", fault) if fault else Finding()
    return found


def _without_antecedent(job: Job, words: Sequence[Word]) -> str:
    """Whether "it" stays of a person while the noun just before it, which it stands for, is gone."""
    if job.extraction.head.casefold() not in _PEOPLE:
        return ""
    cuts = job.descriptor.cuts
    gone = [any(a <= w.start < b for a, b in cuts) for w in words]
    for word in words:
        if word.low == "it" and not gone[word.index]:
            named = [w for w in words[: word.index] if w.kind == "noun" and w.low not in lx.BODY]
            if named and gone[named[-1].index]:
                return f"'it' is still there and {named[-1].text!r}, which it stands for, is gone"
    return ""


_PEOPLE = frozenset(
    {"person", "man", "woman", "boy", "girl", "child", "kid", "baby", "lady", "guy", "player"}
)


def text_finding(job: Job, text: str) -> Finding:
    """The checks that need no parse."""
    if fault := grammar.fault(job.expression, text, job.extraction.head):
        return Finding("grammar", fault)
    if fault := wrong_words(job, text):
        return Finding("words", fault)
    return Finding("polarity", fault) if (fault := flip(job.expression, text)) else Finding()


MOST_NEW = 4
"""Words that a change may add; more tell of something else."""


def verify_change(jobs: Sequence[Job], texts: Sequence[str], pipeline: str | None) -> list[Finding]:
    """For each changed expression what is wrong with it; see `change_finding`, and it is read again."""
    found = [change_finding(job, text) for job, text in zip(jobs, texts, strict=True)]
    passed = [i for i, finding in enumerate(found) if not finding.fault]
    both = [t for i in passed for t in (jobs[i].expression, texts[i])]
    read = parsed(both, pipeline)
    for k, i in enumerate(passed):
        old, new = (
            describe(t, w) for t, w in zip(both[2 * k : 2 * k + 2], read[2 * k : 2 * k + 2], strict=True)
        )
        fault = _moved(jobs[i], old, new)
        if not fault and len(new.descriptors) < len(old.descriptors):
            fault = "read again, it has fewer descriptors than before"
        found[i] = Finding("parse", fault) if fault else Finding()
    return found


def change_finding(job: Job, text: str) -> Finding:
    """The checks of a change that need no parse: the descriptor's words and no others differ, something
    of it does, and a negation stays where the descriptor has none."""
    old, new = Counter(grammar.words(job.expression)), Counter(grammar.words(text))
    mine = Counter(grammar.words(job.descriptor.text))
    gone, added = old - new, new - old
    lost = [w for w in gone - mine if w not in grammar.ARTICLES]
    if not text.strip() or not added - Counter(grammar.ARTICLES):
        return Finding("words", "it says nothing in the place of the descriptor")
    if lost:
        return Finding("words", f"it also drops {lost[0]!r}, which is not part of the descriptor")
    if not [w for w in gone if w not in grammar.FUNCTION_WORDS - grammar.PREPOSITIONS]:
        return Finding("words", f"all of the descriptor {job.descriptor.text!r} is still there")
    if added.total() > max(MOST_NEW, mine.total() + 1):
        return Finding("words", f"it adds {added.total()} words")
    negations = [sum(words[w] for w in grammar.NEGATIONS) for words in (old, new)]
    if negations[0] != negations[1] and not grammar.NEGATIONS & set(mine):
        return Finding("polarity", "it sets or drops a negation that isn't part of the descriptor")
    return Finding()


def wrong_words(job: Job, text: str) -> str:
    """Why something other than exactly one descriptor was deleted; "" if it was."""
    old, new = Counter(grammar.words(job.expression)), Counter(grammar.words(text))
    added = new - old - Counter({"a": 1, "an": 1, "the": 1})
    if added:
        return f"it adds {next(iter(added))!r}, which is not in the expression"
    gone, meant = old - new, Counter(grammar.words(job.descriptor.text))
    still = [w for w in meant if w not in grammar.FUNCTION_WORDS and w not in gone]
    if still and old[still[0]] >= meant[still[0]]:
        return f"{still[0]!r} of the descriptor {job.descriptor.text!r} is still there"
    lost = [w for w in gone - meant if w not in grammar.FUNCTION_WORDS]
    return f"it also drops {lost[0]!r}, which is not part of the descriptor" if lost else ""


def _moved(job: Job, old: Extraction, new: Extraction) -> str:
    """Whether the rewrite, read again, has another head or no longer tells something of the referent
    that the expression told, "in orange" of another person, say."""
    if old.head.casefold() != new.head.casefold():
        return f"read again, it is about {new.head or 'nothing'!r} and no longer about {old.head!r}"
    told = [_content(d) for d in new.descriptors]
    for other in old.descriptors:
        if _touched(job, other):
            continue
        kept = next((t for t in told if _same(t, _content(other))), None)
        if kept is None:
            return f"read again, {other.text!r} no longer tells of the {old.head or 'referent'} alone"
        told.remove(kept)
    if len(new.descriptors) > len(old.descriptors):
        return "read again, it has more descriptors than before"
    return ""


def _same(now: tuple[str, ...], before: tuple[str, ...]) -> bool:
    """Whether a descriptor is another one as it was, or that with the word which it shared with the deleted
    one ("a white hull" → "with a white hull")."""
    return now == before or (now[-len(before) :] == before and len(now) - len(before) == 1)


def _touched(job: Job, other: Descriptor) -> bool:
    """Whether the deletion took words of this descriptor away, or it was doubtful from the start."""
    mine = set(grammar.words(job.descriptor.text))
    overlap = any(a < d and c < b for a, b in other.spans for c, d in job.descriptor.spans)
    if job.descriptor.spans:
        return overlap
    return set(grammar.words(other.text)) <= mine


def _content(descriptor: Descriptor) -> tuple[str, ...]:
    """Its words without what links it to the rest."""
    read = grammar.words(descriptor.text)
    while read and read[0] in _LINKS:
        read = read[1:]
    return tuple(w for w in read if w not in grammar.ARTICLES)
