"""Traces that go through a real server and back to a worker, and the ids in its log."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import qless  # type: ignore[import-untyped]  # it is older than types
import valkey
from opentelemetry.trace import format_span_id, format_trace_id

import holdfast
from holdfast import aio
from holdfast.client.batches import Handle
from holdfast.client.client import Client
from holdfast.contrib.opentelemetry import OpenTelemetryMiddleware, traced
from holdfast.entities import bson_codec
from holdfast.errors import ServerFailed, UnknownJob
from holdfast.jobs import Job
from holdfast.tasks import Tasks, Worker
from tests.contrib.tracing import Tracing, id_of
from tests.server.serving import START_SECONDS, Server, serve_words

# `holdfast serve --trace` with an SDK that writes a line for each span. One operation fails as only
# a mistake of ours would.
PROGRAM = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from holdfast.cli import main
from holdfast.jobs import Jobs

def broken(self, queue):
    raise ZeroDivisionError("a secret of the client")

broken.__operation__ = Jobs.length.__operation__
Jobs.length = broken
out = open(sys.argv[1], "w")
exporter = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\\n")
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
main(sys.argv[2:])
"""


class TracedServer:
    """A server, the spans that it has exported, and its log."""

    def __init__(self, server: Server, spans: Path, log: Path) -> None:
        self.server = server
        self._spans = spans
        self._log = log

    def connect(self, tracing: Tracing) -> Client:
        return traced(holdfast.connect(self.address), tracing.provider)

    @property
    def address(self) -> str:
        return f"holdfast://127.0.0.1:{self.server.resp_port}"

    def spans(self, trace: int) -> dict[str, Any]:
        """The spans of one trace by their names."""
        told = [json.loads(line) for line in self._spans.read_text().splitlines()]
        id = f"0x{format_trace_id(trace)}"
        return {each["name"]: each for each in told if each["context"]["trace_id"] == id}

    def log(self) -> list[Any]:
        return [json.loads(line) for line in self._log.read_text().splitlines()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TracedServer]:
    folder = tmp_path_factory.mktemp("traced")
    spans, log = folder / "spans", folder / "log"
    words = [sys.executable, "-c", PROGRAM, str(spans), *serve_words(folder / "data", "--trace")]
    with log.open("w") as errors:
        process: Any = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ
        )
    try:
        yield TracedServer(Server(process, process.stdout.readline(), folder), spans, log)
    finally:
        process.kill()
        process.wait(START_SECONDS)
        process.stdout.close()


def parent_of(span: Any) -> str:
    return str(span["parent_id"])


def test_the_span_of_the_server_is_a_child_of_the_clients(
    server: TracedServer, tracing: Tracing
) -> None:
    with closing(server.connect(tracing)) as client:
        client.space("shop").jobs.put("emails", id="one")

    [call] = tracing.spans("holdfast jobs.put")
    assert dict(call.attributes or {}) == {
        "db.system.name": "holdfast",
        "db.operation.name": "jobs.put",
        "db.namespace": "shop",
        "server.address": "127.0.0.1",
        "server.port": server.server.resp_port,
    }
    assert call.context is not None
    spans = server.spans(call.context.trace_id)
    served, commit = spans["holdfast jobs.put"], spans["holdfast commit"]
    assert served["kind"] == "SpanKind.SERVER"
    assert parent_of(served) == f"0x{format_span_id(id_of(call))}"
    assert parent_of(commit) == served["context"]["span_id"]
    assert served["attributes"]["network.protocol.name"] == "resp"
    assert commit["attributes"]["holdfast.transactions"] == 1


def test_a_batch_is_one_span_on_either_side(server: TracedServer, tracing: Tracing) -> None:
    with closing(server.connect(tracing)) as client:
        with client.batch() as batch:
            first = batch.jobs.put("emails")
            batch.jobs.put("emails")
        with client.pipeline() as pipeline:
            pipeline.jobs.put("emails")

    [call] = tracing.spans("holdfast batch")
    assert first.result()
    assert dict(call.attributes or {})["db.operation.batch.size"] == 2
    assert call.context is not None
    assert set(server.spans(call.context.trace_id)) == {"holdfast batch", "holdfast commit"}
    assert [span.name for span in tracing.all()] == ["holdfast batch", "holdfast pipeline"]


