"""Remembers what other processes change at the same time, so that it is locked before it is read.

Work that reads what others change is run in vain as often as not. After such a conflict, the next
work that reads the same key or range does not guess: the space is locked for it, where the backend
can, so that it waits its turn, and else it is read first. Other work of the space goes on as ever.
"""

import time
from collections.abc import Iterable
from typing import Final

from holdfast.engine.remote.protocol import Page
from holdfast.limits import CONTENDED_SECONDS

_MAX_HOT_KEYS: Final = 1_000  # of a process; more are forgotten at once


class Contention:
    """The keys and begins of ranges that were in conflict lately."""

    def __init__(self) -> None:
        self._until: dict[bytes, float] = {}

    def note(self, keys: Iterable[bytes]) -> None:
        until = time.monotonic() + CONTENDED_SECONDS
        if len(self._until) > _MAX_HOT_KEYS:
            self._until = {}
        self._until.update(dict.fromkeys(keys, until))

    def expects(self, keys: Iterable[bytes], pages: Iterable[Page]) -> bool:
        """Returns whether others are expected at one of these."""
        hot = self._until
        if not hot:
            return False
        now = time.monotonic()
        # A key may be asked for and begin a range too, and other threads forget keys meanwhile.
        found = {key for key in (*keys, *(page.begin for page in pages)) if key in hot}
        for key in found:
            if hot.get(key, now) < now:
                hot.pop(key, None)
        return any(hot.get(key, 0.0) >= now for key in found)
