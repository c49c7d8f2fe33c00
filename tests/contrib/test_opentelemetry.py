"""Traces of runs, as OpenTelemetry's own SDK collects them."""

import asyncio
import logging
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, Tracer, get_current_span

from holdfast.contrib.opentelemetry import OpenTelemetryMiddleware, TraceIds, traced
from holdfast.errors import MissingDriver
from holdfast.store import Store
from holdfast.tasks import Outcome, Retry, Run, Snooze, Tasks, Worker
from holdfast.testing import run_tasks


class Tracing:
    """A program that traces, and the spans that it has exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = self.provider.get_tracer("the program")

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


@pytest.fixture
def tracing() -> Iterator[Tracing]:
    tracing = Tracing()
    yield tracing
    tracing.provider.shutdown()


@pytest.fixture
def tasks(tracing: Tracing) -> Tasks:
    tasks = Tasks(queue="mail")
    tasks.use(OpenTelemetryMiddleware(tracing.provider))
    return tasks


def test_a_run_is_a_span_with_the_name_of_its_task(
    store: Store, tasks: Tasks, tracing: Tracing
) -> None:
    send = tasks.task(name="send")(lambda: None)
    job = send.put(store)
    run_tasks(store, tasks)

    [span] = tracing.spans("send")
    assert span.kind is SpanKind.CONSUMER
    assert span.parent is None
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes or {}) == {
        "messaging.system": "holdfast",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "messaging.message.id": job.id,
        "holdfast.task": "send",
        "holdfast.attempt": 1,
        "holdfast.outcome": "complete",
    }


def test_the_span_of_a_run_is_a_child_of_the_one_in_which_its_job_was_put(
    store: Store, tasks: Tasks, tracing: Tracing
) -> None:
    send = tasks.task(name="send")(lambda: None)
    with tracing.tracer.start_as_current_span("request") as request:
        send.put(store)
    with tracing.tracer.start_as_current_span("something else"):
        run_tasks(store, tasks)

    [span] = tracing.spans("send")
    assert span.parent is not None
    assert span.parent.span_id == request.get_span_context().span_id
    assert span.parent.is_remote


def test_what_a_task_puts_is_traced_as_its_child(
    store: Store, tasks: Tasks, tracing: Tracing
) -> None:
    last = tasks.task(name="last")(lambda: None)

    @tasks.task(name="first")
    def first(run: Run) -> None:
        run.put_next(last)

    first.put(store)
    run_tasks(store, tasks)

    [outer], [inner] = tracing.spans("first"), tracing.spans("last")
    assert inner.parent is not None
    assert inner.parent.span_id == id_of(outer)


def test_a_task_finds_its_span_in_threads_and_on_the_event_loop(
    store: Store, tasks: Tasks, tracing: Tracing
) -> None:
    @tasks.task(name="plain")
    def plain() -> str:
        return f"{get_current_span().get_span_context().span_id:x}"

    @tasks.task(name="on-loop")
    async def on_loop() -> str:
        return f"{get_current_span().get_span_context().span_id:x}"

    for worker in (Worker(store, tasks, threads=2), Worker(store, tasks, async_slots=2)):
        jobs = [*plain.put_many(store, [()] * 5), *on_loop.put_many(store, [()] * 5)]
        worker.run_until_empty()
        seen = {str(job.result()) for job in jobs}

        spans = [*tracing.spans("plain"), *tracing.spans("on-loop")]
        assert len(seen) == 10
        assert seen <= {f"{id_of(span):x}" for span in spans}


def test_an_exception_is_in_the_span_and_each_attempt_has_its_own(
    store: Store, tasks: Tasks, tracing: Tracing
) -> None:
    @tasks.task(name="send", retries=1, backoff=0)
    def send() -> None:
        raise ConnectionError("no route")

    send.put(store)
    run_tasks(store, tasks, keep_failures=True)

    told = [dict(span.attributes or {}) for span in tracing.spans("send")]
    assert [each["holdfast.outcome"] for each in told] == ["retry", "fail"]
    assert [each["holdfast.attempt"] for each in told] == [1, 2]
    for span in tracing.spans("send"):
        assert span.status.status_code is StatusCode.ERROR
        [event] = span.events
        assert dict(event.attributes or {})["exception.message"] == "no route"


@pytest.mark.parametrize("raised", [Snooze(60), Retry(after=60)])
def test_what_a_task_raises_on_purpose_is_no_error(
    store: Store, tasks: Tasks, tracing: Tracing, raised: Exception
) -> None:
    @tasks.task(name="send")
    def send() -> None:
        raise raised

    send.put(store)
    run_tasks(store, tasks)

    [span] = tracing.spans("send")
    assert (span.status.status_code, span.events) == (StatusCode.UNSET, ())
    assert dict(span.attributes or {})["holdfast.outcome"] == "retry"


@pytest.mark.parametrize("header", ["", "00-1-2-01", "x" * 10_000])
def test_a_job_with_a_bad_trace_context_runs_in_a_trace_of_its_own(
    store: Store, tasks: Tasks, tracing: Tracing, header: str
) -> None:
    tasks.task(name="send")(lambda: None)
    store.jobs.put("mail", "send", {"$traceparent": header})

    run_tasks(store, tasks)

    [span] = tracing.spans("send")
    assert span.parent is None


def test_a_schedule_does_not_keep_the_trace_in_which_it_was_deployed(
    store: Store, tasks: Tasks, tracing: Tracing
) -> None:
    tasks.every(60)(tasks.task(name="send")(lambda: None))

    with tracing.tracer.start_as_current_span("deploy"):
        tasks.deploy(store)

    [id] = store.jobs.jobs("recurring", "mail")
    recurring = store.jobs.recur_get(id)
    assert recurring is not None
    assert recurring.data == {}


def test_a_run_that_another_middleware_refused_has_no_span(store: Store, tracing: Tracing) -> None:
    class Refusing:
        def before(self, run: Run) -> None:
            raise ConnectionError

        def after(self, run: Run, outcome: Outcome) -> None: ...

    tasks = Tasks(queue="mail")
    tasks.use(Refusing())
    tasks.use(OpenTelemetryMiddleware(tracing.provider))
    tasks.task(name="send", retries=0)(lambda: None).put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert tracing.spans("send") == []
    assert store.jobs.failed() == {"mail-ConnectionError": 1}


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "holdfast.contrib.opentelemetry")

    with pytest.raises(MissingDriver, match=r"holdfastdb\[otel\]"):
        __import__("holdfast.contrib.opentelemetry")


# --- stores ---------------------------------------------------------------------------------------


@pytest.mark.every_engine
def test_transactions_and_views_of_a_traced_store_are_spans_and_are_measured(
    store: Store, tracing: Tracing
) -> None:
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader])
    traced_store = traced(store, tracing.provider, meters)
    with tracing.tracer.start_as_current_span("request") as request:
        traced_store.jobs.put("emails", id="one")
        assert traced_store.jobs.length("emails") == 1
    with pytest.raises(LookupError), traced_store.transaction():
        raise LookupError

    [put] = [span for span in tracing.spans("holdfast.transact") if span.parent is not None]
    assert put.parent is not None
    assert put.parent.span_id == request.get_span_context().span_id
    assert tracing.spans("holdfast.view")
    [failed] = tracing.spans("holdfast.transaction")
    assert failed.status.status_code is StatusCode.ERROR
    data = reader.get_metrics_data()
    assert data is not None
    [metric] = data.resource_metrics[0].scope_metrics[0].metrics
    kinds = {dict(p.attributes or {})["holdfast.operation"] for p in metric.data.data_points}
    assert (metric.name, {"transact", "view", "transaction"} <= kinds) == (
        "holdfast.operation.duration",
        True,
    )
    meters.shutdown()


def test_a_group_of_an_asyncio_program_is_one_span(store: Store, tracing: Tracing) -> None:
    traced_store = traced(store, tracing.provider)

    async def put_all() -> None:
        await asyncio.gather(*(traced_store.aio.jobs.put("emails") for _ in range(5)))

    asyncio.run(put_all())

    groups = tracing.spans("holdfast.transact_many")
    counts = [int(str((span.attributes or {})["holdfast.transactions"])) for span in groups]
    assert sum(counts) == 5


def test_records_of_a_log_have_the_ids_of_their_trace(tracing: Tracing) -> None:
    record = logging.LogRecord("shop", logging.INFO, "", 1, "sold", (), None)
    outside = logging.LogRecord("shop", logging.INFO, "", 1, "open", (), None)

    TraceIds().filter(outside)
    with tracing.tracer.start_as_current_span("request") as request:
        TraceIds().filter(record)

    context = request.get_span_context()
    assert vars(record)["trace_id"] == f"{context.trace_id:032x}"
    assert vars(record)["span_id"] == f"{context.span_id:016x}"
    assert vars(outside)["trace_id"] == ""
