"""uvicorn, as a part of our own loop: it starts and ends when we say so, and within our bounds."""

import asyncio
import math
import socket
import ssl
from http import HTTPStatus
from typing import Any

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.errors import BadInput, HoldfastError, ServerBusy
from holdfast.limits import (
    DRAIN_SECONDS,
    KEEP_ALIVE_SECONDS,
    MAX_HEAD_BYTES,
    STALLED_EXCHANGE_SECONDS,
)
from holdfast.server.exchange import JSON
from holdfast.server.execution import Execution
from holdfast.server.http import HttpDoor


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, for as many connections as there may be, and for requests whose head is
    of a sensible size and comes in time."""

    execution: Execution  # of the server that it belongs to
    _is_admitted = False
    _first = b""  # byte that came
    _unread = 0  # bytes since the last head or piece of a body was complete
    _has_head = False  # whether a head was complete with what came last
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._is_admitted = self.execution.admit()
        if self._is_admitted:
            self._expect_head()
        else:
            self._refuse(ServerBusy("the server has as many connections as it takes"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_complete()
        if self._is_admitted:
            self.execution.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return  # it was refused
        self._first = self._first or data[:1]
        self._unread += len(data)
        begins = self.cycle is None or self.cycle.response_complete
        self._has_head = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unread > MAX_HEAD_BYTES:
            self._refuse(BadInput(f"the head of a request may have {MAX_HEAD_BYTES} bytes"))
        elif begins and not self._has_head:  # mostly it comes whole, and needs no patience
            self._expect_head()

    def on_headers_complete(self) -> None:
        self._unread = 0
        self._has_head = True
        self._head_is_complete()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """uvicorn's word for what it can't parse, said as all doors say it."""
        other = {b"\x16": "TLS", b"*": "RESP"}.get(self._first)
        if other is not None:
            self._refuse(BadInput(f"this looks like {other}, and this port speaks plain HTTP"))
        else:
            self._refuse(BadInput("these bytes are no request of HTTP/1.1"))

    def _refuse(self, error: HoldfastError) -> None:
        """Answers without a request to answer, and closes."""
        said = {"code": error.code, "message": error.message, "hint": error.hint}
        body = msgspec.json.encode({"error": said})
        head = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"
        lines = [head, f"content-type: {JSON}", f"content-length: {len(body)}"]
        lines += ["retry-after: 1"] if isinstance(error, ServerBusy) else []
        self.transport.write("\r\n".join([*lines, "connection: close", "", ""]).encode() + body)
        self.transport.close()

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
        bounds = application.execution.bounds
        config = uvicorn.Config(
            application,
            http=type("Protocol", (BoundedProtocol,), {"execution": application.execution}),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # whose word counts is ours to say: see origin.py
            timeout_keep_alive=min(KEEP_ALIVE_SECONDS, math.ceil(bounds.idle_seconds)),
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
