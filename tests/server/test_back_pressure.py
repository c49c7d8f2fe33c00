"""Clients that do not read, or never end what they begin: bounded memory, a quick end, no delay."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.limits import (
    MAX_ALL_UNSENT_BYTES,
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_UNSENT_BYTES,
    MAX_URL_BYTES,
)
from holdfast.server.back_pressure import BackPressure
from tests.server.running import RawClient, command
from tests.server.serving import Server, serving

MEGABYTE = 1024 * 1024
GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("reading")) as running:
        yield running
        assert running.stop() == 0


@contextlib.contextmanager
def http_socket(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection((server.host, server.http_port), timeout=10) as opened:
        yield opened


def sent_until_full(opened: socket.socket, data: bytes, most: int) -> int:
    """Sends without reading, until the server takes no more or `most` bytes were taken."""
    opened.settimeout(0.5)
    sent = 0
    with contextlib.suppress(TimeoutError, ConnectionError):
        while sent < most:
            sent += opened.send(data)
    return sent


def all_of(opened: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionError):
        while more := opened.recv(65_536):
            received += more
    return received


# --- HTTP ----------------------------------------------------------------------------------------


def test_pipelined_requests_without_reading_are_not_taken_without_end(server: Server) -> None:
    before = server.memory_bytes()
    with http_socket(server) as lazy:
        sent = sent_until_full(lazy, GET * 2_000, 40 * MEGABYTE)

        assert sent < 40 * MEGABYTE
        assert server.memory_bytes() - before < 30 * MEGABYTE
        assert server.get("/livez").status == 200


def test_pipelined_requests_are_answered_in_order_to_a_client_that_reads(server: Server) -> None:
    paths = [b"/livez" if number % 3 else b"/nothing-%d" % number for number in range(3_000)]
    with http_socket(server) as client:
        sending = threading.Thread(
            target=client.sendall,
            args=(b"".join(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % path for path in paths),),
        )
        sending.start()
        received = b""
        while received.count(b"HTTP/1.1 ") < len(paths) or not received.endswith((b"ok\n", b"}}")):
            more = client.recv(65_536)
            assert more
            received += more
        sending.join()

    said = [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]
    assert said == [200 if number % 3 else 404 for number in range(3_000)]


def test_what_is_refused_is_refused_after_what_came_before_it_is_answered(server: Server) -> None:
    sent = GET + GET + b"GARBAGE\r\n\r\n" + GET
    answers = []
    for size in (len(sent), 1, 7, len(GET)):
        with http_socket(server) as client:
            with contextlib.suppress(ConnectionError):
                for begin in range(0, len(sent), size):
                    client.sendall(sent[begin : begin + size])
            said = all_of(client).split(b"HTTP/1.1 ")[1:]
            answers.append([part[:3] for part in said])

    assert answers == [[b"200", b"200", b"400"]] * 4


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /livez HTTP/1.1\r\nX: " + b"a" * (MAX_HEAD_BYTES + 6_000) + b"\r\n\r\n", 431),
        (b"GET /livez HTTP/1.1\r\n" + b"X: aaaaaaaaaa\r\n" * 7_000 + b"\r\n", 431),
        (b"GET /livez HTTP/1.1\r\n" + b"X: a\r\n" * (MAX_HEADERS + 1) + b"\r\n", 431),
        (b"GET /livez?" + b"a" * MAX_URL_BYTES + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET /livez HTTP/1.1\r\n" + b"X: a\r\n" * MAX_HEADERS + b"\r\n", 200),
    ],
)
@pytest.mark.parametrize("size", [1_000_000, 1_448])
def test_heads_have_a_bound_in_one_packet_as_in_many(
    server: Server, head: bytes, status: int, size: int
) -> None:
    with http_socket(server) as client:
        with contextlib.suppress(ConnectionError):
            for begin in range(0, len(head), size):
                client.sendall(head[begin : begin + size])
            if status == 200:
                client.shutdown(socket.SHUT_WR)

        assert client.recv(12) == b"HTTP/1.1 %d" % status


def test_a_url_has_a_bound_of_parameters(server: Server) -> None:
    reply = server.get("/default/notices?" + "&".join(f"a{n}=1" for n in range(1_001)))

    assert (reply.status, reply.error["code"]) == (414, "url_too_long")


def test_trailers_have_the_same_bound(server: Server) -> None:
    body = b"POST /default/jobs/put HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    with http_socket(server) as client:
        client.sendall(body + b"X: a\r\n" * 7_000 + b"\r\n")

        assert client.recv(12) in (b"HTTP/1.1 431", b"HTTP/1.1 400")


def test_a_stream_ends_with_its_client_though_a_request_waits_behind_it(server: Server) -> None:
    body = b'{"queues":"nothing","worker":"w","timeout":60}'
    head = b"POST /default/jobs/pop_wait HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    with http_socket(server) as client:
        client.sendall(head + body + GET)
        _until(lambda: _metric(server, "waits") == 1)

    _until(lambda: _metric(server, "waits") == 0)


@pytest.mark.parametrize("kind", ["head", "body", "answer", "stream"])
def test_a_client_that_stalls_does_not_delay_the_servers_end(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path) as own:
        own.call("jobs.put", queue="q", id="big", data="x" * 8 * MEGABYTE)
        asked = b'{"id":"big"}'
        sent = {
            "head": b"GET /livez HTTP/1.1\r\nX: ",
            "body": b"POST /default/jobs/put HTTP/1.1\r\nContent-Length: 100\r\n\r\n{",
            "answer": b"POST /default/jobs/get HTTP/1.1\r\nContent-Length: 12\r\n\r\n" + asked,
            "stream": b"GET /default/notices HTTP/1.1\r\n\r\n",
        }[kind]
        with http_socket(own) as stalled, RawClient(own.resp_port) as lazy:
            stalled.sendall(sent)
            lazy.send("JOBS.GET", '{"id":"big"}')
            own.get("/livez")

            begin = time.monotonic()
            assert own.stop() == 0
            assert time.monotonic() - begin < 15


def test_a_client_that_does_not_read_its_answer_is_dropped(tmp_path: Path) -> None:
    with serving(tmp_path, "--limit", "stalled_seconds=0.3") as own:
        own.call("jobs.put", queue="q", id="big", data="x" * 8 * MEGABYTE)
        with http_socket(own) as lazy:
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            body = b'{"id":"big"}'
            lazy.sendall(b"POST /default/jobs/get HTTP/1.1\r\nContent-Length: 12\r\n\r\n" + body)
            lazy.recv(1)
            _until(lambda: _connections(own) == 1)
        assert own.stop() == 0


# --- all clients together ------------------------------------------------------------------------


def test_subscribers_that_do_not_read_share_a_bound(tmp_path: Path) -> None:
    published = 24  # in megabytes: less than one subscriber alone may leave unread
    with serving(tmp_path) as own, contextlib.ExitStack() as stack:
        speaker = stack.enter_context(RawClient(own.resp_port))
        for _ in range(40):
            lazy = stack.enter_context(RawClient(own.resp_port))
            lazy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            lazy.ask("SUBSCRIBE", "x")
        before = own.memory_bytes()
        unsent, memory = [], []
        for _ in range(published):
            assert speaker.ask("PUBLISH", "x", "y" * MEGABYTE) > 0
            unsent.append(_metric(own, "unsent_bytes"))
            memory.append(own.memory_bytes() - before)

        assert max(unsent) <= 2 * MAX_ALL_UNSENT_BYTES + MEGABYTE
        assert max(memory) < 700 * MEGABYTE
        left = speaker.ask("PUBLISH", "x", "")
        assert published * MEGABYTE < MAX_UNSENT_BYTES
        assert 0 < left < 40


class _Client:
    """Owes what a test says, and reads when it says so."""

    def __init__(self, owed: int) -> None:
        self.owed = owed
        self.is_dropped = False

    def unsent_bytes(self) -> int:
        return self.owed

    def drop(self) -> None:
        self.is_dropped, self.owed = True, 0


class _Loop:
    """A loop whose clock is turned by hand."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Any) -> Any:
        self.next = call
        return object()


