"""The paths that tell how the server is, and what every exchange has in common."""

import json
import socket
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from holdfast.limits import MAX_HEAD_BYTES, MAX_REQUEST_BYTES
from holdfast.operations import OPERATIONS
from tests.server.http_fixtures import server
from tests.server.serving import Server

__all__ = ["server"]


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_a_healthy_server_says_so(server: Server, path: str) -> None:
    assert server.get(path).body == b"ok\n"


def test_the_start_page_tells_a_program_what_is_there(server: Server) -> None:
    told = server.get("/").json

    assert told["operations"] == f"{server.url}/{{space}}/{{layer}}/{{operation}}"
    assert told["openapi"] == f"{server.url}/openapi.json"


def test_the_description_is_valid_and_names_every_operation(server: Server) -> None:
    document = server.get("/openapi.json").json

    OpenAPIV31SpecValidator(document).validate()
    for operation in OPERATIONS.values():
        assert "post" in document["paths"][f"/{{space}}/{operation.layer}/{operation.name}"]
    for path in ("/{space}/batch", "/{space}/events", "/{space}/notices", "/livez", "/metrics"):
        assert path in document["paths"]


# --- figures -------------------------------------------------------------------------------------

OPEN = "application/openmetrics-text"
SPECS = {"hits": {"sequences": [{"timeStep": 10, "expiry": 600}], "lifetime": True, "expose": True}}


def test_metrics_shows_the_servers_own_figures_and_what_is_exposed(server: Server) -> None:
    server.call("metrics.define", specs=SPECS)
    server.call("metrics.incr", metric="hits", entity=None)

    reply = server.get("/metrics")

    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b"# TYPE holdfast_queued_writes gauge" in reply.body
    assert b"WRStats_hits_total" in reply.body


@pytest.mark.every_engine
@pytest.mark.parametrize(("accept", "read"), [("text/plain", read_text), (OPEN, read_open)])
def test_every_figure_has_a_type_and_says_what_it_is(
    server: Server, accept: str, read: Any
) -> None:
    specs = {"keys": {"type": "gauge", "expose": True}}
    server.call("metrics.define", specs=specs, prefix="holdfast")
    server.call("metrics.set", metric="keys", value=-5, prefix="holdfast")

    text = server.get("/metrics", accept=accept).body.decode()
    families = {family.name.removesuffix("_total"): family for family in read(text)}

    growing = {name for name, each in families.items() if each.type == "counter"}
    assert {"holdfast_commits", "holdfast_groups", "holdfast_transactions"} <= growing
    own = [each for name, each in families.items() if name.startswith("holdfast_")]
    unknown = [each.name for each in own if "the engine calls" in each.documentation]
    assert (unknown, [each.name for each in own if not each.documentation]) == ([], [])
    [keys] = families["holdfast_keys"].samples  # the server's own name is not taken by a metric
    assert keys.value >= 0
    assert families["holdfast_series_left_out"].samples[0].labels == {"metric": "holdfast:keys"}


@pytest.mark.parametrize(("accept", "read"), [("text/plain", read_text), (OPEN, read_open)])
def test_the_queues_of_a_space_have_figures(server: Server, accept: str, read: Any) -> None:
    space = "plain-queues" if accept == "text/plain" else "open-queues"
    for number in range(3):
        server.call("jobs.put", space=space, queue="emails", id=f"job{number}")
    server.call("jobs.pop", space=space, queue="emails", worker="worker", count=2)
    server.call("jobs.complete", space=space, id="job0", worker="worker")
    server.call("jobs.fail", space=space, id="job1", worker="worker", group="g", message="it broke")

    text = server.get(f"/{space}/metrics/prometheus", accept=accept).body.decode()
    families = {family.name.removesuffix("_total"): family for family in read(text)}

    states = {each.labels["state"]: each.value for each in families["holdfast_jobs"].samples}
    assert (states["waiting"], states["running"]) == (1, 0)
    assert families["holdfast_jobs"].samples[0].labels["space"] == space
    types = {name.removeprefix("holdfast_jobs_"): each.type for name, each in families.items()}
    assert (types["started"], types["wait_seconds"]) == ("counter", "histogram")
    counters = {"put": 3, "started": 2, "completed": 1, "failures": 1, "retries": 0}
    for name, value in counters.items():
        assert families[f"holdfast_jobs_{name}"].samples[0].value == value
        assert types[name] == "counter"
    assert {families[each].type for each in ("holdfast_jobs", "holdfast_jobs_oldest_seconds")} == {
        "gauge"
    }
    assert all(family.documentation for family in families.values())
    buckets = [
        each.value
        for each in families["holdfast_jobs_wait_seconds"].samples
        if each.name.endswith("_bucket")
    ]
    assert (buckets == sorted(buckets), buckets[-1]) == (True, 2)
    assert families["holdfast_jobs_oldest_seconds"].samples[0].value >= 0


def test_a_space_shows_its_metrics_also_as_openmetrics(server: Server) -> None:
    server.call("metrics.define", space="shown", specs=SPECS)
    server.call("metrics.incr", space="shown", metric="hits", entity=None)

    plain = server.get("/shown/metrics/prometheus")
    open_ = server.get("/shown/metrics/prometheus", accept="application/openmetrics-text")

    assert b"WRStats_hits_total" in plain.body
    assert b"holdfast_queued_writes" not in plain.body
    assert open_.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert open_.body.endswith(b"# EOF\n")


