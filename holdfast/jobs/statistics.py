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
from holdfast.jobs.layout import QueueKeys, below
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
_pack_summary, _unpack_summary = _SUMMARY.pack, _SUMMARY.unpack_from
_pack_bucket, _unpack_bucket = _BUCKET.pack, _BUCKET.unpack_from
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


def measure(
    ledger: "Ledger", keys: QueueKeys, kind: str, now: float, values: Iterable[float]
) -> None:
    """Adds wait or run times to the day of `now`. Reads 1 key, writes 1."""
    key = keys.summary(day_of(now), kind)
    before = ledger.tx.get(key)
    value = NOTHING if before is None else before
    for seconds in values:
        value = added(value, seconds)
    ledger.tx.put(key, value)
    if before is None:
        _forget_old_days(ledger, keys)


def added(value: bytes, seconds: float) -> bytes:
    """The summary `value` with one more time in it."""
    if seconds < 0:  # a client's clock ran behind another's
        seconds = 0.0
    count, mean, vk = _unpack_summary(value)
    count += 1
    before = seconds - mean
    mean += before / count
    at = _SUMMARY_BYTES + 4 * (int(seconds) if seconds < 60 else bucket_of(int(seconds)))
    if at >= len(value):
        value += bytes(at + 4 - len(value))
    (number,) = _unpack_bucket(value, at)
    summary = _pack_summary(count, mean, vk + (seconds - mean) * before)
    return summary + value[_SUMMARY_BYTES:at] + _pack_bucket(number + 1) + value[at + 4 :]


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
    wait, run = (ledger.tx.get(keys.summary(day, kind)) for kind in ("wait", "run"))
    return Measured(wait), Measured(run)


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
