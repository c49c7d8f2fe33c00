"""An engine on another machine: nothing that reads it holds up the loop, and with it all others."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast import wire
from holdfast.engine.remote.engine import RemoteEngine
from holdfast.server import resp  # noqa: F401  # it serves commands
from holdfast.server.application import make_dispatcher
from holdfast.server.background import sweep
from holdfast.server.commands import plan_of
from holdfast.server.http import HttpApi
from holdfast.server.resp_session import Later, Read, RespSession
from holdfast.store import Store
from tests.engine.memory_backend import MemoryBackend
from tests.server.running import DEADLINE

SCHEMA = {
    "table": "pages",
    "attributes": {"title": "string"},
    "index": [{"attribute": "title", "type": "hash"}],
}


@asynccontextmanager
async def far_server() -> AsyncIterator[HttpApi]:
    """A server on such an engine; it fails if the loop itself asks the engine for something."""
    backend = MemoryBackend()
    engine = RemoteEngine(backend, clock=time.time)
    store = Store(engine)
    store.tables.create(SCHEMA)
    dispatcher = make_dispatcher(store)
    server = HttpApi(dispatcher)
    loop_thread = threading.get_ident()
    asked_by_the_loop: list[str] = []

    def note(message: str) -> str:
        if threading.get_ident() == loop_thread:
            asked_by_the_loop.append(message)
        return ""

    backend.fault = note
    try:
        yield server
        assert asked_by_the_loop == []
    finally:
        backend.fault = lambda message: ""
        server.close()
        await dispatcher.close()
        store.close()


async def ask(server: HttpApi, method: str, target: str, body: bytes = b"") -> tuple[int, bytes]:
    """The status and the body of one answer."""
    path, _, query = target.partition("?")
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [],
    }
    asked = [{"type": "http.request", "body": body}]

    async def receive() -> Any:
        return asked.pop() if asked else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await asyncio.wait_for(server(scope, receive, send), DEADLINE)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("GET", "/readyz", b""),
        ("GET", "/metrics", b""),
        ("GET", "/default/metrics/prometheus", b""),
        ("GET", "/status", b""),
        ("GET", "/stats", b""),
        ("POST", "/default/jobs/length", b'{"queue":"q"}'),
        ("POST", "/default/jobs/pop_wait", b'{"queues":"q","worker":"w","timeout":0.01}'),
        ("POST", "/default/jobs/result_wait", b'{"id":"waiting","timeout":0.01}'),
        ("GET", "/default/sys/table/pages", b""),
        ("GET", "/default/sys/table/pages/?format=ndjson", b""),
    ],
)
def test_a_page_reads_in_a_thread(method: str, target: str, body: bytes) -> None:
    async def run() -> int:
        async with far_server() as server:
            await ask(server, "POST", "/default/jobs/put", b'{"queue":"other","id":"waiting"}')
            return (await ask(server, method, target, body))[0]

    assert asyncio.run(run()) == 200


@pytest.mark.parametrize(
    "words", [[b"INFO"], [b"ZCARD", b"ql:queues"], [b"JOBS.LENGTH", b'{"queue":"q"}']]
)
def test_a_command_reads_in_a_thread(words: wire.Command) -> None:
    async def run() -> bytes:
        async with far_server() as server:
            session = RespSession(server.dispatcher, lambda data: None)
            plan = plan_of(session, words)
            later = session.read_later(plan) if isinstance(plan, Read) else plan
            assert isinstance(later, Later)
            reply = later.encode(await later.start())
            assert isinstance(reply, bytes)
            return reply

    assert asyncio.run(run())[:1] in (b"$", b":")


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("POST", "/shop/jobs/put", b'{"queue":"q"}'),
        ("POST", "/shop/jobs/length", b'{"queue":"q"}'),
        ("POST", "/shop/jobs/queues", b"{}"),
        ("POST", "/shop/batch", b'[{"operation":"jobs.put","arguments":{"queue":"q"}}]'),
        ("POST", "/shop/events", b'{"name":"seen"}'),
        ("GET", "/shop/sys/table/", b""),
    ],
)
def test_after_a_space_was_dropped_unheard_the_next_call_finds_the_new_one(
    method: str, target: str, body: bytes
) -> None:
    async def run() -> list[int]:
        async with far_server() as server:
            dispatcher = server.dispatcher
            await ask(server, "POST", "/shop/jobs/put", b'{"queue":"q"}')
            held = dispatcher.known_space("shop")
            assert held is not None
            await dispatcher.in_thread(lambda: dispatcher.store.drop_space("shop"))
            dispatcher._spaces["shop"] = held  # as if the notice had been lost
            return [(await ask(server, method, target, body))[0] for _ in range(2)]

    first, second = asyncio.run(run())
    assert second == 200
    assert first in (200, 404)


def test_a_store_that_does_not_answer_is_soon_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe waited 30 seconds and more for an engine that was cut off."""

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    async def run() -> tuple[int, bytes]:
        async with far_server() as server:
            monkeypatch.setattr(server.dispatcher, "read", never)
            monkeypatch.setattr("holdfast.server.routes.READY_SECONDS", 0.001)
            return await ask(server, "GET", "/readyz")

    status, body = asyncio.run(run())
    assert status == 503
    assert b"did not answer within" in body


