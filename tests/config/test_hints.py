"""What an unknown option is taken for."""

from __future__ import annotations

import pytest

from refadv_ablate.config import hints

TEXTS = {
    "bow": "# words in a random order\nbow:\n  _target_: perturbations.BagOfWords\n  n_shuffles: 1\n",
    "fixed": "fixed:\n  text: the one\n",
    "qwen": "# Qwen (size=3B, 7B)\ncheckpoint: Qwen/Qwen2.5-VL-${.size}-Instruct\n",
}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("bag_of_words", "did you mean 'bow'?"),
        ("shuffle", "did you mean 'bow'?"),
        ("FIXED", "did you mean 'fixed'?"),
        ("bow fixed", "'perturb=[bow,fixed]'"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "perturb=qwen perturb.checkpoint=Qwen/Qwen2.5-VL-7B-Instruct"),
        ("zzz", "choices: bow, fixed, qwen"),
    ],
)
def test_an_unknown_option_is_taken_for_the_likeliest(value: str, said: str):
    assert said in hints.option("perturb", value, TEXTS)


def test_many_choices_are_not_listed():
    many = {f"model_{i}": "" for i in range(55)}
    said = hints.option("model", "model_5x", many)
    assert said.count("model_") <= 5 and "all 55: python -m refadv_ablate --help model" in said


def test_sizes_are_those_of_the_first_comment():
    assert hints.sizes(TEXTS["qwen"]) == ["3B", "7B"]
    assert hints.sizes("checkpoint: x\n# (size=1B)") == []
