"""Very large leaderboards: an index by count finds a few candidates without reading the others."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.engine.contract import Reader
from holdfast.events import board_rows
from holdfast.events.codec import ORDERED, ORDERING, KeyRecord
from holdfast.events.layout import COUNTS, keys_of
from holdfast.events.reads import Reads
from holdfast.events.record_cache import RecordCache
from holdfast.keys import prefix_range
from holdfast.store import Store
from tests.events.conftest import Send
from tests.stores import problems_of

LARGE = 40  # candidates, above which a board has an index in these tests


@pytest.fixture(autouse=True)
def small_boards_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_rows, "UNINDEXED_CANDIDATES", LARGE)


def deploy(store: Store, **fields: Any) -> None:
    store.events.deploy({"e": [{"targets": ["['b']"], "count_frequency": "v", **fields}]})


def counts(store: Store, k: int) -> list[tuple[str, int, int]]:
    return [(entry.value, entry.count, entry.error) for entry in store.events.top("b", k)]


def record(store: Store) -> KeyRecord:
    with store._runner.view() as reader:
        return RecordCache(reader).record(b"b")


@pytest.mark.every_engine
def test_the_highest_of_a_very_large_board_are_those_of_a_sort_of_all(
    store: Store, send: Send
) -> None:
    deploy(store)
    chance = random.Random(11)
    names = [("x" * 300 if n % 7 == 0 else "") + f"{chance.randrange(10**6):x}" for n in range(120)]
    stream = [name for name in names for _ in range(chance.choice((1, 1, 1, 2, 2, 7)))]
    chance.shuffle(stream)
    for begin in range(0, len(stream), 50):
        send("e", v=stream[begin : begin + 50])

    expected = sorted(Counter(stream).items(), key=lambda each: (-each[1], each[0].encode()))

    assert record(store).flags & ORDERED
    for k in (0, 1, 5, 30, 119, 500):
        assert [(value, count) for value, count, _ in counts(store, k)] == expected[:k]


def test_a_few_of_many_candidates_are_read_alone(store: Store, send: Send) -> None:
    deploy(store)
    send("e", v=[f"page {n}" for n in range(500)] + ["page 7"])

    with store._runner.view() as reader:
        counting = Counting(reader)
        found = Reads(counting).top("b", 3)  # type: ignore[arg-type]  # all that `top` uses

    assert [entry.value for entry in found] == ["page 7", "page 0", "page 1"]
    assert counting.keys <= 4


def test_a_newcomer_to_a_full_board_takes_the_place_of_a_smallest_candidate(
    store: Store, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.events.boards.MIN_TRACKED_VALUES", 60)
    deploy(store, max_stored_values=6)
    send("e", v=[f"old {n:02}" for n in range(60)])
    send("e", v=[f"old {n:02}" for n in range(59)])

    send("e", v="new")

    found = {value: (count, error) for value, count, error in counts(store, 100)}
    assert len(found) == 60
    assert found["new"] == (2, 1)
    assert "old 59" not in found


def test_a_board_that_an_older_version_has_written_is_read_and_indexed_by_later_counts(
    store: Store, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(store, max_stored_values=20)
    monkeypatch.setattr(board_rows, "UNINDEXED_CANDIDATES", 10**9)
    send("e", v=[f"page {n:03}" for n in range(200) for _ in range(1 + n % 5)])
    monkeypatch.setattr(board_rows, "UNINDEXED_CANDIDATES", LARGE)
    old = counts(store, 1_000)

    states: list[int] = []
    while not states or states[-1] == ORDERING:
        send("e", v="page 100")
        states.append(record(store).flags & (ORDERED | ORDERING))

    assert [count for _, count, _ in old] == sorted((1 + n % 5 for n in range(200)), reverse=True)
    assert 10 < len(states) < 20  # 16 candidates with each count
    assert states[-1] == ORDERED
    grown = {value: count for value, count, _ in old} | {"page 100": 1 + len(states)}
    assert {value: count for value, count, _ in counts(store, 1_000)} == grown
    assert counts(store, 1) == [("page 100", 1 + len(states), 0)]


def test_an_event_that_fails_alone_leaves_the_index_as_it_was(store: Store, send: Send) -> None:
    handlers = [
        {"targets": ["['b']"], "count_frequency": "v"},
        {"targets": ["['b']"], "count_frequency": "v", "weight": "w"},
    ]
    store.events.deploy({"e": handlers})
    send("e", v=[f"page {n}" for n in range(100)], w=1)
    before = counts(store, 200)

    bad = {"name": "e", "attributes": {"v": ["page 5", "fresh", "x" * 9_000], "w": 1}}
    reply = store.events.send_many([bad, {"name": "e", "attributes": {"v": "page 9", "w": 4}}])

    assert (reply.accepted, len(reply.errors)) == (1, 1)
    assert counts(store, 1) == [("page 9", 7, 0)]
    assert sorted(counts(store, 200)[1:]) == sorted(set(before) - {("page 9", 2, 0)})


@pytest.mark.damages
def test_a_check_finds_an_index_that_does_not_agree(store: Store, send: Send) -> None:
    deploy(store)
    send("e", v=[f"page {n}" for n in range(100)])
    generation = record(store).generation
    store._runner.transact(
        lambda tx: tx.clear(*prefix_range(keys_of(tx.space).generation(generation) + COUNTS))
    )

    assert any("index by count" in problem for problem in problems_of(store))


class Counting:
    """A reader that counts the keys that are read."""

    def __init__(self, reader: Reader) -> None:
        self.space, self.now = reader.space, reader.now
        self.keys = 0
        self._reader = reader

    def get(self, key: bytes) -> bytes | None:
        self.keys += 1
        return self._reader.get(key)

    def scan(self, *range: bytes, **options: Any) -> Iterator[tuple[bytes, bytes]]:
        for pair in self._reader.scan(*range, **options):
            self.keys += 1
            yield pair


@pytest.mark.every_engine
@pytest.mark.parametrize("many", [3, 30, 120])
def test_the_descending_order_is_that_of_a_sort_of_all(store: Store, send: Send, many: int) -> None:
    deploy(store, max_stored_values=100)
    chance = random.Random(many)
    stream = [f"{n % 10}{n}" for n in range(many) for _ in range(chance.choice((1, 1, 2, 2, 7)))]
    send("e", v=stream)

    expected = sorted(
        Counter(stream).items(), key=lambda each: (each[1], each[0].encode()), reverse=True
    )

    with store._runner.view() as reader:
        for k in (1, 2, 7, 50, 100, 500):
            found = Reads(reader).top_descending("b", k)
            assert [(each.value, each.count) for each in found] == expected[: min(k, 100)]


def test_the_first_in_descending_order_of_many_equal_ones_cost_few_reads(
    store: Store, send: Send
) -> None:
    deploy(store, max_stored_values=100)
    send("e", v=[f"v{n:03}" for n in range(400)])

    with store._runner.view() as reader:
        counting = Counting(reader)
        found = Reads(counting).top_descending("b", 3)  # type: ignore[arg-type]  # it reads

    assert [each.value for each in found] == ["v399", "v398", "v397"]
    assert counting.keys <= 10
