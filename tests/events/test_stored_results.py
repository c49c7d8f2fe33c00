"""Stored results: members and leaderboards of several keys, kept under a key of their own."""

import pytest

from holdfast.errors import BadInput, HoldfastError, IncompleteCounter, WrongKind
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send, values

pytestmark = pytest.mark.every_engine

SCHEMA = {
    "add": [{"targets": ["[k]"], "add": "v"}],
    "count": [{"targets": ["[k]"], "count_frequency": "v"}],
    "both": [
        {"targets": ["[k]"], "add": "v"},
        {"targets": ["[k]"], "count_frequency": "v", "beside_set": True, "max_stored_values": 2},
    ],
}


def test_kept_members_are_a_set_that_later_events_do_not_change(
    store: Store, clock: Clock, send: Send
) -> None:
    store.events.deploy(SCHEMA)
    for at, (key, value) in enumerate([("a", 1), ("b", 2), ("a", 2), ("b", 3), ("c", 2)], 1):
        send("add", k=key, v=value, _at=at)

    union = store.events.keep_members(["a", "b"], ttl=60)
    common = store.events.keep_members(["a", "b", "c"], op="intersection", ttl=60)
    first = store.events.keep_members(["a", "b"], op="difference", since=0, until=9)
    newest = store.events.keep_members(["a", "b"], limit=1)
    send("add", k=["a", "b"], v=9)

    assert [values(store, each.key) for each in (union, common, first, newest)] == [
        ["3", "2", "1"],
        ["2"],
        ["1"],
        ["3"],
    ]
    assert (union.size, union.complete, newest.complete) == (3, True, False)
    members = store.events.members(union.key).members
    assert [member.at for member in members] == [4, 3, 1]
    assert store.events.distinct([union.key, "c"], op="intersection").count == 1
    clock.advance(seconds=61)
    assert values(store, union.key) == []
    assert values(store, newest.key) == ["3"]


def test_many_kept_members_disappear_with_their_rows(store: Store, clock: Clock) -> None:
    store.events.deploy(SCHEMA)
    store.events.send_many(
        [{"name": "add", "attributes": {"k": "a", "v": n}, "at": n + 1} for n in range(400)]
    )

    kept = store.events.keep_members("a", limit=300, ttl=60)

    assert values(store, kept.key) == [str(n) for n in range(399, 99, -1)]
    assert (kept.size, kept.complete) == (300, False)
    clock.advance(seconds=61)
    store.sweep()
    assert [info.key for info in store.events.keys().keys] == ["a"]


def test_a_kept_leaderboard_has_the_merged_counts(store: Store, clock: Clock, send: Send) -> None:
    store.events.deploy(SCHEMA)
    for key, value, times in (("a", "x", 3), ("a", "y", 1), ("b", "y", 4), ("b", "z", 2)):
        for _ in range(times):
            send("count", k=key, v=value)

    kept = store.events.keep_top(["a", "b"], k=2, ttl=60)
    send("count", k="a", v="z")

    top = store.events.top(kept.key)
    assert [(each.value, each.count, each.error) for each in top] == [("y", 5, 0), ("x", 3, 0)]
    assert kept.size == 2
    assert store.events.distinct(kept.key).incomplete
    clock.advance(seconds=61)
    assert store.events.top(kept.key) == []


def test_what_is_no_set_or_has_no_time_is_refused(store: Store, send: Send) -> None:
    store.events.deploy(SCHEMA)
    send("count", k="board", v=1)

    with pytest.raises(WrongKind):
        store.events.keep_members("board")
    for ttl in (0, -1, True, float("inf")):
        with pytest.raises(BadInput, match="ttl"):
            store.events.keep_top("board", ttl=ttl)


def test_a_handler_may_keep_a_leaderboard_beside_a_set(store: Store, send: Send) -> None:
    store.events.deploy(SCHEMA)

    for value in "aabca":
        reply = send("both", k="key", v=value)

    assert reply.skipped == []
    assert values(store, "key") == ["a", "c", "b"]
    assert [(each.value, each.count) for each in store.events.top("key")] == [("a", 3), ("b", 1)]
    assert (store.events.gross("key"), store.events.distinct("key").count) == (5, 3)
    assert store.events.describe("key").kinds == ["set", "leaderboard"]
    assert store.events.forget("key")
    assert store.events.keys().keys == []


def test_without_that_word_a_key_holds_one_of_both(store: Store, send: Send) -> None:
    store.events.deploy(SCHEMA)
    send("add", k="key", v=1)

    assert send("count", k="key", v=1).skipped[0].error == "key key holds a set"
    with pytest.raises(HoldfastError, match="only a handler with count_frequency has one"):
        store.events.deploy({"e": [{"targets": ["[k]"], "add": "v", "beside_set": True}]})


def test_a_gross_counter_that_was_off_can_be_told_from_zero(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "e": [{"targets": ["[k]"], "add": "v"}],
            "off": [{"targets": ["[k]"], "add": "v", "store_gross_counters": False}],
            "none": [{"targets": ["[k]"], "add": "v", "store_distinct_counters": False}],
        }
    )
    send("off", k=["o:2020-01-01", "o:2020-01-02"], v=1)
    send("e", k="o:2020-01-02", v=2)
    send("none", k="o:2020-01-03", v=3)

    by_gross = store.events.series("o:{day}", "gross", "2020-01-01", "2020-01-04")
    by_distinct = store.events.series("o:{day}", "distinct", "2020-01-03", "2020-01-04")

    assert [point.value for point in by_gross] == [None, 1, 1, 0]
    assert [point.value for point in by_distinct] == [None, 0]
    assert store.events.gross("o:2020-01-01") == 0
    assert not store.events.describe("o:2020-01-01").gross_complete
    assert store.events.gross("o:2020-01-03", complete=True) == 1
    for keys in ("o:2020-01-01", ["o:2020-01-03", "o:2020-01-02"]):
        with pytest.raises(IncompleteCounter, match="o:2020-01-0"):
            store.events.gross(keys, complete=True)


def test_the_lifetime_in_a_result_is_a_float_as_a_client_reads_it(store: Store) -> None:
    assert type(store.events.keep_distinct("a", ttl=60).ttl) is float
    assert type(store.events.configure(dedup_seconds=60).dedup_seconds) is float
