"""Perturbed texts: made once, the same in any order, continued after an interruption."""

import errno

import pytest

from perturbations import BagOfWords, Identity
from refadv_ablate.errors import UserError
from refadv_ablate.running import perturbed_texts
from refadv_ablate.storage.jsonl import read_jsonl
from tests.scripted import Few


class Interrupted(BagOfWords):
    def perturb_many(self, items):
        for count, perturbed in enumerate(super().perturb_many(items)):
            if count == 70:
                raise KeyboardInterrupt
            yield perturbed


def rows(path):
    return list(read_jsonl(path))


def test_every_draw_of_every_example_in_the_order_of_the_data(tmp_path):
    data, operator = Few(5), BagOfWords(n_shuffles=3)
    path = perturbed_texts.ensure(tmp_path / "t.jsonl", lambda: data, "bow", operator, 0)
    assert [row["id"] for row in rows(path)] == [f"e{i}" for i in range(5) for _ in range(3)]
    assert len({row["expression"] for row in rows(path)[:3]}) == 3


def test_a_text_depends_on_its_example_alone():
    data = list(Few(6))
    operator = BagOfWords()
    forward = {
        p.example.id: p.example.expression for p in perturbed_texts.perturb_all(data, "bow", operator, 7)
    }
    backward = {
        p.example.id: p.example.expression
        for p in perturbed_texts.perturb_all(data[::-2], "bow", operator, 7)
    }
    assert all(forward[key] == text for key, text in backward.items())
    assert forward != {
        p.example.id: p.example.expression for p in perturbed_texts.perturb_all(data, "bow", operator, 8)
    }


def test_an_interrupted_file_is_continued_and_ends_the_same(tmp_path):
    data = Few(100)
    whole = perturbed_texts.ensure(
        tmp_path / "whole.jsonl", lambda: data, "bow", BagOfWords(), 0
    ).read_bytes()
    path = tmp_path / "t.jsonl"
    with pytest.raises(KeyboardInterrupt):
        perturbed_texts.ensure(path, lambda: data, "bow", Interrupted(), 0)
    part = path.with_suffix(".part")
    assert not path.exists()
    assert 0 < len(part.read_bytes()) < len(whole)
    part.write_bytes(part.read_bytes() + b'{"id": "cut in the mid')
    assert perturbed_texts.ensure(path, lambda: data, "bow", BagOfWords(), 0).read_bytes() == whole
    assert not part.exists()


def test_a_finished_file_is_not_made_again(tmp_path):
    path = perturbed_texts.ensure(tmp_path / "t.jsonl", lambda: Few(3), "identity", Identity(), 0)
    before = path.read_bytes()

    def fail():
        raise AssertionError

    assert perturbed_texts.ensure(path, fail, "identity", Identity(), 0).read_bytes() == before


def test_the_name_of_the_file_tells_data_operator_seed_and_limit_apart(tmp_path):
    def path(data="d", label="bow", operator=BagOfWords(), seed=0, limit=None):  # noqa: B008  # frozen
        return perturbed_texts.texts_path(tmp_path, {"data": data}, label, operator, seed, limit)

    others = [path("e"), path(label="x"), path(operator=BagOfWords(2)), path(seed=1), path(limit=3)]
    assert len({path(), *others}) == 6


def test_a_full_disk_is_one_sentence_and_the_texts_are_gone_on_with(tmp_path, monkeypatch):
    data = Few(100)
    whole = perturbed_texts.ensure(tmp_path / "w.jsonl", lambda: data, "bow", BagOfWords(), 0).read_bytes()
    written = []

    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, line):
            written.append(line)
            if len(written) == 50:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(line)

        def __getattr__(self, name):
            return getattr(self.file, name)

    opened = perturbed_texts._Part.opened.__func__

    def limited(cls, *arguments):
        part = opened(cls, *arguments)
        part.file = Full(part.file)
        return part

    path = tmp_path / "t.jsonl"
    monkeypatch.setattr(perturbed_texts._Part, "opened", classmethod(limited))
    with pytest.raises(UserError, match=r"the disk is full: .*t\.part can't be written; make room"):
        perturbed_texts.ensure(path, lambda: data, "bow", BagOfWords(), 0)
    assert not path.exists() and path.with_suffix(".part").stat().st_size > 0
    assert perturbed_texts.ensure(path, lambda: data, "bow", BagOfWords(), 0).read_bytes() == whole
