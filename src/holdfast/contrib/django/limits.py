"""Rate limits for views, plain and async ones."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.contrib.app_store import LimitRefusal, by_address, operations_of
from holdfast.contrib.django.stores import open_store
from holdfast.metrics.records import BatchResult
from holdfast.store import Store

__all__ = ["rate_limit"]


def rate_limit(
    conditions: Mapping[str, Any],
    key: Callable[[Any], Mapping[str, Any]] | None = None,
    amount: int = 1,
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a view: beyond the limits it answers 429, with `Retry-After`.

    `key` maps a request to the entity of each condition; without it, all of them count by the
    client's address. `options` are those of `store.metrics.limiter`.
    """
    limits = _Limits(conditions, key, amount, options)

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(view):

            @functools.wraps(view)
            async def limited_async(request: Any, *args: Any, **values: Any) -> Any:
                aio = open_store().aio
                limiter = aio.metrics.limiter(conditions, **options)
                result = await limiter.try_all(limits.operations(request))
                return _refused(result) or await view(request, *args, **values)

            return limited_async

        @functools.wraps(view)
        def limited(request: Any, *args: Any, **values: Any) -> Any:
            result = limits.limiter(open_store()).try_all(limits.operations(request))
            return _refused(result) or view(request, *args, **values)

        return limited

    return decorate


class _Limits:
    """The conditions of one view, and its limiter on the store that is open."""

    def __init__(
        self,
        conditions: Mapping[str, Any],
        key: Callable[[Any], Mapping[str, Any]] | None,
        amount: int,
        options: dict[str, Any],
    ) -> None:
        self._conditions = conditions
        self._key = key
        self._amount = amount
        self._options = options
        self._limiter: tuple[Store, Any] | None = None

    def limiter(self, store: Store) -> Any:
        if self._limiter is None or self._limiter[0] is not store:
            self._limiter = store, store.metrics.limiter(self._conditions, **self._options)
        return self._limiter[1]

    def operations(self, request: Any) -> list[Any]:
        address = request.META.get("REMOTE_ADDR")
        key = self._key
        entities = by_address(self._conditions, address) if key is None else key(request)
        return operations_of(entities, self._amount)


def _refused(result: BatchResult) -> Any:
    """Returns the answer to a request beyond its limits; None for one that is allowed."""
    if result.allowed:
        return None
    from django.http import JsonResponse

    refusal = LimitRefusal(result)
    error = {"code": "limit_exceeded", "message": refusal.detail}
    return JsonResponse({"error": error}, status=429, headers=refusal.headers)
