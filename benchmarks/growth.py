"""Does any operation get slower as a store, or the number of its clients, grows?

Run: python -m benchmarks.growth [--quick]

Each operation in stores of 1,000, 100,000 and 1,000,000 items (with --quick the last is left out),
interval mode; then over RESP with 1 to 64 connections. Also measured: the memory of a server, its
start-up, and the import of the library and of the command line.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import hiredis

import holdfast
from benchmarks.rounds import Contender, fact, reach, report, run_benchmark, seconds_each
from holdfast.defaults import LAYERS
from holdfast.entities import Model, column
from holdfast.entities.schema import Index, Schema
from holdfast.jobs import NewJob
from holdfast.store import Store

SIZES = (1_000, 100_000, 1_000_000)
CLIENTS = (1, 4, 16, 64)
BATCH = 1_000
INTERVAL = "a checkpoint every second"
TABLE = {
    "table": "pages",
    "attributes": {"title": "string", "tid": "timeuuid", "body": "string"},
    "index": [
        {"type": "hash", "attribute": "title"},
        {"type": "range", "attribute": "tid", "order": "desc"},
    ],
}
EVENTS = {"join": [{"targets": ["['room'].members"], "add": "user"}]}
SPECS: Any = {"hits": {"sequences": [{"timeStep": 1, "expiry": 120}]}}


class User(Model, schema="growth", table="Users", indexes=[Index(columns=("name",))]):
    name: str = column(required=True)


def main(quick: bool) -> None:
    sizes = SIZES[:2] if quick else SIZES
    rounds = 5 if quick else 9
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as text:
        folder = Path(text)
        stores = {size: fill(folder / str(size), size) for size in sizes}
        factors = grow(stores, sizes, rounds)
        for store in stores.values():
            store.close()
        with server(folder / "served") as (process, port):
            serve_clients(process, port, 0.4 if quick else 2.0)
    measure_starts(3 if quick else 9)
    print("\nReach")
    worst = max(factors, key=lambda name: factors[name])
    reach(f"the largest growth, {sizes[-1]:,} items ({worst})", factors[worst], 1.5, at_most=True)


# --- with the number of items --------------------------------------------------------------------


def fill(folder: Path, size: int) -> Store:
    """Yields a store in which every layer holds `size` items."""
    print(f"filling a store with {size:,} items of each kind ...", file=sys.stderr)
    store = holdfast.open(folder, durability="interval")
    store.entities.deploy(Schema(name="growth", tables=(User.__shape__.table,)))
    store.tables.create(TABLE)
    store.events.deploy(EVENTS)
    store.metrics.define(SPECS)
    for begin in range(0, size, BATCH):
        numbers = range(begin, begin + BATCH)
        store.entities.put(*(User(id=f"u{n}", name=f"name {n}") for n in numbers))
        store.tables.batch(
            [{"op": "put", "table": "pages", "attributes": {"title": f"t{n}"}} for n in numbers]
        )
        store.jobs.put_many([NewJob(queue="q", klass="k", id=f"j{n}") for n in numbers])
        store.events.send_many([joined(n) for n in numbers])
        store.metrics.write([{"metric": "hits", "entity": ["user", n]} for n in numbers])
    return store


def joined(number: int) -> dict[str, Any]:
    return {"name": "join", "attributes": {"user": f"user {number}"}}


_fresh = count(10**9)


def operations(store: Store, size: int) -> dict[str, Callable[[int], object]]:
    """Returns the repeated calls by name; each is told how often it ran."""
    limiter = store.metrics.limiter({"c": "1000000/minute"}, algorithm="gcra")

    def cycle(number: int) -> None:
        [job] = store.jobs.pop("q", "w")
        store.jobs.complete(job.id, "w", lock=job.lock)
        store.jobs.put("q", "k")

    def place(number: int) -> int:
        return number * 7_919 % size

    return {
        "entities: get": lambda n: store.entities.get_one(User, f"u{place(n)}"),
        "entities: select by index": lambda n: store.entities.select(
            User, User.name == f"name {place(n)}", limit=10
        ),
        "entities: put": lambda n: store.entities.put(User(name=f"name {next(_fresh)}")),
        "tables: newest revision": lambda n: store.tables.get(
            "pages", {"title": f"t{place(n)}"}, limit=1
        ),
        "tables: put": lambda n: store.tables.put(
            "pages", {"title": f"t{place(n)}", "body": "more"}
        ),
        "jobs: pop, complete and put": cycle,
        "jobs: counts of a queue": lambda n: store.jobs.counts("q"),
        "events: send": lambda n: store.events.send(joined(place(n))),
        "events: size of a set": lambda n: store.events.size("room:members"),
        "metrics: increment": lambda n: store.metrics.incr("hits", ["user", place(n)]),
        "metrics: hit of a limit": lambda n: limiter.try_incr("c", ["user", place(n)]),
    }


def grow(stores: dict[int, Store], sizes: tuple[int, ...], rounds: int) -> dict[str, float]:
    """Measures every operation on all sizes; returns how many times slower the largest is."""
    named = {size: operations(store, size) for size, store in stores.items()}
    factors = {}
    for name in named[sizes[0]]:
        contenders = {f"{size:,} items": repeat(named[size][name]) for size in sizes}
        figures = seconds_each(contenders, rounds=rounds)
        first, *_, last = figures
        report(name, figures, baseline=first, durability=INTERVAL)
        factors[name] = figures[last] / figures[first]
    return factors


def repeat(operation: Callable[[int], object], times: int = 100) -> Contender:
    numbers = count()

    def run() -> int:
        for _ in range(times):
            operation(next(numbers))
        return times

    return run


# --- with the number of clients ------------------------------------------------------------------


@contextmanager
def server(folder: Path) -> Iterator[tuple[Any, int]]:
    command = [sys.executable, "-m", "holdfast", "serve", "--data", str(folder)]
    command += ["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    process: Any = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        words = process.stdout.readline().split()
        address = next(word for word in words if word[-1:].isdigit())
        yield process, int(address.rpartition(":")[2])
    finally:
        process.terminate()
        process.communicate()


def serve_clients(process: Any, port: int, seconds: float) -> None:
    """Measures requests per second with 1 to 64 connections, and the memory that they take."""
    idle = resident_mib(process.pid)
    for name, command in {
        "JOBS.COUNTS": b'*2\r\n$11\r\nJOBS.COUNTS\r\n$13\r\n{"queue":"q"}\r\n',
        "JOBS.PUT": b'*2\r\n$8\r\nJOBS.PUT\r\n$13\r\n{"queue":"q"}\r\n',
    }.items():
        figures = {
            f"{clients} clients": 1 / ask(port, command, clients, seconds) for clients in CLIENTS
        }
        report(
            f"{name} over RESP, each",
            figures,
            baseline="1 clients",
            durability="fsync before each reply",
        )
    print("\nMemory")
    fact("a server, idle", f"{idle:.0f} MiB")
    fact("a server, under load", f"{resident_mib(process.pid):.0f} MiB")


def ask(port: int, command: bytes, clients: int, seconds: float) -> float:
    """Returns requests per second."""
    done = [0] * clients
    end = time.perf_counter() + seconds

    def work(place: int) -> None:
        reader = hiredis.Reader()
        with socket.create_connection(("127.0.0.1", port)) as connection:
            while time.perf_counter() < end:
                connection.sendall(command)
                while reader.gets() is False:
                    reader.feed(connection.recv(65536))
                done[place] += 1

    threads = [threading.Thread(target=work, args=(place,)) for place in range(clients)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - begin)


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# --- starting ------------------------------------------------------------------------------------


def measure_starts(rounds: int) -> None:
    """Measures the first import above Python itself, in CPU time. Layers load when first used."""
    layers = "import " + ", ".join(f"holdfast.{layer}" for layer in LAYERS)
    programs = {
        "python -c pass": ["-c", "pass"],
        "import holdfast": ["-c", "import holdfast; holdfast.open"],
        "with all five layers": ["-c", f"import holdfast\n{layers}"],
        "holdfast --help": ["-m", "holdfast", "--help"],
    }
    figures: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, arguments in programs.items():
            figures[name].append(cpu_seconds([sys.executable, *arguments]))
    medians = {name: statistics.median(values) for name, values in figures.items()}
    report("A start, CPU time", medians, baseline="python -c pass")
    milliseconds = (medians["import holdfast"] - medians["python -c pass"]) * 1e3
    reach("milliseconds of `import holdfast`", milliseconds, 150, at_most=True)
    milliseconds = (medians["with all five layers"] - medians["python -c pass"]) * 1e3
    reason = "215 modules with 690 classes are loaded, once in a program"
    reach("the same with all five layers", milliseconds, 150, at_most=True, reason=reason)


def cpu_seconds(command: list[str]) -> float:
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
