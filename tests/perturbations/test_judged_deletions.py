"""Deletions against expressions that a reader judged, and against an independent look at polarity."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perturbations import DescriptorDeletion, Extraction, SpacyRewriter
from perturbations.negation import flip
from perturbations.spacy_rewriter import cut
from refadv_ablate.seeding import generator
from tests.perturbations.judged import lines, scores
from tests.scripted import example


@pytest.mark.parametrize(("style", "good", "recall"), [("ref_adv_s", 0.94, 0.82), ("refcoco", 0.95, 0.9)])
def test_judged_expressions_lose_one_descriptor_as_a_reader_would_take_it(
    style: str, good: float, recall: float
) -> None:
    found = scores(style)
    assert found.good / found.deleted >= good, found.bad
    assert found.hit / found.listed >= recall
    assert found.refused / found.perturbable <= 0.03


@pytest.mark.parametrize("style", ["ref_adv_s", "refcoco"])
def test_a_readers_own_deletions_never_count_as_a_turned_polarity(style: str) -> None:
    told = [
        (r["expression"], text)
        for r in lines(style)
        for d in r["descriptors"]
        if not d.get("alternative")
        for text in d["deletions"][:1]
    ]
    wrong = [pair for pair in told if flip(*pair)]
    assert len(wrong) <= 0.02 * len(told), wrong


@pytest.mark.parametrize(
    ("original", "rewritten", "turned"),
    [
        ("the man not holding a cup near the door", "the man not near the door", True),
        ("the man not holding a cup near the door", "the man near the door", False),
        ("the man without a red hat", "the man without a hat", True),
        ("the man without a hat", "the man without", True),
        ("the pair that does not have 18 or 15 marked", "the pair 18 or 15 marked", True),
        ("the doll that is neither red nor green", "the doll that is neither red", True),
        ("the doll that is neither red nor green", "the doll", False),
        ("the person not wearing a hat in the front row", "the person in the front row", False),
        ("the person not wearing a hat in the front row", "the person not in the front row", True),
        ("the person not wearing a hat and not sitting", "the person not sitting", False),
        ("the man holding nothing", "the man", False),
        ("the sign that doesn't show a dog", "the sign that show a dog", True),
    ],
)
def test_a_negation_goes_with_what_it_denies(original: str, rewritten: str, turned: bool) -> None:
    assert bool(flip(original, rewritten)) == turned


_CUES = frozenset({"not", "no", "never", "without", "neither", "nor"})
_LIGHT = frozenset(
    {"a", "an", "the", "is", "are", "was", "be", "being", "been", "has", "have", "had", "any", "of"}
)
_LIGHT |= {
    "in",
    "on",
    "at",
    "to",
    "with",
    "by",
    "as",
    "it",
    "its",
    "his",
    "her",
    "their",
    "or",
    "which",
    "that",
}
_LIGHT |= _CUES | {"who", "both"}


def _turned(text: str, cuts: list[tuple[int, int]]) -> bool:
    """Whether a negation and the next word of content part ways: by place alone, without a parse."""
    words = [(m.group().lower(), m.start()) for m in re.finditer(r"[\w'’-]+", text)]
    gone = [any(a <= at < b for a, b in cuts) for _, at in words]
    for i, (word, _) in enumerate(words):
        if word in _CUES or word.endswith("n't"):
            next_one = next((j for j in range(i + 1, len(words)) if words[j][0] not in _LIGHT), None)
            if next_one is not None and gone[i] != gone[next_one]:
                return True
    return False


def test_no_deletion_of_a_real_expression_at_any_seed_parts_a_negation_from_what_it_denies(
    shared: Path,
) -> None:
    """Every descriptor that can be chosen at some seed is looked at: those that the operator would keep."""
    rows = (shared / "data" / "ref_adv_s_predictions.tsv").read_text(encoding="utf-8").splitlines()[1:]
    texts = [
        text for line in rows if re.search(r"\b(not|n't|no|without|neither)\b", text := line.split("\t")[-1])
    ]
    found = SpacyRewriter().extract(texts)
    kept = [
        (text, d.cuts, cut(text, d.cuts))
        for text, extraction in zip(texts, found, strict=True)
        if isinstance(extraction, Extraction)
        for d in extraction.descriptors
    ]
    kept = [(text, cuts, short) for text, cuts, short in kept if not flip(text, short)]
    assert len(kept) > 2 * len(texts)
    assert [(t, s) for t, cuts, s in kept if _turned(t, list(cuts))] == []


def test_the_same_descriptor_is_never_told_of_another_noun(shared: Path) -> None:
    text = "the person behind the lady in orange"
    e = example(0).saying(text)
    drawn = {DescriptorDeletion().perturb(e, generator(seed, e.id)).example.expression for seed in range(12)}
    assert drawn == {"the person"}
