"""A server that does what a test says: real sockets, and every command that came is on a list."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from holdfast import wire

OK = wire.OK
NIL = wire.bulk(msgspec.msgpack.encode(None))
CLOSE = b"close"  # answers nothing, and closes
HANG = b"hang"  # answers nothing, and stays

Behaviour = Callable[[wire.Command], bytes]  # what one connection answers to a command


def well(command: wire.Command) -> bytes:
    """Answers as a server does, with a nil for every operation."""
    if command[0] == b"PING":
        return b"+PONG\r\n"
    return OK if command[0] in (b"EXACT", b"AUTH", b"SPACE") else NIL


def at(name: str, answer: bytes) -> Behaviour:
    """Answers one operation in its own way, and all else well."""
    return lambda command: answer if command[0] == name.encode() else well(command)


class ScriptedServer:
    """Each connection behaves as the next of `behaviours` says, and all later ones as the last."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self._behaviours = list(behaviours)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.url = f"holdfast://127.0.0.1:{self.port}"
        self.came: list[str] = []  # the names of operations, as they came
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def count(self, name: str) -> int:
        return self.came.count(name)

    def close_all(self) -> None:
        """Closes every connection, as a server does that ends."""
        while self._open:
            with suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.close_all()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                many = len(self._behaviours) > 1
                behaviour = self._behaviours.pop(0) if many else self._behaviours[0]
                self._open.append(connection)
                threading.Thread(
                    target=self._serve, args=(connection, behaviour), daemon=True
                ).start()

    def _serve(self, connection: socket.socket, behaviour: Behaviour) -> None:
        reader = wire.CommandReader()
        with connection, suppress(OSError):
            while data := connection.recv(65536):
                for command in reader.feed(data):
                    if b"." in command[0]:
                        self.came.append(command[0].decode())
                    answer = behaviour(command)
                    if answer == CLOSE:
                        return
                    if answer != HANG:
                        connection.sendall(answer)


@contextmanager
def scripted(*behaviours: Behaviour) -> Iterator[ScriptedServer]:
    server = ScriptedServer(*behaviours)
    try:
        yield server
    finally:
        server.close()
