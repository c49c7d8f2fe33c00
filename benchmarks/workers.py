"""How many tasks does one worker program drain, and how soon does an idle one start the next?

Run: python -m benchmarks.workers [--quick]

The real worker programs, each as one process with 8 threads and in an environment of its own; RQ
has no threads and forks for each job. Redis here is a valkey-server that syncs once a second.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.alternatives import (
    EVERY_SECOND,
    INTERVAL,
    SYNCED,
    holdfast_server,
    in_rounds,
    seconds,
)
from benchmarks.environments import SCRIPTS, Peer
from benchmarks.rounds import fact, reach, report, run_benchmark
from holdfast.tasks import Tasks, Worker
from tests.servers import ValkeyServer

THREADS = 8
DURABLE = Peer("Holdfast, durable", "workers_holdfast", (), ("commit",))
IN_INTERVALS = Peer("Holdfast, interval", "workers_holdfast", (), ("interval",))
HUEY = Peer("Huey on sqlite3", "workers_huey", ("huey", "redis"))
DRAMATIQ = ("dramatiq[redis]",)
PREFETCHING = Peer("Dramatiq, prefetch 200", "workers_dramatiq", DRAMATIQ, ("200",))
ON_REDIS = [
    Peer("Dramatiq", "workers_dramatiq", DRAMATIQ),
    PREFETCHING,
    Peer("RQ", "workers_rq", ("rq", "redis")),
    Peer("Celery", "workers_celery", ("celery[redis]",)),
]
# The worker named first should run at least this many times the jobs of the second.
WANTED = [
    (DURABLE.name, PREFETCHING.name, 3),
    (DURABLE.name, "RQ", 5),
    (DURABLE.name, "Celery", 5),
    (IN_INTERVALS.name, HUEY.name, 1.5),
]

tasks = Tasks(queue="peer")


@tasks.task(name="started")
def started() -> float:
    return time.perf_counter()  # one clock for all processes of a machine


def main(quick: bool) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-")))
        drained = run_drains(folder, *((2_000, 1) if quick else (10_000, 5)))
        latencies, memory, idle = run_idle(folder, *((20, 3.0) if quick else (200, 20.0)))
    print("\nReach")
    for ours, theirs, wanted in WANTED:
        if theirs in drained:
            ratio = drained[theirs] / drained[ours]
            reach(f"tasks drained, {ours} vs {theirs}", ratio, wanted, at_most=False)
    for where, limit in (("same process", 3), ("other process", 10), ("over the network", 10)):
        what = f"from put to start in ms, idle worker, {where}"
        reach(what, latencies[where] * 1e3, limit, at_most=True)
    reach(f"MiB of a worker with {THREADS} threads", memory, 60, at_most=True)
    reach("an idle worker's use of a core in %", idle, 0.5, at_most=True)


def run_drains(folder: Path, count: int, rounds: int) -> dict[str, float]:
    """Returns the seconds of each task, by worker program."""
    with ValkeyServer.started(appendonly="yes", appendfsync="everysec") as redis:
        url = redis.url.partition("?")[0].replace("valkey://", "redis://")
        fresh = iter(range(1_000))
        figures = in_rounds(
            {
                **{
                    peer: lambda: str(folder / f"drained-{next(fresh)}")
                    for peer in (DURABLE, IN_INTERVALS, HUEY)
                },
                **{peer: lambda: url for peer in ON_REDIS},
            },
            count,
            rounds,
            redis.empty,
        )
    drained = seconds(figures, "drained")
    kept = {"durable": SYNCED, "interval": INTERVAL, "Huey": "none (synchronous = off)"}
    report(
        "A task that does nothing, drained by one process",
        drained,
        baseline=DURABLE.name,
        durability={**kept, "": EVERY_SECOND},
    )
    return drained


def run_idle(folder: Path, count: int, idle: float) -> tuple[dict[str, float], float, float]:
    """Measures the latency of idle workers, their memory in MiB and their use of a core in %."""
    latencies = {}
    with holdfast.open(folder / "same") as store, Worker(store, tasks, threads=THREADS):
        latencies["same process"] = latency(store, count)
    data = str(folder / "shared")
    with holdfast.open(data) as store, worker_program("--data", data) as pid:
        latencies["other process"] = latency(store, count)
        memory = memory_of(pid)
        used = idle_use(pid, idle)
    with (
        holdfast_server(folder / "served") as url,
        holdfast.connect(url) as client,
        worker_program("--url", url),
    ):
        latencies["over the network"] = latency(client, count)
    title = "From put to start, idle worker, durable"
    report(title, latencies, baseline="same process", durability=SYNCED)
    fact(f"memory of a worker with {THREADS} threads", f"{memory:.0f} MiB")
    fact("an idle worker's use of a core", f"{used:.2f} %")
    return latencies, memory, used


def latency(where: Any, count: int) -> float:
    """Returns the median of the seconds from the call of put to the start of the task."""
    started.put(where).result(timeout=60)  # the worker has started
    found: list[float] = []
    for _ in range(count):
        time.sleep(0.02)  # so that the worker waits again
        begin = time.perf_counter()
        found.append(started.put(where).result(timeout=60) - begin)
    return statistics.median(found)


@contextmanager
def worker_program(*where: str) -> Iterator[int]:
    """Yields the process id of a `holdfast worker`."""
    command = [sys.executable, "-m", "holdfast", "worker", "workers_holdfast:tasks", *where]
    command += ["--threads", str(THREADS), "--path", str(SCRIPTS)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as worker:
        try:
            yield worker.pid
        finally:
            worker.terminate()


def memory_of(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def idle_use(pid: int, seconds: float) -> float:
    """Returns the share of a core that an idle process uses, in %."""

    def used() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    time.sleep(1)
    before = used()
    time.sleep(seconds)
    return 100 * (used() - before) / seconds


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
