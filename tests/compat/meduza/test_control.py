"""Meduza's control side over HTTP: every path at the root, and again below /entities."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import bson
import pytest
import yaml

from tests.server.http_fixtures import server
from tests.server.serving import Server, serving
from tests.servers import await_true

__all__ = ["server"]

SCHEMA = """\
schema: {schema}
tables:
  User:
    primary: {{columns: [name]}}
    columns: {{name: {{type: Text}}, age: {{type: Int}}}}
    indexes: [{{type: simple, columns: [age]}}]
"""
ROOTS = pytest.mark.parametrize("root", ["", "/entities"])


@pytest.fixture
def schema(server: Server, request: pytest.FixtureRequest) -> str:
    """A schema of its own, deployed."""
    name = "s" + str(abs(hash(str(request.node.name))) % 10**9)
    reply = server.request("POST", "/deploy", SCHEMA.format(schema=name))
    assert (reply.status, reply.body) == (200, b"OK")
    return name


@pytest.mark.parametrize(
    "text",
    [
        "schema: s\ntables: {T: {columns: {c: {type: Timestamp, default: 2024-99-99}}}}",
        "schema: s\ntables: {T: {columns: {c: {type: Bool, default: !!bool maybe}}}}",
        "schema: s\ntables: {T: {columns: {c: {type: Text, options: {max_len: "
        + "9" * 5000
        + "}}}}}",
        "a: &a {<<: *a}",
        "[" * 100_000,
    ],
)
def test_a_hostile_schema_is_a_mistake_of_its_sender(server: Server, text: str) -> None:
    assert server.request("POST", "/deploy", text).status == 400
    assert server.call("entities.deploy", schema=text).status == 400
    assert server.call("events.deploy", name="hostile", schema=text).status == 400


def put(server: Server, schema: str, *names: str) -> None:
    entities = [{"properties": {"name": name, "age": len(name)}} for name in names]
    assert server.call("entities.put", table=f"{schema}.User", entities=entities).status == 200


def at(path: str, schema: str, **more: str) -> str:
    return f"{path}?schema={schema}&table=User" + "".join(f"&{k}={v}" for k, v in more.items())


@ROOTS
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_schema_is_deployed_whatever_its_content_type(
    server: Server, root: str, method: str
) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    reply = server.request(method, f"{root}/deploy", SCHEMA.format(schema="typed"), headers)

    assert (reply.status, reply.body) == (200, b"OK")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", b"No data URI or raw data given\n"),
        (b"tables: {}", b"Error deploying schema: "),
        (b"\xff", b"Error deploying schema: "),
        (b"x" * 2_000_000, b"the body has more than"),
    ],
)
def test_what_is_no_schema_is_refused_in_one_line(server: Server, body: bytes, said: bytes) -> None:
    reply = server.request("POST", "/deploy", body)

    assert reply.status in (400, 413)
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert said in reply.body
    assert reply.body.endswith(b"\n")
    assert reply.body.count(b"\n") == 1


def test_an_index_of_a_small_table_is_complete_when_it_is_deployed(
    server: Server, schema: str
) -> None:
    put(server, schema, *(f"user-{number}" for number in range(100)))
    columns = "{name: {type: Text}, age: {type: Int}}"
    indexes = "[{type: simple, columns: [name]}]"
    table = f"{{primary: {{columns: [name]}}, columns: {columns}, indexes: {indexes}}}"

    server.request("POST", "/deploy", f"schema: {schema}\ntables: {{User: {table}}}")
    stats = server.get("/stats", accept="application/json").json["tables"][f"{schema}.User"]

    assert stats["indexes"][f"{schema}.User__name_simple"]["state"] == "ready"


def test_no_file_of_the_servers_machine_is_read_on_request(server: Server) -> None:
    reply = server.request("POST", "/deploy?uri=file:///etc/passwd")

    assert reply.status == 400
    assert reply.body.startswith(b"Error deploying schema: ")


def test_files_of_the_servers_machine_are_deployed_from_the_folder_that_is_open_for_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "a b.schema.yaml").write_text("schema: uri\ntables: {T: {}}")
    (tmp_path / "secret.yaml").write_text("schema: secret\ntables: {T: {}}")
    (tmp_path / "open" / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (tmp_path / "open" / "loop").symlink_to(tmp_path / "open" / "loop")
    with serving(tmp_path / "data", "--schemas", str(tmp_path / "open")) as server:
        there = server.request("POST", f"/deploy?uri=file://{tmp_path}/open/a%2520b.schema.yaml")
        elsewhere = [
            server.request("POST", f"/deploy?uri={uri}")
            for uri in (
                f"file://{tmp_path}/secret.yaml",
                f"file://{tmp_path}/open/../secret.yaml",
                f"file://{tmp_path}/open/link.yaml",
                f"file://{tmp_path}/open",
                "http://localhost/open/a",
                f"file://{tmp_path}/open/%00",
                f"file://{tmp_path}/open/{'x' * 300}",
                f"file://{tmp_path}/open/loop",
                "file://[",
            )
        ]

        assert (there.status, there.body) == (200, b"OK")
        assert {reply.status for reply in elsewhere} == {400}
        assert server.get("/schemadump?schema=uri").status == 200
        assert server.get("/schemadump?schema=secret").status == 404


@ROOTS
def test_the_server_is_healthy_also_without_a_schema(server: Server, root: str) -> None:
    assert server.get(f"{root}/status").body == b"OK\r\n"


@ROOTS
def test_a_schema_is_dumped_with_its_defaults(server: Server, schema: str, root: str) -> None:
    reply = server.get(f"{root}/schemadump?schema={schema}")
    as_json = server.get(f"{root}/schemadump?schema={schema}", accept="application/json")

    assert reply.headers["content-type"] == "text/yaml"
    assert yaml.safe_load(reply.body)["schema"] == schema
    assert as_json.json == yaml.safe_load(reply.body)
    unknown = server.get(f"{root}/schemadump?schema=X")
    assert (unknown.status, unknown.body) == (404, b"Could not find schema X\n")
    nameless = server.get(f"{root}/schemadump")
    assert (nameless.status, nameless.body) == (404, b"Could not find schema \n")


@ROOTS
def test_the_configuration_is_shown_without_secrets(server: Server, root: str) -> None:
    shown = yaml.safe_load(server.get(f"{root}/confdump").body)

    assert shown["pixel"] is True
    assert shown["insecure"] is False
    assert server.get("/confdump", accept="application/json").json == shown


@ROOTS
def test_stats_are_text_in_yaml_and_numbers_in_json(server: Server, schema: str, root: str) -> None:
    put(server, schema, *(f"user-{number}" for number in range(1_234)))

    page = server.get(f"{root}/stats").body
    told = yaml.safe_load(page)["tables"][f"{schema}.User"]
    counted = server.get(f"{root}/stats", accept="application/json").json["tables"]

    assert told["num_rows"] == "1,234"
    assert b'num_rows: "1,234"' in page
    assert told["data_size"].endswith(" kB")
    assert counted[f"{schema}.User"]["num_rows"] == 1_234


@ROOTS
def test_a_dump_is_a_sequence_of_bson_documents_in_the_order_of_ids(
    server: Server, schema: str, root: str
) -> None:
    put(server, schema, "cid", "ann", "bob")

    reply = server.get(at(f"{root}/dump", schema))
    documents = list(bson.decode_all(reply.body))

    assert reply.headers["content-type"] == "application/octet-stream"
    assert [each["id"] for each in documents] == ["ann|", "bob|", "cid|"]
    assert [each["ttl"] for each in documents] == [0, 0, 0]


@pytest.mark.parametrize("format", ["bson", "jsonl"])
def test_dump_then_load_gives_the_same_entities_back(
    server: Server, schema: str, format: str
) -> None:
    put(server, schema, *(f"user-{number}" for number in range(1_200)))
    dump = server.get(at("/dump", schema, format=format)).body
    dropped = server.request("POST", at("/drop", schema))

    def pieces() -> Iterator[bytes]:
        for begin in range(0, len(dump), 10_007):
            yield dump[begin : begin + 10_007]

    loaded = server.request("POST", at("/load", schema), pieces())

    assert dropped.body == b"Deleted 1200 records"
    assert (loaded.status, loaded.body) == (200, b"OK\n")
    assert server.get(at("/dump", schema, format=format)).body == dump
    filters = [{"property": "age", "op": "=", "values": [6]}]
    found = server.call("entities.count", table=f"{schema}.User", filters=filters)
    assert found.result == 10


def test_a_damaged_dump_is_refused_where_it_is_damaged(server: Server, schema: str) -> None:
    whole = [bson.encode({"id": f"{name}|", "properties": {"name": name}}) for name in ("a", "b")]

    reply = server.request("POST", at("/load", schema), b"".join(whole) + b"\x05\x00\x00")

    assert reply.status == 400
    assert reply.body.startswith(b"Error decoding entity: ")
    assert b"2 entities were loaded" in reply.body


def test_a_long_load_and_dump_take_constant_memory(server: Server, schema: str) -> None:
    def lines(count: int) -> Iterator[bytes]:
        for number in range(count):
            properties = {"name": f"user-{number}", "text": "x" * 10_000}
            entity = {"id": f"user-{number}|", "properties": properties, "ttl": 0}
            yield json.dumps(entity).encode() + b"\n"

    server.request("POST", at("/load", schema), lines(500))
    before = server.memory_bytes()
    assert server.request("POST", at("/load", schema), lines(24_000)).body == b"OK\n"
    loaded = server.memory_bytes()
    assert len(server.get(at("/dump", schema, format="jsonl")).body) > 240_000_000

    # A step of 5 MB is held several times, and the heap of the loading thread keeps the most that
    # it had: 60 MB, and 115 MB on a busy machine. 240 MB of lines that were kept would show.
    assert loaded - before < 180_000_000
    # All of it is free, and the server returns it to the system (server/memory.py).
    await_true(lambda: server.memory_bytes() - before < 30_000_000, seconds=60, what="returned")


@ROOTS
def test_a_table_is_dropped_but_not_by_get(server: Server, schema: str, root: str) -> None:
    put(server, schema, "ann", "bob")

    refused = server.get(at(f"{root}/drop", schema))
    assert (refused.status, refused.headers["allow"]) == (405, "POST, DELETE")
    assert refused.headers["content-type"] == "text/plain; charset=utf-8"
    assert refused.body == b"/drop takes POST, DELETE, not GET\n"
    assert server.request("DELETE", at(f"{root}/drop", schema)).body == b"Deleted 2 records"


@ROOTS
def test_a_table_is_repaired(server: Server, schema: str, root: str) -> None:
    put(server, schema, "ann")

    reply = server.request("POST", at(f"{root}/repair", schema))

    assert reply.headers["content-type"] == "text/yaml"
    assert isinstance(yaml.safe_load(reply.body), dict)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/dump"), ("POST", "/load"), ("POST", "/drop"), ("POST", "/repair")],
)
def test_an_unknown_table_is_404(server: Server, method: str, path: str) -> None:
    reply = server.request(
        method, f"{path}?schema=no&table=Such", b"" if method == "POST" else None
    )

    assert (reply.status, reply.body) == (404, b"Invalid Table\n")


@pytest.mark.parametrize("how", ["entities.deploy", "/deploy"])
def test_indexes_are_built_in_the_background_at_full_speed(server: Server, how: str) -> None:
    schema = "fast" + how.strip("/")[:3]
    text = f"schema: {schema}\ntables: {{T: {{columns: {{a: {{type: Int}}}}%s}}}}"
    indexed = text % ", indexes: [{type: simple, columns: [a]}]"
    assert server.call("entities.deploy", schemas=[text % ""]).status == 200
    for begin in range(0, 20_000, 5_000):
        entities = [{"properties": {"a": n}} for n in range(begin, begin + 5_000)]
        assert server.call("entities.put", table=f"{schema}.T", entities=entities).status == 200

    if how == "/deploy":
        assert server.request("POST", how, indexed).status == 200
    else:
        assert server.call(how, schemas=[indexed], wait=False).status == 200

    deadline = time.monotonic() + 30  # it would take 40 seconds at a step a second
    while server.call("admin.status").result["building"]:
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)
