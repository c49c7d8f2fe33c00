"""Statistics of a queue by day: wait and run times, retries and failures.

The times of a day are a *summary*: count, mean and sum of squared deviations, then as many buckets
of the histogram as are in use, four bytes each. Buckets are the seed's: seconds s0..s59, minutes
m1..m59, quarter hours 4..95, hours h24..h71, days d3..d29, and one for all that took longer. Both
views of the histogram are derived from these.

The summary of the current day is the second half of a *flow*. The first half is that day and the
number of jobs that have gone through: a pop or a completion writes only its flow, and no other
counter. When another day begins, the summaries move to keys of their own, and the number that went
through is added to the queue's counter. Notes about jobs that ended follow, see breakdown.py.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from holdfast.declarations import operation
from holdfast.engine.contract import Reader, read_counter
from holdfast.jobs import breakdown
from holdfast.jobs.arguments import check_queue
from holdfast.jobs.breakdown import COMPLETED, FAILED, RETRIED, pack_end, pack_note, split_notes
from holdfast.jobs.layout import HIGH, LOW, QueueKeys, below
from holdfast.jobs.records import JobRecord, QueueStats, Times
from holdfast.keys import pack_int, unpack
from holdfast.limits import JOBS_PER_STEP, MAX_IMPORTED_COUNT, MAX_NOTES_BYTES

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


DAY: Final = 86400
_HOUR: Final = 3600
_QUARTER: Final = 900

_SUMMED: Final = ("retries", "failures")  # "failed" is not among them: it also goes down
_encode_total: Final = msgspec.msgpack.Encoder().encode
_decode_total: Final = msgspec.msgpack.Decoder(tuple[int, float, list[int]]).decode
_SUMMARY: Final = struct.Struct(">Qdd")
_BUCKET: Final = struct.Struct(">I")
_SUMMARY_BYTES: Final = _SUMMARY.size
EMPTY_SUMMARY: Final = bytes(_SUMMARY_BYTES + _BUCKET.size)  # a day without times, and s0
_FLOW: Final = struct.Struct(">qqQddI")  # the day, how many went through, a summary's beginning
_FLOW_BYTES: Final = _FLOW.size
_DAY_BYTES: Final = _FLOW_BYTES - len(EMPTY_SUMMARY)  # what comes before the summary
_pack_day: Final = struct.Struct(">qq").pack
_pack_flow, _unpack_flow = _FLOW.pack, _FLOW.unpack_from
_pack_bucket, _unpack_bucket = _BUCKET.pack, _BUCKET.unpack_from
# Where each tier begins: s0, m1, quarter hour 4, h24, d3, and what is longer than all of them.
_SECONDS, _MINUTES, _QUARTERS, _HOURS, _DAYS, _LONGER = 0, 60, 119, 211, 259, 286


_NO_NAMES: Final = ("", "")  # no class and worker whose names are known to be in the notes

# A flow as it is stored and decoded: its bytes, when its day begins, the day, how many went
# through, count, mean, vk, s0 and the other buckets. `QueueKeys` keeps the last one, so that the
# next operation need not decode it; if the store has other bytes, it does.
Flow: TypeAlias = tuple[bytes, float, int, int, int, float, float, int, bytes]
# The same with its notes: all names, all notes, their number, and the last class and worker with
# the place of their names.
EndedFlow: TypeAlias = tuple[
    bytes, float, int, int, int, float, float, int, bytes, bytes, bytes, int, str, str, int
]


class DayTimes:
    """The wait or run times of one day."""

    __slots__ = ("_value", "count", "mean", "vk")

    def __init__(self, value: bytes | None) -> None:
        self._value = EMPTY_SUMMARY if value is None else value
        self.count, self.mean, self.vk = _SUMMARY.unpack_from(self._value)

    @property
    def variance(self) -> float:
        return self.vk / (self.count - 1) if self.count > 1 else 0.0

    def tiers(self) -> list[int]:
        """Returns all buckets, those of the seed's view first."""
        used = [number for (number,) in _BUCKET.iter_unpack(self._value[_SUMMARY_BYTES:])]
        return used + [0] * (_LONGER + 1 - len(used))

    def histogram(self) -> tuple[int, ...]:
        """Returns the 148 numbers of the later view: s0..s59, m1..m59, h1..h23, d1..d6."""
        tiers = self.tiers()
        hours = [sum(tiers[at : at + 4]) for at in range(_QUARTERS, _HOURS, 4)]
        days = [sum(tiers[at : at + 24]) for at in range(_HOURS, _DAYS, 24)]
        return (*tiers[:_QUARTERS], *hours, *days, *tiers[_DAYS : _DAYS + 4])

    def v1_histogram(self) -> tuple[int, ...]:
        """Returns the seed's view: s0..s59, m1..m59, quarter hours 4..95, h24..h71, d3..d29."""
        return tuple(self.tiers()[:_LONGER])

    def times(self) -> Times:
        return Times(
            count=self.count,
            mean=self.mean,
            std=self.variance**0.5,
            histogram=self.histogram(),
        )


