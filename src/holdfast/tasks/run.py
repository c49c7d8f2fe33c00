"""`Run`: what a running task may ask and tell."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec

import msgspec

from holdfast.errors import BadArgument, Canceled, JobLost, TaskTimedOut
from holdfast.jobs.logs import LogLine
from holdfast.jobs.records import Job, NewJob, Tag
from holdfast.limits import MAX_JOB_LOG_LINES

if TYPE_CHECKING:
    from holdfast.tasks.task import Puts

__all__ = ["HEADER", "Level", "Run", "RunJob", "Told"]

P = ParamSpec("P")
HEADER: Final = "$"  # keys of a job's data that begin so are no arguments: `$traceparent`
Level = Literal["debug", "info", "warning", "error"]


class RunJob(msgspec.Struct, frozen=True, kw_only=True):
    """The job of a run: `attempt` counts from 1, `retries_left` is what remains after this one."""

    id: str
    task: str
    queue: str
    data: Any
    tags: tuple[Tag, ...]
    attempt: int
    retries_left: int
    priority: float
    worker: str
    lock: int
    spawned_from: str | None

    @classmethod
    def of(cls, job: Job) -> "RunJob":
        """Returns what a run shows of a job that was popped."""
        return cls(
            id=job.id,
            task=job.klass,
            queue=job.queue,
            data=job.data,
            tags=job.tags,
            attempt=max(1, int(job.retries - job.remaining) + 1),
            retries_left=max(0, int(job.remaining)),
            priority=job.priority,
            worker=job.worker,
            lock=job.lock,
            spawned_from=job.spawned_from,
        )


class Told(msgspec.Struct, frozen=True):
    """What a run has told since the last report."""

    progress: float | None = None
    progress_text: str = ""
    log: tuple[LogLine, ...] = ()

    def __bool__(self) -> bool:
        return self.progress is not None or bool(self.log)


class Run:
    """One attempt at one job by a worker. A task gets it by a parameter that is annotated so.

    Progress and log lines are sent with the next heartbeat or with the outcome, so telling them
    costs nothing. In a task with `Tx` they are part of its transaction, or of the report that it
    failed.
    """

    def __init__(
        self,
        job: Job,
        store: Any,
        *,
        clock: Callable[[], float] = time.time,
        beat: Callable[["Run"], None] | None = None,
    ) -> None:
        self.job = RunJob.of(job)
        self.store = store  # the store, space or client that the worker is on
        self._clock = clock
        self._beat = beat
        self._lock = threading.Lock()
        self._told = Told()
        self._puts: list[NewJob] = []
        self._stopped: Exception | None = None
        self.deadline: float | None = None  # by `time.monotonic`

    @property
    def headers(self) -> dict[str, str]:
        """What middleware sent along when the job was put, as `traceparent`."""
        data = self.job.data if isinstance(self.job.data, dict) else {}
        return {
            name.removeprefix(HEADER): value
            for name, value in data.items()
            if name.startswith(HEADER) and isinstance(value, str)
        }

    # --- telling ----------------------------------------------------------------------------------

    def progress(self, fraction: float, text: str = "") -> None:
        """Tells how far the task has come, from 0 to 1: people see it with the job."""
        if not 0 <= fraction <= 1:
            raise BadArgument(f"progress is a number from 0 to 1, not {fraction!r:.100}")
        with self._lock:
            self._told = msgspec.structs.replace(
                self._told, progress=float(fraction), progress_text=text
            )

    def log(self, level: Level, text: str) -> None:
        """Writes a line into the job's log; its newest lines are kept."""
        line = LogLine(text, level, self._clock())
        with self._lock:
            lines = (*self._told.log[1 - MAX_JOB_LOG_LINES :], line)
            self._told = msgspec.structs.replace(self._told, log=lines)

    def put_next(self, task: "Puts[P, Any]", *args: P.args, **kwargs: P.kwargs) -> None:
        """Puts a job of another task in the commit that completes this one."""
        self._puts.append(task.new_job(*args, **kwargs))

    # --- the lock ---------------------------------------------------------------------------------

    def heartbeat(self) -> None:
        """Renews the job's lock now, and then does what `check` does.

        The worker renews it by itself, so this is rarely needed.
        """
        if self._beat is not None:
            self._beat(self)
        self.check()

    @property
    def is_lost(self) -> bool:
        """Whether another worker may have the job, or it was canceled: its outcome won't count."""
        return isinstance(self._stopped, JobLost | Canceled)

    def check(self) -> None:
        """Returns if the run should go on; raises `JobLost`, `Canceled` or `TaskTimedOut`."""
        if self._stopped is None and self.deadline is not None and time.monotonic() > self.deadline:
            self.time_out()
        if self._stopped is not None:
            raise self._stopped

    # --- for workers ------------------------------------------------------------------------------

    @property
    def stopped(self) -> Exception | None:
        """Why the run should end, if it should."""
        return self._stopped

    def lose(self, code: str, message: str) -> None:
        """Notes that the job's lock was refused; `code` is that of a `Refusal`."""
        self.stop(Canceled(message) if code == "unknown_job" else JobLost(message))

    def time_out(self) -> None:
        """Notes that the run has taken longer than its task may."""
        self.stop(TaskTimedOut(f"task {self.job.task} took longer than its timeout"))

    def stop(self, reason: Exception) -> None:
        """Has `check` raise `reason`; the first one counts."""
        if self._stopped is None:
            self._stopped = reason

    def take_told(self) -> Told:
        """Returns progress and log lines that were not sent yet, and forgets them."""
        with self._lock:
            told, self._told = self._told, Told()
        return told

    def give_back(self, told: Told) -> None:
        """Takes back what could not be sent."""
        with self._lock:
            newer = self._told
            is_newer = newer.progress is not None
            self._told = Told(
                newer.progress if is_newer else told.progress,
                newer.progress_text if is_newer else told.progress_text,
                (*told.log, *newer.log)[-MAX_JOB_LOG_LINES:],
            )

    @property
    def has_told(self) -> bool:
        """Whether there is something to send."""
        return bool(self._told)

    @property
    def puts(self) -> tuple[NewJob, ...]:
        """The jobs to put with the completion."""
        return tuple(self._puts)

    def keep_quiet(self) -> None:
        """Lets `heartbeat` only check: within a transaction another one can't be waited for."""
        self._beat = None

    def begin_again(self) -> None:
        """Forgets what was told and put: the work of a transaction runs again."""
        self.take_told()
        self._puts.clear()
