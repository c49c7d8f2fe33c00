"""A Redis with the original script as the store of a worker: `holdfast worker --url redis://...`.

With it the worker program serves the queues of a Redis 6 that Qless programs use, without moving
them first. Tasks that need what the script can't do are refused when the worker starts: effects and
completion in one commit, workflows, schedules. The script stores neither results nor progress.
"""

import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from holdfast.compat.qless.script import RefusedCommand, Script
from holdfast.compat.qless.script_jobs import job_of, queues_of
from holdfast.errors import BadInput
from holdfast.jobs.history import RETRIED
from holdfast.jobs.records import Job, QueueCounts, WorkerJobs
from holdfast.jobs.reports import Refusal, Report, Reported, Take
from holdfast.limits import MAX_QLESS_SCRIPT_BYTES

__all__ = ["OPENER", "ScriptStore", "open_script_store", "read_script"]

OPENER: Final = f"{__name__}:open_script_store"  # for `tasks.loading.WorkerSource`
_UNCHECKED: Final = ("fail", "release")  # the script does not check that the caller holds the job


class ScriptStore:
    """The queues of one database of a Redis, as far as a worker needs them."""

    is_scripted = True  # runs the original's script: no transactions, notices or results
    name = ""  # it has no spaces

    def __init__(self, url: str, script: bytes) -> None:
        self._script = Script(url, script)
        self.jobs = ScriptJobs(self._script)

    def __enter__(self) -> "ScriptStore":
        return self

    def __exit__(self, *exc: object) -> None:
        self._script.close()


