"""The async client: the calls of `Client`, each a coroutine."""

from collections.abc import Generator
from typing import Any, Self

from holdfast.client import calls
from holdfast.client.async_pool import AsyncPool
from holdfast.client.generated.async_space import AsyncSpace
from holdfast.client.urls import ServerTarget


class AsyncClient(AsyncSpace):
    """A connection to a server: the space of its URL, and the way to all other spaces.

    `await` it, or enter it with `async with`, and it is connected.
    """

    def __init__(self, target: ServerTarget) -> None:
        super().__init__(AsyncPool(target), target.space)

    def space(self, name: str) -> AsyncSpace:
        """Returns the space of that name; its first use creates it if it does not exist."""
        calls.require_text(name, "the name of a space")
        return AsyncSpace(self._pool, name)

    async def ping(self) -> None:
        """Returns once the server has answered; raises `Unanswered` if it does not."""
        reply = await self._exchange(calls.PING, self.name, timeout=self._timeout, only_reads=True)
        if reply != b"PONG":
            raise calls.failure(reply)

    async def close(self) -> None:
        """Closes all connections. A second call does nothing."""
        self._pool.close()

    async def _connected(self) -> Self:
        try:
            await self.ping()
        except BaseException:
            self._pool.close()
            raise
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self._connected().__await__()

    async def __aenter__(self) -> Self:
        return await self._connected()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
