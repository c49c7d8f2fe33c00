"""Outcomes: how a run ends, and the exceptions that a task raises to choose its end.

A task that returns completes its job. It may raise `Retry`, `Fail` or `Snooze`; any other exception
is retried by the task's backoff while retries last.
"""

import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

import msgspec

from holdfast.jobs.history import RETRIED
from holdfast.jobs.records import Job, NewJob
from holdfast.jobs.steps import Step
from holdfast.limits import MAX_TASK_ERROR_CHARS, UNKNOWN_TASK_SECONDS, UNKNOWN_TASK_WAIT_SECONDS

__all__ = [
    "Fail",
    "Outcome",
    "Parked",
    "Retry",
    "Settled",
    "Snooze",
    "error_text",
    "failure_text",
    "unknown_task",
]

_PACKAGE_FOLDER: Final = str(Path(__file__).parent.parent)
_OMISSION: Final = "\n... [cut] ...\n"


class Retry(Exception):
    """Raised by a task that should run again, after `after` seconds or as its backoff says.

    That uses up a retry unless it is `free`.
    """

    def __init__(self, after: float | None = None, why: str = "", *, free: bool = False) -> None:
        super().__init__(why or "the task asked to be run again")
        self.after = after
        self.why = why
        self.free = free


class Fail(Exception):
    """Raised by a task that can't succeed: its job fails in `group`, whatever retries it has."""

    def __init__(self, group: str, message: str = "") -> None:
        super().__init__(message or group)
        self.group = group
        self.message = message


class Snooze(Exception):
    """Raised by a task that has nothing to do yet: it runs again after `seconds`, without using up
    a retry."""

    def __init__(self, seconds: float, why: str = "") -> None:
        super().__init__(why or f"snoozed for {seconds:g} s")
        self.seconds = seconds


class Settled(Exception):
    """Ends a run whose task has settled its job itself: nothing is left to report."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a run, for its job.

    "lost" means that another worker has the job, or that it was canceled: nothing is reported.
    `error` is the exception that the task raised, None if it returned.
    """

    what: Literal["complete", "retry", "fail", "release", "lost"]
    result: Any = None
    result_ttl: float | None = None
    error: BaseException | None = None
    delay: float = 0
    free: bool = False
    group: str | None = None
    message: str | None = None
    steps: tuple[Step, ...] = ()
    awaits: str = ""
    depends: tuple[str, ...] = ()
    puts: tuple[NewJob, ...] = ()

    @property
    def problem(self) -> BaseException | None:
        """The exception to show in error reports and traces; None if there is none.

        A job that failed has one, and so has one that is retried after an exception. `Snooze` and
        `Retry` are raised on purpose, so only the exception that they were raised from counts.
        """
        if self.what == "retry" and isinstance(self.error, Retry | Snooze):
            return self.error.__cause__
        return self.error if self.what in ("retry", "fail") else None


class Parked(BaseException):
    """Ends the run of a workflow that waits; its slot is free meanwhile.

    An `except Exception` in the workflow does not catch it.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def unknown_task(job: Job) -> Outcome:
    """Hands back a job whose task this worker does not have: another one may have it.

    During a rollout, workers of the old version see jobs of the new one. After an hour the job
    fails. The time comes from the job's history, whose last entry is the pop.
    """
    group = f"{job.queue}-unknown-task"
    message = f"no worker has a task {job.klass!r}"
    begun = [
        entry.when
        for entry in job.history
        if entry.what == RETRIED and entry.more.get("group") == group
    ]
    now = job.history[-1].when if job.history else 0
    if begun and now - begun[0] >= UNKNOWN_TASK_SECONDS:
        return Outcome(what="fail", group=group, message=message)
    first, most = UNKNOWN_TASK_WAIT_SECONDS
    delay = min(most, first * 2 ** min(len(begun), 10))
    return Outcome(what="retry", free=True, delay=delay, group=group, message=message)


def error_text(error: BaseException) -> str:
    """Returns an exception in one line: its class and its message.

    >>> error_text(ValueError("no such address"))
    'ValueError: no such address'
    """
    try:
        message = str(error)
    except Exception:  # whatever a `__str__` raises, the job has to be settled
        message = "(no message)"
    name = type(error).__name__
    return _shortened(f"{name}: {message}" if message else name)


def failure_text(error: BaseException) -> str:
    """Returns an exception with its traceback, from the task's own code on."""
    try:
        lines = traceback.format_exception(type(error), error, _task_frames(error.__traceback__))
    except Exception:  # a `__str__` that raises, or a chain that is too deep
        return error_text(error)
    return _shortened("".join(lines))


def _task_frames(trace: TracebackType | None) -> TracebackType | None:
    """Returns the traceback without the frames of Holdfast that lead to the task."""
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_PACKAGE_FOLDER):
        found = found.tb_next
    return found or trace


def _shortened(text: str) -> str:
    """Returns a text, without its middle if it is long: the ends of a traceback say the most."""
    if len(text) <= MAX_TASK_ERROR_CHARS:
        return text
    half = (MAX_TASK_ERROR_CHARS - len(_OMISSION)) // 2
    return text[:half] + _OMISSION + text[-half:]
