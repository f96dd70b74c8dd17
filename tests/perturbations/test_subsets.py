"""The head noun with every subset of descriptors: exact on drawn scenes, read again elsewhere."""

from __future__ import annotations

from itertools import combinations
from math import comb

import pytest

from perturbations import Subsets, scenes
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import generator
from refadv_ablate.types import Example, Perturbed
from tests.scripted import example

DATA = tuple(Shapes(n=120))


def made(e: Example, operator: Subsets | None = None) -> list[Perturbed]:
    return list((operator or Subsets()).parts(e, generator(0, e.id)))


def test_every_proper_subset_is_asked_once_and_says_how_many_candidates_fit() -> None:
    for e in DATA:
        found, scene = made(e), scenes.scene_of(e)
        assert isinstance(scene, scenes.Scene)
        count = len(e.attributes["descriptors"])
        kept = [tuple(p.trace["kept"]) for p in found]
        assert sorted(kept) == sorted(k for size in range(count) for k in combinations(range(count), size))
        for p in found:
            sentence = scenes.read(p.example.expression)
            assert sentence is not None
            fits = scene.fits(sentence.meaning)
            assert p.trace["matching"] == len(fits) >= 1
            assert e.attributes["target_index"] in fits or "ordinal" in p.trace["kinds"], (
                "fewer descriptors fit at least what more of them fit, but for a rank among others"
            )
            assert [piece.text for piece in sentence.pieces] == [
                p.trace["descriptors"][i] for i in p.trace["kept"]
            ]
            label = f"keep:{','.join(map(str, p.trace['kept']))}" if p.trace["kept"] else "head noun"
            assert p.part == label


def test_head_noun_alone_fits_the_whole_category() -> None:
    for e in DATA:
        (head,) = [p for p in made(e) if not p.trace["kept"]]
        assert head.example.expression == f"the {e.category}"
        assert head.trace["matching"] == (e.distractors or 0) + 1


@pytest.mark.parametrize("count", range(1, 8))
def test_above_the_limit_none_each_alone_and_each_left_out(count: int) -> None:
    wanted = Subsets(most=4).subsets(count)
    assert len(set(wanted)) == len(wanted)
    assert len(wanted) == (2**count - 1 if count <= 4 else 1 + 2 * count)
    assert {len(kept) for kept in wanted} == (set(range(count)) if count <= 4 else {0, 1, count - 1})
    assert sum(len(kept) == 1 for kept in wanted) == (comb(count, 1) if count > 1 else 0)


def test_real_expressions_are_cut_and_read_again() -> None:
    e = example(1).saying("the young elephant near the water with a raised trunk")
    found = {tuple(p.trace.get("kept", ())): p for p in made(e)}
    assert found[()].example.expression == "the elephant"
    assert found[()].trace["matching"] == (e.distractors or 0) + 1
    assert found[0,].example.expression == "the young elephant"
    assert found[0, 2].example.expression == "the young elephant with a raised trunk"
    assert found[0, 2].trace["matching"] is None, "nobody has counted whom it fits"
    assert found[0,].trace["descriptors"] == ["young", "near the water", "with a raised trunk"]


def test_a_batch_gives_what_each_example_gives_alone() -> None:
    data = [
        DATA[0],
        example(1).saying("the red cup near the jar"),
        DATA[1],
        example(2).saying("cup"),
        DATA[2],
    ]
    together = list(Subsets().perturb_parts((e, generator(0, e.id)) for e in data))
    assert [list(parts) for parts in together] == [made(e) for e in data]
    assert together[3][0].status == "not_perturbable"


def test_a_limit_that_would_ask_without_end_is_refused() -> None:
    for most in (0, 7):
        with pytest.raises(UserError, match="1 to 6"):
            Subsets(most=most)
