"""Traces of runs, as OpenTelemetry's own SDK collects them."""

import asyncio
import logging
import sys

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from holdfast.contrib.opentelemetry import OpenTelemetryMiddleware, TraceIds, traced
from holdfast.errors import MissingDriver, UnknownJob
from holdfast.store import Store
from holdfast.tasks import Outcome, Retry, Run, Snooze, Tasks, Worker
from holdfast.testing import run_tasks
from tests.contrib.tracing import Tracing, id_of


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
def test_a_call_of_a_traced_store_is_a_span_with_its_commit_below_it(
    store: Store, tracing: Tracing
) -> None:
    traced_store = traced(store, tracing.provider)
    with tracing.tracer.start_as_current_span("request") as request:
        traced_store.jobs.put("emails", id="one")
        assert traced_store.jobs.length("emails") == 1

    [put], [length] = tracing.spans("holdfast jobs.put"), tracing.spans("holdfast jobs.length")
    assert put.kind is SpanKind.CLIENT
    assert put.parent is not None
    assert put.parent.span_id == request.get_span_context().span_id
    assert dict(put.attributes or {}) == {
        "db.system.name": "holdfast",
        "db.operation.name": "jobs.put",
        "db.namespace": "default",
    }
    [commit] = [
        span
        for span in tracing.spans("holdfast commit")
        if span.parent is not None and span.parent.span_id == id_of(put)
    ]
    assert put.start_time is not None
    assert put.end_time is not None
    assert commit.start_time is not None
    assert commit.end_time is not None
    assert put.start_time <= commit.start_time <= commit.end_time <= put.end_time
    assert length.parent is not None
    assert traced_store.engine_name == store.engine_name


def test_an_operation_that_is_made_of_others_is_one_span(store: Store, tracing: Tracing) -> None:
    traced_store = traced(store, tracing.provider)
    traced_store.jobs.put("emails", id="one")

    assert traced_store.jobs.pop_wait("emails", worker="ann", timeout=5)

    names = [span.name for span in tracing.all() if span.name != "holdfast commit"]
    assert names == ["holdfast jobs.put", "holdfast jobs.pop_wait"]


def test_a_transaction_is_one_span_in_the_space_that_it_is_in(
    store: Store, tracing: Tracing
) -> None:
    space = traced(store, tracing.provider).space("shop")

    space.transact(lambda tx: [tx.jobs.put("emails"), tx.jobs.put("emails")])
    with space.view() as view:
        assert view.jobs.length("emails") == 2
    with pytest.raises(UnknownJob), space.transaction() as tx:
        tx.jobs.complete("nobody", "ann")

    [transact], [_] = tracing.spans("holdfast transact"), tracing.spans("holdfast view")
    assert dict(transact.attributes or {})["db.namespace"] == "shop"
    [failed] = tracing.spans("holdfast transaction")
    assert failed.status.status_code is StatusCode.ERROR
    assert dict(failed.attributes or {})["error.type"] == UnknownJob.code
    assert [event.name for event in failed.events] == ["exception"]
    [commit] = tracing.spans("holdfast commit")  # what failed has none
    assert commit.parent is not None
    assert commit.parent.span_id == id_of(transact)


def test_calls_are_measured_by_operation_and_error(store: Store, tracing: Tracing) -> None:
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader])
    traced_store = traced(store, tracing.provider, meters)

    traced_store.jobs.put("emails", id="one")
    with pytest.raises(UnknownJob):
        traced_store.jobs.complete("nobody", "ann")

    data = reader.get_metrics_data()
    assert data is not None
    [metric] = data.resource_metrics[0].scope_metrics[0].metrics
    told = [dict(point.attributes or {}) for point in metric.data.data_points]
    assert metric.name == "db.client.operation.duration"
    assert {"db.system.name": "holdfast", "db.operation.name": "jobs.put"} in told
    assert [each["error.type"] for each in told if "error.type" in each] == [UnknownJob.code]
    meters.shutdown()


def test_each_call_of_an_asyncio_program_has_the_commit_that_it_shares_in_its_own_trace(
    store: Store, tracing: Tracing
) -> None:
    traced_store = traced(store, tracing.provider)

    async def put(name: str) -> None:
        with tracing.tracer.start_as_current_span(name):
            await traced_store.aio.jobs.put("emails")

    async def put_all() -> None:
        await asyncio.gather(*(put(f"request {number}") for number in range(5)))
        await traced_store.aio.space("shop").transact(lambda tx: tx.jobs.put("emails"))

    asyncio.run(put_all())

    puts = {id_of(span): span for span in tracing.spans("holdfast jobs.put")}
    parents = [span.parent for span in tracing.spans("holdfast commit")]
    assert len(puts) == 5
    assert puts.keys() <= {parent.span_id for parent in parents if parent is not None}
    assert len({span.context.trace_id for span in puts.values() if span.context}) == 5
    [transact] = tracing.spans("holdfast transact")
    assert dict(transact.attributes or {})["db.namespace"] == "shop"


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
