"""data=shapes: the laws its scenes and expressions keep, checked against the scene's own semantics."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from refadv_ablate import seeding
from refadv_ablate.boxes import iou
from refadv_ablate.data.shapes import CYCLE, KINDS, Shapes, compose
from refadv_ablate.data.shapes.drawing import render
from refadv_ablate.data.shapes.language import MARGIN, Denotation, Relation
from refadv_ablate.data.shapes.scene import COLOURS, SHAPES, Item, Scene
from refadv_ablate.errors import UserError
from refadv_ablate.types import Data, Example, ImageRef

N_SCENES = 300
GOLDEN = "7ba649e55cb802f9f89bdbb7ae680d22c93fee60929a09cb9851352bb8e04fb1"


def plain(example: Example) -> object:
    return [
        example.id, example.expression, example.target.as_list(), example.image.digest(),
        example.category, example.distractors, example.negation, dict(example.attributes),
        [[c.box.as_list(), c.category, dict(c.attributes)] for c in example.candidates],
    ]  # fmt: skip


@pytest.fixture(scope="module")
def scenes() -> list[tuple[Scene, tuple]]:
    return [compose(seeding.generator(5, "test", k), 420, CYCLE[k % len(CYCLE)]) for k in range(N_SCENES)]


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return list(Shapes(n=600, seed=1))


def test_is_a_data_set_with_images(examples: list[Example]) -> None:
    assert isinstance(Shapes(), Data)
    assert isinstance(examples[0].image, ImageRef)
    assert len({example.id for example in examples}) == 600


def test_the_same_on_every_machine() -> None:
    assert seeding.digest([plain(example) for example in Shapes(n=40, seed=3)]) == GOLDEN


def test_not_moved_by_the_hash_seed() -> None:
    code = (
        "from refadv_ablate.data.shapes import Shapes;"
        "print([(e.id, e.expression, e.image.digest()) for e in Shapes(n=12, seed=3)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            check=True, capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1


def test_example_i_needs_no_other(examples: list[Example]) -> None:
    data = Shapes(n=600, seed=1)
    for index in (599, 7, 0, 5, 6, 123):
        assert plain(data.example(index)) == plain(examples[index])
    with pytest.raises(IndexError):
        data.example(600)


def test_a_longer_set_begins_with_a_shorter_one(examples: list[Example]) -> None:
    assert [plain(e) for e in Shapes(n=31, seed=1)] == [plain(e) for e in examples[:31]]


def test_other_seeds_are_other_scenes(examples: list[Example]) -> None:
    mine = {example.image.digest() for example in examples}
    assert not mine & {example.image.digest() for example in Shapes(n=60, seed=2)}


def test_the_size_scales_the_same_scene() -> None:
    small, large = Shapes(n=6, size=210).example(4), Shapes(n=6, size=420).example(4)
    assert small.expression == large.expression
    ratio = large.image.size()[0] / small.image.size()[0]
    assert [v * ratio for v in small.target.as_list()] == pytest.approx(large.target.as_list(), abs=1.5)


def test_exactly_the_target_fits_and_no_descriptor_is_spare(scenes: list) -> None:
    for scene, sayings in scenes:
        denotation = Denotation(scene)
        for saying in sayings:
            assert denotation.of(saying.meaning) == [saying.target]
            for less in saying.meaning.reduced():
                assert denotation.of(less) != [saying.target]


def test_landmarks_are_unique_and_minimal(scenes: list) -> None:
    for scene, sayings in scenes:
        denotation = Denotation(scene)
        for saying in sayings:
            if isinstance(saying.meaning.modifier, Relation):
                mark = saying.meaning.modifier.landmark
                assert len(denotation.phrase(mark)) == 1
                less = [m.head for m in type(saying.meaning)(mark).reduced()]
                assert all(len(denotation.phrase(phrase)) > 1 for phrase in less)


def test_hard_distractors_by_construction(scenes: list) -> None:
    for scene, sayings in scenes:
        denotation = Denotation(scene)
        for saying in sayings:
            same = [i for i, item in enumerate(scene.items) if item.shape == saying.meaning.head.shape]
            assert len(same) >= 3, "the target and at least two distractors"
            assert saying.hard in same
            assert saying.hard != saying.target
            assert any(saying.hard in denotation.of(less) for less in saying.meaning.reduced())
            assert saying.hard not in denotation.of(saying.meaning)


def test_order_matters_where_it_says_so(scenes: list) -> None:
    sayings = [saying for _, many in scenes for saying in many]
    relations = [s for s in sayings if s.meaning.kind == "relation"]
    assert sum(s.order_sensitive for s in relations) > 0.9 * len(relations)
    assert not any(s.order_sensitive for s in sayings if s.meaning.kind == "attribute")


def test_sides_are_clear(scenes: list) -> None:
    for scene, sayings in scenes:
        denotation = Denotation(scene)
        for saying in sayings:
            modifier = saying.meaning.modifier
            if isinstance(modifier, Relation):
                (mark,) = denotation.phrase(modifier.landmark)
                assert denotation.ahead(modifier.side, saying.target, mark) >= MARGIN


def test_shares(examples: list[Example]) -> None:
    kinds = Counter(example.attributes["kind"] for example in examples)
    assert set(kinds) == set(KINDS)
    assert all(0.14 < kinds[kind] / 600 < 0.28 for kind in ("attribute", "ordinal", "negation"))
    assert 0.14 < sum(bool(example.negation) for example in examples) / 600 < 0.26
    bins = Counter(min(max(example.distractors or 0, 3), 7) // 2 for example in examples)
    assert all(share > 0.15 * 600 for share in (bins[1], bins[2] + 0, bins[3]))


def test_images_are_shared_as_stated(examples: list[Example]) -> None:
    per_image = Counter(Counter(example.image.key for example in examples).values())
    assert per_image == {1: 100, 2: 100, 3: 100}
    for a, b in pairwise(examples):
        assert a.image.key != b.image.key or a.expression != b.expression


def test_words_are_in_the_expression(examples: list[Example]) -> None:
    for example in examples:
        assert example.category in example.expression
        for descriptor in example.attributes["descriptors"]:
            assert all(word in example.expression.split() for word in descriptor.split())
        assert example.negation == (" not " in example.expression or "isn't" in example.expression)


def test_boxes_lie_inside_and_apart(examples: list[Example]) -> None:
    for example in examples[::7]:
        boxes = [candidate.box for candidate in example.candidates]
        assert example.target == boxes[example.attributes["target_index"]]
        assert all(box.inside(example.image.size()) for box in boxes)
        assert all(iou(a, b) == 0 for k, a in enumerate(boxes) for b in boxes[:k])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fill", ["solid", "hollow"])
def test_the_box_is_tight_around_the_drawing(shape: str, fill: str) -> None:
    item = Item(shape, "blue", "large", fill, 100.3, 80.7, 30.2)
    scene = Scene((200, 160), (255, 255, 255), (item,), shape)
    ink = np.argwhere(np.asarray(render(scene)).sum(axis=2) < 3 * 250)
    (y1, x1), (y2, x2) = ink.min(axis=0), ink.max(axis=0) + 1
    assert [x1, y1, x2, y2] == pytest.approx(item.box.as_list(), abs=1.0)


def test_pictures_are_what_the_reference_says(examples: list[Example]) -> None:
    picture = examples[0].image
    assert picture.load().size == picture.size()
    assert picture.load().mode == "RGB"
    assert pickle.loads(pickle.dumps(picture)).digest() == picture.digest()


def test_every_word_of_the_lexicon_occurs(examples: list[Example]) -> None:
    said = {word for example in examples for word in example.expression.split()}
    assert {*SHAPES, *COLOURS, "left", "right", "above", "below", "second", "leftmost"} <= said


@pytest.mark.parametrize("bad", [{"n": 0}, {"size": 10}])
def test_impossible_sizes_are_the_users_mistake(bad: dict[str, int]) -> None:
    with pytest.raises(UserError):
        Shapes(**bad)
