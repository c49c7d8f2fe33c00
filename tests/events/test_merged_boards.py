"""Leaderboards of several keys together: indexed ones are read from the top, as far as needed."""

import random
from collections.abc import Sequence
from math import ceil
from typing import Any

import pytest

from holdfast.engine.contract import Reader
from holdfast.events import board_rows, boards
from holdfast.events.codec import ORDERED
from holdfast.events.reads import Reads
from holdfast.events.record_cache import RecordCache
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send
from tests.events.test_board_rows import Counting

LARGE = 40  # candidates, above which a board has an index in these tests
Entry = tuple[str, int, int]


@pytest.fixture(autouse=True)
def small_boards_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_rows, "UNINDEXED_CANDIDATES", LARGE)
    monkeypatch.setattr(boards, "MIN_TRACKED_VALUES", 90)


@pytest.fixture
def counted(store: Store) -> Store:
    """A store whose events `e` are counted on the board `b`, and `fading` ones lose weight."""
    plain = {"targets": ["[b]"], "count_frequency": "v", "max_stored_values": 5}
    store.events.deploy({"e": [plain], "fading": [{**plain, "half_life": 600}]})
    return store


def added_up(reader: Reader, keys: Sequence[str], k: int) -> list[tuple[str, float, float]]:
    """The highest of several boards, from all candidates of all of them."""
    cache = RecordCache(reader)
    records = [cache.record(key.encode()) for key in keys]
    fades = any(record.half_life_ms for record in records)
    factors = [boards.factor_now(cache, record) if fades else 1 for record in records]
    tracked = [
        {each.value: each for each in boards.all_candidates(cache, record)} for record in records
    ]
    totals = []
    for value in set().union(*tracked):
        count = error = 0.0
        for record, factor, candidates in zip(records, factors, tracked, strict=True):
            found = candidates.get(value)
            count += factor * (record.floor if found is None else found.count)
            error += factor * (record.floor if found is None else found.error)
        totals.append((value.decode(), count, error))
    return sorted(totals, key=lambda each: (-each[1], each[0].encode()))[:k]


def fill(send: Send, chance: random.Random, board: str, event: str = "e") -> None:
    """Counts values that few or many boards share, evenly or not, more than a board tracks."""
    shape, shared = chance.choice((0.3, 1, 3)), chance.random() < 0.7
    most = chance.choice((8, 60, 200))
    values = []
    for _ in range(chance.randrange(20, 300)):
        number = int(most * chance.random() ** shape)
        text = f"{number:x}" if shared else f"{board} {number}"
        values.append("long " * 40 + text if number % 9 == 0 else text)
    for begin in range(0, len(values), 50):
        send(event, b=board, v=values[begin : begin + 50])


@pytest.mark.every_engine
def test_the_highest_of_several_boards_are_those_of_all_candidates_added_up(
    counted: Store, send: Send
) -> None:
    chance = random.Random(5)
    keys = [f"b{number}" for number in range(10)]
    for key in keys:
        fill(send, chance, key)

    with counted._runner.view() as reader:
        cache = RecordCache(reader)
        ordered = [cache.record(key.encode()).flags & ORDERED != 0 for key in keys]
        assert {True, False} == set(ordered)  # both forms, and boards that have let values go
        assert any(cache.record(key.encode()).floor for key in keys)
        for _ in range(60):
            some = chance.sample(keys, chance.randrange(2, 7))
            k = chance.choice((1, 2, 5, 20, 500))
            top = Reads(reader).top(some, k)
            assert [(each.value, each.count, each.error) for each in top] == added_up(
                reader, some, k
            )


def test_the_highest_of_fading_boards_are_those_of_all_candidates_added_up(
    counted: Store, send: Send, clock: Clock
) -> None:
    chance = random.Random(6)
    keys = [f"b{number}" for number in range(8)]
    for key in keys:
        fill(send, chance, key, "fading" if chance.random() < 0.7 else "e")
        clock.advance(seconds=400)

    with counted._runner.view() as reader:
        for _ in range(30):
            some = chance.sample(keys, chance.randrange(2, 6))
            k = chance.choice((1, 3, 20))
            expected = added_up(reader, some, k)
            found = Reads(reader).top(some, k)
            fades = found[0].score is not None
            scores = [each.score if fades else each.count for each in found]
            assert scores == pytest.approx([total for _, total, _ in expected])
            assert [each.error for each in found] == pytest.approx(
                [ceil(error - 1e-6) for _, _, error in expected], abs=1
            )


def test_a_few_of_many_candidates_of_several_boards_are_read(
    counted: Store, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "MIN_TRACKED_VALUES", 2_000)
    pages = [f"page {number:04}" for number in range(1_000)]
    for board, first in (("mon", 0), ("tue", 2), ("wed", 4)):
        rising = [page for page in pages[first : first + 6] for _ in range(20)]
        send("e", b=board, v=pages + rising)

    found, keys = read(counted, ["mon", "tue", "wed"], 2)
    alike, _ = read(counted, ["mon", "tue", "wed"], 999)

    assert found == [("page 0004", 63, 0), ("page 0005", 63, 0)]
    assert keys < 300  # of 3,000
    assert [value for value, _, _ in alike[10:]] == pages[10:999]


def read(store: Store, keys: list[str], k: int) -> tuple[list[Entry], int]:
    with store._runner.view() as reader:
        counting: Any = CountingMany(reader)
        found = Reads(counting).top(keys, k)
    return [(each.value, each.count, each.error) for each in found], counting.keys


class CountingMany(Counting):
    """A reader that also counts keys that are read together."""

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.keys += len(keys)
        return self._reader.get_many(keys)