class ScriptJobs:
    """The calls of `store.jobs` that a worker makes, in the commands of the script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._held: dict[str, tuple[str, str]] = {}  # the queue and the data of jobs that run here
        self._names: set[str] = set()  # names under which jobs were popped

    # --- for the worker itself --------------------------------------------------------------------

    def report(self, reports: Sequence[Report], *, takes: Sequence[Take] = ()) -> Reported:
        """Settles jobs and renews locks, then takes the next jobs; see `Jobs.report`."""
        refused = self._send_reports(list(reports)) if reports else []
        jobs: list[Job] = []
        empty: set[str] = set()
        for take in takes:
            wanted = take.count
            for queue in take.queues:
                if wanted > 0 and queue not in empty:
                    popped = self._pop(queue, take.worker, wanted)
                    if len(popped) < wanted:
                        empty.add(queue)
                    wanted -= len(popped)
                    jobs += popped
        return Reported(refused=tuple(refused), jobs=tuple(jobs))

    def queues(self) -> list[QueueCounts]:
        """Returns how many jobs are in which list of each queue."""
        return queues_of(self._script.call("queues"))

    def peek(self, queue: str, count: int = 1) -> list[Job]:
        """Returns the next jobs of a queue."""
        return [job_of(each) for each in self._script.decoded("peek", queue, count)]

    def get(self, id: str) -> Job | None:
        """Returns a job; None if it does not exist."""
        found = self._script.decoded("get", id)
        return job_of(found) if found else None

    def worker(self, name: str) -> WorkerJobs:
        """Returns the jobs that a worker holds; the script's list also has some that it has
        lost."""
        found = self._script.decoded("workers", name)
        ids = [*(found.get("jobs") or ()), *(found.get("stalled") or ())]
        jobs = self._script.decoded("multiget", *ids) if ids else []
        held = [each["jid"] for each in jobs if each["worker"] == name]
        return WorkerJobs(jobs=tuple(held))

    def timeout(self, *ids: str) -> None:
        """Ends the locks of jobs, so that another worker gets them."""
        self._script.call("timeout", *ids)

    def worker_programs(self) -> list[Any]:
        """Returns nothing: the script keeps no records of worker programs."""
        return []

    def figures(self, *queues: str) -> list[Any]:
        """Returns nothing: the ages of jobs are not known."""
        return []

    def announce_worker(self, record: Any) -> None:
        """Does nothing: the script notes a worker's name when it pops."""

    def withdraw_worker(self, name: str) -> None:
        """Removes the names of the worker's slots from the list of workers."""
        if self._names:
            self._script.call("worker.deregister", *sorted(self._names))

    # --- for tasks --------------------------------------------------------------------------------

    def put(
        self,
        queue: str,
        klass: str = "",
        data: Any = None,
        *,
        id: str | None = None,
        delay: float = 0,
        priority: float | None = None,
        retries: float | None = None,
        tags: Sequence[Any] = (),
        depends: Sequence[str] = (),
        **unknown: Any,
    ) -> str:
        """Puts a job with the options that the script has."""
        if unknown:
            raise BadInput(f"the script of this Redis has no option {min(unknown)!r}")
        return self._script.put(
            queue,
            klass,
            data,
            id=id,
            delay=delay,
            priority=priority,
            retries=retries,
            tags=tags,
            depends=depends,
        )

    def complete(self, id: str, worker: str, *, next: str | None = None, **options: Any) -> str:
        """Completes a job, or moves it on to the queue `next`."""
        words: list[Any] = [] if next is None else ["next", next]
        for name, value in options.items():
            if name not in ("delay", "depends"):
                raise BadInput(f"the script of this Redis has no option {name!r} of complete")
            words += [name, value if name == "delay" else self._script.encoded(list(value))]
        queue, data = self._queue_and_data(id)
        return str(self._script.text("complete", id, worker, queue, data, *words))

    def fail(self, id: str, worker: str, group: str, message: str) -> str:
        """Fails a job in a group."""
        self._script.call("heartbeat", id, worker)
        return str(self._script.text("fail", id, worker, group, message))

    def retry(self, id: str, worker: str, *, delay: float = 0) -> int:
        """Puts a job back into its queue, and uses up a retry."""
        queue, _ = self._queue_and_data(id)
        return int(self._script.call("retry", id, queue, worker, delay))

    # --- internals --------------------------------------------------------------------------------

    def _pop(self, queue: str, worker: str, count: int) -> list[Job]:
        self._names.add(worker)
        popped = self._script.decoded("pop", queue, worker, count)
        with self._lock:
            for each in popped:
                self._held[each["jid"]] = queue, each["data"]
        return [job_of(each) for each in popped]

    def _send_reports(self, reports: list[Report]) -> list[Refusal]:
        """Sends all reports in one round trip, and in a second one what follows from them."""
        first = [self._words(each) for each in reports]
        refused: list[Refusal] = []
        second: list[list[Any]] = []
        for report, reply in zip(reports, self._script.call_all(first), strict=True):
            if isinstance(reply, RefusedCommand):
                if reply.kind is BadInput:
                    raise BadInput(reply.text)
                refused.append(Refusal(id=report.id, code=reply.kind.code, message=reply.text))
            else:
                second += _following(report)
            if report.what != "heartbeat":
                with self._lock:
                    self._held.pop(report.id, None)
        for reply in self._script.call_all(second):
            if isinstance(reply, RefusedCommand) and reply.kind is BadInput:
                raise BadInput(reply.text)
        return refused

    def _words(self, report: Report) -> list[Any]:
        """Returns the command for a report; a heartbeat for one that the script does not check,
        which fails if the caller no longer holds the job."""
        if report.puts or report.steps or report.depends or report.awaits:
            raise BadInput(
                "the script of this Redis can't put jobs in the commit that completes another",
                hint="Put them in the task itself: other_task.put(run.store, ...).",
            )
        id, worker = report.id, report.worker
        if report.what == "heartbeat" or report.what in _UNCHECKED:
            return ["heartbeat", id, worker]
        queue, data = self._queue_and_data(id)
        if report.what == "complete":
            return ["complete", id, worker, queue, data]
        if report.free:  # `retry` would use up a retry, so the job moves on to its own queue
            return ["complete", id, worker, queue, data, "next", queue, "delay", report.delay]
        reason = [report.group, report.message or ""] if report.group is not None else []
        return ["retry", id, queue, worker, report.delay, *reason]

    def _queue_and_data(self, id: str) -> tuple[str, str]:
        with self._lock:
            held = self._held.get(id)
        if held is not None:
            return held
        found = self._script.decoded("get", id) or {}
        return found.get("queue") or "", found.get("data") or "{}"


def _following(report: Report) -> list[list[Any]]:
    """Returns the commands after a report that was not refused."""
    match report.what:
        case "fail":
            group, message = report.group or "failed", report.message or ""
            return [["fail", report.id, report.worker, group, message]]
        case "release":
            return [["timeout", report.id]]
        case "retry" if report.group is not None:
            reason = Script.encoded({"group": report.group, "message": report.message or ""})
            return [["log", report.id, RETRIED, reason]]
    return []


def open_script_store(url: str, script: str) -> ScriptStore:
    """Connects to a Redis whose jobs the script in the file `script` manages; see `read_script`."""
    return ScriptStore(url, read_script(script))


def read_script(path: str) -> bytes:
    """Returns the script of the file, or that of the installed package qless-py."""
    file = Path(path) if path else _installed()
    if file is None or not file.is_file():
        raise BadInput(
            f"{path!r} is not a file" if path else "there is no script of Qless here",
            hint="Install qless-py, which has it, or name the file: --qless-script qless.lua.",
        )
    if file.stat().st_size > MAX_QLESS_SCRIPT_BYTES:
        raise BadInput(f"{str(file)!r} is larger than {MAX_QLESS_SCRIPT_BYTES} bytes")
    return file.read_bytes()


def _installed() -> Path | None:
    found = importlib.util.find_spec("qless")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "qless-core" / "qless.lua"