def pipelined(server: TracedServer, tracing: Tracing) -> None:
    with closing(server.connect(tracing)) as client, client.pipeline() as pipeline:
        put = pipeline.jobs.put("emails", id="piped")
        pipeline.jobs.complete("nobody", "ann")
        found = pipeline.jobs.get("piped")
    check_pipelined(put, found)


def pipelined_async(server: TracedServer, tracing: Tracing) -> None:
    async def calls() -> None:
        async with (
            traced(await aio.connect(server.address), tracing.provider) as client,
            client.pipeline() as pipeline,
        ):
            put = pipeline.jobs.put("emails", id="piped")
            pipeline.jobs.complete("nobody", "ann")
            found = pipeline.jobs.get("piped")
        check_pipelined(put, found)

    asyncio.run(calls())


def check_pipelined(put: Handle[str], found: Handle[Job | None]) -> None:
    job = found.result()
    assert (put.result(), job and job.id) == ("piped", "piped")


@pytest.mark.parametrize("send", [pipelined, pipelined_async])
def test_each_call_of_a_pipeline_is_a_child_of_its_span(
    server: TracedServer, tracing: Tracing, send: Callable[[TracedServer, Tracing], None]
) -> None:
    send(server, tracing)

    [sent] = tracing.spans("holdfast pipeline")
    assert sent.context is not None
    spans = server.spans(sent.context.trace_id)
    names = {"holdfast jobs.put", "holdfast jobs.complete", "holdfast jobs.get"}
    assert set(spans) == {*names, "holdfast commit"}
    for name in names:
        assert parent_of(spans[name]) == f"0x{format_span_id(id_of(sent))}"


def test_calls_in_the_protocols_of_the_originals_are_spans_too(server: TracedServer) -> None:
    trace = 0xABCDEF
    parent = f"00-{format_trace_id(trace)}-{format_span_id(9)}-01"
    body = (Path(qless.__file__).parent / "qless-core" / "qless.lua").read_text()
    query = bson_codec.encode({"schema": "shop", "table": "Users", "filters": {}})
    with valkey.Valkey(port=server.server.resp_port, single_connection_client=True) as client:
        sha = client.execute_command("SCRIPT", "LOAD", body)
        for words in (
            ("EVALSHA", sha, "0", "put", "1", "emails", "one", "Klass", "{}", "0"),
            ("QLESS", "get", "*", "one"),
            ("QLESS", "no such command", "*"),
            ("GET", query),
        ):
            client.execute_command("TRACE", "traceparent", parent)
            with suppress(valkey.ResponseError):
                client.execute_command(*words)
    header = {"traceparent": parent}
    schema = json.dumps(
        {"table": "t", "attributes": {"k": "string"}, "index": [{"attribute": "k", "type": "hash"}]}
    )
    for method, path, sent in (
        ("PUT", "/wiki/sys/table/t", schema),
        ("GET", "/wiki/sys/table/t/one", ""),
        ("GET", "/wiki/flux/schemas", ""),
        ("GET", "/schema", ""),
    ):
        server.server.request(method, path, sent, header)

    spans = server.spans(trace)
    names = [
        *("qless.put", "qless.get", "qless", "meduza.get"),
        *("restbase.put_schema", "restbase.get_rows", "flux.get_schemas"),
    ]
    assert {f"holdfast {name}" for name in names} <= set(spans)
    for name in names:
        assert parent_of(spans[f"holdfast {name}"]) == f"0x{format_span_id(9)}"
    assert spans["holdfast qless"]["attributes"]["error.type"] == "bad_argument"
    assert "holdfast commit" in spans


def test_an_async_client_carries_its_trace_too(server: TracedServer, tracing: Tracing) -> None:
    async def calls() -> int:
        async with traced(await aio.connect(server.address), tracing.provider) as client:
            await client.jobs.put("async", id="two")
            async with client.batch() as batch:
                found = batch.jobs.get("two")
            assert found.result() is not None
            return len(await client.space("shop").jobs.queues())

    assert asyncio.run(calls()) >= 0

    spans = [span for span in tracing.all() if span.context is not None]
    assert [span.name for span in spans] == [
        "holdfast jobs.put",
        "holdfast batch",
        "holdfast jobs.queues",
    ]
    for span in spans:
        assert span.context is not None
        assert span.name in server.spans(span.context.trace_id)


