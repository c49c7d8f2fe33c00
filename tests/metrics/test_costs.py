"""Operations touch as many keys as their docstrings say."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.limits import MAX_SUMMARIZED_BUCKETS
from holdfast.metrics import Metrics
from holdfast.store import Store
from holdfast.testing import Clock

SPECS: Any = {
    "m": {"sequences": [{"timeStep": 1, "expiry": 60}, {"timeStep": 60, "expiry": 3600}]},
    "load": {"type": "gauge"},
}


class Counting:
    """A transaction that counts the keys that it reads, adds to and writes."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        self.touched: Counter[str] = Counter()

    def get_many(self, keys: Any) -> Any:
        self.touched["read"] += len(keys)
        return self._tx.get_many(keys)

    def scan(self, *args: Any, **kwargs: Any) -> Any:
        self.touched["scan"] += 1
        return self._tx.scan(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("get", "put", "add", "delete", "clear"):
            self.touched["read" if name == "get" else name] += 1
        return getattr(self._tx, name)


@pytest.fixture
def touched(store: Store, clock: Clock) -> Callable[..., dict[str, int]]:
    """Returns the keys that an operation touches when it is called a second time."""
    store.metrics.define(SPECS)

    def measure(operation: str, *args: Any, **kwargs: Any) -> dict[str, int]:
        def work(tx: Any) -> dict[str, int]:
            counting = Counting(tx)
            layer: Any = Metrics(counting)
            getattr(layer, operation)(*args, **kwargs)
            return dict(counting.touched)

        store.engine.transact(work, space=store._runner.prefix)
        return store.engine.transact(work, space=store._runner.prefix)

    return measure


def test_an_increment_is_pure_addition_so_that_writers_never_conflict(touched: Any) -> None:
    assert touched("incr", "m", ["x"]) == {"read": 1, "add": 2}
    flush = [{"metric": "m", "entity": [number]} for number in range(10)]
    assert touched("write", flush) == {"read": 1, "add": 20}


def test_a_rate_reads_the_buckets_of_its_range(touched: Any) -> None:
    assert touched("rate", "m", latest=30) == {"read": 1 + 31}
    assert touched("rate", "m", latest=3600) == {"read": 1 + 61}


def test_a_limiters_check_touches_few_keys(touched: Any) -> None:
    def hit(**options: Any) -> dict[str, int]:
        operation = {"condition": "c", "entity": ["x"]}
        found: dict[str, int] = touched("try_incr", [operation], {"c": "9/minute"}, **options)
        return found

    assert hit() == {"read": 2, "add": 1, "put": 1}
    assert hit(algorithm="strict") == {"read": 2, "add": 1, "put": 1}
    assert hit(bucket_count=1, prefix="p") == {"read": 2, "add": 1, "put": 1}
    assert hit(bucket_count=MAX_SUMMARIZED_BUCKETS + 1, prefix="q") == {
        "read": 1 + MAX_SUMMARIZED_BUCKETS + 2,
        "scan": 1,
        "add": 1,
    }
    assert hit(algorithm="gcra") == {"read": 1, "put": 1}
    assert touched("throttle", "x", 15, 30, 60) == {"read": 1, "put": 1}


def test_counting_without_asking_reads_no_bucket(touched: Any) -> None:
    operation = {"condition": "c", "entity": ["x"]}

    assert touched("limit_incr", [operation], {"c": "9/minute"}) == {
        "read": 1,
        "add": 1,
        "delete": 1,
    }


def test_a_gauge_reads_and_writes_its_bucket_and_its_last_sample(touched: Any) -> None:
    assert touched("set", "load", None, 3) == {"read": 1 + 2, "put": 2}
    assert touched("add", "load", None, 3) == {"read": 1 + 3, "put": 2}


def test_a_gauge_that_was_not_set_for_long_is_found_without_reading_all_buckets(
    store: Store, touched: Any
) -> None:
    spec: Any = {"long": {"type": "gauge", "sequences": [{"timeStep": 1, "expiry": 100_000}]}}
    store.metrics.define(spec)
    store.metrics.set("long", ["x"], 7, at=10_000)

    assert touched("gauge", "long", ["nobody"], latest=9, at=90_000) == {"read": 12}
    assert touched("gauge", "long", ["x"], latest=9, at=90_000)["read"] < 300
    assert store.metrics.gauge("long", ["x"], latest=9, at=90_000).last == 7


def test_a_page_of_buckets_does_not_look_at_metrics_without_any(store: Store, touched: Any) -> None:
    store.metrics.define({f"unused{number}": SPECS["m"] for number in range(50)})
    for number in range(3):
        store.metrics.incr(f"unused{number}", ["x"])

    first = store.metrics.buckets(limit=2)

    assert touched("buckets", limit=2) == {"read": 2, "scan": 2 + 3}
    assert touched("buckets", after=first.next) == {"read": 2, "scan": 3 + 4}
