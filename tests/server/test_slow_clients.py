"""A client that sends or reads a byte now and then holds no connection for ever, on either
protocol."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.contract import Engine
from holdfast.errors import ClientGone
from holdfast.limits import MIN_REQUEST_BYTES_PER_SECOND
from holdfast.server import back_pressure, http_exchange, slow_clients
from holdfast.server.http_exchange import HttpRequest, seconds_left
from holdfast.users import Grant, add_user
from tests.server.running import RawClient, command
from tests.server.small_server import small_server


def drip_until_closed(client: RawClient, piece: bytes) -> None:
    """Sends a small piece again and again, faster than any silence is noticed."""
    with contextlib.suppress(ConnectionError):
        while True:
            client.socket.sendall(piece)
            threading.Event().wait(0.01)


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"*1000000\r\n", b"$0\r\n\r\n"),
        (b"*2\r\n$4\r\nECHO\r\n$1000000\r\n", b"x"),
        (b"PING ", b"x"),
    ],
    ids=["an array without end", "a long word", "a line without end"],
)
def test_a_command_that_comes_too_slowly_ends_its_connection(
    tmp_path: Path, begin: bytes, piece: bytes
) -> None:
    with small_server(tmp_path, stalled_seconds=0.2) as server, server.connect() as other:
        with server.connect() as slow:
            slow.socket.sendall(begin)
            drip_until_closed(slow, piece)

        assert other.ask("PING") == b"PONG"
        server.until(lambda: server.dispatcher.connections.total == 1)


def test_a_large_command_may_take_its_time(tmp_path: Path) -> None:
    size = 4 * MIN_REQUEST_BYTES_PER_SECOND
    with small_server(tmp_path, stalled_seconds=0.2) as server, server.connect() as client:
        client.socket.sendall(b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % size + b"x" * (size - 1))
        with server.connect() as slow:  # as long as this one lasts, the other one is not too slow
            slow.socket.sendall(b"*1\r\n")
            assert slow.rest() == b""
        client.socket.sendall(b"x\r\n")

        assert client.receive() == b"x" * size


def test_commands_that_come_whole_may_come_rarely(tmp_path: Path) -> None:
    with small_server(tmp_path, stalled_seconds=0.2) as server, server.connect() as client:
        client.ask("PING")
        with server.connect() as slow:
            slow.socket.sendall(b"*1\r\n")
            assert slow.rest() == b""

        assert client.ask("PING") == b"PONG"


def test_an_answer_that_is_read_too_slowly_ends_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(back_pressure, "MIN_ANSWER_BYTES_PER_SECOND", 10**9)
    large, received = 8 * 1024 * 1024, 0
    with small_server(tmp_path, stalled_seconds=0.2) as server, server.connect() as slow:
        slow.ask("JOBS.PUT", json.dumps({"queue": "q", "id": "large", "data": "x" * large}))
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.socket.sendall(command("JOBS.GET", '{"id":"large"}'))
        while server.dispatcher.connections.total:
            received += len(slow.socket.recv(16_384))
            threading.Event().wait(0.01)

        assert received < large


def test_who_does_not_log_in_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_clients, "LOGIN_SECONDS", 0.5)
    tokens: list[str | None] = []

    def prepare(engine: Engine) -> None:
        tokens.append(add_user(engine, "ann", None, (Grant.parse("admin"),)))

    with small_server(tmp_path, prepare) as server, server.connect() as user:
        assert user.ask("AUTH", str(tokens[0])) == b"OK"
        with server.connect() as stranger:
            drip_until_closed(stranger, b"PING\r\n")

        assert user.ask("PING") == b"PONG"


def test_a_body_that_comes_too_slowly_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_exchange, "STALLED_EXCHANGE_SECONDS", 0.05)

    async def receive() -> MutableMapping[str, Any]:
        await asyncio.sleep(0.001)
        return {"type": "http.request", "body": b"", "more_body": True}

    scope = {"method": "POST", "path": "/", "query_string": b"", "headers": []}
    request = HttpRequest(scope, receive)

    with pytest.raises(ClientGone):
        asyncio.run(request.body())


def test_a_body_has_the_longer_the_more_of_it_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 1_000.0)

    assert seconds_left(1_000.0, 0) == 60.0
    assert seconds_left(950.0, 0) == 10.0
    assert seconds_left(900.0, 0) == 0.0
    assert seconds_left(900.0, 50 * MIN_REQUEST_BYTES_PER_SECOND) == 10.0
    assert seconds_left(900.0, 10**6) == 60.0
