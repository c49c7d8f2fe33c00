"""`Worker`: runs tasks inside a program, beside a web application or in a script."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

from holdfast.errors import BadInput, HoldfastError
from holdfast.jobs.handles import this_worker
from holdfast.jobs.records import Job
from holdfast.jobs.reports import Report
from holdfast.limits import DRAIN_SECONDS, REMOTE_POLL_SECONDS, WORKER_LOCK_SECONDS
from holdfast.tasks.execution import Runtime
from holdfast.tasks.fetching import Fetcher, QueueOrder, strict
from holdfast.tasks.heartbeats import Beating, Heartbeats
from holdfast.tasks.slots import Finished, Slot, ThreadSlot

if TYPE_CHECKING:
    from holdfast.client.client import ClientSpace
    from holdfast.store import Space
    from holdfast.tasks.registry import Tasks

__all__ = ["Worker"]

_log: Final = logging.getLogger("holdfast.tasks")


class Worker:
    """Runs the jobs of a registry's tasks, on a store, a space or a client.

    `with Worker(store, tasks, threads=4): ...` runs them beside the block. `run_until_empty`
    returns when nothing that is due is left.
    """

    def __init__(
        self,
        where: "Space | ClientSpace",
        tasks: "Tasks",
        *,
        threads: int = 1,
        queues: Sequence[str] | None = None,
        name: str = "",
        lock_seconds: float = WORKER_LOCK_SECONDS,
        drain_seconds: float = DRAIN_SECONDS,
        order: QueueOrder = strict,
    ) -> None:
        if threads < 1:
            raise BadInput(f"a worker has at least 1 thread, not {threads}")
        self.name = name or this_worker()
        self.runtime = Runtime(tasks, where)
        self.runtime.check()
        self.queues = list(tasks.queues if queues is None else queues)
        self._where = where
        self._lock_seconds = lock_seconds
        self._drain_seconds = drain_seconds
        self._heartbeats = Heartbeats(where.jobs)
        self._stopping = threading.Event()
        self._held: dict[str, tuple[Slot, Job]] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._slots = self._made_slots(threads)
        self._fetcher = Fetcher(
            where.jobs,
            self._slots,
            lambda: self.queues,
            lock_seconds=lock_seconds,
            order=order,
        )

    def _made_slots(self, threads: int) -> list[Slot]:
        return [
            ThreadSlot(
                f"{self.name}-{number}",
                self.runtime,
                self._finished,
                beat=self._heartbeats.beat_now,
            )
            for number in range(threads)
        ]

    # --- for programs -----------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins to run jobs, in threads of its own; deploys the schedules of its tasks."""
        self.runtime.tasks.deploy(self._where)
        self._thread = threading.Thread(target=self.run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self, drain_seconds: float | None = None) -> None:
        """Takes no more jobs, lets running ones finish for `drain_seconds`, hands back the rest."""
        self._stopping.set()
        self._fetcher.ready.set()
        if self._thread is not None:
            self._thread.join()
        self._drain(self._drain_seconds if drain_seconds is None else drain_seconds)
        self._close()

    def run(self) -> None:
        """Runs jobs until `stop` is called, in the caller's thread."""
        self._fetcher.ready.listen(self._where, self._is_wanted)
        while not self._stopping.is_set():
            try:
                self._turn()
            except HoldfastError:
                _log.exception("worker %s could not reach its store", self.name)
                self._stopping.wait(REMOTE_POLL_SECONDS)

    def run_until_empty(self) -> int:
        """Runs all jobs that are due, and those that they put; returns how many runs there were.

        Jobs that are scheduled for later, as those that wait for a retry, are left.
        """
        runs = 0
        self.runtime.tasks.deploy(self._where)
        try:
            while True:
                self._fetcher.ready.clear()
                taken = self._fetcher.exchange(self._begin)
                runs += taken
                if not taken and not self._fetcher.running and not self._fetcher.has_finished:
                    return runs
                if not taken:
                    self._fetcher.ready.wait(None)  # for a slot that is done
        finally:
            self._drain(self._drain_seconds)
            self._close()

    @property
    def runs(self) -> list[Job]:
        """The jobs that run now."""
        return [job for _, job in list(self._held.values())]

    # --- how it is done ---------------------------------------------------------------------------

    def _is_wanted(self, queue: str) -> bool:
        return queue in self.queues

    def _turn(self) -> None:
        """Settles and takes jobs once, then waits until there may be more to do."""
        fetcher = self._fetcher
        fetcher.ready.clear()
        fetcher.exchange(self._begin)
        fetcher.ready.wait(self._patience())

    def _patience(self) -> float | None:
        """Returns how long nothing but a notice can bring a job."""
        if not self._fetcher.free:
            return None  # a slot that is done wakes it
        if not self._fetcher.ready.is_listening:
            return REMOTE_POLL_SECONDS
        return self._fetcher.wake

    def _begin(self, slot: Slot, job: Job) -> None:
        task = self.runtime.tasks.find(job.klass)
        self._held[job.id] = slot, job
        slot.start(job)
        run = slot.run
        if run is not None:
            options = None if task is None else task.options_given
            own = None if options is None else options.lock_seconds
            if options is not None and options.timeout is not None:
                run.deadline = time.monotonic() + options.timeout
            beating = Beating(job, run, own or self._lock_seconds, slot.interrupt)
            self._heartbeats.add(beating, at_once=own is not None)

    def _finished(self, finished: Finished) -> None:
        """Called by slots, from any thread."""
        self._heartbeats.remove(finished.job)
        self._held.pop(finished.job.id, None)
        self._fetcher.finish(finished)

    def _drain(self, seconds: float) -> None:
        """Settles runs as they end, up to `seconds`; then hands back the jobs that are left."""
        deadline = time.monotonic() + seconds
        fetcher = self._fetcher
        while True:
            fetcher.ready.clear()
            fetcher.exchange(self._begin, take=False)
            left = deadline - time.monotonic()
            if fetcher.running <= 0 or left <= 0:
                break
            fetcher.ready.wait(left)
        self._hand_back()

    def _hand_back(self) -> None:
        held = list(self._held.values())
        if held:
            self._where.jobs.report([_released(job) for _, job in held])
        for slot, job in held:
            self._heartbeats.remove(job)
            if slot.run is not None:
                slot.run.lose("job_lost", "the worker was stopped, and its job handed back")
            slot.interrupt()

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._fetcher.ready.close()
        self._heartbeats.close()
        for slot in self._slots:
            stuck = slot.run is not None
            slot.close(*((0.0,) if stuck else ()))
        self.runtime.close()


def _released(job: Job) -> Report:
    return Report(id=job.id, worker=job.worker, what="release", lock=job.lock)
