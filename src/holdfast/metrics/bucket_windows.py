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
from collections.abc import Sequence
from typing import Final

from holdfast.engine.contract import Reader, Transaction, read_counters
from holdfast.keys import pack_int, prefix_range
from holdfast.metrics.conditions import ConditionKeys
from holdfast.metrics.layout import window_stems
from holdfast.metrics.rounding import round15
from holdfast.metrics.totals import sum_up
from holdfast.metrics.window_summaries import pack_summary, read_summary

_NOISE: Final = 1e-3  # of a millisecond: what subtracting two times of today leaves behind


class EstimateWindow:
    """How an entity stands with a condition, estimated as the original does."""

    __slots__ = (
        "_begin",
        "_condition",
        "_first",
        "_has_tally",
        "_is_whole",
        "_last",
        "_now",
        "_place",
        "_since",
        "_suffix",
        "_units",
        "limit",
        "prev_total",
    )

    def __init__(
        self, reader: Reader, place: ConditionKeys, suffix: bytes, now: float, value: bytes | None
    ) -> None:
        """`value` is the tally. Without it, reads bucket_count + 1 keys and scans for one more."""
        self._place = place
        self._suffix = suffix
        self._now = now
        self._condition = condition = place.condition
        self.limit = condition.limit
        step = condition.step
        start = now - condition.window
        self._first = first = int(start / step) if start > 0 else 0
        self._last = last = int(now / step)
        self._has_tally = value is not None
        if value is not None:
            tally = read_summary(value)
            begin = tally[1]
            # One that begins after the window, or knows of what other clocks have dated ahead,
            # is not asked.
            if tally[0] <= first and begin + len(tally) - 3 <= last:
                # It is needed as far back as the bucket before the window: a clock that is a
                # little behind still asks for that one.
                self._is_whole = True
                if begin < first - 1:
                    self._since = self._begin = first - 1
                    self._units = list(tally[1 + first - begin :])
                else:
                    self._since, self._begin = tally[0], begin
                    self._units = list(tally[2:])
                self.prev_total = self._total(now)
                return
        self._read_counters(reader)
        self.prev_total = self._total(now)

    def _read_counters(self, reader: Reader) -> None:
        """What a tally would say, from the counters themselves."""
        stem, suffix, last = self._place.stem, self._suffix, self._last
        self._since = self._begin = self._first
        wanted = [bucket + suffix for bucket in window_stems(stem, self._first, last)]
        units = self._units = read_counters(reader.get_many(wanted))
        ahead = reader.scan(stem + pack_int(last + 1), prefix_range(stem)[1], limit=1)
        self._is_whole = next(ahead, None) is None
        if not self._is_whole:
            self._read_ahead(reader)
        elif any(units):
            empty = next(index for index, found in enumerate(units) if found)
            self._begin += empty
            del units[:empty]
        else:
            units.clear()

    def _read_ahead(self, reader: Reader) -> None:
        """What other clocks have dated ahead is no part of an estimate."""

    def admits(self, amount: int) -> bool:
        return self.prev_total + amount <= self.limit

    def charge(self, tx: Transaction, amount: int) -> None:
        """Writes 2 keys: the counter and the tally."""
        if not amount:
            return
        suffix, units, last = self._suffix, self._units, self._last
        tx.add(self._place.stem_of(last) + suffix, amount)
        if not units:
            self._begin = last
        index = last - self._begin
        if index >= len(units):
            units += [0] * (index - len(units) + 1)
        units[index] += amount
        if self._is_whole and self._condition.is_summarized:
            tally = pack_summary(self._since, self._begin, units)
            tx.put(self._place.tallies + suffix, tally)
        elif self._has_tally:
            tx.delete(self._place.tallies + suffix)

    def remaining(self, counted: int) -> int:
        left = self.limit - self.prev_total - counted
        return left if left > 0 else 0

    def reset_after(self) -> float:
        """When the newest bucket will have left the window."""
        newest = self._begin + len(self._units)
        for units in reversed(self._units):  # mostly the last one is not 0
            if units:
                break
            newest -= 1
        if newest <= self._first:
            return 0.0
        condition = self._condition
        return newest * condition.step + condition.window - self._now

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
        counts = self._counts()
        tail = sum(counts.values())
        moment = self._now - window
        for bucket, units in counts.items():
            tail -= units
            if tail < below:
                moment = max(moment, (bucket + 1) * step - (below - tail) * step / units)
                break
        return (math.floor((moment + window - self._now) * 1000) + 1) / 1000

    def _counts(self) -> dict[int, int]:
        """The units of each bucket of the window that is not empty."""
        found = enumerate(self._units, self._begin)
        return {bucket: units for bucket, units in found if units and bucket >= self._first}

    def _total(self, now: float) -> int:
        """What `sum_up` says, with the usual case first: the window ends now."""
        condition, units, last = self._condition, self._units, self._last
        step, first = condition.step, self._first
        if now != self._now or first == last or not last * step <= now <= (last + 1) * step:
            start = max(now - condition.window, 0.0)
            return round15(sum_up(self._counts(), step, start, now, now)[0])
        place = first - self._begin
        if place < 0:
            return sum(units)
        start = now - condition.window if now > condition.window else 0.0
        return thinned(units, place, (first + 1) * step - start, step)


class StrictWindow(EstimateWindow):
    """The same, with the oldest bucket in full: never more than the limit in any window."""

    __slots__ = ()

    def _read_ahead(self, reader: Reader) -> None:
        """What other clocks have dated ahead counts, if it is less than a window away."""
        condition, ahead = self._condition, self._last + 1
        until = int((self._now + condition.window) / condition.step)
        stems = window_stems(self._place.stem, ahead, until)
        self._units += read_counters(reader.get_many([bucket + self._suffix for bucket in stems]))

    def _first_fit(self, amount: int) -> float:
        """Buckets leave whole, the oldest first."""
        left, first = self.prev_total + amount - self.limit, self._first
        for bucket, units in enumerate(self._units, self._begin):
            if units and bucket >= first:
                left -= units
                if left <= 0:
                    leaves = (bucket + 1) * self._condition.step + self._condition.window
                    return math.ceil((leaves - self._now) * 1000 - _NOISE) / 1000
        return 0.0

    def _total(self, now: float) -> int:
        first = self._first
        if now != self._now:
            first = int(max(now - self._condition.window, 0.0) / self._condition.step)
        place = first - self._begin
        return sum(self._units[place:] if place > 0 else self._units)


def thinned(units: Sequence[int], place: int, inside: float, step: float) -> int:
    """The sum of `units` from `place` on, where only `inside` of `step` seconds count of the first.

    One by one, as the original adds them: a sum of fractions depends on the order.
    """
    oldest = units[place] if place < len(units) else 0
    if not oldest:
        return sum(units[place + 1 :])
    total = oldest * max(inside, 0) / step
    for found in units[place + 1 :]:
        total += found
    return round15(total)
