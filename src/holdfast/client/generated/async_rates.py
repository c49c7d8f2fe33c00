"""Rates of a server for programs that `await`: many promises at once.

Made by `make client` from holdfast.metrics.reader.
"""

from collections.abc import Mapping
from operator import methodcaller
from typing import TYPE_CHECKING, Any, overload

from holdfast.metrics.reader import K
from holdfast.metrics.records import Number

if TYPE_CHECKING:
    from holdfast.client.async_metrics import AsyncRatePromise


class AsyncPromiseReads:
    """Reads a list or a map of promises at once; the result has its keys."""

    @overload
    async def total(self, promises: Mapping[K, "AsyncRatePromise"]) -> dict[K, Number]: ...
    @overload
    async def total(self, promises: list["AsyncRatePromise"]) -> list[Number]: ...
    async def total(self, promises: Any) -> Any:
        """Returns the totals of a list or a map of promises, with its keys."""
        return await self._resolved(promises, "total")

    @overload
    async def per_second(self, promises: Mapping[K, "AsyncRatePromise"]) -> dict[K, float]: ...
    @overload
    async def per_second(self, promises: list["AsyncRatePromise"]) -> list[float]: ...
    async def per_second(self, promises: Any) -> Any:
        """Like `total`, for the rates per second."""
        return await self._resolved(promises, "per_second")

    @overload
    async def per_minute(self, promises: Mapping[K, "AsyncRatePromise"]) -> dict[K, float]: ...
    @overload
    async def per_minute(self, promises: list["AsyncRatePromise"]) -> list[float]: ...
    async def per_minute(self, promises: Any) -> Any:
        """Like `total`, for the rates per minute."""
        return await self._resolved(promises, "per_minute")

    @overload
    async def per_hour(self, promises: Mapping[K, "AsyncRatePromise"]) -> dict[K, float]: ...
    @overload
    async def per_hour(self, promises: list["AsyncRatePromise"]) -> list[float]: ...
    async def per_hour(self, promises: Any) -> Any:
        """Like `total`, for the rates per hour."""
        return await self._resolved(promises, "per_hour")

    @overload
    async def per_day(self, promises: Mapping[K, "AsyncRatePromise"]) -> dict[K, float]: ...
    @overload
    async def per_day(self, promises: list["AsyncRatePromise"]) -> list[float]: ...
    async def per_day(self, promises: Any) -> Any:
        """Like `total`, for the rates per day."""
        return await self._resolved(promises, "per_day")

    async def _resolved(self, promises: Any, name: str) -> Any:
        resolve = methodcaller(name)  # a client's promises have their own methods
        if isinstance(promises, Mapping):
            return {key: await resolve(promise) for key, promise in promises.items()}
        return [await resolve(promise) for promise in promises]
