"""Clients whose calls are spans, and that send the context of their trace to the server."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar

from opentelemetry import propagate

from holdfast import wire
from holdfast.client.async_client import AsyncClient
from holdfast.client.async_pool import AsyncPool
from holdfast.client.batches import Pipeline
from holdfast.client.calls import Call, require_text
from holdfast.client.client import Client, ClientSpace
from holdfast.client.generated.async_space import AsyncSpace
from holdfast.client.pool import Pool
from holdfast.client.urls import ServerTarget
from holdfast.contrib.opentelemetry.spans import Tracing

T = TypeVar("T")

_AROUND_BATCH: Final = 2  # MULTI and EXEC get answers too, besides the operations
_SIZE: Final = "db.operation.batch.size"


def _server(target: ServerTarget) -> dict[str, str | int]:
    return {"server.address": target.host, "server.port": target.port}


def _context() -> bytes:
    """Returns the command that sends the trace to the server; nothing if there is none."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    if not carrier:
        return b""
    words = [b"TRACE", *(each.encode() for pair in carrier.items() for each in pair)]
    return wire.array([wire.bulk(word) for word in words])


class TracedClientSpace(ClientSpace):
    """A space of a server, whose calls are spans."""

    def __init__(self, pool: Pool, name: str, tracing: Tracing) -> None:
        ClientSpace.__init__(self, pool, name)
        self._tracing = tracing
        self._server: Mapping[str, str | int] = _server(pool.target)
        self._exchange = self._send

    def call(self, call: Call[T], *values: Any) -> T:
        """Calls one operation, in a span, and returns its result."""
        with self._tracing.call(call.name, self.name, self._server):
            return super().call(call, *values)

    @contextmanager
    def pipeline(self) -> Iterator[Pipeline]:
        """Records operations, and sends them together, in one span, when the block ends."""
        recording = Pipeline()
        yield recording
        if recording:
            more = {**self._server, _SIZE: len(recording)}
            with self._tracing.call("pipeline", self.name, more):
                self._pool.send_pipeline(
                    recording, self.name, timeout=self._timeout, before=_context()
                )

    def _send(self, data: bytes, space: str, *, replies: int = 1, **options: Any) -> Any:
        if replies == 1:
            return self._send_context(data, space, 1, options)
        more = {**self._server, _SIZE: replies - _AROUND_BATCH}
        with self._tracing.call("batch", space, more):
            return self._send_context(data, space, replies, options)

    def _send_context(self, data: bytes, space: str, replies: int, options: Any) -> Any:
        """Sends commands, with the context of the trace before them, and leaves out its reply."""
        before = _context()
        if not before:
            return self._pool.exchange(data, space, replies=replies, **options)
        _, *rest = self._pool.exchange(before + data, space, replies=replies + 1, **options)
        return rest if replies > 1 else rest[0]


class TracedClient(TracedClientSpace, Client):
    """A client whose calls are spans, on the connections of another one."""

    def __init__(self, client: Client, tracing: Tracing) -> None:
        TracedClientSpace.__init__(self, client._pool, client.name, tracing)

    def space(self, name: str) -> ClientSpace:
        """Returns the space of that name; its first use creates it if it does not exist."""
        require_text(name, "the name of a space")
        return TracedClientSpace(self._pool, name, self._tracing)


class TracedAsyncClientSpace(AsyncSpace):
    """A space of a server for programs that `await`, whose calls are spans."""

    def __init__(self, pool: AsyncPool, name: str, tracing: Tracing) -> None:
        AsyncSpace.__init__(self, pool, name)
        self._tracing = tracing
        self._server: Mapping[str, str | int] = _server(pool.target)
        self._exchange = self._send

    async def call(self, call: Call[T], *values: Any) -> T:
        """Calls one operation, in a span, and returns its result."""
        with self._tracing.call(call.name, self.name, self._server):
            return await super().call(call, *values)

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[Pipeline]:
        """Records operations, and sends them together, in one span, when the block ends."""
        recording = Pipeline()
        yield recording
        if recording:
            more = {**self._server, _SIZE: len(recording)}
            with self._tracing.call("pipeline", self.name, more):
                await self._pool.send_pipeline(
                    recording, self.name, timeout=self._timeout, before=_context()
                )

    async def _send(self, data: bytes, space: str, *, replies: int = 1, **options: Any) -> Any:
        if replies == 1:
            return await self._send_context(data, space, 1, options)
        more = {**self._server, _SIZE: replies - _AROUND_BATCH}
        with self._tracing.call("batch", space, more):
            return await self._send_context(data, space, replies, options)

    async def _send_context(self, data: bytes, space: str, replies: int, options: Any) -> Any:
        """Sends commands, with the context of the trace before them, and leaves out its reply."""
        before = _context()
        if not before:
            return await self._pool.exchange(data, space, replies=replies, **options)
        _, *rest = await self._pool.exchange(before + data, space, replies=replies + 1, **options)
        return rest if replies > 1 else rest[0]


class TracedAsyncClient(TracedAsyncClientSpace, AsyncClient):
    """A client for programs that `await`, whose calls are spans."""

    def __init__(self, client: AsyncClient, tracing: Tracing) -> None:
        TracedAsyncClientSpace.__init__(self, client._pool, client.name, tracing)

    def space(self, name: str) -> AsyncSpace:
        """Returns the space of that name; its first use creates it if it does not exist."""
        require_text(name, "the name of a space")
        return TracedAsyncClientSpace(self._pool, name, self._tracing)