def test_of_all_who_are_behind_those_that_read_nothing_are_dropped_first() -> None:
    loop = _Loop()
    back_pressure = BackPressure(loop, size=100)  # type: ignore[arg-type]  # it is asked for its time only
    slow, dead = _Client(60), _Client(30)
    back_pressure.add(dead)
    back_pressure.add(slow)
    loop.now = 2.0
    slow.owed = 50
    back_pressure.note_written(slow, 0)
    another = _Client(40)
    back_pressure.add(another)

    assert (slow.is_dropped, dead.is_dropped, another.is_dropped) == (False, True, False)
    assert back_pressure.total == 90


def _read_for(seconds: int, client: _Client, *, read: int, written: int = 0) -> None:
    """Lets a client read and the server write so many bytes in each second."""
    loop = _Loop()
    back_pressure = BackPressure(loop)  # type: ignore[arg-type]  # it is asked for its time only
    back_pressure.add(client)
    for now in range(1, seconds + 1):
        if client.is_dropped:
            break
        loop.now = float(now)
        client.owed += written - read
        back_pressure.note_written(client, written)
        loop.next()


@pytest.mark.parametrize("written", [0, 200, 1_000])
def test_a_client_that_reads_a_few_bytes_now_and_then_is_dropped(written: int) -> None:
    client = _Client(8 * MEGABYTE)

    _read_for(100, client, read=100, written=written)

    assert client.is_dropped


