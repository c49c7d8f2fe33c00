"""Every operation over HTTP: `POST /{space}/{layer}/{operation}`, and several as one batch."""

import gzip
import json

import msgspec
import pytest

from tests.server.http_fixtures import server
from tests.server.serving import Server, msgpack_headers, unpacked

__all__ = ["server"]


def test_an_operation_takes_its_arguments_by_name_and_answers_its_result(server: Server) -> None:
    id = server.call("jobs.put", queue="operations", data={"to": "ann"}).result

    [job] = server.call("jobs.pop", queue="operations", worker="me").result

    assert (job["id"], job["worker"]) == (id, "me")


def test_a_job_is_shown_whole_with_lists_where_there_is_nothing(server: Server) -> None:
    server.call("jobs.put", queue="whole", id="whole")
    server.call("jobs.recur", queue="whole", id="whole", interval=60, offset=60)

    job = server.call("jobs.get", id="whole").result
    assert (job["tags"], job["dependents"], job["dependencies"]) == ([], [], [])
    assert (job["worker"], job["priority"], job["expires"], job["failure"]) == ("", 0, 0, None)
    assert (job["retries"], job["remaining"], job["tracked"]) == (5, 5, False)
    recurring = server.call("jobs.recur_get", id="whole").result
    assert (recurring["count"], recurring["tags"], recurring["retries"]) == (0, [], 0)
    assert server.call("jobs.dead_letters").result == {"jobs": [], "cursor": None}


def test_an_operation_speaks_msgpack_by_content_type(server: Server) -> None:
    body = msgspec.msgpack.encode({"queue": "packed", "data": {"n": 1}})

    reply = server.request("POST", "/default/jobs/put", body, msgpack_headers())

    assert reply.headers["content-type"] == "application/msgpack"
    id = unpacked(reply)["result"]
    assert server.call("jobs.get", id=id).result["queue"] == "packed"


def test_an_error_in_msgpack_comes_in_msgpack(server: Server) -> None:
    reply = server.request("POST", "/default/jobs/put", b"\x80", msgpack_headers())

    assert reply.status == 400
    assert unpacked(reply)["error"]["code"] == "bad_input"


def test_no_body_is_an_object_without_arguments(server: Server) -> None:
    assert isinstance(server.request("POST", "/default/jobs/queues").result, list)


def test_spaces_are_apart(server: Server) -> None:
    server.call("jobs.put", space="one", queue="apart", data={})

    assert server.call("jobs.length", space="one", queue="apart").result == 1
    assert server.call("jobs.length", space="two", queue="apart").result == 0


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/default/jobs/put", b"{", 400, "bad_input"),
        ("/default/jobs/put", b"[]", 400, "bad_input"),
        ("/default/jobs/put", b"{}", 400, "bad_input"),
        ("/default/jobs/put", b'{"queue": "q", "data": {}, "dely": 1}', 400, "bad_input"),
        ("/default/jobs/put", b'{"queue": 5, "data": {}}', 400, "bad_input"),
        ("/default/jobs/put", b'{"queue": "\xff", "data": {}}', 400, "bad_input"),
        ("/default/jobs/put", b'{"queue": "q", "data": ' + b"[" * 100_000, 400, "bad_input"),
        ("/default/entities/get", b'{"table": "no.Such", "ids": ["x"]}', 404, "invalid_table"),
        ("/default/jobs/complete", b'{"id": "x", "worker": "w", "queue": "q"}', 404, "unknown_job"),
        ("/default/jobs/putt", b"{}", 404, "unknown_operation"),
        ("/default/queues/put", b"{}", 404, "unknown_operation"),
        (f"/{'s' * 256}/jobs/queues", b"{}", 400, "bad_input"),
        ("/%ff/jobs/queues", b"{}", 400, "bad_input"),
    ],
)
def test_a_mistake_is_named_and_is_never_a_500(
    server: Server, path: str, body: bytes, status: int, code: str
) -> None:
    reply = server.request("POST", path, body)

    assert (reply.status, reply.error["code"]) == (status, code)
    assert reply.error["message"]


