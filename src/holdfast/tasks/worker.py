"""`Worker`: runs tasks inside a program, such as a web application or a script.

`holdfast worker` runs the same class; worker_program.py adds signals, restarts and health checks.
"""

import logging
import random
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

from holdfast.errors import BadInput, HoldfastError
from holdfast.jobs.handles import this_worker
from holdfast.jobs.records import Job
from holdfast.limits import (
    MAX_JOBS_PER_CALL,
    MAX_PREFETCH,
    REMOTE_POLL_SECONDS,
    SETTLEMENT_WAIT_SECONDS,
    WORKER_DRAIN_SECONDS,
    WORKER_LOCK_SECONDS,
)
from holdfast.tasks.announcements import Announcements
from holdfast.tasks.async_slots import AsyncSlot
from holdfast.tasks.execution import Attempt, Runtime
from holdfast.tasks.fetching import (
    TRANSIENT_ERRORS,
    Fetcher,
    QueueOrder,
    release_report,
    strict,
)
from holdfast.tasks.heartbeats import Heartbeats, LockRenewal
from holdfast.tasks.process_slots import ProcessSlot
from holdfast.tasks.run_log import log_end
from holdfast.tasks.served_queues import ServedQueues
from holdfast.tasks.slots import Finished, Slot, ThreadSlot
from holdfast.tasks.worker_figures import WorkerFigures

if TYPE_CHECKING:
    from holdfast.client.client import ClientSpace
    from holdfast.store import Space
    from holdfast.tasks.loading import WorkerSource
    from holdfast.tasks.registry import Tasks

__all__ = ["Worker"]

_log: Final = logging.getLogger("holdfast.tasks")


