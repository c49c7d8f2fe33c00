"""The algorithm `log`: stores every admission with its microsecond, so that nothing is estimated.

Entries of the same microsecond share a counter. An entry counts for exactly one window, and is kept
for another one, in case the clock is set back by less than that.
"""

from typing import Final

from holdfast import expiry
from holdfast.engine.contract import Reader, Transaction, read_counter
from holdfast.expiry import Remover
from holdfast.keys import pack, pack_int, prefix_range, unpack
from holdfast.limits import SWEEP_SECONDS
from holdfast.metrics.gcra import microseconds

LOG: Final = "metrics.log"


class LogWindow:
    """The state of an entity under a condition, by the times of all that was admitted."""

    __slots__ = ("_entries", "_now", "_stem", "_window", "limit", "prev_total")

    def __init__(self, reader: Reader, stem: bytes, limit: int, window: float, now: float) -> None:
        """Reads the entries in the window.

        Entries that another clock has dated ahead by less than a window count too: some interval of
        the window's length contains both them and now.
        """
        self._stem = stem
        self._now = microseconds(now)
        self._window = max(microseconds(window), 1)
        self.limit = limit
        begin = stem + pack_int(self._now - self._window + 1)
        end = stem + pack_int(self._now + self._window)
        self._entries = [
            (int(unpack(key, len(stem))[0]), read_counter(value))
            for key, value in reader.scan(begin, end)
        ]
        self.prev_total = sum([amount for _, amount in self._entries])

    def oldest(self) -> float | None:
        """Returns the time of the oldest entry in the window."""
        return self._entries[0][0] / 1_000_000 if self._entries else None

    def admits(self, amount: int) -> bool:
        return self.prev_total + amount <= self.limit

    def charge(self, tx: Transaction, amount: int) -> None:
        """Writes 1 key, and 1 more if the window was empty; removes what has left it."""
        if not amount:
            return
        tx.add(self._stem + pack_int(self._now), amount)
        tx.clear(self._stem, self._stem + pack_int(self._now - 2 * self._window))
        if not self._entries:
            _schedule(tx, self._stem, self._now, self._window)
        self._entries.append((self._now, amount))

    def remaining(self, counted: int) -> int:
        return max(0, self.limit - self.prev_total - counted)

    def reset_after(self) -> float:
        if not self._entries:
            return 0.0
        newest = max(time for time, _ in self._entries)
        return (newest + self._window - self._now) / 1_000_000

    def retry_after(self, amount: int) -> float | None:
        if amount > self.limit:
            return None
        left = self.prev_total
        for time, admitted in self._entries:
            left -= admitted
            if left + amount <= self.limit:
                return (time + self._window - self._now) / 1_000_000
        return 0.0


def _schedule(tx: Transaction, stem: bytes, newest: int, window: int) -> None:
    # Not at once, even if a caller's own time (`at`) is far behind the store's clock.
    ends = max((newest + 2 * window) / 1_000_000, tx.now + SWEEP_SECONDS)
    expiry.schedule(tx, ends + 0.001, LOG, pack(stem[len(tx.space) :], window))


def remove_entries(tx: Transaction, subject: bytes) -> bool:
    """Deletes the entries that have left the window; comes again if some are left."""
    tail, window = unpack(subject)
    stem = tx.space + tail
    end = prefix_range(stem)[1]
    tx.clear(stem, stem + pack_int(microseconds(tx.now) - 2 * window))
    newest = next(tx.scan(stem, end, limit=1, reverse=True), None)
    if newest is not None:
        _schedule(tx, stem, int(unpack(newest[0], len(stem))[0]), window)
    return True


REMOVERS: Final[dict[str, Remover]] = {LOG: remove_entries}
