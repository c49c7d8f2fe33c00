"""Values that rise and fall."""

from typing import Any

import pytest

from holdfast.errors import MetricOverflow
from holdfast.store import Store
from holdfast.testing import Clock

SPECS: Any = {
    "load": {"type": "gauge", "sequences": [{"timeStep": 10, "expiry": 60}]},
    "fine": {"type": "gauge", "resolution": 0.5, "sequences": [{"timeStep": 10, "expiry": 60}]},
}


@pytest.fixture(autouse=True)
def _defined(store: Store, clock: Clock) -> None:
    clock.set(1000)
    store.metrics.define(SPECS)


def _read(store: Store, **asked: Any) -> tuple[Any, ...]:
    found = store.metrics.gauge("load", **asked)
    return found.last, found.min, found.max, found.mean, found.count


def test_a_gauge_tells_last_min_max_mean_and_count(store: Store) -> None:
    for at, value in ((1001, 5), (1002, -3), (1011, 4)):
        store.metrics.set("load", None, value, at=at)

    assert _read(store, latest=60, at=1015) == (4, -3, 5, 2.0, 3)
    assert _read(store, start=1000, end=1010, at=1015) == (-3, -3, 5, 1.0, 2)
    assert _read(store, start=1009, end=1010.5, at=1015) == (4, -3, 5, 2.0, 3)


def test_the_latest_time_wins_and_of_equal_times_the_later_write(store: Store) -> None:
    store.metrics.set("load", None, 1, at=1005)
    store.metrics.set("load", None, 2, at=1003)
    assert _read(store, latest=60, at=1015)[0] == 1

    store.metrics.set("load", None, 3, at=1005)
    assert _read(store, latest=60, at=1015)[0] == 3


def test_the_last_value_is_known_even_if_it_is_older_than_the_range(store: Store) -> None:
    store.metrics.set("load", None, 7, at=1005)

    assert _read(store, latest=5, at=1050) == (7, None, None, None, 0)
    assert _read(store, start=1010, end=1020, at=1050) == (7, None, None, None, 0)
    assert _read(store, start=990, end=1000, at=1050) == (None, None, None, None, 0)
    assert _read(store, latest=5, at=1079.9)[0] == 7
    assert _read(store, latest=5, at=1080)[0] is None


def test_add_goes_on_from_the_last_value(store: Store, clock: Clock) -> None:
    store.metrics.add("load", ["x"], 2)
    store.metrics.add("load", ["x"], -5)
    store.metrics.set("load", ["x"], 10)
    clock.advance(seconds=30)
    store.metrics.add("load", ["x"])

    assert store.metrics.gauge("load", ["x"], latest=60).last == 11
    clock.advance(seconds=1000)
    store.metrics.add("load", ["x"])
    assert store.metrics.gauge("load", ["x"], latest=60).last == 1


def test_what_was_set_at_this_very_instant_is_seen(store: Store) -> None:
    store.metrics.set("load", None, 7)

    assert _read(store, latest=60) == (7, 7, 7, 7.0, 1)
    assert _read(store, start=990, end=1000, at=1001)[4] == 0


def test_values_are_in_units_of_the_resolution(store: Store) -> None:
    store.metrics.set("fine", None, 1.3)
    store.metrics.set("fine", None, -0.75)

    found = store.metrics.gauge("fine", latest=60)

    assert (found.last, found.min, found.max, found.mean) == (-1.0, -1.0, 1.5, 0.25)


def test_nothing_is_left_of_a_gauge_that_fell_silent(store: Store, clock: Clock) -> None:
    def keys() -> int:
        with store.engine.view() as view:
            return sum(1 for _ in view.scan(b"", b"\xff" * 9))

    empty = keys()
    store.metrics.set("load", ["x"], 1)
    clock.advance(seconds=50)
    store.metrics.set("load", ["x"], 2)
    for _ in range(4):
        clock.advance(seconds=85)
        store.sweep()

    assert keys() == empty


@pytest.mark.parametrize("op", ["set", "add"])
def test_a_sum_ends_with_the_64_bits_that_are_stored(store: Store, op: str) -> None:
    store.metrics.define({"g": {"type": "gauge"}})
    write: Any = {"metric": "g", "op": op, "value": 2**53}

    with pytest.raises(MetricOverflow):
        store.metrics.write([write] * 1_025)

    assert store.metrics.gauge("g", latest=60).count == 0
