"""The strict algorithms under many threads and processes: never more than the limit."""

import random
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

import pytest

import holdfast
from holdfast.metrics.conditions import Algorithm
from holdfast.store import Store, Tx
from holdfast.testing import Clock
from tests.processes import Child
from tests.stores import Stores

LIMIT = 20
EXACT: list[Algorithm] = ["strict", "log"]


def _hit(store: Store, plan: dict[str, Any]) -> float | None:
    """The time at which a hit was admitted, or None."""

    def work(tx: Tx) -> float | None:
        result = tx.metrics.try_incr([{"condition": "c", "entity": ["x"]}], **plan)
        return tx.now if result.allowed else None

    return store.transact(work)


def _most_in_a_window(times: list[float], window: float) -> int:
    """The highest number of times in any interval [t, t + window)."""
    times = sorted(times)
    most = first = 0
    for last, moment in enumerate(times):
        while times[first] <= moment - window:
            first += 1
        most = max(most, last - first + 1)
    return most


@pytest.mark.parametrize("algorithm", EXACT)
def test_eight_threads_never_get_more_than_the_limit_in_any_window(
    store: Store, clock: Clock, algorithm: Algorithm
) -> None:
    plan = {
        "conditions": {"c": {"limit": LIMIT, "window": 60}},
        "bucket_count": 7,
        "algorithm": algorithm,
    }
    admitted: list[float] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(100):
            clock.advance(seconds=chance.choice([0, 0.1, 0.5, 2, -0.7]))
            moment = _hit(store, plan)
            if moment is not None:
                admitted.append(moment)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(admitted) > LIMIT
    assert _most_in_a_window(admitted, 60) <= LIMIT


def _hit_often(url: str, algorithm: Algorithm, skew: float, connection: Connection) -> None:
    """One process of several on the same store; each has its own clock, a little off."""
    plan = {
        "conditions": {"c": {"limit": LIMIT, "window": 0.25}},
        "bucket_count": 5,
        "algorithm": algorithm,
    }
    with holdfast.open(url, durability="interval", clock=lambda: time.time() + skew) as store:
        found = [_hit(store, plan) for _ in range(300)]
    connection.send([moment for moment in found if moment is not None])


@pytest.mark.parametrize("algorithm", EXACT)
def test_four_processes_never_get_more_than_the_limit_in_any_window(
    stores: Stores, algorithm: Algorithm
) -> None:
    url = stores.url()
    children = [Child(_hit_often, url, algorithm, skew) for skew in (0, 0.01, -0.01, 0.1)]

    admitted = [moment for child in children for moment in child.receive()]
    assert [child.join() for child in children] == [0] * 4
    assert len(admitted) >= LIMIT
    assert _most_in_a_window(admitted, 0.25) <= LIMIT


def test_of_many_threads_exactly_the_limit_is_admitted_by_every_algorithm(store: Store) -> None:
    algorithms: list[Algorithm] = ["estimate", "strict", "log", "gcra", "token_bucket"]
    for algorithm in algorithms:
        limiter = store.metrics.limiter({"c": "20/minute"}, algorithm=algorithm, prefix=algorithm)
        allowed: list[bool] = []

        def work(limiter: Any = limiter, allowed: list[bool] = allowed) -> None:
            allowed.extend([bool(limiter.try_incr("c")) for _ in range(5)])

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert allowed.count(True) == 20


def test_increments_of_many_threads_are_all_counted(store: Store) -> None:
    store.metrics.define({"m": {}})

    def work() -> None:
        for _ in range(50):
            store.metrics.incr("m", ["x"])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert store.metrics.rate("m", ["x"], latest=3600).total == 400
