"""Small reads over HTTP that are answered without a task, on connections without sockets."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.server.application import make_dispatcher
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.http import HttpApi
from holdfast.server.options import DispatcherOptions
from holdfast.server.uvicorn_server import BoundedProtocol, HttpServer
from holdfast.users import add_user, parse_grants, remove_user
from tests.server.running import DEADLINE

_RANDOM_ID = re.compile(rb"x-request-id: [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")
_DATE = re.compile(rb"date: [^\r]*\r\n")


class Line:
    """The server's end of a connection: keeps what is written."""

    def __init__(self) -> None:
        self.sent = b""
        self.closed = False

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else None

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Connected:
    """A connection to an API; `with_tasks` has a task answer each request, as uvicorn does it."""

    def __init__(self, dispatcher: Dispatcher, *, with_tasks: bool = False) -> None:
        api = HttpApi(dispatcher)
        if with_tasks:
            api.at_once = lambda url: None  # type: ignore[method-assign]  # nothing is answered at once
        server = HttpServer(api)._server
        protocol_class = cast(Callable[..., BoundedProtocol], server.config.http_protocol_class)
        self.protocol = protocol_class(
            config=server.config, server_state=server.server_state, app_state={}
        )
        self.line = Line()
        self.protocol.connection_made(self.line)
        self.tasks = 0
        self._start_task = self.protocol._start_asgi_task
        self.protocol._start_asgi_task = self._counted  # type: ignore[method-assign]  # to count them

    def _counted(self, cycle: Any, app: Any) -> None:
        self.tasks += 1
        self._start_task(cycle, app)

    async def say(self, *packets: bytes) -> bytes:
        """Sends packets, and returns what was answered when all of it was."""
        before = len(self.line.sent)
        for packet in packets:
            if not self.line.closed:
                self.protocol.data_received(packet)
            await asyncio.sleep(0)
        async with asyncio.timeout(DEADLINE):
            while not self.line.closed and not (
                self.protocol.is_idle and not self.protocol.pipeline and not self.protocol._unfed
            ):
                await asyncio.sleep(0)
        await asyncio.sleep(0)  # in which the last is sent
        return _DATE.sub(b"", _RANDOM_ID.sub(b"x-request-id: random", self.line.sent[before:]))


def run_on_server(folder: Path, use: Callable[[Dispatcher], Awaitable[None]]) -> None:
    async def run() -> None:
        with holdfast.open(folder, durability="interval") as store:
            store.jobs.put("emails", id="small", data=2**60)
            store.jobs.put("emails", id="large", data="x" * 3_000)
            store.jobs.put("emails", id="very large", data="x" * 100_000)
            dispatcher = make_dispatcher(store, DispatcherOptions(allowed_hosts=()))
            try:
                await use(dispatcher)
            finally:
                await dispatcher.close()

    asyncio.run(run())


def request(
    body: bytes,
    *headers: str,
    path: str = "/default/jobs/get",
    host: str = "localhost",
    version: str = "1.1",
    with_length: bool = True,
) -> bytes:
    lines = [f"POST {path} HTTP/{version}", f"Host: {host}", *headers]
    if with_length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


SMALL = request(b'{"id":"small"}')
REQUESTS = [
    SMALL,
    request(b'{"id":"nothing"}'),
    request(b'{"id":"large"}'),
    request(b'{"id":"large"}', "Accept-Encoding: gzip"),
    request(b'{"id":"very large"}'),
    request(b'{"id":"very large"}', "Accept-Encoding: gzip"),
    request(b'{"id":"small"}', "X-Request-Id: mine"),
    request(b'{"id":"small"}', "X-Request-Id: no good"),
    request(b'{"id":"small"}', "Accept: application/json; bigint=string"),
    request(b'{"id":"small"}', "Authorization: Bearer what"),
    request(b'{"id":"small"}', "Authorization: Basic YTpi"),
    request(b'{"id":"small"}', "Origin: https://other.example"),
    request(b'{"id":"small"}', "Content-Encoding: gzip"),
    request(b'{"id":"small"}', "Expect: 100-continue"),
    request(b'{"id":"small"}', host="other.example"),
    request(b'{"id":"small"}', path="/unknown/jobs/get"),
    request(b'{"id":"small"}', path="/default/jobs/got"),
    request(b'{"id":"small"}', path="/default/jobs/get?id=large"),
    request(b'{"id":"small"}', path="/default/jobs%2Fget"),
    request(b'{"idd":"small"}'),
    request(b'{"id":"small"'),
    request(b"", path="/default/jobs/queues"),
    request(b'{"id":"' + b"x" * 5_000 + b'"}'),
    request(msgspec.msgpack.encode({"id": "small"}), "Content-Type: application/msgpack"),
    request(b'e\r\n{"id":"small"}\r\n0\r\n\r\n', "Transfer-Encoding: chunked", with_length=False),
    request(b'{"queue":"other","id":"put"}', path="/default/jobs/put"),
    b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\r\n" + SMALL,
]
ENDING = [
    request(b'{"id":"small"}', "Connection: close"),
    request(b'{"id":"small"}', version="1.0"),
    request(b'{"id":"small"}', "Content-Length: 14"),
    request(b'{"id":"small"}', "Upgrade: websocket", "Connection: Upgrade"),
    b"no request\r\n\r\n",
]


