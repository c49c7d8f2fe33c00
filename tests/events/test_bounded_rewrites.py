"""Changed schemas and full batches: large sets and leaderboards change in bounded steps."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.events import board_rows, boards, sets
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send, values
from tests.stores import problems_of

HOUR = 3_600


@pytest.fixture(autouse=True)
def limits_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "MIN_TRACKED_VALUES", 1)
    monkeypatch.setattr(boards, "PACKED_BOARD_ENTRIES", 2)
    monkeypatch.setattr(boards, "UNINDEXED_CANDIDATES", 20)
    monkeypatch.setattr(board_rows, "UNINDEXED_CANDIDATES", 20)


def trends(k: int, half_life: int | None) -> dict[str, Any]:
    handler = {"targets": ["[k]"], "count_frequency": "v", "max_stored_values": k, "weight": "w"}
    return {"e": [handler if half_life is None else {**handler, "half_life": half_life}]}


@pytest.fixture
def rewritten(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The leaderboards that were written again."""
    found: list[bytes] = []
    rewrite = boards._rewrite

    def noted(cache: Any, record: Any, tracked: int, factor: float) -> None:
        found.append(record.key)
        rewrite(cache, record, tracked, factor)

    monkeypatch.setattr(boards, "_rewrite", noted)
    return found


def scores(store: Store, key: str = "b") -> dict[str, float]:
    return {each.value: round(each.score or 0, 3) for each in store.events.top(key, 1_000)}


@pytest.mark.every_engine
def test_another_half_life_writes_no_candidate_again(
    store: Store, send: Send, clock: Clock, rewritten: list[bytes]
) -> None:
    store.events.deploy(trends(10, HOUR))
    send("e", k="b", v="old", w=8)
    clock.advance(seconds=2 * HOUR)
    for half_life in (10 * HOUR, 1, 100 * 365 * 24 * HOUR, 2 * HOUR):
        store.events.deploy(trends(10, half_life))
        send("e", k="b", v="new", w=1)

    assert scores(store) == {"old": 2, "new": 4}
    clock.advance(seconds=2 * HOUR)
    assert scores(store) == {"old": 1, "new": 2}
    assert not rewritten


def test_of_many_boards_one_event_scales_only_some_down(
    store: Store,
    send: Send,
    clock: Clock,
    rewritten: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boards, "MAX_DECAYING_CANDIDATES", 6)
    store.events.deploy(trends(10, HOUR))
    keys = [f"b{number}" for number in range(5)]
    send("e", k=keys, v=["x", "y", "z"], w=2**20)
    clock.advance(seconds=21 * HOUR)
    steps = []
    for _ in range(4):
        rewritten.clear()
        send("e", k=keys, v="x", w=1)
        steps.append(len(rewritten))

    assert steps == [2, 2, 1, 0]
    assert [scores(store, key) for key in keys] == [{"x": 4.5, "y": 0.5, "z": 0.5}] * 5


def test_a_board_with_a_half_life_tracks_a_limited_number(
    store: Store, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "MAX_DECAYING_CANDIDATES", 30)
    store.events.deploy(trends(100, None))
    for number in range(50):
        send("e", k="b", v=f"v{number}", w=number + 1)
    store.events.deploy(trends(100, HOUR))
    send("e", k="b", v="new", w=1)

    found = scores(store)

    assert len(found) == 30
    assert max(found, key=found.__getitem__) == "v49"
    assert found["new"] == 22  # as much as the last one that was dropped, and 1
    assert problems_of(store) == []


def test_a_large_board_that_tracks_fewer_is_shrunk_by_the_counts_that_follow(
    store: Store, send: Send, rewritten: list[bytes]
) -> None:
    store.events.deploy(trends(20, None))
    for number in range(100):
        send("e", k="b", v=f"v{number}", w=number + 1)
    store.events.deploy(trends(4, None))
    sizes = []
    for _ in range(5):
        send("e", k="b", v="v99", w=1)
        sizes.append(len(store.events.top("b", 1_000)))

    assert sizes == [84, 68, 52, 40, 40]
    assert not rewritten
    assert [each.value for each in store.events.top("b")] == ["v99", "v98", "v97", "v96"]
    assert problems_of(store) == []
    send("e", k="b", v="new", w=1)
    assert ("new", 62, 61) in [(e.value, e.count, e.error) for e in store.events.top("b", 1_000)]


