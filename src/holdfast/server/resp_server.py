"""The RESP server: accepts connections and keeps the list of them."""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Final

from holdfast.limits import SERVER_DRAIN_SECONDS
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.listening import Listener, listen
from holdfast.server.resp import RespConnection
from holdfast.server.tls import CurrentContext

_LOOK_SECONDS: Final = 0.25  # between two looks at the connections that are left when it closes

_SENT_AT_ONCE: Final = 16  # small replies, before a look at the clock


class RespServer:
    """Accepts connections and keeps the list of them."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.loop = asyncio.get_running_loop()
        self._connections: set[RespConnection] = set()
        self.delayed: deque[RespConnection] = deque()  # that have a reply to send; see `send_soon`
        self._empty = asyncio.Event()

    async def open(
        self, host: str, port: int, *, tls: CurrentContext | None = None, shared: bool = False
    ) -> Listener:
        def connection() -> asyncio.Protocol:
            return RespConnection(self)

        server = await self.loop.create_server(
            connection, host, port, reuse_port=shared or None, start_serving=False
        )
        listening = [each.dup() for each in server.sockets]
        server.close()
        self._servers = await listen(listening, connection, tls, self.dispatcher)
        return self._servers[0]

    def admit(self, connection: RespConnection) -> bool:
        if self._closed or self.dispatcher.admit(connection.session.address) is not None:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: RespConnection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self.dispatcher.connections.leave(connection.session.address)
        if not self._connections:
            self._empty.set()

    def send_soon(self) -> None:
        """Sends the delayed replies once all connections have been read from."""
        self.loop.call_soon(self._send_delayed)

    def _send_delayed(self) -> None:
        delayed, turns = self.delayed, self.dispatcher.turns
        while delayed:
            for _ in range(min(len(delayed), _SENT_AT_ONCE)):
                delayed.popleft().send_delayed()
            if delayed and turns.is_over():
                self.loop.call_soon(self._send_delayed)
                return

    async def close(self) -> None:
        """Accepts no more connections, and lets each one finish its requests."""
        self._closed = True
        for server in self._servers:
            server.close()
        self.dispatcher.end_waits()
        self.dispatcher.back_pressure.shorten_time_limit()
        for connection in list(self._connections):
            connection.finish()
        deadline = self.loop.time() + SERVER_DRAIN_SECONDS
        while self._connections and self.loop.time() < deadline:
            for connection in self._connections:  # clients that read nothing are not waited for
                self.dispatcher.back_pressure.add(connection)
            self._empty.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), _LOOK_SECONDS)
        for connection in list(self._connections):
            connection.drop()

    _closed = False
