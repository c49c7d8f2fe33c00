"""Heartbeats: one thread renews the locks of all runs of a process, in one call.

It also sends their progress and log lines. If a renewal is refused, the lock is lost, and the run
is told.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from holdfast.jobs.records import Job
from holdfast.jobs.reports import Report
from holdfast.limits import ABANDON_RUN_SECONDS, CHILD_REPORT_SECONDS, HEARTBEATS_PER_LOCK
from holdfast.tasks.run import Run, UnsentProgress

__all__ = ["Heartbeats", "LockRenewal"]

_log: Final = logging.getLogger("holdfast.tasks")


class LockRenewal:
    """A run whose lock is renewed."""

    __slots__ = ("give_up", "interrupt", "job", "lock_seconds", "next", "run")

    def __init__(
        self, job: Job, run: Run, lock_seconds: float, interrupt: Callable[[], None]
    ) -> None:
        self.job = job
        self.run = run
        self.lock_seconds = lock_seconds
        self.interrupt = interrupt
        self.give_up: Callable[[], None] | None = None  # for a run that does not end when told to
        self.next = 0.0  # when it is due, by `time.monotonic`

    def report(self, unsent: UnsentProgress) -> Report:
        """Returns the heartbeat, with the run's progress and log lines."""
        return Report(
            id=self.job.id,
            worker=self.job.worker,
            what="heartbeat",
            lock=self.job.lock,
            lock_seconds=self.lock_seconds,
            progress=unsent.progress,
            progress_text=unsent.progress_text,
            log=unsent.log,
        )


class Heartbeats:
    """The thread that renews locks."""

    def __init__(self, jobs: Any) -> None:
        self._jobs = jobs  # of a store or client: what `report` is called on
        self._lock = threading.Lock()
        self._renewals: dict[str, LockRenewal] = {}
        self._wake = threading.Event()
        self._is_closed = False
        self._is_asleep = False
        self._was_used = False  # since the thread looked
        self._thread: threading.Thread | None = None

    def add(self, renewal: LockRenewal, *, at_once: bool = False) -> None:
        """Renews the lock of a run from now on."""
        wait = 0.0 if at_once else renewal.lock_seconds / HEARTBEATS_PER_LOCK
        renewal.next = time.monotonic() + wait
        with self._lock:
            self._renewals[renewal.job.id] = renewal
            self._was_used = True
            was_asleep, self._is_asleep = self._is_asleep, False
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._renew_regularly, name="holdfast-heartbeats", daemon=True
                )
                self._thread.start()
        if was_asleep or wait < CHILD_REPORT_SECONDS:
            self._wake.set()

    def remove(self, job: Job) -> None:
        """Stops renewing the lock of a run that has ended."""
        with self._lock:
            found = self._renewals.get(job.id)
            if found is not None and found.job.lock == job.lock:
                del self._renewals[job.id]

    def beat_now(self, run: Run) -> None:
        """Renews the lock of one run, in the caller's thread."""
        with self._lock:
            found = self._renewals.get(run.job.id)
        if found is not None:
            self._send([found])

    def close(self) -> None:
        """Ends the thread."""
        self._is_closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    # --- how it is done ---------------------------------------------------------------------------

    def _renew_regularly(self) -> None:
        while not self._is_closed:
            self._wake.wait(self._pause())
            self._wake.clear()
            now = time.monotonic()
            with self._lock:
                running = list(self._renewals.values())
            self._stop_late(running)
            due = [each for each in running if each.next <= now or each.run.has_unsent]
            if due:
                self._send(due)

    def _pause(self) -> float:
        """Returns how long to wait; new progress can arrive at any time.

        Without runs the thread sleeps until `add` wakes it, but only after a pause without a new
        run: otherwise each short run would wake it.
        """
        with self._lock:
            if not self._renewals and not self._was_used:
                self._is_asleep = True
                return 60.0  # `add` wakes it
            self._was_used = False
            if not self._renewals:
                return CHILD_REPORT_SECONDS
            first = min(each.next for each in self._renewals.values())
        return max(0.0, min(CHILD_REPORT_SECONDS, first - time.monotonic()))

    def _stop_late(self, running: Iterable[LockRenewal]) -> None:
        now = time.monotonic()
        for each in running:
            if each.run.deadline is None or now <= each.run.deadline:
                continue
            if each.run.stopped is None:
                each.run.time_out()
                each.interrupt()
            elif each.give_up is not None and now > each.run.deadline + ABANDON_RUN_SECONDS:
                self.remove(each.job)
                each.give_up()

    def _send(self, due: list[LockRenewal]) -> None:
        unsent = [each.run.take_unsent() for each in due]
        reports = [each.report(words) for each, words in zip(due, unsent, strict=True)]
        try:
            refused = {each.id: each for each in self._jobs.report(reports).refused}
        except Exception:  # the store may be back before the locks end
            _log.exception("%d heartbeats could not be sent", len(due))
            for each, words in zip(due, unsent, strict=True):
                each.run.give_back(words)
                each.next = time.monotonic() + CHILD_REPORT_SECONDS
            return
        for each in due:
            each.next = time.monotonic() + each.lock_seconds / HEARTBEATS_PER_LOCK
            refusal = refused.get(each.job.id)
            if refusal is not None and self._is_running(each):
                self.remove(each.job)
                each.run.mark_lost(refusal.code, refusal.message)
                each.interrupt()

    def _is_running(self, renewal: LockRenewal) -> bool:
        with self._lock:
            return self._renewals.get(renewal.job.id) is renewal
