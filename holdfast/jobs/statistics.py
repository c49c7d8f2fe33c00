"""Statistics of a queue by day: wait and run times, and what was retried or failed.

The times of a day are one value: count, mean and sum of squared deviations, then as many buckets of
the histogram as are in use, four bytes each. Buckets are the seed's: seconds s0..s59, minutes
m1..m59, quarter hours 4..95, hours h24..h71, days d3..d29, and one for all that took longer. Both
views of the histogram are derived from these.
"""

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from holdfast.binding import read
from holdfast.engine.contract import read_counter
from holdfast.jobs.layout import QueueKeys, Summaries, below
from holdfast.jobs.records import QueueStats, Times
from holdfast.keys import pack_int, unpack
from holdfast.limits import JOBS_PER_STEP

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

DAY: Final = 86400
_HOUR: Final = 3600
_QUARTER: Final = 900

_SUMMARY: Final = struct.Struct(">Qdd")
_BUCKET: Final = struct.Struct(">I")
_SUMMARY_BYTES: Final = _SUMMARY.size
NOTHING: Final = bytes(_SUMMARY_BYTES)  # a day without a value
_pack_summary, _unpack_summary = _SUMMARY.pack_into, _SUMMARY.unpack_from
_pack_bucket, _unpack_bucket = _BUCKET.pack_into, _BUCKET.unpack_from
# Where each tier begins: s0, m1, quarter hour 4, h24, d3, and what is longer than all of them.
_SECONDS, _MINUTES, _QUARTERS, _HOURS, _DAYS, _LONGER = 0, 60, 119, 211, 259, 286


class Measured:
    """The wait or run times of one day."""

    __slots__ = ("_value", "count", "mean", "vk")

    def __init__(self, value: bytes | None) -> None:
        self._value = NOTHING if value is None else value
        self.count, self.mean, self.vk = _SUMMARY.unpack_from(self._value)

    @property
    def variance(self) -> float:
        return self.vk / (self.count - 1) if self.count > 1 else 0.0

    def tiers(self) -> list[int]:
        """All buckets, those of the seed's view first."""
        used = [number for (number,) in _BUCKET.iter_unpack(self._value[_SUMMARY_BYTES:])]
        return used + [0] * (_LONGER + 1 - len(used))

    def histogram(self) -> tuple[int, ...]:
        """The 148 numbers of the later view: s0..s59, m1..m59, h1..h23, d1..d6."""
        tiers = self.tiers()
        hours = [sum(tiers[at : at + 4]) for at in range(_QUARTERS, _HOURS, 4)]
        days = [sum(tiers[at : at + 24]) for at in range(_HOURS, _DAYS, 24)]
        return (*tiers[:_QUARTERS], *hours, *days, *tiers[_DAYS : _DAYS + 4])

    def seed_histogram(self) -> tuple[int, ...]:
        """The seed's view: s0..s59, m1..m59, quarter hours 4..95, h24..h71, d3..d29."""
        return tuple(self.tiers()[:_LONGER])

    def times(self) -> Times:
        return Times(
            count=self.count,
            mean=self.mean,
            std=self.variance**0.5,
            histogram=self.histogram(),
        )