def test_metrics_with_openmetrics_ends_once(server: Server) -> None:
    reply = server.get("/metrics", accept="application/openmetrics-text")

    assert reply.body.endswith(b"# EOF\n")
    assert b"holdfast_queued_writes" in reply.body


# --- what every exchange has in common -----------------------------------------------------------


def test_an_unknown_path_is_404_with_a_hint(server: Server) -> None:
    reply = server.get("/nothing/is/here/at/all")

    assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert "/openapi.json" in reply.error["hint"]


@pytest.mark.parametrize("path", ["/default/%ff/put", "/default/jobs/%ff", "/%ff/jobs/put"])
@pytest.mark.parametrize("kind", ["json", "msgpack"])
def test_bytes_of_a_path_that_are_no_text_are_refused(server: Server, path: str, kind: str) -> None:
    reply = server.request("POST", path, b"", {"Content-Type": f"application/{kind}"})

    assert reply.status in (400, 404)
    assert b"code" in reply.body


def test_a_wrong_method_is_405_and_names_the_right_one(server: Server) -> None:
    reply = server.get("/default/jobs/put")

    assert (reply.status, reply.error["code"]) == (405, "method_not_allowed")
    assert reply.headers["allow"] == "POST"
    assert server.request("DELETE", "/livez").headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/openapi.json", "/", "/status"])
def test_head_is_get_without_its_body(server: Server, path: str) -> None:
    head = server.request("HEAD", path)

    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["content-length"]) > 0


def test_a_request_id_comes_back_and_is_made_where_there_is_none(server: Server) -> None:
    assert server.get("/livez", x_request_id="abc-1").headers["x-request-id"] == "abc-1"
    assert uuid.UUID(server.get("/livez").headers["x-request-id"])
    assert uuid.UUID(server.get("/livez", x_request_id="a b" * 99).headers["x-request-id"])
    assert server.get("/nothing", x_request_id="abc-2").headers["x-request-id"] == "abc-2"


def test_an_oversized_body_is_refused_while_it_is_read(server: Server) -> None:
    before = server.memory_bytes()
    chunk = b" " * 1_048_576

    def body() -> Iterator[bytes]:
        for _ in range(MAX_REQUEST_BYTES // len(chunk) + 1):
            yield chunk

    connection = server.connect()
    connection.request("POST", "/default/jobs/put", body(), encode_chunked=True)
    response = connection.getresponse()

    assert response.status == 413
    assert b"request_too_large" in response.read()
    connection.close()
    assert server.memory_bytes() - before < 2 * MAX_REQUEST_BYTES


def test_a_body_that_announces_too_much_is_refused_at_once(server: Server) -> None:
    head = b"POST /default/jobs/put HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"

    assert b"413" in talk(server, head)


def test_an_endless_head_is_refused(server: Server) -> None:
    endless = b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * (2 * MAX_HEAD_BYTES)

    assert talk(server, endless)[:12] in (b"HTTP/1.1 400", b"")


def test_a_compressed_body_is_refused(server: Server) -> None:
    headers = {"Content-Encoding": "gzip"}
    reply = server.request("POST", "/default/jobs/put", b"\x1f\x8b", headers)

    assert (reply.status, reply.error["code"]) == (415, "unsupported_media_type")
    assert "Content-Encoding" in reply.error["hint"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"*1\r\n$4\r\nPING\r\n", "this looks like RESP, but this port speaks plain HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", "this looks like TLS, but this port speaks plain HTTP"),
        (b"\xff\r\n\r\n", "this is not a request of HTTP/1.1"),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "this is not a request of HTTP/1.1",
        ),
    ],
)
def test_bytes_of_another_protocol_get_one_answer_and_a_closed_connection(
    server: Server, sent: bytes, said: str
) -> None:
    head, _, body = talk(server, sent).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    error = {"code": "bad_input", "message": said, "hint": ""}
    assert json.loads(body) == {"error": error}
    assert server.get("/livez").status == 200


def test_who_asks_whether_to_send_too_much_is_refused_before_it_is_sent(server: Server) -> None:
    size = MAX_REQUEST_BYTES + 1
    head = f"POST /default/jobs/put HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n"

    assert talk(server, f"{head}Expect: 100-continue\r\n\r\n".encode()).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("http://evil.example", "127.0.0.1:1", 403),
        ("null", "127.0.0.1:1", 403),
        ("http://evil.example:1", "evil.example:1", 403),
        ("http://127.0.0.1:1", "127.0.0.1:1", 200),
        ("http://localhost:1", "localhost:1", 200),
    ],
)
def test_a_page_of_another_site_may_not_write(
    server: Server, origin: str, host: str, status: int
) -> None:
    headers = {"Origin": origin, "Host": host}

    assert server.request("POST", "/default/jobs/queues", b"{}", headers).status == status


def talk(server: Server, data: bytes) -> bytes:
    """Sends bytes and returns what comes back until the server closes the connection."""
    with socket.create_connection((server.host, server.http_port), timeout=20) as connection:
        try:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(65_536), b""))
        except ConnectionError:
            return b""
