"""Leaves the event loop its share of the interpreter while threads do large work.

A call that reads, decodes or encodes megabytes holds Python's lock for ten milliseconds or more.
The loop needs the lock for each of its events, and beside busy threads every event waits for such a
call. So one thread at a time does large work, and between two calls it pauses for as long as it has
worked: the loop serves all its events in that pause.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from holdfast.limits import LARGE_READ_PAUSE_SECONDS, MAX_READ_ON_LOOP_BYTES, TURN_SECONDS

T = TypeVar("T")


class _Running(threading.local):
    """The pacer whose work this thread is doing."""

    pacer: "Pacer | None" = None


_RUNNING: Final = _Running()


def pause() -> None:
    """Pauses large work between two of its calls, if it is time; does nothing on the loop."""
    if (pacer := _RUNNING.pacer) is not None:
        pacer.pause()


def pause_between_reads(reader: Any) -> None:
    """Makes the reader of a view in a thread pause whenever it has read much.

    A reader that does not count its bytes reads over the network, without Python's lock.
    """
    if hasattr(reader, "spent"):
        reader.spent = _pause_and_continue


def _pause_and_continue() -> int:
    pause()
    return MAX_READ_ON_LOOP_BYTES


class Pacer:
    """Divides the interpreter between an event loop and the large work of threads."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._turn = threading.Lock()  # held by the thread that works
        self._began = 0.0  # when it began to work, or continued after a pause
        self._next = 0.0  # when the next one may work

    def paced(self, call: Callable[[], T]) -> Callable[[], T]:
        """Wraps large work for a thread. Its steps should be short, with `pause` between them."""

        def run() -> T:
            self._begin()
            _RUNNING.pacer = self
            try:
                return call()
            finally:
                _RUNNING.pacer = None
                self._end()

        return run

    def pause(self) -> None:
        """Lets the loop, and then other large work, have a turn, if this thread had a long one."""
        if self._clock() - self._began > TURN_SECONDS:
            self._sleep(self._end())
            self._begin()

    def _begin(self) -> None:
        self._turn.acquire()
        if (left := self._next - self._clock()) > 0:
            self._sleep(left)
        self._began = self._clock()

    def _end(self) -> float:
        """Ends a turn, and returns the length of the pause that follows."""
        now = self._clock()
        took = now - self._began
        pause = min(took, LARGE_READ_PAUSE_SECONDS) if took > TURN_SECONDS else 0.0
        self._next = now + pause
        self._turn.release()
        return pause
