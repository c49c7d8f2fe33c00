"""The worker program: a `Worker` with signals, restarts, limits, and a health server.

TERM, INT   take no more jobs, let running ones finish for a while, hand back the rest, exit 0;
            a second signal hands everything back at once and exits 1
QUIT        like TERM, but wait for running jobs without a time limit
HUP         finish as for TERM, then start again with the same arguments, which loads new code
USR1        write the stacks of all threads to standard error
USR2, CONT  take no jobs; take them again
"""

import faulthandler
import math
import os
import select
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

import msgspec

from holdfast.limits import (
    MAX_PREFETCH,
    WORKER_DRAIN_SECONDS,
    WORKER_LOCK_SECONDS,
    WORKER_POLL_SECONDS,
    WORKER_TICK_SECONDS,
)
from holdfast.tasks.announcements import memory_bytes
from holdfast.tasks.health import HealthServer
from holdfast.tasks.loading import WorkerSource
from holdfast.tasks.queue_order import order_of
from holdfast.tasks.registry import Tasks
from holdfast.tasks.start_message import start_message
from holdfast.tasks.worker import Worker

__all__ = ["Program", "WorkerOptions"]

_HANDLED_SIGNALS: Final = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP),
    *(signal.SIGUSR2, signal.SIGCONT),
)
T = TypeVar("T")


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `holdfast worker`."""

    source: WorkerSource
    queues: tuple[str, ...] = ()  # those of the tasks, if none are given
    threads: int | None = None
    async_slots: int = 0
    processes: int = 0
    order: str = "strict"
    prefetch: int = MAX_PREFETCH
    burst: bool = False
    watch: bool = False
    resume: bool = False
    drain: float = WORKER_DRAIN_SECONDS
    timeout: float | None = None
    lock_seconds: float = WORKER_LOCK_SECONDS
    max_jobs: int | None = None
    max_memory_bytes: int | None = None
    name: str = ""
    workdir: str | None = None
    http: str = ""


class Program:
    """One run of `holdfast worker`."""

    def __init__(self, options: WorkerOptions, say: Callable[[str], None]) -> None:
        self._options = options
        self._say = say
        self._signals = _Signals()
        self._ended_by: list[int] = []
        self._files = _Files() if options.watch else None

    def run(self) -> int:
        """Runs jobs until a signal comes, or nothing is left in burst mode; returns the status."""
        tasks = self._options.source.tasks()
        with self._options.source.open() as where:
            worker = self._new_worker(where, tasks)
            self._say(start_message(worker, self._options.source, where))
            if self._options.resume and (count := worker.hand_back_left_over()):
                self._say(f"handed back {count} jobs of an earlier run")
            with HealthServer(self._options.http, worker, where) as health:
                if health.address:
                    self._say(f"health and metrics: http://{health.address}")
                restarts = self._burst(worker) if self._options.burst else self._serve(worker)
        if restarts:
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
        return 1 if len(self._ended_by) > 1 else 0

    def _new_worker(self, where: Any, tasks: Tasks) -> Worker:
        options = self._options
        return Worker(
            where,
            tasks,
            threads=options.threads,
            async_slots=options.async_slots,
            processes=options.processes,
            source=options.source,
            queues=options.queues or None,
            order=order_of(options.order),
            prefetch=options.prefetch,
            name=options.name,
            lock_seconds=options.lock_seconds,
            timeout=options.timeout,
            drain_seconds=options.drain,
            max_jobs=options.max_jobs,
            max_memory_bytes=options.max_memory_bytes,
            workdir=options.workdir,
        )

    # --- running ----------------------------------------------------------------------------------

    def _burst(self, worker: Worker) -> bool:
        count = self._run_in_thread(worker.run_until_empty, worker)
        self._say(f"nothing is left to do; {count} {'run' if count == 1 else 'runs'}")
        return False

    def _serve(self, worker: Worker) -> bool:
        """Runs until it should end; returns whether the program should start again."""
        worker.start()
        why = ""
        while not self._ended_by and not why:
            self._handle_signals(worker, WORKER_TICK_SECONDS)
            why = self._why_restart(worker)
        last = self._ended_by[-1] if self._ended_by else signal.SIGHUP
        self._say(_stop_message(last, why))
        drain = math.inf if last == signal.SIGQUIT else None
        self._run_in_thread(lambda: worker.stop(drain), worker)
        return last == signal.SIGHUP and len(self._ended_by) < 2

    def _run_in_thread(self, work: Callable[[], T], worker: Worker) -> T:
        """Runs `work` in another thread, so that this one can handle signals."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(work)
            while not future.done():
                before = len(self._ended_by)
                self._handle_signals(worker, WORKER_POLL_SECONDS)
                if len(self._ended_by) > before:
                    self._say(f"{_name(self._ended_by[-1])}: handing back what runs")
                    worker.cut_short()
            return future.result()

    def _why_restart(self, worker: Worker) -> str:
        """Returns the reason for restarting the program; empty if there is none."""
        options = self._options
        if self._files is not None and (changed := self._files.changed()):
            return f"{changed} has changed"
        if worker.stuck > 0 and not worker.runs:
            return "a thread is stuck in a task"
        if options.processes:
            return ""  # these limits are for the child processes
        if options.max_jobs is not None and worker.figures.finished >= options.max_jobs:
            return f"{options.max_jobs} jobs have run"
        if options.max_memory_bytes is not None and memory_bytes() > options.max_memory_bytes:
            return f"it uses {memory_bytes() // 2**20} MiB"
        return ""

    def _handle_signals(self, worker: Worker, seconds: float) -> None:
        """Waits for signals, up to `seconds`, and does what they say."""
        for number in self._signals.wait(seconds):
            if number == signal.SIGUSR2:
                worker.pause()
                self._say("paused: taking no jobs until SIGCONT")
            elif number == signal.SIGCONT:
                if worker.is_paused:  # and not only stopped and continued, as by a shell
                    self._say("taking jobs again")
                worker.resume()
            else:
                self._ended_by.append(number)


class _Signals:
    """Receives signals through a pipe: a handler that takes a lock could deadlock with the code
    that it interrupts."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for each in _HANDLED_SIGNALS:
            signal.signal(each, _ignore)
        faulthandler.register(signal.SIGUSR1, all_threads=True)

    def wait(self, seconds: float) -> list[int]:
        """Returns the signals that have come, after waiting for the first one."""
        select.select([self._read], [], [], seconds)
        try:
            return [number for number in os.read(self._read, 4096) if number in _HANDLED_SIGNALS]
        except BlockingIOError:
            return []


def _ignore(number: int, frame: FrameType | None) -> None:
    """Does nothing: the number of the signal is in the pipe."""


class _Files:
    """The source files of imported modules below the working directory, for `--watch`."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}

    def changed(self) -> str:
        """Returns a file that has changed since the last call."""
        for path in self._paths():
            try:
                changed = Path(path).stat().st_mtime
            except OSError:
                continue  # it is being written
            if self._times.setdefault(path, changed) != changed:
                return path
        return ""

    def _paths(self) -> list[str]:
        here = os.getcwd() + os.sep
        files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        return [file for file in files if file is not None and file.startswith(here)]


def _stop_message(last: int, why: str) -> str:
    if why:
        return f"{why}: finishing running jobs, then starting again"
    if last == signal.SIGHUP:
        return "finishing running jobs, then starting again"
    return f"{_name(last)}: finishing running jobs"


def _name(number: int) -> str:
    return signal.Signals(number).name
