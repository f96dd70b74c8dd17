"""What holds for every operator, as every YAML of conf/perturb builds it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from refadv_ablate import assets
from refadv_ablate.seeding import generator
from refadv_ablate.types import Example, NeedsData, Operator, Parted, Perturbed
from tests.perturbations.conftest import EXPRESSIONS
from tests.scripted import Few, example

CONF = Path(__file__).resolve().parents[2] / "conf"
PERTURB = sorted(path.stem for path in (CONF / "perturb").glob("*.yaml"))
REWRITERS = sorted(path.stem for path in (CONF / "rewriter").glob("*.yaml"))
NEEDS_REWRITER = {n for n in PERTURB if "${rewriter}" in (CONF / "perturb" / f"{n}.yaml").read_text()}
CASES = [
    (name, rewriter) for name in PERTURB for rewriter in (REWRITERS if name in NEEDS_REWRITER else ["spacy"])
]
PICTURES = {"blank", "erase_distractors", "image", "mirror", "mirror_keep", "occlude", "wrong_image"}
"""Operators that change more than the text."""
Make = Callable[[str, str], Operator]


@pytest.fixture
def make(llm_url: str, texts_file: Path) -> Make:
    def build(name: str, rewriter: str) -> Operator:
        node: Any = OmegaConf.create({"rewriter": OmegaConf.load(CONF / "rewriter" / f"{rewriter}.yaml")})
        node = OmegaConf.merge(node, {"perturb": OmegaConf.load(CONF / "perturb" / f"{name}.yaml")})
        if rewriter == "openai":
            node.rewriter.base_url = llm_url
            node.rewriter.cache = None
        if name == "file":
            node.perturb.file.path = str(texts_file)
        operators = assets.build(OmegaConf.to_container(node.perturb, resolve=True), "perturb")
        assert list(operators) == [name], "a YAML is keyed by its own label"
        operator: Operator = operators[name]
        return operator.with_data(Few(20)) if isinstance(operator, NeedsData) else operator

    return build


def examples(name: str) -> list[Example]:
    """A file of texts holds those of its own examples; an LLM is asked for fewer."""
    made = [example(i).saying(text) for i, text in enumerate(EXPRESSIONS)]
    if name == "file":
        return [e for e in made if e.expression.strip()]
    return made


def rng(e: Example, draw: int = 0) -> random.Random:
    return generator(0, e.id, "label", draw)


def each(operator: Operator, e: Example) -> list[Perturbed]:
    """Every sub-condition of an example, or its one draw."""
    if isinstance(operator, Parted):
        return list(next(iter(operator.perturb_parts([(e, rng(e))]))))
    return [operator.perturb(e, rng(e))]


def key(p: Perturbed) -> tuple[str, ...]:
    return p.example.id, p.example.expression, p.status, p.reason, p.example.image.digest()


@pytest.mark.parametrize(("name", "rewriter"), CASES)
def test_it_is_deterministic_and_streaming_gives_the_same_in_any_order(
    name: str, rewriter: str, make: Make
) -> None:
    operator, data = make(name, rewriter), examples(name)
    alone = [operator.perturb(e, rng(e)) for e in data]
    streamed = list(make(name, rewriter).perturb_many((e, rng(e)) for e in data))
    assert list(map(key, streamed)) == list(map(key, alone))
    backwards = list(operator.perturb_many((e, rng(e)) for e in reversed(data)))
    assert [key(p) for p in reversed(backwards)] == list(map(key, alone))
    few = list(operator.perturb_many((e, rng(e)) for e in data[1::3]))
    assert list(map(key, few)) == list(map(key, alone[1::3]))


@pytest.mark.parametrize(("name", "rewriter"), CASES)
def test_it_keeps_everything_but_the_text(name: str, rewriter: str, make: Make) -> None:
    operator = make(name, rewriter)
    for e, p in ((made, p) for made in examples(name) for p in each(operator, made)):
        assert p.original is e
        assert p.example.id == e.id
        if name not in PICTURES:
            assert p.example.saying(e.expression) == e, "id, image, target and all else are kept"
            assert (p.status == "changed") == (p.example.expression != e.expression)
        assert p.status != "changed" or p.example.expression.strip(), "an empty text is never asked"
        assert p.status != "not_perturbable" or p.reason
        json.dumps(dict(p.trace))


@pytest.mark.parametrize(("name", "rewriter"), CASES)
def test_its_identity_is_stable_json_without_secrets(
    name: str, rewriter: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    first, second = make(name, rewriter).identity(), make(name, rewriter).identity()
    assert json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert "sk-very-secret" not in json.dumps(first)
    assert make(name, rewriter).draws >= (0 if isinstance(make(name, rewriter), Parted) else 1)


@pytest.mark.parametrize("name", [n for n in PERTURB if n not in {"file"}])
def test_any_text_at_all_is_taken(name: str, make: Make) -> None:
    operator = make(name, "spacy")

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.text(max_size=60))
    def check(text: str) -> None:
        e = example(1).saying(text)
        found = each(operator, e)
        assert found
        assert name in PICTURES or all(p.example.saying(text) == e for p in found)
        assert each(operator, e) == found

    check()


def test_sub_conditions_are_told_apart_and_come_example_by_example(make: Make) -> None:
    parted = [name for name in PERTURB if isinstance(make(name, "spacy"), Parted) and name != "file"]
    assert {"absent", "counterfactual", "image", "occlude", "paraphrase", "subsets"} <= set(parted)
    for name in parted:
        operator, data = make(name, "spacy"), examples(name)[:4]
        assert operator.draws == 0
        found = list(operator.perturb_parts((e, rng(e)) for e in data))
        assert [{p.original.id for p in parts} for parts in found] == [{e.id} for e in data]
        again = [next(iter(operator.perturb_parts([(e, rng(e))]))) for e in reversed(data)]
        assert list(reversed(again)) == found, "an example's sub-conditions depend on nothing else"
        for parts in found:
            asked = [p.part for p in parts if not p.placebo and p.status != "not_perturbable"]
            assert len(asked) == len(set(asked))


def test_only_the_no_op_arm_asks_again(make: Make) -> None:
    repeats = {n for n in PERTURB if getattr(make(n, "spacy"), "repeat", False)}
    assert repeats == {"repeat"}
