"""Costs: what an operation touches does not grow with its queue or its batch, and is what its
docstring says."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import methodcaller
from typing import Any

import pytest

from holdfast.errors import JobNeeded
from holdfast.jobs import Job, Jobs, JobSearch, NewJob, lists
from holdfast.jobs import search as search_module
from holdfast.limits import JOBS_PER_STEP
from holdfast.metrics import Metrics
from holdfast.operations import OPERATIONS
from holdfast.store import Store

FEW, MANY = 20, 1_500


class CountingTransaction:
    """A transaction that counts the keys that are read and written."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        self.reads = 0
        self.writes = 0

    @property
    def touched(self) -> int:
        return self.reads + self.writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def get(self, key: bytes) -> bytes | None:
        self.reads += 1
        found: bytes | None = self._tx.get(key)
        return found

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.reads += len(keys)
        found: list[bytes | None] = self._tx.get_many(keys)
        return found

    def scan(self, *args: Any, **options: Any) -> Iterator[tuple[bytes, bytes]]:
        for pair in self._tx.scan(*args, **options):
            self.reads += 1
            yield pair

    def put(self, key: bytes, value: bytes) -> None:
        self.writes += 1
        self._tx.put(key, value)

    def put_all(self, pairs: dict[bytes, bytes], *, checked: bool = False) -> None:
        self.writes += len(pairs)
        self._tx.put_all(pairs, checked=checked)

    def delete(self, key: bytes) -> None:
        self.writes += 1
        self._tx.delete(key)

    def add(self, key: bytes, delta: int) -> None:
        self.writes += 1
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
    # An action on few jobs may have ended before it is stopped: then stopping only reads it.
    few["stop a bulk action"] = max(few["stop a bulk action"], 3)
    grown = {name: (few[name], many[name]) for name in STEPS if many[name] > few[name]}
    assert grown == {}
    assert max(many.values()) < 110  # two limiters that look at 30 buckets each


def test_looking_at_a_queue_does_not_count_all_that_is_due(store: Store) -> None:
    costs = []
    for queue, size in (("few", 2 * JOBS_PER_STEP), ("many", 4 * JOBS_PER_STEP)):
        store.jobs.put_many([NewJob(queue=queue, delay=5) for _ in range(size)], now=0)

        costs.append(touched(store, methodcaller("counts", queue)))

    few, many = costs
    assert many <= few + 2 * JOBS_PER_STEP  # it compares their priorities, but counts no more


def test_a_pop_compares_no_more_than_some_of_a_great_many_due_jobs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MAX_DUE_COMPARED", 300)
    jobs = [NewJob(queue="queue", id=f"{n:04}", delay=5, priority=n) for n in range(MANY)]
    store.jobs.put_many(jobs, now=0)
    popped: list[Job] = []

    cost = touched(store, lambda jobs: popped.extend(jobs.pop("queue", "worker")))

    assert [job.id for job in popped] == ["0299"]
    assert cost < 300 + 10 * JOBS_PER_STEP


@pytest.mark.parametrize("running", [JOBS_PER_STEP, MANY])
def test_a_pop_does_not_count_all_that_run_under_a_large_limit(store: Store, running: int) -> None:
    store.jobs.config_set("queue-max-concurrency", "1000000")
    list(store.jobs.put_all([NewJob(queue="queue") for _ in range(running + 1)]))
    store.jobs.pop("queue", "worker", running)

    assert touched(store, lambda jobs: jobs.pop("queue", "worker")) < 30


def test_numbers_that_start_over_find_their_end_in_a_few_reads(store: Store) -> None:
    list(store.jobs.put_all([NewJob(queue="old", id=f"daily-{n + 1}") for n in range(MANY)]))
    store.jobs.recur("reports", id="daily", interval=60)
    popped = []

    cost = touched(store, lambda jobs: popped.extend(jobs.pop("reports", "worker")))

    assert [job.id for job in popped] == [f"daily-{MANY + 1}"]
    assert cost < 60


@pytest.mark.parametrize("search", [JobSearch(state="throttled"), JobSearch(state="failed")])
def test_a_search_counts_the_jobs_of_some_queues_and_groups_only(
    store: Store, monkeypatch: pytest.MonkeyPatch, search: JobSearch
) -> None:
    monkeypatch.setattr(search_module, "MAX_COUNTED_NAMES", 10)
    costs = []
    for number in range(2 * FEW):
        store.jobs.put(f"queue{number}", id=f"j{number}")
        store.jobs.pop(f"queue{number}", "worker")
        store.jobs.fail(f"j{number}", "worker", f"group{number}", "message")
        store.jobs.requeue(None, f"j{number}")
        costs.append(touched(store, lambda jobs: jobs.search(search)))

    assert costs[-1] <= costs[FEW]


@pytest.mark.parametrize("size", [FEW, MANY])
def test_a_page_of_a_search_touches_what_it_looks_at(stores: Any, size: int) -> None:
    with stores.open() as store:
        fill(store, size)

        page = touched(store, lambda jobs: jobs.search(JobSearch(queue="emails"), count=5))

    assert page < 1_000 + 60  # a scan of one bounded chunk, and the jobs of the page


