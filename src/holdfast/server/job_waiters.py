"""Clients that wait for jobs, in order of arrival: a job that is put wakes one of them, not all.

The client that came first is woken first. Each is in the list of every queue it asked for. If
a queue has jobs, as many waiters are woken as there are jobs. A waiter that leaves, with a job of
another queue or because its client is gone, lets the next one try what it was woken for.
"""

import asyncio
import itertools
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from contextlib import suppress
from operator import attrgetter
from typing import Self

from holdfast.engine.contract import Notice
from holdfast.errors import HoldfastError
from holdfast.jobs.ledger import READY
from holdfast.server.notice_feed import NoticeFeed
from holdfast.store import Space

_arrival = attrgetter("arrival")


class JobWaiters:
    """All waiters of a server, by space and queue."""

    def __init__(self, notice_feed: NoticeFeed, *, counts_jobs: bool) -> None:
        """With `counts_jobs` it reads how many jobs there are; without, it wakes every waiter."""
        self._counts_jobs = counts_jobs
        self._queues: dict[tuple[bytes, str], _QueueWaiters] = {}
        self._arrivals = itertools.count()
        self._notice_feed = notice_feed
        self._stop_listening: Callable[[], None] | None = None  # None: nobody waits for jobs

    def join(self, space: Space, queues: Iterable[str]) -> "WaitingClient":
        """Returns a waiter at the end of the lists of `queues`, for a `with` block."""
        queue_waiters = []
        for queue in dict.fromkeys(queues):
            key = (space.prefix, queue)
            waiters = self._queues.get(key)
            if waiters is None:
                waiters = _QueueWaiters(self._forget, space, queue, counts_jobs=self._counts_jobs)
                self._queues[key] = waiters
            queue_waiters.append(waiters)
        if self._stop_listening is None:  # before the first try, so that no later job is missed
            self._stop_listening = self._notice_feed.listen(self._on_notice, topic_prefix=READY)
        return WaitingClient(next(self._arrivals), queue_waiters)

    def _forget(self, space: Space, queue: str) -> None:
        """Forgets a queue that nobody waits for any more."""
        self._queues.pop((space.prefix, queue), None)
        if not self._queues and self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None

    def _on_notice(self, notice: Notice) -> None:
        queue = notice.payload.decode()
        if queue:
            queue_waiters = [self._queues.get((notice.space, queue))]
        else:  # about every queue: changed settings, for example
            queue_waiters = [
                waiters for (space, _), waiters in self._queues.items() if space == notice.space
            ]
        for waiters in queue_waiters:
            if waiters is not None:
                waiters.wake_some()


class _QueueWaiters:
    """The waiters of one queue."""

    def __init__(
        self,
        forget: Callable[[Space, str], None],
        space: Space,
        queue: str,
        *,
        counts_jobs: bool,
    ) -> None:
        self._counts_jobs = counts_jobs
        self._forget = forget  # called when the last waiter has left
        self._space = space
        self._queue = queue
        self.awake: set[WaitingClient] = set()  # they try to pop, or are about to
        self._asleep: list[WaitingClient] = []  # in order of arrival

    def wake_some(self) -> None:
        """Makes as many waiters try as there are jobs."""
        if not self.awake and not self._asleep:
            return
        jobs = len(self.awake) + len(self._asleep)
        if self._counts_jobs:
            # If the store can't be read any more, each waiter gets the error when it tries.
            with suppress(HoldfastError), self._space.view() as view:
                jobs = view.jobs.waiting(self._queue)
        # A waiter that is awake may have tried before the job came, and has to try again.
        trying = sorted(self.awake, key=_arrival)[:jobs]
        for waiter in trying + self._asleep[: jobs - len(trying)]:
            waiter.wake()

    def put_to_sleep(self, waiter: "WaitingClient") -> None:
        self.awake.discard(waiter)
        insort(self._asleep, waiter, key=_arrival)

    def mark_awake(self, waiter: "WaitingClient") -> None:
        self.awake.add(waiter)
        del self._asleep[bisect_left(self._asleep, waiter.arrival, key=_arrival)]

    def leave(self, waiter: "WaitingClient") -> None:
        self.awake.discard(waiter)
        if self._asleep:
            self.wake_some()
        elif not self.awake:
            self._forget(self._space, self._queue)


class WaitingClient:
    """A client that waits for a job of some queues."""

    def __init__(self, arrival: int, queue_waiters: list[_QueueWaiters]) -> None:
        self.arrival = arrival
        self._queues = queue_waiters
        self._is_asleep = False
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Makes the waiter try; if it is trying already, makes it try again."""
        self._woken.set()
        if self._is_asleep:
            self._is_asleep = False
            for waiters in self._queues:
                waiters.mark_awake(self)

    async def sleep(self, seconds: float) -> bool:
        """Waits at most `seconds` to be woken, and returns whether it was."""
        if not self._woken.is_set():
            self._is_asleep = True
            for waiters in self._queues:
                waiters.put_to_sleep(self)
            try:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), seconds)
            finally:
                was_woken = not self._is_asleep
                self.wake()
        else:
            was_woken = True
        self._woken.clear()
        return was_woken

    def __enter__(self) -> Self:
        for waiters in self._queues:
            waiters.awake.add(self)
        return self

    def __exit__(self, *exc: object) -> None:
        for waiters in self._queues:
            waiters.leave(self)
