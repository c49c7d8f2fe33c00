"""Rate limits in front of an ASGI application: Starlette, FastAPI, Django and all others.

app = RateLimitMiddleware(app, limiter, lambda request: {"ip": [request.client_address]})
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias

from holdfast.metrics.middleware import (
    Cost,
    Exempt,
    Headers,
    HeaderStyle,
    Key,
    LimitResponse,
    OnError,
    Request,
    RequestHeaders,
    RequestLimits,
    TriesAll,
    client_address,
    subnet,
)

__all__ = ["RateLimitMiddleware", "Request", "rate_limit", "subnet"]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

_TRY_AGAIN_LATER = 1013  # the close code of a websocket


class RateLimitMiddleware:
    """Asks `limiter` before `app`; `key` maps a request to the entity of each condition.

    A condition whose entity is None does not apply. `cost` is how much a request counts, and
    `exempt` tells which requests are not limited. If the store can't be reached, `on_error` decides
    what happens to the request. The client's address is the peer's, unless the peer is one of
    `trusted_proxies`.
    """

    def __init__(
        self,
        app: App,
        limiter: TriesAll,
        key: Key,
        cost: Cost = 1,
        exempt: Exempt | None = None,
        on_error: OnError = "allow",
        headers: HeaderStyle = "ietf",
        trusted_proxies: Iterable[str] = (),
    ) -> None:
        self.app = app
        self._limiter = limiter
        self._limits = RequestLimits(
            key=key,
            cost=cost,
            exempt=exempt,
            on_error=on_error,
            headers=headers,
            trusted_proxies=trusted_proxies,
        )

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        operations = self._limits.operations(_request(scope, self._limits))
        if not operations:
            await self.app(scope, receive, send)
            return
        answer: LimitResponse | None = None
        headers: Headers = []
        try:
            result = await self._ask(operations)
        except Exception as error:  # whatever it is, it must not become a 500
            answer = self._limits.on_failure(error)
        else:
            headers = self._limits.headers(result)
            answer = None if result.allowed else self._limits.refusal(result)
        if answer is None:
            await self.app(scope, receive, _with_headers(send, headers))
        else:
            await _refuse(scope, receive, send, answer)

    async def _ask(self, operations: list[Any]) -> Any:
        """Asks the limiter; one of the embedded store waits for the disk, so it gets a thread."""
        if inspect.iscoroutinefunction(self._limiter.try_all):
            return await self._limiter.try_all(operations)
        return await asyncio.to_thread(self._limiter.try_all, operations)


def rate_limit(limiter: TriesAll, key: Key, **options: Any) -> Callable[[App], App]:
    """Decorates one ASGI application or endpoint with the middleware."""
    return lambda app: RateLimitMiddleware(app, limiter, key, **options)


def _request(scope: Any, limits: RequestLimits) -> Request:
    headers = RequestHeaders()
    for raw_name, raw_value in scope.get("headers", ()):
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        # A repeated header counts as one: each proxy may have added its own line.
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    peer = (scope.get("client") or ("", 0))[0]
    return Request(
        scope,
        method=scope.get("method", "GET"),
        path=scope.get("path", ""),
        headers=headers,
        client_address=client_address(
            peer, headers.get("x-forwarded-for", ""), limits.trusted_proxies
        ),
    )


def _with_headers(send: Send, headers: Headers) -> Send:
    """Returns a `send` that adds headers to the first message, and passes on all others
    unchanged."""
    raw = _raw(headers)

    async def send_with_headers(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.accept") and raw:
            message = {**message, "headers": [*message.get("headers", ()), *raw]}
        await send(message)

    return send_with_headers


async def _refuse(scope: Any, receive: Receive, send: Send, answer: LimitResponse) -> None:
    kind = "http.response"
    if scope["type"] == "websocket":
        await receive()  # the connect message, which has to come before any answer
        kind = "websocket.http.response"
        if kind not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER})
            return
    await send({"type": f"{kind}.start", "status": answer.status, "headers": _raw(answer.headers)})
    await send({"type": f"{kind}.body", "body": answer.body})


def _raw(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