def bucket_of(seconds: int) -> int:
    """Returns the number of the bucket that counts a time of `seconds`.

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


def count_popped(
    ledger: "Ledger", keys: QueueKeys, now: float, jobs: Sequence[JobRecord], from_work_list: int
) -> bytes:
    """Counts how long `jobs` have waited; `from_work_list` of them come from the work list.

    Returns the flow `keys.popped`, which the caller puts. Reads 1 key.
    """
    flow = keys.popped_flow
    if ledger.tx.get(keys.popped) != flow[0] or not 0.0 <= now - flow[1] < DAY:
        flow = _load_flow(ledger, keys, keys.popped, now)
    _, begin, day, passed, count, mean, vk, under_1s, rest = flow
    passed += from_work_list
    seconds = now - jobs[0].time
    if len(jobs) == 1 and 0.0 <= seconds < 1.0:  # as most pops are
        count += 1
        before = seconds - mean
        mean += before / count
        vk += (seconds - mean) * before
        under_1s += 1
    else:
        times = [now - job.time for job in jobs]
        count, mean, vk, under_1s, rest = add_times(count, mean, vk, under_1s, rest, times)
    value: bytes = _pack_flow(day, passed, count, mean, vk, under_1s) + rest
    keys.popped_flow = value, begin, day, passed, count, mean, vk, under_1s, rest
    return value


def count_ended(
    ledger: "Ledger", keys: QueueKeys, job: JobRecord, why: int, worker: str, now: float
) -> bytes:
    """Counts a job that ends now, and how long it ran if it was completed; `why` says how it ends.

    Returns the flow `keys.ended`, which the caller puts before the next job is counted. Reads 1
    key. One call in seventy counts the notes too, see breakdown.py.
    """
    flow = keys.ended_flow
    if ledger.tx.get(keys.ended) != flow[0] or not 0.0 <= now - flow[1] < DAY:
        flow = _load_ended_flow(ledger, keys, now)
    (
        _, begin, day, passed, count, mean, vk, under_1s, rest,
        names, notes, number, klass, holder, at,
    ) = flow  # fmt: skip
    seconds = now - job.time
    if why == COMPLETED:
        passed += 1
        if 0.0 <= seconds < 1.0:
            count += 1
            before = seconds - mean
            mean += before / count
            vk += (seconds - mean) * before
            under_1s += 1
        else:
            count, mean, vk, under_1s, rest = add_times(count, mean, vk, under_1s, rest, (seconds,))
    if worker != holder or job.klass != klass or job.tags:
        names, at = breakdown.add_names(ledger, names, job, worker)
        klass, holder = (job.klass, worker) if not job.tags else _NO_NAMES
    notes += pack_note(why, at, job.waited, seconds if seconds > 0.0 else 0.0)
    number += 1
    all_notes = names + notes + pack_end(len(names), number, 1)
    if len(all_notes) > MAX_NOTES_BYTES:
        breakdown.count_notes(ledger, keys, day, all_notes)
        names = notes = b""
        number, (klass, holder) = 0, _NO_NAMES
        all_notes = b""
    value: bytes = _pack_flow(day, passed, count, mean, vk, under_1s) + rest + all_notes
    keys.ended_flow = (
        value, begin, day, passed, count, mean, vk, under_1s, rest,
        names, notes, number, klass, holder, at,
    )  # fmt: skip
    return value


def _load_flow(ledger: "Ledger", keys: QueueKeys, key: bytes, now: float) -> Flow:
    """Returns the flow at `key`, decoded; if it is of another day, it becomes that of `now`."""
    value = ledger.tx.get(key)
    if value is None or _unpack_flow(value)[0] != now // DAY:
        _begin_day(ledger, keys, day_of(now))
        value = ledger.tx.get(key)
        assert value is not None
    day, passed, count, mean, vk, under_1s = _unpack_flow(value)
    rest = split_notes(value)[0][_FLOW_BYTES:]
    return value, float(day * DAY), day, passed, count, mean, vk, under_1s, rest


def _load_ended_flow(ledger: "Ledger", keys: QueueKeys, now: float) -> EndedFlow:
    """Returns the flow of jobs that ended, decoded with its notes."""
    flow = _load_flow(ledger, keys, keys.ended, now)
    return (*flow, *breakdown.split_names(split_notes(flow[0])[1]), *_NO_NAMES, 0)


def count_failure(ledger: "Ledger", keys: QueueKeys, job: JobRecord, now: float) -> None:
    """Counts a failure of a day; `job` still knows its worker. Reads 1 key, writes 2."""
    tally(ledger, keys, "failures", day_of(now))
    ledger.tx.put(keys.ended, count_ended(ledger, keys, job, FAILED, job.worker, now))


def count_lost_lock(ledger: "Ledger", keys: QueueKeys, job: JobRecord, now: float) -> None:
    """Counts a lock that has ended. Reads 1 key, writes 2."""
    tally(ledger, keys, "retries", day_of(now))
    count_retry(ledger, keys, job, now)


def count_retry(ledger: "Ledger", keys: QueueKeys, job: JobRecord, now: float) -> None:
    """Counts a run that ended without a result in the breakdowns; `job` still knows its worker.

    Qless' counter of a day, `retries`, has only locks that have ended. Reads and writes 1 key.
    """
    ledger.tx.put(keys.ended, count_ended(ledger, keys, job, RETRIED, job.worker, now))


def add_times(
    count: int, mean: float, vk: float, under_1s: int, rest: bytes, times: Iterable[float]
) -> tuple[int, float, float, int, bytes]:
    """Returns the parts of a summary when `times` have been added to it."""
    for time in times:
        seconds = max(0.0, time)  # below 0: a client's clock ran behind another's
        count += 1
        before = seconds - mean
        mean += before / count
        vk += (seconds - mean) * before
        if seconds < 1.0:
            under_1s += 1
        else:
            rest = _increment_bucket(rest, bucket_of(int(seconds)))
    return count, mean, vk, under_1s, rest


def _increment_bucket(buckets: bytes, bucket: int) -> bytes:
    """Returns `buckets`, those in use from s1 on, with one more time in `bucket`."""
    at = 4 * (bucket - 1)
    if at >= len(buckets):
        return buckets.ljust(at, b"\0") + _pack_bucket(1)
    return buckets[:at] + _pack_bucket(_unpack_bucket(buckets, at)[0] + 1) + buckets[at + 4 :]


def empty_flow(day: int, summary: bytes = EMPTY_SUMMARY) -> bytes:
    return _pack_day(day, 0) + summary


def summary_of(flow: bytes) -> bytes:
    return split_notes(flow)[0][_DAY_BYTES:]


def _begin_day(ledger: "Ledger", keys: QueueKeys, day: int) -> None:
    """Makes both flows of a queue those of `day`."""
    popped = _begin_day_of_flow(ledger, keys, keys.popped, day, "wait")
    ended = _begin_day_of_flow(ledger, keys, keys.ended, day, "run")
    if popped or ended:
        ledger.tx.add(keys.work_counts, (HIGH - LOW) * popped - HIGH * ended)
    _forget_old_days(ledger, keys, day)


def _begin_day_of_flow(ledger: "Ledger", keys: QueueKeys, key: bytes, day: int, kind: str) -> int:
    """Puts the summary of another day in its place and takes that of `day` from there.

    Returns how many had gone through, for the caller to count.
    """
    tx = ledger.tx
    passed = 0
    flow = tx.get(key)
    if flow is not None:
        last_day, passed, count, *_ = _unpack_flow(flow)
        if count:
            tx.put(keys.summary(last_day, kind), summary_of(flow))
        breakdown.count_notes(ledger, keys, last_day, split_notes(flow)[1])
    place = keys.summary(day, kind)
    summary = tx.get(place)
    if summary is not None:
        tx.delete(place)
    # One whose histogram was dropped has no buckets.
    tx.put(
        key,
        empty_flow(
            day, EMPTY_SUMMARY if summary is None else summary.ljust(len(EMPTY_SUMMARY), b"\0")
        ),
    )
    return passed


def import_times(
    ledger: "Ledger",
    keys: QueueKeys,
    day: int,
    kind: str,
    times: tuple[int, float, float],
    buckets: Iterable[tuple[int, int]],
) -> bool:
    """Imports the times of a day from another system, unless that day has times here.

    Returns whether it did. Reads 2 keys, writes 1.
    """
    tiers = [0] * (_LONGER + 1)
    for seconds, number in buckets:
        tiers[bucket_of(max(0, seconds))] += number
    used = max([1, *(at + 1 for at, number in enumerate(tiers) if number)])
    count, mean, vk = times
    summary = _SUMMARY.pack(min(count, MAX_IMPORTED_COUNT), mean, vk)
    bounded = [min(max(0, number), MAX_IMPORTED_COUNT) for number in tiers[:used]]
    summary += b"".join(map(_pack_bucket, bounded))
    key = keys.popped if kind == "wait" else keys.ended
    flow = ledger.tx.get(key)
    if flow is not None and _unpack_flow(flow)[0] == day:
        notes = split_notes(flow)[1]
        is_new = not _unpack_flow(flow)[2]
        summary = flow[:_DAY_BYTES] + summary + notes
    else:
        key = keys.summary(day, kind)
        is_new = ledger.tx.get(key) is None
    if is_new:
        ledger.tx.put(key, summary)
    return is_new


def tally(ledger: "Ledger", keys: QueueKeys, name: str, day: int, delta: int = 1) -> None:
    """Counts retries, failures or failed jobs of a day."""
    ledger.tx.add(keys.tally(day, name), delta)


class LifetimeTotal(NamedTuple):
    """Times since a queue was created: their number, sum, and the buckets of all histograms."""

    number: int
    seconds: float
    tiers: list[int]


class Totals(NamedTuple):
    """Totals of a queue since it was created."""

    wait: LifetimeTotal
    run: LifetimeTotal
    tallies: dict[str, int]


def totals(ledger: "Ledger", keys: QueueKeys) -> Totals:
    """Returns the totals since the queue was created: of kept days, and of the days before."""
    wait, run = (
        _total(ledger, keys, flow, kind)
        for flow, kind in ((keys.popped, "wait"), (keys.ended, "run"))
    )
    tallies = {name: 0 for name in _SUMMED}
    for prefix, at in ((keys.tallies, 1), (keys.totals, 0)):
        for key, value in ledger.tx.scan(*below(prefix)):
            name = unpack(key, len(prefix))[at]
            if name in tallies:
                tallies[name] += read_counter(value)
    return Totals(wait, run, tallies)


def _total(ledger: "Ledger", keys: QueueKeys, flow_key: bytes, kind: str) -> LifetimeTotal:
    flow = ledger.tx.get(flow_key)
    summaries = [] if flow is None else [summary_of(flow)]
    summaries += [
        value
        for key, value in ledger.tx.scan(*below(keys.statistics))
        if unpack(key, len(keys.statistics))[1] == kind
    ]
    before = ledger.tx.get(keys.total(kind))
    count, sum_of, tiers = _decode_total(before) if before is not None else (0, 0.0, [])
    tiers = [*tiers, *[0] * (_LONGER + 1 - len(tiers))]
    for summary in summaries:
        measured = DayTimes(summary)
        count += measured.count
        sum_of += measured.count * measured.mean
        tiers = [a + b for a, b in zip(tiers, measured.tiers(), strict=True)]
    return LifetimeTotal(count, sum_of, tiers)


def total_from(name: str, value: bytes) -> int:
    """Returns how many times, or retries or failures, a stored total has counted."""
    return read_counter(value) if name in _SUMMED else _decode_total(value)[0]


def _add_to_total(ledger: "Ledger", keys: QueueKeys, kind: str, value: bytes, whole: bool) -> None:
    """Adds a dropped histogram, or a dropped day (`whole`), to the sums that are kept."""
    before = ledger.tx.get(keys.total(kind))
    count, sum_of, tiers = _decode_total(before) if before is not None else (0, 0.0, [])
    measured = DayTimes(value)
    if whole:
        count, sum_of = count + measured.count, sum_of + measured.count * measured.mean
    tiers = [*tiers, *[0] * (_LONGER + 1 - len(tiers))]
    summed = [a + b for a, b in zip(tiers, measured.tiers(), strict=True)]
    ledger.tx.put(keys.total(kind), _encode_total((count, sum_of, summed)))


def _forget_old_days(ledger: "Ledger", keys: QueueKeys, day: int) -> None:
    """Drops days that are too old when `day` begins, relative to the newest day written."""
    settings = ledger.settings()
    for key, _ in ledger.tx.scan(*below(keys.statistics), limit=1, reverse=True):
        day = max(day, unpack(key, len(keys.statistics))[0])
    for prefix in (keys.statistics, keys.tallies):
        end = prefix + pack_int(max(0, day + 1 - int(settings.statistics_days)))
        for key, value in list(ledger.tx.scan(prefix, end, limit=JOBS_PER_STEP)):
            name = unpack(key, len(prefix))[1]
            if prefix == keys.statistics:
                _add_to_total(ledger, keys, name, value, whole=True)
            elif name in _SUMMED:
                ledger.tx.add(keys.total(name), read_counter(value))
            ledger.tx.delete(key)
    breakdown.forget_days(ledger, keys, day + 1 - int(settings.statistics_days))
    end = keys.statistics + pack_int(max(0, day + 1 - int(settings.histogram_days)))
    for key, value in list(ledger.tx.scan(keys.statistics, end, limit=JOBS_PER_STEP)):
        if len(value) > _SUMMARY_BYTES:
            _add_to_total(ledger, keys, unpack(key, len(keys.statistics))[1], value, whole=False)
            ledger.tx.put(key, value[:_SUMMARY_BYTES])


# --- reading ----------------------------------------------------------------------------------


def uncounted_pops_and_ends(tx: Reader, keys: QueueKeys) -> tuple[int, int]:
    """Returns how many jobs have gone from the work list to a lock, and from there to completion,
    and are not in the queue's counter yet."""
    popped, ended = tx.get_many([keys.popped, keys.ended])
    return (
        0 if popped is None else _unpack_flow(popped)[1],
        0 if ended is None else _unpack_flow(ended)[1],
    )


