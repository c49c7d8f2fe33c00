"""Which reads would hold up all other clients, and are therefore run in a thread.

Most reads take some microseconds, less than it costs to hand them to a thread. Two signs tell the
others: they ask for many things at once, or others of their kind have taken long lately.
"""

import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Final, TypeVar

import msgspec

from holdfast.limits import (
    LARGE_READ_AGAIN_SECONDS,
    LARGE_READ_PAUSE_SECONDS,
    LARGE_READ_SECONDS,
    MAX_READ_ON_LOOP,
    REMEMBERED_LARGE_READ_SECONDS,
    VERY_LARGE_READ_SECONDS,
)

T = TypeVar("T")

_COUNTS: Final = frozenset({"count", "k", "limit", "n"})  # arguments that say how many


class LargeReads:
    """Remembers which kinds of reads have taken long."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}  # by kind: until when they are run in a thread
        self._suspected: dict[str, float] = {}  # by kind: when one took long
        self._next = 0.0  # when the next one may begin

    def expects(self, kind: str, arguments: msgspec.Struct | None = None) -> bool:
        """Returns whether a read of this kind, with these arguments, may take long."""
        if self._until and self._until.get(kind, 0.0) > self._clock():
            return True
        return arguments is not None and asked_for(arguments) > MAX_READ_ON_LOOP

    def took(self, kind: str, seconds: float) -> None:
        """Notes how long a read on the loop has taken.

        A machine that is busy for a moment holds up any read, so one that took only a little too
        long counts when a second one follows.
        """
        if seconds <= LARGE_READ_SECONDS:
            return
        now = self._clock()
        last = self._suspected.get(kind, -LARGE_READ_AGAIN_SECONDS)
        if seconds > VERY_LARGE_READ_SECONDS or now - last < LARGE_READ_AGAIN_SECONDS:
            self._until[kind] = now + REMEMBERED_LARGE_READ_SECONDS
        self._suspected[kind] = now

    def paced(
        self, call: Callable[[], T], sleep: Callable[[float], None] = time.sleep
    ) -> Callable[[], T]:
        """Returns a call for the thread of large reads, which leaves the loop as much time as it
        takes: what encodes a large value holds the interpreter's lock all along."""

        def run() -> T:
            begin = self._clock()
            if begin < self._next:
                sleep(self._next - begin)
                begin = self._clock()
            try:
                return call()
            finally:
                end = self._clock()
                self._next = end + min(end - begin, LARGE_READ_PAUSE_SECONDS)

        return run


def asked_for(arguments: msgspec.Struct) -> int:
    """Returns how many things a call asks for: its largest count, or the length of a list."""
    most = 0
    for name in _counting(type(arguments)):
        value = getattr(arguments, name)
        if type(value) is list:
            most = max(most, len(value))
        elif type(value) is int:
            most = max(most, value) if value >= 0 else sys.maxsize  # -1 is all there are
    return most


@cache
def _counting(arguments: type[msgspec.Struct]) -> tuple[str, ...]:
    fields = msgspec.structs.fields(arguments)
    return tuple(
        field.name for field in fields if field.name in _COUNTS or "list[" in str(field.type)
    )
