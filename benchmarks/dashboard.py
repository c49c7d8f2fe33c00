"""How long does the server take for each page of the dashboard, and what does its recording cost?

Run: python -m benchmarks.dashboard [--quick]

A store with 1,000,000 jobs, entities and rows, a set of as many members, 1,000 queues, 1,000 spaces
and 1,000 metrics (with --quick a fiftieth of each), on a server in interval mode. Each page is
asked for over HTTP, one after the other, and the 95th percentile is what counts. A job's put, pop
and complete over RESP cost a server some processor time; what recording adds to three operations is
measured apart, without a server, since it is less than the noise of a machine.
"""

import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import holdfast
from benchmarks.growth import SPECS, fill
from benchmarks.rounds import fact, reach, report, run_benchmark, seconds_each
from holdfast.client.client import Client
from holdfast.dashboard.pages import PAGES
from holdfast.jobs import NewJob
from holdfast.operations import OPERATIONS
from holdfast.server.recorder import Recorder
from holdfast.store import Store

ITEMS, FEW = 1_000_000, 1_000
NAMES = {"queue": "q", "id": "j7", "group": "Error", "worker": "w", "name": "pages"}
MORE = ("queues/q?state=failed", "queues/q?text=nothing", "search?q=j7", "search?klass=k")


class Served(NamedTuple):
    """A server that runs."""

    pid: int
    http: int
    client: Client


def main(quick: bool) -> None:
    share = 50 if quick else 1
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as text:
        store = fill(Path(text) / "large", ITEMS // share)
        spread(store, FEW // share)
        store.close()
        with serving(Path(text) / "large", "--no-record") as served:
            slowest = measure_pages(served, 20 if quick else 60)
        cost = measure_recording(Path(text), 300 if quick else 2_000, 7 if quick else 15)
    print("\nReach")
    reach("p95 of the slowest page, in ms", slowest * 1000, 100, at_most=True)
    reach("processor time of a job cycle with recording beside without", cost, 1.02, at_most=True)


def spread(store: Store, number: int) -> None:
    """Adds queues, spaces, metrics and failed jobs."""
    store.jobs.put_many([NewJob(queue=f"queue-{n}", klass="k") for n in range(number)])
    store.jobs.put_many([NewJob(queue="failing", klass="k", id=f"f{n}") for n in range(number)])
    for job in store.jobs.pop("failing", "w", number):
        store.jobs.fail(job.id, "w", "Error", "it broke")
    store.metrics.define({f"metric {n}": SPECS["hits"] for n in range(number)})
    for n in range(number):
        store.space(f"space-{n}").jobs.put("q")


# --- pages ---------------------------------------------------------------------------------------


def measure_pages(served: Served, times: int) -> float:
    """Asks for all pages in turns; returns the slowest 95th percentile in seconds."""
    paths = [*pages(served.http), *MORE]
    taken: dict[str, list[float]] = {path: [] for path in paths}
    for path in paths:
        ask(served.http, path)  # compiles its template
    for _ in range(times):
        for path in paths:
            begin = time.perf_counter()
            ask(served.http, path)
            taken[path].append(time.perf_counter() - begin)
    figures = {path or "overview": percentile(each, 0.95) for path, each in taken.items()}
    report("A page, 95th percentile", figures, beside="overview")
    return max(figures.values())


def pages(port: int) -> list[str]:
    """Returns the paths of all pages that have what they are about in this store."""
    found = []
    for entry in PAGES:
        path = "/".join(
            NAMES.get(each.strip("{}"), each) if each[:1] == "{" else each
            for each in entry.segments
        )
        if ask(port, path) == 200:
            found.append(path)
    return found


def ask(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", f"/ui/default/{path}", headers={"Accept": "text/html"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# --- recording -----------------------------------------------------------------------------------


def measure_recording(folder: Path, cycles: int, rounds: int) -> float:
    """Returns the processor time of a job cycle with recording, beside that without."""
    with serving(folder / "without", "--no-record") as served:
        cycle(served, cycles)  # warms up
        before = cpu_seconds(served.pid)
        cycle(served, cycles * rounds)
        alone = (cpu_seconds(served.pid) - before) / (cycles * rounds)
    with holdfast.open(folder / "recorded") as store:
        on, off = Recorder(store, is_on=True), Recorder(store, is_on=False)
        contenders = {"off": partial(record, off), "on": partial(record, on)}
        each = seconds_each(contenders, rounds=rounds)
        begin = time.process_time()
        on.write()
        fact("processor time of a write, each 15 s", f"{time.process_time() - begin:.4f} s")
    added = 3 * (each["on"] - each["off"])
    figures = {"without recording": alone, "with recording": alone + added}
    report("A job's put, pop and complete, processor time", figures, beside="without recording")
    return figures["with recording"] / figures["without recording"]


def record(recorder: Recorder, times: int = 20_000) -> int:
    """Runs an operation that does nothing, as a server would."""
    operation = OPERATIONS["jobs.length"]
    arguments = operation.arguments(queue="q")
    for _ in range(times):
        recorder.work_of(operation, arguments)(Idle)
    return times


class Idle:
    """A transaction whose jobs do nothing."""

    class jobs:  # noqa: N801  # it stands for a layer
        @staticmethod
        def length(queue: str) -> int:
            return 0


def cycle(served: Served, cycles: int) -> None:
    jobs = served.client.jobs
    for _ in range(cycles):
        jobs.put("q", "k", {"n": 1})
        [job] = jobs.pop("q", "w")
        jobs.complete(job.id, "w", lock=job.lock)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "holdfast", "serve", "--data", str(folder), *options]
    command += ["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--durability", "interval"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        resp, http_port = re.findall(r":(\d+)", process.stdout.readline())
        with holdfast.connect(f"holdfast://127.0.0.1:{resp}") as client:
            yield Served(process.pid, int(http_port), client)
    finally:
        process.terminate()
        process.communicate()


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
