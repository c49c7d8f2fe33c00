"""How long does a call over the network take, where one client waits for each answer, or four do?

Each client is a process with a bare socket. A job cycle is put, pop and complete by three calls,
compared with XADD, XREADGROUP and XACK on a stream of a Valkey that syncs before it answers. A
limiter's hit is compared with `limits` on memcached, which keeps nothing. The last two are a read
over HTTP, and a synced put when four clients together send 200 of them in a second, compared with
XADD at the same rate: the slowest of both show how long the disk takes to sync.

    HOLDFAST_BEFORE=/path/to/another/tree python -m benchmarks.server_calls [--quick]
"""

import json
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import hiredis
import redis

from benchmarks.rounds import fact, reach, report, run_benchmark, skip
from benchmarks.server import BEFORE, OURS, SCHEMA
from benchmarks.servers import ALWAYS, SYNCED, Ports, holdfast, memcached, valkey

CLIENTS: Final = (1, 4)
PUTS_PER_SECOND: Final = 200
REASON: Final = "each call takes 60 to 200 µs of the server's Python, where the peer's server is C"
READ_REASON: Final = "the same read over RESP takes as long: most of it is sleeping and waking up"
PUT_REASON: Final = "a put is synced: the slowest wait for the disk, as those of a stream do"
LIMIT: Final = {
    "operations": [{"condition": "user", "entity": [1]}],
    "conditions": {"user": {"limit": 10**9, "window": 60}},
    "algorithm": "gcra",
}
GET: Final = json.dumps({"table": "shop.Users", "ids": ["ann"]})

Call = Callable[[int], None]
Way = Callable[[int, int], Call]  # connects a client of that number to a port


def _asking(port: int) -> Callable[..., Any]:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = hiredis.Reader()

    def ask(*words: str) -> Any:
        connection.sendall(hiredis.pack_command(words))  # type: ignore[arg-type]  # its hint is a tuple of one
        while (reply := reader.gets()) is False:
            reader.feed(connection.recv(65536))
        if isinstance(reply, Exception):
            raise reply
        return reply

    return ask


def job_cycle(port: int, client: int) -> Call:
    ask, run = _asking(port), f"{client}-{time.monotonic_ns()}"

    def call(number: int) -> None:
        jid, queue = f"{run}-{number}", f"cycle{client}"
        ask("JOBS.PUT", json.dumps({"queue": queue, "id": jid}))
        ask("JOBS.POP", json.dumps({"queue": queue, "worker": "w"}))
        ask("JOBS.COMPLETE", json.dumps({"id": jid, "worker": "w"}))

    return call


def stream_cycle(port: int, client: int) -> Call:
    ask, name = _asking(port), f"stream{client}"
    try:
        ask("XGROUP", "CREATE", name, "workers", "$", "MKSTREAM")
    except Exception as error:
        if "BUSYGROUP" not in str(error):
            raise

    def call(number: int) -> None:
        ask("XADD", name, "MAXLEN", "~", "1000", "*", "queue", "cycle")
        [[_, [[entry, _]]]] = ask(
            "XREADGROUP", "GROUP", "workers", "w", "COUNT", "1", "STREAMS", name, ">"
        )
        ask("XACK", name, "workers", entry.decode())

    return call


def limiter_hit(port: int, client: int) -> Call:
    ask, payload = _asking(port), json.dumps(LIMIT)
    return lambda number: ask("METRICS.TRY_INCR", payload)


def foreign_hit(port: int, client: int) -> Call:
    from limits import parse
    from limits.storage import storage_from_string
    from limits.strategies import SlidingWindowCounterRateLimiter

    storage: Any = storage_from_string(f"memcached://127.0.0.1:{port}")
    limiter, item = SlidingWindowCounterRateLimiter(storage), parse("1000000000/minute")

    def call(number: int) -> None:
        limiter.hit(item, "user", "1")

    return call


def read_over_http(port: int, client: int) -> Call:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = (
        "POST /default/entities/get HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
    )
    request = f"{head}\r\nContent-Length: {len(GET)}\r\n\r\n{GET}".encode()

    def call(number: int) -> None:
        connection.sendall(request)
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(65536)

    return call


def read_over_resp(port: int, client: int) -> Call:
    ask = _asking(port)
    return lambda number: ask("ENTITIES.GET", GET)


def paced_put(port: int, client: int) -> Call:
    ask = _asking(port)
    return lambda number: ask("JOBS.PUT", '{"queue":"paced"}')


def paced_add(port: int, client: int) -> Call:
    ask = _asking(port)
    return lambda number: ask("XADD", "paced", "MAXLEN", "~", "1000", "*", "queue", "paced")


# --- clients -------------------------------------------------------------------------------------


def work(orders: Connection, number: int) -> None:
    """Runs in a client's process: makes the requested calls, and sends how long each took."""
    while (order := orders.recv()) is not None:
        way, port, count, pause = order
        call = way(port, number)
        orders.send("ready")
        orders.recv()
        waits = []
        begin = time.perf_counter() + pause * number / max(CLIENTS)
        for each in range(count):
            if pause:
                time.sleep(max(0.0, begin + each * pause - time.perf_counter()))
            before = time.perf_counter()
            call(each)
            waits.append(time.perf_counter() - before)
        orders.send(waits)


