"""`Run`: what a running task can learn from its worker, and report to it."""

import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from random import random
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeVar, overload
from uuid import UUID, uuid4

import msgspec

from holdfast.errors import BadArgument, BadTask, Canceled, JobLost, TaskTimedOut
from holdfast.jobs.logs import LogLine
from holdfast.jobs.records import Job, NewJob, Tag
from holdfast.limits import MAX_JOB_LOG_LINES
from holdfast.tasks.sandboxes import Sandboxes

if TYPE_CHECKING:
    from holdfast.errors import ChildFailed
    from holdfast.tasks.backoff import Backoff
    from holdfast.tasks.task import Puts, TaskCall

__all__ = ["HEADER", "Level", "Run", "RunJob", "Told", "UnsentProgress"]

P = ParamSpec("P")
R = TypeVar("R")
HEADER: Final = "$"  # begins keys of a job's data that are not arguments: `$traceparent`
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
        """Returns what a run shows of a popped job."""
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


class UnsentProgress(msgspec.Struct, frozen=True):
    """The progress and log lines of a run that were not sent yet."""

    progress: float | None = None
    progress_text: str = ""
    log: tuple[LogLine, ...] = ()

    def __bool__(self) -> bool:
        return self.progress is not None or bool(self.log)


Told = UnsentProgress  # its former name, which programs may import


