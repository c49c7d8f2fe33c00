"""How long does a job take from put to complete: in one thread, in several, in long queues?

Run: python -m benchmarks.jobs [--quick]
"""

import math
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lmdb

import holdfast
from benchmarks.rounds import Contender, fact, reach, report, run_benchmark, seconds_each
from holdfast.jobs import Jobs, NewJob
from holdfast.store import Store, Tx

THREADS = 8
SHORT, LONG = 1_000, 1_000_000
QUICK_LONG = 50_000
SLOW_SYNC = 0.001  # seconds; ours take a fifth of that
REASON = "a cycle is some 7,000 bytecodes: history, statistics, locks and three transactions"
SHARED = "a sync is short here, so threads gain little by sharing it; their Python runs in turn"
INTERVAL = "a checkpoint every second"
BATCH = 10_000  # jobs of one bulk put
DATA = {"to": "ann@example.org", "template": "welcome", "attempt": 1}


def main(quick: bool) -> None:
    rounds = 5 if quick else 15
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as folder:
        path = Path(folder)
        with (
            holdfast.open(path / "interval", durability="interval") as interval,
            holdfast.open(path / "commit", durability="commit") as commit,
            holdfast.open(path / "queues", durability="interval") as queues,
        ):
            show_keys(interval)
            single = run_single(path, interval, rounds)
            show_cpu(path, interval, rounds)
            crowd = run_crowd(interval, commit, rounds)
            lengths = run_lengths(queues, QUICK_LONG if quick else LONG, rounds)
        show_reach(single, crowd, lengths)


def show_reach(
    single: dict[str, float], crowd: dict[str, float], lengths: dict[str, float]
) -> None:
    print("\nReach")
    put = single["raw py-lmdb put"] * 1e6
    cycle = single["put+pop+complete, three transactions"] * 1e6
    reach(
        "put+pop+complete in µs, were a raw put 2 µs",
        cycle * 2 / put,
        100,
        at_most=True,
        reason=REASON,
    )
    together = single["put+pop+complete, one transaction"] * 1e6
    reach("the same in one transaction", together * 2 / put, 100, at_most=True, reason=REASON)
    gain = crowd["commit, 1 thread"] / crowd[f"commit, {THREADS} threads"]
    reach(f"{THREADS} threads vs one, durable", gain, 5, at_most=False, reason=SHARED)
    longer = lengths["pop+complete, long queue"] / lengths["pop+complete, short queue"]
    reach("pop+complete, long queue vs short", longer, 1.3, at_most=True)
    longer = lengths["put, long queue"] / lengths["put, short queue"]
    reach("put, long queue vs short", longer, 1.3, at_most=True)


# --- keys ---------------------------------------------------------------------------------------


class Counting:
    """A transaction that counts the calls of its methods."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._tx, name)
        if name not in ("get", "scan", "put", "delete", "add"):
            return method

        def counted(*args: Any, **options: Any) -> Any:
            self.calls[name] += 1
            return method(*args, **options)

        return counted


def show_keys(store: Store) -> None:
    print("keys of one job   reads  scans  writes  (a counter is one read and one write)")

    def work(tx: Tx) -> None:
        counting = Counting(tx._tx)
        jobs = Jobs(counting)
        steps: dict[str, Callable[[], object]] = {
            "put": lambda: jobs.put("keys", "klass", DATA, id="counted"),
            "pop": lambda: jobs.pop("keys", "worker"),
            "heartbeat": lambda: jobs.heartbeat("counted", "worker"),
            "complete": lambda: jobs.complete("counted", "worker"),
        }
        for name, step in steps.items():
            counting.calls.clear()
            step()
            calls = counting.calls
            reads = calls["get"] + calls["add"]
            writes = calls["put"] + calls["delete"] + calls["add"]
            print(f"  {name:<15} {reads:5}  {calls['scan']:5}  {writes:6}")

    store.transact(lambda tx: warm(tx.jobs))
    store.transact(work)


def warm(jobs: Jobs) -> None:
    """Runs one job, so that the queue exists and today's statistics have begun."""
    jobs.put("keys", "klass", DATA, id="first")
    jobs.pop("keys", "worker")
    jobs.complete("first", "worker")


# --- one thread ---------------------------------------------------------------------------------


def run_single(path: Path, store: Store, rounds: int) -> dict[str, float]:
    count = 300
    figures = seconds_each(
        {
            "raw py-lmdb put": raw_puts(path / "raw"),
            "raw py-lmdb commit of one put": raw_commits(path / "raw-commits"),
            "put": lambda: puts(store, "single", count),
            "pop+complete": lambda: pops(store, "single", count),
            "put+pop+complete, three transactions": lambda: cycles(store, "cycle", count),
            "put+pop+complete, one transaction": lambda: together(store, 1, count),
            "put+pop+complete, 100 in a transaction": lambda: together(store, 100, count),
        },
        rounds=rounds,
    )
    report(
        "One thread",
        figures,
        baseline="raw py-lmdb put",
        durability={"raw": "none", "p": INTERVAL},
    )
    return figures


