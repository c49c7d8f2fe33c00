"""Values of tables and large integers in JSON, over every protocol of a real server."""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.http_fixtures import server
from tests.server.running import RawClient
from tests.server.serving import Reply, Server
from tests.tables.test_page_tokens import OF_EVERY_TYPE

__all__ = ["server"]

LARGE = 2**53 + 1  # the first integer that JavaScript can't hold
AS_TEXT = {"Accept": "application/json; bigint=string"}
FILLER = b64encode(b"\xff" * 6 * 1024 * 1024).decode()


@pytest.fixture
def resp(server: Server, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    """A connection to a space of its own."""
    client = RawClient(server.resp_port)
    client.ask("SPACE", space_of(request))
    yield client
    client.close()


def space_of(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).replace("[", "-").replace("]", "")[:80]


def schema(**attributes: str) -> dict[str, Any]:
    return {
        "table": "rows",
        "attributes": {"key": "string", "place": "int", **attributes},
        "index": [
            {"type": "hash", "attribute": "key"},
            {"type": "range", "attribute": "place"},
        ],
    }


def call(resp: RawClient, operation: str, **arguments: Any) -> Any:
    reply = resp.ask(operation.upper(), json.dumps(arguments))
    assert isinstance(reply, bytes), reply
    return json.loads(reply)


# --- pages ---------------------------------------------------------------------------------------


@pytest.fixture
def large_rows(server: Server, resp: RawClient) -> str:
    """Five rows of 8 MiB in JSON, each with a value of every type."""
    attributes = {f"a{n}": kind for n, kind in enumerate(OF_EVERY_TYPE)}
    values = {f"a{n}": _json(OF_EVERY_TYPE[kind]) for n, kind in enumerate(OF_EVERY_TYPE)}
    call(resp, "tables.create", schema=schema(filler="blob", **attributes))
    for place in range(5):
        row = {"key": "a", "place": place, "filler": FILLER, **values}
        call(resp, "tables.put", table="rows", attributes=row)
    space = resp.ask("SPACE")
    assert isinstance(space, bytes)
    return space.decode()


def _json(value: Any) -> Any:
    if isinstance(value, list):
        return [_json(each) for each in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value if isinstance(value, str | bool | int | float | dict) else str(value)


def test_large_pages_of_every_type_are_cut_and_go_on_in_every_protocol(
    server: Server, resp: RawClient, large_rows: str
) -> None:
    path = f"/{large_rows}/sys/table/rows/a"

    one = server.get(f"{path}/4")
    first = server.get(path)
    second = server.get(f"{path}?next={first.json['next']}")
    of_key = {"table": "rows", "attributes": {"key": "a"}}
    by_call = server.call("tables.get", space=large_rows, **of_key).result
    by_command = call(resp, "tables.get", **of_key)

    assert one.status == 200
    assert one.json["items"][0]["filler"] == FILLER
    assert [first.json["count"], second.json["count"]] == [4, 1]
    assert second.json["items"] == one.json["items"]
    assert "next" not in second.json
    assert by_call["items"] == by_command["items"] == first.json["items"]
    assert by_call["next"] == by_command["next"] == first.json["next"]


# --- types ---------------------------------------------------------------------------------------


def test_rows_have_the_json_forms_of_their_types_in_every_json_call(
    server: Server, resp: RawClient, request: pytest.FixtureRequest
) -> None:
    space = space_of(request)
    given = {"big": str(2**63 - 1), "wide": "1" + "0" * 30, "small": 7, "price": "1.40"}
    given["at"] = "2026-11-16T12:00:00.000Z"
    kinds = {"big": "long", "wide": "varint", "small": "varint", "price": "decimal"}
    call(resp, "tables.create", schema=schema(at="timestamp", **kinds))
    row = {"key": "a", "place": 1, **given}
    server.call("tables.put", space=space, table="rows", attributes=row)

    by_http = server.call("tables.get", space=space, table="rows").result["items"]
    by_resp = call(resp, "tables.get", table="rows")["items"]
    by_words = json.loads(resp.ask("TABLES.GET", "rows", '{"key":"a"}'))["items"]
    again = server.call(
        "tables.put", space=space, table="rows", attributes={**row, "small": 8}, return_old=True
    ).result
    steps = [{"operation": "tables.get", "arguments": {"table": "rows"}}]
    in_batch = server.request("POST", f"/{space}/batch", json.dumps(steps)).result

    assert by_http == by_resp == by_words == [row]
    assert again["old"] == row
    assert in_batch[0]["items"] == [{**row, "small": 8}]


def test_a_call_may_ask_for_numbers_instead(server: Server, resp: RawClient) -> None:
    call(resp, "tables.create", schema=schema(big="long"))
    call(resp, "tables.put", table="rows", attributes={"key": "a", "place": 1, "big": LARGE})

    [row] = call(resp, "tables.get", table="rows", form="python")["items"]

    assert row["big"] == LARGE


# --- everything else, for those who ask ----------------------------------------------------------


def post(server: Server, space: str, operation: str, headers: Any = AS_TEXT, **given: Any) -> Reply:
    path = f"/{space}/{operation.replace('.', '/')}"
    return server.request("POST", path, json.dumps(given), headers)


def test_large_integers_are_strings_over_http_for_those_who_ask(
    server: Server, request: pytest.FixtureRequest
) -> None:
    space = space_of(request)
    data = {"large": LARGE, "negative": -LARGE, "safe": LARGE - 2, "text": "9" * 20}
    post(server, space, "jobs.put", queue="q", id="j", data=data)

    asked = post(server, space, "jobs.get", id="j").result["data"]
    not_asked = post(server, space, "jobs.get", headers={}, id="j").result["data"]
    steps = json.dumps([{"operation": "jobs.get", "arguments": {"id": "j"}}])
    [in_batch] = server.request("POST", f"/{space}/batch", steps, AS_TEXT).result

    strings = {"large": str(LARGE), "negative": str(-LARGE)}
    assert asked == in_batch["data"] == {**data, **strings}
    assert not_asked == data


def test_large_integers_in_rows_are_strings_on_the_paths_of_restbase_too(
    server: Server, resp: RawClient, request: pytest.FixtureRequest
) -> None:
    call(resp, "tables.create", schema=schema(more="json"))
    path = f"/{space_of(request)}/sys/table/rows/"
    row = {"key": "a", "place": 1, "more": {"large": LARGE}}
    server.request("PUT", path, json.dumps({"table": "rows", "attributes": row}))

    asked = server.request("GET", f"{path}a", None, AS_TEXT).json["items"]
    not_asked = server.request("GET", f"{path}a").json["items"]

    assert asked == [{**row, "more": {"large": str(LARGE)}}]
    assert not_asked == [row]


def test_an_integer_may_come_back_as_the_string_that_it_was(
    server: Server, request: pytest.FixtureRequest
) -> None:
    space = space_of(request)

    taken = post(server, space, "jobs.put", queue="q", data={}, priority="-7", id="j")
    refused = post(server, space, "jobs.put", headers={}, queue="q", data={}, priority="-7")

    assert taken.status == 200
    assert post(server, space, "jobs.get", id="j").result["priority"] == -7
    assert refused.status == 400


def test_large_integers_are_strings_over_resp_for_those_who_ask(resp: RawClient) -> None:
    call(resp, "jobs.put", queue="q", id="j", data={"large": LARGE})
    before = call(resp, "jobs.get", id="j")["data"]

    assert resp.ask("BIGINT", "STRING") == b"OK"
    asked = call(resp, "jobs.get", id="j")["data"]
    typed = json.loads(resp.ask("JOBS.GET", "j"))["data"]
    resp.ask("MULTI")
    resp.ask("JOBS.GET", '{"id": "j"}')
    [queued] = resp.ask("EXEC")
    resp.ask("BIGINT", "number")
    after = call(resp, "jobs.get", id="j")["data"]

    assert before == after == {"large": LARGE}
    assert asked == typed == json.loads(queued)["data"] == {"large": str(LARGE)}


def test_a_misspelt_form_of_integers_is_refused(resp: RawClient) -> None:
    assert "STRING or NUMBER" in str(resp.ask("BIGINT", "TEXT"))
