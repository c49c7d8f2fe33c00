"""uvicorn, as a part of our own loop: it starts and ends when we say so, and within our bounds."""

import asyncio
import socket
import ssl
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.limits import (
    DRAIN_SECONDS,
    KEEP_ALIVE_SECONDS,
    MAX_CONNECTIONS,
    MAX_HEAD_BYTES,
    STALLED_EXCHANGE_SECONDS,
)
from holdfast.server.http import HttpDoor


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, for requests whose head is of a sensible size and comes in time."""

    _unread = 0  # bytes since the last head or piece of a body was complete
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_complete()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unread += len(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect_head()
        super().data_received(data)
        if self._unread > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_headers_complete(self) -> None:
        self._unread = 0
        self._head_is_complete()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def _expect_head(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(STALLED_EXCHANGE_SECONDS, self._lose_patience)

    def _head_is_complete(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self._patience = None
        if not self.transport.is_closing():
            self.transport.close()


class HttpServer:
    """Listens for the HTTP door."""

    def __init__(self, application: HttpDoor, tls: ssl.SSLContext | None = None) -> None:
        self._door = application
        config = uvicorn.Config(
            application,
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # whose word counts is ours to say: see origin.py
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        config.load()
        config.ssl = tls
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)

    async def open(self, listening: socket.socket) -> None:
        await self._server.startup([listening])
        self._ticking = asyncio.create_task(self._server.main_loop())

    async def close(self) -> None:
        """Accepts no one, and lets every request finish that has begun."""
        self._server.should_exit = True
        await self._ticking
        self._door.close()
        await self._server.shutdown()
