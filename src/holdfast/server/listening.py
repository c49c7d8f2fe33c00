"""Accepts connections: several in each turn of the event loop."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from holdfast.keepalive import keep_alive
from holdfast.limits import ACCEPTED_PER_TURN, LISTEN_BACKLOG
from holdfast.server.dispatcher import Dispatcher
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
    tls: ssl.SSLContext | None,
    dispatcher: Dispatcher,
) -> list[Listener]:
    """Accepts connections on some sockets, with TCP keep-alive, and with TLS if there is a
    context."""
    listeners: list[Listener] = []
    loop, counts, turns = asyncio.get_running_loop(), dispatcher.connections, dispatcher.turns
    encrypted = tls and TlsConnections(protocol, tls, counts, turns, loop)
    for listening in sockets:
        keep_alive(listening)  # its connections inherit the option
        listeners += await _listeners(listening, encrypted.connect if encrypted else protocol)
    return [*listeners, encrypted] if encrypted else listeners


async def _listeners(
    listening: socket.socket, protocol: Callable[[], asyncio.Protocol]
) -> list[asyncio.Server]:
    """libuv accepts one connection per socket in each turn. If many arrive at once, the last one
    would wait for as many turns, so the socket is registered several times."""
    loop = asyncio.get_running_loop()
    copies = [listening.dup() for _ in range(ACCEPTED_PER_TURN - 1)]
    return [
        await loop.create_server(protocol, sock=each, backlog=LISTEN_BACKLOG)
        for each in (listening, *copies)
    ]