def show_cpu(path: Path, store: Store, rounds: int) -> None:
    """Shows the least CPU time of each, which a busy machine changes least."""
    contenders: dict[str, Contender] = {
        "raw py-lmdb put": raw_puts(path / "raw-cpu"),
        "put+pop+complete, three transactions": lambda: cycles(store, "cpu", 300),
        "put+pop+complete, 100 in a transaction": lambda: together(store, 100, 300),
    }
    figures = dict.fromkeys(contenders, math.inf)
    for _ in range(rounds):
        for name, contender in contenders.items():
            begin = time.process_time()
            count = contender()
            figures[name] = min(figures[name], (time.process_time() - begin) / count)
    report("The same in CPU time", figures, baseline="raw py-lmdb put", durability=INTERVAL)


def puts(store: Store, queue: str, count: int) -> int:
    for _ in range(count):
        store.jobs.put(queue, "klass", DATA)
    return count


def pops(store: Store, queue: str, count: int) -> int:
    for _ in range(count):
        [job] = store.jobs.pop(queue, "worker")
        store.jobs.complete(job.id, "worker", lock=job.lock)
    return count


def cycles(store: Store, queue: str, count: int) -> int:
    for _ in range(count):
        store.jobs.put(queue, "klass", DATA)
        [job] = store.jobs.pop(queue, "worker")
        store.jobs.complete(job.id, "worker", lock=job.lock)
    return count


def together(store: Store, size: int, count: int) -> int:
    def work(tx: Tx) -> None:
        jobs = tx.jobs
        for _ in range(size):
            jobs.put("together", "klass", DATA)
            [job] = jobs.pop("together", "worker")
            jobs.complete(job.id, "worker", lock=job.lock)

    for _ in range(count // size):
        store.transact(work)
    return count


def raw_puts(path: Path) -> Contender:
    env = lmdb.open(str(path), map_size=2**30, sync=False)
    written = 0

    def run() -> int:
        nonlocal written
        with env.begin(write=True) as txn:
            for number in range(written, written + 10_000):
                txn.put(b"%016d" % (number * 7_919 % 1_000_003), b"v" * 100)
        written += 10_000
        return 10_000

    return run


def raw_commits(path: Path) -> Contender:
    env = lmdb.open(str(path), map_size=2**30, sync=False)

    def run() -> int:
        for number in range(300):
            with env.begin(write=True) as txn:
                txn.put(b"%016d" % number, b"v" * 100)
        return 300

    return run


# --- a crowd ------------------------------------------------------------------------------------


CYCLE = "put+pop+complete"
# What each of several threads does; pops find what was put just before.
CROWD_WORK = {"put": puts, "pop+complete": pops, CYCLE: cycles}


def run_crowd(interval: Store, commit: Store, rounds: int) -> dict[str, float]:
    labels: dict[str, tuple[Store, int]] = {}
    for name, store in (("interval", interval), ("commit", commit)):
        for threads in (1, THREADS):
            labels[f"{name}, {threads} thread{'s' if threads > 1 else ''}"] = store, threads
    contenders: dict[str, Contender] = {
        f"{what}: {label}": crowd_of(store, threads, work)
        for what, work in CROWD_WORK.items()
        for label, (store, threads) in labels.items()
    }
    measured = seconds_each(contenders, rounds=rounds)
    by_work = {
        what: {label: measured[f"{what}: {label}"] for label in labels} for what in CROWD_WORK
    }
    for what, figures in by_work.items():
        report(
            f"{what} by threads",
            figures,
            baseline="interval, 1 thread",
            durability={"interval": INTERVAL, "commit": "fsync before each reply"},
        )
    with slower_syncs():
        slow = seconds_each(
            {name: contenders[f"{CYCLE}: {name}"] for name in labels if "commit" in name},
            rounds=rounds,
        )
    one, many = slow.values()
    fact(
        f"{THREADS} threads vs one, durable, where a sync takes {SLOW_SYNC * 1e3:g} ms",
        f"{one / many:.1f} x",
    )
    return by_work[CYCLE]


@contextmanager
def slower_syncs() -> Iterator[None]:
    """Imitates a slower disk: waits after each sync until `SLOW_SYNC` is over."""
    sync = os.fdatasync

    def slow(fd: Any) -> None:
        end = time.perf_counter() + SLOW_SYNC
        sync(fd)
        time.sleep(max(0.0, end - time.perf_counter()))

    with patch.object(os, "fdatasync", slow):
        yield


def crowd_of(store: Store, size: int, work: Callable[[Store, str, int], int]) -> Contender:
    """Returns a contender of `size` threads, each with a queue of its own."""
    each = 25

    def run() -> int:
        threads = [
            threading.Thread(target=work, args=(store, f"crowd-of-{size}-{n}", each))
            for n in range(size)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return size * each

    return run


# --- long queues --------------------------------------------------------------------------------


def run_lengths(store: Store, long: int, rounds: int) -> dict[str, float]:
    for queue, length in (("short", SHORT), ("long", long)):
        for begin in range(0, length, BATCH):
            batch = [NewJob(queue=queue, klass="klass", data=DATA)] * min(BATCH, length - begin)
            store.jobs.put_many(batch)

    figures = seconds_each(
        {
            "put, short queue": lambda: puts(store, "short", 200),
            "put, long queue": lambda: puts(store, "long", 200),
            "pop+complete, short queue": lambda: pops(store, "short", 200),
            "pop+complete, long queue": lambda: pops(store, "long", 200),
        },
        rounds=rounds,
    )
    title = f"Interval, {SHORT:,} jobs waiting and {long:,}"
    report(title, figures, baseline="put, short queue", durability=INTERVAL)
    return figures


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
