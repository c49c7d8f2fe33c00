"""Runs the calls of `store.aio`: writes in groups, reads at once or in a thread.

All writes that the tasks of an event loop begin in one round of it go to the writer's thread
together, and all that wait there, of any loop, are one group: one commit and one wait for the disk.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from holdfast.async_store.notices import Notices
from holdfast.async_store.read_times import ReadTimes
from holdfast.async_store.waits import QueueLines
from holdfast.engine.contract import Outcome
from holdfast.errors import ServerBusy, StoreClosed
from holdfast.limits import (
    ASYNC_READING_THREADS,
    LONG_OPERATION_THREADS,
    MAX_GROUP_TRANSACTIONS,
    MAX_QUEUED_WRITES,
    READING_THREADS,
)

if TYPE_CHECKING:
    from holdfast.store import Space, Store, Tx, View

T = TypeVar("T")


class QueuedWrite(NamedTuple):
    """A transaction that waits for its group, and the task that waits for its outcome."""

    space: "Space"
    work: "Callable[[Tx], Any]"
    future: asyncio.Future[Any]


class AsyncRuns:
    """The threads behind `store.aio`, for all spaces of a store and any number of event loops."""

    def __init__(self, store: "Store") -> None:
        self.store = store
        self.notices = Notices(store.engine)
        self.lines = QueueLines(self.notices)
        self._is_remote = store.engine.is_remote
        # By event loop, the writes that were begun in its current round.
        self._arriving: dict[asyncio.AbstractEventLoop, list[QueuedWrite]] = {}
        self._lock = threading.Lock()  # guards what follows
        self._waiting: deque[QueuedWrite] = deque()
        self._is_committing = False
        self._is_closed = False
        self._writer = ThreadPoolExecutor(1, "holdfast-async-writer")
        readers = READING_THREADS if self._is_remote else ASYNC_READING_THREADS
        self._readers = ThreadPoolExecutor(readers, "holdfast-async-reader")
        self._long = ThreadPoolExecutor(LONG_OPERATION_THREADS, "holdfast-async-long")
        self._read_times = ReadTimes()

    # --- reads ------------------------------------------------------------------------------------

    async def read(
        self, space: "Space", work: "Callable[[View], T]", kind: str = "", asked: int = 0
    ) -> T:
        """Runs a read on its own view; it waits for no commit.

        A read of a `kind` that has taken long lately, or that asks for many items, runs in a
        thread; so does every read of a remote engine, which is a round trip over the network.
        """

        def on_view() -> T:
            with space.view() as view:
                return work(view)

        if self._is_remote and kind:
            return await self._in_thread(self._readers, lambda: space.read(work, kind=kind))
        if self._is_remote or not kind or self._read_times.expects_long(kind, asked):
            return await self._in_thread(self._readers, on_view)
        with self._read_times.timed(kind):
            return on_view()

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Runs a call that takes several transactions, in a thread."""
        return await self._in_thread(self._long, call)

    def _in_thread(self, threads: ThreadPoolExecutor, call: Callable[[], T]) -> asyncio.Future[T]:
        if self._is_closed:
            raise StoreClosed("the store is closed")
        return asyncio.get_running_loop().run_in_executor(threads, copy_context().run, call)

    # --- writes -----------------------------------------------------------------------------------

    def write(self, space: "Space", work: "Callable[[Tx], T]") -> asyncio.Future[T]:
        """Runs a transaction in the next group; the future has its result once it is durable.

        A write that is cancelled before its group has begun writes nothing. Later, its transaction
        continues, and its outcome is dropped.
        """
        loop = asyncio.get_running_loop()
        arriving = self._arriving.get(loop)
        if arriving is None:
            arriving = self._arriving[loop] = []
            # At the end of this round, so that all writes that are begun in it are in one group.
            loop.call_soon(self._send, loop)
        if len(self._waiting) + len(arriving) >= MAX_QUEUED_WRITES:
            raise ServerBusy(f"{len(self._waiting)} writes are already waiting")
        future: asyncio.Future[T] = loop.create_future()
        arriving.append(QueuedWrite(space, work, future))
        return future

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        writes = self._arriving.pop(loop)
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self._waiting.extend(writes)
                if not self._is_committing:
                    self._is_committing = True
                    self._writer.submit(self._commit_groups)
        if is_closed:
            error = StoreClosed("the store is closed")
            _settle([(write, Outcome(error=error)) for write in writes])

    def _commit_groups(self) -> None:
        """Commits one group after the other, in the writer's thread, until none is left."""
        while group := self._next_group():
            wanted = [write for write in group if not write.future.cancelled()]
            if wanted:
                _deliver(wanted, self._commit(wanted))

    def _next_group(self) -> list[QueuedWrite]:
        with self._lock:
            count = min(len(self._waiting), MAX_GROUP_TRANSACTIONS)
            self._is_committing = count > 0
            return [self._waiting.popleft() for _ in range(count)]

    def _commit(self, writes: list[QueuedWrite]) -> list[Outcome[Any]]:
        from holdfast.store import Step

        try:
            return self.store.transact_many([Step(write.space, write.work) for write in writes])
        except BaseException as error:  # of the store as a whole: every caller gets it
            return [Outcome(error=error)] * len(writes)

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Commits waiting writes, ends the threads, and wakes waiting calls."""
        with self._lock:
            self._is_closed = True
        for threads in (self._writer, self._readers, self._long):
            threads.shutdown()
        self.notices.close()


def _deliver(writes: list[QueuedWrite], outcomes: list[Outcome[Any]]) -> None:
    """Passes to each event loop the outcomes of its own writes, in one call."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[QueuedWrite, Outcome[Any]]]] = {}
    for write, outcome in zip(writes, outcomes, strict=True):
        by_loop.setdefault(write.future.get_loop(), []).append((write, outcome))
    for loop, settled in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, so nobody waits any more
            loop.call_soon_threadsafe(_settle, settled)


def _settle(settled: list[tuple[QueuedWrite, Outcome[Any]]]) -> None:
    for write, outcome in settled:
        if write.future.done():
            continue
        error = outcome.error
        if error is None:
            write.future.set_result(outcome.result)
        elif isinstance(error, StopIteration):  # which no future takes
            failure = RuntimeError("the work raised StopIteration")
            failure.__cause__ = error
            write.future.set_exception(failure)
        else:
            write.future.set_exception(error)
