"""Accepts connections: several in each turn of the event loop."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from holdfast.keepalive import keep_alive
from holdfast.limits import (
    ACCEPT_PAUSE_SECONDS,
    ACCEPTED_PER_TURN,
    HANDSHAKE_SECONDS,
    LISTEN_BACKLOG,
)
from holdfast.server.connection_counts import ConnectionCounts


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
    counts: ConnectionCounts,
) -> list[Listener]:
    """Accepts connections on some sockets, with TCP keep-alive."""
    listeners: list[Listener] = []
    for listening in sockets:
        keep_alive(listening)  # its connections inherit the option
        if tls is None:
            listeners += await _plain_listeners(listening, protocol)
        else:
            listeners.append(TlsListener(listening, protocol, tls, counts))
    return listeners


async def _plain_listeners(
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


class TlsListener:
    """Accepts connections with TLS.

    asyncio's servers call a protocol when the handshake is complete. Handshakes that are never
    completed would not count as connections, and there could be any number of them.
    """

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext,
        counts: ConnectionCounts,
    ) -> None:
        self._listening, self._protocol = listening, protocol
        self._tls, self._counts = tls, counts
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[None]] = set()
        listening.setblocking(False)
        listening.listen(LISTEN_BACKLOG)
        self._resume()

    @property
    def sockets(self) -> Sequence[socket.socket]:
        return (self._listening,)

    def close(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
            self._listening.close()
        for each in self._handshakes:
            each.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._handshakes, return_exceptions=True)

    def _resume(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_PER_TURN):
            try:
                accepted, peer = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no files left: it would be called again at once
                self._loop.remove_reader(self._listening)
                self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._resume)
                return
            address = str(peer[0])
            if not self._counts.enter_handshake(address):
                accepted.close()  # nothing can be said without TLS
                continue
            accepted.setblocking(False)
            task = self._loop.create_task(self._begin(accepted, address))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    async def _begin(self, accepted: socket.socket, address: str) -> None:
        """Waits for the handshake; the protocol gets the connection when it is complete."""
        try:
            with suppress(OSError, TimeoutError):  # which is no TLS, or ended, or took too long
                await self._loop.connect_accepted_socket(
                    self._protocol,
                    accepted,
                    ssl=self._tls,
                    ssl_handshake_timeout=HANDSHAKE_SECONDS,
                )
        finally:
            self._counts.leave_handshake(address)
