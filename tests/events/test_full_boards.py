"""Full leaderboards: a newcomer takes the place of a candidate with the smallest count.

Those are listed with one read of the board: first all with the smallest count, and behind them, as
a second level, all with one more.
"""

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from holdfast.events import boards
from holdfast.store import Store
from tests.events.conftest import Send
from tests.stores import problems_of

TRACKED = 6  # candidates of a board in these tests; a wider one has 9
SCHEMA: dict[str, Any] = {
    "e": [{"targets": ["['b']"], "count_frequency": "v", "max_stored_values": 6, "weight": "w"}],
    "wide": [{"targets": ["['b']"], "count_frequency": "v", "max_stored_values": 9, "weight": "w"}],
}

Board = dict[str, tuple[int, int]]  # value -> count and error


@pytest.fixture(autouse=True)
def boards_are_soon_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "MIN_TRACKED_VALUES", 1)
    monkeypatch.setattr(boards, "TRACKED_PER_ENTRY", 1)
    monkeypatch.setattr(boards, "PACKED_BOARD_ENTRIES", 2)


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The smallest count of the board whenever all of it was read."""
    found: list[int] = []
    list_smallest = boards._list_smallest

    def listed(cache: Any, record: Any, prefix: bytes) -> None:
        list_smallest(cache, record, prefix)
        found.append(record.smallest)

    monkeypatch.setattr(boards, "_list_smallest", listed)
    return found


def board(store: Store) -> Board:
    return {each.value: (each.count, each.error) for each in store.events.top("b", 100)}


def test_candidates_with_one_more_than_the_smallest_count_follow_without_another_read(
    store: Store, send: Send, lists: list[int]
) -> None:
    store.events.deploy(SCHEMA)
    send("e", v=["once 1", "once 2", *["twice 1", "twice 2", "twice 3"] * 2], w=1)
    send("e", v="often", w=9)

    first = [f"new {n}" for n in range(5)]
    for value in first:
        send("e", v=value, w=1)

    assert lists == [1]
    assert board(store) == {
        "often": (9, 0),
        "new 0": (2, 1),
        "new 1": (2, 1),
        **{value: (3, 2) for value in first[2:]},
    }

    send("e", v="new 5", w=1)  # those that came meanwhile are found by the next read

    assert lists == [1, 2]
    assert len({"new 0", "new 1"} & board(store).keys()) == 1


def test_a_candidate_of_the_second_level_that_was_counted_since_keeps_its_place(
    store: Store, send: Send, lists: list[int]
) -> None:
    store.events.deploy(SCHEMA)
    send("e", v=["once", *["a", "b", "c", "d", "e"] * 2], w=1)
    send("e", v="new 0", w=1)
    send("e", v=["a", "b", "c", "d"], w=1)

    send("e", v="new 1", w=1)

    assert lists == [1]
    assert board(store).keys() == {"a", "b", "c", "d", "new 0", "new 1"}


counted = st.tuples(
    st.sampled_from(["e", "e", "e", "wide"]),
    st.integers(0, 14),
    st.sampled_from([1, 1, 1, 2, 5, 0]),
)


@given(st.lists(counted, min_size=20, max_size=90))
@settings(
    deadline=None,
    max_examples=40,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_newcomer_takes_the_place_of_a_smallest_candidate(
    store: Store, events: list[tuple[str, int, int]]
) -> None:
    store.events.forget("b")
    store.events.deploy(SCHEMA)
    truth: Counter[str] = Counter()
    floor = 0  # the highest count that was ever let go
    before: Board = {}
    for name, number, weight in events:
        value = f"v{number}"
        store.events.send({"name": name, "attributes": {"v": value, "w": weight}})
        truth[value] += weight
        after = board(store)

        room = SCHEMA[name][0]["max_stored_values"]
        counts = sorted(count for count, _ in before.values())
        gone = sorted(before[each][0] for each in before.keys() - after.keys())
        assert len(after) == min(room, len(before.keys() | {value}))
        if room >= len(before):
            assert gone == counts[: len(gone)]
        floor = max([floor, *gone])
        came = floor + weight, floor
        if value not in before:
            assert after[value] == came
        elif room >= len(before):
            assert after[value] == (before[value][0] + weight, before[value][1])
        else:  # the board has become smaller: first without it, maybe
            assert after[value] in (came, (before[value][0] + weight, before[value][1]))
        for each, times in truth.items():
            count, error = after.get(each, (floor, floor))
            assert count - error <= times <= count
        before = after
    assert problems_of(store) == []
