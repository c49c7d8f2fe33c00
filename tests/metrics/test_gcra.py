"""GCRA and token bucket, by the tables of the specification."""

from typing import Any

import pytest

from holdfast.errors import BadLimit
from holdfast.metrics import LimitCondition, Limiter
from holdfast.metrics.conditions import Algorithm
from holdfast.store import Store
from holdfast.testing import Clock

BEGIN = 1_700_000_000.0


@pytest.fixture(params=["gcra", "token_bucket"])
def algorithm(request: pytest.FixtureRequest) -> Algorithm:
    found: Algorithm = request.param
    return found


def _limiter(store: Store, algorithm: Algorithm, *condition: int) -> Limiter:
    return store.metrics.limiter({"c": LimitCondition(*condition)}, algorithm=algorithm)


def test_ten_in_a_minute_with_a_burst_of_three(
    store: Store, clock: Clock, algorithm: Algorithm
) -> None:
    limiter = _limiter(store, algorithm, 10, 60, 3)
    table = [
        (0, True, 2, 0, 6),
        (0, True, 1, 0, 12),
        (0, True, 0, 0, 18),
        (0, False, 0, 6, 18),
        (1.0, False, 0, 5, 17),
        (5.9, False, 0, 0.1, 12.1),
        (6.0, True, 0, 0, 18),
        (60, True, 2, 0, 6),
    ]
    for at, *expected in table:
        clock.set(BEGIN + at)
        result = limiter.try_incr("c")
        found = [result.allowed, result.remaining, result.retry_after, result.reset_after]
        assert found == expected, at
        assert result.limit == 3


def test_seven_in_a_second_with_a_burst_of_three(
    store: Store, clock: Clock, algorithm: Algorithm
) -> None:
    limiter = _limiter(store, algorithm, 7, 1, 3)
    first = limiter.try_incr("c", amount=3)
    assert (first.allowed, first.reset_after) == (True, 0.428572)
    denied = limiter.try_incr("c")
    assert (denied.allowed, denied.retry_after) == (False, 0.142858)
    assert (denied.prev_total, denied.new_total) == (3, 4)

    clock.set(BEGIN + 0.4)
    second = limiter.try_incr("c")
    assert (second.allowed, second.remaining) == (True, 1)
    third = limiter.try_incr("c", amount=2)
    assert (third.allowed, third.retry_after) == (False, 0.028572)
    never = limiter.try_incr("c", amount=4)
    assert (never.allowed, never.retry_after) == (False, None)


def test_without_a_burst_the_limit_is_the_capacity(store: Store, algorithm: Algorithm) -> None:
    limiter = _limiter(store, algorithm, 5, 60)

    assert [limiter.try_incr("c").allowed for _ in range(6)] == [True] * 5 + [False]


def test_counting_without_asking_may_pass_the_limit(
    store: Store, clock: Clock, algorithm: Algorithm
) -> None:
    limiter = _limiter(store, algorithm, 10, 60, 3)
    limiter.incr("c", amount=5)

    result = limiter.peek("c", amount=0)

    assert (result.allowed, result.prev_total, result.remaining) == (False, 5, 0)
    assert (result.retry_after, result.reset_after) == (12, 30)


def test_a_changed_limit_converts_what_is_stored(
    store: Store, clock: Clock, algorithm: Algorithm
) -> None:
    _limiter(store, algorithm, 10, 60, 3).try_incr("c", amount=3)

    faster = _limiter(store, algorithm, 20, 60, 3).peek("c")

    assert (faster.reset_after, faster.prev_total) == (18, 6)


def test_a_limit_of_zero_admits_nothing(store: Store, algorithm: Algorithm) -> None:
    limiter = _limiter(store, algorithm, 0, 60)

    assert limiter.try_incr("c").retry_after is None
    assert limiter.try_incr("c", amount=0).allowed


def test_a_cell_disappears_when_all_is_free_again(store: Store, clock: Clock) -> None:
    def cells() -> int:
        with store.engine.view() as view:
            return sum(1 for _, value in view.scan(b"", b"\xff" * 9) if value.endswith(b" 10"))

    limiter = _limiter(store, "gcra", 10, 600, 3)
    limiter.try_incr("c")
    clock.advance(seconds=3)
    limiter.try_incr("c", amount=2)  # the end moves to 180 seconds after the begin

    clock.advance(seconds=70)
    store.sweep()
    assert cells() == 1
    clock.advance(seconds=120)
    store.sweep()
    assert cells() == 0


def test_a_time_of_the_past_is_as_good_as_any(store: Store) -> None:
    condition: Any = {"c": {"limit": 2, "window": 60}}
    operation = [{"condition": "c"}]

    for algorithm in ("gcra", "log", "strict", "estimate"):
        plan: Any = {"conditions": condition, "algorithm": algorithm, "prefix": algorithm}
        allowed = [store.metrics.try_incr(operation, **plan, at=1000).allowed for _ in range(3)]
        assert allowed == [True, True, False]


def test_throttle_answers_as_redis_cell(store: Store, clock: Clock) -> None:
    def throttle(**more: Any) -> list[int]:
        return store.metrics.throttle("user123", 15, 30, 60, **more)

    assert throttle() == [0, 16, 15, -1, 2]
    for _ in range(15):
        last = throttle()
    assert last == [0, 16, 0, -1, 32]
    assert throttle() == [1, 16, 0, 2, 32]
    assert throttle(quantity=17) == [1, 16, 0, -1, 32]
    assert throttle(quantity=0) == [0, 16, 0, -1, 32]
    clock.advance(seconds=2)
    assert throttle() == [0, 16, 0, -1, 32]


def test_throttle_keys_are_apart_from_conditions_and_from_each_other(store: Store) -> None:
    store.metrics.throttle("a", 0, 1, 60)

    assert store.metrics.throttle("b", 0, 1, 60)[0] == 0
    assert store.metrics.throttle("a", 0, 1, 60, namespace="other")[0] == 0
    assert store.metrics.throttle("a", 0, 1, 60)[0] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (-1, 1, 1),
        (1, 0, 1),
        (1, 1, 0),
        (1, 1, 1, -1),
        (1.5, 1, 1),
        ("1", 1, 1),
        (2**63 - 1, 1, 1),  # the limit is one more
        (1, 2**63, 1),
        (1, 1, 2**63 - 1),
    ],
)
def test_throttle_takes_only_sensible_integers(store: Store, arguments: Any) -> None:
    with pytest.raises(BadLimit):
        store.metrics.throttle("x", *arguments)


def test_the_reply_of_throttle_fits_into_64_bits(store: Store) -> None:
    everything = 2**63 - 2

    reply = store.metrics.throttle("x", everything, 1, 253_402_300_799, everything)

    assert reply == [0, 2**63 - 1, 1, -1, 2**63 - 1]
