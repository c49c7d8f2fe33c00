"""Is a queue of a million jobs slower than one of a thousand?

Run: python -m benchmarks.queue_growth [--quick]

Batches, rates, deadlines, dead letters, statistics, figures, imports and bulk actions on jobs that
an index finds, each in queues of 1,000 and of 1,000,000 waiting jobs (200,000 with --quick), in
interval mode.
"""

import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

import holdfast
from benchmarks.rounds import Contender, reach, report, run_benchmark, seconds_each
from holdfast.jobs import ImportedJob, JobSearch, NewJob
from holdfast.store import Store

SMALL = 1_000
LARGE = 1_000_000
QUICK = 200_000
STEP = 5_000
INTERVAL = "a checkpoint every second"
Operation = Callable[[Store, str], object]
_fresh = count()


def main(quick: bool) -> None:
    large = QUICK if quick else LARGE
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as folder:
        stores = {size: fill(Path(folder) / str(size), size) for size in (SMALL, large)}
        factors = {}
        for name, operation in OPERATIONS.items():
            contenders = {
                f"{size:,} jobs": repeat(store, operation) for size, store in stores.items()
            }
            figures = seconds_each(contenders, rounds=5 if quick else 9)
            first, last = figures
            report(name, figures, baseline=first, durability=INTERVAL)
            factors[name] = figures[last] / figures[first]
        for store in stores.values():
            store.close()
    print("\nReach")
    worst = max(factors, key=lambda name: factors[name])
    reach(f"the slowest vs 1,000 jobs, {large:,} jobs ({worst})", factors[worst], 2, at_most=True)


def fill(folder: Path, size: int) -> Store:
    """Yields a store whose queue has `size` jobs of one batch, rates and a dead-letter queue."""
    print(f"filling a queue with {size:,} jobs ...", file=sys.stderr)
    store = holdfast.open(folder, durability="interval")
    store.jobs.batch_open("batch")
    for begin in range(0, size, STEP):
        numbers = range(begin, min(size, begin + STEP))
        store.jobs.put_many(
            [NewJob(queue="emails", klass="k", id=f"j{n}", batch="batch") for n in numbers]
        )
    for option, value in {
        "emails-rate": "1000000/60",
        "emails-rate-per-key": "1000000/60",
        "emails-dead-letter": "dead",
        "stats-tags": "vip",
    }.items():
        store.jobs.config_set(option, value)
    return store


def pop_and_complete(store: Store, id: str) -> None:
    store.jobs.put("emails", "k", id=id, priority=9, tags=["vip"], rate_key="ann")
    [job] = store.jobs.pop("emails", "worker")
    store.jobs.complete(job.id, "worker")


def fail_and_requeue(store: Store, id: str) -> None:
    store.jobs.put("emails", "k", id=id, priority=9)
    [job] = store.jobs.pop("emails", "worker")
    store.jobs.fail(job.id, "worker", "group", "message")
    store.jobs.requeue(None, job.id)


def cancel_tagged(store: Store, id: str) -> None:
    """Cancels one job, found by its tag, as a bulk action, from its start to its end."""
    store.jobs.put("emails", "k", id=id, tags=[id])
    store.jobs.bulk_start("cancel", JobSearch(tag=id), id=f"bulk-{id}")
    while not store.jobs.bulk(f"bulk-{id}").ended:  # type: ignore[union-attr]  # it was just started
        store.sweep()


OPERATIONS: dict[str, Operation] = {
    "put into a batch": lambda store, id: store.jobs.put("emails", "k", id=id, batch="batch"),
    "put with a deadline": lambda store, id: store.jobs.put("emails", "k", expires=10**10),
    "put, pop under two rates, complete": pop_and_complete,
    "put, pop, fail into dead letters, requeue": fail_and_requeue,
    "counts of a batch": lambda store, id: store.jobs.batch("batch"),
    "statistics by class": lambda store, id: store.jobs.stats_by("emails", "class"),
    "statistics by tag": lambda store, id: store.jobs.stats_by("emails", "tag"),
    "figures of a queue": lambda store, id: store.jobs.figures("emails"),
    "import and digest of a job": lambda store, id: (
        store.jobs.import_jobs([ImportedJob(id=id, queue="emails", time=1.0)]),
        store.jobs.digest([id]),
    ),
    "put, cancel in a bulk action": cancel_tagged,
}


def repeat(store: Store, operation: Operation, times: int = 50) -> Contender:
    def run() -> int:
        for _ in range(times):
            operation(store, f"new-{next(_fresh)}")
        return times

    return run


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
