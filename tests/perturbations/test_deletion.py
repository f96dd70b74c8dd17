"""Descriptor deletion: what may go, what never goes, and what is refused."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import chisquare

from perturbations import Descriptor, DescriptorDeletion, Extraction, SpacyRewriter, Unanswered
from perturbations.grammar import fault, tidy, vowel_sound
from perturbations.rewriters import Job, Rewrite
from perturbations.spacy_rewriter import cut
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import generator
from tests.scripted import example

CASES: list[tuple[str, str, set[str]]] = [
    # expression, head, descriptors with what the text is without each
    (
        "the young elephant near the water not covered in more dust",
        "elephant",
        {
            "the elephant near the water not covered in more dust",
            "the young elephant not covered in more dust",
            "the young elephant near the water",
        },
    ),
    (
        "person with zipper open not holding anything",
        "person",
        {"person not holding anything", "person with zipper open"},
    ),
    ("the man in a red hat", "man", {"the man"}),
    ("an orange cat", "cat", {"a cat"}),
    ("a big orange cat", "cat", {"an orange cat", "a big cat"}),
    ("the left zebra", "zebra", {"the zebra"}),
    ("the second cup from the right", "cup", {"the cup"}),
    (
        "the large square left of the green circle",
        "square",
        {"the square left of the green circle", "the large square"},
    ),
    ("a red drum that is not striped", "drum", {"a drum that is not striped", "a red drum"}),
    ("the person neither wearing a mask nor standing up", "person", {"the person"}),
    ("the dog not wearing a red collar", "dog", {"the dog"}),  # no "not wearing a collar": it says more
    (
        "a boat with a red top and a white hull",
        "boat",
        {
            "a boat with a white hull",
            "a boat with a red top",
        },
    ),
    (
        "the person on the motorcycle but not holding the handlebar",
        "person",
        {"the person not holding the handlebar", "the person on the motorcycle"},
    ),
    ("the kite located above a boat", "kite", {"the kite"}),  # never "the kite located"
    (
        "the less-smiling woman in the front row",
        "woman",
        {"the woman in the front row", "the less-smiling woman"},
    ),
    ("the computer screen", "screen", {"the screen"}),  # nothing else to delete
    ("The tall, upright candy", "candy", {"The upright candy", "The tall candy"}),
    ("the poster, not the one with a hat", "poster", {"the poster"}),
    ("the man's dog", "dog", {"the dog"}),
    (
        "the man in a white top not facing the camera",
        "man",
        {"the man not facing the camera", "the man in a white top"},
    ),
    (  # an attribute never moves to another noun: "in orange" tells of the lady
        "the person behind the lady in orange",
        "person",
        {"the person"},
    ),
    (
        "the stack of chips that is neither red nor green",
        "stack",
        {"the stack of chips"},
    ),
    (
        "the helmet that is not black, does not have goggles, and whose brand is not Bell",
        "helmet",
        {
            "the helmet that does not have goggles, and whose brand is not Bell",
            "the helmet that is not black, and whose brand is not Bell",
            "the helmet that is not black, does not have goggles",
        },
    ),
    ("guy blk shirt far lft", "guy", {"guy far lft", "guy blk shirt"}),
    ("guy w/ beard", "guy", {"guy"}),
    ("not the man, the woman in red", "woman", {"the woman in red", "not the man, the woman"}),
    ("front row second from right", "", {"front row", "second from right"}),
    ("kid closest to us", "kid", {"kid"}),
    ("lady in pink, not blue", "lady", {"lady, not blue", "lady in pink"}),
]


@pytest.mark.parametrize(("expression", "head", "expected"), CASES, ids=[c[0] for c in CASES])
def test_each_descriptor_goes_alone_and_the_rest_still_reads(
    expression: str, head: str, expected: set[str]
) -> None:
    found = SpacyRewriter().extract([expression])[0]
    assert isinstance(found, Extraction)
    assert found.head == head
    assert {cut(expression, d.cuts) for d in found.descriptors} == expected
    assert all(not fault(expression, text, head) for text in expected)


def test_the_trace_keeps_descriptors_choice_and_rewrite() -> None:
    e = example(0).saying("the tall man in a red hat, not holding a cup")
    p = DescriptorDeletion().perturb(e, generator(0, e.id))
    assert p.status == "changed"
    assert p.trace["descriptors"] == ["tall", "in a red hat", "not holding a cup"]
    assert p.trace["kinds"] == ["attribute", "attribute", "negated"]
    spans = [[e.expression[a:b] for a, b in s] for s in p.trace["spans"]]
    assert spans == [["tall"], ["in a red hat"], ["not holding a cup"]]
    assert p.trace["doubts"] == [0, 0, 0]
    assert p.trace["passed"] == ["grammar", "words", "polarity", "parse"]
    assert p.trace["choice"] == p.trace["descriptors"][p.trace["chosen"]]
    assert p.trace["rewrite"] == p.example.expression
    assert p.trace["attempts"][-1]["refused"] == ""


def test_every_descriptor_is_equally_likely() -> None:
    e = example(0).saying("the small red cup left of the jar")
    draws = [DescriptorDeletion().perturb(e, generator(i, e.id)).trace["choice"] for i in range(60)]
    assert chisquare(list(Counter(draws).values())).pvalue > 1e-3
    assert set(draws) == {"small", "red", "left of the jar"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [("zebra", "no descriptor"), ("the zebra", "no descriptor"), ("", "empty"), ("x" * 20_000, "longer")],
)
def test_what_has_no_descriptor_is_not_perturbable(text: str, reason: str) -> None:
    p = DescriptorDeletion().perturb(example(0).saying(text), random.Random(0))
    assert p.status == "not_perturbable"
    assert reason in p.reason
    assert p.example.expression == text


# ── a rewriter that misbehaves ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Canned:
    """Gives these rewrites, by descriptor."""

    rewrites: Mapping[str, str]
    head: str = "cup"
    down_at: frozenset[str] = frozenset()
    asked: list[Any] = field(default_factory=list)
    batch: int = 2

    def extract(self, expressions: Sequence[str]) -> Sequence[Extraction | Unanswered]:
        found = Extraction(self.head, tuple(Descriptor(d) for d in self.rewrites))
        return [Unanswered("the server is down") if text in self.down_at else found for text in expressions]

    def rewrite(self, jobs: Sequence[Job]) -> Sequence[Rewrite | Unanswered]:
        self.asked.extend(jobs)
        return [Rewrite(self.rewrites[job.descriptor.text]) for job in jobs]

    def identity(self) -> Mapping[str, Any]:
        return {"rewriter": "canned"}


@pytest.mark.parametrize(
    ("rewrite", "why"),
    [
        ("the red cup on the table", "unchanged"),
        ("", "nothing is left"),
        ("the", "no content word"),
        ("the red", "head noun 'cup' is gone"),
        ("the red cup on the", "'the' is left dangling at the end"),
        ("the red cup on", "'on' is left dangling at the end"),
        ("the red cup and", "'and' is left dangling at the end"),
        ("the red cup that", "'that' is left dangling at the end"),
        ("the on cup", "'the' is left dangling before 'on'"),
        ("and cup", "starts with 'and'"),
        ("the red cup, , table", "punctuation"),
        ("the cup cup", "'cup' is doubled"),
        ('the "red cup', "lost its partner"),
    ],
)
def test_a_bad_rewrite_is_refused_and_another_descriptor_tried(rewrite: str, why: str) -> None:
    e = example(0).saying("the red cup on the table")
    operator = DescriptorDeletion(Canned({"bad": rewrite, "on the table": "the red cup"}))
    for seed in range(6):
        p = operator.perturb(e, random.Random(seed))
        assert p.example.expression == "the red cup"
        refused = [a["refused"] for a in p.trace["attempts"][:-1]]
        assert all(why in r for r in refused)
    only_bad = DescriptorDeletion(Canned({"bad": rewrite})).perturb(e, random.Random(0))
    assert only_bad.status == "not_perturbable"
    assert why in only_bad.reason


def test_a_rewriter_that_is_down_is_no_result_and_what_came_before_is_kept() -> None:
    data = [example(i).saying(f"the red cup {i} on the table") for i in range(6)]
    operator = DescriptorDeletion(
        Canned({"on the table": "the red cup"}, down_at=frozenset({data[3].expression}))
    )
    kept = []
    with pytest.raises(UserError, match="the server is down"):
        for p in operator.perturb_many((e, random.Random(0)) for e in data):
            kept.append(p.example.id)
    assert kept == ["e0", "e1", "e2"]


# ── checks and repairs ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "tidied"),
    [("the  cup ,  red", "the cup, red"), ("cup,, red,", "cup, red"), (" , cup", "cup"), ("cup , .", "cup.")],
)
def test_white_space_and_commas_are_put_right(text: str, tidied: str) -> None:
    assert tidy(text) == tidied


@pytest.mark.parametrize("word", ["orange", "unidentified", "hour-long", "X-ray", "8-year"])
def test_an_stands_before_a_vowel_sound(word: str) -> None:
    assert vowel_sound(word) == (word != "8-year")  # digits are left as they are


@pytest.mark.parametrize("word", ["uniform", "unicorn", "European", "one-eyed", "U-shaped", "used", "cat"])
def test_a_stands_before_a_consonant_sound(word: str) -> None:
    assert not vowel_sound(word)


def test_oddities_of_the_original_are_not_blamed_on_the_deletion() -> None:
    assert fault("the big cup on of the the table", "the cup on of the the table", "cup") == ""
    assert fault("the red cup with no hat on", "the cup with no hat on", "cup") == ""


# ── real and drawn expressions ──────────────────────────────────────────────────────────────────


def test_the_gold_descriptors_of_drawn_scenes_are_found() -> None:
    data = list(Shapes(n=150))
    found = SpacyRewriter().extract([e.expression for e in data])
    gold = hit = 0
    for e, extraction in zip(data, found, strict=True):
        assert isinstance(extraction, Extraction)
        texts = {d.text.replace(" … ", " ") for d in extraction.descriptors}
        gold += len(e.attributes["descriptors"])
        hit += len(set(e.attributes["descriptors"]) & texts)
    assert hit / gold > 0.97


def test_nearly_every_real_expression_has_a_descriptor_to_delete(shared: Path) -> None:
    lines = (shared / "data" / "ref_adv_s_predictions.tsv").read_text(encoding="utf-8").splitlines()[1::4]
    data = [example(i).saying(line.split("\t")[-1]) for i, line in enumerate(lines)]
    found = list(DescriptorDeletion().perturb_many((e, generator(0, e.id, "d", 0)) for e in data))
    assert sum(p.status == "changed" for p in found) / len(found) > 0.97
    for p in found:
        if p.status == "changed":
            assert p.trace["head"].lower() in p.example.expression.lower()
            assert len(p.example.expression) < len(p.original.expression) + 1
            assert not fault(p.original.expression, p.example.expression, p.trace["head"])


def test_a_pipeline_that_is_not_there_is_one_sentence() -> None:
    rewriter = SpacyRewriter(pipeline="no_such_pipeline")
    with pytest.raises(UserError, match=r"rewriter\.pipeline=no_such_pipeline"):
        rewriter.identity()
    with pytest.raises(UserError, match=r"rewriter\.pipeline=no_such_pipeline"):
        rewriter.extract(["the red cup"])
