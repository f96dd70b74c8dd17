"""Columns that leave memory: what comes back is what was put in, in whatever pieces."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refadv_ablate.errors import UserError
from refadv_ablate.storage import columns
from refadv_ablate.storage.columns import Spool, pieces

HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=60)


def filled(hashes: list[int], size: int) -> Spool:
    spool = Spool({"key": "Q", "place": "i", "pair": "2d"}, size)
    for place, key in enumerate(hashes):
        if place % 3 == 0:  # a column that some rows have a value in, first seen late
            if place == 3:
                spool.new("late", "f", math.nan)
            if place >= 3:
                spool.pad("late", spool.here).append(place)
        spool.buffers["key"].append(key)
        spool.buffers["place"].append(place)
        spool.buffers["pair"].extend((place, -place))
        spool.ended()
    return spool


@given(HASHES, st.integers(1, 9), st.integers(1, 7))
@settings(deadline=None)
def test_rows_come_back_whole_whatever_the_buffer_and_the_pieces(hashes, size, parts):
    spool = filled(hashes, size)
    assert len(spool) == len(hashes)
    whole = spool.all()
    assert whole["key"].tolist() == hashes
    assert whole["place"].tolist() == list(range(len(hashes)))
    assert whole["pair"].tolist() == [[place, -place] for place in range(len(hashes))]
    if len(hashes) > 3:
        expected = [place if place >= 3 and place % 3 == 0 else math.nan for place in range(len(hashes))]
        assert np.array_equal(whole["late"], expected, equal_nan=True)
    found = list(spool.parted("key", parts))
    assert len(found) == parts
    joined = np.concatenate(found)
    by_range = sorted(range(len(hashes)), key=lambda place: (hashes[place] >> 32) * parts >> 32)
    assert joined["place"].tolist() == by_range, "ranges ascend, and within one the order is that of arrival"
    for rows in found:
        assert not set(rows["key"]) & {key for other in found if other is not rows for key in other["key"]}


def test_pieces_are_made_anew_when_rows_have_come():
    spool = filled([1, 2**63, 5], 2)
    assert [len(rows) for rows in spool.parted("key", 2)] == [2, 1]
    spool.buffers["key"].append(2**64 - 1)
    spool.buffers["place"].append(3)
    spool.buffers["pair"].extend((3, -3))
    spool.ended()
    assert [rows["place"].tolist() for rows in spool.parted("key", 2)] == [[0, 2], [1, 3]]


def test_so_many_pieces_as_rows_need():
    assert [pieces(rows, 10) for rows in (0, 1, 10, 11, 100)] == [1, 1, 1, 2, 10]


def test_a_stretch_of_the_file_is_used_again():
    for _ in range(3):
        spool = filled(list(range(40)), 10)
        end = columns._current[-1].end
        del spool
    assert columns._current[-1].end == end


def test_a_forked_process_writes_a_file_of_its_own():
    spool = filled(list(range(40)), 10)
    child = os.fork()
    if not child:
        other = filled(list(range(100, 140)), 10)
        os._exit(0 if other.all()["key"].tolist() == list(range(100, 140)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert spool.all()["key"].tolist() == list(range(40))


def test_a_full_disk_is_a_sentence(monkeypatch):
    class Full:
        def seek(self, _place):
            return 0

        def write(self, _data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(columns, "_current", [columns._File(Full(), os.getpid())])  # type: ignore[arg-type]
    with pytest.raises(
        UserError, match=r"the disk is full: the folder for temporary files .*; make room, or set TMPDIR"
    ):
        filled(list(range(10)), 5)
