"""A sample of images: whole images, by seed and key alone, told wherever the numbers are."""

from dataclasses import dataclass, replace

import pytest

from refadv_ablate import assets
from refadv_ablate.data.sample import sampled, whole
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.errors import UserError
from refadv_ablate.running.cells import cells_of, told_apart_by
from refadv_ablate.running.parts import parts_of


@dataclass(frozen=True)
class Twice:
    """Each picture with two expressions; backwards where told."""

    backwards: bool = False
    name: str = "twice"

    def __iter__(self):
        rows = [replace(e, id=f"{e.id}-{k}") for e in Shapes(n=30) for k in (0, 1)]
        return iter(rows[::-1] if self.backwards else rows)

    def fingerprint(self):
        return {"name": self.name}


def keys(data):
    return {example.image.key for example in data}


def test_whole_images_are_kept_in_the_order_of_the_data():
    data = sampled(Twice(), 8, 0)
    ids = [example.id for example in data]
    assert len(keys(data)) == 8 < len(ids) < 60
    assert ids == [example.id for example in Twice() if example.image.key in keys(data)]
    assert ids == [example.id for example in data], "the same each time"


def test_a_sample_depends_on_seed_and_key_alone():
    assert keys(sampled(Twice(), 8, 0)) == keys(sampled(Twice(backwards=True), 8, 0))
    assert keys(sampled(Twice(), 8, 0)) < keys(sampled(Twice(), 12, 0))
    assert keys(sampled(Twice(), 8, 0)) != keys(sampled(Twice(), 8, 1))


def test_it_is_named_where_the_numbers_are():
    data = sampled(Twice(), 8, 3)
    assert data.fingerprint() == {"name": "twice", "images": 8, "images_seed": 3}
    assert data.notes == (f"a random sample of 8 of {len(keys(Twice()))} images of the data (seed 3)",)
    everything = sampled(Twice(), 99, 0)
    assert len(list(everything)) == 60 and everything.notes == ()
    assert sampled(data.whole, None, 0) is whole(data)


def test_a_cell_of_a_sample_is_another_cell(tmp_path):
    def parts(*words):
        return parts_of(assets.compose(["data.n=20", f"out={tmp_path}", "perturb=wrong_image", *words]))

    cells = [cells_of(parts(*words))[0].hash for words in ([], ["images=5"], ["images=6"])]
    assert len(set(cells)) == 3
    small = parts("images=5")
    assert told_apart_by(small, "wrong_image")["images"] == 5
    assert "images" not in told_apart_by(parts(), "wrong_image")
    assert len(keys(small.data)) == 5


def test_a_sample_of_nothing_is_refused():
    with pytest.raises(UserError, match="images=0: give at least 1"):
        parts_of(assets.compose(["images=0"]))