def test_a_misspelt_operation_is_answered_with_the_nearest_one(server: Server) -> None:
    assert server.call("jobs.putt").error["hint"] == "Did you mean jobs.put?"


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (b'{"queu": "q"}', "Did you mean `queue`?"),
        (b'{"cake": 1}', "jobs.length takes queue."),
        (b"{}", "jobs.length takes queue."),
        (b"[]", "jobs.length takes queue."),
        (b'{"queue": 5}', ""),
    ],
)
def test_wrong_arguments_are_answered_with_those_that_are_taken(
    server: Server, body: bytes, hint: str
) -> None:
    steps = b'[{"operation": "jobs.length", "arguments": %b}]' % body
    for path, sent in (("/default/jobs/length", body), ("/default/batch", steps)):
        if (path, body) != ("/default/batch", b"[]"):
            assert server.request("POST", path, sent).error["hint"] == hint


def test_an_unknown_argument_with_a_long_name_is_refused_with_a_short_text(server: Server) -> None:
    for arguments in ({"x" * 100_000: 1}, {"queue": "q", "x" * 100_000: 1}):
        refused = server.call("jobs.length", **arguments).error

        assert refused["message"].startswith("jobs.length has no argument `xxx")
        assert len(refused["message"]) < 1_000


def test_one_value_of_a_list_may_be_sent_under_its_name_in_the_singular(server: Server) -> None:
    server.call("jobs.put", queue="single", id="one")

    body = msgspec.msgpack.encode({"queue": "single"})
    paused = server.request(
        "POST", "/default/jobs/pause", body, {"Content-Type": "application/msgpack"}
    )
    assert (paused.status, server.call("jobs.pop", queue="single", worker="w").result) == (200, [])

    steps = b'[{"operation": "jobs.unpause", "arguments": {"queue": "single"}}]'
    assert server.request("POST", "/default/batch", steps).status == 200
    [job] = server.call("jobs.pop", queue="single", worker="w").result
    assert job["id"] == "one"


def test_a_list_and_its_singular_can_not_both_be_sent(server: Server) -> None:
    refused = server.call("jobs.pause", queue="one", queues=["two"]).error

    assert refused["message"] == "jobs.pause got both `queue` and `queues`"
    assert refused["hint"] == "Send all values in the list `queues`."
    assert server.call("jobs.depends_on", id="a", job="b").error["hint"].startswith("jobs.depends_")


@pytest.mark.parametrize("name", ["application/x-msgpack", "application/vnd.msgpack"])
def test_msgpack_has_more_names_than_one(server: Server, name: str) -> None:
    body = msgspec.msgpack.encode({"queue": "none"})
    reply = server.request("POST", "/default/jobs/length", body, {"Content-Type": name})

    assert msgspec.msgpack.decode(reply.body) == {"result": 0}
    assert reply.headers["content-type"] == "application/msgpack"


# --- batches -------------------------------------------------------------------------------------


def test_a_batch_is_one_transaction(server: Server) -> None:
    steps = [
        {"operation": "jobs.put", "arguments": {"queue": "batched", "data": {"n": 1}}},
        {"operation": "metrics.throttle", "arguments": THROTTLE},
        {"operation": "jobs.length", "arguments": {"queue": "batched"}},
    ]

    [_, throttled, length] = server.request("POST", "/default/batch", json.dumps(steps)).result

    assert throttled[0] in (0, False) or throttled["allowed"]
    assert length == 1


THROTTLE = {"key": "batch", "max_burst": 15, "count": 30, "period": 60}


def test_a_batch_with_a_failure_changes_nothing_and_says_where_it_failed(server: Server) -> None:
    steps = [
        {"operation": "jobs.put", "arguments": {"queue": "undone", "data": {}}},
        {"operation": "jobs.complete", "arguments": {"id": "x", "worker": "w", "queue": "q"}},
    ]

    reply = server.request("POST", "/default/batch", json.dumps(steps))

    assert (reply.status, reply.error["code"]) == (404, "unknown_job")
    assert "at position 1 of the batch" in reply.error["message"]
    assert server.call("jobs.length", queue="undone").result == 0


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ({"operation": "jobs.pop_wait", "arguments": {}}, "bad_input"),
        ({"operation": "jobs.nothing", "arguments": {}}, "unknown_operation"),
        ({"operation": "jobs.put", "arguments": {"queue": 1}}, "bad_input"),
    ],
)
def test_a_batch_is_refused_whole_when_a_step_can_not_be_run(
    server: Server, step: object, code: str
) -> None:
    put = {"operation": "jobs.put", "arguments": {"queue": "refused", "data": {}}}

    reply = server.request("POST", "/default/batch", json.dumps([put, step]))

    assert reply.error["code"] == code
    assert "at position 1 of the batch" in reply.error["message"]
    assert server.call("jobs.length", queue="refused").result == 0


