"""A real `holdfast serve` process, and a socket that speaks to it byte by byte."""

import os
import re
import select
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hiredis

from tests.processes import Command

DEADLINE = 20.0  # seconds that anything may take before a test has failed
_ADDRESSES = re.compile(rb"on \S+:(\d+) and for HTTP on https?://\S+:(\d+)")


class Server:
    """One server process."""

    def __init__(self, data: Path, *options: str) -> None:
        self._log = data.parent / f"{data.name}.log"
        words = ["serve", "--data", str(data), "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        self._process = Command([*words, *options], log=self._log)
        self.pid = self._process.pid
        self.resp_port, self.http_port = self._read_ports()

    def _read_ports(self) -> tuple[int, int]:
        said = b""
        while not (found := _ADDRESSES.search(said)):
            readable, _, _ = select.select([self._process.stdout], [], [], DEADLINE)
            more = os.read(self._process.stdout.fileno(), 4096) if readable else b""
            assert more, f"the server did not start: {said!r} {self.log}"
            said += more
        return int(found[1]), int(found[2])

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def resident_bytes(self) -> int:
        """The memory that the process holds."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def is_running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Its exit code."""
        code = self._process.wait(DEADLINE)
        self._process.stdout.close()
        return code

    def stop(self) -> None:
        """Ends it as an operator does, and looks whether it went well."""
        self.signal(signal.SIGTERM)
        assert self.wait() == 0, self.log

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait()

    def connect(self) -> "RawClient":
        return RawClient(self.resp_port)


@contextmanager
def serving(data: Path, *options: str) -> Iterator[Server]:
    """A server for the block. It must end with exit code 0 and nothing in its log."""
    server = Server(data, *options)
    try:
        yield server
    except BaseException:
        server.kill()
        raise
    server.stop()
    assert '"level":"error"' not in server.log


class RawClient:
    """A socket: what it sends and receives is what is on the wire."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self._reader = hiredis.Reader(notEnoughData=_NOT_ENOUGH)

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, *words: str | bytes) -> None:
        self.socket.sendall(command(*words))

    def receive(self) -> Any:
        """The next reply, decoded; errors are `hiredis.ReplyError`."""
        while (reply := self._reader.gets()) is _NOT_ENOUGH:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError("the server has closed the connection")
            self._reader.feed(data)
        return reply

    def ask(self, *words: str | bytes) -> Any:
        """The reply to one command."""
        self.send(*words)
        return self.receive()

    def exactly(self, count: int) -> bytes:
        """The next bytes as they are."""
        data = b""
        while len(data) < count and (more := self.socket.recv(count - len(data))):
            data += more
        return data

    def says(self, sent: bytes, expected: bytes) -> None:
        """Sends bytes and asserts that these bytes come back."""
        self.socket.sendall(sent)
        assert self.exactly(len(expected)) == expected

    def rest(self) -> bytes:
        """All that comes until the server closes the connection."""
        data = b""
        while more := self.socket.recv(65536):
            data += more
        return data


class _NotEnough:
    pass


_NOT_ENOUGH = _NotEnough()


def command(*words: str | bytes) -> bytes:
    """A command as bytes."""
    encoded = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in encoded)
