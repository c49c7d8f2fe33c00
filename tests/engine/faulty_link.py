"""A way to a server that loses messages on demand."""

import select
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class FaultyLink:
    """Listens on a port of its own and passes everything on to a server.

    `lose_replies(word, times)`: a message with this word reaches the server, and then the
    connection is gone; `lose_messages` loses it before the server gets it.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._lock = threading.Lock()
        self._word = b""
        self._losses = 0
        self._reaches_server = False
        self.lost = 0
        self._sockets: list[socket.socket] = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_replies(self, word: bytes, times: int = 1) -> None:
        with self._lock:
            self._word, self._losses, self._reaches_server = word, times, True

    def lose_messages(self, word: bytes, times: int = 1) -> None:
        with self._lock:
            self._word, self._losses, self._reaches_server = word, times, False

    def close(self) -> None:
        for each in self._sockets:
            _end(each)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                return
            self._sockets += (client, server)
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError, ValueError):  # ValueError: it was closed meanwhile
            while True:
                ready, _, _ = select.select([client, server], [], [])
                if server in ready:
                    if not (data := server.recv(1 << 20)):
                        break
                    client.sendall(data)
                elif not (data := client.recv(1 << 20)):
                    break
                elif not self._is_lost(data):
                    server.sendall(data)
                else:
                    if self._reaches_server:
                        server.sendall(data)
                        server.recv(1 << 20)  # it has been answered, so it has been done
                    break
        _end(client)
        _end(server)

    def _is_lost(self, data: bytes) -> bool:
        with self._lock:
            if self._losses and self._word in data:
                self._losses -= 1
                self.lost += 1
                return True
        return False


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