def days_being_written(tx: Reader, keys: QueueKeys) -> set[int]:
    """Returns the days whose times are still being added to. Reads 2 keys."""
    flows = tx.get_many([keys.popped, keys.ended])
    return {_unpack_flow(flow)[0] for flow in flows if flow is not None and _unpack_flow(flow)[2]}


def day_times(ledger: "Ledger", queue: str, day: int) -> tuple[DayTimes, DayTimes]:
    """Returns the wait and the run times of a day."""
    keys = ledger.keys.queue(queue)
    return (
        _day_times(ledger, keys, keys.popped, day, "wait"),
        _day_times(ledger, keys, keys.ended, day, "run"),
    )


def _day_times(ledger: "Ledger", keys: QueueKeys, key: bytes, day: int, kind: str) -> DayTimes:
    flow = ledger.tx.get(key)
    if flow is not None and _unpack_flow(flow)[0] == day:
        return DayTimes(summary_of(flow))
    return DayTimes(ledger.tx.get(keys.summary(day, kind)))


def stats_on(ledger: "Ledger", queue: str, date: float) -> QueueStats:
    day = day_of(date)
    keys = ledger.keys.queue(queue)
    wait, run = day_times(ledger, queue, day)
    tallies = {
        name: read_counter(ledger.tx.get(keys.tally(day, name)))
        for name in ("retries", "failures", "failed", "expired")
    }
    return QueueStats(wait=wait.times(), run=run.times(), **tallies)


class StatisticsOperations:
    """Statistics."""

    _ledger: "Ledger"

    @operation(reads=True)
    def stats(self, queue: str, date: float | None = None) -> QueueStats:
        """Returns the statistics of `queue` on the day (UTC) that `date` falls into; today's by
        default.

        Reads 6 to 8 keys.
        """
        return stats_on(self._ledger, check_queue(queue), self._ledger.time(date))
