"""Headers, answers and addresses that both middlewares share."""

import json

import pytest

from holdfast.errors import BadInput
from holdfast.metrics import BatchResult, Limiter
from holdfast.metrics.middleware import (
    Request,
    RequestHeaders,
    RequestLimits,
    client_address,
    denied,
    limit_headers,
    subnet,
)
from holdfast.store import Store
from holdfast.testing import Clock


@pytest.fixture
def limiter(store: Store, clock: Clock) -> Limiter:
    clock.set(1000)
    return store.metrics.limiter({"ip": "100/minute", "user": "10/minute"}, algorithm="gcra")


def _result(limiter: Limiter, user: int = 1) -> BatchResult:
    return limiter.try_all(
        [{"condition": "ip", "amount": 3}, {"condition": "user", "amount": user}]
    )


def test_the_ietf_headers_name_policy_and_state_in_the_batchs_order(limiter: Limiter) -> None:
    assert limit_headers(_result(limiter).results, "ietf") == [
        ("RateLimit-Policy", '"ip";q=100;w=60, "user";q=10;w=60'),
        ("RateLimit", '"ip";r=97;t=2, "user";r=9;t=6'),
    ]


def test_the_legacy_headers_are_of_the_condition_with_the_least_remaining(
    limiter: Limiter,
) -> None:
    results = _result(limiter).results

    legacy = [
        ("X-RateLimit-Limit", "10"),
        ("X-RateLimit-Remaining", "9"),
        ("X-RateLimit-Reset", "6"),
    ]
    assert limit_headers(results, "legacy") == legacy
    assert limit_headers(results, "both") == limit_headers(results, "ietf") + legacy
    assert limit_headers(results, "none") == []
    assert limit_headers([], "both") == []


def test_a_refusal_is_a_problem_that_says_when_to_come_back(limiter: Limiter) -> None:
    limiter.incr("user", amount=10)

    answer = denied(_result(limiter))

    headers = dict(answer.headers)
    assert answer.status == 429
    assert headers["Content-Type"] == "application/problem+json"
    assert headers["Retry-After"] == "6"
    assert headers["RateLimit"] == '"ip";r=100;t=0, "user";r=0;t=60'
    assert headers["Content-Length"] == str(len(answer.body))
    assert json.loads(answer.body) == {
        "type": "about:blank",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "Rate limit exceeded: user.",
        "retry_after": 6,
    }


def test_a_wait_is_at_least_a_second_and_left_out_if_it_is_in_vain(
    limiter: Limiter, clock: Clock
) -> None:
    limiter.incr("user", amount=10)
    clock.advance(seconds=5.99)
    assert dict(denied(_result(limiter)).headers)["Retry-After"] == "1"

    never = denied(_result(limiter, user=11))

    assert "Retry-After" not in dict(never.headers)
    assert json.loads(never.body)["retry_after"] is None


def test_names_are_quoted_for_structured_fields(store: Store) -> None:
    limiter = store.metrics.limiter({'a"\\ü': "1/s"})

    [policy, _] = limit_headers(limiter.try_all([{"condition": 'a"\\ü'}]).results, "ietf")

    assert policy[1] == '"a\\"\\\\?";q=1;w=1'


def test_the_address_is_the_peers_unless_the_peer_is_a_trusted_proxy() -> None:
    limits = RequestLimits(key=lambda request: {}, trusted_proxies=["10.0.0.0/8", "192.0.2.1"])
    trusted = limits.trusted_proxies

    assert client_address("203.0.113.5", "1.2.3.4", trusted) == "203.0.113.5"
    assert client_address("10.0.0.1", "1.2.3.4", trusted) == "1.2.3.4"
    assert client_address("10.0.0.1", "6.6.6.6, 1.2.3.4, 192.0.2.1", trusted) == "1.2.3.4"
    assert client_address("10.0.0.1", "", trusted) == "10.0.0.1"
    assert client_address("10.0.0.1", "rubbish", trusted) == "10.0.0.1"
    assert client_address("10.0.0.1", "1.2.3.4", []) == "10.0.0.1"
    assert client_address("::ffff:10.0.0.1", "1.2.3.4", trusted) == "1.2.3.4"


def test_neighbours_share_a_subnet() -> None:
    assert subnet("198.51.100.77") == "198.51.100.0/24"
    assert subnet("2001:db8:1:2:3::4") == "2001:db8:1:2::/64"
    assert subnet("::ffff:198.51.100.77") == "198.51.100.0/24"
    with pytest.raises(BadInput):
        subnet("localhost")


def test_settings_are_checked_when_the_middleware_is_made() -> None:
    with pytest.raises(BadInput):
        RequestLimits(key=lambda request: {}, on_error="ignore")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(BadInput):
        RequestLimits(key=lambda request: {}, headers="rfc")  # type: ignore[arg-type]  # on purpose


def test_a_lone_address_is_a_list_of_one() -> None:
    limits = RequestLimits(key=lambda request: {"ip": "192.0.2.7", "user": 1, "team": ["a", "b"]})
    request = Request({}, method="GET", path="/", headers=RequestHeaders(), client_address="")

    found = limits.operations(request)

    assert [operation.entity for operation in found] == [["192.0.2.7"], [1], ["a", "b"]]
