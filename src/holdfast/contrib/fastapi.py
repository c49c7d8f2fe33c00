"""A store in a FastAPI application (extra `fastapi`).

    data = AppStore("data", tasks=tasks)
    app = FastAPI(lifespan=data.lifespan)

    @app.post("/orders")
    @data.transactional
    def place(tx: Tx, order: Order) -> Receipt: ...

The store is opened when the application starts, and closed when it ends. A worker inside the
application runs the tasks.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.contrib import starlette
from holdfast.contrib.app_store import by_address
from holdfast.contrib.starlette import AppLimiter, RateLimitMiddleware
from holdfast.errors import MissingDriver
from holdfast.store import Store

try:
    from fastapi import Depends, Request
except ImportError as error:
    raise MissingDriver(
        "the package `fastapi` is not installed", hint="pip install 'holdfastdb[fastapi]'"
    ) from error

if TYPE_CHECKING:
    from holdfast.client.batches import Batch

__all__ = ["AppLimiter", "AppStore", "RateLimitMiddleware"]


class AppStore(starlette.AppStore):
    """The store of a FastAPI application, and a worker for its tasks.

    Nothing is opened before the application starts, so every process of a server opens the store
    for itself. `options` are those of `holdfast.open`. With `tasks`, a worker of `threads` threads
    and `async_slots` runs inside the application.
    """

    def dependency(self) -> Any:
        """Returns the store, as a dependency: `store: Annotated[Store, data.dependency()]`."""
        return Depends(self._open_store)

    def batch(self) -> Any:
        """Returns a batch for each request, as a dependency.

        What the endpoint records in it is one transaction, committed when the endpoint has
        returned and before the answer is sent. If the endpoint raises, nothing is written.
        """
        return Depends(self._request_batch, scope="function")

    def rate_limit(
        self,
        conditions: Mapping[str, Any],
        key: Callable[[Request], Any] | None = None,
        amount: int = 1,
        **options: Any,
    ) -> Any:
        """Returns a dependency that answers 429, with `Retry-After`, beyond the limits.

        `key` maps a request to the entity of each condition; without it, all of them count by the
        client's address. `options` are those of `store.metrics.limiter`.
        """
        limiter = self.limiter(conditions, **options)

        async def limited(request: Request) -> None:
            host = None if request.client is None else request.client.host
            entities = by_address(conditions, host) if key is None else key(request)
            await self.require(limiter, entities, amount)

        return Depends(limited)

    async def _open_store(self) -> Store:
        return self.store

    async def _request_batch(self) -> "AsyncIterator[Batch]":
        async with self.aio.batch() as batch:
            yield batch
