"""Returns memory to the system after a flood: the allocator would keep it for the next one."""

import ctypes
from typing import Final

from holdfast.server.back_pressure import BackPressure
from holdfast.server.bounds import MemoryBudget

_LARGE_BYTES: Final = 32 * 1024 * 1024  # that were held, and are worth the time of giving them back


class Memory:
    """Notices that much was held for clients, and is no more."""

    def __init__(self, budget: MemoryBudget, back_pressure: BackPressure) -> None:
        self._budget = budget
        self._unsent = back_pressure
        self._was_large = False

    def is_to_be_returned(self) -> bool:
        """Asked from time to time: whether a flood is over."""
        held = self._budget.take_peak() + self._unsent.total
        is_over = self._was_large and held < _LARGE_BYTES
        self._was_large = held >= _LARGE_BYTES
        return is_over


def return_memory() -> None:
    """Has the C library return free pages; elsewhere than on Linux they are left to it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
