"""The log: exact windows, by the microsecond."""

import pytest

from holdfast.metrics import Limiter
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine


@pytest.fixture
def limiter(store: Store) -> Limiter:
    return store.metrics.limiter({"c": {"limit": 3, "window": 10}}, algorithm="log")


def test_an_entry_counts_for_exactly_one_window(clock: Clock, limiter: Limiter) -> None:
    clock.set(1000)
    assert limiter.try_incr("c", amount=3).allowed

    clock.set(1009.999999)
    assert not limiter.peek("c").allowed
    clock.set(1010)
    assert limiter.peek("c").allowed


def test_waits_come_from_the_times_themselves(clock: Clock, limiter: Limiter) -> None:
    for at in (1000, 1002, 1003):
        clock.set(at)
        assert limiter.try_incr("c").allowed
    clock.set(1004)

    one, two = limiter.try_incr("c"), limiter.try_incr("c", amount=2)

    assert (one.retry_after, two.retry_after, one.reset_after) == (6, 8, 9)
    assert (one.prev_total, one.remaining) == (3, 0)
    assert limiter.try_incr("c", amount=4).retry_after is None


def test_operations_of_the_same_microsecond_add_up(clock: Clock, limiter: Limiter) -> None:
    clock.set(1000)

    assert [limiter.try_incr("c").allowed for _ in range(4)] == [True, True, True, False]


def test_counting_without_asking_counts(limiter: Limiter) -> None:
    limiter.incr("c", amount=5)

    assert limiter.peek("c", amount=0).prev_total == 5


def test_what_has_left_the_window_is_removed(store: Store, clock: Clock, limiter: Limiter) -> None:
    def keys() -> int:
        with store.engine.view() as view:
            return sum(1 for _ in view.scan(b"", b"\xff" * 9))

    empty = keys()
    for number in range(50):
        limiter.try_incr("c", [number % 2])
        clock.advance(seconds=4)
    assert keys() - empty <= 2 * (6 + 2)

    clock.advance(seconds=100)
    store.sweep()
    assert keys() == empty


def test_an_entry_that_is_dated_ahead_counts_if_one_window_could_hold_both(
    clock: Clock, limiter: Limiter
) -> None:
    ahead = clock()
    limiter.incr("c", amount=3)

    clock.set(ahead - 9.9)
    near = limiter.peek("c")
    clock.set(ahead - 10)
    far = limiter.peek("c")

    assert (near.prev_total, far.prev_total) == (3, 0)