def test_over_http_the_trace_comes_with_a_header(server: TracedServer) -> None:
    trace = 0x1234567890ABCDEF
    header = {"traceparent": f"00-{format_trace_id(trace)}-{format_span_id(7)}-01"}
    for path, body in (
        ("/default/jobs/put", {"queue": "emails"}),
        ("/default/jobs/queues", {}),
        ("/default/batch", [{"operation": "jobs.put", "arguments": {"queue": "emails"}}]),
    ):
        assert server.server.request("POST", path, json.dumps(body), header).status == 200

    spans = server.spans(trace)
    names = {"holdfast jobs.put", "holdfast jobs.queues", "holdfast batch"}
    assert set(spans) == {*names, "holdfast commit"}
    for name in names:
        assert parent_of(spans[name]) == f"0x{format_span_id(7)}"
        assert spans[name]["attributes"]["network.protocol.name"] == "http"


def test_an_error_has_its_code_on_both_sides_and_its_message_only_at_the_clients(
    server: TracedServer, tracing: Tracing
) -> None:
    with closing(server.connect(tracing)) as client, pytest.raises(UnknownJob):
        client.jobs.complete("nobody", "ann")

    [call] = tracing.spans("holdfast jobs.complete")
    assert dict(call.attributes or {})["error.type"] == UnknownJob.code
    assert "nobody" in str(call.status.description)
    assert call.context is not None
    served = server.spans(call.context.trace_id)["holdfast jobs.complete"]
    assert served["attributes"]["error.type"] == UnknownJob.code
    assert served["status"] == {"status_code": "ERROR"}
    assert served["events"] == []


def test_a_job_that_is_put_over_the_network_runs_in_the_trace_of_its_request(
    server: TracedServer, tracing: Tracing
) -> None:
    tasks = Tasks(queue="mail")
    tasks.use(OpenTelemetryMiddleware(tracing.provider))
    send = tasks.task(name="send")(lambda: None)

    with closing(server.connect(tracing)) as client:
        with tracing.tracer.start_as_current_span("request") as request:
            send.put(client)
        Worker(client, tasks, threads=1).run_until_empty()

    [run] = tracing.spans("send")
    assert run.parent is not None
    assert run.parent.span_id == request.get_span_context().span_id
    assert "holdfast jobs.put" in server.spans(request.get_span_context().trace_id)


def test_the_log_names_the_request_and_nothing_that_its_client_sent(server: TracedServer) -> None:
    parent = f"00-{format_trace_id(0xFEED)}-{format_span_id(7)}-01"
    headers = {"X-Request-Id": "order-17", "traceparent": parent}
    body = json.dumps({"queue": "emails"})
    reply = server.server.request("POST", "/default/jobs/length", body, headers)
    with closing(holdfast.connect(server.address)) as client, pytest.raises(ServerFailed):
        client.jobs.length("emails")

    assert (reply.status, reply.headers["x-request-id"]) == (500, "order-17")
    by_http, by_resp = [line for line in server.log() if "ZeroDivisionError" in line["message"]]
    assert (by_http["request_id"], by_http["level"]) == ("order-17", "error")
    assert by_resp["connection"] > 0
    served = server.spans(0xFEED)["holdfast jobs.length"]
    assert by_http["trace_id"] == format_trace_id(0xFEED)
    assert f"0x{by_http['span_id']}" == served["context"]["span_id"]
    assert len(by_resp["trace_id"]) == 32
    assert "secret" not in json.dumps(server.log())


@pytest.mark.parametrize(
    "words", [(), ("traceparent",), ("a", "b", "c"), ("traceparent", "x" * 10_000)]
)
def test_a_trace_that_is_no_pairs_or_too_large_is_refused(
    server: TracedServer, words: tuple[str, ...]
) -> None:
    reply = subprocess.run(
        ["redis-cli", "-p", str(server.server.resp_port), "TRACE", *words],
        capture_output=True,
        text=True,
        check=False,
    ).stdout

    assert "wrong number of arguments" in reply or "at most 8192 bytes" in reply
