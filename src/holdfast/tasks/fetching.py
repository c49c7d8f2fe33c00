"""Fetching: one thread of a process pops jobs for all free slots, and settles finished ones in the
same commit.

Jobs for a free slot are locked under the slot's name, prefetched ones under the worker's name.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from holdfast.errors import ServerBusy, StoreUnusable, Unanswered
from holdfast.jobs.ledger import READY
from holdfast.jobs.records import Job
from holdfast.jobs.reports import Report, Reported, Take
from holdfast.limits import MAX_PREFETCH, REMOTE_POLL_SECONDS
from holdfast.tasks.prefetching import Prefetched
from holdfast.tasks.slots import Finished, Slot

__all__ = ["TRANSIENT_ERRORS", "Fetcher", "QueueOrder", "Ready", "release_report", "strict"]

_log: Final = logging.getLogger("holdfast.tasks")

TRANSIENT_ERRORS: Final = (StoreUnusable, Unanswered, ServerBusy)
QueueOrder = Callable[[Sequence[str]], tuple[str, ...]]  # the queues in the order to ask them


def strict(queues: Sequence[str]) -> tuple[str, ...]:
    """Asks the first queue for as long as it has jobs, then the second, and so on."""
    return tuple(queues)


class Ready:
    """Wakes the fetcher: a slot is free, a queue may have a job, or the worker should stop."""

    def __init__(self) -> None:
        self.is_listening = False  # notices arrive; without them the fetcher looks every second
        self._event = threading.Event()
        self._subscription: Any = None
        self._thread: threading.Thread | None = None

    def set(self) -> None:
        """Wakes the fetcher, from any thread."""
        self._event.set()

    def wait(self, timeout: float | None) -> None:
        """Returns when something may have happened, or after `timeout` seconds."""
        self._event.wait(timeout)

    def clear(self) -> None:
        """Resets the event; call it before looking for work, so that no wake-up is missed."""
        self._event.clear()

    def listen(self, where: Any, is_wanted: Callable[[str], bool]) -> None:
        """Wakes for every notice that a queue may have a job; runs in its own thread.

        Does nothing if it listens already. It ends when the store is away for long: call it again.
        """
        if self.is_listening:
            return
        self._subscription = where.subscribe(READY)
        self.is_listening = True
        self._thread = threading.Thread(
            target=self._listen, args=(self._subscription, is_wanted), daemon=True
        )
        self._thread.name = "holdfast-ready"
        self._thread.start()

    def _listen(self, subscription: Any, is_wanted: Callable[[str], bool]) -> None:
        missed = 0
        try:
            while subscription is self._subscription:
                notice = subscription.get(REMOTE_POLL_SECONDS)
                name = "" if notice is None else notice.payload.decode()
                is_new = notice is not None and (not name or is_wanted(name))
                if is_new or subscription.missed > missed:
                    missed = subscription.missed
                    self._event.set()
        except Exception:
            if subscription is self._subscription:
                _log.exception("the worker gets no notices of new jobs, and polls meanwhile")
                subscription.close()
        finally:
            self.is_listening = False
            self._event.set()  # the fetcher may be waiting for a notice without a time limit

    def close(self) -> None:
        """Ends the thread."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.close()
        if self._thread is not None:
            self._thread.join(1.0)


