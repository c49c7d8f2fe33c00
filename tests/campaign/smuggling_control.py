"""A server that smuggles, and a proxy of ours: they show that the probes of `smuggling.py` find it.

The server ignores every body, so that it takes a body for the next request. The proxy passes
well-formed requests of all clients to one connection; it needs no program that may be missing.
"""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Final

_REQUEST: Final = re.compile(rb"[A-Z]+ (\S+) HTTP/1\.[01]\r\n")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
_CLOSE: Final = re.compile(rb"\r\nconnection: close\r\n", re.IGNORECASE)
_LINE_END: Final = re.compile(rb"\r\n(?![ \t])")
_FIRST_LINE: Final = re.compile(rb"(?:HTTP/1\.1 \d{3} |[A-Z]+ /\S* HTTP/1\.1\r\n)")
_CODING: Final = re.compile(rb"transfer.encoding|upgrade", re.IGNORECASE)
_REFUSED: Final = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
_SECONDS: Final = 10.0


class _Stream:
    """The bytes that come from a connection, of which some are taken at a time."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._came = b""

    def head(self) -> bytes:
        """Returns the bytes up to the next blank line."""
        while b"\r\n\r\n" not in self._came:
            self._receive()
        return self.take(self._came.index(b"\r\n\r\n") + 4)

    def take(self, size: int) -> bytes:
        while len(self._came) < size:
            self._receive()
        taken, self._came = self._came[:size], self._came[size:]
        return taken

    def _receive(self) -> None:
        more = self._socket.recv(65_536)
        if not more:
            raise ConnectionError("the other side has closed the connection")
        self._came += more


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Calls `serve` in a thread for each connection to the port that it yields."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):  # the server is closed
                while True:
                    opened, _ = server.accept()
                    threading.Thread(target=_serve_one, args=(serve, opened), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)


def _serve_one(serve: Callable[[socket.socket], None], opened: socket.socket) -> None:
    opened.settimeout(_SECONDS)
    with opened, contextlib.suppress(OSError):
        serve(opened)


def answer_without_bodies(opened: socket.socket) -> None:
    """Answers what it takes for requests, as a server does that smuggles."""
    stream = _Stream(opened)
    while True:
        found = _REQUEST.search(stream.head())
        if found is not None:
            said = b"nothing at " + found[1]
            opened.sendall(
                b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said)
            )


class SharingProxy:
    """Passes one request of a client at a time to the only connection that it has to a server."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._upstream: socket.socket | None = None

    def serve(self, client: socket.socket) -> None:
        stream, is_last = _Stream(client), False
        while not is_last:
            head = stream.head()
            length = _body_length(head)
            if length is None:
                client.sendall(_REFUSED)
                return
            is_last = _CLOSE.search(head) is not None
            request = _CLOSE.sub(b"\r\n", head) + stream.take(length)
            client.sendall(self._answer(request))

    def close(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
            self._upstream = None

    def _answer(self, request: bytes) -> bytes:
        with self._lock:
            for _ in range(2):  # the server may have closed the connection after an earlier one
                with contextlib.suppress(OSError):
                    return self._ask(request)
                self.close()
            return _REFUSED

    def _ask(self, request: bytes) -> bytes:
        if self._upstream is None:
            self._upstream = socket.create_connection(("127.0.0.1", self._server), _SECONDS)
            self._answers = _Stream(self._upstream)
        self._upstream.sendall(request)
        head = self._answers.head()
        while head.startswith(b"HTTP/1.1 100 "):
            head = self._answers.head()
        has_body = not request.startswith(b"HEAD ")
        body = self._answers.take(_body_length(head) or 0) if has_body else b""
        if _CLOSE.search(head) is not None:
            self.close()
        return head + body


def _body_length(head: bytes) -> int | None:
    """Returns the length of the body behind a head; None if that is not beyond doubt."""
    lengths = _LENGTH.findall(head)
    has_others = head.lower().count(b"length") != len(lengths) or b"\n" in _LINE_END.sub(b"", head)
    if has_others or _CODING.search(head) or len(lengths) > 1 or not _FIRST_LINE.match(head):
        return None
    return int(lengths[0]) if lengths else 0
