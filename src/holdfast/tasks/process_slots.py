"""Slots in child processes: a run can be killed, and its crash hurts no other run.

The worker itself fetches and settles jobs and renews locks. A child receives a job through a pipe,
runs it and sends back the report; it opens the store only for a task that needs it.
"""

import logging
import os
import subprocess
import sys
import threading
import time
from typing import IO, Any, Final

import msgspec

from holdfast.errors import ProcessDied
from holdfast.jobs.reports import Report
from holdfast.limits import CRASH_BACKOFF_SECONDS, CRASH_LOOP_SECONDS
from holdfast.tasks.execution import Attempt
from holdfast.tasks.loading import WorkerSource
from holdfast.tasks.outcomes import Outcome
from holdfast.tasks.pipes import receive, send
from holdfast.tasks.run import UnsentProgress
from holdfast.tasks.sandboxes import Sandboxes
from holdfast.tasks.slots import Done, Finished, end_of_run

__all__ = ["ProcessSlot"]

_log: Final = logging.getLogger("holdfast.tasks")


class ProcessSlot:
    """A child process that runs one job at a time, and is replaced when it ends."""

    kind = "process"
    continues = False

    def __init__(
        self,
        name: str,
        number: int,
        done: Done,
        source: WorkerSource,
        sandboxes: Sandboxes,
        *,
        max_jobs: int | None = None,
        max_memory_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.number = number
        self._done = done
        self._source = source
        self._sandboxes = sandboxes
        self._max_jobs = max_jobs
        self._max_memory = max_memory_bytes
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._crashes = 0
        self._last_status: int | None = None
        self._next_run = _NextRun()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The process that runs the slot's jobs now."""
        child = self._child
        return None if child is None else child.process.pid

    def start(self, attempt: Attempt) -> None:
        """Gives the child its next run."""
        self._next_run.put(attempt)

    def interrupt(self) -> None:
        """Kills the child; the slot gets another one."""
        with self._lock:
            if self._child is not None:
                self._child.process.kill()

    def close(self, timeout: float | None = None) -> None:
        """Ends the child when its run has ended, or kills it after `timeout` seconds."""
        self._next_run.put(None)
        self._thread.join(timeout)
        if self._thread.is_alive():
            self.interrupt()
            self._thread.join()

    # --- how it is done ---------------------------------------------------------------------------

    def _serve(self) -> None:
        while (attempt := self._next_run.take()) is not None:
            self._done(self._run_in_child(attempt))
        self._end_child()

    def _run_in_child(self, attempt: Attempt) -> Finished:
        begun = time.monotonic()
        try:
            child = self._ready_child()
            send(child.jobs, attempt.job)
            report, what = self._receive_report(child, attempt)
        except (OSError, _PipeClosed):
            self._end_child()
            return self._crashed(attempt, time.monotonic() - begun)
        self._crashes = 0
        if child.is_spent(self._max_jobs, self._max_memory):
            self._end_child()
        return Finished(self, attempt, Outcome(what=what), report)

    def _receive_report(self, child: "_Child", attempt: Attempt) -> tuple[Report | None, Any]:
        """Passes progress and log lines on until the report arrives."""
        while (message := receive(child.reports)) is not None:
            if "unsent" in message:
                attempt.run.give_back(msgspec.convert(message["unsent"], UnsentProgress))
                continue
            child.note(message["memory"])
            report = message["report"]
            settled = None if report is None else msgspec.convert(report, Report)
            return settled, message["what"]
        raise _PipeClosed

    def _crashed(self, attempt: Attempt, seconds: float) -> Finished:
        """Returns the end of a run whose process is gone."""
        stopped = attempt.run.stopped
        if stopped is None:
            status = self._last_status
            killed = status is not None and status < 0
            how = f"by signal {-status}" if killed and status else f"with status {status}"
            stopped = ProcessDied(f"the process that ran the job ended {how}")
            _log.warning("job %s: %s", attempt.job.id, stopped)
            if seconds < CRASH_LOOP_SECONDS:
                self._crashes += 1
        return end_of_run(self, attempt, lambda: attempt.outcome_of(stopped))

    def _ready_child(self) -> "_Child":
        with self._lock:
            if self._child is not None:
                return self._child
        if self._crashes > 1:
            first, most = CRASH_BACKOFF_SECONDS
            self._next_run.pause(min(most, first * 2 ** min(self._crashes - 2, 10)))
        child = _Child(self._source, self._sandboxes, self.number)
        with self._lock:
            self._child = child
        return child

    def _end_child(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            self._last_status = child.close()


class _PipeClosed(Exception):
    """The child has closed its end of the pipe."""


class _NextRun:
    """The next run of a slot; a pause that the end of the slot cuts short."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: list[Attempt | None] = []

    def put(self, attempt: Attempt | None) -> None:
        with self._condition:
            self._waiting.append(attempt)
            self._condition.notify_all()

    def take(self) -> Attempt | None:
        with self._condition:
            self._condition.wait_for(lambda: self._waiting)
            return self._waiting.pop(0)

    def pause(self, seconds: float) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._waiting, seconds)


class _Child:
    """A child process and its two pipes."""

    def __init__(self, source: WorkerSource, sandboxes: Sandboxes, slot: int) -> None:
        self._sandboxes = sandboxes
        self._folder = sandboxes.make(slot)  # a child that is killed can't remove its own sandbox
        job_end, self._job_pipe = os.pipe()
        self._report_pipe, report_end = os.pipe()
        encoded = msgspec.json.encode(source).decode()
        arguments = [str(job_end), str(report_end), encoded, str(self._folder)]
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "holdfast.tasks.child", *arguments],
                pass_fds=(job_end, report_end),
                stdin=subprocess.DEVNULL,
            )
        finally:
            os.close(job_end)
            os.close(report_end)
        self.jobs: IO[bytes] = os.fdopen(self._job_pipe, "wb")
        self.reports: IO[bytes] = os.fdopen(self._report_pipe, "rb")
        self._runs = 0
        self._memory = 0

    def note(self, memory_bytes: int) -> None:
        """Counts a run that has ended."""
        self._runs += 1
        self._memory = memory_bytes

    def is_spent(self, max_jobs: int | None, max_memory: int | None) -> bool:
        """Returns whether the process should be replaced."""
        has_run = max_jobs is not None and self._runs >= max_jobs
        return has_run or (max_memory is not None and self._memory > max_memory)

    def close(self) -> int | None:
        """Ends the process, which sees the end of its pipe, and returns its status."""
        for pipe in (self.jobs, self.reports):
            try:
                pipe.close()
            except OSError:  # the process was gone with a job half written
                continue
        try:
            return self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self._sandboxes.remove(self._folder)