class Run:
    """One attempt at one job by a worker. A task gets it through a parameter annotated `Run`.

    Progress and log lines are sent with the next heartbeat or with the outcome, so they cost
    nothing extra. In a task with `Tx` they are part of its transaction, or of the report of its
    failure.
    """

    def __init__(
        self,
        job: Job,
        store: Any,
        *,
        clock: Callable[[], float] = time.time,
        beat: Callable[["Run"], None] | None = None,
        sandboxes: Sandboxes | None = None,
        slot: int = 0,
    ) -> None:
        self._job = job
        self.store = store  # the store, space or client that the worker is on
        self._clock = clock
        self._beat = beat
        self._lock = threading.Lock()
        self._unsent = UnsentProgress()
        self._puts: list[NewJob] = []
        self._stopped: Exception | None = None
        self.deadline: float | None = None  # by `time.monotonic`
        self._memory: Any = None  # of a workflow
        self._sandboxes = sandboxes
        self._slot = slot
        self._sandbox: Path | None = None

    @cached_property
    def job(self) -> RunJob:
        """The job that runs."""
        return RunJob.of(self._job)

    @property
    def sandbox(self) -> Path:
        """Returns the directory of the run's slot: empty at first, and emptied after the run."""
        with self._lock:
            if self._sandbox is None:
                if self._sandboxes is None:
                    self._sandboxes = Sandboxes()
                self._sandbox = self._sandboxes.make(self._slot)
            return self._sandbox

    def remove_sandbox(self) -> None:
        """Removes the run's directory, if the task has used it."""
        if self._sandbox is not None and self._sandboxes is not None:
            self._sandboxes.remove(self._sandbox)

    @property
    def headers(self) -> dict[str, str]:
        """Returns the headers that middleware added when the job was put, such as `traceparent`."""
        data = self.job.data if isinstance(self.job.data, dict) else {}
        return {
            name.removeprefix(HEADER): value
            for name, value in data.items()
            if name.startswith(HEADER) and isinstance(value, str)
        }

    # --- reporting --------------------------------------------------------------------------------

    def progress(self, fraction: float, text: str = "") -> None:
        """Reports the task's progress, from 0 to 1; it is shown with the job."""
        if not 0 <= fraction <= 1:
            raise BadArgument(f"progress must be a number from 0 to 1, not {fraction!r:.100}")
        with self._lock:
            self._unsent = msgspec.structs.replace(
                self._unsent, progress=float(fraction), progress_text=text
            )

    def log(self, level: Level, text: str) -> None:
        """Writes a line into the job's log; its newest lines are kept."""
        line = LogLine(text, level, self._clock())
        with self._lock:
            lines = (*self._unsent.log[1 - MAX_JOB_LOG_LINES :], line)
            self._unsent = msgspec.structs.replace(self._unsent, log=lines)

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
        """Returns whether another worker may have the job, or it was canceled; then the outcome of
        this run is ignored."""
        return isinstance(self._stopped, JobLost | Canceled)

    def check(self) -> None:
        """Raises `JobLost`, `Canceled` or `TaskTimedOut` if the run should stop."""
        if self._stopped is None and self.deadline is not None and time.monotonic() > self.deadline:
            self.time_out()
        if self._stopped is not None:
            raise self._stopped

    # --- workflows: remembered steps --------------------------------------------------------------

    def step(
        self,
        function: Callable[..., R],
        *args: Any,
        retries: int = 0,
        backoff: "Backoff | None" = None,
        **kwargs: Any,
    ) -> R:
        """Runs the function once and keeps its result, which later runs of the workflow get.

        With `retries`, an exception ends the run, and the step is tried again after `backoff`.
        """
        result: R = self._workflow_memory.step(
            function, args, kwargs, retries=retries, backoff=backoff
        )
        return result

    def transact(self, function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Runs `function(tx, ...)` in a transaction that also remembers it: exactly once.

        On a server the function gets a batch instead of a transaction.
        """
        result: R = self._workflow_memory.transact(function, args, kwargs)
        return result

    def sleep(
        self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Pauses the workflow for that time; its slot is free meanwhile."""
        pause = seconds + 60 * (minutes + 60 * (hours + 24 * days))
        return self._workflow_memory.sleep(pause)  # type: ignore[no-any-return]  # None, or what is awaited

    def wait(self, signal: str, *, timeout: float | None = None, default: Any = None) -> Any:
        """Waits for a signal and returns its value, or `default` after `timeout` seconds.

        Signals are sent with `workflow.signal(store, id, name, value)`, or `jobs.signal`.
        """
        return self._workflow_memory.wait(signal, timeout, default)

    @overload
    def gather(self, calls: "Sequence[TaskCall[R]]") -> list[R]: ...
    @overload
    def gather(
        self, calls: "Sequence[TaskCall[R]]", *, return_errors: Literal[True]
    ) -> "list[R | ChildFailed]": ...
    def gather(self, calls: "Sequence[TaskCall[Any]]", *, return_errors: bool = False) -> Any:
        """Puts a child job for each of `calls` and returns their results when all are settled.

        A failed child raises `ChildFailed`; with `return_errors`, the error is in the list instead.
        """
        return self._workflow_memory.gather(calls, return_errors)

    def version(self, name: str) -> bool:
        """Returns whether this workflow takes a code path that was added later.

        It is False for a workflow that had passed this place before the path existed.
        """
        is_new: bool = self._workflow_memory.version(name)
        return is_new

    def now(self) -> float:
        """Returns the time; in a workflow it is the same in each run."""
        if self._memory is None:
            return self._clock()
        now: float = self._memory.remember_value("now", self._clock, float)
        return now

    def uuid(self) -> UUID:
        """Returns a random UUID; in a workflow it is the same in each run."""
        if self._memory is None:
            return uuid4()
        made: UUID = self._memory.remember_value("uuid", uuid4, UUID)
        return made

    def random(self) -> float:
        """Returns a random number from 0 to 1; in a workflow it is the same in each run."""
        if self._memory is None:
            return random()
        made: float = self._memory.remember_value("random", random, float)
        return made

    @property
    def _workflow_memory(self) -> Any:
        if self._memory is None:
            raise BadTask(
                f"task {self.job.task} is not a workflow, so nothing of it can be remembered",
                hint="Declare it with @tasks.workflow.",
            )
        return self._memory

    # --- for workers ------------------------------------------------------------------------------

    @property
    def stopped(self) -> Exception | None:
        """Returns why the run should end, if it should."""
        return self._stopped

    def mark_lost(self, code: str, message: str) -> None:
        """Stops the run because its lock was refused; `code` is that of a `Refusal`."""
        self.stop(Canceled(message) if code == "unknown_job" else JobLost(message))

    def time_out(self) -> None:
        """Notes that the run has taken longer than its task may."""
        self.stop(TaskTimedOut(f"task {self.job.task} took longer than its timeout"))

    def stop(self, reason: Exception) -> None:
        """Makes `check` raise `reason`; the first reason counts."""
        if self._stopped is None:
            self._stopped = reason

    def remember_with(self, memory: Any) -> None:
        """Makes the run one of a workflow."""
        self._memory = memory

    def awaitable_of(self, value: Any) -> Any:
        """Returns what to await when an async task has returned `value`."""
        return value if self._memory is None else self._memory.await_workflow(value)

    def take_unsent(self) -> UnsentProgress:
        """Returns progress and log lines that were not sent yet, and forgets them."""
        with self._lock:
            unsent, self._unsent = self._unsent, UnsentProgress()
        return unsent

    def give_back(self, unsent: UnsentProgress) -> None:
        """Keeps progress and log lines that could not be sent, for the next report."""
        with self._lock:
            newer = self._unsent
            is_newer = newer.progress is not None
            self._unsent = UnsentProgress(
                newer.progress if is_newer else unsent.progress,
                newer.progress_text if is_newer else unsent.progress_text,
                (*unsent.log, *newer.log)[-MAX_JOB_LOG_LINES:],
            )

    @property
    def has_unsent(self) -> bool:
        """Returns whether there is something to send."""
        return bool(self._unsent)

    @property
    def puts(self) -> tuple[NewJob, ...]:
        """The jobs to put with the completion."""
        return tuple(self._puts)

    def disable_heartbeat(self) -> None:
        """Makes `heartbeat` only `check`: inside a transaction it can't wait for another one."""
        self._beat = None

    def reset(self) -> None:
        """Forgets progress, log lines and puts, before the work of a transaction runs again."""
        self.take_unsent()
        self._puts.clear()

    # Former names, which programs may call.
    lose = mark_lost
    followed = awaitable_of
    take_told = take_unsent
    has_told = has_unsent
    keep_quiet = disable_heartbeat
    begin_again = reset
