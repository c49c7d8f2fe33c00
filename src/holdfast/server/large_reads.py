"""Decides which reads would block all other clients, and therefore run in a thread.

Most reads take a few microseconds, less than it costs to pass them to a thread. The others can be
recognised: they ask for many things at once, or others of their kind recently took long or had a
large answer. What is not recognised is abandoned when it has read much, and runs again in a thread
(`turn_view.py`). A busy machine delays any read, and a thread would make that worse. So a read
counts as long only if the loop's thread has used the processor, or waited for the disk, in its
turn.
"""

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import msgspec

from holdfast.limits import (
    LARGE_READ_SECONDS,
    MAX_ANSWER_ON_LOOP_BYTES,
    MAX_DISK_READS_ON_LOOP,
    MAX_READ_ON_LOOP,
    REMEMBERED_LARGE_READ_SECONDS,
)
from holdfast.server.loop_turns import ThreadUsage

_MANY_INTERSECTED: Final = 2  # keys: each further one doubles the unions that are counted
_COUNTS: Final = frozenset({"count", "k", "limit", "n"})  # arguments that say how many are wanted


class LargeReads:
    """Remembers which kinds of reads have taken long."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        used_in_turn: Callable[[], ThreadUsage] = ThreadUsage.by_this_thread,
    ) -> None:
        self._clock = clock
        self._used_in_turn = used_in_turn
        self.remembers: dict[str, float] = {}  # by kind: until when they run in a thread

    def expects(self, kind: str, arguments: msgspec.Struct | None = None) -> bool:
        """Returns whether a read of this kind, with these arguments, may take long."""
        if self.remembers and self.remembers.get(kind, 0.0) > self._clock():
            return True
        return arguments is not None and _asks_for_many(arguments)

    def note_duration(self, kind: str, seconds: float) -> None:
        """Notes how long a read on the loop took."""
        if seconds > LARGE_READ_SECONDS:
            used = self._used_in_turn()
            if used.seconds > LARGE_READ_SECONDS or used.disk_reads > MAX_DISK_READS_ON_LOOP:
                self.remember(kind)

    def answered(self, kind: str, size: int) -> None:
        """Notes the size of a read's answer."""
        if size > MAX_ANSWER_ON_LOOP_BYTES:
            self.remember(kind)

    def remember(self, kind: str) -> None:
        """Runs reads of this kind in a thread for a while: one was too large for the loop."""
        self.remembers[kind] = self._clock() + REMEMBERED_LARGE_READ_SECONDS


def counts_many(keys: Sequence[object], op: str) -> bool:
    """Returns whether many keys are combined, or some in a way that takes long."""
    return len(keys) > (_MANY_INTERSECTED if op == "intersection" else MAX_READ_ON_LOOP)


def _asks_for_many(arguments: msgspec.Struct) -> bool:
    """Returns whether a count among the arguments, or the length of a list, is large."""
    for name in _counting(type(arguments)):
        value = getattr(arguments, name)
        if type(value) is list:
            if counts_many(value, getattr(arguments, "op", "")):
                return True
        elif type(value) in (int, float) and not 0 <= value <= MAX_READ_ON_LOOP:  # -1 means all
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
