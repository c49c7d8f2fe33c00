"""Counts over several keys, since a moment, and stored for a while."""

from typing import Any

import pytest

from holdfast.errors import BadInput, CountersWithoutTimes
from holdfast.store import Store
from holdfast.testing import Clock

SCHEMA = {
    "add": [{"targets": ["[key]"], "add": "value"}],
    "cut": [{"targets": ["[key]"], "add": "value", "max_stored_values": 10}],
    "timed": [
        {"targets": ["[key]"], "add": "value", "windowed_counters": True, "max_stored_values": 2}
    ],
}
SECOND = 1_000


@pytest.fixture
def counted(store: Store) -> Store:
    store.events.deploy(SCHEMA)
    return store


def add(store: Store, key: str, values: Any, name: str = "add", **parts: Any) -> None:
    attributes = {"key": key, "value": values}
    store.events.send({"name": name, "attributes": attributes, **parts})


def run(begin: int, end: int) -> list[str]:
    return [f"v{n}" for n in range(begin, end)]


@pytest.mark.parametrize("name", ["add", "cut", "timed"])
def test_small_keys_are_united_intersected_and_subtracted_exactly(
    counted: Store, name: str
) -> None:
    add(counted, "a", run(0, 100), name)
    add(counted, "b", run(60, 160), name)

    found = {
        op: counted.events.distinct(["a", "b"], op)
        for op in ("union", "intersection", "difference")
    }

    assert {op: each.count for op, each in found.items()} == {
        "union": 160,
        "intersection": 40,
        "difference": 60,
    }
    assert all(each.exact and each.error == 0 for each in found.values())


def test_large_sets_that_lost_nothing_are_intersected_exactly(counted: Store) -> None:
    add(counted, "a", run(0, 1_000))
    add(counted, "b", run(900, 2_000))

    both = counted.events.distinct(["a", "b"], "intersection")
    first = counted.events.distinct(["a", "b"], "difference")

    assert (both.count, both.exact, first.count, first.exact) == (100, True, 900, True)


def test_large_keys_are_estimated_with_a_bound(counted: Store) -> None:
    for begin in range(0, 10_000, 5_000):
        add(counted, "a", run(begin, begin + 5_000), "cut")
        add(counted, "b", run(5_000 + begin, begin + 10_000), "cut")

    union = counted.events.distinct(["a", "b"])
    both = counted.events.distinct(["a", "b"], "intersection")
    first = counted.events.distinct(["a", "b"], "difference")

    for found, truth in ((union, 15_000), (both, 5_000), (first, 5_000)):
        assert not found.exact
        assert 0 < found.error < 300
        assert abs(found.count - truth) <= 4 * found.error


def test_an_estimated_intersection_has_a_bounded_number_of_keys(counted: Store) -> None:
    keys = [f"k{n}" for n in range(11)]
    for key in keys:
        add(counted, key, run(0, 600), "cut")

    with pytest.raises(BadInput, match="estimated intersection of 11 keys"):
        counted.events.distinct(keys, "intersection")


def test_gross_of_several_keys_adds_up(counted: Store) -> None:
    add(counted, "a", ["x", "x", "y"])
    add(counted, "b", ["x"])

    assert counted.events.gross(["a", "b", "a", "unknown"]) == 4


# --- since a moment -------------------------------------------------------------------------------


def test_distinct_since_counts_values_whose_last_add_was_later(counted: Store) -> None:
    for value, second in (("a", 5), ("b", 6), ("a", 20), ("b", 2), ("c", 7)):
        add(counted, "k", value, "timed", at=second * SECOND)

    def above(second: int) -> int:
        found = counted.events.distinct("k", since=second * SECOND + 999)
        assert found.exact
        return found.count

    assert [above(second) for second in (0, 5, 6, 7, 19, 20)] == [3, 3, 2, 1, 1, 0]


def test_gross_since_counts_adds(counted: Store) -> None:
    for second in (5, 6, 6, 9):
        add(counted, "k", "same", "timed", at=second * SECOND)

    assert counted.events.gross("k", since=5 * SECOND) == 3
    assert counted.events.gross("k", since=6 * SECOND) == 1
    assert counted.events.gross("k") == 4


