"""Rate limits in front of a WSGI application: Flask, Django and all others.

app.wsgi_app = RateLimitMiddleware(
    app.wsgi_app, limiter, lambda request: {"ip": [request.client_address]}
)
"""

from collections.abc import Callable, Iterable
from http import HTTPStatus
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

Environ: TypeAlias = dict[str, Any]
App: TypeAlias = Callable[[Environ, Any], Iterable[bytes]]


class RateLimitMiddleware:
    """Asks `limiter` before `app`; the arguments are those of `holdfast.asgi`."""

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

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        operations = self._limits.operations(_request(environ, self._limits))
        if not operations:
            return self.app(environ, start_response)
        answer: LimitResponse | None = None
        headers: Headers = []
        try:
            result = self._limiter.try_all(operations)
        except Exception as error:  # whatever it is, it must not become a 500
            answer = self._limits.on_failure(error)
        else:
            headers = self._limits.headers(result)
            answer = None if result.allowed else self._limits.refusal(result)
        if answer is None:
            return self.app(environ, _with_headers(start_response, headers))
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", answer.headers)
        return [answer.body]


def rate_limit(limiter: TriesAll, key: Key, **options: Any) -> Callable[[App], App]:
    """Decorates one WSGI application with the middleware."""
    return lambda app: RateLimitMiddleware(app, limiter, key, **options)


def _request(environ: Environ, limits: RequestLimits) -> Request:
    headers = RequestHeaders(
        {
            name[5:].replace("_", "-").lower(): str(value)
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
    )
    return Request(
        environ,
        method=environ.get("REQUEST_METHOD", "GET"),
        path=environ.get("PATH_INFO", ""),
        headers=headers,
        client_address=client_address(
            environ.get("REMOTE_ADDR", ""),
            headers.get("x-forwarded-for", ""),
            limits.trusted_proxies,
        ),
    )


def _with_headers(start_response: Any, headers: Headers) -> Any:
    def start_with_headers(status: str, given: Headers, exc_info: Any = None) -> Any:
        arguments = (status, [*given, *headers])
        return start_response(*arguments, exc_info) if exc_info else start_response(*arguments)

    return start_with_headers
