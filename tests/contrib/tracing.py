"""A program that traces with OpenTelemetry's own SDK, and keeps its spans in memory."""

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer


class Tracing:
    """A program that traces, and the spans that it has exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = self.provider.get_tracer("the program")

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all() if span.name == name]

    def all(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id
