"""GCRA and token bucket: one number for each entity, in whole microseconds, never rounded.

The number is the theoretical arrival time, multiplied by the limit N so that the interval between
two events, window / N, is an integer. N is stored beside it, in case the limit changes.

An arrival time can be ahead by more than a window and a full burst for two reasons. Either a call
counted without checking the limit: then its time is stored too, as a third number. Or the clock was
ahead when it was written, and has been set back since: then it is ignored, because it would refuse
everything for as long as the clock was ahead.
"""

import math
from typing import Final

from holdfast import expiry
from holdfast.engine.contract import Transaction
from holdfast.expiry import Remover
from holdfast.limits import CLOCK_AHEAD_SECONDS, SWEEP_SECONDS

ARRIVAL_TIME: Final = "metrics.cell"


class GcraState:
    """The state of an entity under a condition, as an arrival time."""

    __slots__ = (
        "_arrival",
        "_capacity",
        "_is_stored",
        "_key",
        "_rate",
        "_time",
        "_window",
        "limit",
    )

    def __init__(
        self, key: bytes, limit: int, window: float, capacity: int, now: float, value: bytes | None
    ) -> None:
        """`value` is what is stored at `key`."""
        self._key = key
        self._rate = rate_of(limit)
        self._capacity = capacity
        self.limit = capacity
        self._window = interval_of(window)
        self._time = microseconds(now) * self._rate
        self._is_stored = value is not None
        self._arrival = self._time
        if value is not None:
            stored, rate, counted_at = _parse(value)
            if rate != self._rate:
                stored = -(-stored // rate) * self._rate
            if self._clock_was_ahead(stored, counted_at):
                self._is_stored = False  # its expiry entry is scheduled for the wrong time
            else:
                self._arrival = max(stored, self._time)

    def _clock_was_ahead(self, stored: int, counted_at: int | None) -> bool:
        """Returns whether `stored` can only have been written by a clock that was ahead."""
        slack = microseconds(CLOCK_AHEAD_SECONDS) * self._rate
        if stored - self._time <= self._most_ahead() + slack:
            return False
        return counted_at is None or counted_at * self._rate > self._time + slack

    def _most_ahead(self) -> int:
        """Returns how far ahead an arrival can be if every count was checked against the limit."""
        return max(self._capacity, self._rate) * self._window

    @property
    def prev_total(self) -> int:
        """The tokens in use."""
        return -(-(self._arrival - self._time) // self._window)

    def admits(self, amount: int) -> bool:
        return self._excess(amount) <= 0

    def retry_after(self, amount: int) -> float | None:
        if amount > self._capacity:
            return None
        return self._seconds(self._excess(amount))

    def charge(self, tx: Transaction, amount: int) -> None:
        """Stores the new arrival time. Writes 1 key, and 1 more if the entity is new."""
        self._arrival += amount * self._window
        if amount == 0:
            return
        if self._arrival - self._time > self._most_ahead():
            counted_at = self._time // self._rate
            tx.put(self._key, b"%d %d %d" % (self._arrival, self._rate, counted_at))
        else:
            tx.put(self._key, b"%d %d" % (self._arrival, self._rate))
        if not self._is_stored:
            self._is_stored = True
            _schedule(tx, self._key, self._arrival, self._rate)

    def remaining(self, counted: int) -> int:
        """`counted` is part of the arrival time already."""
        free = self._capacity * self._window - (self._arrival - self._time)
        return max(0, free // self._window)

    def reset_after(self) -> float:
        return self._seconds(self._arrival - self._time)

    def _excess(self, amount: int) -> int:
        return self._arrival + (amount - self._capacity) * self._window - self._time

    def _seconds(self, scaled: int) -> float:
        return -(-scaled // self._rate) / 1_000_000


def microseconds(seconds: float) -> int:
    return math.floor(seconds * 1_000_000 + 0.5)


def rate_of(limit: int) -> int:
    return max(limit, 1)  # a limit of 0 has no capacity, so its rate has no effect


def interval_of(window: float) -> int:
    return max(microseconds(window), 1)


def _parse(value: bytes) -> tuple[int, int, int | None]:
    """Returns the arrival, its rate, and the time of a count that was not checked, if any."""
    arrival, rate, *counted_at = value.split()
    return int(arrival), int(rate), int(counted_at[0]) if counted_at else None


def _schedule(tx: Transaction, key: bytes, arrival: int, rate: int) -> None:
    # Not at once, even if a caller's own time (`at`) is far behind the store's clock.
    ends = max(-(-arrival // rate) / 1_000_000, tx.now + SWEEP_SECONDS)
    ends += 0.001  # the sweeper rounds to ms
    expiry.schedule(tx, ends, ARRIVAL_TIME, key[len(tx.space) :])


def remove_arrival_time(tx: Transaction, subject: bytes) -> bool:
    """Deletes an arrival time that has passed: it no longer has an effect.

    A stored arrival time has one expiry entry. Later calls change the time but not the entry, so an
    entry that fires too early is scheduled again.
    """
    key = tx.space + subject
    value = tx.get(key)
    if value is None:
        return True
    arrival, rate, _ = _parse(value)
    if arrival <= microseconds(tx.now) * rate:
        tx.delete(key)
    else:
        _schedule(tx, key, arrival, rate)
    return True


REMOVERS: Final[dict[str, Remover]] = {ARRIVAL_TIME: remove_arrival_time}
