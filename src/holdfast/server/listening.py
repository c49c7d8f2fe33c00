"""Accepts connections: one in each turn of the event loop, or many while many wait.

Connections are accepted in the order of their arrival. libuv accepts one per socket in each turn,
so if thousands arrive at once, the last one would wait for thousands of turns, with the work of
each. Then the socket is registered many more times for a while. Not always: every registration is
woken by every connection, so that all of them together would cost more than the connection.
"""

import asyncio
import select
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from holdfast.keepalive import keep_alive
from holdfast.limits import ACCEPTED_PER_TURN, CROWD_SECONDS, CROWDED_ACCEPTS, LISTEN_BACKLOG
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.tls import CurrentContext
from holdfast.server.tls_transport import TlsConnections


class Listener(Protocol):
    """Accepts connections until it is closed; asyncio's servers are such."""

    @property
    def sockets(self) -> Sequence[socket.socket]: ...
    def close(self) -> None: ...
    async def wait_closed(self) -> None: ...


async def listen(
    sockets: Iterable[socket.socket],
    protocol: Callable[[], asyncio.Protocol],
    tls: CurrentContext | None,
    dispatcher: Dispatcher,
) -> list[Listener]:
    """Accepts connections on some sockets, with TCP keep-alive, and with TLS if there is a
    context."""
    listeners: list[Listener] = []
    loop, counts, turns = asyncio.get_running_loop(), dispatcher.connections, dispatcher.turns
    encrypted = tls and TlsConnections(protocol, tls, counts, turns, loop)
    for listening in sockets:
        listener = SocketListener(listening, encrypted.connect if encrypted else protocol)
        await listener.open()
        listeners.append(listener)
    return [*listeners, encrypted] if encrypted else listeners


class SocketListener:
    """Accepts the connections of one socket."""

    def __init__(self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        self._socket, self._protocol = listening, protocol
        self._loop = asyncio.get_running_loop()
        self._poll = select.poll()
        self._poll.register(listening, select.POLLIN)
        self._crowded = 0  # connections in a row after which another one waited
        self._copies: list[asyncio.Server] = []  # of the first listener, while many wait
        self._opening: asyncio.Task[None] | None = None  # the copies
        self._is_closed = False

    async def open(self) -> None:
        keep_alive(self._socket)  # its connections inherit the option
        self._first = await self._loop.create_server(
            self._accepted, sock=self._socket, backlog=LISTEN_BACKLOG
        )

    @property
    def sockets(self) -> Sequence[socket.socket]:
        return self._first.sockets

    def close(self) -> None:
        """Accepts no more connections."""
        self._is_closed = True
        self._first.close()
        self._close_copies()

    async def wait_closed(self) -> None:
        await self._first.wait_closed()

    def _accepted(self) -> asyncio.Protocol:
        """Returns the protocol of a new connection, and notices when many of them wait."""
        if self._opening is None:
            self._crowded = self._crowded + 1 if self._poll.poll(0) else 0
            if self._crowded >= CROWDED_ACCEPTS:
                self._opening = self._loop.create_task(self._open_copies())
        return self._protocol()

    async def _open_copies(self) -> None:
        with suppress(OSError):  # too many open files: then those that exist have to do
            for _ in range(ACCEPTED_PER_TURN - 1):
                copy = await self._loop.create_server(
                    self._protocol, sock=self._socket.dup(), backlog=LISTEN_BACKLOG
                )
                self._copies.append(copy)
                if self._is_closed:
                    break
        if self._is_closed:
            self._close_copies()
        else:
            self._loop.call_later(CROWD_SECONDS, self._close_copies)

    def _close_copies(self) -> None:
        """Accepts one connection in each turn again, until many wait the next time."""
        while self._copies:
            self._copies.pop().close()
        self._opening, self._crowded = None, 0
