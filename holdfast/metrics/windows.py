"""Windows that roll over buckets: `estimate`, the original's arithmetic, and `strict`.

Both read the same counters. `estimate` thins the oldest bucket evenly; `strict` counts it in full
while any part of it is inside the window.

Why strict never admits more than the limit in any interval of the window's length: take the events
admitted in such an interval, and of these the one that was committed last, at time t. All others
lie less than a window before or after t. Those before are in the bucket of t - window or later,
because rounding is monotonic; those after, which other clocks may have dated ahead, are within the
next window. All of them were counted when it was admitted, so with it they are at most the limit.
"""

import math
from typing import Final

from holdfast.engine.contract import Reader, Transaction, read_counter
from holdfast.keys import pack_int, prefix_range
from holdfast.metrics.conditions import Compiled
from holdfast.metrics.layout import window_stems
from holdfast.metrics.rounding import round15
from holdfast.metrics.totals import sum_up

_NOISE: Final = 1e-3  # of a millisecond: what subtracting two times of today leaves behind


class EstimateWindow:
    """How an entity stands with a condition, estimated as the original does."""

    __slots__ = ("_condition", "_counts", "_key", "_last", "_now", "limit", "prev_total")

    def __init__(
        self, reader: Reader, stem: bytes, suffix: bytes, condition: Compiled, now: float
    ) -> None:
        """Reads bucket_count + 1 keys."""
        step = condition.step
        start = now - condition.window
        first = int(start / step) if start > 0 else 0
        last = int(now / step)
        wanted = [bucket + suffix for bucket in window_stems(stem, first, last)]
        self._condition = condition
        self._counts = {
            bucket: units
            for bucket, value in enumerate(reader.get_many(wanted), first)
            if value is not None and (units := read_counter(value))
        }
        self._key = wanted[-1]
        self._last = last
        self._now = now
        self.limit = condition.limit
        self.prev_total = self._total(now)

    def admits(self, amount: int) -> bool:
        return self.prev_total + amount <= self.limit

    def charge(self, tx: Transaction, amount: int) -> None:
        """Writes 1 key."""
        if amount:
            tx.add(self._key, amount)
            self._counts[self._last] = self._counts.get(self._last, 0) + amount

    def remaining(self, counted: int) -> int:
        return max(0, self.limit - self.prev_total - counted)

    def reset_after(self) -> float:
        """When the newest bucket will have left the window."""
        if not self._counts:
            return 0.0
        condition = self._condition
        return (max(self._counts) + 1) * condition.step + condition.window - self._now

    def retry_after(self, amount: int) -> float | None:
        """The next whole millisecond at which `amount` fits, if nothing is added until then."""
        if amount > self.limit:
            return None
        wait = self._first_fit(amount)
        while self._total(self._now + wait) + amount > self.limit:
            wait = (round(wait * 1000) + 1) / 1000
        return wait

    def _first_fit(self, amount: int) -> float:
        """As the window moves on its sum falls; once it rounds to what fits, `amount` fits."""
        step, window = self._condition.step, self._condition.window
        below = self.limit - amount + 0.5
        tail = sum(self._counts.values())
        moment = self._now - window
        for bucket, units in sorted(self._counts.items()):
            tail -= units
            if tail < below:
                moment = max(moment, (bucket + 1) * step - (below - tail) * step / units)
                break
        return (math.floor((moment + window - self._now) * 1000) + 1) / 1000

    def _total(self, now: float) -> int:
        start = max(now - self._condition.window, 0.0)
        return round15(sum_up(self._counts, self._condition.step, start, now, now)[0])


class StrictWindow(EstimateWindow):
    """The same, with the oldest bucket in full: never more than the limit in any window."""

    __slots__ = ()

    def __init__(
        self, reader: Reader, stem: bytes, suffix: bytes, condition: Compiled, now: float
    ) -> None:
        """Reads bucket_count + 1 keys, and looks once for buckets that other clocks dated ahead."""
        super().__init__(reader, stem, suffix, condition, now)
        ahead = self._last + 1
        if next(reader.scan(stem + pack_int(ahead), prefix_range(stem)[1], limit=1), None):
            stems = window_stems(stem, ahead, int((now + condition.window) / condition.step))
            values = reader.get_many([bucket + suffix for bucket in stems])
            self._counts.update(
                (bucket, read_counter(value))
                for bucket, value in enumerate(values, ahead)
                if value is not None
            )
            self.prev_total = self._total(now)

    def _first_fit(self, amount: int) -> float:
        """Buckets leave whole, the oldest first."""
        left = self.prev_total
        for bucket, units in sorted(self._counts.items()):
            left -= units
            if left + amount <= self.limit:
                leaves = (bucket + 1) * self._condition.step + self._condition.window
                return math.ceil((leaves - self._now) * 1000 - _NOISE) / 1000
        return 0.0

    def _total(self, now: float) -> int:
        first = int(max(now - self._condition.window, 0.0) / self._condition.step)
        return sum([units for bucket, units in self._counts.items() if bucket >= first])
