"""Leaderboards: exact while all values fit, and within their error from then on."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import pytest

from holdfast.events import board_rows, boards
from holdfast.events.codec import prepare
from holdfast.events.record_cache import RecordWriter
from holdfast.store import Store
from tests.events.conftest import Send
from tests.repetitions import repeated


def zipf(seed: int, values: int, events: int) -> list[int]:
    """A stream in which value n comes up in proportion to 1 / (n + 1)."""
    weights = list(accumulate(1 / (n + 1) for n in range(values)))
    return random.Random(seed).choices(range(values), cum_weights=weights, k=events)


def deploy(store: Store, **fields: Any) -> None:
    store.events.deploy({"e": [{"targets": ["['b']"], "count_frequency": "v", **fields}]})


def counts(store: Store, key: str = "b", k: int | None = None) -> list[tuple[str, int, int]]:
    return [(entry.value, entry.count, entry.error) for entry in store.events.top(key, k)]


def test_the_most_frequent_values_come_first_and_ties_by_value(store: Store, send: Send) -> None:
    deploy(store, max_stored_values=3)

    send("e", v=["c", "a", "b", "c", "d", "e", "e", "e"])

    assert counts(store) == [("e", 3, 0), ("c", 2, 0), ("a", 1, 0)]
    assert counts(store, k=10)[3:] == [("b", 1, 0), ("d", 1, 0)]
    assert counts(store, k=0) == []
    assert (store.events.gross("b"), store.events.distinct("b").count) == (8, 5)
    assert store.events.size("b") == 3


def test_the_highest_of_a_large_board_are_those_of_a_sort_of_all(
    store: Store, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_rows, "_ROWS_SORTED_AT_ONCE", 8)  # so that a small board is cut often
    deploy(store, max_stored_values=60)
    chance = random.Random(11)
    names = [("x" * 300 if n % 7 == 0 else "") + f"{chance.randrange(10**6):x}" for n in range(150)]
    stream = [name for name in names for _ in range(chance.choice((1, 1, 1, 2, 2, 70_000 % 9)))]
    send("e", v=stream)

    expected = sorted(Counter(stream).items(), key=lambda each: (-each[1], each[0].encode()))

    for k in (1, 5, 30, 60, 149, 500):
        assert [(value, count) for value, count, _ in counts(store, k=k)] == expected[:k]


@pytest.mark.parametrize("different", [1, 32, 33, 500, 1_000])
def test_counts_are_exact_while_all_values_are_tracked(
    store: Store, send: Send, different: int
) -> None:
    deploy(store, max_stored_values=5)
    stream = [str(number % different) for number in range(2_000)]

    for begin in range(0, 2_000, 100):
        send("e", v=stream[begin : begin + 100])

    truth = Counter(stream)
    assert {value: count for value, count, _ in counts(store, k=10_000)} == dict(truth)
    assert all(error == 0 for _, _, error in counts(store, k=10_000))
    distinct = store.events.distinct("b")
    assert (distinct.count, distinct.exact) == (different, True)


def test_a_full_board_is_right_within_its_errors(store: Store) -> None:
    deploy(store, max_stored_values=100)
    stream = zipf(1, 20_000, 20_000)

    store.events.send_stream(
        {"name": "e", "attributes": {"v": [str(value) for value in stream[begin : begin + 50]]}}
        for begin in range(0, len(stream), 50)
    )

    check(store.events.top("b"), Counter(str(value) for value in stream), tracked=1_000)
    assert store.events.gross("b") == 20_000
    true = len(set(stream))
    assert store.events.distinct("b").count == pytest.approx(true, rel=0.03)


class Memory(dict[bytes, bytes]):
    """A transaction on nothing but memory: so many counts through an engine would take long."""

    space = b""
    now = 0.0
    put = dict.__setitem__
    delete = dict.__delitem__

    def scan(self, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter([(key, self[key]) for key in sorted(self) if begin <= key < end])


def test_the_top_hundred_of_very_many_events_are_right_within_their_errors() -> None:
    count = repeated(200_000, full=1_000_000)
    stream = [b"%d" % value for value in zipf(2, 100_000, count)]
    batch = RecordWriter(Memory())  # type: ignore[arg-type]  # all of it that a board uses
    records = [batch.record(b"b")]
    prepared = {raw: prepare(raw, b"digest", 0) for raw in set(stream)}

    for raw in stream:
        boards.count(batch, records, prepared[raw], 100, gross=1, counted=False)

    entries = boards.top(batch, records[0], 100)
    found = [Entry(entry.value.decode(), entry.count, entry.error) for entry in entries]
    check(found, Counter(raw.decode() for raw in stream), tracked=1_000)


def test_several_boards_are_merged(store: Store, send: Send) -> None:
    store.events.deploy(
        {"e": [{"targets": ["['b']", "[day]"], "count_frequency": "v", "max_stored_values": 2}]}
    )

    send("e", day="mon", v=["a", "a", "b", "c"])
    send("e", day="tue", v=["b", "b", "c", "d"])

    merged = counts(store, ["b:mon", "b:tue", "b:none"], k=3)  # type: ignore[arg-type]  # several
    assert merged == [("b", 3, 0), ("a", 2, 0), ("c", 2, 0)]
    assert len(store.events.top(["b:mon", "b:tue"])) == 2


def test_merged_boards_are_right_within_their_errors(store: Store) -> None:
    store.events.deploy(
        {"e": [{"targets": ["['b']", "[day]"], "count_frequency": "v", "max_stored_values": 50}]}
    )
    truth: Counter[str] = Counter()
    for day in range(3):
        stream = [str(value) for value in zipf(day, 5_000, 6_000)]
        truth.update(stream)
        store.events.send_stream(
            {"name": "e", "attributes": {"day": day, "v": stream[begin : begin + 50]}}
            for begin in range(0, len(stream), 50)
        )

    merged = store.events.top([f"b:{day}" for day in range(3)])

    check(merged, truth, tracked=1_000)


def test_no_entries_keep_the_counters_only(store: Store, send: Send) -> None:
    deploy(store, max_stored_values=0)

    send("e", v=["a", "b", "a"])

    assert counts(store) == counts(store, k=10) == []
    assert (store.events.gross("b"), store.events.distinct("b").count) == (3, 2)


def test_no_count_is_too_low_after_the_board_was_switched_off_and_on(
    store: Store, send: Send
) -> None:
    store.events.deploy(
        {
            "on": [{"targets": ["['b']"], "count_frequency": "v", "max_stored_values": 10}],
            "off": [{"targets": ["['b']"], "count_frequency": "v", "max_stored_values": 0}],
        }
    )

    send("on", v=["a", "a", "a", "b"])
    send("off", v=["a", "c"])
    switched_off = counts(store, k=10)
    send("on", v=["a", "d"])

    assert switched_off == []
    found = {value: (count, error) for value, count, error in counts(store)}
    assert 5 <= found["a"][0] <= 5 + found["a"][1]
    assert 1 <= found["d"][0] <= 1 + found["d"][1]


def test_a_smaller_board_keeps_the_highest_candidates(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "large": [{"targets": ["['b']"], "count_frequency": "v", "max_stored_values": 200}],
            "small": [{"targets": ["['b']"], "count_frequency": "v", "max_stored_values": 10}],
        }
    )
    send("large", v=[str(n) for n in range(1_500)])
    send("large", v=[str(n) for n in range(500)])

    send("small", v="new")

    assert counts(store)[0] == ("0", 2, 0)
    assert len(counts(store, k=5_000)) == 1_000
    found = {value: (count, error) for value, count, error in counts(store, k=5_000)}
    assert found["new"] == (2, 1)


class Entry:
    def __init__(self, value: str, count: int, error: int) -> None:
        self.value = value
        self.count = count
        self.error = error


def check(entries: Any, truth: Counter[str], *, tracked: int) -> None:
    """Every true heavy hitter is there, no count is below the truth, none above by more than its
    error."""
    for entry in entries:
        assert truth[entry.value] <= entry.count <= truth[entry.value] + entry.error
    found = {entry.value for entry in entries}
    lowest = entries[-1].count
    heavy = [value for value, count in truth.items() if count > lowest]
    assert heavy
    assert all(value in found for value in heavy)
    total = sum(truth.values())
    assert max(entry.error for entry in entries) <= total / tracked
