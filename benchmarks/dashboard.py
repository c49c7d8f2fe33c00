"""How long does the server take for each page of the dashboard, and what does its recording cost?

Run: python -m benchmarks.dashboard [--quick] [--data FOLDER]

A store with 1,000,000 jobs, entities and rows, a set of as many members, 1,000 queues, 1,000 spaces
and 1,000 metrics (with --quick a fiftieth of each), on a server in interval mode. Each page is
asked for over HTTP, one after the other, and the 95th percentile is what counts. The cost of
recording is the processor time of two servers, one of which records, for jobs that are put, popped
and completed over RESP, some at one server, then as many at the other, and so on. Last, Chromium
shows the overview of a server that runs 2,000 jobs a second: how late are timers of the page?
"""

import http.client
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

import holdfast
from benchmarks.growth import BATCH, SPECS, TABLE, fill
from benchmarks.rounds import fact, reach, report, run_benchmark
from holdfast.client.client import Client
from holdfast.dashboard import pages
from holdfast.jobs import JobSearch, NewJob, Report
from holdfast.store import Store

ITEMS, ENTRIES, FEW = 1_000_000, 100_000, 1_000
JOBS_A_SECOND = 2_000
USERS, TABLE_PAGE = "entities/growth.Users", "tables/pages"
PATHS = (
    "", "queues", "queues?after=queue-5", "queues/q", "queues/q?text=nothing",
    "queues/failing?state=failed", "queues/q?state=complete", "jobs/j7", "failures",
    "failures/Error7", "workers", "workers/worker-7", "schedules", "schedules/r7", "throttles",
    "throttles?name=throttle-7", "tracked", "search?q=j7", "search?klass=k", "bulk", "bulk/{bulk}",
    "tables", TABLE_PAGE, f"{TABLE_PAGE}?q=t7", f"{TABLE_PAGE}/rows/{{row}}",
    f"{TABLE_PAGE}/export?as=ndjson&q=t7", "entities", USERS, f"{USERS}?c0=name&v0=name%207",
    f"{USERS}?order=name&cursor=500", f"{USERS}/ids/u7", f"{USERS}/new", "schemas?schema=growth",
    "events", "events/playground", "events/schemas/views", "events/keys/room:members",
    "events/keys/popular", "metrics", "metrics/hits", "metrics/visits",
    "metrics/visits?entity=user,7", "metrics/metric%207", "limits?condition=c", "spaces",
    "spaces?cursor=space-500",
    "spaces/default", "spaces/space-7", "users", "backups", "check", "settings", "slow",
)  # fmt: skip


class Served(NamedTuple):
    """A running server."""

    pid: int
    http: int
    client: Client


def main(quick: bool, data: Path | None) -> None:
    share = 50 if quick else 1
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as text:
        folder = Path(text)
        large = data or folder / "large"
        if not large.exists():
            make_large(large, share)
        with serving(large, "--no-record") as served:
            slowest = measure_pages(served, 20 if quick else 40)
        cost = measure_recording(folder, 100 if quick else 300, 10 if quick else 60)
        late = measure_browser(folder / "busy", 3 if quick else 15)
    print("\nReach")
    reach("p95 of the slowest page, in ms", slowest * 1000, 100, at_most=True)
    reach("p99 of how late a timer of the page is, in ms", late, 100, at_most=True)
    reach("processor time of a job cycle with recording vs without", cost, 1.02, at_most=True)


