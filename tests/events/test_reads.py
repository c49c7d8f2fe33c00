"""Reads: pages, counters, series, keys, and many at once."""

from itertools import count
from typing import Any

import pytest

from holdfast.errors import BadInput, BatchTooLong, WrongKind
from holdfast.events import Distinct, KeyInfo, Point
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send
from tests.plain_keys import keys_below

UNIQUE = {
    "signup": [{"targets": ["['unique']", "['signup']", "[@day, @week]"], "add": "@request_ip"}]
}


def test_unknown_keys_hold_nothing(store: Store) -> None:
    events = store.events

    assert (events.members("x").members, events.members("x").next) == ([], None)
    assert events.contains("x", "v") is None
    assert (events.size("x"), events.gross("x"), events.top("x")) == (0, 0, [])
    assert events.distinct("x") == Distinct(count=0, exact=True)
    assert events.forget("x") is False


def test_the_size_of_a_key_is_also_asked_for_with_a_hash_sign(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})
    send("e", v=["a", "b"])

    assert store.events.size("s") == store.events.size("#s") == 2
    assert store.events.read(["#s", {"op": "size", "key": "#s"}]) == [2, 2]


def test_reads_of_the_wrong_kind_say_what_the_key_holds(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "e": [
                {"targets": ["['s']"], "add": "v"},
                {"targets": ["['b']"], "count_frequency": "v"},
            ]
        }
    )
    send("e", v=1)

    with pytest.raises(WrongKind, match="key s holds a set"):
        store.events.top("s")
    with pytest.raises(WrongKind, match="key b holds a leaderboard"):
        store.events.members("b")
    with pytest.raises(WrongKind, match="key b holds a leaderboard"):
        store.events.contains("b", "1")


def test_the_last_page_has_no_next(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})
    send("e", v=["a", "b", "c", "d"])

    first = store.events.members("s", limit=2)
    second = store.events.members("s", limit=2, after=first.next)

    assert [member.value for member in first.members] == ["d", "c"]
    assert [member.value for member in second.members] == ["b", "a"]
    assert second.next is None


@pytest.mark.parametrize("after", ["", "x", "%%%", "gqFh", "ü"])
def test_a_place_that_no_page_has_named_is_refused(store: Store, after: str) -> None:
    with pytest.raises(BadInput, match="not a position"):
        store.events.members("s", after=after)


@pytest.mark.parametrize("limit", [0, -1, 10_001])
def test_a_page_has_a_size(store: Store, limit: int) -> None:
    with pytest.raises(BadInput):
        store.events.members("s", limit=limit)
    with pytest.raises(BadInput):
        store.events.keys(limit=limit)


def test_distinct_is_exact_for_small_numbers_and_close_for_large_ones(
    store: Store, send: Send
) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v", "max_stored_values": 5}]})

    send("e", v=[str(number) for number in range(256)])
    small = store.events.distinct("s")
    send("e", v=[str(number) for number in range(5_000)])
    large = store.events.distinct("s")

    assert small == Distinct(count=256, exact=True)
    assert not large.exact
    assert large.count == pytest.approx(5_000, rel=0.03)


def test_distinct_over_several_keys_counts_a_value_once(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[day]"], "add": "v", "max_stored_values": 10}]})
    send("e", day="mon", v=["a", "b"])
    send("e", day="tue", v=["b", "c"])
    send("e", day="wed", v=[str(number) for number in range(2_000)])
    send("e", day="thu", v=[str(number) for number in range(1_000, 3_000)])

    assert store.events.distinct(["mon", "tue", "none"]) == Distinct(count=3, exact=True)
    assert store.events.distinct(["mon", "mon"]).count == 2
    week = store.events.distinct(["mon", "tue", "wed", "thu"])
    assert week.count == pytest.approx(3_003, rel=0.03)
    assert not week.exact


@pytest.mark.parametrize("keys", [[], ["k"] * 1_001])
def test_a_bounded_number_of_keys_is_merged(store: Store, keys: list[str]) -> None:
    with pytest.raises(BadInput, match="keys at once"):
        store.events.distinct(keys)
    with pytest.raises(BadInput, match="keys at once"):
        store.events.top(keys)


def test_a_series_has_a_number_for_each_step(store: Store, send: Send) -> None:
    store.events.deploy(UNIQUE)
    for day, addresses in ((1, "ab"), (3, "aab"), (4, "a")):
        for address in addresses:
            send("signup", _ip=address, _at=f"2012-08-0{day}T10:00:00Z")

    unique = "unique:signup:{day}"
    distinct = store.events.series(unique, "distinct", "2012-08-01", "2012-08-04")
    gross = store.events.series("unique:signup:{daily}", "gross", "2012-08-01", "2012-08-04")
    weeks = store.events.series("unique:signup:{week}", "size", "2012-W30", "2012-08-04")

    assert distinct == [
        Point(label="2012-08-01", value=2),
        Point(label="2012-08-02", value=0),
        Point(label="2012-08-03", value=2),
        Point(label="2012-08-04", value=1),
    ]
    assert [point.value for point in gross] == [2, 0, 3, 1]
    assert [(point.label, point.value) for point in weeks] == [("2012-W30", 0), ("2012-W31", 2)]


@pytest.mark.parametrize(
    ("template", "by", "begin", "end"),
    [
        ("no label", "gross", "2012", "2013"),
        ("{day}{day}", "gross", "2012", "2013"),
        ("{eon}", "gross", "2012", "2013"),
        ("{day}", "colour", "2012", "2013"),
        ("{day}", "gross", "soon", "2013"),
        ("{minute}", "gross", "2012", "2013"),
    ],
)
def test_a_bad_series_is_refused(
    store: Store, template: str, by: Any, begin: str, end: str
) -> None:
    with pytest.raises(BadInput):
        store.events.series(template, by, begin, end)


def test_keys_are_listed_by_prefix_a_page_at_a_time(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "e": [
                {"targets": ["['a', 'b']", "['x', 'y']"], "add": "'v'"},
                {"targets": ["['a:board']"], "count_frequency": "'v'"},
            ]
        }
    )
    send("e")

    first = store.events.keys("a:", limit=2)
    second = store.events.keys("a:", limit=2, after=first.next)

    assert first.keys == [
        KeyInfo(key="a:board", kind="leaderboard"),
        KeyInfo(key="a:x", kind="set"),
    ]
    assert (second.keys, second.next) == ([KeyInfo(key="a:y", kind="set")], None)
    assert len(store.events.keys().keys) == 5


