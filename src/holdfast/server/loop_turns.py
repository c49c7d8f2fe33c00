"""Turns of the event loop: none takes long, however much there is to do.

Between two turns the loop checks all sockets, so every client waits at least for the length of a
turn. Small work is done at once. Large work comes in pieces, and the pieces that are left when a
turn has taken `TURN_SECONDS` are done in the next turns: one of each client address in turn, so
that a client waits behind another one's flood for a single piece of it.
"""

import asyncio
import logging
import resource
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from holdfast.limits import (
    CROWDED_TURN_CONNECTIONS,
    CROWDED_TURN_SECONDS,
    ENDED_PER_TURN,
    TURN_SECONDS,
    TURN_SENT_BYTES,
)
from holdfast.server.fair_queue import FairQueue

_log = logging.getLogger(__name__)

# If the system does not count by thread, count the process: the loop is its busiest thread.
_THREAD: Final = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


class ThreadUsage(NamedTuple):
    """The processor time and disk reads of a thread."""

    seconds: float  # of processor time
    disk_reads: int  # that it waited for

    @classmethod
    def by_this_thread(cls) -> "ThreadUsage":
        """Returns what this thread has used since its start."""
        used = resource.getrusage(_THREAD)
        return cls(used.ru_utime + used.ru_stime, used.ru_majflt)


class LoopTurns:
    """Divides the time of one event loop among pieces of work."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: FairQueue[Callable[[], None]] = FairQueue()
        self._tasks: FairQueue[asyncio.Future[None]] = FairQueue()  # waiting for their turn
        self._is_for_tasks = False  # whether the next turn is for tasks, if work waits, too
        self._next: asyncio.Handle | None = None
        self._steps: deque[Iterator[None]] = deque()  # one after the other
        self.now = 0.0  # monotonic time of the last call of `is_over`
        self._seconds = TURN_SECONDS  # that a turn may take
        self._end = 0.0  # when this turn has to end
        self._is_same = False  # still the turn in which `_end` was set
        self._used = ThreadUsage(0.0, 0)  # by the loop's thread when `_end` was set
        self._sent = 0  # bytes in this turn
        self._accepted = 0  # connections in this turn
        self._ended = 0  # connections closed in this turn
        self._ends: deque[Callable[[], None]] = deque()  # connections to close in later turns

    def is_over(self) -> bool:
        """Returns whether this turn has taken long enough; then the caller continues in a later
        one.

        The loop does not announce its turns, and scheduling a callback in each would cost more than
        most requests. So that is done once per `TURN_SECONDS`; a turn takes at most twice as long.
        """
        now = self.now = time.monotonic()
        if now <= self._end:
            return False
        if self._is_same:
            return True
        self._end = now + self._seconds
        self._used = ThreadUsage.by_this_thread()
        self._note_turn()
        return False

    def used(self) -> ThreadUsage:
        """Returns what the loop's thread has used since about the beginning of this turn."""
        now = ThreadUsage.by_this_thread()
        return ThreadUsage(now.seconds - self._used.seconds, now.disk_reads - self._used.disk_reads)

    def note_sent(self, size: int) -> None:
        """Counts bytes that were passed to a transport: copying them is work, too."""
        self._sent += size
        if self._sent > TURN_SENT_BYTES:
            self._end = 0.0
            self._note_turn()

    def _note_turn(self) -> None:
        if not self._is_same:
            self._is_same = True
            self._loop.call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._is_same = False
        self._seconds = TURN_SECONDS
        if self._accepted >= CROWDED_TURN_CONNECTIONS:
            self._seconds = CROWDED_TURN_SECONDS
            self._end = 0.0
        self._sent = self._ended = self._accepted = 0

    def note_accepted(self) -> None:
        """Counts a new connection.

        Connections are accepted in order of arrival, before anyone knows what they want. So while
        many arrive, turns are short: the last one waits until those before it are accepted, not
        until they are served.
        """
        self._accepted += 1
        self._note_turn()

    def defer_close(self, close: Callable[[], None]) -> bool:
        """Returns False if a connection may be closed now; otherwise it is closed in a later turn.

        Thousands may end at the same moment, and closing each leaves work to do.
        """
        if self._ended < ENDED_PER_TURN and not self._ends:
            self._ended += 1
            self._note_turn()
            return False
        self._ends.append(close)
        self._schedule_next_turn()
        return True

    def forget_soon(self, forget: Callable[[], None]) -> None:
        """Forgets a lost connection, now or in a later turn: thousands may be reset at the same
        moment."""
        if not self.defer_close(forget):
            forget()

    def put(self, work: Callable[[], None], client: str = "") -> None:
        """Does a piece of a client's work in a later turn."""
        self._waiting.put(client, work)
        self._schedule_next_turn()

    def run_or_defer(self, work: Callable[[], None], client: str = "") -> None:
        """Does a piece of work now if this turn has time left, otherwise in a later one."""
        if self.is_over():
            self.put(work, client)
        else:
            work()

    def run_steps(self, steps: Iterator[None]) -> None:
        """Takes the steps of an iterator, after those of earlier iterators: as many as this turn
        allows at once, the others later."""
        self._steps.append(steps)
        if len(self._steps) == 1:
            self._run_waiting_steps()

    @property
    def has_steps_left(self) -> bool:
        """Returns whether steps are left for later turns."""
        return bool(self._steps)

    async def wait_for_time(self, client: str = "") -> None:
        """Returns at once if this turn has time left, otherwise in a later one."""
        if self.is_over():
            reached = self._loop.create_future()
            self._tasks.put(client, reached)
            self._schedule_next_turn()
            await reached

    def _schedule_next_turn(self) -> None:
        if self._next is None:
            self._next = self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._next = None
        for _ in range(min(len(self._ends), ENDED_PER_TURN)):
            self._ends.popleft()()
        # Work and tasks take turns: a task runs after this returns.
        if self._tasks and (self._is_for_tasks or not self._waiting):
            self._release_a_task()
        else:
            self._run_waiting()
        self._is_for_tasks = not self._is_for_tasks
        if self._waiting or self._tasks or self._ends:
            self._schedule_next_turn()

    def _run_waiting(self) -> None:
        waiting = self._waiting
        for _ in range(len(waiting)):  # what is added meanwhile waits for the next turn
            waiting.take()()
            if self.is_over():
                break

    def _release_a_task(self) -> None:
        while self._tasks:
            reached = self._tasks.take()
            if not reached.done():  # otherwise it was cancelled
                reached.set_result(None)
                break

    def _run_waiting_steps(self) -> None:
        while self._steps:
            try:
                for _ in self._steps[0]:
                    if self.is_over():
                        self.put(self._run_waiting_steps)
                        return
            except Exception:
                _log.exception("a step failed")  # the next ones continue
            self._steps.popleft()
