"""Runs of tasks as spans; the trace context travels with the job, as `$traceparent` in its data."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from opentelemetry import propagate, trace
from opentelemetry.context import Context

from holdfast.tasks import Outcome, Run
from holdfast.version import VERSION


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
        # An empty context below: a job that was put outside of any span begins its own trace,
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
