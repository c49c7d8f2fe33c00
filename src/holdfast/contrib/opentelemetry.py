"""Traces and metrics with OpenTelemetry, of the runs of tasks and of a store (extra `otel`).

    tasks.use(OpenTelemetryMiddleware())
    store = traced(holdfast.open("data"))
    logging.getLogger().handlers[0].addFilter(TraceIds())

Each run is a span with the name of its task. Where a job is put inside a span, the run's span is a
child of that one: the trace context travels with the job, as `$traceparent` in its data.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from holdfast.engine.contract import Engine
from holdfast.engine.contract import Outcome as TransactionOutcome
from holdfast.errors import MissingDriver
from holdfast.store import Store
from holdfast.tasks import Outcome, Run
from holdfast.version import VERSION

try:
    from opentelemetry import metrics, propagate, trace
    from opentelemetry.context import Context
except ImportError as error:
    raise MissingDriver(
        "the package `opentelemetry-api` is not installed", hint="pip install 'holdfastdb[otel]'"
    ) from error

__all__ = ["OpenTelemetryMiddleware", "TraceIds", "traced"]

T = TypeVar("T")


class OpenTelemetryMiddleware:
    """Makes a span of each run, with the job's id, queue, attempt and outcome.

    The span has the status ERROR and an event with the exception if the run failed or will be
    repeated because of one. `tracer_provider` is the global one if it is not given.
    """

    def __init__(self, tracer_provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("holdfast", VERSION, tracer_provider)
        self._spans: dict[Run, trace.Span] = {}  # of what runs now

    def headers(self) -> dict[str, str]:
        """Returns the trace context of the caller, in the form that the program has chosen."""
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        return carrier

    def before(self, run: Run) -> AbstractContextManager[object]:
        """Returns the span of a run, as a context."""
        return self._span(run)

    def after(self, run: Run, outcome: Outcome) -> None:
        """Writes the outcome into the span."""
        span = self._spans.get(run)
        if span is None:  # another middleware failed before this one began
            return
        span.set_attribute("holdfast.outcome", outcome.what)
        problem = outcome.problem
        if problem is not None:
            span.record_exception(problem)
            span.set_status(trace.StatusCode.ERROR, outcome.message)

    @contextmanager
    def _span(self, run: Run) -> Iterator[None]:
        job = run.job
        attributes: dict[str, str | int] = {
            "messaging.system": "holdfast",
            "messaging.operation.type": "process",
            "messaging.destination.name": job.queue,
            "messaging.message.id": job.id,
            "holdfast.task": job.task,
            "holdfast.attempt": job.attempt,
        }
        # An empty context below: a job that was put outside of any span begins a trace of its own,
        # whatever the worker's thread is doing.
        with self._tracer.start_as_current_span(
            job.task,
            context=propagate.extract(run.headers, context=Context()),
            kind=trace.SpanKind.CONSUMER,
            attributes=attributes,
            record_exception=False,  # `after` knows which exceptions are problems
            set_status_on_exception=False,
        ) as span:
            self._spans[run] = span
            try:
                yield
            finally:
                del self._spans[run]


def traced(
    store: Store,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> Store:
    """Returns the same open store, whose transactions and views are spans and are measured.

    A span is called `holdfast.transact`, `holdfast.transaction` or `holdfast.view`; one with
    `holdfast.transact_many` is a group, and tells how many transactions shared its commit. The
    histogram `holdfast.operation.duration` has the seconds of each by its kind. Use what is
    returned in place of `store`, and close it.
    """
    engine: Any = _TracedEngine(store.engine, tracer_provider, meter_provider)
    return Store(engine)


class _TracedEngine:
    """An engine that makes a span of each transaction and view."""

    def __init__(
        self,
        engine: Engine,
        tracer_provider: trace.TracerProvider | None,
        meter_provider: metrics.MeterProvider | None,
    ) -> None:
        self._engine = engine
        self._tracer = trace.get_tracer("holdfast", VERSION, tracer_provider)
        meter = metrics.get_meter("holdfast", VERSION, meter_provider)
        self._durations = meter.create_histogram(
            "holdfast.operation.duration", "s", "Transactions and views of a store."
        )

    def transact(self, work: Callable[[Any], T], *, space: bytes = b"") -> T:
        with self._span("transact"):
            return self._engine.transact(work, space=space)

    def transact_many(
        self, works: Sequence[Callable[[Any], Any]], *, spaces: Sequence[bytes] | None = None
    ) -> list[TransactionOutcome[Any]]:
        with self._span("transact_many", transactions=len(works)):
            return self._engine.transact_many(works, spaces=spaces)

    @contextmanager
    def transaction(self, *, space: bytes = b"") -> Iterator[Any]:
        with self._span("transaction"), self._engine.transaction(space=space) as tx:
            yield tx

    @contextmanager
    def view(self, **options: Any) -> Iterator[Any]:
        with self._span("view"), self._engine.view(**options) as reader:
            yield reader

    @contextmanager
    def _span(self, kind: str, **facts: int) -> Iterator[None]:
        attributes: dict[str, str | int] = {"db.system.name": "holdfast"}
        attributes |= {f"holdfast.{name}": value for name, value in facts.items()}
        begin = time.perf_counter()
        try:
            with self._tracer.start_as_current_span(
                f"holdfast.{kind}", kind=trace.SpanKind.CLIENT, attributes=attributes
            ):
                yield
        finally:
            self._durations.record(time.perf_counter() - begin, {"holdfast.operation": kind})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class TraceIds(logging.Filter):
    """Adds `trace_id` and `span_id` to each record of a log, for a formatter to write.

    Requests, the jobs that they put and the runs of these jobs share a `trace_id`. Outside of any
    span both are empty.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Adds the ids; every record passes."""
        context = trace.get_current_span().get_span_context()
        record.trace_id = trace.format_trace_id(context.trace_id) if context.is_valid else ""
        record.span_id = trace.format_span_id(context.span_id) if context.is_valid else ""
        return True
