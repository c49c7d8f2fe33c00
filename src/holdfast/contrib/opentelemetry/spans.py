"""Spans of calls and commits, named by OpenTelemetry's semantic conventions for databases."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias, TypeVar

from opentelemetry import context, metrics, trace

from holdfast.errors import HoldfastError
from holdfast.version import VERSION

T = TypeVar("T")
Attributes: TypeAlias = dict[str, str | int]

SCOPE: Final = "holdfast"
NO_ATTRIBUTES: Final[Mapping[str, str | int]] = {}

# Whether an operation runs: operations that it calls have no spans of their own.
_in_operation: ContextVar[bool] = ContextVar("holdfast_in_operation", default=False)


def name_of(operation: str) -> str:
    """Returns the name of an operation's span."""
    return f"holdfast {operation}"


def attributes_of(operation: str, space: str) -> Attributes:
    """Returns the attributes that every call has."""
    return {"db.system.name": SCOPE, "db.operation.name": operation, "db.namespace": space}


def error_type(error: BaseException) -> str:
    """Returns the code of an error, or the name of its class if it has none."""
    return error.code if isinstance(error, HoldfastError) else type(error).__qualname__


class Tracing:
    """Makes the spans of one store or client, and measures what they take."""

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._tracer = trace.get_tracer(SCOPE, VERSION, tracer_provider)
        meter = metrics.get_meter(SCOPE, VERSION, meter_provider)
        self._durations = meter.create_histogram(
            "db.client.operation.duration", "s", "Duration of calls of a store or client."
        )

    @contextmanager
    def operation(self, name: str, space: str) -> Iterator[None]:
        """Makes a span of an operation, unless it is part of another one."""
        if _in_operation.get():
            yield
            return
        token = _in_operation.set(True)
        try:
            with self.call(name, space):
                yield
        finally:
            _in_operation.reset(token)

    @contextmanager
    def call(
        self, name: str, space: str, more: Mapping[str, str | int] = NO_ATTRIBUTES
    ) -> Iterator[None]:
        """Makes a span of a call, with the error that ended it, and measures it."""
        measured: Attributes = {"db.system.name": SCOPE, "db.operation.name": name}
        begin = time.perf_counter()
        with self._tracer.start_as_current_span(
            name_of(name),
            kind=trace.SpanKind.CLIENT,
            attributes={**attributes_of(name, space), **more},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:
                measured["error.type"] = error_type(error)
                _mark_failed(span, error)
                raise
            finally:
                self._durations.record(time.perf_counter() - begin, measured)

    def committed(self, commit: "CommitSpan", transactions: int = 1) -> None:
        """Makes a span of the time between the end of a transaction's work and now."""
        commit.make_span(self._tracer, transactions)


def _mark_failed(span: trace.Span, error: BaseException) -> None:
    span.set_attribute("error.type", error_type(error))
    if isinstance(error, HoldfastError):
        span.set_attribute("db.response.status_code", error.code)
    span.record_exception(error)
    span.set_status(trace.StatusCode.ERROR, str(error))


class CommitSpan:
    """One transaction from the end of its work until it is durable.

    Its work may run in another thread, together with that of others: it runs in the context of its
    own caller there.
    """

    def __init__(self, caller: context.Context | None = None) -> None:
        self._caller = context.get_current() if caller is None else caller
        self._began = 0  # by the clock of spans; 0 while its work has not ended

    def around(
        self, work: Callable[[Any], T], ran: Callable[["CommitSpan"], None] | None = None
    ) -> Callable[[Any], T]:
        """Returns `work` in the context of its caller; `ran` is called each time it has ended."""

        def run(tx: Any) -> T:
            token = context.attach(self._caller)
            try:
                result = work(tx)
            finally:
                context.detach(token)
            self._began = time.time_ns()
            if ran is not None:
                ran(self)
            return result

        return run

    def work_ended(self, began: int) -> "CommitSpan":
        """Notes that the work has ended, and the commit has begun, at `began`."""
        self._began = began
        return self

    def make_span(self, tracer: trace.Tracer, transactions: int) -> None:
        """Makes the span, as a child of the caller's; without a caller's span there is none."""
        if not self._began or not trace.get_current_span(self._caller).get_span_context().is_valid:
            return
        tracer.start_span(
            name_of("commit"),
            context=self._caller,
            attributes={"db.system.name": SCOPE, "holdfast.transactions": transactions},
            start_time=self._began,
        ).end()