@pytest.mark.parametrize("written", [0, 1_000, 2_000])
def test_a_client_that_reads_slowly_gets_all_of_its_answer(written: int) -> None:
    client = _Client(8 * MEGABYTE)

    _read_for(1_000, client, read=1_000, written=written)

    assert not client.is_dropped


def test_what_the_kernel_takes_at_first_does_not_count_as_read() -> None:
    loop, client = _Loop(), _Client(8 * MEGABYTE)
    back_pressure = BackPressure(loop)  # type: ignore[arg-type]  # it is asked for its time only
    back_pressure.add(client)
    for now in range(1, 100):
        loop.now = now / 2
        client.owed = 6 * MEGABYTE - now
        loop.next()
    loop.now = 61.0
    loop.next()

    assert client.is_dropped


def test_twice_the_bound_is_held_by_no_one() -> None:
    back_pressure = BackPressure(_Loop(), size=100)  # type: ignore[arg-type]  # it is asked for its time only
    clients = [_Client(90) for _ in range(5)]
    for client in clients:
        back_pressure.add(client)

    assert back_pressure.total <= 200
    assert sum(client.is_dropped for client in clients) == 3


def test_who_owes_nothing_is_not_dropped_when_the_server_stops() -> None:
    loop = _Loop()
    back_pressure = BackPressure(loop)  # type: ignore[arg-type]  # it is asked for its time only
    idle, stalled = _Client(0), _Client(10)
    back_pressure.add(idle)
    back_pressure.add(stalled)
    back_pressure.shorten_time_limit()
    for now in (1.0, 2.5):
        loop.now = now
        loop.next()

    assert (idle.is_dropped, stalled.is_dropped) == (False, True)


def test_memory_goes_back_to_the_system_after_a_flood(tmp_path: Path) -> None:
    with serving(tmp_path) as own:
        own.get("/livez")
        before = own.memory_bytes()
        with contextlib.ExitStack() as stack:
            head = b"POST /default/jobs/put HTTP/1.1\r\nContent-Length: 60000000\r\n\r\n"
            for _ in range(4):
                lazy = stack.enter_context(http_socket(own))
                lazy.sendall(head + b" " * 40 * MEGABYTE)
            _until(lambda: own.memory_bytes() - before > 100 * MEGABYTE)

        _until(lambda: own.memory_bytes() - before < 60 * MEGABYTE)


# --- keepalive -----------------------------------------------------------------------------------


def test_the_kernel_asks_quiet_peers_whether_they_are_there(server: Server) -> None:
    with http_socket(server) as one, RawClient(server.resp_port) as other:
        one.sendall(GET)
        one.recv(1)
        other.ask("PING")
        lines = _sockets_with_timers(server.http_port) | _sockets_with_timers(server.resp_port)

        assert {one.getsockname()[1], other.socket.getsockname()[1]} <= lines