def test_many_reads_see_one_snapshot(store: Store, send: Send) -> None:
    store.events.deploy(UNIQUE | {"e": [{"targets": ["['b']"], "count_frequency": "v"}]})
    send("e", v=["x", "x", "y"])
    send("signup", _ip="a", _at="2012-08-01T10:00:00Z")
    key = "unique:signup:2012-08-01"

    results: list[Any] = store.events.read(
        [
            key,
            f"#{key}",
            {"op": "contains", "key": key, "value": "a"},
            {"op": "gross", "key": key},
            {"op": "distinct", "key": [key, key]},
            {"op": "top", "key": "b", "k": 1},
            {"op": "members", "key": key, "limit": 1},
            {
                "op": "series",
                "template": "unique:signup:{day}",
                "by": "gross",
                "from": "2012-08-01",
                "to": "2012-08-02",
            },
        ]
    )

    members, size, member, gross, distinct, top, page, series = results
    assert members == page
    assert [each.value for each in members.members] == ["a"]
    assert (size, member.value, gross, distinct.count) == (1, "a", 1, 1)
    assert [(entry.value, entry.count) for entry in top] == [("x", 2)]
    assert [point.value for point in series] == [1, 0]


@pytest.mark.parametrize("query", [{"op": "drop"}, {"op": "gross"}, {"op": "top", "kay": "b"}, {}])
def test_a_bad_query_is_refused(store: Store, query: Any) -> None:
    with pytest.raises(BadInput):
        store.events.read([query])


def test_forgetting_deletes_a_key_with_its_counters(store: Store, clock: Clock, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s', 't']"], "add": "v"}]})
    stored = keys_below(store, store)
    send("e", v=[str(number) for number in range(3_000)])

    assert store.events.forget("s") is True
    assert store.events.forget("t") is True

    assert (store.events.gross("s"), store.events.size("s")) == (0, 0)
    assert store.events.keys().keys == []
    send("e", v="fresh")
    assert store.events.distinct("s") == Distinct(count=1, exact=True)
    store.events.forget("s")
    store.events.forget("t")
    for _ in range(20):
        store.sweep()
        clock.advance(seconds=10)
    assert keys_below(store, store) == stored


def test_what_is_no_key_or_no_query_is_refused(store: Store) -> None:
    rubbish: list[Any] = [5, [5], [{"op": "gross", "key": 5}], [{"op": "size", "key": None}], "#a"]

    for queries in rubbish:
        with pytest.raises(BadInput):
            store.events.read(queries)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("members", {"key": "s", "limit": "7"}),
        ("members", {"key": "s", "limit": 1.5}),
        ("members", {"key": "s", "after": 7}),
        ("keys", {"limit": None}),
        ("top", {"key": "b", "k": "7"}),
        ("top", {"key": 7}),
        ("distinct", {"key": {"s": 1}}),
        ("series", {"template": 7, "by": "gross", "from_": "2012", "to": "2013"}),
    ],
)
def test_arguments_of_another_type_are_refused(
    store: Store, operation: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(BadInput):
        getattr(store.events, operation)(**arguments)


def test_a_board_that_is_named_twice_is_merged_once(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["['b']"], "count_frequency": "'v'"}]})
    store.events.send({"name": "e"})

    assert store.events.top(["b", "b"]) == store.events.top("b")


def test_a_window_shorter_than_a_step_is_the_present_step(
    store: Store, clock: Clock, send: Send
) -> None:
    store.events.deploy({"e": [{"targets": ["['s']", "[@week]"], "add": "v"}]})
    send("e", v=["a", "b"])
    clock.advance(seconds=7_200)

    assert store.events.distinct("s:{week}", last="1h").count == 2
    assert store.events.gross("s:{week}", last=60) == 2


@pytest.mark.parametrize("last", [0, -1, float("inf"), float("nan"), "soon", True])
def test_what_is_no_duration_is_no_window(store: Store, last: Any) -> None:
    with pytest.raises(BadInput, match="a window must be a duration"):
        store.events.distinct("s:{day}", last=last)


def test_reads_that_take_long_together_are_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.call_time.thread_time", count(0, 1_000).__next__)

    with pytest.raises(BatchTooLong, match="Ask for fewer in one call"):
        store.events.read(["#a", "#b"])
    assert store.events.read(["#a"]) == [0]
