"""How do job queues, limiters and mappers that people use compare, each with its defaults?

Run: python -m benchmarks.alternatives [--quick]

Every package runs in an environment of its own, under .peers/; one that can't be installed is left
out, with the reason. A queue is measured in two phases: 8 clients enqueue jobs that do nothing, and
then 8 at a time are run. "From put to done" is the sum of both. Redis here is a valkey-server that
syncs once a second, its default with an append-only file; PostgreSQL syncs each commit.
"""

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.environments import NotInstalled, Peer, measure
from benchmarks.rounds import reach, report, run_benchmark, skip
from tests.servers import PostgresServer, ValkeyServer

REASON = "each job has history, statistics and a lock, which the peer does not keep"
EVERY_SECOND = "fsync every second"
SYNCED = "fsync before each reply"
INTERVAL = "a checkpoint every second"

OURS = Peer("Holdfast", "jobs_holdfast", ())
EMBEDDED = Peer("Holdfast, in process", "jobs_holdfast", ())
QUEUES = [
    Peer("RQ", "jobs_rq", ("rq", "redis")),
    Peer("Huey on Redis", "jobs_huey", ("huey", "redis")),
    Peer("Dramatiq", "jobs_dramatiq", ("dramatiq[redis]",)),
    Peer("Celery", "jobs_celery", ("celery[redis]",)),
    Peer("arq", "jobs_arq", ("arq",)),
]
ON_POSTGRES = [
    Peer("procrastinate", "jobs_procrastinate", ("procrastinate",)),
    Peer("PgQueuer", "jobs_pgqueuer", ("pgqueuer[asyncpg]",)),
]
HUEY = Peer("Huey on sqlite3", "jobs_huey", ("huey", "redis"))
LIMITERS = [
    Peer("pyrate-limiter", "limits_pyrate", ("pyrate-limiter", "redis")),
    Peer("throttled-py", "limits_throttled", ("throttled-py", "redis")),
]
OUR_LIMITER = Peer("Holdfast, in process", "limits_holdfast", ())
WALRUS = Peer("walrus", "entities_walrus", ("walrus",))
OUR_ENTITIES = Peer("Holdfast, in process", "entities_holdfast", ())

_databases = count()
Figures = dict[str, dict[str, float]]  # by contender and phase: the median of calls per second


def main(quick: bool) -> None:
    # In process a call takes a tenth of the time, so there are ten times as many of them.
    count, rounds = (1_000, 3) if quick else (2_000, 7)
    count_in_process = 10 * count
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-")))
        redis = stack.enter_context(ValkeyServer.started(appendonly="yes", appendfsync="everysec"))
        postgres = stack.enter_context(PostgresServer(durable=True))
        served = stack.enter_context(holdfast_server(folder / "served"))
        redis_url = redis.url.partition("?")[0].replace("valkey://", "redis://")

        def fresh_file() -> str:
            return tempfile.mktemp(dir=folder)

        queues = in_rounds(
            {
                OURS: lambda: served,
                **{peer: lambda: redis_url for peer in QUEUES},
                **{peer: partial(fresh_database, postgres) for peer in ON_POSTGRES},
            },
            count,
            rounds,
            redis.empty,
        )
        embedded = in_rounds(
            {EMBEDDED: fresh_file, HUEY: fresh_file}, count_in_process, rounds, redis.empty
        )
        limiters = in_rounds(
            {OUR_LIMITER: fresh_file, **{peer: lambda: redis_url for peer in LIMITERS}},
            count,
            rounds,
            redis.empty,
        )
        entities = in_rounds(
            {OUR_ENTITIES: fresh_file, WALRUS: lambda: redis_url}, count, rounds, redis.empty
        )
    show(queues, embedded, limiters, entities)


def show(queues: Figures, embedded: Figures, limiters: Figures, entities: Figures) -> None:
    durable = {"Holdfast": SYNCED, "procrastinate": SYNCED, "PgQueuer": SYNCED, "": EVERY_SECOND}
    for phase in ("enqueued", "completed"):
        figures = seconds(queues, phase)
        report(f"A job, {phase}, 8 clients", figures, baseline="Holdfast", durability=durable)
    done = from_put_to_done(queues)
    report("A job from put to done, 8 clients", done, baseline="Holdfast", durability=durable)
    unsynced = {"Holdfast": INTERVAL, "Huey": "none (synchronous = off)"}
    whole = from_put_to_done(embedded)
    report("A job from put to done, in process", whole, baseline=EMBEDDED.name, durability=unsynced)
    for storage, kept in (("memory", "none"), ("redis", EVERY_SECOND)):
        report(
            f"A limiter's hit, peers on {storage}",
            seconds(limiters, storage),
            baseline=OUR_LIMITER.name,
            durability={"Holdfast": INTERVAL, "": kept},
        )
    for work in ("get", "select", "put"):
        report(
            f"An object with five fields: {work}",
            seconds(entities, work),
            baseline=OUR_ENTITIES.name,
            durability={"Holdfast": SYNCED, "": EVERY_SECOND},
        )
    print("\nReach")
    named = {"RQ", "Celery", "Dramatiq", "arq", "procrastinate"} & done.keys()
    if named:
        fastest = min(named, key=lambda name: done[name])
        ratio = done[fastest] / done["Holdfast"]
        reach(
            f"jobs over RESP, synced, vs the fastest ({fastest})",
            ratio,
            3,
            at_most=False,
            reason=REASON,
        )
    if HUEY.name in whole:
        ratio = whole[HUEY.name] / whole[EMBEDDED.name]
        reach(
            "jobs in interval mode vs Huey on sqlite3, unsynced",
            ratio,
            2,
            at_most=False,
            reason=REASON,
        )


def from_put_to_done(figures: Figures) -> dict[str, float]:
    """Returns the seconds of both phases together."""
    return {name: 1 / each["enqueued"] + 1 / each["completed"] for name, each in figures.items()}


def in_rounds(
    contenders: Mapping[Peer, Callable[[], str]],
    count: int,
    rounds: int,
    empty: Callable[[], None],
) -> Figures:
    """Runs each contender once in every round, on a server or folder that is empty."""
    found: dict[str, dict[str, list[float]]] = {}
    left_out: set[Peer] = set()
    for _ in range(rounds):
        for peer, address in contenders.items():
            if peer in left_out:
                continue
            try:
                figures = measure(peer, address(), count)
            except NotInstalled as reason:
                left_out.add(peer)
                skip(peer.name, str(reason))
                continue
            finally:
                empty()
            figures.pop("version")
            for phase, rate in figures.items():
                found.setdefault(peer.name, {}).setdefault(phase, []).append(rate)
    return {
        name: {phase: statistics.median(rates) for phase, rates in phases.items()}
        for name, phases in found.items()
    }


def seconds(figures: Figures, phase: str) -> dict[str, float]:
    return {name: 1 / phases[phase] for name, phases in figures.items() if phase in phases}


def fresh_database(server: PostgresServer) -> str:
    """Yields the address of an empty database."""
    name = f"bench_{next(_databases)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"create database {name}".encode())
    return server.url(name)


@contextmanager
def holdfast_server(folder: Path) -> Iterator[str]:
    """Yields the address of a server that waits for the disk before each reply."""
    command = [sys.executable, "-m", "holdfast", "serve", "--data", str(folder)]
    command += ["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    process: Any = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        words = process.stdout.readline().split()
        address = next(word for word in words if word[-1:].isdigit())
        yield f"holdfast://127.0.0.1:{address.rpartition(':')[2]}"
    finally:
        process.terminate()
        process.communicate()


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
