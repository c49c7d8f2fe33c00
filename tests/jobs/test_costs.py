"""Costs: what an operation touches does not grow with its queue or its batch."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from holdfast.jobs import Jobs, JobSearch, NewJob
from holdfast.metrics import Metrics
from holdfast.store import Store

FEW, MANY = 20, 1_500


class CountingTransaction:
    """A transaction that counts the keys that are read and written."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        self.touched = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def get(self, key: bytes) -> bytes | None:
        self.touched += 1
        found: bytes | None = self._tx.get(key)
        return found

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.touched += len(keys)
        found: list[bytes | None] = self._tx.get_many(keys)
        return found

    def scan(self, *args: Any, **options: Any) -> Iterator[tuple[bytes, bytes]]:
        for pair in self._tx.scan(*args, **options):
            self.touched += 1
            yield pair

    def put(self, key: bytes, value: bytes) -> None:
        self.touched += 1
        self._tx.put(key, value)

    def delete(self, key: bytes) -> None:
        self.touched += 1
        self._tx.delete(key)

    def add(self, key: bytes, delta: int) -> None:
        self.touched += 1
        self._tx.add(key, delta)


def fill(store: Store, size: int) -> None:
    """Makes a batch of `size` waiting jobs, and as many dead letters."""
    store.jobs.config_set("emails-rate", "1000/60")
    store.jobs.config_set("emails-rate-per-key", "1000/60")
    store.jobs.config_set("emails-dead-letter", "dead")
    store.jobs.batch_open("batch")
    jobs = [
        NewJob(queue="emails", id=f"{number:05}", batch="batch", rate_key="ann")
        for number in range(size)
    ]
    list(store.jobs.put_all(jobs))
    list(store.jobs.put_all([NewJob(queue="dead", id=f"dead{n}") for n in range(size)]))
    store.jobs.put("emails", id="first", priority=9, batch="batch", rate_key="ann")


def touched(store: Store, work: Callable[[Jobs], Any]) -> int:
    def run(tx: Any) -> int:
        counting = CountingTransaction(tx)
        jobs = Jobs(counting, Metrics)
        work(jobs)
        return counting.touched

    return store._runner.transact(run)


STEPS: dict[str, Callable[[Jobs], Any]] = {
    "put into a batch": lambda jobs: jobs.put("emails", id="new", batch="batch", rate_key="bob"),
    "put with a deadline": lambda jobs: jobs.put("emails", expires=jobs._ledger.tx.now + 60),
    "put at a moment": lambda jobs: jobs.put("emails", at=jobs._ledger.tx.now + 60),
    "counts of a limited queue": lambda jobs: jobs.counts("emails"),
    "pop from a limited queue": lambda jobs: jobs.pop("emails", "worker"),
    "fail into the dead-letter queue": lambda jobs: jobs.fail("first", "worker", "g", "m"),
    "requeue a dead letter": lambda jobs: jobs.requeue(None, "first"),
    "close a batch": lambda jobs: jobs.batch_close("batch"),
    "show a batch": lambda jobs: jobs.batch("batch"),
    "complete in a closed batch": lambda jobs: [
        jobs.complete(job.id, "worker") for job in jobs.pop("emails", "worker")
    ],
    "start a bulk action": lambda jobs: jobs.bulk_start(
        "cancel", JobSearch(queue="emails"), id="bulk"
    ),
    "stop a bulk action": lambda jobs: jobs.bulk_stop("bulk"),
}


def test_no_new_operation_costs_more_in_a_large_queue(stores: Any) -> None:
    costs: list[dict[str, int]] = []
    for size in (FEW, MANY):
        with stores.open() as store:
            fill(store, size)
            costs.append({name: touched(store, work) for name, work in STEPS.items()})

    few, many = costs
    grown = {name: (few[name], many[name]) for name in STEPS if many[name] > few[name]}
    assert grown == {}
    assert max(many.values()) < 110  # two limiters that look at 30 buckets each


@pytest.mark.parametrize("size", [FEW, MANY])
def test_a_page_of_a_search_touches_what_it_looks_at(stores: Any, size: int) -> None:
    with stores.open() as store:
        fill(store, size)

        page = touched(store, lambda jobs: jobs.search(JobSearch(queue="emails"), count=5))

    assert page < 1_000 + 60  # a scan of one bounded chunk, and the jobs of the page
