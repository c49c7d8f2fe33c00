"""Decides which reads would hold up all other clients, and therefore run in a thread.

Most reads take a few microseconds, less than it costs to pass them to a thread. The others can be
recognised: they ask for many things at once, or others of their kind recently took long or had a
large answer. A busy machine holds up any read, and a thread would make that worse. So a read that
took long only makes its kind suspect: from then on the processor time of each is measured, and what
it read from disk.
"""

import resource
import time
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple, TypeVar

import msgspec

from holdfast.limits import (
    LARGE_READ_PAUSE_SECONDS,
    LARGE_READ_SECONDS,
    MAX_ANSWER_ON_LOOP_BYTES,
    MAX_DISK_READS_ON_LOOP,
    MAX_READ_ON_LOOP,
    REMEMBERED_LARGE_READ_SECONDS,
    TURN_SECONDS,
    VERY_LARGE_READ_SECONDS,
)

T = TypeVar("T")

# If the system does not count by thread, count the process: the loop is its busiest thread.
_THREAD: Final = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
_COUNTS: Final = frozenset({"count", "k", "limit", "n"})  # arguments that say how many are wanted


class Used(NamedTuple):
    """The time that a thread has used so far."""

    seconds: float  # of processor time
    disk_reads: int  # that it waited for

    @classmethod
    def by_this_thread(cls) -> "Used":
        used = resource.getrusage(_THREAD)
        return cls(used.ru_utime + used.ru_stime, used.ru_majflt)


class LargeReads:
    """Remembers which kinds of reads have taken long."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        used: Callable[[], Used] = Used.by_this_thread,
    ) -> None:
        self._clock = clock
        self._used = used
        self.remembers: dict[str, float] = {}  # by kind: until when they run in a thread
        self.suspected: dict[str, float] = {}  # by kind: when one took long
        self._next = 0.0  # when the next one may begin

    def expects(self, kind: str, arguments: msgspec.Struct | None = None) -> bool:
        """Returns whether a read of this kind, with these arguments, may take long."""
        if self.remembers and self.remembers.get(kind, 0.0) > self._clock():
            return True
        return arguments is not None and _asks_for_many(arguments)

    def used_before(self, kind: str) -> Used | None:
        """Returns what this thread has used before a read of a suspect kind, for `took`."""
        return self._used() if kind in self.suspected else None

    def took(self, kind: str, seconds: float, before: Used | None) -> None:
        """Notes how long a read on the loop took, and what it used."""
        if seconds <= LARGE_READ_SECONDS:
            if before is not None:
                self._trust_again(kind)
        elif seconds > VERY_LARGE_READ_SECONDS or (before is not None and self._is_large(before)):
            self.remembers[kind] = self._clock() + REMEMBERED_LARGE_READ_SECONDS
        else:
            self.suspected[kind] = self._clock()

    def answered(self, kind: str, size: int) -> None:
        """Notes the size of a read's answer."""
        if size > MAX_ANSWER_ON_LOOP_BYTES:
            self.remembers[kind] = self._clock() + REMEMBERED_LARGE_READ_SECONDS

    def _trust_again(self, kind: str) -> None:
        if self._clock() - self.suspected[kind] > REMEMBERED_LARGE_READ_SECONDS:
            del self.suspected[kind]

    def _is_large(self, before: Used) -> bool:
        now = self._used()
        return (
            now.seconds - before.seconds > LARGE_READ_SECONDS
            or now.disk_reads - before.disk_reads > MAX_DISK_READS_ON_LOOP
        )

    def paced(
        self, call: Callable[[], T], sleep: Callable[[float], None] = time.sleep
    ) -> Callable[[], T]:
        """Wraps a call for a thread so that it leaves the loop as much time as it takes: decoding
        or encoding a large value holds Python's lock throughout."""

        def run() -> T:
            begin = self._clock()
            if begin < self._next:
                sleep(self._next - begin)
                begin = self._clock()
            try:
                return call()
            finally:
                end = self._clock()
                took = end - begin
                self._next = end + (
                    min(took, LARGE_READ_PAUSE_SECONDS) if took > TURN_SECONDS else 0
                )

        return run


def _asks_for_many(arguments: msgspec.Struct) -> bool:
    """Returns whether a count among the arguments, or the length of a list, is large."""
    for name in _counting(type(arguments)):
        value = getattr(arguments, name)
        if type(value) is list:
            if len(value) > MAX_READ_ON_LOOP:
                return True
        elif type(value) is int and not 0 <= value <= MAX_READ_ON_LOOP:  # -1 means all
            return True
    return False


@cache
def counts_only_lists(arguments: type[msgspec.Struct]) -> bool:
    """Returns whether only the lengths of lists determine how much such arguments ask for."""
    return _COUNTS.isdisjoint(_counting(arguments))


@cache
def _counting(arguments: type[msgspec.Struct]) -> tuple[str, ...]:
    fields = msgspec.structs.fields(arguments)
    return tuple(
        field.name for field in fields if field.name in _COUNTS or "list[" in str(field.type)
    )
