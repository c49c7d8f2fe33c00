"""Decides which reads would block the event loop, and therefore run in a thread.

Most reads take some microseconds, less than it costs to pass them to a thread. A read is expected
to take long if it asks for many items, or if others of its kind have taken long lately.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any, Final

from holdfast.limits import (
    ASYNC_READ_SECONDS,
    MAX_READ_ON_LOOP,
    REMEMBERED_LARGE_READ_SECONDS,
)

_COUNTS: Final = frozenset({"count", "k", "limit", "n"})  # arguments that say how many


class ReadTimes:
    """Remembers which kinds of reads have taken long."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}  # by kind: until when they are run in a thread

    def expects_long(self, kind: str, asked: int) -> bool:
        """Returns whether a read of this kind that asks for `asked` items may take long."""
        return asked > MAX_READ_ON_LOOP or self._until.get(kind, 0.0) > self._clock()

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Notes how long a read on the loop takes."""
        begin = self._clock()
        try:
            yield
        finally:
            end = self._clock()
            if end - begin > ASYNC_READ_SECONDS:
                self._until[kind] = end + REMEMBERED_LARGE_READ_SECONDS


def requested_count(arguments: Iterable[tuple[str, Any]]) -> int:
    """Returns how many items a call asks for: its largest count, or the length of a list.

    >>> requested_count([("queue", "emails"), ("count", 25)])
    25
    >>> requested_count([("ids", ["a", "b"])])
    2
    """
    most = 0
    for name, value in arguments:
        if name in _COUNTS and isinstance(value, int):
            most = max(most, value) if value >= 0 else MAX_READ_ON_LOOP + 1  # -1 is all there are
        elif isinstance(value, Sized) and not isinstance(value, str | bytes):
            most = max(most, len(value))
    return most
