"""Building parts: a misspelt key, a missing one and a value of the wrong type are one sentence each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
import yaml

from refadv_ablate import assets
from refadv_ablate.errors import UserError

HERE = __name__


@dataclass(frozen=True)
class Inner:
    ratio: float = 0.5


@dataclass(frozen=True)
class Part:
    n: int
    kind: Literal["a", "b"] = "a"
    path: Path | None = None
    names: tuple[str, ...] = ()
    inner: Inner | None = None
    raw_config: object = None


def node(**keys):
    return {"_target_": f"{HERE}.Part", **keys}


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, HERE, sys.modules.get(HERE) or __import__(HERE))


def test_nested_parts_and_plain_types_are_built():
    inner = {"_target_": f"{HERE}.Inner", "ratio": 1}
    part = assets.build(node(n=3, path="x/y", names=["a", "b"], inner=inner, raw_config=inner))
    assert part == Part(3, "a", Path("x/y"), ("a", "b"), Inner(1.0), inner)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"n": 1, "knd": "b"}, ["'knd'", "did you mean 'kind'"]),
        ({"n": "many"}, ["n='many'", "integer"]),
        ({"n": 1.5}, ["n=1.5", "integer"]),
        ({"n": 1, "kind": "c"}, ["kind='c'", "'a' or 'b'"]),
        ({}, ["n must be given"]),
        ({"n": 1, "inner": {"_target_": f"{HERE}.Inner", "ratio": "x"}}, ["inner.ratio='x'", "number"]),
        ({"n": 1, "inner": {"_target_": "no.such.Thing"}}, ["no.such.Thing", "can't be imported"]),
    ],
)
def test_each_mistake_is_one_sentence(keys, words):
    with pytest.raises(UserError) as error:
        assets.build(node(**keys), "part")
    text = str(error.value)
    assert all(word in text for word in words), text
    assert "\n" not in text


def test_what_the_part_itself_refuses_is_a_sentence():
    with pytest.raises(UserError, match="box"):
        assets.build({"_target_": "refadv_ablate.boxes.Box", "x1": 0, "y1": 0, "x2": 0, "y2": 1})


@pytest.mark.parametrize("group", [*assets.GROUPS])
def test_every_yaml_says_in_one_line_what_it_is(group):
    found = assets.options(group)
    assert found
    for name, about in found.items():
        assert 10 < len(about) <= 140, (
            f"{group}/{name}.yaml needs a first comment line of up to 140 characters"
        )
        yaml.safe_load((assets.group_dir(group) / f"{name}.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["perturb=bwo"], "did you mean 'bow'"),
        (["perturb=[bow,fxed]"], "did you mean 'fixed'"),
        (["sed=1"], "did you mean 'seed'"),
        (["perturb.bow.n_shufles=3"], "did you mean 'n_shuffles'"),
        (["perturb=fixed", "perturb.bow.n_shuffles=3"], "perturb has no key 'bow'"),
        (["model.checkpont=x"], "did you mean 'checkpoint'"),
        (["data=shapes", "data.sed=3"], "did you mean 'seed'"),
    ],
)
def test_a_misspelt_override_names_the_nearest_match(words, expected):
    with pytest.raises(UserError, match=expected) as error:
        assets.check(words)
    assert "\n" not in str(error.value)


def test_a_text_that_hydra_cannot_read_is_explained():
    with pytest.raises(UserError, match="prompt file"):
        assets.check(["perturb.fixed.text=那个, the one"])


def test_several_operators_merge():
    config = assets.compose(["perturb=[bow,fixed]", "perturb.bow.n_shuffles=4"])
    assert set(config.perturb) == {"bow", "fixed"}
    assert config.perturb.bow.n_shuffles == 4


def test_the_first_of_each_sweep_stands_for_all():
    assert assets.representative(["perturb=bow,fixed", "seed=1", "limit=5,6"]) == [
        "perturb=bow",
        "seed=1",
        "limit=5",
    ]


@pytest.mark.parametrize(
    ("words", "added"),
    [
        (["model=internvl3", "perturb=bow"], ["data=ref_adv_s"]),
        (["model=gpt4o,qwen3_vl"], ["data=ref_adv_s"]),
        (["model=internvl3_8b"], ["data=ref_adv_s"]),
        (["model=tiny_internvl3,listener,control/oracle"], []),
        (["perturb=bow"], []),
        (["model=internvl3", "data=refcoco"], []),
        (["paper=table3_bag_of_words", "model=internvl3"], []),
    ],
)
def test_a_real_checkpoint_is_asked_about_the_papers_public_set(words, added):
    assert assets.with_data(words) == words + added


def test_a_sweep_over_both_kinds_of_models_says_which_data():
    with pytest.raises(UserError, match="data=shapes or data=ref_adv_s"):
        assets.with_data(["model=listener,internvl3"])
