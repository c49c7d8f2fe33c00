"""Rate limits in front of ASGI applications."""

import asyncio
import json
import logging
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request as StarletteRequest
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from holdfast.asgi import RateLimitMiddleware, Request, rate_limit
from holdfast.errors import StoreClosed
from holdfast.metrics import Limiter
from holdfast.store import Store


@pytest.fixture
def limiter(store: Store) -> Limiter:
    return store.metrics.limiter({"ip": "2/minute", "user": "9/minute"}, algorithm="strict")


def _by_address(request: Request) -> dict[str, Any]:
    user = request.headers.get("X-User")
    return {"ip": [request.client_address], "user": [user] if user else None}


def _app(limiter: Any, **options: Any) -> Any:
    async def hello(request: StarletteRequest) -> PlainTextResponse:
        return PlainTextResponse("hello", headers={"x-own": "1"})

    async def stream(request: StarletteRequest) -> StreamingResponse:
        return StreamingResponse(iter([b"one", b"two"]))

    app = Starlette(routes=[Route("/", hello), Route("/stream", stream)])
    return RateLimitMiddleware(app, limiter, _by_address, **options)


def _call(app: Any, path: str = "/", kind: str = "http", **scope: Any) -> list[dict[str, Any]]:
    """The messages that an application sends for one request."""
    sent: list[dict[str, Any]] = []
    received: list[str] = []

    async def receive() -> dict[str, Any]:
        received.append(kind)
        if kind == "http" and len(received) > 1:
            await asyncio.Event().wait()  # the client stays and says no more
        if kind == "websocket":
            return {"type": "websocket.connect"}
        if kind == "lifespan":
            return {"type": "lifespan.startup" if not sent else "lifespan.shutdown"}
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    found = {
        "type": kind,
        "method": "GET",
        "path": path,
        "headers": [],
        "query_string": b"",
        "client": ("192.0.2.7", 1234),
        **scope,
    }
    asyncio.run(app(found, receive, send))
    return sent


def _headers(message: dict[str, Any]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in message["headers"]}


def test_an_allowed_request_gets_the_headers_and_a_denied_one_never_reaches_the_application(
    limiter: Limiter,
) -> None:
    app = _app(limiter)
    first, second, third = _call(app), _call(app), _call(app)

    assert (first[0]["status"], second[0]["status"], third[0]["status"]) == (200, 200, 429)
    assert _headers(first[0])["x-own"] == "1"
    assert _headers(first[0])["ratelimit-policy"] == '"ip";q=2;w=60'
    assert _headers(second[0])["ratelimit"].startswith('"ip";r=0;t=')
    assert _headers(third[0])["content-type"] == "application/problem+json"
    assert int(_headers(third[0])["retry-after"]) > 0
    assert json.loads(third[1]["body"])["status"] == 429


def test_conditions_without_an_entity_do_not_apply_and_all_others_are_one_batch(
    limiter: Limiter,
) -> None:
    app = _app(limiter)

    [start, _] = _call(app, headers=[(b"x-user", b"ann")])

    assert _headers(start)["ratelimit-policy"] == '"ip";q=2;w=60, "user";q=9;w=60'
    _call(app)
    assert _call(app, headers=[(b"x-user", b"ann")])[0]["status"] == 429
    assert limiter.peek("user", ["ann"]).prev_total == 1


def test_requests_may_be_exempt_or_cost_more(limiter: Limiter) -> None:
    app = _app(limiter, cost=lambda request: 2, exempt=lambda request: request.path == "/stream")

    for _ in range(5):
        exempt = _call(app, "/stream")
        assert (exempt[0]["status"], "ratelimit" in _headers(exempt[0])) == (200, False)
    assert [_call(app)[0]["status"] for _ in range(2)] == [200, 429]


def test_responses_are_streamed_as_they_come(limiter: Limiter) -> None:
    sent = _call(_app(limiter), "/stream")

    bodies = [message["body"] for message in sent if message["type"] == "http.response.body"]
    assert bodies[:2] == [b"one", b"two"]


def test_lifespan_passes_through_untouched(limiter: Limiter) -> None:
    sent = _call(_app(limiter), kind="lifespan")

    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


def test_a_denied_websocket_is_answered_or_closed(limiter: Limiter) -> None:
    limiter.incr("ip", ["192.0.2.7"], 2)
    app = _app(limiter)

    assert _call(app, kind="websocket") == [{"type": "websocket.close", "code": 1013}]
    answered = _call(app, kind="websocket", extensions={"websocket.http.response": {}})
    assert [message["type"] for message in answered] == [
        "websocket.http.response.start",
        "websocket.http.response.body",
    ]
    assert answered[0]["status"] == 429


def test_an_allowed_websocket_is_accepted_with_the_headers(limiter: Limiter) -> None:
    async def accept(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})

    app = RateLimitMiddleware(accept, limiter, _by_address)

    [message] = _call(app, kind="websocket")

    assert "ratelimit" in _headers(message)


class Unreachable:
    """A limiter whose store is gone."""

    def try_all(self, operations: Any) -> Any:
        raise StoreClosed("the store is closed")


def test_without_the_store_requests_pass_and_it_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert _call(_app(Unreachable()))[0]["status"] == 200

    assert "the rate limiter failed" in caplog.text


def test_without_the_store_requests_may_be_denied() -> None:
    [start, body] = _call(_app(Unreachable(), on_error="deny"))

    assert (start["status"], json.loads(body["body"])["title"]) == (503, "Service Unavailable")


def test_trusted_proxies_tell_the_address(limiter: Limiter) -> None:
    app = _app(limiter, trusted_proxies=["192.0.2.0/24"])
    _call(app, headers=[(b"x-forwarded-for", b"203.0.113.9")])

    assert limiter.peek("ip", ["203.0.113.9"]).prev_total == 1


def test_an_async_limiter_is_awaited(limiter: Limiter) -> None:
    class AsyncLimiter:
        async def try_all(self, operations: Any) -> Any:
            return limiter.try_all(operations)

    assert _call(_app(AsyncLimiter()))[0]["status"] == 200
    assert limiter.peek("ip", ["192.0.2.7"]).prev_total == 1


def test_one_application_is_decorated(limiter: Limiter) -> None:
    @rate_limit(limiter, lambda request: {"ip": [request["client"][0]]}, headers="legacy")
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("hello")(scope, receive, send)

    assert _headers(_call(app)[0])["x-ratelimit-limit"] == "2"
