"""The storage for the package `limits`: all its strategies, on a store."""

import sys
from pathlib import Path
from typing import Any

import pytest
from limits import parse
from limits.errors import StorageError
from limits.storage import storage_from_string
from limits.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    SlidingWindowCounterRateLimiter,
)

from holdfast.errors import MissingDriver
from holdfast.limits_storage import HoldfastStorage
from holdfast.store import Store
from holdfast.testing import Clock

ITEM = parse("3/minute")
STRATEGIES: list[Any] = [
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    SlidingWindowCounterRateLimiter,
]


@pytest.fixture
def storage(store: Store) -> HoldfastStorage:
    return HoldfastStorage(store=store)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_hits_until_the_limit_and_again_later(
    storage: HoldfastStorage, clock: Clock, strategy: Any
) -> None:
    limiter = strategy(storage)

    assert [limiter.hit(ITEM, "ann") for _ in range(4)] == [True, True, True, False]
    assert limiter.hit(ITEM, "bob")
    assert not limiter.test(ITEM, "ann")
    assert limiter.get_window_stats(ITEM, "ann").remaining == 0
    clock.advance(seconds=121)
    assert limiter.test(ITEM, "ann")
    assert limiter.hit(ITEM, "ann", cost=3)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_can_be_cleared(storage: HoldfastStorage, strategy: Any) -> None:
    limiter = strategy(storage)
    limiter.hit(ITEM, "ann", cost=3)
    limiter.hit(ITEM, "bob", cost=3)

    limiter.clear(ITEM, "ann")

    assert limiter.test(ITEM, "ann")
    assert not limiter.test(ITEM, "bob")
    assert (storage.reset() or 0) > 0
    assert limiter.test(ITEM, "bob")


def test_a_fixed_window_begins_with_its_first_hit(storage: HoldfastStorage, clock: Clock) -> None:
    limiter = FixedWindowRateLimiter(storage)
    begin = clock()
    clock.advance(seconds=17)
    limiter.hit(ITEM, "ann")

    assert limiter.get_window_stats(ITEM, "ann").reset_time == begin + 17 + 60
    assert storage.get_expiry("unknown") == clock()


def test_a_moving_window_starts_with_its_oldest_entry(
    storage: HoldfastStorage, clock: Clock
) -> None:
    limiter = MovingWindowRateLimiter(storage)
    begin = clock()
    limiter.hit(ITEM, "ann")
    clock.advance(seconds=50)
    limiter.hit(ITEM, "ann")

    assert limiter.get_window_stats(ITEM, "ann") == (begin + 60, 1)
    clock.advance(seconds=10)
    assert limiter.get_window_stats(ITEM, "ann") == (begin + 110, 2)


def test_a_sliding_window_weighs_the_one_before(storage: HoldfastStorage, clock: Clock) -> None:
    limiter = SlidingWindowCounterRateLimiter(storage)
    clock.set(6000)
    limiter.hit(ITEM, "ann", cost=3)

    clock.set(6060 + 30)  # half of the 3 are left, rounded down
    assert storage.get_sliding_window(ITEM.key_for("ann"), 60) == (3, 30, 0, 90)
    assert [limiter.hit(ITEM, "ann") for _ in range(3)] == [True, True, False]


def test_what_has_ended_disappears(storage: HoldfastStorage, store: Store, clock: Clock) -> None:
    for strategy in STRATEGIES:
        strategy(storage).hit(ITEM, "ann")
    clock.advance(seconds=600)
    store.sweep()

    assert storage.reset() == 0


def test_a_folder_is_opened_by_its_url(tmp_path: Path) -> None:
    storage: Any = storage_from_string(f"holdfast://{tmp_path}/limits", durability="interval")

    assert storage.check()
    assert FixedWindowRateLimiter(storage).hit(ITEM, "ann")
    storage.close()
    assert not storage.check()
    wrapping = HoldfastStorage(store=storage.store, wrap_exceptions=True)
    with pytest.raises(StorageError):
        wrapping.get("x")


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "limits.storage", None)
    monkeypatch.delitem(sys.modules, "holdfast.limits_storage")

    with pytest.raises(MissingDriver, match=r"holdfastdb\[limits\]"):
        __import__("holdfast.limits_storage")
