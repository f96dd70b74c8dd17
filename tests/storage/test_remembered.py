"""What was seen before: in memory or on disk, it is the same."""

from __future__ import annotations

import gc
import sqlite3
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refadv_ablate.errors import UserError
from refadv_ablate.storage.remembered import Remembered

KEYS = st.lists(st.text(max_size=3), max_size=40)
HALF = "cut \ud83d"
"""Half a surrogate pair, as a cut text may end with."""


@given(KEYS, st.integers(1, 9))
@settings(deadline=None)
def test_the_first_value_of_a_key_stays_in_memory_and_on_disk(keys, most):
    kept, expected = Remembered(most), {}
    for place, key in enumerate([*keys, HALF]):
        assert kept.setdefault(key, str(place)) == expected.setdefault(key, str(place))
    assert {key: kept.get(key) for key in expected} == expected
    assert kept.get("a key of more than three") is None


@given(KEYS, st.integers(1, 9), st.integers(0, 9))
@settings(deadline=None)
def test_counts_go_on_when_keys_leave_memory(keys, most, shown):
    kept, expected = Remembered(most), dict[str, int]()
    for key in [*keys, HALF]:
        expected[key] = expected.get(key, 0) + 1
        assert kept.add(key) == expected[key]
    ordered = sorted(expected.items(), key=lambda item: (-item[1], item[0]))
    assert kept.top(shown) == ordered[:shown]


def test_nothing_is_held_once_keys_are_many():
    kept = Remembered(10)
    for place in range(1000):
        kept.add(f"key {place}")
    assert kept._here == {}
    assert kept._database is not None
    assert kept._database.execute("SELECT count(*) FROM seen").fetchone() == (1000,)
    assert kept._database.execute("PRAGMA database_list").fetchone()[2] == "", "a file without a name"


def test_another_thread_may_go_on():
    kept = Remembered(2)
    for place in range(5):
        kept.add(f"key {place}")
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(kept.add("key 1")))
    thread.start()
    thread.join()
    assert found == [2]


def test_a_full_disk_is_a_sentence():
    class Full:
        def execute(self, *_words):
            raise sqlite3.OperationalError("database or disk is full")

    kept = Remembered(1)
    kept._database = Full()  # type: ignore[assignment]
    with pytest.raises(UserError, match=r"is full.*make room there, or set SQLITE_TMPDIR"):
        kept.add("a")


def test_half_a_surrogate_pair_is_a_value_as_well():
    kept = Remembered(1)
    for key in ("a", "b"):
        assert kept.setdefault(key, HALF + key) == HALF + key
    assert kept.get("a") == HALF + "a"


def test_its_database_is_closed_when_it_goes():
    kept = Remembered(1)
    kept.add("a")
    kept.add("b")
    database = kept._database
    assert database is not None
    del kept
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.execute("SELECT 1")
