"""Whatever comes to the HTTP port: a healthy client is answered, and memory stays bounded."""

import http.client
import json
import random
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from tests.server.http_fixtures import server
from tests.server.serving import Server, serving

__all__ = ["server"]

SEED = 20_261_115
WHOLE = b"POST /default/jobs/put HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n" + (
    b'{"queue":"q","data":1}'
)
FRAGMENTS = [
    b"GET / HTTP/1.1\r\n", b"Host: x\r\n", b"\r\n", b"Content-Length: 5\r\n", b"QUERY", b"\0",
    b"Transfer-Encoding: chunked\r\n", b"5\r\nabcde\r\n", b"0\r\n\r\n", b"//", b"%ff", b"{", b"[",
    b"/default/sys/table/t/", b"Content-Length: -1\r\n", b"Expect: 100-continue\r\n", b"HTTP/9.9",
    b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", WHOLE,
]  # fmt: skip


def say(server: Server, data: bytes, *, reset: bool) -> None:
    """Sends bytes, and reads a little of what comes back or goes away at once."""
    place = (server.host, server.http_port)
    with socket.create_connection(place, timeout=5) as connection, suppress(OSError):
        connection.sendall(data)
        if not reset:
            connection.shutdown(socket.SHUT_WR)
            connection.recv(4_096)


def test_random_bytes_and_cut_requests_disturb_no_one(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with serving(tmp_path) as own:
        say(own, WHOLE, reset=False)
        before = own.memory_bytes()
        for number in range(600):
            match number % 3:
                case 0:
                    data = chance.randbytes(chance.randrange(1, 2_000))
                case 1:
                    data = b"".join(chance.choices(FRAGMENTS, k=chance.randrange(1, 12)))
                case _:
                    data = WHOLE[: chance.randrange(len(WHOLE))]
            say(own, data, reset=chance.random() < 0.5)
            if number % 50 == 0:
                assert own.get("/livez").body == b"ok\n"

        assert own.get("/readyz").status == 200
        assert own.memory_bytes() - before < 30_000_000
        assert own.stop() == 0


@pytest.mark.parametrize("layer", ["tables", "entities", "events", "jobs", "metrics", "other"])
def test_no_call_that_the_description_allows_ends_in_a_500(server: Server, layer: str) -> None:
    document = server.get("/openapi.json").json
    document["paths"] = {
        path: described
        for path, described in document["paths"].items()
        if path.startswith(f"/{{space}}/{layer}/") or (layer == "other" and path.count("/") < 3)
    }
    schema = schemathesis.openapi.from_dict(document)
    connection = server.connect()
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]  # a mistake would be raised
        if operation.path.endswith(("/notices", "_wait")):
            continue  # these answer when something happens
        cases = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        if operation.method == "post":
            cases |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
        try_some(connection, cases)
    connection.close()
    assert server.get("/readyz").status == 200


def try_some(connection: http.client.HTTPConnection, cases: Any) -> None:
    """Some random calls of one operation, on one connection."""

    @settings(
        max_examples=4,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def call(case: Any) -> None:
        body = json.dumps(case.body) if isinstance(case.body, dict | list) else None
        path = case.formatted_path
        connection.request(case.method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        said = response.read()
        assert response.status != 500, (case.method, path, body, said)

    call()
