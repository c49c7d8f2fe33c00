"""Traces and metrics with OpenTelemetry, of the runs of tasks, of stores, clients and servers
(extra `otel`).

    store = traced(holdfast.open("data"))
    client = traced(holdfast.connect("holdfast://db"))
    tasks.use(OpenTelemetryMiddleware())
    logging.getLogger().handlers[0].addFilter(TraceIds())

Each call is a span with the name of its operation, such as `holdfast jobs.put`, and each run one
with the name of its task. Where a job is put inside a span, the run's span is a child of that one.
A server that runs with `--trace` continues the traces of its clients.
"""

from typing import overload

from holdfast.client.async_client import AsyncClient
from holdfast.client.client import Client
from holdfast.errors import MissingDriver
from holdfast.store import Store

try:
    from opentelemetry import metrics, trace
except ImportError as error:
    raise MissingDriver(
        "the package `opentelemetry-api` is not installed", hint="pip install 'holdfastdb[otel]'"
    ) from error

from holdfast.contrib.opentelemetry.clients import TracedAsyncClient, TracedClient
from holdfast.contrib.opentelemetry.server_calls import ServerTracer
from holdfast.contrib.opentelemetry.spans import Tracing
from holdfast.contrib.opentelemetry.stores import TracedStore
from holdfast.contrib.opentelemetry.task_runs import OpenTelemetryMiddleware
from holdfast.contrib.opentelemetry.trace_ids import TraceIds

__all__ = ["OpenTelemetryMiddleware", "ServerTracer", "TraceIds", "traced"]


@overload
def traced(
    target: Store,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> Store: ...
@overload
def traced(
    target: Client,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> Client: ...
@overload
def traced(
    target: AsyncClient,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> AsyncClient: ...
def traced(
    target: Store | Client | AsyncClient,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> Store | Client | AsyncClient:
    """Returns the same open store or client, whose calls are spans and are measured.

    Use what is returned in place of `target`, and close it. Without providers the global ones are
    used, which do nothing until the program configures an SDK.
    """
    tracing = Tracing(tracer_provider, meter_provider)
    if isinstance(target, Store):
        return TracedStore(target, tracing)
    if isinstance(target, Client):
        return TracedClient(target, tracing)
    return TracedAsyncClient(target, tracing)