def test_metrics_of_a_server_whose_engine_is_silent_say_so_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prometheus saw nothing of a server, for as long as its database was down."""
    monkeypatch.setattr("holdfast.server.routes.ENGINE_FIGURES_SECONDS", 0.001)
    answered = threading.Event()

    def silent(message: str) -> str:
        answered.wait(DEADLINE)
        return ""

    async def run() -> tuple[int, bytes]:
        async with far_server() as server:
            backend_of(server).fault = silent
            try:
                return await ask(server, "GET", "/metrics")
            finally:
                answered.set()

    status, body = asyncio.run(run())
    assert status == 200
    assert b"\nholdfast_engine_up 0\n" in body
    assert b"\nholdfast_connections " in body


def test_metrics_of_a_server_whose_engine_answers_say_so() -> None:
    async def run() -> bytes:
        async with far_server() as server:
            return (await ask(server, "GET", "/metrics"))[1]

    body = asyncio.run(run())
    assert b"\nholdfast_engine_up 1\n" in body
    assert b"\nholdfast_keys " in body


def test_a_write_that_the_engine_did_not_answer_waits_for_no_notices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client with a patience of 8 seconds waited 31: for its write, and then for its notices."""
    monkeypatch.setattr("holdfast.engine.remote.reconnector.STOPPING_RECONNECT_SECONDS", 0.0)
    asked: list[str] = []

    async def run() -> int:
        async with far_server() as server:
            dispatcher = server.dispatcher
            monkeypatch.setattr(dispatcher.notice_feed, "catch_up", lambda: asked.append("notices"))
            backend_of(server).fault = lambda message: "unreachable"
            dispatcher.store.engine.shorten_waits()
            return (await ask(server, "POST", "/default/jobs/put", b'{"queue":"q"}'))[0]

    assert asyncio.run(run()) == 503
    assert asked == []


def test_a_sweep_that_ends_holds_up_nobody_while_the_engine_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that was told to stop answered nobody until its last sweep had its answer."""
    monkeypatch.setattr("holdfast.server.background.SERVER_SWEEP_SECONDS", 0.0)
    asked, answered = threading.Event(), threading.Event()

    def silent(message: str) -> str:
        if threading.current_thread().name.startswith("holdfast-sweep"):
            asked.set()
            answered.wait(DEADLINE)
        return ""

    async def run() -> bool:
        async with far_server() as server:
            backend_of(server).fault = silent
            sweeping = asyncio.create_task(sweep(server.dispatcher))
            await asyncio.to_thread(asked.wait, DEADLINE)
            sweeping.cancel()
            status, _ = await ask(server, "GET", "/livez")
            is_waiting = not sweeping.done()
            answered.set()
            await asyncio.wait([sweeping])
            return status == 200 and is_waiting

    assert asyncio.run(run())


def backend_of(server: HttpApi) -> MemoryBackend:
    engine = server.dispatcher.store.engine
    assert isinstance(engine, RemoteEngine)
    assert isinstance(engine.backend, MemoryBackend)
    return engine.backend