def test_scored_adds_count_once_for_each_score_and_value(counted: Store) -> None:
    for _ in range(3):
        add(counted, "a", "v", "timed", score=9)
        add(counted, "b", "v", "timed", score=9)
        add(counted, "c", "v", "timed")
        add(counted, "d", "v", "timed")

    assert [counted.events.gross(key) for key in "abcd"] == [1, 1, 3, 3]
    assert counted.events.gross(["a", "b"]) == 1
    assert counted.events.gross(["c", "d"]) == 6
    assert counted.events.members("a").members[0].at == 9_000


def test_a_set_that_lost_nothing_counts_since_from_its_members(counted: Store) -> None:
    for second in range(10):
        add(counted, "k", f"v{second}", at=second * SECOND)

    assert counted.events.distinct("k", since=6_500).count == 3


def test_a_key_without_times_says_what_to_do(counted: Store) -> None:
    add(counted, "k", run(0, 20), "cut")

    with pytest.raises(CountersWithoutTimes, match="windowed_counters"):
        counted.events.distinct("k", since=1)
    with pytest.raises(CountersWithoutTimes):
        counted.events.gross("k", since=1)
    assert counted.events.distinct("unknown", since=1).count == 0


def test_many_values_since_a_moment_are_estimated_closely(counted: Store) -> None:
    for second in range(20):
        add(counted, "k", run(second * 500, second * 500 + 500), "timed", at=second * SECOND)

    for second, truth in ((-1, 10_000), (9, 5_000), (18, 500), (19, 0)):
        found = counted.events.distinct("k", since=max(0, second * SECOND) if second >= 0 else None)
        assert abs(found.count - truth) <= 0.08 * truth


def test_at_and_score_exclude_each_other(counted: Store) -> None:
    with pytest.raises(BadInput, match="`at` or `score`"):
        add(counted, "k", "v", at=1, score=1)


# --- stored results -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cut", "timed"])
@pytest.mark.parametrize("many", [20, 400])
def test_a_stored_union_is_a_snapshot_that_expires(
    counted: Store, clock: Clock, name: str, many: int
) -> None:
    add(counted, "a", run(0, many), name)
    add(counted, "b", run(many // 2, 2 * many), name)

    kept = counted.events.keep_distinct(["a", "b"], ttl=60)
    add(counted, "a", "later", name)

    found = counted.events.distinct(kept.key)
    assert abs(found.count - 2 * many) <= 0.05 * many
    assert counted.events.distinct([kept.key, "a"]).count >= found.count
    assert counted.events.members(kept.key).members == []
    assert counted.events.gross(kept.key) == 0
    assert counted.events.describe(kept.key).kinds == ["count"]
    clock.advance(seconds=61)
    counted.sweep()
    assert counted.events.distinct(kept.key).count == 0


def test_a_stored_union_may_be_restricted_and_restricted_further(counted: Store) -> None:
    for value, second in (("a", 10), ("b", 9), ("c", 6), ("d", 3)):
        add(counted, "x", value, "timed", at=second * SECOND)

    kept = counted.events.keep_distinct("x", since=5 * SECOND)

    assert counted.events.distinct(kept.key).count == 3
    assert counted.events.distinct(kept.key, since=6 * SECOND).count == 2
    assert counted.events.distinct(kept.key, since=8 * SECOND + 999).count == 2


@pytest.mark.parametrize("ttl", [0, -1, True, "5m", float("inf")])
def test_a_stored_union_has_a_sane_lifetime(counted: Store, ttl: Any) -> None:
    with pytest.raises(BadInput):
        counted.events.keep_distinct(["a"], ttl=ttl)


def test_a_forgotten_key_leaves_no_times(counted: Store) -> None:
    add(counted, "k", run(0, 300), "timed")

    counted.events.forget("k")

    assert counted.events.distinct("k", since=0).count == 0
    add(counted, "k", "new", "timed")
    assert counted.events.distinct("k", since=0).count == 1


def test_describe_says_which_counters_are_complete(counted: Store) -> None:
    off = {"targets": ["['off']"], "add": "v", "store_gross_counters": False}
    counted.events.deploy({"off": [off]}, name="off")
    counted.events.send({"name": "off", "attributes": {"v": ["a", "b"]}})

    found = counted.events.describe("off")

    assert (found.kinds, found.size, found.gross, found.gross_complete) == (["set"], 2, 0, False)
    assert found.distinct.count == 2
    assert counted.events.describe("unknown").kinds == []
