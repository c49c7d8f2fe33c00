"""How close do the remote engines come to a plain driver on the same server?

Run: python -m benchmarks.engine_peers [--quick]

Each client is a process of its own, and every write waits for the disk. On PostgreSQL the peer is
psycopg: a table of jobs that are taken with FOR UPDATE SKIP LOCKED, and a table of rows. On Valkey
it is redis-py with a hash for each entity. HOLDFAST_BEFORE names the `src` of another version of
Holdfast, which then takes part too.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.rounds import reach, report, run_benchmark
from tests.servers import PostgresServer, ValkeyServer

CLIENTS: Final = (1, 4, 8)
SYNCED: Final = "fsync before each reply"
BEFORE: Final = os.environ.get("HOLDFAST_BEFORE", "")
PROGRAM: Final = Path(__file__).parent / "peers" / "remote_client.py"


class Contender(NamedTuple):
    """A program, the Holdfast that it uses, and whether its clients share a space."""

    name: str
    program: str
    source: str = ""
    shared: bool = True


OURS: Final = Contender("Holdfast", "holdfast")
APART: Final = Contender("Holdfast, a space each", "holdfast", "", False)
EARLIER: Final = [Contender("Holdfast before", "holdfast", BEFORE)] if BEFORE else []
WANTED: Final = {
    ("PostgreSQL", "cycle"): ("a job from put to complete", 1.0),
    ("PostgreSQL", "put"): ("an entity put", 0.8),
    ("PostgreSQL", "get"): ("an entity read", 0.8),
    ("Valkey", "put"): ("an entity put", 0.9),
    ("Valkey", "get"): ("an entity read", 0.8),
}


REASONS: Final = {
    "job from put": "twice the client's and server's CPU of a plain statement; with others a pop "
    "and a complete need a second round trip, to wait for their turn",
    "entity put": "twice the client's and server's CPU of a plain statement: a commit checks "
    "versions, keeps its number and leaves a notice",
    "entity read": "a reader with a snapshot, the entity's schema and the conversion of its values",
    "jobs in one space": "pops of one queue, and completes, wait for each other before they read; "
    "on Valkey one pop is made for each sync",
}


def main(quick: bool) -> None:
    rounds, seconds = (3, 0.7) if quick else (5, 2.0)
    with PostgresServer(durable=True) as postgres, ValkeyServer.started(durable=True) as valkey:
        for (server, work), (title, wanted) in WANTED.items():
            url = postgres.url() if server == "PostgreSQL" else valkey.url
            peer = Contender(
                *(("psycopg",) * 2 if server == "PostgreSQL" else ("redis-py", "redis"))
            )
            rates = measured(work, url, [OURS, *EARLIER, peer], rounds, seconds)
            for clients in CLIENTS:
                show(f"{server}: {title}", clients, rates, peer.name, wanted)
        for server, url in (("PostgreSQL", postgres.url()), ("Valkey", valkey.url)):
            rates = measured("cycle", url, [OURS, *EARLIER, APART], rounds, seconds, clients=(8,))
            show(f"{server}: jobs in one space", 8, rates, APART.name, 1.0)


def show(
    title: str, clients: int, rates: dict[tuple[str, int], float], baseline: str, wanted: float
) -> None:
    figures = {name: 1 / rate for (name, number), rate in rates.items() if number == clients}
    report(f"{title}, {clients} clients", figures, baseline=baseline, durability=SYNCED)
    ratio = figures[baseline] / figures[OURS.name]
    [reason] = [reason for part, reason in REASONS.items() if part in title]
    what = f"{title}, {clients} clients, vs {baseline}"
    reach(what, ratio, wanted, at_most=False, reason=reason)


def measured(
    work: str,
    url: str,
    contenders: Sequence[Contender],
    rounds: int,
    seconds: float,
    clients: Sequence[int] = CLIENTS,
) -> dict[tuple[str, int], float]:
    """Returns the median rate of each contender, with each number of clients."""
    found: dict[tuple[str, int], list[float]] = {}
    running: dict[str, list[subprocess.Popen[str]]] = {}
    try:
        for contender in contenders:
            # One after the other: the first one creates what the others use.
            running[contender.name] = [
                started(contender, work, url, number) for number in range(max(clients))
            ]
        for _ in range(rounds):
            for number in clients:
                for name, processes in running.items():
                    total = sum(together(processes[:number], seconds))
                    found.setdefault((name, number), []).append(total / seconds)
    finally:
        for process in [each for processes in running.values() for each in processes]:
            process.kill()
            process.communicate()
    return {key: median(rates) for key, rates in found.items()}


def started(contender: Contender, work: str, url: str, number: int) -> "subprocess.Popen[str]":
    space = f"{work}-{contender.name}" + ("" if contender.shared else f"-{number}")
    environment = dict(os.environ)
    if contender.source:
        environment["PYTHONPATH"] = contender.source
    command = [sys.executable, str(PROGRAM), contender.program, work, url, space]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", contender
    return process


def together(processes: Sequence["subprocess.Popen[str]"], seconds: float) -> Iterator[int]:
    """Runs all clients at the same time, and returns how much each has done."""
    for process in processes:
        assert process.stdin is not None
        print(seconds, file=process.stdin, flush=True)
    for process in processes:
        assert process.stdout is not None
        yield int(process.stdout.readline())


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
