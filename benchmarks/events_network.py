"""How many events per second does a server take, compared with a Lua script on Valkey?

The event of `benchmarks.events`, 12 sets and a board, comes over the network: from one client and
from four, each a process of its own, one event at a time and 20 in a call. Valkey runs the script
of that benchmark once for each event, without persistence and with an fsync before each reply.

    python -m benchmarks.events_network [--quick]
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import redis

from benchmarks.events import BATCH, SCHEMA, SCRIPT, View, views
from benchmarks.rounds import reach, report, run_benchmark
from benchmarks.servers import ALWAYS, valkey

CLIENTS: Final = (1, 4)
# Why a target is missed, if it is. The client's own work is part of both sides.
REASONS: Final = {
    ("one by one", "fsync"): "an event takes about 200 µs of Python, and a command alone as much "
    "again in the server; the script's 50 commands run in C",
    ("one by one", "unsynced"): "an event takes about 180 µs of Python, and its request, reply and "
    "log 150 more; Valkey keeps nothing, and its 50 commands take 130 µs in C",
    ("20 in a call", "fsync"): "four clients share one fsync of Valkey's log, and one Python "
    "process of ours",
    ("20 in a call", "unsynced"): "Valkey keeps nothing; here each event writes a dozen records "
    "to a log and to LMDB, from Python",
}
SAFETIES: Final = {"fsync": "fsync before each reply", "unsynced": "none before a reply"}
Send = Callable[[redis.Redis, list[View]], None]


def send_each(client: redis.Redis, events: list[View]) -> None:
    for view in events:
        client.execute_command("EVENTS.SEND", json.dumps({"event": view.as_event()}))


def send_batches(client: redis.Redis, events: list[View]) -> None:
    for begin in range(0, len(events), BATCH):
        batch = [view.as_event() for view in events[begin : begin + BATCH]]
        client.execute_command("EVENTS.SEND_MANY", json.dumps({"events": batch}))


def run_script(client: redis.Redis, events: list[View]) -> None:
    script = client.register_script(SCRIPT)
    for view in events:
        script(keys=view.as_keys(), args=[int(time.time() * 1_000), view.visitor, view.artwork])


WAYS: Final[dict[str, Send]] = {"one by one": send_each, "20 in a call": send_batches}


@contextmanager
def holdfast(folder: Path, durability: str) -> Iterator[int]:
    command = [sys.executable, "-m", "holdfast", "serve", "--data", str(folder / durability)]
    command += ["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--durability", durability]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        port, _ = (int(word.rpartition(":")[2]) for word in words if word[-1:].isdigit())
        with redis.Redis(port=port) as client:
            client.execute_command("EVENTS.DEPLOY", json.dumps({"schema": SCHEMA}))
        yield port
    finally:
        process.terminate()
        process.communicate()


# --- clients ----------------------------------------------------------------------------------


def work(orders: Connection, seed: int) -> None:
    """Runs in a client's process: sends as many events as requested, and reports the end."""
    stream = views(seed)
    while (order := orders.recv()) is not None:
        port, way, count = order
        events = list(islice(stream, count))
        with redis.Redis(port=port, protocol=3) as client:
            client.ping()
            orders.send("ready")
            orders.recv()
            way(client, events)
            orders.send("done")


class Crowd:
    """Clients, each in a process of its own."""

    def __init__(self, size: int) -> None:
        context = get_context("spawn")
        self._pipes: list[Any] = []
        for seed in range(size):
            ours, theirs = context.Pipe()
            context.Process(target=work, args=(theirs, seed), daemon=True).start()
            self._pipes.append(ours)

    def rate(self, clients: int, port: int, way: Send, count: int) -> float:
        """Returns the events per second of some clients, each sending its share of `count`."""
        pipes = self._pipes[:clients]
        for pipe in pipes:
            pipe.send((port, way, count // clients))
        for pipe in pipes:
            pipe.recv()
        begin = time.perf_counter()
        for pipe in pipes:
            pipe.send("go")
        for pipe in pipes:
            pipe.recv()
        return count / (time.perf_counter() - begin)

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)


# --- measuring --------------------------------------------------------------------------------


def main(quick: bool) -> None:
    warm, count, rounds = (2_000, 400, 3) if quick else (10_000, 2_000, 5)
    crowd = Crowd(max(CLIENTS))
    rates: dict[tuple[str, str, int], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="holdfast-") as name, ExitStack() as servers:
        folder = Path(name)
        ports = {
            ("holdfast", "fsync"): servers.enter_context(holdfast(folder, "commit")),
            ("holdfast", "unsynced"): servers.enter_context(holdfast(folder, "interval")),
            ("valkey", "fsync"): servers.enter_context(valkey(folder, *ALWAYS)),
            ("valkey", "unsynced"): servers.enter_context(valkey(folder)),
        }
        for (server, _), port in ports.items():
            crowd.rate(1, port, send_batches if server == "holdfast" else run_script, warm)
        for _ in range(rounds):
            for clients in CLIENTS:
                for safety in SAFETIES:
                    for way, send in WAYS.items():
                        found = crowd.rate(clients, ports["holdfast", safety], send, count)
                        rates.setdefault((way, safety, clients), []).append(found)
                    found = crowd.rate(clients, ports["valkey", safety], run_script, count)
                    rates.setdefault(("script", safety, clients), []).append(found)
        crowd.close()
    show(rates)


def show(rates: dict[tuple[str, str, int], list[float]]) -> None:
    for clients in CLIENTS:
        for safety, durability in SAFETIES.items():
            report(
                f"An event over the network, {_clients(clients)}, {safety}",
                {
                    way: 1 / statistics.median(rates[way, safety, clients])
                    for way in (*WAYS, "script")
                },
                baseline="script",
                durability=durability,
            )
    print("\nReach")
    for clients in CLIENTS:
        for safety in SAFETIES:
            for way, wanted in zip(WAYS, (1, 2), strict=True):
                pairs = zip(
                    rates[way, safety, clients], rates["script", safety, clients], strict=True
                )
                ratio = statistics.median(ours / theirs for ours, theirs in pairs)
                what = f"{way} vs a Lua script, {_clients(clients)}, {safety}"
                reason = "" if ratio >= wanted else REASONS[way, safety]
                reach(what, ratio, wanted, at_most=False, reason=reason)


def _clients(number: int) -> str:
    return "1 client" if number == 1 else f"{number} clients"


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
