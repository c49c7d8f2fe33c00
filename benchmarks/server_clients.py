"""How many requests per second of clients in Python are answered, and how long does each wait?

One client library for all: redis-py, with 1, 8 and 64 connections in as many threads, and in
pipelines of 50; over HTTP the client of the standard library. Holdfast waits for the disk before it
answers a write; it is compared with a Valkey that syncs never, every second, or always.

The last part measures what a call costs the client: the CPU time of its thread for `jobs.length`,
through a bare socket, through Holdfast's client, sync and async, and through redis-py. They take
turns, and the least of all rounds counts, because other programs can only add to it.

    python -m benchmarks.server_clients [--quick]
"""

import asyncio
import http.client
import itertools
import json
import math
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import hiredis
import msgspec
import redis

import holdfast
from benchmarks.rounds import keep, reach, report, run_benchmark
from benchmarks.servers import ALWAYS, SYNCED, valkey
from benchmarks.servers import holdfast as holdfast_server
from holdfast.client.async_client import AsyncClient

REASON = "the clients, in Python too, take more of the two cores than the server"
CONNECTIONS = (1, 8, 64)
PIPELINE = 50
COST_CALLS = 500  # of one round
EVERY_SECOND = "fsync every second"
SCHEMA = (
    "schema: shop\ntables:\n  Users:\n    primary: {type: random}\n"
    "    columns: {name: {type: Text}}\n    indexes: [{type: compound, columns: [name]}]\n"
)
EVENTS = {
    "shop": [{"targets": ["['v']", "[a, b, c]", "[@hour, @day, @week, @month]"], "add": "visitor"}]
}
LIMIT = {
    "operations": [{"condition": "user", "entity": [1]}],
    "conditions": {"user": {"limit": 10**9, "window": 60}},
    "algorithm": "gcra",
}

Command = tuple[str | bytes, ...]
Make = Callable[[int, int], list[Command]]  # the commands of one request, by thread and number


class Figure(NamedTuple):
    """The result of one measurement."""

    per_second: float
    median_ms: float
    p99_ms: float

    def __str__(self) -> str:
        return f"{self.per_second:9,.0f}/s {self.median_ms:7.2f} {self.p99_ms:7.2f} ms"


def _payload(**arguments: Any) -> str:
    return json.dumps(arguments)


def _cycle(thread: int, number: int) -> list[Command]:
    jid, queue = f"c{thread}-{number}", f"cycle{thread}"
    return [
        ("JOBS.PUT", _payload(queue=queue, id=jid)),
        ("JOBS.POP", _payload(queue=queue, worker="w")),
        ("JOBS.COMPLETE", _payload(id=jid, worker="w")),
    ]


def _event(thread: int, number: int) -> list[Command]:
    attributes = {"visitor": f"v{number % 1000}", "a": "x", "b": "y", "c": "z"}
    return [("EVENTS.SEND", _payload(event={"name": "shop", "attributes": attributes}))]


def _entity(thread: int, number: int) -> list[Command]:
    entity = {"id": f"e{thread}-{number % 1000}", "properties": {"name": f"n{number}"}}
    return [("ENTITIES.PUT", _payload(table="shop.Users", entities=[entity]))]


HOLDFAST: dict[str, Make] = {
    "PING": lambda t, n: [("PING",)],
    "JOBS.LENGTH": lambda t, n: [("JOBS.LENGTH", '{"queue":"q"}')],
    "ENTITIES.GET": lambda t, n: [("ENTITIES.GET", '{"table":"shop.Users","ids":["ann"]}')],
    "JOBS.PUT": lambda t, n: [("JOBS.PUT", '{"queue":"q"}')],
    "put+pop+complete": _cycle,
    "EVENTS.SEND, 12 keys": _event,
    "METRICS.TRY_INCR": lambda t, n: [("METRICS.TRY_INCR", json.dumps(LIMIT))],
    "ENTITIES.PUT": _entity,
}
VALKEY: dict[str, Make] = {
    "GET": lambda t, n: [("GET", "key")],
    "SET": lambda t, n: [("SET", f"key{t}-{n % 1000}", "x" * 50)],
}


