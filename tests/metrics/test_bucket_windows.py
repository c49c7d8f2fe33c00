"""Estimate and strict, by the worked numbers of the specification."""

import random
from typing import Any

import pytest

from holdfast.metrics import Limiter
from holdfast.metrics.conditions import Algorithm
from holdfast.store import Store
from holdfast.testing import Clock


def _limiter(store: Store, algorithm: Algorithm = "estimate", **changed: Any) -> Limiter:
    options = {"bucket_count": 10, **changed}
    condition = options.pop("condition", {"limit": 3, "window": 100})
    return store.metrics.limiter({"c": condition}, algorithm=algorithm, **options)


def _filled(store: Store, clock: Clock, algorithm: Algorithm = "estimate") -> Limiter:
    """Limit 3 in 100 seconds in 10 buckets, with 1 at 1000, 1010 and 1020."""
    limiter = _limiter(store, algorithm)
    for at in (1000, 1010, 1020):
        clock.set(at)
        assert limiter.try_incr("c").allowed
    return limiter


def test_the_estimate_thins_the_oldest_bucket(store: Store, clock: Clock) -> None:
    limiter = _filled(store, clock)
    seen = []
    for at in (1090, 1100, 1103, 1105, 1105.001, 1109):
        clock.set(at)
        result = limiter.peek("c")
        seen.append((at, result.prev_total, result.allowed))

    assert seen == [
        (1090, 3, False),
        (1100, 3, False),
        (1103, 3, False),
        (1105, 3, False),
        (1105.001, 2, True),
        (1109, 2, True),
    ]


def test_a_result_tells_when_it_makes_sense_to_come_back(store: Store, clock: Clock) -> None:
    limiter = _filled(store, clock)
    clock.set(1090)

    result = limiter.try_incr("c")

    assert (result.allowed, result.prev_total, result.new_total) == (False, 3, 4)
    assert (result.remaining, result.retry_after, result.reset_after) == (0, 15.001, 40)
    assert (result.condition, result.limit, result.window, result.amount) == ("c", 3, 100, 1)
    clock.advance(seconds=15.001)
    assert limiter.try_incr("c").allowed


def test_strict_counts_the_oldest_bucket_in_full(store: Store, clock: Clock) -> None:
    limiter = _filled(store, clock, "strict")
    clock.set(1090)

    result = limiter.try_incr("c")

    assert (result.allowed, result.retry_after, result.reset_after) == (False, 20.0, 40)
    clock.set(1109.999)
    assert not limiter.peek("c").allowed
    clock.set(1110)
    assert limiter.peek("c").allowed


def test_where_the_estimate_admits_nine_more_strict_admits_none(store: Store, clock: Clock) -> None:
    cases: list[tuple[Algorithm, int]] = [("estimate", 9), ("strict", 0)]
    for algorithm, admitted in cases:
        limiter = store.metrics.limiter({"c": "10/minute"}, algorithm=algorithm, prefix=algorithm)
        clock.set(1001.9)
        assert limiter.try_incr("c", amount=10).allowed
        clock.set(1061.89)
        assert sum([limiter.try_incr("c").allowed for _ in range(20)]) == admitted

    clock.set(1062.0)
    strict = store.metrics.limiter({"c": "10/minute"}, algorithm="strict", prefix="strict")
    assert sum([strict.try_incr("c").allowed for _ in range(20)]) == 10


def test_estimate_and_strict_share_their_counters(store: Store, clock: Clock) -> None:
    _filled(store, clock)

    assert _limiter(store, "strict").peek("c").prev_total == 3


def test_remaining_is_what_could_still_be_admitted(store: Store, clock: Clock) -> None:
    limiter = _limiter(store)

    assert limiter.peek("c").remaining == 3
    first = limiter.try_incr("c")
    assert (first.remaining, first.new_total, first.retry_after) == (2, 1, 0)
    assert limiter.try_incr("c", amount=3).remaining == 2
    assert limiter.try_incr("c", amount=2).remaining == 0


def test_amount_zero_asks_whether_the_limit_is_passed(store: Store) -> None:
    limiter = _limiter(store)
    assert limiter.try_incr("c", amount=0).allowed
    limiter.incr("c", amount=3)
    assert limiter.peek("c", amount=0).allowed
    limiter.charge("c")

    result = limiter.peek("c", amount=0)

    assert (result.allowed, result.prev_total, result.remaining) == (False, 4, 0)


def test_a_limit_of_zero_admits_nothing_and_says_that_waiting_is_in_vain(store: Store) -> None:
    limiter = _limiter(store, condition={"limit": 0, "window": 10})

    result = limiter.try_incr("c")

    assert (result.allowed, result.retry_after, result.reset_after) == (False, None, 0)
    assert limiter.try_incr("c", amount=0).allowed
    assert _limiter(store, condition="5/s", prefix="p").try_incr("c", amount=6).retry_after is None


def test_an_empty_window_resets_in_no_time(store: Store, clock: Clock) -> None:
    limiter = _limiter(store)
    assert limiter.peek("c").reset_after == 0

    clock.set(1004)
    assert limiter.try_incr("c").reset_after == 1010 + 100 - 1004
    clock.set(1110.1)
    assert limiter.peek("c").reset_after == 0


@pytest.mark.parametrize("algorithm", ["estimate", "strict", "log"])
@pytest.mark.parametrize("seed", range(6))
def test_retry_after_is_the_first_millisecond_at_which_it_fits(
    store: Store, clock: Clock, algorithm: Algorithm, seed: int
) -> None:
    chance = random.Random(seed)
    limiter = _limiter(
        store, algorithm, condition={"limit": 20, "window": 7.5}, bucket_count=chance.choice([1, 5])
    )
    clock.set(1_784_500_000.125)
    for _ in range(60):
        clock.set(round(clock() + chance.random(), 3))
        amount = chance.randint(1, 9)
        result = limiter.try_incr("c", amount=amount)
        if result.allowed:
            continue
        now = clock()
        assert result.retry_after is not None
        clock.set(now + result.retry_after)
        assert limiter.peek("c", amount=amount).allowed
        clock.set(now + result.retry_after - 0.0021)
        assert not limiter.peek("c", amount=amount).allowed
        clock.set(now)


def test_strict_counts_what_another_clock_has_dated_ahead(store: Store, clock: Clock) -> None:
    limiter = _limiter(store, "strict")
    clock.set(1050)
    assert limiter.try_incr("c", amount=3).allowed

    clock.set(1000)  # less than a window before
    assert not limiter.try_incr("c").allowed
    clock.set(900)  # more than a window before
    assert limiter.try_incr("c").allowed


def test_a_window_that_reaches_before_1970_is_cut_there(store: Store, clock: Clock) -> None:
    algorithms: list[Algorithm] = ["estimate", "strict", "log", "gcra"]
    for algorithm in algorithms:
        limiter = _limiter(store, algorithm, prefix=algorithm)
        clock.set(1)
        assert [limiter.try_incr("c").allowed for _ in range(4)] == [True, True, True, False]