@settings(max_examples=20, deadline=None)
@given(
    sent=st.lists(st.sampled_from([*REQUESTS, SMALL, SMALL, SMALL]), max_size=8),
    last=st.sampled_from([b"", *ENDING]),
    sizes=st.lists(st.sampled_from([1, 7, 90, 120, 10_000]), min_size=1, max_size=6),
    in_pieces=st.booleans(),
)
def test_answers_are_those_of_a_task_however_requests_come(
    tmp_path_factory: pytest.TempPathFactory,
    sent: list[bytes],
    last: bytes,
    sizes: list[int],
    in_pieces: bool,
) -> None:
    packets = [*sent, last]
    if in_pieces:
        packets = list(_pieces(b"".join(packets), sizes))

    async def compare(dispatcher: Dispatcher) -> None:
        direct, plain = Connected(dispatcher), Connected(dispatcher, with_tasks=True)
        assert await direct.say(*packets) == await plain.say(*packets)
        assert direct.line.closed == plain.line.closed

    run_on_server(tmp_path_factory.mktemp("direct"), compare)


def _pieces(data: bytes, sizes: list[int]) -> Iterable[bytes]:
    at = 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        yield data[at : at + size]
        at += size


@pytest.mark.parametrize("each", REQUESTS + ENDING)
def test_each_request_that_comes_whole_twice_is_answered_as_by_a_task(
    tmp_path: Path, each: bytes
) -> None:
    async def compare(dispatcher: Dispatcher) -> None:
        direct, plain = Connected(dispatcher), Connected(dispatcher, with_tasks=True)
        for packet in (SMALL, each, each, SMALL):
            assert await direct.say(packet) == await plain.say(packet)

    run_on_server(tmp_path, compare)


def test_a_small_read_needs_no_task_and_a_head_is_parsed_once(tmp_path: Path) -> None:
    async def use(dispatcher: Dispatcher) -> None:
        connected = Connected(dispatcher)
        parsed: list[bytes] = []
        parse = connected.protocol.parse

        def parse_and_note(data: bytes) -> None:
            parsed.append(data)
            parse(data)

        connected.protocol.parse = parse_and_note  # type: ignore[method-assign]  # to count them

        first = await connected.say(SMALL)
        second = await connected.say(request(b'{"id": "small" }'))
        other = await connected.say(request(b'{"id":"small"}', "X-Other: 1"))

        assert first == second == other
        assert parsed == [SMALL, request(b'{"id":"small"}', "X-Other: 1")]
        assert connected.tasks == 0
        assert dispatcher.recorder.protocols["http"] == 3

    run_on_server(tmp_path, use)


def test_requests_in_one_packet_are_answered_in_order(tmp_path: Path) -> None:
    async def use(dispatcher: Dispatcher) -> None:
        connected = Connected(dispatcher)
        await connected.say(SMALL)
        put = request(b'{"queue":"q","id":"mine"}', path="/default/jobs/put")

        answers = await connected.say(SMALL + put + request(b'{"id":"mine"}') + SMALL)

        parts = answers.split(b"HTTP/1.1 200 OK")[1:]
        ids = [re.findall(rb'"id":"(\w+)"|"result":"(\w+)"', part)[0] for part in parts]
        assert ids == [(b"small", b""), (b"", b"mine"), (b"mine", b""), (b"small", b"")]

    run_on_server(tmp_path, use)


def test_a_token_is_checked_with_each_request(tmp_path: Path) -> None:
    async def use(dispatcher: Dispatcher) -> None:
        engine = dispatcher.store.engine
        add_user(engine, "root", None, parse_grants(["admin"]))
        token = add_user(engine, "ann", None, parse_grants(["read"]))
        dispatcher.authenticator.reload()
        connected = Connected(dispatcher)
        read = request(b'{"id":"small"}', f"Authorization: Bearer {token}")

        answers = [await connected.say(read) for _ in range(2)]
        remove_user(engine, "ann")
        dispatcher.authenticator.reload()
        answers += [await connected.say(read) for _ in range(2)]

        assert [answer[9:12] for answer in answers] == [b"200", b"200", b"401", b"401"]

    run_on_server(tmp_path, use)


def test_an_idle_connection_is_closed_only_when_its_last_answer_is_long_ago(
    tmp_path: Path,
) -> None:
    async def use(dispatcher: Dispatcher) -> None:
        connected = Connected(dispatcher)
        protocol, line = connected.protocol, connected.line
        await connected.say(SMALL)
        await connected.say(SMALL)

        protocol.timeout_keep_alive_handler()
        assert not line.closed
        assert protocol.timeout_keep_alive_task is not None

        protocol.timeout_keep_alive = 0
        await connected.say(SMALL[:20])
        protocol.timeout_keep_alive_handler()
        assert not line.closed

        await connected.say(SMALL[20:])
        protocol.timeout_keep_alive_handler()
        assert line.closed

    run_on_server(tmp_path, use)