# --- servers -------------------------------------------------------------------------------------


def _prepare(client: redis.Redis) -> None:
    client.execute_command("ENTITIES.DEPLOY", _payload(schemas=[SCHEMA]))
    ann = {"id": "ann", "properties": {"name": "Ann"}}
    client.execute_command("ENTITIES.PUT", _payload(table="shop.Users", entities=[ann]))
    client.execute_command("EVENTS.DEPLOY", _payload(schema=EVENTS))
    client.close()


# --- measuring -----------------------------------------------------------------------------------


def _measure(
    connect: Callable[[int], Callable[[int], int]], threads: int, seconds: float
) -> Figure:
    """Runs `threads` clients; `connect(thread)` returns what each repeats, and its count."""
    waits: list[list[float]] = [[] for _ in range(threads)]
    counts = [0] * threads
    calls = [connect(thread) for thread in range(threads)]
    begin = time.perf_counter()

    def work(thread: int) -> None:
        call = calls[thread]
        for number in itertools.count():
            before = time.perf_counter()
            counts[thread] += call(number)
            after = time.perf_counter()
            waits[thread].append(after - before)
            if after - begin > seconds:
                return

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    elapsed = time.perf_counter() - begin
    every = sorted(itertools.chain.from_iterable(waits))
    p99 = every[int(len(every) * 0.99)]
    return Figure(sum(counts) / elapsed, statistics.median(every) * 1e3, p99 * 1e3)


def _over_resp(port: int, make: Make, depth: int = 1) -> Callable[[int], Callable[[int], int]]:
    def connect(thread: int) -> Callable[[int], int]:
        client = redis.Redis(port=port, protocol=3)
        client.ping()

        def one(number: int) -> int:
            for command in make(thread, number):
                client.execute_command(*command)
            return 1

        def many(number: int) -> int:
            pipeline = client.pipeline(transaction=False)
            for each in range(depth):
                for command in make(thread, number * depth + each):
                    pipeline.execute_command(*command)
            pipeline.execute()
            return depth

        return one if depth == 1 else many

    return connect


def _over_http(port: int, make: Make) -> Callable[[int], Callable[[int], int]]:
    def connect(thread: int) -> Callable[[int], int]:
        connection = http.client.HTTPConnection("127.0.0.1", port)

        def call(number: int) -> int:
            for name, *payload in make(thread, number):
                assert isinstance(name, str)
                path = f"/default/{name.lower().replace('.', '/')}" if payload else "/livez"
                body = payload[0] if payload else None
                connection.request("POST" if payload else "GET", path, body)
                connection.getresponse().read()
            return 1

        return call

    return connect


def _table(
    title: str, durability: str, port: int, works: dict[str, Make], seconds: float
) -> dict[str, Figure]:
    """Measures each work over RESP; returns the figures by name and number of connections."""
    print(f"\n{title}{'':>{max(0, 34 - len(title))}}   requests       p50     p99")
    figures = {}
    for name, make in works.items():
        for threads in CONNECTIONS:
            figures[f"{name} {threads}"] = _measure(_over_resp(port, make), threads, seconds)
            print(f"  {name:<24} {threads:3} clients {figures[f'{name} {threads}']}")
        figures[f"{name} piped"] = _measure(_over_resp(port, make, PIPELINE), 1, seconds)
        print(f"  {name:<24} pipeline {PIPELINE} {figures[f'{name} piped']}")
    keep(title, {name: 1 / figure.per_second for name, figure in figures.items()}, durability)
    return figures


# --- jobs, compared with other queues -----------------------------------------------------------


WORK = "time.time"  # the job that RQ runs


