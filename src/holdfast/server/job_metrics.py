"""The metrics of a space's queues, for Prometheus."""

from collections.abc import Callable
from typing import Final

from holdfast.engine.contract import Reader
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.queue_figures import BOUNDS, QueueFigures, TimesFigures, figures
from holdfast.metrics import Metrics
from holdfast.metrics.prometheus import Family, Labels, Sample

_STATES: Final = ("waiting", "running", "stalled", "scheduled", "depends", "throttled")


def job_families(space: str, reader: Reader) -> list[Family]:
    """Returns the metric families of a space's queues; none if it has no queues."""
    found = figures(Ledger(reader, Metrics), reader.now)  # type: ignore[arg-type]  # it only reads
    if not found:
        return []
    labelled: list[tuple[QueueFigures, Labels]] = [
        (each, (("space", space), ("queue", each.counts.name))) for each in found
    ]
    states = [
        [Sample("", (*labels, ("state", state)), getattr(each.counts, state)) for state in _STATES]
        for each, labels in labelled
    ]
    return [
        Family("holdfast_jobs", "gauge", "Jobs of a queue by state.", states),
        Family(
            "holdfast_jobs_oldest_seconds",
            "gauge",
            "Seconds since the oldest waiting job of a queue entered it.",
            [[Sample("", labels, each.oldest_age)] for each, labels in labelled],
        ),
        _counter(labelled, "put", "Times that a job was put.", lambda each: each.puts),
        _counter(labelled, "started", "Jobs that workers took.", lambda each: each.wait.count),
        _counter(labelled, "completed", "Jobs that were completed.", lambda each: each.run.count),
        _counter(labelled, "failures", "Times that a job failed.", lambda each: each.failures),
        _counter(labelled, "retries", "Locks that ended.", lambda each: each.retries),
        Family(
            "holdfast_jobs_wait_seconds",
            "histogram",
            "How long jobs waited until a worker took them.",
            [_histogram(labels, each.wait) for each, labels in labelled],
        ),
        Family(
            "holdfast_jobs_run_seconds",
            "histogram",
            "How long jobs ran until they were completed.",
            [_histogram(labels, each.run) for each, labels in labelled],
        ),
    ]


def _counter(
    labelled: list[tuple[QueueFigures, Labels]],
    name: str,
    help_text: str,
    read: Callable[[QueueFigures], int],
) -> Family:
    series = [[Sample("_total", labels, read(each))] for each, labels in labelled]
    return Family(f"holdfast_jobs_{name}", "counter", help_text, series)


def _histogram(labels: Labels, times: TimesFigures) -> list[Sample]:
    """Returns the series of one histogram. Days whose histogram is gone count in the longest
    bucket."""
    buckets = [
        Sample("_bucket", (*labels, ("le", str(bound))), number)
        for bound, number in zip(BOUNDS, times.buckets, strict=True)
    ]
    return [
        *buckets,
        Sample("_bucket", (*labels, ("le", "+Inf")), times.count),
        Sample("_sum", labels, times.sum),
        Sample("_count", labels, times.count),
    ]
