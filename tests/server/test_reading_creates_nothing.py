"""Reading never creates a space, over no protocol and with no grant; the first write does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.server.running import RawClient
from tests.server.serving import Server, run_command, serving

TABLE = {
    "table": "pages",
    "attributes": {"title": "string"},
    "index": [{"attribute": "title", "type": "hash"}],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("data"), "--pixel") as server:
        yield server


def spaces(server: Server) -> list[str]:
    found: list[str] = server.call("admin.spaces").result["spaces"]
    return found


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/unread/metrics/prometheus"),
        ("HEAD", "/unread/metrics/prometheus"),
        ("HEAD", "/unread/notices"),
        ("GET", "/unread/events/pixel.gif?name=x"),
        ("GET", "/unread/sys/table"),
        ("GET", "/unread/sys/table/pages/x"),
        ("DELETE", "/unread/sys/table/pages"),
        ("POST", "/unread/jobs/queues"),
        ("POST", "/unread/jobs/nothing"),
        ("POST", "/unread/admin/status"),
        ("POST", "/unread/admin/check"),
        ("POST", "/unread/tables/names"),
        ("POST", "/unread/entities/schemas"),
        ("POST", "/unread/events/schemas"),
        ("GET", "/unread/flux/query?keys[]=a"),
        ("POST", "/unread/flux/distinct?keys[]=a"),
        ("GET", "/ui/unread/"),
    ],
)
def test_a_request_that_reads_creates_no_space(server: Server, method: str, path: str) -> None:
    reply = server.request(method, path, "{}" if method == "POST" else None)

    assert reply.status in (200, 204, 404), reply.body
    assert spaces(server) == ["default"]


def test_a_batch_of_reads_creates_no_space(server: Server) -> None:
    length = {"operation": "jobs.length", "arguments": {"queue": "q"}}
    steps = [length, {"operation": "tables.names"}]
    reply = server.request("POST", "/unread/batch", json.dumps(steps))

    assert reply.result == [0, []]
    assert spaces(server) == ["default"]


def test_entering_a_space_and_reading_in_it_creates_none(server: Server) -> None:
    with RawClient(server.resp_port) as client:
        for words in (["SPACE", "unread"], ["SELECT", "3"]):
            assert client.ask(*words) == b"OK"
            assert client.ask("JOBS.QUEUES") == b"[]"
            assert client.ask("ZCARD", "ql:q:q-work") == 0
            assert client.ask("KEYS", "*") == []
            client.ask("MULTI")
            client.ask("JOBS.LENGTH", '{"queue":"q"}')
            assert client.ask("EXEC") == [b"0"]
        assert client.ask("SUBSCRIBE", "news")[0] == b"subscribe"

    assert spaces(server) == ["default"]


@pytest.mark.parametrize(
    "words",
    [
        "get a",
        "queues",
        "peek q 10",
        "stats q 0",
        "config.get",
        "tag top 0 10",
        "cancel a",
        "heartbeat a w",
        "dance",
    ],
)
def test_a_command_of_qless_that_writes_nothing_creates_no_space(
    server: Server, words: str
) -> None:
    command, *arguments = words.split()
    with RawClient(server.resp_port) as client:
        client.ask("SPACE", "unread")
        client.ask("QLESS", command, "0", *arguments)

    assert spaces(server) == ["default"]


@pytest.mark.parametrize(
    ("operation", "arguments", "status"),
    [
        ("jobs.complete", {"id": "a", "worker": "w"}, 404),
        ("entities.put", {"table": "no.Table", "entities": [{"properties": {}}]}, 404),
        ("events.send", {"event": {"name": ""}}, 400),
        ("metrics.incr", {"metric": "unknown"}, 404),
    ],
)
def test_a_write_that_is_refused_or_has_nothing_to_do_creates_no_space(
    server: Server, operation: str, arguments: dict[str, Any], status: int
) -> None:
    reply = server.call(operation, space="unread", **arguments)

    assert reply.status == status, reply.body
    assert spaces(server) == ["default"]


def test_steps_of_a_group_see_what_those_before_them_wrote_to_a_new_space(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "data") as server, RawClient(server.resp_port) as client:
        client.ask("SPACE", "new")
        for words in (["jobs.pop", "q", "w"], ["jobs.put", "q"], ["jobs.pop", "q", "w"]):
            client.send(*words)
        replies = [client.receive() for _ in range(3)]

        assert replies[0] == b"[]"
        assert b'"queue":"q"' in replies[2]
        assert "new" in spaces(server)


def test_the_first_write_creates_the_space_that_was_entered(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with RawClient(server.resp_port) as client, RawClient(server.resp_port) as other:
            for each in (client, other):
                assert each.ask("SPACE", "shop") == b"OK"
                assert each.ask("JOBS.QUEUES") == b"[]"
            client.ask("MULTI")
            client.ask("JOBS.PUT", '{"queue":"q","id":"a"}')
            assert client.ask("EXEC") == [b'"a"']

            assert other.ask("ZCARD", "ql:q:q-work") == 1
            assert other.ask("JOBS.PUT", '{"queue":"q","id":"b"}') == b'"b"'
            assert client.ask("ZCARD", "ql:q:q-work") == 2
        assert spaces(server) == ["default", "shop"]


def test_a_subscriber_of_a_space_hears_its_first_write(tmp_path: Path) -> None:
    with (
        serving(tmp_path) as server,
        RawClient(server.resp_port) as ear,
        RawClient(server.resp_port) as mouth,
    ):
        ear.ask("HELLO", "3")
        for each in (ear, mouth):
            each.ask("SPACE", "shop")
        ear.ask("SUBSCRIBE", "news")
        ear.ask("NOTICES", "jobs.ready")
        connection = server.connect()
        connection.request("GET", "/shop/notices?topic=jobs.ready")
        stream = connection.getresponse()
        assert stream.readline() == b": listening\n"

        assert mouth.ask("PUBLISH", "news", "hello") == 1
        assert ear.receive() == [b"message", b"news", b"hello"]
        mouth.ask("JOBS.PUT", '{"queue":"q","id":"a"}')
        assert ear.receive() == [b"notice", b"jobs.ready", b"q"]
        assert stream.readline() == b"\n"
        assert stream.readline() == b"event: jobs.ready\n"
        connection.close()


def test_a_user_who_may_read_creates_no_space(tmp_path: Path) -> None:
    words = ("user", "add", "--data", str(tmp_path), "eye", "--grant", "read")
    token = run_command(*words).stdout.split()[0]
    with serving(tmp_path) as server, RawClient(server.resp_port) as client:
        assert client.ask("AUTH", token) == b"OK"
        assert client.ask("SPACE", "mine") == b"OK"
        assert client.ask("JOBS.QUEUES") == b"[]"
        assert str(client.ask("JOBS.PUT", '{"queue":"q"}')).startswith("FORBIDDEN ")
        assert str(client.ask("QLESS", "queues", "*")).startswith("FORBIDDEN ")
    with holdfast.open(tmp_path) as store:
        assert store.spaces() == ["default"]


def test_tables_of_all_domains_are_read_in_a_domain_that_does_not_exist(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        put = server.request(
            "PUT", "/*/sys/table/pages", json.dumps(TABLE), {"Content-Type": "application/json"}
        )
        assert put.status == 201, put.body
        before = spaces(server)

        assert server.get("/new/sys/table/pages").status == 200
        assert server.get("/new/sys/table/").json["items"] == ["pages"]
        assert server.get("/new/sys/table/pages/x").status == 404
        assert spaces(server) == before

        row = {"table": "pages", "attributes": {"title": "x"}}
        stored = server.request(
            "PUT",
            "/new/sys/table/pages/x",
            json.dumps(row),
            {"Content-Type": "application/json"},
        )
        assert stored.status == 201, stored.body
        assert server.get("/new/sys/table/pages/x").status == 200
        assert "new" in spaces(server)


def test_a_space_that_is_opened_without_creating_it_reads_as_empty(store: holdfast.Store) -> None:
    space = store.space("lazy", create=False)

    assert space.jobs.queues() == []
    with space.view() as view:
        assert view.tables.names() == []
    assert (space.exists(), store.spaces()) == (False, ["default"])


@pytest.mark.every_engine
def test_the_first_write_creates_it(store: holdfast.Store) -> None:
    first, second = (store.space("lazy", create=False) for _ in range(2))

    first.jobs.put("q", id="a")

    assert (store.spaces(), first.exists()) == (["default", "lazy"], True)
    assert [queue.name for queue in second.jobs.queues()] == ["q"]
    store.drop_space("lazy")
    with pytest.raises(holdfast.errors.UnknownSpace):
        first.jobs.queues()
