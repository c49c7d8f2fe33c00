"""Rate limits in front of WSGI applications."""

import json
from typing import Any

import pytest
from flask import Flask

from holdfast.errors import StoreClosed
from holdfast.metrics import Limiter
from holdfast.store import Store
from holdfast.wsgi import RateLimitMiddleware, rate_limit


@pytest.fixture
def limiter(store: Store) -> Limiter:
    return store.metrics.limiter({"ip": "2/minute"})


def _flask(limiter: Any, **options: Any) -> Any:
    app = Flask(__name__)

    @app.get("/")
    def hello() -> tuple[str, dict[str, str]]:
        return "hello", {"X-Own": "1"}

    app.wsgi_app = RateLimitMiddleware(  # type: ignore[method-assign]  # Flask's documented way
        app.wsgi_app, limiter, lambda request: {"ip": [request.client_address]}, **options
    )
    return app.test_client()


def test_flask_answers_with_headers_until_the_limit_and_then_with_a_problem(
    limiter: Limiter,
) -> None:
    client = _flask(limiter)
    first, _, third = client.get("/"), client.get("/"), client.get("/")

    assert (first.status_code, first.text, first.headers["X-Own"]) == (200, "hello", "1")
    assert first.headers["RateLimit-Policy"] == '"ip";q=2;w=60'
    assert first.headers["RateLimit"].startswith('"ip";r=1;t=')
    assert (third.status, third.headers["Content-Type"]) == (
        "429 Too Many Requests",
        "application/problem+json",
    )
    assert json.loads(third.data)["retry_after"] == int(third.headers["Retry-After"])


def test_the_address_comes_from_trusted_proxies_only(limiter: Limiter) -> None:
    header = {"X-Forwarded-For": "203.0.113.9"}
    _flask(limiter).get("/", headers=header)
    _flask(limiter, trusted_proxies=["127.0.0.1"]).get("/", headers=header)

    assert limiter.peek("ip", ["127.0.0.1"]).prev_total == 1
    assert limiter.peek("ip", ["203.0.113.9"]).prev_total == 1


def test_exempt_requests_pass_untouched(limiter: Limiter) -> None:
    client = _flask(limiter, exempt=lambda request: request.method == "GET")

    assert all("RateLimit" not in client.get("/").headers for _ in range(5))


def test_a_store_that_cant_be_reached_never_becomes_a_500() -> None:
    class Unreachable:
        def try_all(self, operations: Any) -> Any:
            raise StoreClosed("the store is closed")

    assert _flask(Unreachable()).get("/").status_code == 200
    assert _flask(Unreachable(), on_error="deny").get("/").status_code == 503


def test_a_plain_wsgi_application_is_decorated(limiter: Limiter) -> None:
    statuses: list[Any] = []

    @rate_limit(limiter, lambda request: {"ip": [request["REMOTE_ADDR"]]}, headers="none")
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b"hello"]

    for _ in range(3):
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "REMOTE_ADDR": "192.0.2.7"}
        app(environ, lambda status, headers: statuses.append((status, headers)))

    assert statuses[0] == ("200 OK", [])
    assert statuses[2][0] == "429 Too Many Requests"
