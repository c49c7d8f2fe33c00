"""Checks and backups that run in the background, whether or not a caller waits for them.

They belong to the process that has started them: it knows their progress, and they end with it.
"""

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import msgspec

from holdfast.admin.records import Maintenance
from holdfast.errors import BadInput, HoldfastError, ServerBusy
from holdfast.limits import (
    MAINTENANCE_STOP_SECONDS,
    MAX_MAINTENANCE_KEPT,
    MAX_MAINTENANCE_PROBLEMS,
    MAX_MAINTENANCE_RUNNING,
)


class MaintenanceRun:
    """One check or backup that runs: its record, and whether it should stop."""

    def __init__(self, record: Maintenance) -> None:
        self.record = record
        self.stopped = threading.Event()
        self.thread: threading.Thread | None = None

    def update(self, **changes: Any) -> None:
        """Changes the record; readers see either the old or the new one."""
        self.record = msgspec.structs.replace(self.record, **changes)

    def add_problems(self, problems: list[str]) -> None:
        """Counts all problems, and keeps the first of them."""
        kept = [*self.record.problems, *problems][:MAX_MAINTENANCE_PROBLEMS]
        self.update(problems=kept, found=self.record.found + len(problems))


class MaintenanceRuns:
    """The checks and backups of an open store, the newest `MAX_MAINTENANCE_KEPT` of them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: dict[str, MaintenanceRun] = {}

    def start(self, work: Callable[[MaintenanceRun], None], **facts: Any) -> Maintenance:
        """Runs `work` in its own thread; it must check `stopped` from time to time."""
        record = Maintenance(id=uuid4().hex[:12], started=self._clock(), **facts)
        run = MaintenanceRun(record)
        run.thread = threading.Thread(
            target=self._run, args=(run, work), name="holdfast-maintenance", daemon=True
        )
        with self._lock:
            running = sum(each.record.state == "running" for each in self._runs.values())
            if running >= MAX_MAINTENANCE_RUNNING:
                raise ServerBusy(
                    f"{running} checks and backups are already running",
                    hint="Wait until one has ended; `admin.maintenance` lists them.",
                )
            self._runs[record.id] = run
            for id in [id for id, each in self._runs.items() if each.record.state != "running"]:
                if len(self._runs) > MAX_MAINTENANCE_KEPT:
                    del self._runs[id]
        run.thread.start()
        return record

    def _run(self, run: MaintenanceRun, work: Callable[[MaintenanceRun], None]) -> None:
        try:
            work(run)
        except HoldfastError as error:
            run.update(state="failed", error=error.message)
        except Exception as error:
            run.update(state="failed", error=type(error).__name__)
            raise
        else:
            ended = "stopped" if run.stopped.is_set() else "done"
            run.update(state=ended, done=run.record.done if ended == "stopped" else 1.0)
        finally:
            run.update(ended=self._clock())

    def all(self) -> list[Maintenance]:
        """Returns the records, the newest first."""
        with self._lock:
            return [run.record for run in reversed(self._runs.values())]

    def stop(self, id: str) -> bool:
        """Asks a check to stop; returns whether it was running."""
        run = self._runs.get(id)
        if run is None or run.record.state != "running":
            return False
        if run.record.kind == "backup":
            raise BadInput("a backup can't be stopped", hint="It ends by itself; then delete it.")
        run.stopped.set()
        return True

    def close(self) -> None:
        """Stops all of them, and waits for `MAINTENANCE_STOP_SECONDS` at most."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.stopped.set()
        for run in runs:
            if run.thread is not None and run.thread is not threading.current_thread():
                run.thread.join(MAINTENANCE_STOP_SECONDS)
