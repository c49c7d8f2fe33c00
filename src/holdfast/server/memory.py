"""Keeps a server's memory small, and the pauses of Python's garbage collector short."""

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from holdfast.limits import MAPPED_MEMORY_BYTES, SWITCH_SECONDS
from holdfast.server.back_pressure import BackPressure
from holdfast.server.client_limits import MemoryBudget

# Thresholds of the collector: no collection that Python starts by itself looks at more than some
# 10,000 objects. It never looks at all of them; `FullCollections` decides when that is done.
_COLLECTIONS: Final = (2_000, 5, 1_000_000_000)
_GROWN_BLOCKS: Final = 50_000  # memory blocks that may be garbage: some megabytes
_FEW_BLOCKS: Final = 150_000  # more than at the start: the collector takes some 50 ms for them
_CHECKS_BEFORE_FREEZE: Final = 60  # checks of a process that stays large
_M_MMAP_THRESHOLD: Final = -3  # of <malloc.h>
_STEADY_BYTES: Final = 1024 * 1024  # by which a process may grow between two checks
_HELD_BYTES: Final = 32 * 1024 * 1024  # held for clients, as in a flood of requests
_GROWN_BYTES: Final = 8 * 1024 * 1024  # worth the time of returning them
_FIRST_RETRY_CHECKS: Final = 8  # checks before the next try


def resident_bytes() -> int:
    """Returns the memory of this process that it shares with no other; 0 if the system does not
    say."""
    try:
        words = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return (int(words[1]) - int(words[2])) * os.sysconf("SC_PAGE_SIZE")


class MemoryWatch:
    """Notices when much memory was held for clients, or by a long operation, and has been freed.

    The C library keeps freed memory: a few small blocks after it are enough for that. The heap of a
    thread that had loaded 240 MB in small steps stayed at its peak of 70 MB.
    """

    def __init__(
        self,
        budget: MemoryBudget,
        back_pressure: BackPressure,
        resident_bytes: Callable[[], int] = resident_bytes,
    ) -> None:
        self._budget = budget
        self._unsent = back_pressure
        self._resident_bytes = resident_bytes
        self._last = self._least = resident_bytes()
        self._grown = 0  # since memory was returned; it may have shrunk in between
        self._checks = 0  # since then
        self._retry_checks = _FIRST_RETRY_CHECKS

    def should_return_memory(self) -> bool:
        """Returns whether the process has grown and the flood is over; asked from time to time.

        Memory that is in use at the first try may be freed later, without another sign of it. So a
        process that stays larger than before tries again, at longer and longer intervals.
        """
        held = self._budget.take_peak() + self._unsent.total
        resident = self._resident_bytes()
        growth, self._last = resident - self._last, resident
        self._grown += max(0, growth)
        self._least = min(self._least, resident)
        self._checks += 1
        is_over = held < _HELD_BYTES and growth <= _STEADY_BYTES
        is_large = self._checks >= self._retry_checks and resident - self._least > _GROWN_BYTES
        return is_over and (self._grown > _GROWN_BYTES or is_large)

    def note_returned(self) -> None:
        """Notes that free pages were returned: the rest is in use for now."""
        self._retry_checks = (
            _FIRST_RETRY_CHECKS if self._grown > _GROWN_BYTES else 2 * self._retry_checks
        )
        self._grown, self._checks, self._last = 0, 0, self._resident_bytes()


class FullCollections:
    """Decides when the collector looks at all objects; every client waits for that.

    Python would do so in the middle of a flood, when a million values of requests are in use: that
    took 270 ms. So it is done only while there are few objects, and if the process has at least a
    quarter more memory blocks than after the last time. If it stays large for long, its objects are
    frozen, which takes no time: from then on the collector looks at newer ones only. They are
    thawed, and collected, when the process is small again.
    """

    def __init__(
        self,
        blocks: Callable[[], int] = sys.getallocatedblocks,
        collector: Any = gc,
    ) -> None:
        self._blocks = blocks
        self._collector = collector
        self._first = blocks()  # objects that existed at the start are frozen
        self._frozen = self._least = self._first  # blocks when objects were last frozen, collected
        self._frozen_objects = 0  # when objects of a large process were last frozen
        self._checks = 0

    def collect_if_due(self, *, is_worthwhile: bool = False) -> None:
        """Collects garbage if there may be much of it, or if it `is_worthwhile`, as in a process
        that has grown, and if that takes only a moment; called from time to time."""
        blocks = self._blocks()
        self._least = min(self._least, blocks)
        if self._frozen > self._first and blocks - self._first <= _FEW_BLOCKS:
            self._thaw()
        elif blocks - self._least > max(_GROWN_BLOCKS, (self._least - self._first) // 4):
            self._checks += 1
            if self._are_few(blocks):
                self._collect()
            elif self._checks >= _CHECKS_BEFORE_FREEZE:
                self._freeze()
        else:
            self._checks = 0
            if is_worthwhile and self._are_few(blocks):
                self._collect()

    def _are_few(self, blocks: int) -> bool:
        """Returns whether a collection takes only a moment: whether few objects were made since the
        last ones were frozen, in addition to those or in their place."""
        if blocks - self._frozen > _FEW_BLOCKS:
            return False
        if self._frozen == self._first:
            return True
        gone: int = self._frozen_objects - self._collector.get_freeze_count()
        return gone <= _FEW_BLOCKS

    def _collect(self) -> None:
        self._collector.collect()
        self._least, self._checks = self._blocks(), 0

    def _freeze(self) -> None:
        self._collector.freeze()
        self._frozen = self._least = self._blocks()
        self._frozen_objects = self._collector.get_freeze_count()
        self._checks = 0

    def _thaw(self) -> None:
        """Collects what was frozen, and freezes what is still in use: among it are the objects of
        the start."""
        self._collector.unfreeze()
        self._collect()
        self._collector.freeze()
        self._frozen = self._first


def prepare_process() -> None:
    """Sets up a server's process so that it holds up its clients as little as possible.

    Objects created at the start are frozen, so the collector does not look at them again and again,
    some 40 ms each time, and it looks at few of the others at a time (see `FullCollections`). A
    computing thread yields Python's lock to the loop quickly. And large blocks of memory go back to
    the system when they are freed: the C library raises its threshold for that when such blocks
    come and go, and would take the next ones from the heap, which keeps them.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)
    if (set_option := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        set_option(_M_MMAP_THRESHOLD, MAPPED_MEMORY_BYTES)


def return_memory() -> None:
    """Makes the C library return free pages; does nothing on other systems than Linux."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
