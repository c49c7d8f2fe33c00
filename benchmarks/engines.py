"""What does the same work cost on every engine, and how does it grow?

Run: python -m benchmarks.engines [--quick]

The servers are those of the tests, on this machine, so a round trip is a local one: count the round
trips, and multiply them by the time of one in your network. CPU is that of
all threads of this process. It depends less on what else the machine does than the time, which is
the least of all rounds.
"""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import holdfast
from benchmarks.rounds import fact, keep, run_benchmark
from holdfast.store import Space, Store
from tests.server.running import Server
from tests.servers import ENGINES, Servers

THREADS: Final = 16
Call = Callable[[], object]


class Cost(NamedTuple):
    """The cost of one call."""

    seconds: float
    cpu_seconds: float
    round_trips: float


def main(quick: bool) -> None:
    rounds, calls = (3, 96) if quick else (7, 480)
    servers = Servers()
    try:
        for engine in ENGINES:
            measure_calls(servers, engine, rounds, calls)
            measure_spaces(servers, engine, rounds, calls)
            measure_servers(servers, engine, calls)
    finally:
        servers.close()


# --- calls ----------------------------------------------------------------------------------------


def measure_calls(servers: Servers, engine: str, rounds: int, calls: int) -> None:
    print(f"\n{engine}: one call          1 thread                {THREADS} threads")
    print("                          µs    CPU µs   trips        µs    CPU µs   trips")
    seconds: dict[str, float] = {}
    with opened(servers, engine) as store:
        for name, call in operations(store).items():
            alone = least(store, call, rounds, calls, threads=1)
            together = least(store, call, rounds, calls, threads=THREADS)
            print(f"  {name:<20}{shown(alone)}   {shown(together)}")
            seconds[name] = alone.seconds
            seconds[f"{name}, {THREADS} threads"] = together.seconds
            if engine != "lmdb":
                trips = f"{alone.round_trips:.1f} alone, {together.round_trips:.1f} in a crowd"
                fact(f"{engine}: round trips to {name}", trips)
    keep(f"{engine}: one call", seconds, "as in interval mode")


def operations(store: Store) -> dict[str, Call]:
    """Runs the same calls on every engine. They read what was written before."""
    numbers = count()
    for number in range(200):
        store.jobs.put("read", id=f"job-{number}")
    store.metrics.define({"hits": {"lifetime": True}}, prefix="bench")
    prefix = store.prefix

    def read_and_write(tx: Any) -> None:
        key = prefix + b"\xffbench"
        tx.raw.put(key, b"%d" % (int(tx.raw.get(key) or b"0") + 1))

    def pop_and_complete() -> None:
        store.jobs.put("work")
        for job in store.jobs.pop("work", worker="bench"):
            store.jobs.complete(job.id, worker="bench", lock=job.lock)

    def scan() -> int:
        with store.view() as view:
            return sum(1 for _ in view.raw.scan(prefix, prefix + b"\xff", limit=100))

    return {
        "read a job": lambda: store.jobs.get(f"job-{next(numbers) % 200}"),
        "scan 100 keys": scan,
        "add to a counter": lambda: store.transact(
            lambda tx: tx.raw.add(prefix + b"\xffcounter", 1)
        ),
        "read and write": lambda: store.transact(read_and_write),
        "put a job": lambda: store.jobs.put("put"),
        "put, pop, complete": pop_and_complete,
        "count an event": lambda: store.metrics.incr("hits", ["page"], prefix="bench"),
    }


# --- spaces ---------------------------------------------------------------------------------------


def measure_spaces(servers: Servers, engine: str, rounds: int, calls: int) -> None:
    print(f"\n{engine}: put a job, {THREADS} threads, spread over spaces")
    with opened(servers, engine) as store:
        for number in (1, 4, 16, 64):
            spaces = [store.space(f"space-{n}") for n in range(number)]
            for space in spaces:
                space.jobs.put("q")
            turns = count()

            def put(spaces: Sequence[Space] = spaces, turns: Iterator[int] = turns) -> None:
                spaces[next(turns) % len(spaces)].jobs.put("q")

            print(f"  {number:>4} spaces  {shown(least(store, put, rounds, calls, THREADS))}")


# --- servers --------------------------------------------------------------------------------------


def measure_servers(servers: Servers, engine: str, calls: int) -> None:
    """Measures eight clients of one and of two `holdfast serve`, each on its own connection."""
    print(f"\n{engine}: put a job through `holdfast serve`, 8 clients, one call at a time each")
    for number in (1, 2):
        url = servers.lend(engine)
        with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
            running = [
                Server(Path(folder) / str(n), "--engine", url, "--durability", "interval")
                for n in range(number)
            ]
            try:
                begin = time.perf_counter()
                in_threads(8, [partial(put_by_resp, running[n % number], calls) for n in range(8)])
                seconds = (time.perf_counter() - begin) / (8 * calls)
                print(f"  {number} server(s)  {seconds * 1e6:9.0f} µs each")
            finally:
                for server in running:
                    server.stop()
        servers.give_back(url)


def put_by_resp(server: Server, calls: int) -> None:
    with server.connect() as client:
        for _ in range(calls):
            reply = client.ask("JOBS.PUT", json.dumps({"queue": "q"}))
            assert isinstance(reply, bytes), reply


# --- measuring ------------------------------------------------------------------------------------


@contextmanager
def opened(servers: Servers, engine: str) -> Iterator[Store]:
    url = servers.lend(engine)
    with holdfast.open(url, durability="interval") as store:
        yield store
    servers.give_back(url)


def least(store: Store, call: Call, rounds: int, calls: int, threads: int) -> Cost:
    """Returns the least of several rounds, figure by figure."""
    call()
    costs = [measured(store, call, calls, threads) for _ in range(rounds)]
    return Cost(*(min(column) for column in zip(*costs, strict=True)))


def measured(store: Store, call: Call, calls: int, threads: int) -> Cost:
    trips = store.stats().get("round_trips", 0)
    begin, begin_cpu = time.perf_counter(), time.process_time()
    if threads == 1:
        repeat(call, calls)
    else:
        in_threads(threads, [partial(repeat, call, calls // threads)] * threads)
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - begin_cpu
    trips = store.stats().get("round_trips", 0) - trips
    return Cost(seconds / calls, cpu_seconds / calls, trips / calls)


def repeat(call: Call, times: int) -> None:
    for _ in range(times):
        call()


def in_threads(number: int, calls: Sequence[Call]) -> None:
    errors: list[BaseException] = []

    def run(call: Call) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def shown(cost: Cost) -> str:
    seconds, cpu_seconds, trips = cost
    return f"{seconds * 1e6:9.0f} {cpu_seconds * 1e6:9.0f} {trips:7.2f}"


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
