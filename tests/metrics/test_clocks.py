"""A clock that jumps forward and is set back: a limit refuses for its own time, not for years."""

from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.limits import CLOCK_AHEAD_SECONDS
from holdfast.metrics import LimitCondition
from holdfast.metrics.conditions import Algorithm
from holdfast.metrics.store import foreign_windows
from holdfast.store import Store
from holdfast.testing import Clock
from tests.stores import Stores

pytestmark = pytest.mark.every_engine

YEARS = 10 * 365 * 86_400.0
WINDOW = 60
CONDITIONS = {"c": LimitCondition(5, WINDOW)}
ALGORITHMS = get_args(Algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_limit_that_was_used_up_by_a_clock_ahead_is_open_when_that_is_set_back(
    store: Store, clock: Clock, algorithm: Algorithm
) -> None:
    limiter = store.metrics.limiter(CONDITIONS, algorithm=algorithm)
    clock.advance(seconds=YEARS)
    assert limiter.try_incr("c", ["ann"], 5).allowed
    clock.advance(seconds=-YEARS)

    found = limiter.try_incr("c", ["ann"])

    assert found.allowed
    assert found.reset_after <= 2 * WINDOW


def test_a_key_that_was_throttled_by_a_clock_ahead_is_let_in_when_that_is_set_back(
    store: Store, clock: Clock
) -> None:
    clock.advance(seconds=YEARS)
    for _ in range(5):
        store.metrics.throttle("ann", 4, 5, WINDOW)
    clock.advance(seconds=-YEARS)

    assert store.metrics.throttle("ann", 4, 5, WINDOW) == [0, 5, 4, -1, 12]


@pytest.mark.parametrize("algorithm", ["gcra", "token_bucket"])
def test_what_was_counted_without_asking_is_owed_unless_a_clock_ahead_has_counted_it(
    store: Store, clock: Clock, algorithm: Algorithm
) -> None:
    limiter = store.metrics.limiter(CONDITIONS, algorithm=algorithm)
    limiter.incr("c", ["ann"], 50)
    owed = limiter.peek("c", ["ann"])
    clock.advance(seconds=100)
    later = limiter.peek("c", ["ann"])

    clock.advance(seconds=YEARS)
    limiter.incr("c", ["bob"], 50)
    clock.advance(seconds=-YEARS)

    assert (owed.prev_total, owed.reset_after) == (50, 600)
    assert later.reset_after == 500
    assert limiter.peek("c", ["bob"]).reset_after == 0


def test_a_fixed_window_that_was_begun_by_a_clock_ahead_does_not_count(
    store: Store, clock: Clock
) -> None:
    windows = foreign_windows(store.metrics)
    clock.advance(seconds=YEARS)
    windows.hit("ann", WINDOW, 5)
    clock.advance(seconds=-YEARS)

    assert windows.fixed_window("ann").count == 0
    assert windows.hit("ann", WINDOW, 1) == 1
    assert windows.fixed_window("ann").ends == clock() + WINDOW


def test_a_gauge_shows_its_present_value_after_the_clock_was_set_back(
    store: Store, clock: Clock
) -> None:
    store.metrics.define({"load": {"type": "gauge"}})
    clock.advance(seconds=YEARS)
    store.metrics.set("load", value=9)
    clock.advance(seconds=-YEARS)
    store.metrics.set("load", value=1)
    clock.advance(seconds=120)

    assert store.metrics.gauge("load", latest=60).last == 1


STEPS = st.lists(
    st.one_of(
        st.sampled_from(["try", "try", "incr", "throttle", "hit"]),
        st.floats(-YEARS, YEARS),
        st.floats(0, WINDOW),
        st.floats(-WINDOW, 0),
    ),
    max_size=25,
)


@pytest.mark.only_on("lmdb")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=30, deadline=None)
@given(steps=STEPS)
@example(["hit", -121.0])
@example(["throttle", -200.0])
def test_whatever_the_clock_has_done_a_limit_opens_again_soon(
    stores: Stores, algorithm: Algorithm, steps: list[Any]
) -> None:
    clock = Clock()
    with stores.open(clock=clock) as store:
        limiter = store.metrics.limiter(CONDITIONS, algorithm=algorithm)
        windows = foreign_windows(store.metrics)
        owed = 0  # without having asked, which may be refused for longer
        for step in steps:
            if isinstance(step, float):
                clock.set(max(1e6, clock() + step))
            elif step == "try":
                limiter.try_incr("c", ["ann"], 2)
            elif step == "incr":
                owed += 3
                limiter.incr("c", ["ann"], 3)
            elif step == "throttle":
                store.metrics.throttle("ann", 4, 5, WINDOW)
            else:
                windows.hit("ann", WINDOW, 1)

        longest = CLOCK_AHEAD_SECONDS + 2 * WINDOW
        if algorithm in ("gcra", "token_bucket"):
            longest += owed * WINDOW / 5
        # What was dated ahead by less than the clock has left counts once more when its time comes.
        for _ in range(len(steps) + 1):
            wait = limiter.peek("c", ["ann"], 5).retry_after or 0
            assert wait <= longest
            clock.advance(seconds=wait)
        assert limiter.try_incr("c", ["ann"], 5).allowed
        # What is dated too far ahead is dropped when it is looked at, and not before.
        store.metrics.throttle("ann", 4, 5, WINDOW)
        windows.hit("ann", WINDOW, 1)
        clock.advance(seconds=longest)
        assert store.metrics.throttle("ann", 4, 5, WINDOW, 5)[0] == 0
        assert windows.hit("ann", WINDOW, 1) == 1
