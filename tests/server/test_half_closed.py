"""A client of HTTP that closes its side of the connection is answered, as with other servers."""

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from tests.server.serving import Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("half")) as running:
        yield running


def post(path: str, **arguments: object) -> bytes:
    body = json.dumps(arguments).encode()
    head = f"POST /default/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def answers(server: Server, sent: bytes) -> bytes:
    """Sends, closes its own side, and returns what the server says until it closes, too."""
    said = b""
    with (
        socket.create_connection((server.host, server.http_port), timeout=10) as opened,
        contextlib.suppress(ConnectionError),
    ):
        opened.sendall(sent)
        opened.shutdown(socket.SHUT_WR)
        while more := opened.recv(65_536):
            said += more
    return said


def test_a_write_is_answered(server: Server) -> None:
    said = answers(server, post("jobs/put", queue="q", id="written"))

    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.endswith(b'{"result":"written"}')


def test_a_large_write_is_answered(server: Server) -> None:
    said = answers(server, post("jobs/put", queue="q", id="large", data="x" * 200_000))

    assert said.endswith(b'{"result":"large"}')


def test_all_requests_of_a_pipeline_are_answered_in_order(server: Server) -> None:
    writes = [post("jobs/put", queue="pipe", id=f"job {number}") for number in range(20)]
    reads = [post("jobs/length", queue="pipe")] * 200  # more than is parsed at once

    said = answers(server, b"".join([*writes, *reads]))

    results = [each.split(b"\r\n\r\n")[1] for each in said.split(b"HTTP/1.1 200 OK")[1:]]
    assert results[:20] == [b'{"result":"job %d"}' % number for number in range(20)]
    assert results[20:] == [b'{"result":20}'] * 200


def test_a_request_whose_body_is_cut_is_not_answered_but_those_before_it_are(
    server: Server,
) -> None:
    whole = post("jobs/put", queue="cut", id="whole")

    assert answers(server, whole[:-1]) == b""
    assert answers(server, whole * 2 + whole[:-1]).count(b'{"result":"whole"}') == 2


def test_a_wait_ends_without_a_job(server: Server) -> None:
    wait = post("jobs/pop_wait", queues=["waited"], worker="gone", timeout=30)

    assert b'"result"' not in answers(server, wait)
    server.call("jobs.put", queue="waited", id="kept")
    assert server.call("jobs.get", id="kept").result["state"] == "waiting"


def test_a_stream_of_notices_ends(server: Server) -> None:
    ask = b"GET /default/notices HTTP/1.1\r\nHost: localhost\r\n\r\n"

    assert b"text/event-stream" in answers(server, ask)