def _rq(port: int, count: int) -> tuple[float, float]:
    """Returns the jobs that RQ enqueues and completes per second, with 8 threads and one worker."""
    from rq import Queue, SimpleWorker

    def connect(thread: int) -> Callable[[int], int]:
        queue = Queue(connection=redis.Redis(port=port, protocol=2))
        return lambda number: queue.enqueue(WORK) is not None

    enqueued = _measure(connect, 8, 1.0).per_second
    connection = redis.Redis(port=port, protocol=2)
    connection.flushall()
    queue = Queue(connection=connection)
    for _ in range(count):
        queue.enqueue(WORK)
    begin = time.perf_counter()
    SimpleWorker([queue], connection=connection).work(burst=True, logging_level="ERROR")
    return enqueued, count / (time.perf_counter() - begin)


def _huey(port: int, count: int) -> tuple[float, float]:
    """Returns the tasks that Huey enqueues and executes per second, with one thread."""
    from huey import RedisHuey

    queue = RedisHuey("bench", port=port, protocol=2)
    task = queue.task()(time.time)
    begin = time.perf_counter()
    for _ in range(count):
        task()
    middle = time.perf_counter()
    for _ in range(count):
        queue.execute(queue.dequeue())
    return count / (middle - begin), count / (time.perf_counter() - middle)


def _completed(port: int, count: int) -> float:
    """Returns the jobs that 8 clients pop and complete per second."""
    client = redis.Redis(port=port)
    jobs = [{"queue": "done", "id": f"d{number}"} for number in range(count)]
    client.execute_command("JOBS.PUT_MANY", _payload(jobs=jobs))

    def drain() -> None:
        connection = redis.Redis(port=port)
        while popped := json.loads(
            connection.execute_command("JOBS.POP", '{"queue":"done","worker":"w"}')
        ):
            connection.execute_command("JOBS.COMPLETE", _payload(id=popped[0]["id"], worker="w"))

    threads = [threading.Thread(target=drain) for _ in range(8)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - begin)


# --- what a call costs the client ----------------------------------------------------------------


def _client_costs(port: int, rounds: int) -> dict[str, float]:
    """Returns the CPU seconds of each call, by the way it is made."""
    url = f"holdfast://127.0.0.1:{port}"
    with (
        holdfast.connect(url) as client,
        asyncio.Runner() as runner,
        redis.Redis(port=port, protocol=3) as through_redis,
    ):
        bare = _bare_call(port)
        awaited = runner.run(_connected(url))
        payload = msgspec.msgpack.encode({"queue": "q"})
        ways: dict[str, Callable[[], object]] = {
            "a bare socket and hiredis": lambda: [bare() for _ in range(COST_CALLS)],
            "holdfast.connect": lambda: [client.jobs.length("q") for _ in range(COST_CALLS)],
            "holdfast.aio, one at a time": lambda: runner.run(_await_calls(awaited, 1)),
            "holdfast.aio, 50 at a time": lambda: runner.run(_await_calls(awaited, 50)),
            "redis-py": lambda: [
                through_redis.execute_command("JOBS.LENGTH", payload) for _ in range(COST_CALLS)
            ],
        }
        costs = dict.fromkeys(ways, math.inf)
        for _ in range(rounds):
            for name, run in ways.items():
                begin = time.thread_time()
                run()
                cost = (time.thread_time() - begin) / COST_CALLS
                costs[name] = min(costs[name], cost)
        runner.run(awaited.close())
    return costs


