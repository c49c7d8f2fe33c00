"""Uses each extra that is no web framework, as it is installed: the real package, a real store.

.ci/test-integrations runs it in an environment that has the built wheel, and not the source.
"""

from pathlib import Path
from typing import Any

import holdfast
from holdfast.tasks import Tasks
from holdfast.testing import run_tasks, temporary_server, temporary_store


def otel() -> str:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from holdfast.contrib.opentelemetry import OpenTelemetryMiddleware, traced

    exporter, provider, tasks = InMemorySpanExporter(), TracerProvider(), Tasks(queue="q")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tasks.use(OpenTelemetryMiddleware(provider))
    send = tasks.task(name="send")(lambda: None)
    with temporary_store() as store:
        with provider.get_tracer("shop").start_as_current_span("request"):
            send.put(traced(store, provider))
        run_tasks(store, tasks)
    spans = exporter.get_finished_spans()
    assert len({span.context.trace_id for span in spans if span.context}) == 1
    return ", ".join(sorted(span.name for span in spans))


def sentry() -> str:
    import sentry_sdk
    from sentry_sdk.transport import Transport

    from holdfast.contrib.sentry import SentryMiddleware

    told: list[Any] = []

    class Kept(Transport):
        def capture_envelope(self, envelope: Any) -> None:
            told.append(envelope.get_event())

    sentry_sdk.init(dsn="http://key@127.0.0.1/1", transport=Kept())
    tasks = Tasks(queue="q")
    tasks.use(SentryMiddleware())

    @tasks.task(name="send", retries=0)
    def send() -> None:
        raise OSError("no answer")

    with temporary_store() as store:
        send.put(store)
        run_tasks(store, tasks, keep_failures=True)
    return str(told[0]["exception"]["values"][-1]["value"])


def limits() -> str:
    from limits import RateLimitItemPerMinute
    from limits.strategies import FixedWindowRateLimiter

    from holdfast.limits_storage import HoldfastStorage

    with temporary_store() as store:
        limiter = FixedWindowRateLimiter(HoldfastStorage(store=store))
        return str([limiter.hit(RateLimitItemPerMinute(1), "ann") for _ in range(2)])


def meduza() -> str:
    from holdfast.entities import bson_codec, bson_types

    assert bson_types.HAS_PYMONGO
    return str(bson_codec.decode(bson_codec.encode({"total": 7})))


def server() -> str:
    with temporary_server() as url, holdfast.connect(url) as client:
        client.jobs.put("emails", id="one")
        return client.admin.server().engine


def testing() -> str:
    import hypothesis

    from holdfast.testing import strategies

    found = hypothesis.find(
        strategies.schemas(), lambda schema: True, settings=hypothesis.settings(database=None)
    )
    return type(found).__name__


for use in (otel, sentry, limits, meduza, server, testing):
    print(f"{use.__name__}: {use()}")
assert "site-packages" in str(Path(holdfast.__file__))