def put(store: Store, count: int, **options: Any) -> list[str]:
    jobs = [NewJob(queue="q", id=f"{number:05}", **options) for number in range(count)]
    return list(store.jobs.put_all(jobs))


def put_into_batch(store: Store, count: int) -> None:
    store.jobs.batch_open("batch")
    put(store, count, batch="batch")


def settle_batch(store: Store, count: int) -> None:
    put_into_batch(store, count)
    for job in store.jobs.pop("q", "worker", count):
        store.jobs.complete(job.id, "worker")
    store.jobs.batch_close("batch")


def fail(store: Store, count: int) -> None:
    put(store, count)
    for job in store.jobs.pop("q", "worker", count):
        store.jobs.fail(job.id, "worker", "group", "message")


def throttle(store: Store, count: int) -> None:
    store.jobs.throttle_set("throttle", 1)
    put(store, count + 1, throttles=["throttle"])
    store.jobs.pop("q", "worker", count + 1)


# What is there before, and the call; its docstring says "reads 2 keys and writes 3 ... for each".
LONG: dict[str, tuple[Callable[[Store, int], Any], Callable[[int, Any], Any]]] = {
    "cancel": (put, lambda count, jobs: jobs.cancel(*[f"{n:05}" for n in range(count)])),
    "cancel_queue": (put, lambda count, jobs: jobs.cancel_queue("q")),
    "unfail": (fail, lambda count, jobs: jobs.unfail("q", "group", count)),
    "batch_cancel": (put_into_batch, lambda count, jobs: jobs.batch_cancel("batch")),
    "batch_forget": (settle_batch, lambda count, jobs: jobs.batch_forget("batch")),
    "throttle_delete": (throttle, lambda count, jobs: jobs.throttle_delete("throttle")),
}


def count_keys(store: Store, work: Callable[[Any], Any]) -> tuple[int, int]:
    """Returns how many keys the transactions of `work` read and wrote."""
    engine: Any = store.engine
    counted: list[CountingTransaction] = []
    transact, view = engine.transact, engine.view

    def counting(tx: Any) -> CountingTransaction:
        counted.append(CountingTransaction(tx))
        return counted[-1]

    @contextmanager
    def counting_view(**options: Any) -> Iterator[Any]:
        with view(**options) as reader:
            yield counting(reader)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            engine, "transact", lambda run, **space: transact(lambda tx: run(counting(tx)), **space)
        )
        patch.setattr(engine, "view", counting_view)
        work(store.jobs)
    return sum(each.reads for each in counted), sum(each.writes for each in counted)


@pytest.mark.only_on("lmdb")
@pytest.mark.parametrize("name", LONG)
def test_a_long_operation_touches_what_its_docstring_says(stores: Any, name: str) -> None:
    prepare, call = LONG[name]
    said = re.search(
        r"[Rr]eads (\d+) (?:keys )?and writes (\d+)[^.;]* for each", OPERATIONS[f"jobs.{name}"].doc
    )
    assert said is not None
    touched: list[tuple[int, int]] = []
    for count in (10, 110):
        with stores.open() as store:
            prepare(store, count)
            touched.append(count_keys(store, partial(call, count)))

    (few_reads, few_writes), (many_reads, many_writes) = touched
    for_each = round((many_reads - few_reads) / 100), round((many_writes - few_writes) / 100)
    assert for_each == (int(said[1]), int(said[2]))


SETTLEMENTS: dict[str, Callable[[Jobs], Any]] = {
    "heartbeat": lambda jobs: jobs.heartbeat("held", "worker"),
    "complete": lambda jobs: jobs.complete("held", "worker"),
    "fail": lambda jobs: jobs.fail("held", "worker", "group", "message"),
    "retry": lambda jobs: jobs.retry("held", "worker"),
    "timeout": lambda jobs: jobs.timeout("held"),
}


@pytest.mark.only_on("lmdb")
@pytest.mark.parametrize("name", SETTLEMENTS)
def test_settling_a_job_touches_what_its_docstring_says(store: Store, name: str) -> None:
    said = re.search(r"Reads (\d+) keys, writes (\d+)", OPERATIONS[f"jobs.{name}"].doc)
    assert said is not None
    for id in ("first of its day", "held"):
        store.jobs.put("q", id=id)
    for job in store.jobs.pop("q", "worker", 2):
        if job.id != "held":
            store.jobs.complete(job.id, "worker")

    def run(tx: Any) -> tuple[int, int]:
        counting = CountingTransaction(tx)
        SETTLEMENTS[name](Jobs(counting, Metrics))
        return counting.reads, counting.writes

    assert store._runner.transact(run) == (int(said[1]), int(said[2]))


def test_a_refused_cancel_reads_no_more_dependents_than_the_first(store: Store) -> None:
    store.jobs.put("emails", id="root")
    store.jobs.put_many([NewJob(queue="emails", depends=("root",)) for _ in range(MANY)])

    def cancel(jobs: Jobs) -> None:
        with pytest.raises(JobNeeded):
            jobs.cancel("root")

    assert touched(store, cancel) < 5
