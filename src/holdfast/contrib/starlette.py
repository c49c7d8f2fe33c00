"""A store in a Starlette application (extra `starlette`).

    data = AppStore("data", tasks=tasks)
    app = Starlette(routes=..., lifespan=data.lifespan)

The store is opened when the application starts, and closed when it ends. A worker inside the
application runs the tasks.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from holdfast.asgi import RateLimitMiddleware
from holdfast.contrib import app_store
from holdfast.contrib.app_store import (
    LimitRefusal,
    error_response,
    operations_of,
    without_transaction,
)
from holdfast.errors import HoldfastError, MissingDriver
from holdfast.metrics.records import BatchResult

try:
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import JSONResponse
except ImportError as error:
    raise MissingDriver(
        "the package `starlette` is not installed", hint="pip install 'holdfastdb[starlette]'"
    ) from error

if TYPE_CHECKING:
    from holdfast.async_store import AsyncStore
    from holdfast.metrics.conditions import Conditions

__all__ = ["AppLimiter", "AppStore", "RateLimitMiddleware"]

Endpoint = Callable[..., Coroutine[Any, Any, Any]]


class AppStore(app_store.AppStore):
    """The store of a Starlette or FastAPI application, and a worker for its tasks.

    Nothing is opened before the application starts, so every process of a server opens the store
    for itself. `options` are those of `holdfast.open`. With `tasks`, a worker of `threads` threads
    and `async_slots` runs inside the application.
    """

    @property
    def aio(self) -> "AsyncStore":
        """The open store, for coroutines."""
        return self.store.aio

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[dict[str, Any]]:
        """Opens the store while an application runs; `request.state.store` is the store too.

        Starlette(lifespan=data.lifespan), or `async with data.lifespan():` in a lifespan of yours.
        """
        opening = asyncio.ensure_future(asyncio.to_thread(self.open))
        try:
            yield {"store": await asyncio.shield(opening)}
        finally:
            # A start that was cancelled goes on in its thread, and the store has to be closed.
            await asyncio.wait([opening])
            await asyncio.to_thread(self.close)

    def transactional(self, function: Callable[..., Any]) -> Endpoint:
        """Decorates an endpoint, a plain function with a parameter of the type `Tx`.

        It runs in a thread as one transaction, which is committed before the answer is sent. If it
        raises, nothing is written. It may run more than once, so it should touch nothing but its
        transaction.
        """
        name, signature = without_transaction(function)

        @functools.wraps(function)
        async def endpoint(*args: Any, **options: Any) -> Any:
            return await self.aio.transact(lambda tx: function(*args, **{name: tx}, **options))

        endpoint.__signature__ = signature  # type: ignore[attr-defined]  # FastAPI reads it
        return endpoint

    def limiter(self, conditions: "Conditions", **options: Any) -> "AppLimiter":
        """Returns a limiter for `RateLimitMiddleware`, created when it is first used.

        `options` are those of `store.metrics.limiter`.
        """
        return AppLimiter(self, conditions, options)

    async def require(
        self, limiter: "AppLimiter", entities: Mapping[str, Any], amount: int = 1
    ) -> None:
        """Raises the exception for 429, with `Retry-After`, if a limit refuses these entities, by
        condition."""
        result = await limiter.try_all(operations_of(entities, amount))
        if not result.allowed:
            refusal = LimitRefusal(result)
            raise HTTPException(429, refusal.detail, refusal.headers)

    @staticmethod
    async def on_error(request: Request, error: Exception) -> JSONResponse:
        """Answers an error of Holdfast with its status, code and hint.

        app.add_exception_handler(HoldfastError, data.on_error)
        """
        assert isinstance(error, HoldfastError)
        status, body, headers = error_response(error)
        return JSONResponse(body, status, headers)


class AppLimiter:
    """A limiter of a store that is opened later."""

    def __init__(self, data: AppStore, conditions: "Conditions", options: dict[str, Any]) -> None:
        self._data = data
        self._conditions = conditions
        self._options = options
        self._limiter: Any = None

    async def try_all(self, operations: Iterable[Any]) -> BatchResult:
        """Decides on several operations at once: all are counted, or none."""
        aio = self._data.aio
        if self._limiter is None or self._limiter[0] is not aio:
            self._limiter = aio, aio.metrics.limiter(self._conditions, **self._options)
        result: BatchResult = await self._limiter[1].try_all(operations)
        return result
