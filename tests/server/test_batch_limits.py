"""A rate limit as part of a batch: if it refuses, nothing of the batch is done."""

import json
from typing import Any

import hiredis
import pytest

from tests.server.http_fixtures import server
from tests.server.running import RawClient
from tests.server.serving import Reply, Server

__all__ = ["server"]

pytestmark = pytest.mark.every_engine


def limit(name: str, amount: int = 1) -> dict[str, Any]:
    """The arguments of `metrics.require`: two a minute for each name."""
    return {
        "operations": [{"condition": "orders", "entity": ["user", name], "amount": amount}],
        "conditions": {"orders": "2/minute"},
    }


def order(server: Server, name: str, id: str, amount: int = 1) -> Reply:
    """A batch over HTTP: the job of an order, then its limit."""
    steps = [
        {"operation": "jobs.put", "arguments": {"queue": "orders", "id": id}},
        {"operation": "metrics.require", "arguments": limit(name, amount)},
    ]
    return server.request("POST", "/limited/batch", json.dumps(steps))


def test_a_batch_over_http_that_a_limit_refuses_is_a_429_and_undone(server: Server) -> None:
    assert order(server, "ann", "ann-1", amount=2).result[1]["allowed"] is True

    refused = order(server, "ann", "ann-2")

    assert refused.status == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 62
    assert refused.error["code"] == "limit_exceeded"
    assert "'orders' allows 2 in 60 seconds" in refused.error["message"]
    assert "position 1 of the batch" in refused.error["message"]
    assert 0 < refused.error["retry_after"] <= 62
    assert refused.error["result"]["results"][0]["condition"] == "orders"
    assert server.call("jobs.get", space="limited", id="ann-2").result is None
    assert order(server, "ben", "ben-1").status == 200


def test_what_never_passes_has_no_retry_after(server: Server) -> None:
    refused = order(server, "eve", "eve-1", amount=3)

    assert (refused.status, refused.error["retry_after"]) == (429, None)
    assert "retry-after" not in refused.headers
    assert "ask for less" in refused.error["hint"]


def test_a_required_limit_alone_is_a_429_too(server: Server) -> None:
    assert server.call("metrics.require", space="limited", **limit("dan", 2)).status == 200

    refused = server.call("metrics.require", space="limited", **limit("dan"))

    assert (refused.status, refused.error["code"]) == (429, "limit_exceeded")


def test_exec_answers_a_limit_that_refuses_with_one_error_of_its_own_class(server: Server) -> None:
    def ordered(client: RawClient, id: str) -> Any:
        client.ask("MULTI")
        client.ask("JOBS.PUT", json.dumps({"queue": "orders", "id": id}))
        client.ask("METRICS.REQUIRE", json.dumps(limit("fay", 2)))
        return client.ask("EXEC")

    with RawClient(server.resp_port) as client:
        client.ask("SPACE", "limited")

        assert json.loads(ordered(client, "fay-1")[1])["allowed"] is True
        refused = ordered(client, "fay-2")
        gone = client.ask("JOBS.GET", json.dumps({"id": "fay-2"}))

    assert isinstance(refused, hiredis.ReplyError)
    said = str(refused)
    assert said.startswith("LIMIT_EXCEEDED 'orders' allows 2 in 60 seconds")
    assert "Try again in" in said
    assert "at position 1 of the batch" in said
    assert json.loads(gone) is None
