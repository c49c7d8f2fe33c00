"""The calls and commits of a server as spans, in the traces of its clients."""

from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import context, propagate, trace

from holdfast.contrib.opentelemetry.spans import (
    SCOPE,
    CommitSpan,
    attributes_of,
    error_type,
    name_of,
)
from holdfast.version import VERSION


class ServerTracer:
    """Makes a span of each call that a server gets, by RESP or HTTP.

    Give it to `Application(store, tracer=...)` of `holdfast.server.application`; `holdfast serve
    --trace` does so. `tracer_provider` is the global one if it is not given. Messages of
    errors may hold what clients sent, so a span has only their code.
    """

    def __init__(self, tracer_provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer(SCOPE, VERSION, tracer_provider)
        self._group: dict[CommitSpan, None] = {}  # of the group that runs now, each once

    def begin(
        self, operation: str, space: str, protocol: str, carrier: Mapping[str, str]
    ) -> "ServerCall":
        """Begins the span of a call; `carrier` has the trace context that came with it."""
        caller = propagate.extract(carrier, context=context.Context())
        span = self._tracer.start_span(
            name_of(operation),
            context=caller,
            kind=trace.SpanKind.SERVER,
            attributes={
                **attributes_of(operation, space),
                "network.protocol.name": protocol,
            },
        )
        return ServerCall(span, trace.set_span_in_context(span, caller), self._note)

    def committed(self, transactions: int) -> None:
        """Makes the commit spans of the group that is now durable."""
        group, self._group = self._group, {}
        for commit in group:
            commit.make_span(self._tracer, transactions)

    def _note(self, commit: CommitSpan) -> None:
        self._group[commit] = None


class ServerCall:
    """One call of a server, until it is answered."""

    def __init__(
        self, span: trace.Span, inside: context.Context, note: Callable[[CommitSpan], None]
    ) -> None:
        self._span = span
        self._inside = inside
        self._note = note

    @property
    def ids(self) -> Mapping[str, str]:
        """Returns the ids by which the log names the call."""
        known = self._span.get_span_context()
        return {
            "trace_id": trace.format_trace_id(known.trace_id),
            "span_id": trace.format_span_id(known.span_id),
        }

    def around(self, work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Returns the work of a transaction, whose commit becomes a span too."""
        return CommitSpan(self._inside).around(work, self._note)

    def end(self, error: BaseException | None) -> None:
        """Ends the span, with the code of the error if there is one."""
        if error is not None:
            code = error_type(error)
            self._span.set_attribute("error.type", code)
            self._span.set_attribute("db.response.status_code", code)
            self._span.set_status(trace.StatusCode.ERROR)
        self._span.end()
