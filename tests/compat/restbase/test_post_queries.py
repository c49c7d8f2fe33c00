"""RESTBase's queries by POST: which bodies ask, which write, and which are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.compat.restbase.domains import JSON, TID, UNKNOWN, Domain, domain
from tests.server.http_fixtures import server
from tests.server.serving import serving

__all__ = ["domain", "server"]

REVISIONS = {
    "table": "revisions",
    "attributes": {
        "name": "string",
        "property": "string",
        "tid": "timeuuid",
        "limit": "int",
        "value": "json",
        "tags": "set<string>",
    },
    "index": [
        {"attribute": "name", "type": "hash"},
        {"attribute": "property", "type": "range"},
        {"attribute": "tid", "type": "range", "order": "desc"},
    ],
}
KEY = {"name": "Tom", "property": "foo"}


@pytest.fixture
def revisions(domain: Domain) -> Domain:
    """A versioned table with one revision."""
    assert domain.ask("PUT", "/revisions", REVISIONS).status == 201
    assert domain.put("revisions", **KEY, limit=1).status == 201
    return domain


def stored(domain: Domain) -> list[Any]:
    items: list[Any] = domain.ask("GET", "/revisions/Tom/foo").json["items"]
    return items


@pytest.mark.parametrize(
    "body",
    [
        {"attributes": KEY, "limit": 50},
        {"table": "revisions", "attributes": KEY, "proj": ["limit"]},
        {"attributes": KEY, "order": {"tid": "asc"}},
        {"attributes": KEY, "withTTL": True},
        {"attributes": {"name": "Tom"}, "proj": "name", "distinct": True},
        {"attributes": KEY, "next": None},
        {"attributes": KEY, "index": None},
        {"limit": 5},
        {"attributes": {"name": "Tom", "property": {"ge": "a", "LT": "z"}}},
        {"attributes": {**KEY, "tid": {"le": "2100-01-01"}}},
        {"attributes": {"name": {"eq": "Tom"}}, "consistency": "all"},
    ],
)
def test_a_post_with_what_only_a_query_has_is_a_query(
    revisions: Domain, body: dict[str, Any]
) -> None:
    before = stored(revisions)

    reply = revisions.ask("POST", "/revisions/", body)
    by_get = revisions.ask("GET", "/revisions/", body)

    assert (reply.status, reply.json) == (200, by_get.json)
    assert reply.json["count"] == 1
    assert stored(revisions) == before


@pytest.mark.parametrize(
    ("body", "type"),
    [
        ({"attributes": KEY, "limit": 5, "if": "not exists"}, "invalid_request"),
        ({"attributes": {**KEY, "tid": {"lt": TID}}, "return": "old"}, "invalid_request"),
        ({"attributes": KEY, "limt": 5}, "invalid_request"),
        ({"attributes": KEY, "filter": {}}, "invalid_request"),
        ({"attributes": KEY, "limit": 0}, "invalid_query"),
        ({"attributes": KEY, "count": "all"}, "invalid_query"),
        ({"attributes": {"property": {"gt": "a"}}}, "invalid_query"),
        ({"attributes": {**KEY, "limit": {"gt": 5}}}, "invalid_query"),
        ({"attributes": {**KEY, "limit": {"gt": 5, "incr": 1}}}, "invalid_value"),
        ({"attributes": {**KEY, "tid": {"gt": "x"}}}, "invalid_value"),
        ({"attributes": {**KEY, "nothing": {"gt": 5}}}, UNKNOWN),
        ({"attributes": KEY, "index": "nothing"}, "index_not_found"),
        ({"attributes": KEY}, "invalid_request"),
        ({"attributes": {**KEY, "tid": None}}, "invalid_request"),
        ({"attributes": KEY, "consistency": "all"}, "invalid_request"),
        ({**KEY}, "invalid_request"),
    ],
)
def test_a_post_that_could_be_either_or_is_wrong_writes_nothing(
    revisions: Domain, body: dict[str, Any], type: str
) -> None:
    before = stored(revisions)

    reply = revisions.ask("POST", "/revisions/", body)

    assert (reply.status // 100, reply.json["type"]) == (4, type)
    assert stored(revisions) == before


@pytest.mark.parametrize(
    "body",
    [
        {"attributes": {**KEY, "limit": 7}},
        {"attributes": {**KEY, "limit": {"incr": 7}}},
        {"attributes": {**KEY, "value": {"eq": 1}}},
        {"attributes": {**KEY, "value": {"gt": 1, "lt": 5}}, "consistency": "all"},
        {"attributes": {**KEY, "tags": {"add": ["a"]}}, "timestamp": 1},
        {"attributes": {**KEY, "_ttl": 600}},
        {"attributes": {**KEY, "tid": TID}},
        {"attributes": KEY, "if": "not exists"},
        {"attributes": KEY, "return": "old"},
    ],
)
def test_a_post_of_a_row_is_a_write(revisions: Domain, body: dict[str, Any]) -> None:
    reply = revisions.ask("POST", "/revisions/", body)

    assert (reply.status, reply.json["applied"]) == (201, True)
    assert len(stored(revisions)) == 2


@pytest.mark.parametrize("end", ["", "/"], ids=["bare", "slash"])
@pytest.mark.parametrize("body", [{"limit": 5}, {"attributes": {"tid": {"lt": TID}}}])
def test_a_query_is_in_the_body_or_in_the_path(
    revisions: Domain, end: str, body: dict[str, Any]
) -> None:
    reply = revisions.ask("POST", f"/revisions/Tom/foo{end}", body)

    assert (reply.status, reply.json["type"]) == (400, "invalid_request")
    assert "not in both" in reply.json["title"]
    assert len(stored(revisions)) == 1


def test_a_put_is_always_a_write_and_takes_no_members_of_a_query(revisions: Domain) -> None:
    with_limit = revisions.ask("PUT", "/revisions/", {"attributes": KEY, "limit": 5})
    with_predicate = revisions.ask("PUT", "/revisions/", {"attributes": {**KEY, "tid": {"lt": 1}}})
    assert len(stored(revisions)) == 1
    bare = revisions.ask("PUT", "/revisions/", {"attributes": KEY})

    assert (with_limit.status, with_limit.json["type"]) == (400, "invalid_request")
    assert (with_predicate.status, with_predicate.json["type"]) == (400, "invalid_value")
    assert bare.status == 201
    assert len(stored(revisions)) == 2


def test_a_query_by_post_needs_no_right_to_write(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with holdfast.open(data) as store:
        space = store.space("wiki")
        space.tables.create(REVISIONS)
        space.tables.put("revisions", {**KEY, "limit": 1})
        token = space.admin.add_user("reader", grants=["read:wiki"]).token
    with serving(data) as running:
        wiki = Domain(running, "wiki")
        login = {"Authorization": f"Bearer {token}"}

        query = wiki.ask("POST", "/revisions/", {"attributes": KEY, "limit": 5}, login)
        write = wiki.ask("POST", "/revisions/", {"attributes": {**KEY, "limit": 2}}, login)

    assert (query.status, query.json["count"]) == (200, 1)
    assert write.status == 403


def test_a_batch_has_operations_and_nothing_else(domain: Domain) -> None:
    body = json.dumps({"operations": [], "operation": []})

    reply = domain.server.request("POST", domain.root.replace("/table", "/batch"), body, JSON)

    assert (reply.status, reply.json["type"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("GET", {"attributes": KEY}),
        ("DELETE", {"attributes": KEY}),
        ("DELETE", {"table": "revisions", "attributes": {}}),
        ("POST", {"attributes": KEY, "limit": 5}),
        ("PUT", {"table": "revisions", "attributes": KEY}),
    ],
)
def test_a_row_request_without_its_slash_is_refused(
    revisions: Domain, method: str, body: dict[str, Any]
) -> None:
    reply = revisions.ask(method, "/revisions", body)

    assert reply.status in (400, 405)
    assert "with a slash" in reply.json["detail"]
    assert len(stored(revisions)) == 1


def test_an_empty_body_is_no_body_where_a_schema_is_asked_for_or_dropped(revisions: Domain) -> None:
    assert revisions.ask("GET", "/revisions", {}).json["table"] == "revisions"
    assert revisions.ask("DELETE", "/revisions", {}).status == 204