def make_large(folder: Path, share: int) -> None:
    with fill(folder, ITEMS // share) as store:
        rank(store, ENTRIES // share)
        spread(store, FEW // share)


def spread(store: Store, number: int) -> None:
    """Adds many queues, groups, workers, schedules, tables, metrics and spaces."""
    store.jobs.put_many([NewJob(queue=f"queue-{n}", klass="k") for n in range(number)])
    store.jobs.put_many(
        [NewJob(queue="failing", klass="k", id=f"f{n}") for n in range(10 * number)]
    )
    for group in range(number):
        worker = f"worker-{group}"
        *lost, kept = store.jobs.pop("failing", worker, 10)  # each worker still holds one
        for job in lost:
            store.jobs.fail(job.id, worker, f"Error{group}", "it broke")
        if group % 10 == 0:
            store.jobs.track(kept.id)
        store.jobs.recur(f"queue-{group}", "k", id=f"r{group}", interval=86_400)
        store.jobs.throttle_set(f"throttle-{group}", 5)
    for n in range(number // 10):
        store.tables.create(TABLE, table=f"table-{n}")
    store.metrics.define({f"metric {n}": SPECS["hits"] for n in range(number)})
    count_visits(store, 100 * number)
    for n in range(number):
        store.space(f"space-{n}").jobs.put("q")


def count_visits(store: Store, number: int) -> None:
    """Counts the visits of `number` users, which are kept for a month."""
    store.metrics.define({"visits": {"sequences": [{"timeStep": 3600, "expiry": 30 * 86_400}]}})
    for begin in range(0, number, BATCH):
        users = range(begin, min(begin + BATCH, number))
        store.metrics.write([{"metric": "visits", "entity": ["user", n]} for n in users])


def rank(store: Store, number: int) -> None:
    """Counts `number` values on one leaderboard."""
    handler = {"targets": ["['popular']"], "count_frequency": "page", "max_stored_values": number}
    store.events.deploy({"view": [handler]}, name="views")
    for begin in range(0, number, BATCH):
        numbers = range(begin, begin + BATCH)
        views = [{"name": "view", "attributes": {"page": f"page {n}"}} for n in numbers]
        store.events.send_many(views, schema="views")


# --- pages ---------------------------------------------------------------------------------------


def measure_pages(served: Served, times: int) -> float:
    """Requests all pages in turn; returns the slowest 95th percentile in seconds."""
    paths = all_paths(served.client)
    taken: dict[str, list[float]] = {path: [] for path in paths}
    for path in paths:
        ask(served.http, path)  # compiles its template
    for _ in range(times):
        for path in paths:
            begin = time.perf_counter()
            ask(served.http, path)
            taken[path].append(time.perf_counter() - begin)
    figures = {path or "overview": percentile(each, 0.95) for path, each in taken.items()}
    report("A page, 95th percentile", figures, baseline="overview")
    return max(figures.values())


def all_paths(client: Client) -> list[str]:
    """Returns `PATHS`, which has every page, with names that exist in this store."""
    bulk = client.jobs.bulk_start("priority", JobSearch(queue="queue-1"), priority=1).id
    [row] = client.tables.get("pages", {"title": "t7"}, limit=1).items
    key = quote(f"t7/{row['tid']}", safe="")
    paths = [path.format(bulk=bulk, row=key) for path in PATHS]
    shown = [unquote(path.partition("?")[0]).split("/") if path else [] for path in paths]
    found = [
        pages.find(pages.PAGES, [*each[:3], "/".join(each[3:])][: len(each)]) for each in shown
    ]
    missing = {entry.segments for entry in pages.PAGES} - {
        each[0].segments for each in found if each
    }
    assert not missing, f"nobody asks for {missing}"
    return paths


def ask(port: int, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", f"/ui/default/{path}", headers={"Accept": "text/html"})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[-500:])
    finally:
        connection.close()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# --- a browser -----------------------------------------------------------------------------------


def measure_browser(folder: Path, seconds: float) -> float:
    """Runs 2,000 jobs a second while Chromium shows the overview; returns how late its timers are.

    A timer of 50 ms that is late by a second is a page that does not react for a second.
    """
    from tests.dashboard.browser import chromium

    with serving(folder) as served, chromium() as browser:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{served.http}/ui/default/")
        page.evaluate(
            """() => { window.late = []; let last = performance.now(); setInterval(() => {
            const now = performance.now(); late.push(now - last - 50); last = now; }, 50); }"""
        )
        run_jobs(served.client, seconds)
        late = [float(each) for each in page.evaluate("window.late")]
        shown = page.locator("#tiles").inner_text()
    assert "running" in shown
    fact("p50 of how late a timer of the page is", f"{percentile(late, 0.5):.1f} ms")
    return percentile(late, 0.99)


def run_jobs(client: Client, seconds: float) -> None:
    """Puts, pops and completes jobs, as many in each tenth of a second."""
    begin = time.monotonic()
    done = 0
    while time.monotonic() < begin + seconds:
        client.jobs.put_many([NewJob(queue="busy", klass="k") for _ in range(JOBS_A_SECOND // 10)])
        jobs = client.jobs.pop("busy", "w", JOBS_A_SECOND // 10)
        client.jobs.report(
            [Report(id=job.id, worker="w", what="complete", lock=job.lock) for job in jobs]
        )
        done += len(jobs)
        time.sleep(max(0.0, begin + done / JOBS_A_SECOND - time.monotonic()))
    fact("jobs a second while the browser is open", f"{done / (time.monotonic() - begin):,.0f}")


# --- recording -----------------------------------------------------------------------------------


def measure_recording(folder: Path, cycles: int, rounds: int) -> float:
    """Returns the processor time of a job cycle with recording, as a ratio to that without."""
    with (
        serving(folder / "without", "--no-record") as without,
        serving(folder / "recording") as recording,
    ):
        both = {"without recording": without, "with recording": recording}
        spent = dict.fromkeys(both, 0.0)
        for served in both.values():
            cycle(served, cycles)  # warms up
        for round in range(rounds):
            # In turns, so that noise of the machine affects both; each is first as often as second.
            for name in sorted(both, reverse=round % 2 == 0):
                before = cpu_seconds(both[name].pid)
                cycle(both[name], cycles)
                spent[name] += cpu_seconds(both[name].pid) - before
    figures = {name: seconds / (cycles * rounds) for name, seconds in spent.items()}
    report("A job's put, pop and complete, processor time", figures, baseline="without recording")
    return figures["with recording"] / figures["without recording"]


def cycle(served: Served, cycles: int) -> None:
    jobs = served.client.jobs
    for _ in range(cycles):
        jobs.put("q", "k", {"n": 1})
        [job] = jobs.pop("q", "w")
        jobs.complete(job.id, "w", lock=job.lock)


def cpu_seconds(pid: int) -> float:
    """Returns the processor time of all threads of a process, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1e9


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
    run_benchmark(main, file=__file__, doc=__doc__, keeps_data=True)
