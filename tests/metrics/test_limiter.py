"""Waiting, decorating, requiring, and limits that are undone with their transaction."""

import asyncio

import pytest

from holdfast.errors import BadLimit, LimitExceeded
from holdfast.metrics import Limiter
from holdfast.store import Store, Tx
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine


@pytest.fixture
def limiter(store: Store, clock: Clock) -> Limiter:
    return store.metrics.limiter(
        {"c": "2/minute"}, algorithm="log", sleep=lambda seconds: clock.advance(seconds=seconds)
    )


def test_acquire_waits_until_it_is_allowed(clock: Clock, limiter: Limiter) -> None:
    begin = clock()
    limiter.try_incr("c")
    clock.advance(seconds=5)
    limiter.try_incr("c")

    result = limiter.acquire("c", timeout=100)

    assert result.allowed
    assert clock() == begin + 60


def test_acquire_gives_up_as_soon_as_the_next_try_would_come_too_late(
    clock: Clock, limiter: Limiter
) -> None:
    limiter.incr("c", amount=2)
    begin = clock()

    result = limiter.acquire("c", timeout=59.9)

    assert (result.allowed, result.retry_after, clock()) == (False, 60, begin)
    assert limiter.acquire("c", timeout=60).allowed


def test_acquire_does_not_wait_for_what_can_never_be(clock: Clock, limiter: Limiter) -> None:
    begin = clock()

    assert limiter.acquire("c", amount=3, timeout=1e6).retry_after is None
    assert clock() == begin


def test_a_limiter_in_a_transaction_never_waits(store: Store) -> None:
    with store.transaction() as tx:
        limiter = tx.metrics.limiter({"c": "2/minute"})
        with pytest.raises(BadLimit):
            limiter.acquire("c")


def test_require_raises_with_the_result(limiter: Limiter) -> None:
    assert limiter.require("c", amount=2).remaining == 0

    with pytest.raises(LimitExceeded) as caught:
        limiter.require("c")

    assert (caught.value.code, caught.value.status) == ("limit_exceeded", 429)
    assert caught.value.result.retry_after == 60
    with pytest.raises(LimitExceeded):
        limiter.batch().local_op("c", amount=3).require()


def test_a_charge_is_undone_if_the_rest_of_the_transaction_fails(store: Store) -> None:
    conditions = {"c": "2/minute"}

    def order(tx: Tx) -> None:
        tx.metrics.limiter(conditions).require("c", ["x"])
        raise RuntimeError("sold out")

    for _ in range(5):
        with pytest.raises(RuntimeError):
            store.transact(order)

    assert store.metrics.limiter(conditions).peek("c", ["x"]).prev_total == 0


def test_a_denied_limit_undoes_what_came_before_it(store: Store) -> None:
    store.metrics.define({"orders": {}})
    conditions = {"c": "1/minute"}

    def order(tx: Tx) -> None:
        tx.metrics.incr("orders")
        tx.metrics.limiter(conditions).require("c")

    store.transact(order)
    with pytest.raises(LimitExceeded):
        store.transact(order)

    assert store.metrics.rate("orders", latest=3600).total == 1


def test_a_function_is_limited_by_an_entity_of_its_arguments(limiter: Limiter) -> None:
    @limiter.limit("c", entity=lambda user, *_: ["user", user])
    def greet(user: str) -> str:
        return f"hello {user}"

    assert [greet("ann"), greet("ann"), greet("bob")] == ["hello ann", "hello ann", "hello bob"]
    with pytest.raises(LimitExceeded):
        greet("ann")
    assert greet.__name__ == "greet"


def test_an_async_function_is_limited_too(limiter: Limiter) -> None:
    @limiter.limit("c", entity=["all"], amount=2)
    async def work() -> int:
        return 7

    assert asyncio.run(work()) == 7
    with pytest.raises(LimitExceeded):
        asyncio.run(work())


def test_results_are_true_if_they_are_allowed(limiter: Limiter) -> None:
    assert limiter.try_incr("c", amount=2)
    assert not limiter.try_incr("c")
