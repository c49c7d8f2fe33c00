"""The health of a worker over HTTP: `/livez`, `/readyz` and `/metrics`."""

import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Self

from holdfast.errors import BadInput, HoldfastError
from holdfast.limits import HEALTH_SECONDS, MAX_WORKER_NAMES
from holdfast.tasks.worker_figures import BUCKETS, Histogram, WorkerFigures

if TYPE_CHECKING:
    from holdfast.jobs.queue_figures import QueueFigures
    from holdfast.tasks.worker import Worker

__all__ = ["HealthServer", "metrics_text"]

_STATES: Final = (
    *("waiting", "running", "stalled", "scheduled", "depends", "throttled", "recurring"),
)


class HealthServer:
    """Answers probes and scrapers in threads; does nothing without an address."""

    def __init__(self, address: str, worker: "Worker", where: Any) -> None:
        self.address = ""
        self._server: ThreadingHTTPServer | None = None
        if not address:
            return
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise BadInput(
                f"{address!r} is not an address", hint="Write HOST:PORT, as 127.0.0.1:9990."
            )
        answers = _answers(worker, where)

        class Handler(BaseHTTPRequestHandler):
            timeout = HEALTH_SECONDS

            def do_GET(self) -> None:
                answer = answers.get(self.path.partition("?")[0])
                status, text = (404, "there is /livez, /readyz and /metrics\n")
                if answer is not None:
                    status, text = answer()
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Logs nothing: probes come every few seconds."""

        self._server = ThreadingHTTPServer((host.strip("[]"), int(port)), Handler)
        self._server.daemon_threads = True
        self.address = f"{host}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        if self._server is not None:
            threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


def _answers(worker: "Worker", where: Any) -> dict[str, Callable[[], tuple[int, str]]]:
    def ready() -> tuple[int, str]:
        if worker.is_paused:
            return 503, "paused\n"
        try:
            where.jobs.queues()
        except HoldfastError as error:
            return 503, f"the store does not answer: {error.code}\n"
        return 200, "ok\n"

    def metrics() -> tuple[int, str]:
        try:
            queues = where.jobs.queues()
            served = [each.name for each in queues if worker.served.wants(each.name)]
            served = served[:MAX_WORKER_NAMES]
            found = where.jobs.figures(*served) if served else []
            return 200, metrics_text(worker.figures, found, worker)
        except HoldfastError as error:
            return 503, f"# the store does not answer: {error.code}\n"

    return {"/livez": lambda: (200, "ok\n"), "/readyz": ready, "/metrics": metrics}


def metrics_text(figures: WorkerFigures, queues: "Sequence[QueueFigures]", worker: "Worker") -> str:
    """Returns the figures of a worker and of its queues in the Prometheus text format."""
    lines = [
        "# HELP holdfast_jobs Jobs of a queue by state.",
        "# TYPE holdfast_jobs gauge",
    ]
    for queue in queues:
        for state in _STATES:
            labels = f'queue="{_escaped(queue.counts.name)}",state="{state}"'
            lines.append(f"holdfast_jobs{{{labels}}} {getattr(queue.counts, state)}")
    lines += [
        "# HELP holdfast_jobs_oldest_seconds "
        "Seconds since the oldest waiting job of a queue entered it.",
        "# TYPE holdfast_jobs_oldest_seconds gauge",
    ]
    for queue in queues:
        label = f'queue="{_escaped(queue.counts.name)}"'
        lines.append(f"holdfast_jobs_oldest_seconds{{{label}}} {queue.oldest_age:.3f}")
    lines += [
        "# HELP holdfast_worker_slots Slots of this worker that run a job, and all.",
        "# TYPE holdfast_worker_slots gauge",
        f'holdfast_worker_slots{{state="busy"}} {len(worker.runs)}',
        f'holdfast_worker_slots{{state="all"}} {len(worker.slots)}',
        "# HELP holdfast_worker_runs_total Runs that have ended, by queue and outcome.",
        "# TYPE holdfast_worker_runs_total counter",
    ]
    for (queue_name, what), count in sorted(figures.ended.items()):
        labels = f'queue="{_escaped(queue_name)}",outcome="{what}"'
        lines.append(f"holdfast_worker_runs_total{{{labels}}} {count}")
    lines += _histograms(
        "holdfast_worker_run_seconds", "How long runs took.", dict(figures.run_seconds)
    )
    lines += _histograms(
        "holdfast_worker_wait_seconds", "How long jobs waited.", dict(figures.wait_seconds)
    )
    return "\n".join(lines) + "\n"


def _histograms(name: str, help: str, by_queue: dict[str, Histogram]) -> list[str]:
    lines = [f"# HELP {name} {help}", f"# TYPE {name} histogram"]
    for queue, histogram in sorted(by_queue.items()):
        label, below = f'queue="{_escaped(queue)}"', 0
        for bound, count in zip((*BUCKETS, "+Inf"), histogram.counts, strict=True):
            below += count
            lines.append(f'{name}_bucket{{{label},le="{bound}"}} {below}')
        lines.append(f"{name}_sum{{{label}}} {histogram.sum:.6f}")
        lines.append(f"{name}_count{{{label}}} {histogram.count}")
    return lines


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
