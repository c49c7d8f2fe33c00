"""Calls that wait for something to happen, without a thread or a transaction meanwhile.

Tasks that wait for jobs of one queue form a line. A new job wakes the first task; a task that
leaves the line, with or without jobs, wakes the next. So N jobs cost about N pops, however many
tasks wait.
"""

import asyncio
import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from holdfast.async_store.notices import Notices, call_on_loop
from holdfast.errors import BadArgument, UnknownJob
from holdfast.jobs.ledger import LOG, READY, event_marker
from holdfast.jobs.records import COMPLETE, FAILED, Job
from holdfast.jobs.reports import Report
from holdfast.limits import MAX_WAIT_SECONDS

if TYPE_CHECKING:
    from holdfast.async_store.runs import AsyncRuns
    from holdfast.engine.contract import Notice
    from holdfast.store import Space, Tx, View


async def pop_wait(
    runs: "AsyncRuns",
    space: "Space",
    *,
    queues: str | Sequence[str],
    worker: str,
    count: int = 1,
    timeout: float | None = None,
    lock_seconds: float | None = None,
) -> list[Job]:
    """`StoreJobs.pop_wait`: pops as soon as one of the queues has a job."""
    names = [queues] if isinstance(queues, str) else list(queues)
    deadline = _deadline(timeout)
    with runs.lines.join(space.prefix, names) as waiter:
        while True:
            waiter.begin_try()
            for name in names:
                jobs = await _pop(runs, space, name, worker, count, lock_seconds)
                if jobs:
                    return jobs
            rest = await runs.read(space, lambda view: _until_next(view, names), "jobs.next_wake")
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return []
            await waiter.sleep(left if rest is None else min(left, rest))


async def _pop(
    runs: "AsyncRuns",
    space: "Space",
    queue: str,
    worker: str,
    count: int,
    lock_seconds: float | None,
) -> list[Job]:
    """Pops jobs. If the task is cancelled meanwhile, the popped jobs are handed back."""

    def work(tx: "Tx") -> list[Job]:
        return tx.jobs.pop(queue, worker, count, lock_seconds=lock_seconds)

    popping = runs.write(space, work)
    try:
        return await asyncio.shield(popping)
    except asyncio.CancelledError:
        popping.add_done_callback(lambda done: _hand_back(runs, space, worker, done))
        raise


def _hand_back(
    runs: "AsyncRuns", space: "Space", worker: str, popped: asyncio.Future[list[Job]]
) -> None:
    if popped.cancelled() or popped.exception() is not None:
        return
    released = [
        Report(id=job.id, worker=worker, what="release", lock=job.lock) for job in popped.result()
    ]
    if released:
        runs.write(space, lambda tx: tx.jobs.report(released))


def _until_next(view: "View", queues: Sequence[str]) -> float | None:
    """Returns the seconds until something in the queues is due."""
    wake = view.jobs.next_wake(*queues)
    return None if wake is None else max(0.001, wake - view.now)


async def result_wait(
    runs: "AsyncRuns",
    space: "Space",
    *,
    id: str,
    timeout: float | None = None,
) -> Job:
    """`StoreJobs.result_wait`: the job as soon as it is complete or failed, or as it is after
    `timeout` seconds."""
    deadline = _deadline(timeout)
    loop, notified, marker = asyncio.get_running_loop(), asyncio.Event(), event_marker(id)

    def on_notice(notice: "Notice") -> None:
        if marker in notice.payload:
            call_on_loop(loop, notified.set)

    leave = runs.notices.listen(
        space.prefix, LOG, on_notice, lambda: call_on_loop(loop, notified.set)
    )
    try:
        while True:
            notified.clear()
            job = await runs.read(space, lambda view: view.jobs.get(id), "jobs.get")
            if job is None:
                raise UnknownJob.of(id)
            if job.state in (COMPLETE, FAILED) or not await _wait_until_set(
                notified, deadline - loop.time()
            ):
                return job
    finally:
        leave()


async def _wait_until_set(event: asyncio.Event, seconds: float) -> bool:
    """Waits for the event; returns whether it was set within `seconds`."""
    if seconds <= 0:
        return False
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


def _deadline(timeout: float | None) -> float:
    if timeout is not None and math.isnan(timeout):
        raise BadArgument('Arg "timeout" not a number or None: nan')
    seconds = MAX_WAIT_SECONDS if timeout is None else min(timeout, MAX_WAIT_SECONDS)
    return asyncio.get_running_loop().time() + seconds


class QueueLines:
    """The lines of all tasks that wait for jobs, by space and queue, on any event loops."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self.lock = threading.Lock()
        self.lines: dict[tuple[bytes, str], list[WaitingTask]] = {}

    def join(self, space: bytes, queues: Sequence[str]) -> "WaitingTask":
        """Returns a waiter at the end of the lines of `queues`, for a `with` block."""
        return WaitingTask(self, space, queues)

    def listen(self, waiter: "WaitingTask") -> Callable[[], None]:
        return self._notices.listen(waiter.space, READY, self._on_notice, waiter.wake_at_close)

    def _on_notice(self, notice: "Notice") -> None:
        queue = notice.payload.decode()
        with self.lock:
            keys = (
                [(notice.space, queue)]
                if queue  # else it is about every queue: changed settings, for example
                else [key for key in self.lines if key[0] == notice.space]
            )
            for key in keys:
                self.wake_next(key)

    def wake_next(self, key: tuple[bytes, str]) -> None:
        """Wakes the first task that sleeps; tasks that are trying try again. Needs the lock."""
        line = self.lines.get(key, ())
        for waiter in line:
            if not waiter.is_asleep:
                waiter.must_try_again = True
        for waiter in line:
            if waiter.is_asleep:
                waiter.wake()
                return


class WaitingTask:
    """A task that waits for jobs of some queues."""

    def __init__(self, lines: QueueLines, space: bytes, queues: Sequence[str]) -> None:
        self.space = space
        self.is_asleep = False
        self.must_try_again = False
        self._lines = lines
        self._keys = [(space, queue) for queue in dict.fromkeys(queues)]
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    def begin_try(self) -> None:
        """Notes that whatever is notified from now on may have come too late for this try."""
        self.must_try_again = False

    def wake(self) -> None:
        """Wakes the task. Needs the lock of the lines."""
        self.is_asleep = False
        call_on_loop(self._loop, self._woken.set)

    def wake_at_close(self) -> None:
        """Wakes the task because the store is closed: its next try raises the error."""
        with self._lines.lock:
            self.must_try_again = True
            self.wake()

    async def sleep(self, seconds: float) -> None:
        """Waits until it is woken, at most `seconds`."""
        with self._lines.lock:
            if self.must_try_again:
                return
            self.is_asleep = True
            self._woken.clear()
        await _wait_until_set(self._woken, seconds)
        with self._lines.lock:
            self.is_asleep = False

    def __enter__(self) -> Self:
        with self._lines.lock:
            for key in self._keys:
                self._lines.lines.setdefault(key, []).append(self)
        self._leave = self._lines.listen(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self._leave()
        lines = self._lines
        with lines.lock:
            for key in self._keys:
                line = lines.lines[key]
                line.remove(self)
                if line:
                    lines.wake_next(key)
                else:
                    del lines.lines[key]
