"""A head that a proxy may read otherwise is refused, so that nobody smuggles a request past it."""

import contextlib
import socket
from collections.abc import Iterator

import pytest

from tests.server.serving import Server, serving

BODY = b'{"queue":"q"}'
CHUNKED = b"d\r\n" + BODY + b"\r\n0\r\n\r\n"
NEXT = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("heads")) as running:
        yield running


def answers(server: Server, request: bytes) -> bytes:
    """Returns all that the server says to a request and one behind it."""
    said = b""
    with (
        socket.create_connection((server.host, server.http_port), timeout=10) as opened,
        contextlib.suppress(ConnectionError),
    ):
        opened.sendall(request + NEXT)
        while more := opened.recv(65_536):
            said += more
    return said


def request(*headers: bytes, body: bytes = BODY, version: bytes = b"1.1") -> bytes:
    lines = [b"POST /default/jobs/length HTTP/" + version, *headers]
    return b"\r\n".join([*lines, b"", b""]) + body


HOST = b"Host: localhost"
LENGTH = b"Content-Length: 13"
CHUNKS = b"Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    "sent",
    [
        request(HOST, LENGTH, CHUNKS, body=CHUNKED),
        request(HOST, CHUNKS, LENGTH, body=CHUNKED),
        request(HOST, LENGTH, LENGTH),
        request(HOST, LENGTH, b"Content-Length: 14"),
        request(HOST, b"Content-Length: 13, 13"),
        request(HOST, b"Content-Length: -13"),
        request(HOST, b"Content-Length: +13"),
        request(HOST, b"Content-Length: 0xd"),
        request(HOST, b"Content-Length: 18446744073709551629"),
        request(HOST, b"Content-Length:"),
        request(HOST, b"Transfer-Encoding: gzip, chunked", body=CHUNKED),
        request(HOST, b"Transfer-Encoding: identity, chunked", body=CHUNKED),
        request(HOST, b"Transfer-Encoding: chunked, identity", body=CHUNKED),
        request(HOST, b"Transfer-Encoding: \x0bchunked", body=CHUNKED),
        request(HOST, b"Transfer-Encoding : chunked", body=CHUNKED),
        request(HOST, CHUNKS, b"Transfer-Encoding: identity", body=CHUNKED),
        request(HOST, CHUNKS, body=CHUNKED, version=b"1.0"),
        request(HOST, CHUNKS, body=b"-1\r\n" + BODY),
        request(HOST, CHUNKS, body=b"d\n" + BODY + b"\n0\n\n"),
        request(HOST, b"Host: evil.example", LENGTH),
        request(b"Host: evil.example", HOST, LENGTH),
        request(HOST, b"X: a\rContent-Length: 13"),
        request(HOST, b"X: a\nContent-Length: 13"),
        request(HOST, b" folded", LENGTH),
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_read(
    server: Server, sent: bytes
) -> None:
    said = answers(server, sent)

    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("sent", [request(HOST, LENGTH), request(HOST, CHUNKS, body=CHUNKED)])
def test_a_request_that_can_be_read_in_one_way_is_answered_and_so_is_the_next(
    server: Server, sent: bytes
) -> None:
    assert answers(server, sent).count(b"HTTP/1.1 200 ") == 2


UPGRADE = (b"Connection: Upgrade, HTTP2-Settings", b"HTTP2-Settings: AAMAAABk")
LENGTH_OF_EMPTY_QUEUE = b'{"result":0}'


@pytest.mark.parametrize("protocol", [b"Upgrade: h2c", b"Upgrade: websocket"])
@pytest.mark.parametrize(
    "sent", [request(HOST, LENGTH, *UPGRADE), request(HOST, CHUNKS, *UPGRADE, body=CHUNKED)]
)
def test_a_client_that_asks_for_another_protocol_is_answered_in_this_one(
    server: Server, sent: bytes, protocol: bytes
) -> None:
    sent = sent.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\n" + protocol + b"\r\n", 1)

    said = answers(server, sent * 3)

    assert said.count(b"HTTP/1.1 200") == 4
    assert said.count(LENGTH_OF_EMPTY_QUEUE) == 3


def test_the_body_of_a_request_for_another_protocol_is_no_request(server: Server) -> None:
    body = NEXT.replace(b"close", b"keep-alive")
    length = b"Content-Length: %d" % len(body)
    head = request(HOST, length, b"Upgrade: websocket", *UPGRADE, body=b"")

    said = b""
    with socket.create_connection((server.host, server.http_port), timeout=10) as opened:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in (head[:40], head[40:], body, NEXT):
            opened.sendall(piece)
            server.get("/livez")  # so that the piece has arrived
        while more := opened.recv(65_536):
            said += more

    assert said.count(b"HTTP/1.1 ") == 2
    assert said.startswith(b"HTTP/1.1 400 ")  # the body is not JSON


@pytest.mark.parametrize("url", [b"/default", b"http://localhost/", b"localhost:80"])
def test_a_request_for_a_tunnel_is_refused(server: Server, url: bytes) -> None:
    said = answers(server, b"CONNECT " + url + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1


def test_an_answer_to_head_has_no_body_even_if_the_request_can_not_be_read(server: Server) -> None:
    said = answers(server, b"HEAD /readyz HTTP/1.1\r\nHost: localhost\r\nNo Header: 1\r\n\r\n")

    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.endswith(b"\r\n\r\n")
