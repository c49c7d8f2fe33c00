"""The ids of a trace in the records of a log."""

import logging

from opentelemetry import trace


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
