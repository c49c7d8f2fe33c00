"""A user who is removed, or loses a grant, while a call of theirs goes on can't complete it."""

import json
import socket
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

import pytest

from tests.server.running import DEADLINE, RawClient
from tests.server.serving import Reply, Server, run_command, serving
from tests.servers import await_true

EVENTS = "/default/events"
ROWS = "/default/sys/table/rows/?format=ndjson"
ENTITIES = "/load?schema=s&table=T"
_SCHEMA = "schema: s\ntables: {T: {primary: {type: random}, columns: {c: {type: Int}}}}"
_TABLE = {
    "table": "rows",
    "attributes": {"c": "int"},
    "index": [{"attribute": "c", "type": "hash"}],
}


class Guarded:
    """A server with an administrator, and with ann, who may write."""

    def __init__(self, server: Server, admin: str, ann: str) -> None:
        self.server, self.admin, self.ann = server, admin, ann

    def ask(self, path: str, body: object, token: str = "") -> Reply:
        headers = {"Authorization": f"Bearer {token or self.admin}"}
        return self.server.request("POST", path, json.dumps(body), headers)

    def resp(self) -> RawClient:
        client = RawClient(self.server.resp_port)
        assert client.ask("AUTH", self.ann) == b"OK"
        return client

    def remove_ann(self) -> None:
        assert self.ask("/default/admin/remove_user", {"name": "ann"}).status == 200
        self._until("/default/jobs/queues", {}, 401)

    def restrict_ann(self) -> None:
        changed = {"name": "ann", "grants": ["read"]}
        assert self.ask("/default/admin/grant_user", changed).status == 200
        self._until("/default/jobs/put", {"queue": "other"}, 403)

    def _until(self, path: str, body: object, status: int) -> None:
        """Waits until the server has heard of a change: then ann's call has this status."""
        await_true(
            lambda: self.ask(path, body, self.ann).status == status,
            seconds=DEADLINE,
            what=f"status {status}",
        )


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    tokens = []
    for name, grant in (("root", "admin"), ("ann", "write")):
        words = ("user", "add", name, "--grant", grant, "--data", str(tmp_path / "data"), "--json")
        added = run_command(*words)
        assert added.exit_code == 0, added.output
        tokens.append(json.loads(added.stdout)["token"])
    with serving(tmp_path / "data") as server:
        yield Guarded(server, *tokens)


def test_a_batch_that_was_collected_before_a_grant_was_taken_away_is_refused(
    guarded: Guarded,
) -> None:
    with guarded.resp() as ann:
        assert ann.ask("MULTI") == b"OK"
        assert ann.ask("JOBS.PUT", '{"queue":"q","id":"late"}') == b"QUEUED"
        guarded.restrict_ann()

        assert str(ann.ask("EXEC")).startswith("EXECABORT ")

    assert guarded.ask("/default/jobs/get", {"id": "late"}).result is None


@pytest.mark.parametrize(
    "words",
    [
        ("JOBS.POP_WAIT", '{"queues":["q"],"worker":"w","timeout":60}'),
        ("QLESS", "bpop", "*", "q", "w", "1", "60"),
    ],
    ids=["JOBS.POP_WAIT", "bpop"],
)
def test_who_was_removed_while_waiting_for_a_job_gets_none(
    guarded: Guarded, words: tuple[str, ...]
) -> None:
    with guarded.resp() as ann:
        ann.send(*words)
        await_true(lambda: _waits(guarded) == 1, seconds=DEADLINE, what="ann waits")
        guarded.remove_ann()
        guarded.ask("/default/jobs/put", {"queue": "q", "id": "secret"})

        assert "Authentication required" in str(ann.receive())

    assert guarded.ask("/default/jobs/get", {"id": "secret"}).result["state"] == "waiting"


@pytest.mark.parametrize("call", ["pop_wait", "result_wait"])
def test_who_was_removed_while_waiting_over_http_learns_nothing(
    guarded: Guarded, call: str
) -> None:
    guarded.ask("/default/jobs/put", {"queue": "other", "id": "asked"})
    arguments = {
        "pop_wait": {"queues": ["q"], "worker": "w", "timeout": 60},
        "result_wait": {"id": "asked", "timeout": 60},
    }[call]
    with _request(guarded, f"/default/jobs/{call}", json.dumps(arguments).encode()) as waiting:
        await_true(lambda: _waits(guarded) == 1, seconds=DEADLINE, what="ann waits")
        guarded.remove_ann()
        guarded.ask("/default/jobs/put", {"queue": "q"})
        guarded.ask("/default/jobs/pop", {"queue": "other", "worker": "w"})
        guarded.ask("/default/jobs/complete", {"id": "asked", "worker": "w", "result": "secret"})

        status, body = _answer(waiting)

    assert status == 401
    assert b"the user was removed" in body


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (EVENTS, {"name": "e"}),
        (ROWS, {"c": 1}),
        (ENTITIES, {"id": "a|", "properties": {"c": 1}, "ttl": 0}),
    ],
)
def test_a_stream_of_a_user_who_was_removed_ends(guarded: Guarded, path: str, line: object) -> None:
    guarded.ask("/default/tables/create", {"schema": _TABLE})
    guarded.ask("/default/entities/deploy", {"schemas": [_SCHEMA]})
    lines = (json.dumps(line).encode() + b"\n") * 1_000
    chunk = b"%x\r\n%b\r\n" % (len(lines), lines)
    with _request(guarded, path, None) as stream:
        stream.sendall(chunk)
        guarded.remove_ann()
        stream.sendall(chunk + b"0\r\n\r\n")

        status, body = _answer(stream)

    assert status == 401
    assert b"the user was removed" in body


def _waits(guarded: Guarded) -> int:
    headers = {"Authorization": f"Bearer {guarded.admin}"}
    text = guarded.server.request("GET", "/metrics", headers=headers).body
    return int(text.split(b"\nholdfast_waits ")[1].split(b"\n")[0])


def _request(guarded: Guarded, path: str, body: bytes | None) -> socket.socket:
    """Sends a request of ann; without a body, the head of one that comes in chunks."""
    form = b"Transfer-Encoding: chunked" if body is None else b"Content-Length: %d" % len(body)
    head = b"POST %b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n" % (
        path.encode(),
        guarded.ann.encode(),
    )
    kind = b"" if body else b"Content-Type: application/x-ndjson\r\n"
    opened = socket.create_connection(
        (guarded.server.host, guarded.server.http_port), timeout=DEADLINE
    )
    opened.sendall(head + kind + form + b"\r\n\r\n" + (body or b""))
    return opened


def _answer(opened: socket.socket) -> tuple[int, bytes]:
    response = HTTPResponse(opened)
    response.begin()
    return response.status, response.read()