def test_a_batch_speaks_msgpack_too(server: Server) -> None:
    steps = [{"operation": "jobs.length", "arguments": {"queue": "none"}}]

    reply = server.request(
        "POST", "/default/batch", msgspec.msgpack.encode(steps), msgpack_headers()
    )

    assert unpacked(reply) == {"result": [0]}


# --- values of entities --------------------------------------------------------------------------

SCHEMA = (
    "schema: web\ntables: {Note: {primary: {columns: [title]}, columns: {title: {type: Text}}}}"
)


def test_entities_keep_bytes_moments_and_sets_through_json(server: Server) -> None:
    assert server.request("POST", "/deploy", SCHEMA).body == b"OK"
    properties = {
        "title": "one",
        "when": {"$date": {"$numberLong": "1577934245678"}},
        "raw": {"$binary": {"base64": "AP8=", "subType": "00"}},
        "tags": {"$set": ["a", "b"]},
        "big": {"$uint": "18446744073709551615"},
    }

    put = server.call("entities.put_raw", table="web.Note", entities=[{"properties": properties}])
    [id] = put.result
    [found] = server.call("entities.get", table="web.Note", ids=[id]).result

    assert found["properties"] == properties


def test_an_entity_may_be_the_object_of_its_properties(server: Server) -> None:
    server.request("POST", "/deploy", SCHEMA)

    entities = [{"title": "plain", "n": 1}, {"title": "second", "properties": "a text"}]
    ids = server.call("entities.put", table="web.Note", entities=entities).result
    found = server.call("entities.get", table="web.Note", ids=ids).result

    assert [each["properties"]["title"] for each in found] == ["plain", "second"]
    assert found[1]["properties"]["properties"] == "a text"


def test_entities_keep_their_values_in_a_batch(server: Server) -> None:
    server.request("POST", "/deploy", SCHEMA)
    moment = {"$date": {"$numberLong": "0"}}
    entity = {"id": "batched", "properties": {"title": "batched", "when": moment}}
    steps = [
        {"operation": "entities.put", "arguments": {"table": "web.Note", "entities": [entity]}},
        {"operation": "entities.get", "arguments": {"table": "web.Note", "ids": ["batched|"]}},
    ]

    reply = server.request("POST", "/default/batch", json.dumps(steps))

    [_, [found]] = reply.result
    assert found["properties"]["when"] == moment


# --- waiting -------------------------------------------------------------------------------------


EXACT = "0.10000000000000000000000000000000001"


def test_exact_numbers_of_tables_never_pass_through_a_double(server: Server) -> None:
    index = [{"type": "hash", "attribute": "k"}]
    attributes = {"k": "string", "d": "decimal", "j": "json"}
    schema = {"table": "exact", "attributes": attributes, "index": index}
    put = '{"table": "exact", "attributes": {"k": "%s", "d": %s, "j": 1.5}}'
    server.call("tables.create", schema=schema)

    server.request("POST", "/default/tables/put", put % ("one", EXACT))
    step = f'[{{"operation": "tables.put", "arguments": {put % ("batch", "1.40")}}}]'
    server.request("POST", "/default/batch", step)

    items = server.call("tables.get", table="exact").result["items"]
    assert {item["k"]: (item["d"], item["j"]) for item in items} == {
        "one": (EXACT, 1.5),
        "batch": ("1.40", 1.5),
    }


def test_a_wait_ends_as_soon_as_there_is_a_job(server: Server) -> None:
    connection = server.connect()
    body = json.dumps({"queues": ["awaited"], "worker": "w", "timeout": 20})
    connection.request("POST", "/default/jobs/pop_wait", body)

    id = server.call("jobs.put", queue="awaited", data={}).result

    [job] = json.loads(connection.getresponse().read())["result"]
    connection.close()
    assert job["id"] == id


def test_a_large_answer_is_compressed_for_those_who_can_read_it(server: Server) -> None:
    plain = server.get("/openapi.json")
    squeezed = server.get("/openapi.json", accept_encoding="br, gzip")

    assert "content-encoding" not in plain.headers
    assert squeezed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(squeezed.body) == plain.body