class Fetcher:
    """Takes jobs for free slots, prefetches some, and settles what is finished, in one call."""

    def __init__(
        self,
        jobs: Any,
        slots: Sequence[Slot],
        queues: Callable[[], Sequence[str]],
        *,
        name: str,
        lock_seconds: float,
        order: QueueOrder = strict,
        prefetch: int = MAX_PREFETCH,
    ) -> None:
        self.ready = Ready()
        self.free: deque[Slot] = deque(slots)
        self.running = 0
        self.wake: float | None = None  # seconds, after which a queue may have a job
        continuing = sum(1 for slot in slots if slot.continues)
        self.prefetched = Prefetched(prefetch, continuing, lock_seconds=lock_seconds)
        self._jobs = jobs
        self._queues = queues
        self._name = name  # the worker that holds the jobs which wait for a slot
        self._order = order
        self._lock_seconds = lock_seconds
        self._finished: deque[Finished] = deque()
        self._low = 0  # when this many prefetched jobs are left, more are taken
        self._unsent: list[Report] = []  # while the store can't be reached

    def finish(self, finished: Finished) -> Job | None:
        """Records the end of a run, from any thread; the next `exchange` reports it to the store.

        Returns the job that the slot should run next, if the slot continues by itself.
        """
        job = self.prefetched.next() if finished.slot.continues else None
        finished.continues = job is not None
        self._finished.append(finished)
        if job is None or len(self.prefetched) == self._low:
            self.ready.set()
        return job

    @property
    def has_finished(self) -> bool:
        """Returns whether there is something to report."""
        return bool(self._finished or self._unsent)

    def exchange(self, start: Callable[[Slot, Job], None], *, take: bool = True) -> int:
        """Settles what is finished and takes jobs for free slots; returns how many were taken."""
        reports = self._take_finished()
        queues = self._queues() if take else ()
        handed_back = self.prefetched.take_late() if queues else self.prefetched.take_all()
        reports += [release_report(job) for job in handed_back]
        self._start_waiting(start)
        takes = self._takes(queues) if queues else []
        if not reports and not takes:
            return 0
        reported = self._reported(reports, takes)
        self.wake = reported.wake
        self._start(reported.jobs, start)
        return len(reported.jobs)

    def _start_waiting(self, start: Callable[[Slot, Job], None]) -> None:
        while self.free and (job := self.prefetched.next()) is not None:
            self.running += 1
            start(self.free.popleft(), job)

    def _takes(self, queues: Sequence[str]) -> list[Take]:
        further = self.prefetched.wanted()
        if not further:
            return [self._take(slot.name, queues) for slot in self.free]
        count = len(self.free) + further
        if self._order is strict or len(queues) == 1:
            return [self._take(self._name, queues, count)]
        return [self._take(self._name, queues) for _ in range(count)]

    def _take(self, worker: str, queues: Sequence[str], count: int = 1) -> Take:
        return Take(
            worker=worker,
            queues=self._order(queues),
            count=count,
            lock_seconds=self._lock_seconds,
        )

    def _start(self, jobs: Sequence[Job], start: Callable[[Slot, Job], None]) -> None:
        by_name = {slot.name: slot for slot in self.free}
        waiting = []
        for job in jobs:
            slot = by_name.get(job.worker)
            if slot is not None:
                self.free.remove(slot)
            elif self.free:
                slot = self.free.popleft()
            else:
                waiting.append(job)
                continue
            self.running += 1
            start(slot, job)
        self.prefetched.add(waiting)
        self._low = len(self.prefetched) // 4

    def _take_finished(self) -> list[Report]:
        reports, self._unsent = self._unsent, []
        while self._finished:
            finished = self._finished.popleft()
            if not finished.continues:
                self.running -= 1
                self.free.append(finished.slot)
            if finished.report is not None:
                reports.append(finished.report)
        return reports

    def _reported(self, reports: list[Report], takes: list[Take]) -> Reported:
        try:
            reported: Reported = self._jobs.report(reports, takes=takes)
        except TRANSIENT_ERRORS:
            self._unsent = reports  # if repeated, what was done the first time is refused
            raise
        except Exception as error:
            if not reports:
                raise
            # One report that can't be stored must not block the others, or the next jobs.
            _log.warning("%d reports are sent one by one: %s", len(reports), error)
            for each in reports:
                self._report_alone(each)
            reported = self._jobs.report([], takes=takes) if takes else Reported()
        for refusal in reported.refused:
            _log.warning("job %s was lost: %s", refusal.id, refusal.message)
        return reported

    def _report_alone(self, report: Report) -> None:
        try:
            self._jobs.report([report])
        except TRANSIENT_ERRORS:
            self._unsent.append(report)
        except Exception as error:
            _log.exception("the report of job %s was refused", report.id)
            failed = Report(
                id=report.id,
                worker=report.worker,
                lock=report.lock,
                what="fail",
                group="bad-report",
                message=f"what the worker reported was refused: {error}",
            )
            self._jobs.report([failed])


def release_report(job: Job) -> Report:
    """Returns the report that hands a job back."""
    return Report(id=job.id, worker=job.worker, what="release", lock=job.lock)
