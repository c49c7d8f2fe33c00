"""Announcements: every few seconds a worker tells its store that it is alive, what it is running,
and how many runs have ended."""

import logging
import os
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import HoldfastError
from holdfast.jobs.worker_programs import WorkerProgram, WorkerSlot
from holdfast.limits import MAX_WORKER_NAMES, WORKER_PROGRAM_SECONDS
from holdfast.tasks.run_counts import RunCounts
from holdfast.version import VERSION

if TYPE_CHECKING:
    from holdfast.tasks.worker import Worker

__all__ = ["Announcements", "memory_bytes"]

_log: Final = logging.getLogger("holdfast.tasks")
_EVERY_SECONDS: Final = WORKER_PROGRAM_SECONDS / 3  # two may be late before the record disappears


class Announcements:
    """The thread that keeps the record of a worker fresh."""

    def __init__(self, worker: "Worker", where: Any) -> None:
        self._worker = worker
        self._jobs = where.jobs
        self._counts = RunCounts(None if worker.runtime.is_scripted else where, worker.figures)
        self._since = time.time()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Announces the worker from now on."""
        self._thread = threading.Thread(
            target=self._announce_regularly, name="holdfast-announcements", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, withdraws the record and counts the last runs."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._counts.write()
        # Where names are noted with each pop, there is a record even if nothing was announced.
        if self._thread is None and not self._worker.runtime.is_scripted:
            return
        try:
            self._jobs.withdraw_worker(self._worker.name)
        except HoldfastError:  # the store can't be reached: the record disappears by itself
            _log.info("the record of worker %s could not be withdrawn", self._worker.name)

    def _announce_regularly(self) -> None:
        while True:
            try:
                self._jobs.announce_worker(self.record())
            except HoldfastError as error:
                _log.warning("worker %s could not announce itself: %s", self._worker.name, error)
            if self._ended.wait(_EVERY_SECONDS):
                return
            self._counts.write()

    def record(self) -> WorkerProgram:
        """Returns the record of the worker: what it serves, and what it is running now."""
        worker = self._worker
        return WorkerProgram(
            name=worker.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=VERSION,
            queues=tuple(worker.served.current()[:MAX_WORKER_NAMES]),
            tasks=tuple(task.name for task in worker.runtime.tasks)[:MAX_WORKER_NAMES],
            slots=self._slots(),
            since=self._since,
            memory_bytes=memory_bytes(),
            paused=worker.is_paused,
        )

    def _slots(self) -> tuple[WorkerSlot, ...]:
        held = self._worker.held
        begun = self._worker.figures.begun
        slots = []
        for slot in self._worker.slots[:MAX_WORKER_NAMES]:
            job = held.get(slot.name)
            if job is None:
                slots.append(WorkerSlot(name=slot.name, kind=slot.kind))
            else:
                since = begun.get(job.id, 0.0)
                slots.append(
                    WorkerSlot(
                        name=slot.name, kind=slot.kind, job=job.id, task=job.klass, since=since
                    )
                )
        return tuple(slots)


def memory_bytes() -> int:
    """Returns the memory that this process has in use."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