def bucket_of(seconds: int) -> int:
    """The number of the bucket that counts a time of `seconds`.

    >>> [bucket_of(seconds) for seconds in (0, 59, 60, 3599, 3600, 86399, 86400, 259199, 10**9)]
    [0, 59, 60, 118, 119, 210, 211, 258, 286]
    """
    if seconds < 60:
        return seconds
    if seconds < _HOUR:
        return _MINUTES + seconds // 60 - 1
    if seconds < DAY:
        return _QUARTERS + seconds // _QUARTER - 4
    if seconds < 3 * DAY:
        return _HOURS + seconds // _HOUR - 24
    return min(_DAYS + seconds // DAY - 3, _LONGER)


def day_of(time: float) -> int:
    return int(time // DAY)


# --- writing ----------------------------------------------------------------------------------


def measure_waits(
    ledger: "Ledger", keys: QueueKeys, now: float, values: Iterable[float]
) -> None:
    """Adds wait times to the day of `now`. Reads 1 key, writes 1."""
    _measure(ledger, keys, _day_at(keys, now).wait, values)


def measure_run(ledger: "Ledger", keys: QueueKeys, now: float, seconds: float) -> None:
    """Adds a run time to the day of `now`. Reads 1 key, writes 1."""
    _measure(ledger, keys, _day_at(keys, now).run, (seconds,))


def _day_at(keys: QueueKeys, now: float) -> Summaries:
    found = keys.newest_day
    if found.day != (day := int(now // DAY)):
        found = keys.newest_day = keys.summaries(day)
    return found


def _measure(ledger: "Ledger", keys: QueueKeys, key: bytes, values: Iterable[float]) -> None:
    before = ledger.tx.get(key)
    summary = bytearray(NOTHING if before is None else before)
    for seconds in values:
        add_time(summary, seconds)
    ledger.tx.put(key, bytes(summary))
    if before is None:
        _forget_old_days(ledger, keys)


def add_time(summary: bytearray, seconds: float) -> None:
    """Counts one more time in `summary`."""
    if seconds < 0:  # a client's clock ran behind another's
        seconds = 0.0
    count, mean, vk = _unpack_summary(summary)
    count += 1
    before = seconds - mean
    mean += before / count
    _pack_summary(summary, 0, count, mean, vk + (seconds - mean) * before)
    at = _SUMMARY_BYTES + 4 * (int(seconds) if seconds < 60 else bucket_of(int(seconds)))
    if at >= len(summary):
        summary += bytes(at + 4 - len(summary))
    _pack_bucket(summary, at, _unpack_bucket(summary, at)[0] + 1)


def tally(ledger: "Ledger", keys: QueueKeys, name: str, day: int, delta: int = 1) -> None:
    """Counts retries, failures or failed jobs of a day."""
    ledger.tx.add(keys.tally(day, name), delta)


def _forget_old_days(ledger: "Ledger", keys: QueueKeys) -> None:
    """On the first value of a day: drops what is too old, relative to the newest day written."""
    settings = ledger.settings()
    newest = next(ledger.tx.scan(*below(keys.statistics), limit=1, reverse=True))[0]
    day = unpack(newest, len(keys.statistics))[0]
    for prefix in (keys.statistics, keys.tallies):
        end = prefix + pack_int(max(0, day - int(settings.statistics_days)))
        for key, _ in list(ledger.tx.scan(prefix, end, limit=JOBS_PER_STEP)):
            ledger.tx.delete(key)
    end = keys.statistics + pack_int(max(0, day - int(settings.histogram_days)))
    for key, value in list(ledger.tx.scan(keys.statistics, end, limit=JOBS_PER_STEP)):
        if len(value) > _SUMMARY_BYTES:
            ledger.tx.put(key, value[:_SUMMARY_BYTES])


# --- reading ----------------------------------------------------------------------------------


def measured_on(ledger: "Ledger", queue: str, day: int) -> tuple[Measured, Measured]:
    """The wait and the run times of a day."""
    keys = ledger.keys.queue(queue)
    there = keys.summaries(day)
    return Measured(ledger.tx.get(there.wait)), Measured(ledger.tx.get(there.run))


def stats_on(ledger: "Ledger", queue: str, date: float) -> QueueStats:
    day = day_of(date)
    keys = ledger.keys.queue(queue)
    wait, run = measured_on(ledger, queue, day)
    tallies = {
        name: read_counter(ledger.tx.get(keys.tally(day, name)))
        for name in ("retries", "failures", "failed")
    }
    return QueueStats(wait=wait.times(), run=run.times(), **tallies)


class Measuring:
    """Statistics."""

    _ledger: "Ledger"

    @read
    def stats(self, queue: str, date: float | None = None) -> QueueStats:
        """The statistics of `queue` on the day (UTC) that `date` falls into; today's by default.

        Reads 5 keys.
        """
        return stats_on(self._ledger, queue, self._ledger.time(date))