class Worker:
    """Runs the jobs of a registry's tasks, on a store, a space or a client.

    `with Worker(store, tasks, threads=4): ...` runs them while the block runs. `run_until_empty`
    returns when no due job is left. `queues` may contain patterns such as `mail-*`. While runs are
    short, up to `prefetch` jobs are taken ahead; 0 turns that off. Sandboxes of slots are made in
    `workdir`, by default in the system's folder for temporary files.
    """

    def __init__(
        self,
        where: "Space | ClientSpace",
        tasks: "Tasks",
        *,
        threads: int | None = None,
        async_slots: int = 0,
        queues: Sequence[str] | None = None,
        name: str = "",
        lock_seconds: float = WORKER_LOCK_SECONDS,
        timeout: float | None = None,
        drain_seconds: float = WORKER_DRAIN_SECONDS,
        order: QueueOrder = strict,
        prefetch: int = MAX_PREFETCH,
        processes: int = 0,
        source: "WorkerSource | None" = None,
        max_jobs: int | None = None,
        max_memory_bytes: int | None = None,
        workdir: str | None = None,
    ) -> None:
        if threads is None:
            threads = 0 if async_slots or processes else 1
        _check_slots(threads, async_slots, processes, source)
        if not 0 <= prefetch <= MAX_JOBS_PER_CALL // 2:
            raise BadInput(
                f"prefetch must be a number from 0 to {MAX_JOBS_PER_CALL // 2}, not {prefetch}"
            )
        self.name = name or this_worker()
        self.runtime = Runtime(tasks, where, workdir=workdir)
        self.runtime.check()
        self.served = ServedQueues(where.jobs, tasks.queues if queues is None else queues)
        self.figures = WorkerFigures()
        self.stuck = 0  # runs that were given up: their threads still run
        self._where = where
        self._lock_seconds = lock_seconds
        self._timeout = timeout
        self._drain_seconds = drain_seconds
        self._stopping = threading.Event()
        self._paused = False
        self._held: dict[str, tuple[Slot, Attempt]] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._is_cut_short = False
        self._heartbeats = Heartbeats(where.jobs)
        self.slots: list[Slot] = []
        for _ in range(threads):
            self.slots.append(ThreadSlot(*self._next_slot(), self._finished))
        for _ in range(async_slots):
            self.slots.append(AsyncSlot(*self._next_slot(), self._finished, self.runtime.loop))
        for _ in range(processes):
            assert source is not None
            limits = {"max_jobs": max_jobs, "max_memory_bytes": max_memory_bytes}
            slot_name, number = self._next_slot()
            slot = ProcessSlot(
                slot_name, number, self._finished, source, self.runtime.sandboxes, **limits
            )
            self.slots.append(slot)
        self._fetcher = Fetcher(
            where.jobs,
            self.slots,
            self._queues,
            name=self.name,
            lock_seconds=lock_seconds,
            order=order,
            prefetch=prefetch,
        )
        self._announcements = Announcements(self, where)

    def _next_slot(self) -> tuple[str, int]:
        return f"{self.name}-{len(self.slots)}", len(self.slots)

    # --- for programs -----------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins to run jobs in threads, and deploys the schedules of its tasks."""
        self._deploy()
        self._thread = threading.Thread(target=self.run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self, drain_seconds: float | None = None) -> None:
        """Pops no more jobs, waits up to `drain_seconds` for running ones, hands back the rest."""
        self._stopping.set()
        self._fetcher.ready.set()
        if self._thread is not None:
            self._thread.join()
        if drain_seconds is not None and not self._is_cut_short:
            self._drain_seconds = drain_seconds
        self._end()

    def run(self) -> None:
        """Runs jobs until `stop` is called, in the caller's thread."""
        self._announcements.start()
        while not self._stopping.is_set():
            try:
                if not self.runtime.is_scripted:  # a Redis has no notices: the worker polls
                    self._fetcher.ready.listen(self._where, self.served.wants)
                self._run_once()
            except TRANSIENT_ERRORS as error:
                self._note_away(error)
                self._stopping.wait(REMOTE_POLL_SECONDS)
            except HoldfastError:
                _log.exception("worker %s could not reach its store", self.name)
                self._stopping.wait(REMOTE_POLL_SECONDS)

    def run_until_empty(self) -> int:
        """Runs all jobs that are due, and those that they put; returns the number of runs.

        Jobs that are scheduled for later, retries included, are left.
        """
        self._deploy()
        fetcher = self._fetcher
        try:
            while not self._stopping.is_set():
                fetcher.ready.clear()
                taken = fetcher.exchange(self._start_run)
                if not taken and not fetcher.running and not fetcher.has_finished:
                    break
                if not (taken and fetcher.free) and not self._stopping.is_set():
                    # The wait ends when a slot has finished its run.
                    fetcher.ready.wait(
                        SETTLEMENT_WAIT_SECONDS if fetcher.prefetched else REMOTE_POLL_SECONDS
                    )
        finally:
            self._end()
        return self.figures.finished

    def cut_short(self) -> None:
        """Makes a `stop` that waits for running jobs hand them back now."""
        self._is_cut_short = True
        self._stopping.set()
        self._fetcher.ready.set()

    def pause(self) -> None:
        """Takes no more jobs until `resume`; running ones continue."""
        self._paused = True

    def resume(self) -> None:
        """Takes jobs again after `pause`."""
        self._paused = False
        self._fetcher.ready.set()

    @property
    def is_paused(self) -> bool:
        """Returns whether it takes no jobs because of `pause`."""
        return self._paused

    @property
    def runs(self) -> list[Job]:
        """The jobs that run now."""
        return [attempt.job for _, attempt in list(self._held.values())]

    @property
    def held(self) -> dict[str, Job]:
        """The jobs that run now, by the names of their slots."""
        return {slot.name: attempt.job for slot, attempt in list(self._held.values())}

    def hand_back_left_over(self) -> int:
        """Hands back jobs that slots of these names hold from an earlier start; returns how many.

        A worker with a fixed name that was killed gets its jobs back in this way, before their
        locks end.
        """
        names = [self.name, *(slot.name for slot in self.slots)]
        ids = [id for name in names for id in self._where.jobs.worker(name).jobs]
        for id in ids:
            self._where.jobs.timeout(id)
        return len(ids)

    # --- how it is done ---------------------------------------------------------------------------

    def _deploy(self) -> None:
        """Deploys what its tasks declare; raises now if the worker may not settle jobs."""
        if self.runtime.is_remote:
            self._where.jobs.report([])  # which needs the grant that every run needs at its end
        if not self.runtime.is_scripted:
            self.runtime.tasks.deploy(self._where)

    def _queues(self) -> Sequence[str]:
        return () if self._paused else self.served.current()

    def _run_once(self) -> None:
        """Settles and takes jobs once, then waits until there may be more to do."""
        fetcher = self._fetcher
        fetcher.ready.clear()
        if self._stopping.is_set():
            return  # `stop` may have set `ready` just before it was cleared
        fetcher.exchange(self._start_run)
        fetcher.ready.wait(self._wait_seconds())

    def _wait_seconds(self) -> float | None:
        """Returns how long to wait for a notice or for a slot that has finished."""
        if self._fetcher.prefetched:
            return SETTLEMENT_WAIT_SECONDS
        if self._paused or not self._fetcher.free:
            return None  # `resume`, or a slot that is done, wakes it
        if not self._fetcher.ready.is_listening:
            # Workers that were started together should not poll together.
            return REMOTE_POLL_SECONDS * random.uniform(0.5, 1.5)
        return self._fetcher.wake

    def _start_run(self, slot: Slot, job: Job) -> None:
        slot.start(self._prepare_run(slot, job))

    def _prepare_run(self, slot: Slot, job: Job) -> Attempt:
        attempt = self.runtime.attempt(job, beat=self._heartbeats.beat_now, slot=slot.number)
        options = None if attempt.task is None else attempt.task.options_given
        own = None if options is None else options.lock_seconds
        if self.runtime.is_scripted:  # the queue's own setting decides how long a lock lasts
            own = max(1.0, job.expires - time.time())
        timeout = job.timeout
        if timeout is None and options is not None:
            timeout = options.timeout
        if timeout is None:
            timeout = self._timeout
        if timeout is not None:
            attempt.run.deadline = time.monotonic() + timeout
        self._held[job.id] = slot, attempt
        renewal = LockRenewal(job, attempt.run, own or self._lock_seconds, slot.interrupt)
        renewal.give_up = lambda: self._give_up(slot, attempt)
        self._heartbeats.add(renewal, at_once=own is not None and not self.runtime.is_scripted)
        self.figures.begin(job)
        return attempt

    def _finished(self, finished: Finished) -> Attempt | None:
        """Called by slots, from any thread; returns the next run of the slot, if there is one."""
        job = finished.attempt.job
        self._heartbeats.remove(job)
        held = self._held.get(job.id)
        if held is None or held[1] is not finished.attempt:
            self.stuck -= 1  # it was given up, and has ended after all
            return None
        del self._held[job.id]
        self._note_end(finished)
        following = self._fetcher.finish(finished)
        return None if following is None else self._prepare_run(finished.slot, following)

    def _note_end(self, finished: Finished) -> None:
        job = finished.attempt.job
        seconds = self.figures.end(job, finished)
        self._fetcher.prefetched.note(seconds)
        log_end(job, finished, seconds)

    def _give_up(self, slot: Slot, attempt: Attempt) -> None:
        """Hands back the job of a run that does not end after its timeout; abandons its thread."""
        held = self._held.get(attempt.job.id)
        stopped = attempt.run.stopped
        if held is None or held[1] is not attempt or stopped is None:
            return
        del self._held[attempt.job.id]
        self.stuck += 1
        _log.error(
            "job %s (%s) does not end after its timeout: its thread is abandoned",
            *(attempt.job.id, attempt.job.klass),
        )
        outcome = attempt.outcome_of(stopped)
        fresh = slot
        if isinstance(slot, ThreadSlot):
            fresh = ThreadSlot(slot.name, slot.number, self._finished)
            slot.close(0.0)
            self.slots[self.slots.index(slot)] = fresh
        finished = Finished(fresh, attempt, outcome, attempt.report(outcome))
        self._note_end(finished)
        following = self._fetcher.finish(finished)
        if following is not None:
            self._start_run(fresh, following)

    def _note_away(self, error: HoldfastError) -> None:
        _log.warning("worker %s could not reach its store: %s", self.name, error)

    def _end(self) -> None:
        try:
            self._drain()
        finally:
            self._close()

    def _drain(self) -> None:
        """Settles runs as they end, for a while; then hands back the jobs that are left.

        A store that is away may be back in time.
        """
        deadline = time.monotonic() + self._drain_seconds
        fetcher = self._fetcher
        while True:
            fetcher.ready.clear()
            left = deadline - time.monotonic()
            is_over = left <= 0 or self._is_cut_short
            try:
                fetcher.exchange(self._start_run, take=False)
            except TRANSIENT_ERRORS as error:
                if is_over:
                    raise
                self._note_away(error)
            if is_over or not (fetcher.running > 0 or fetcher.has_finished):
                break
            fetcher.ready.wait(min(left, REMOTE_POLL_SECONDS))
        self._hand_back()

    def _hand_back(self) -> None:
        held = list(self._held.values())
        if held:
            self._where.jobs.report([release_report(attempt.job) for _, attempt in held])
        for slot, attempt in held:
            self._heartbeats.remove(attempt.job)
            attempt.run.mark_lost("job_lost", "the worker was stopped, and its job handed back")
            slot.interrupt()

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        busy = {slot.name for slot, _ in self._held.values()}
        self._fetcher.ready.close()
        self._heartbeats.close()
        self._announcements.close()
        for slot in self.slots:
            slot.close(0.0 if slot.name in busy else None)
        self.runtime.close()


def _check_slots(
    threads: int, async_slots: int, processes: int, source: "WorkerSource | None"
) -> None:
    if min(threads, async_slots, processes) < 0 or threads + async_slots + processes < 1:
        raise BadInput(
            f"a worker has at least 1 slot, not {threads} threads, {async_slots} async slots and "
            f"{processes} processes"
        )
    if processes and source is None:
        raise BadInput(
            "process slots need to know where their tasks are",
            hint="Use `holdfast worker MODULE --processes N`.",
        )