def test_no_weight_is_too_large_for_a_board_with_a_half_life(
    store: Store, send: Send, clock: Clock
) -> None:
    """A weight of 2^31 after 17 half-lives did not fit into 64 bits, and was an internal error."""
    store.events.deploy(trends(10, HOUR))
    send("e", k="b", v=["a", "b", "c", "d"], w=1)
    for _ in range(19):
        clock.advance(seconds=HOUR)
        send("e", k="b", v=["a", "b"], w=2**31)

    found = scores(store)

    assert found["a"] == found["b"] == pytest.approx(2**32, rel=1e-4)
    for _ in range(10):
        send("e", k="b", v=["a"] * 500, w=2**31)
    assert scores(store)["a"] > 2**32


@pytest.mark.every_engine
def test_a_set_whose_bound_is_lowered_loses_a_limited_number_with_each_write(
    store: Store, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sets, "EVICTED_PER_WRITE", 300)
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})
    send("e", v=[f"v{number}" for number in range(1_500)])
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v", "max_stored_values": 700}]})
    sizes = []
    for number in range(1_500, 1_504):
        send("e", v=f"v{number}")
        sizes.append(store.events.size("s"))

    assert sizes == [901, 700, 700, 700]
    assert values(store, "s") == [f"v{number}" for number in range(1_503, 803, -1)]
    assert problems_of(store) == []


# --- evictions in a batch ------------------------------------------------------------------------


def calls_of(work: Callable[[], object]) -> int:
    """How many functions `work` calls: it grows as the time does, and is always the same."""
    counted = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal counted
        counted += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.only_on("lmdb")
@pytest.mark.parametrize(
    "handler",
    [
        {"targets": ["['k']"], "add": "v", "max_stored_values": 600},
        {"targets": ["['k']"], "count_frequency": "v", "max_stored_values": 60},
    ],
)
def test_a_batch_of_newcomers_to_what_is_full_costs_as_much_as_its_events(
    store: Store, handler: dict[str, Any]
) -> None:
    """Each newcomer had to skip all that the batch had evicted before."""
    store.events.deploy({"e": [handler]})

    def send(first: int, last: int) -> None:
        events = [{"name": "e", "attributes": {"v": f"v{n:05}"}} for n in range(first, last)]
        assert store.events.send_many(events).accepted == last - first

    send(0, 1_000)
    few = calls_of(lambda: send(1_000, 1_200))
    many = calls_of(lambda: send(1_200, 2_000))

    assert many < 6 * few
    assert problems_of(store) == []


@pytest.mark.every_engine
def test_evictions_of_a_batch_heed_what_comes_late(store: Store) -> None:
    """An event of an earlier time takes its place among those that were evicted."""
    store.events.deploy(
        {
            "e": [
                {"targets": ["['s']"], "add": "v", "max_stored_values": 300},
                {"targets": ["['b']"], "count_frequency": "v", "max_stored_values": 30},
            ]
        }
    )
    times = [1_000 + n for n in range(400)] + [n % 7 for n in range(400)] + [2_000, 2_001]
    events = [{"name": "e", "at": at, "attributes": {"v": f"v{n}"}} for n, at in enumerate(times)]
    for begin in (0, 350):
        store.events.send_many(events[begin : 350 if begin == 0 else None])

    newest = sorted(range(len(times)), key=lambda n: (times[n], n), reverse=True)[:300]
    assert set(values(store, "s")) == {f"v{n}" for n in newest}
    assert len(store.events.top("b", 1_000)) == 300
    assert problems_of(store) == []