class Clients:
    """Clients, each in a process of its own."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._pipes: list[Any] = []
        for number in range(max(CLIENTS)):
            ours, theirs = context.Pipe()
            context.Process(target=work, args=(theirs, number), daemon=True).start()
            self._pipes.append(ours)

    def run(
        self, clients: int, way: Way, port: int, count: int, pause: float = 0.0
    ) -> tuple[float, list[float]]:
        """Returns the seconds per call while all clients were calling, and all waits."""
        pipes = self._pipes[:clients]
        for pipe in pipes:
            pipe.send((way, port, count // clients, pause))
        for pipe in pipes:
            pipe.recv()
        begin = time.perf_counter()
        for pipe in pipes:
            pipe.send("go")
        waits = [wait for pipe in pipes for wait in pipe.recv()]
        return (time.perf_counter() - begin) / len(waits), waits

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)


# --- measuring -----------------------------------------------------------------------------------


def main(quick: bool) -> None:
    count, rounds = (400, 3) if quick else (1_500, 5)
    clients = Clients()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        trees = {OURS: ""}
        if before := os.environ.get("HOLDFAST_BEFORE"):
            trees[BEFORE] = before
        servers = {
            kind: _prepared(stack.enter_context(holdfast(folder / kind, tree=tree)))
            for kind, tree in trees.items()
        }
        stream = stack.enter_context(valkey(folder, *ALWAYS))
        cache = stack.enter_context(memcached())
        if cache is None:
            skip("limits on memcached", "memcached is not installed")
        for number, wanted in zip(CLIENTS, (1.0, 1.3), strict=True):
            ways: dict[str, tuple[Way, int]] = {}
            ways |= {kind: (job_cycle, ports.resp) for kind, ports in servers.items()}
            ways["a stream"] = (stream_cycle, stream)
            _compare(clients, f"a job cycle, {number} clients", ways, number, count, rounds, wanted)
        for number, wanted in zip(CLIENTS, (1.0, 1.2), strict=True):
            ways = {kind: (limiter_hit, ports.resp) for kind, ports in servers.items()}
            if cache is not None:
                ways["limits on memcached"] = (foreign_hit, cache)
            title = f"a limiter's hit, {number} clients"
            _compare(clients, title, ways, number, 2 * count, rounds, wanted)
        ways = {f"{kind}, HTTP": (read_over_http, ports.http) for kind, ports in servers.items()}
        ways |= {f"{kind}, RESP": (read_over_resp, ports.resp) for kind, ports in servers.items()}
        figures = _compare(clients, "a read, 1 client", ways, 1, 3 * count, rounds, None)
        read, bare = figures[f"{OURS}, HTTP"] * 1e6, figures[f"{OURS}, RESP"] * 1e6
        reach("µs of a read over HTTP", read, 200, at_most=True, reason=READ_REASON)
        reach("the same, were it 150 µs over RESP", read / bare * 150, 200, at_most=True)
        ways = {kind: (paced_put, ports.resp) for kind, ports in servers.items()}
        for kind, (way, port) in {**ways, "a stream": (paced_add, stream)}.items():
            _, waits = clients.run(4, way, port, 4 * count, 4 / PUTS_PER_SECOND)
            half, most = statistics.median(waits) * 1e3, sorted(waits)[-len(waits) // 100] * 1e3
            fact(f"{kind}: ms of a put at 200 a second, p50 and p99", f"{half:.2f}, {most:.2f}")
            if kind == OURS:
                reach("ms of a put at 200 a second, p50", half, 1, at_most=True, reason=PUT_REASON)
                reach("ms of a put at 200 a second, p99", most, 5, at_most=True, reason=PUT_REASON)
    clients.close()


def _prepared(ports: Ports) -> Ports:
    with redis.Redis(port=ports.resp) as client:
        client.execute_command("ENTITIES.DEPLOY", json.dumps({"schemas": [SCHEMA]}))
        ann = {"id": "ann", "properties": {"name": "Ann"}}
        put = {"table": "shop.Users", "entities": [ann]}
        client.execute_command("ENTITIES.PUT", json.dumps(put))
    return ports


def _compare(
    clients: Clients,
    title: str,
    ways: Mapping[str, tuple[Way, int]],
    number: int,
    count: int,
    rounds: int,
    wanted: float | None,
) -> dict[str, float]:
    """Measures in rounds, reports, and returns the median of each way's seconds for a call."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for each in range(rounds + 1):
        for name, (way, port) in ways.items():
            seconds, _ = clients.run(number, way, port, count)
            if each:  # the first is for warming up
                found[name].append(seconds)
    figures = {name: statistics.median(seconds) for name, seconds in found.items()}
    baseline = list(ways)[-1]
    durability = {"memcached": "none", "read": "", "": SYNCED if wanted else ""}
    report(title, figures, baseline=baseline, durability=durability)
    if wanted is not None and baseline != OURS:
        pairs = zip(found[baseline], found[OURS], strict=True)
        ratio = statistics.median(theirs / ours for theirs, ours in pairs)
        reach(f"{title}: as fast as {baseline}", ratio, wanted, at_most=False, reason=REASON)
    return figures


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
