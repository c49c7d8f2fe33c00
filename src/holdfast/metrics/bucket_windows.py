"""Sliding windows made of buckets: `estimate`, the original's arithmetic, and `strict`.

Both read the same counters. `estimate` counts the share of the oldest bucket that is inside the
window; `strict` counts it in full while any part of it is inside.

Why strict never admits more than the limit in any interval of the window's length: take the events
admitted in such an interval, and of these the one that was committed last, at time t. All others
are less than a window before or after t. Those before are in the bucket of t - window or later,
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

_NOISE: Final = 1e-3  # of a millisecond: the rounding error of subtracting two current times


class EstimateWindow:
    """The state of an entity under a condition, estimated as the original does."""

    __slots__ = (
        "_begin",
        "_condition",
        "_first",
        "_has_summary",
        "_is_whole",
        "_keys",
        "_last",
        "_now",
        "_since",
        "_suffix",
        "_units",
        "limit",
        "prev_total",
    )

    def __init__(
        self, reader: Reader, keys: ConditionKeys, suffix: bytes, now: float, value: bytes | None
    ) -> None:
        """`value` is the summary; without it, reads bucket_count + 1 keys and scans for 1."""
        self._keys = keys
        self._suffix = suffix
        self._now = now
        self._condition = condition = keys.condition
        self.limit = condition.limit
        step = condition.step
        start = now - condition.window
        self._first = first = int(start / step) if start > 0 else 0
        self._last = last = int(now / step)
        self._has_summary = value is not None
        if value is not None:
            summary = read_summary(value)
            begin = summary[1]
            # A summary that begins after the window, or has counts that other clocks have dated
            # ahead, is not used.
            if summary[0] <= first and begin + len(summary) - 3 <= last:
                # The summary must reach back to the bucket before the window: a clock that is a
                # little behind still needs that one.
                self._is_whole = True
                if begin < first - 1:
                    self._since = self._begin = first - 1
                    self._units = list(summary[1 + first - begin :])
                else:
                    self._since, self._begin = summary[0], begin
                    self._units = list(summary[2:])
                self.prev_total = self._total(now)
                return
        self._read_counters(reader)
        self.prev_total = self._total(now)

    def _read_counters(self, reader: Reader) -> None:
        """Reads the counters themselves, when there is no summary of them."""
        stem, suffix, last = self._keys.stem, self._suffix, self._last
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
        """Reads nothing: counts that other clocks have dated ahead are no part of an estimate."""

    def admits(self, amount: int) -> bool:
        return self.prev_total + amount <= self.limit

    def charge(self, tx: Transaction, amount: int) -> None:
        """Counts `amount`. Writes 2 keys: the counter and the summary."""
        if not amount:
            return
        suffix, units, last = self._suffix, self._units, self._last
        tx.add(self._keys.stem_of(last) + suffix, amount)
        if not units:
            self._begin = last
        index = last - self._begin
        if index >= len(units):
            units += [0] * (index - len(units) + 1)
        units[index] += amount
        if self._is_whole and self._condition.is_summarized:
            summary = pack_summary(self._since, self._begin, units)
            tx.put(self._keys.summaries + suffix, summary)
        elif self._has_summary:
            tx.delete(self._keys.summaries + suffix)

    def remaining(self, counted: int) -> int:
        left = self.limit - self.prev_total - counted
        return left if left > 0 else 0

    def reset_after(self) -> float:
        """Returns when the newest bucket will have left the window."""
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
        """Returns the wait, in whole milliseconds, until `amount` fits if nothing else is added."""
        if amount > self.limit:
            return None
        wait = self._first_fit(amount)
        while self._total(self._now + wait) + amount > self.limit:
            wait = (round(wait * 1000) + 1) / 1000
        return wait

    def _first_fit(self, amount: int) -> float:
        """Returns the wait until the sum, which falls as the window moves, leaves `amount` free."""
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
        """Returns the units of each bucket of the window that is not empty."""
        found = enumerate(self._units, self._begin)
        return {bucket: units for bucket, units in found if units and bucket >= self._first}

    def _total(self, now: float) -> int:
        """Returns what `sum_up` returns, with the usual case first: the window ends now."""
        condition, units, last = self._condition, self._units, self._last
        step, first = condition.step, self._first
        if now != self._now or first == last or not last * step <= now <= (last + 1) * step:
            start = max(now - condition.window, 0.0)
            return round15(sum_up(self._counts(), step, start, now, now)[0])
        index = first - self._begin
        if index < 0:
            return sum(units)
        start = now - condition.window if now > condition.window else 0.0
        return weighted_sum(units, index, (first + 1) * step - start, step)


class StrictWindow(EstimateWindow):
    """Like `EstimateWindow`, with the oldest bucket in full: never more than the limit."""

    __slots__ = ()

    def _read_ahead(self, reader: Reader) -> None:
        """Reads counts that other clocks have dated ahead by less than a window: they count."""
        condition, ahead = self._condition, self._last + 1
        until = int((self._now + condition.window) / condition.step)
        stems = window_stems(self._keys.stem, ahead, until)
        self._units += read_counters(reader.get_many([bucket + self._suffix for bucket in stems]))

    def _first_fit(self, amount: int) -> float:
        """Returns the wait until enough buckets have left the window, which they leave whole."""
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
        index = first - self._begin
        return sum(self._units[index:] if index > 0 else self._units)


def weighted_sum(units: Sequence[int], index: int, inside: float, step: float) -> int:
    """Returns the sum of `units` from `index` on; of the first only `inside` of `step` counts.

    One by one, as the original adds them: a sum of fractions depends on the order.
    """
    oldest = units[index] if index < len(units) else 0
    if not oldest:
        return sum(units[index + 1 :])
    total = oldest * max(inside, 0) / step
    for found in units[index + 1 :]:
        total += found
    return round15(total)
