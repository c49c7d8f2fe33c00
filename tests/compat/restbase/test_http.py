"""RESTBase's paths: a domain's tables over HTTP, as its clients know them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.restbase.domains import JSON, PLAIN, SCHEMA, TID, Domain, domain
from tests.server.http_fixtures import server
from tests.server.serving import Reply, Server

__all__ = ["domain", "server"]


# --- schemas -------------------------------------------------------------------------------------


def test_a_table_is_created_once_and_shown_with_its_defaults(domain: Domain) -> None:
    again = domain.ask("PUT", "/pages", SCHEMA)
    shown = domain.ask("GET", "/pages")

    assert (again.status, again.json["type"], again.json["changed"]) == (
        201,
        "table_created",
        False,
    )
    assert (shown.status, shown.json["table"], shown.json["version"]) == (200, "pages", 1)
    assert shown.headers["etag"].startswith('"1-')


def test_a_schema_that_is_known_is_not_sent_again(domain: Domain) -> None:
    etag = domain.ask("GET", "/pages").headers["etag"]

    reply = domain.ask("GET", "/pages", headers={"If-None-Match": etag})

    assert (reply.status, reply.body) == (304, b"")


def test_tables_are_listed_and_counted(domain: Domain) -> None:
    domain.put("plain", k="a", r="1")

    assert domain.ask("GET", "/").json["items"] == ["pages", "plain"]
    assert domain.ask("GET", "").json["count"] == 2
    first = domain.ask("GET", "/?limit=1").json
    assert first["items"] == ["pages"]
    assert domain.ask("GET", f"/?limit=1&next={first['next']}").json["items"] == ["plain"]
    assert domain.ask("GET", "/plain?stats=true").json["stats"]["rows"] == 1


def test_a_dropped_table_is_gone_and_dropping_it_again_is_no_error(domain: Domain) -> None:
    assert domain.ask("DELETE", "/plain").status == 204
    assert domain.ask("DELETE", "/plain").status == 204

    gone = domain.ask("GET", "/plain/")

    assert (gone.status, gone.json["type"]) == (404, "table_not_found")
    assert "items" not in gone.json


# --- rows ----------------------------------------------------------------------------------------


def test_a_row_is_put_and_found(domain: Domain) -> None:
    put = domain.put("pages", title="Foo", tid=TID, n=1, body="hello")

    found = domain.ask("GET", "/pages/", {"table": "pages", "attributes": {"title": "Foo"}})

    assert (put.status, put.json) == (201, {"applied": True, "tid": TID})
    assert found.status == 200
    assert found.json["items"] == [{"title": "Foo", "tid": TID, "n": 1, "body": "hello"}]


def test_nothing_found_is_404_with_items(domain: Domain) -> None:
    reply = domain.ask("GET", "/pages/", {"attributes": {"title": "None"}})

    assert (reply.status, reply.json) == (404, {"items": [], "count": 0})


@pytest.mark.parametrize(
    ("method", "headers"), [("QUERY", {}), ("POST", {"X-HTTP-Method-Override": "GET"})]
)
def test_a_query_has_other_ways_for_clients_without_get_bodies(
    domain: Domain, method: str, headers: dict[str, str]
) -> None:
    domain.put("plain", k="a", r="1")

    reply = domain.ask(method, "/plain/", {"attributes": {"k": "a"}}, headers)

    assert reply.json["count"] == 1


def test_a_get_may_have_a_body_in_chunks(domain: Domain) -> None:
    domain.put("plain", k="a", r="1")

    def body() -> Iterator[bytes]:
        yield b'{"attributes": '
        yield b'{"k": "a"}}'

    reply = domain.server.request("GET", domain.root + "/plain/", body(), JSON)

    assert reply.json["count"] == 1


def test_head_answers_as_get_without_a_body(domain: Domain) -> None:
    domain.put("plain", k="a", r="1")

    assert domain.ask("HEAD", "/plain/a").status == 200
    assert domain.ask("HEAD", "/plain/b").status == 404
    assert domain.ask("HEAD", "/plain/a").body == b""


def test_a_condition_that_is_not_met_is_answered_with_applied_false(domain: Domain) -> None:
    row = {"attributes": {"k": "a", "r": "1", "v": 1}, "if": "not exists"}

    assert domain.ask("PUT", "/plain/", row).json == {"applied": True}
    assert domain.ask("POST", "/plain/", row).json == {"applied": False}


def test_rows_are_deleted(domain: Domain) -> None:
    for r in "123":
        domain.put("plain", k="a", r=r)

    one = domain.ask("DELETE", "/plain/", {"attributes": {"k": "a", "r": "1"}})
    refused = domain.ask("DELETE", "/plain/", {"attributes": {"k": "a", "r": "2"}, "if": {"v": 1}})
    rest = domain.ask("DELETE", "/plain/a?ge=3")

    assert (one.status, one.body, rest.status) == (204, b"", 204)
    assert (refused.status, refused.json) == (200, {"applied": False})
    assert [row["r"] for row in domain.ask("GET", "/plain/a").json["items"]] == ["2"]


# --- by URL --------------------------------------------------------------------------------------


def test_a_path_fixes_keys_and_parameters_bound_the_rest(domain: Domain) -> None:
    for r in ("a", "b", "c/d", "%", "+"):
        domain.put("plain", k="Tom & Jerry", r=r, v=r)
    tom = "/plain/Tom%20%26%20Jerry"

    assert domain.ask("GET", tom).json["count"] == 5
    assert domain.ask("GET", f"{tom}/").json["count"] == 5
    assert domain.ask("GET", f"{tom}/c%2Fd").json["items"][0]["v"] == "c/d"
    assert domain.ask("GET", f"{tom}/%25").json["items"][0]["v"] == "%"
    assert domain.ask("GET", f"{tom}/+").json["items"][0]["v"] == "+"
    assert [row["r"] for row in domain.ask("GET", f"{tom}?ge=a&lt=c").json["items"]] == ["a", "b"]
    assert domain.ask("GET", f"{tom}?proj=r&order=desc&limit=1").json["items"] == [{"r": "c/d"}]


def test_an_index_is_named_behind_two_slashes_or_by_a_parameter(domain: Domain) -> None:
    domain.put("pages", title="Foo", tid=TID, n=7)

    assert domain.ask("GET", "/pages//by_n/7").json["items"][0]["title"] == "Foo"
    assert domain.ask("GET", "/pages/7?index=by_n").json["count"] == 1
    assert domain.ask("GET", "/pages//none/7").json["type"] == "index_not_found"


def test_a_cut_page_links_to_the_next_one(domain: Domain) -> None:
    for r in "123":
        domain.put("plain", k="a", r=r)

    first = domain.ask("GET", "/plain/a?limit=2")
    link = first.headers["link"]
    assert link.endswith('>; rel="next"')
    second = domain.server.get(link[1 : link.index(">")])

    assert first.json["count"] == 2
    assert [row["r"] for row in second.json["items"]] == ["3"]
    assert "link" not in second.headers


def test_the_bare_listing_is_short(domain: Domain) -> None:
    for number in range(12):
        domain.put("plain", k=str(number), r="1")

    assert domain.ask("GET", "/plain/").json["count"] == 10
    assert domain.ask("GET", "/plain/", {"table": "plain"}).json["count"] == 12
    assert domain.ask("GET", "/plain/?limit=11").json["count"] == 11


def test_a_row_is_written_by_url(domain: Domain) -> None:
    put = domain.ask("PUT", "/plain/a/1", {"attributes": {"v": {"x": 1.5}}})

    assert put.status == 201
    assert domain.ask("GET", "/plain/a/1").json["items"][0]["v"] == {"x": 1.5}
    differs = domain.ask("PUT", "/plain/a/1", {"attributes": {"k": "b"}})
    assert (differs.status, differs.json["type"]) == (400, "invalid_request")


def test_a_path_that_has_the_whole_key_needs_no_body(domain: Domain) -> None:
    assert domain.ask("PUT", "/plain/a/1").status == 201
    assert domain.ask("POST", "/pages/Foo").json["applied"]

    assert domain.ask("GET", "/plain/a/1").json["items"] == [{"k": "a", "r": "1", "v": None}]
    assert domain.ask("PUT", "/plain/a").json["type"] == "missing_key"


# --- entity tags ---------------------------------------------------------------------------------


def test_a_row_has_an_etag_and_preconditions_compare_it(domain: Domain) -> None:
    domain.put("plain", k="a", r="1", v=1)
    etag = domain.ask("GET", "/plain/a/1").headers["etag"]
    row = {"attributes": {"v": 2}}

    assert domain.ask("GET", "/plain/a/1", headers={"If-None-Match": etag}).status == 304
    assert domain.ask("GET", "/plain/a/1", headers={"If-None-Match": f"W/{etag}"}).status == 304
    assert domain.ask("PUT", "/plain/a/1", row, {"If-None-Match": "*"}).status == 412
    assert domain.ask("PUT", "/plain/a/1", row, {"If-Match": etag}).status == 201
    late = domain.ask("PUT", "/plain/a/1", row, {"If-Match": etag})
    assert (late.status, late.json["type"]) == (412, "precondition_failed")
    assert domain.ask("DELETE", "/plain/a/1", headers={"If-Match": etag}).status == 412
    assert domain.ask("DELETE", "/plain/a/1", headers={"If-None-Match": "*"}).status == 412
    assert domain.ask("DELETE", "/plain/a/1", headers={"If-Match": "*"}).status == 204
    assert domain.ask("DELETE", "/plain/a/1", headers={"If-None-Match": "*"}).status == 204


# --- every domain --------------------------------------------------------------------------------


def test_the_domain_star_is_all_domains(server: Server) -> None:
    every = Domain(server, "*")
    schema = {**PLAIN, "table": "everywhere"}

    assert every.ask("PUT", "/everywhere", schema).status == 201
    assert Domain(server, "%2A").ask("GET", "/everywhere").json["table"] == "everywhere"
    new = Domain(server, "a.domain.not.seen.before")
    assert new.put("everywhere", k="a", r="1").status == 201
    for path in ("/everywhere/", "/everywhere/a", "/everywhere/?format=ndjson"):
        rows = every.ask("GET", path)
        assert (rows.status, rows.json["type"]) == (400, "invalid_request")
    assert every.ask("DELETE", "/everywhere").status == 204
    assert new.ask("GET", "/everywhere").status == 404


# --- streams and batches -------------------------------------------------------------------------


def test_rows_are_exported_and_imported_as_lines(domain: Domain) -> None:
    rows = [{"k": "a", "r": f"{number:05}", "v": "x" * 100} for number in range(2_500)]
    lines = [json.dumps(row) for row in rows]
    lines[3] = "{"
    headers = {"Content-Type": "application/x-ndjson"}
    path = f"{domain.root}/plain/?format=ndjson"

    report = domain.server.request("POST", path, "\n".join(lines), headers).json
    exported = domain.server.get(path)

    assert (report["rows"], report["refused"]) == (2_499, 1)
    assert [each["line"] for each in report["refusals"]] == [4]
    assert exported.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in exported.body.splitlines()] == rows[:3] + rows[4:]
    part = domain.ask("GET", "/plain/a?lt=00002&format=csv&proj=r")
    assert part.body == b"r\r\n00000\r\n00001\r\n"


def test_an_export_of_nothing_known_is_still_an_error(domain: Domain) -> None:
    assert domain.ask("GET", "/nothing/?format=ndjson").json["type"] == "table_not_found"
    assert domain.ask("GET", "/plain/?format=xml").json["type"] == "invalid_query"
    assert domain.ask("GET", "/plain/?format=ndjson&limit=1").json["type"] == "invalid_query"
    assert domain.ask("GET", "/plain/?format=ndjson&format=csv").json["type"] == "invalid_query"
    wrong: list[Any] = [5, [], [[]], ["nothing"]]
    for proj in wrong:
        refused = domain.ask("GET", "/plain/?format=ndjson", {"proj": proj})
        assert (refused.status, refused.json["type"]) == (400, "invalid_query")


def test_a_batch_is_all_or_nothing(domain: Domain) -> None:
    def batch(*operations: Any) -> Reply:
        path = domain.root.replace("/sys/table", "/sys/batch")
        body = json.dumps({"operations": operations})
        return domain.server.request("POST", path, body, JSON)

    put = {"op": "put", "table": "plain", "attributes": {"k": "a", "r": "1"}}

    assert batch(put, {**put, "table": "pages", "attributes": {"title": "T"}}).json["applied"]
    failed = batch({**put, "attributes": {"k": "b", "r": "1"}}, {**put, "if": "not exists"}).json
    assert (failed["applied"], failed["failed"]) == (False, 1)
    assert domain.ask("GET", "/plain/b").status == 404
    assert batch({**put, "op": "get"}).json["type"] == "invalid_request"


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "type"),
    [
        ("PATCH", "/plain/", None, 405, "method_not_allowed"),
        ("POST", "/plain", "{}", 405, "method_not_allowed"),
        ("PUT", "/plain/", "{", 400, "invalid_json"),
        ("PUT", "/plain/", "[]", 400, "invalid_request"),
        ("PUT", "/plain/", None, 400, "invalid_request"),
        ("PUT", "/plain/", '{"table": "pages", "attributes": {}}', 400, "table_mismatch"),
        ("PUT", "/plain/", '{"attributes": {"k": "a"}}', 400, "missing_key"),
        (
            "PUT",
            "/plain/",
            '{"attributes": {"k": "a", "r": "b", "z": 1}}',
            400,
            "unknown_attribute",
        ),
        ("PUT", "/plain/", '{"Attributes": {}}', 400, "invalid_request"),
        ("PUT", "/pages//by_n/1", '{"attributes": {}}', 400, "invalid_path"),
        ("GET", "/plain/a?limt=1", None, 400, "invalid_query"),
        ("GET", "/plain/a?limit=1", '{"attributes": {"k": "a"}}', 400, "invalid_request"),
        ("GET", "/plain/a/b/c", None, 400, "invalid_path"),
        ("GET", "/plain/a//b", None, 400, "invalid_path"),
        ("GET", "/plain/%zz", None, 400, "invalid_path"),
        ("GET", "/plain/%ff", None, 400, "invalid_path"),
        ("GET", "/plain/a?next=garbage", None, 400, "invalid_token"),
        ("GET", "/pages//by_n/x", None, 400, "invalid_value"),
        ("GET", "/none/", None, 404, "table_not_found"),
        ("DELETE", "/plain/a?limit=1", None, 400, "invalid_request"),
        ("PUT", "/plain", '{"table": "plain", "attributes": 1}', 400, "invalid_schema"),
        ("PUT", "/plain?x=1", "{}", 400, "invalid_query"),
        ("PUT", "/plain?x=1", "{", 400, "invalid_json"),
        ("GET", "/plain/", "[" * 200, 400, "invalid_json"),
    ],
)
def test_a_mistake_has_restbases_status_and_type(
    domain: Domain, method: str, path: str, body: str | None, status: int, type: str
) -> None:
    reply = domain.server.request(method, domain.root + path, body, JSON)

    assert (reply.status, reply.json["type"]) == (status, type)
    assert reply.json["title"]
    if status == 405:
        assert "GET" in reply.headers["allow"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/", '{"Limit": 1}'),
        ("GET", "/a", '{"limit": 1}'),
        ("GET", "/a?limt=1", None),
        ("GET", "?x=1", None),
        ("PUT", "/", None),
        ("PUT", "/", '{"attributes": 5}'),
        ("PUT", "/?x=1", "{}"),
        ("DELETE", "/", '{"limit": 1}'),
        ("DELETE", "/a?limit=1", None),
    ],
)
def test_a_missing_table_is_named_before_what_is_wrong_with_the_request(
    domain: Domain, method: str, path: str, body: str | None
) -> None:
    reply = domain.server.request(method, f"{domain.root}/none{path}", body, JSON)

    assert (reply.status, reply.json["type"]) == (404, "table_not_found")


def test_a_missing_index_comes_before_the_form_and_bad_json_before_both(domain: Domain) -> None:
    none = domain.ask("GET", "/pages/", {"index": "none", "Limit": 1})
    flag = domain.ask("GET", "/pages/", {"index": "none", "withTTL": 1})
    bad = domain.server.request("GET", f"{domain.root}/none/", "{", JSON)

    other = domain.ask("GET", "/none/", {"table": "plain"})

    assert none.json["type"] == flag.json["type"] == "index_not_found"
    assert (other.status, other.json["type"]) == (400, "table_mismatch")
    assert bad.json["type"] == "invalid_json"


@pytest.mark.parametrize(
    ("method", "body", "type"),
    [
        ("PUT", r'{"attributes": {"\ud800": 1}}', "unknown_attribute"),
        ("PUT", r'{"attributes": {"k": "a", "r": "\ud800"}}', "invalid_value"),
        ("PUT", r'{"attributes": {"k": "a", "r": "b"}, "if": {"\ud800": 1}}', "unknown_attribute"),
        ("GET", r'{"attributes": {"\ud800": "a"}}', "invalid_query"),
        ("GET", r'{"proj": ["\ud800"]}', "invalid_query"),
        ("GET", r'{"order": {"\ud800": "asc"}}', "invalid_query"),
        ("DELETE", r'{"attributes": {"k": "a", "\ud800": 1}}', "invalid_query"),
    ],
)
def test_a_lone_surrogate_is_refused_anywhere_in_a_request(
    domain: Domain, method: str, body: str, type: str
) -> None:
    reply = domain.server.request(method, f"{domain.root}/plain/", body, JSON)

    assert (reply.status, reply.json["type"]) == (400, type)


def test_other_content_types_and_bodies_too_large_are_refused(domain: Domain) -> None:
    path = domain.root + "/plain/"

    form = domain.server.request("PUT", path, "a=b", {"Content-Type": "text/plain"})
    large = domain.server.request("PUT", path, b" " * (33 * 1024 * 1024), JSON)

    assert (form.status, form.json["type"]) == (415, "unsupported_media_type")
    assert (large.status, large.json["type"]) == (413, "too_large")