def _bare_call(port: int) -> Callable[[], int]:
    """Makes a call with the least work that any client in Python needs."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = hiredis.Reader()
    decode = msgspec.msgpack.Decoder(int).decode

    def call() -> int:
        payload = msgspec.msgpack.encode({"queue": "q"})
        command = hiredis.pack_command(("JOBS.LENGTH", payload))  # type: ignore[arg-type]  # its hint is a tuple of one
        connection.sendall(command)
        while (reply := reader.gets()) is False:
            reader.feed(connection.recv(65536))
        return decode(reply)

    return call


def _report_costs(costs: dict[str, float]) -> None:
    report("What a call costs the client, CPU time", costs, baseline="a bare socket and hiredis")
    bare = costs["a bare socket and hiredis"] * 1e6
    reason = f"a bare socket and hiredis take {bare:.0f}, most of it in the operating system"
    ours = costs["holdfast.connect"] * 1e6
    reach("µs of CPU for a call of the client", ours, 35, at_most=True, reason=reason)


async def _connected(url: str) -> AsyncClient:
    return await holdfast.aio.connect(url)


async def _await_calls(client: AsyncClient, width: int) -> None:
    async def one_after_the_other() -> None:
        for _ in range(COST_CALLS // width):
            await client.jobs.length("q")

    await asyncio.gather(*(one_after_the_other() for _ in range(width)))


def main(quick: bool) -> None:
    seconds = 0.3 if quick else 2.0
    only_set = {"SET": VALKEY["SET"]}
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        resp, web, _ = stack.enter_context(holdfast_server(folder / "data"))
        _prepare(redis.Redis(port=resp))
        costs = _client_costs(resp, 10 if quick else 40)
        ours = _table("Holdfast, RESP", SYNCED, resp, HOLDFAST, seconds)
        print("\nHoldfast, HTTP")
        for name, make in HOLDFAST.items():
            for threads in CONNECTIONS[:2]:
                figure = _measure(_over_http(web, make), threads, seconds)
                print(f"  {name:<24} {threads:3} clients {figure}")
        with valkey(folder) as port:
            plain = _table("Valkey, nothing on disk", "none", port, VALKEY, seconds)
        with valkey(folder, "--appendonly", "yes") as port:
            _table(
                "Valkey, synced every second",
                EVERY_SECOND,
                port,
                only_set,
                seconds,
            )
            rq = _rq(port, 300)
            huey = _huey(port, 300)
        with valkey(folder, *ALWAYS) as port:
            synced = _table("Valkey, every write synced", SYNCED, port, only_set, seconds)
        done = _completed(resp, 1_000)
    print("\nJobs                          enqueued/s  completed/s")
    print(f"  Holdfast, synced            {ours['JOBS.PUT 8'].per_second:10,.0f}  {done:10,.0f}")
    print(f"  RQ, synced every second     {rq[0]:10,.0f}  {rq[1]:10,.0f}")
    print(f"  Huey, synced every second   {huey[0]:10,.0f}  {huey[1]:10,.0f}")
    _report_costs(costs)
    keep(
        "Jobs, each enqueued by 8 clients",
        {
            "Holdfast": 1 / ours["JOBS.PUT 8"].per_second,
            "RQ": 1 / rq[0],
            "Huey, one client": 1 / huey[0],
        },
        {"Holdfast": SYNCED, "": EVERY_SECOND},
    )
    keep(
        "Jobs, each completed",
        {"Holdfast, 8 clients": 1 / done, "RQ, one worker": 1 / rq[1], "Huey": 1 / huey[1]},
        {"Holdfast": SYNCED, "": EVERY_SECOND},
    )
    print("\nReach")
    for threads in CONNECTIONS:
        ratio = ours[f"ENTITIES.GET {threads}"].per_second / plain[f"GET {threads}"].per_second
        reach(
            f"a read vs valkey's GET, {threads} clients",
            ratio,
            0.6,
            at_most=False,
            reason=REASON,
        )
    ratio = ours["JOBS.PUT 64"].per_second / synced["SET 64"].per_second
    reach("a synced write vs valkey's SET, 64 clients", ratio, 0.6, at_most=False)
    reach(
        "jobs enqueued vs RQ",
        ours["JOBS.PUT 8"].per_second / rq[0],
        3,
        at_most=False,
        reason=REASON,
    )
    reach("jobs completed vs RQ", done / rq[1], 5, at_most=False)


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