def _sockets_with_timers(port: int) -> set[int]:
    """The peers' ports of the server's connections that have a keepalive timer, as Linux says."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if int(words[1].partition(":")[2], 16) == port and words[5].startswith("02:"):
            found.add(int(words[2].partition(":")[2], 16))
    return found


# --- batches -------------------------------------------------------------------------------------


def test_a_batch_whose_answers_are_too_large_is_refused_and_changes_nothing(
    server: Server,
) -> None:
    server.call("jobs.put", queue="q", id="large", data="x" * 8 * MEGABYTE)
    steps: list[Any] = [{"operation": "jobs.put", "arguments": {"queue": "q", "id": "never"}}]
    steps += [{"operation": "jobs.get", "arguments": {"id": "large"}}] * 150
    before = server.memory_bytes()

    refused = server.request("POST", "/default/batch", json.dumps(steps))
    with RawClient(server.resp_port) as client:
        client.ask("MULTI")
        client.ask("JOBS.PUT", '{"queue":"q","id":"never"}')
        for _ in range(150):
            client.ask("JOBS.GET", '{"id":"large"}')
        refused_too = client.ask("EXEC")

    assert (refused.status, refused.error["code"]) == (413, "answer_too_large")
    assert str(refused_too).startswith("ANSWER_TOO_LARGE ")
    assert server.call("jobs.get", id="never").result is None
    assert server.memory_bytes() - before < 400 * MEGABYTE


@pytest.mark.parametrize("operation", ["jobs.put", "jobs.length"])
def test_a_batch_has_a_bound_of_steps_on_both_protocols(server: Server, operation: str) -> None:
    step = {"operation": operation, "arguments": {"queue": "steps"}}
    refused = server.request("POST", "/default/batch", json.dumps([step] * 10_001))
    with RawClient(server.resp_port) as client:
        name = operation.upper()
        client.socket.sendall(
            command("MULTI") + command(name, '{"queue":"steps"}') * 10_001 + command("EXEC")
        )
        replies = [client.receive() for _ in range(10_003)]

    assert (refused.status, refused.error["code"]) == (413, "request_too_large")
    assert "10000" in str(replies[-2])
    assert str(replies[-1]).startswith("EXECABORT ")
    assert server.call("jobs.length", queue="steps").result == 0


def test_a_batch_that_takes_too_long_is_refused_and_changes_nothing(server: Server) -> None:
    jobs = [{"queue": "long", "data": number} for number in range(10_000)]
    steps = [{"operation": "jobs.put_many", "arguments": {"jobs": jobs}}] * 20

    refused = server.request("POST", "/default/batch", json.dumps(steps))

    assert (refused.status, refused.error["code"]) == (413, "batch_too_long")
    assert server.call("jobs.length", queue="long").result == 0


def test_many_reads_in_a_batch_let_others_be_answered(server: Server) -> None:
    with RawClient(server.resp_port) as client:
        client.socket.sendall(
            command("MULTI") + command("JOBS.LENGTH", '{"queue":"q"}') * 5_000 + command("EXEC")
        )
        server.get("/livez")

        replies = [client.receive() for _ in range(5_002)]

    assert len(replies[-1]) == 5_000


@pytest.mark.parametrize("end", ["EXEC", "DISCARD", "RESET", "close", "error"])
def test_queued_commands_count_among_the_large_requests_and_are_released_at_once(
    server: Server, end: str
) -> None:
    before = _metric(server, "request_bytes")
    with RawClient(server.resp_port) as client:
        client.ask("MULTI")
        for _ in range(5):
            assert client.ask("ECHO", "x" * 400_000) == b"QUEUED"
        assert client.ask("PING") == b"QUEUED"
        assert _metric(server, "request_bytes") - before > 2_000_000

        if end == "close":
            client.close()
        else:
            client.ask("NOTHING" if end == "error" else end)

        _until(lambda: _metric(server, "request_bytes") == before)


def test_a_list_of_jobs_has_a_bound_in_bytes(server: Server) -> None:
    server.call("jobs.put", queue="lists", id="list", data="x" * 8 * MEGABYTE)
    before = server.memory_bytes()

    refused = server.call("jobs.multiget", ids=["list"] * 100)

    assert (refused.status, refused.error["code"]) == (413, "answer_too_large")
    assert server.memory_bytes() - before < 400 * MEGABYTE
    assert len(server.call("jobs.multiget", ids=["list"] * 2).result) == 2


# --- helpers -------------------------------------------------------------------------------------


def _metric(server: Server, name: str) -> int:
    text = server.get("/metrics").body
    return int(text.split(f"\nholdfast_{name} ".encode())[1].split(b"\n")[0])


def _connections(server: Server) -> int:
    return _metric(server, "connections")


def _until(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)
