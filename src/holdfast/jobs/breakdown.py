"""Breakdowns: the statistics of a queue by class, tag and worker, day by day.

When a job ends, a note about it is appended to the queue's flow, a record that every completion
writes anyway (see statistics.py). When the notes fill `MAX_NOTES_BYTES`, or another day begins,
they are added to the records of their day: one for all jobs, and one for each class, worker and tag
of `stats-tags`. So most completions touch no further key; about one in seventy touches a few.

A day keeps at most `MAX_STATS_NAMES` names of each kind; all other names share one record.
"""

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from math import ceil, dist, log2
from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec

from holdfast.bounded_cache import BoundedCache
from holdfast.declarations import operation
from holdfast.errors import BadArgument
from holdfast.jobs.arguments import check_queue, tag_text
from holdfast.jobs.layout import QueueKeys
from holdfast.jobs.records import JobRecord, Spread, StatsRow, StatsTable
from holdfast.keys import pack_int, pack_str, unpack
from holdfast.limits import MAX_STATS_DAYS, MAX_STATS_NAMES

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

GroupBy = Literal["all", "class", "tag", "worker"]
_GROUPINGS: Final[tuple[GroupBy, ...]] = get_args(GroupBy)  # in keys, each is known by its number
_DAY: Final = 86400

_SHORTEST: Final = 0.001  # seconds; all shorter times share a bucket
_GROWTH: Final = 1.1  # from one bucket to the next, so that a percentile is right to 5 %
_LOG_GROWTH: Final = log2(_GROWTH)
_LONGEST: Final = 10.0**9  # seconds, 30 years; all longer times share a bucket

# Why a job is noted. A retried job's lock has ended, or its worker has put it back after an error.
COMPLETED, FAILED, RETRIED = 0, 1, 2
_NOTE_FORMAT: Final = "BxHff"  # why, where its names are, wait and run
_NOTE: Final = struct.Struct(">" + _NOTE_FORMAT)
_LENGTHS: Final = struct.Struct(">HHH")  # of class, worker and tags, which follow
_END: Final = struct.Struct(">HHH")  # the bytes of all names, the number of notes, and 1
pack_note, pack_end, _unpack_end = _NOTE.pack, _END.pack, _END.unpack_from
_encode: Final = msgspec.msgpack.Encoder().encode
_decode_tags: Final = msgspec.msgpack.Decoder(list[str]).decode


class Sketch(msgspec.Struct, array_like=True):
    """Times as they are stored: counts by bucket, and the sums for mean and deviation."""

    count: int = 0
    mean: float = 0.0
    vk: float = 0.0
    longest: float = 0.0
    buckets: dict[int, int] = {}

    @classmethod
    def of(cls, times: Sequence[float]) -> "Sketch":
        """Counts all `times`."""
        if not times:
            return cls()
        count = len(times)
        mean = sum(times) / count
        vk = dist(times, [mean] * count) ** 2  # the sum of the squared deviations
        longest = max(times)
        return cls(count, mean, vk, longest, _count_by_bucket(times, longest))

    def merge(self, other: "Sketch") -> None:
        """Counts all that `other` has counted."""
        count = self.count + other.count
        if count:
            apart = other.mean - self.mean
            self.mean += apart * other.count / count
            self.vk += other.vk + apart * apart * self.count * other.count / count
        self.count = count
        self.longest = max(self.longest, other.longest)
        buckets = self.buckets
        for bucket, number in other.buckets.items():
            buckets[bucket] = buckets.get(bucket, 0) + number

    def percentile(self, part: float) -> float:
        """Returns a time that `part` of the times do not exceed, right to 5 %; 0 without times.

        >>> sketch = Sketch.of([*range(1, 101)])
        >>> [round(sketch.percentile(part)) for part in (0.5, 0.9, 0.99)]
        [50, 88, 97]
        """
        wanted = ceil(self.count * part)
        for bucket, number in sorted(self.buckets.items()):
            wanted -= number
            if wanted <= 0:
                return min(_middle_of(bucket), float(self.longest))
        return 0.0

    def spread(self) -> Spread:
        variance = self.vk / (self.count - 1) if self.count > 1 else 0.0
        return Spread(
            count=self.count,
            mean=self.mean,
            std=max(0.0, variance) ** 0.5,
            p50=self.percentile(0.5),
            p90=self.percentile(0.9),
            p99=self.percentile(0.99),
            longest=self.longest,
        )


class DayRecord(msgspec.Struct, array_like=True):
    """Counts the outcomes of the jobs of one name on one day.

    In the record of all other names, `names` is the number of names with their own record.
    """

    failures: int = 0
    retries: int = 0
    wait: Sketch = msgspec.field(default_factory=Sketch)
    run: Sketch = msgspec.field(default_factory=Sketch)
    names: int = 0

    def merge(self, other: "DayRecord") -> None:
        """Counts all that `other` has counted."""
        self.failures += other.failures
        self.retries += other.retries
        self.wait.merge(other.wait)
        self.run.merge(other.run)

    def row(self, name: str) -> StatsRow:
        return StatsRow(
            name=name,
            completed=self.run.count,
            failures=self.failures,
            retries=self.retries,
            wait=self.wait.spread(),
            run=self.run.spread(),
        )


decode_record: Final = msgspec.msgpack.Decoder(DayRecord).decode


def _count_by_bucket(times: Sequence[float], longest: float) -> dict[int, int]:
    """Counts times by the number of their bucket: each is a tenth wider than the one before it.

    >>> _count_by_bucket((0, 0.0009, 0.001, 0.0012, 1, 1, 3600, 1e12), 1e12)
    Counter({0: 2, 73: 2, 1: 1, 2: 1, 159: 1, 290: 1})
    """
    if longest < _SHORTEST:  # most jobs of a busy queue
        return {0: len(times)}
    if longest > _LONGEST:
        times = [min(seconds, _LONGEST) for seconds in times]
    return Counter(
        [
            int(log2(seconds / _SHORTEST) / _LOG_GROWTH) + 1 if seconds >= _SHORTEST else 0
            for seconds in times
        ]
    )


def _middle_of(bucket: int) -> float:
    return float(_SHORTEST * _GROWTH ** (bucket - 0.5))


# --- notes ------------------------------------------------------------------------------------
# First all names, each once; then the notes, each with the offset of its names; then an end of 6
# bytes. A flow without notes is a multiple of 4 bytes long, one with notes is not. So a flow that
# was written before notes existed is read as one without.


def add_names(ledger: "Ledger", names: bytes, job: JobRecord, worker: str) -> tuple[bytes, int]:
    """Returns the names with those of the job added, and the offset of the job's names."""
    tags = b""
    if job.tags and (wanted := ledger.settings().stats_tags):
        kept = [text for text in map(tag_text, job.tags) if text in wanted]
        tags = _encode(kept) if kept else b""
    packed = _packed_names[job.klass, worker, tags]
    at = names.find(packed)
    return (names, at) if at >= 0 else (names + packed, len(names))


def _pack_names(counted: tuple[str, str, bytes]) -> bytes:
    klass, worker, tags = counted
    parts = klass.encode(), worker.encode(), tags
    packed = _LENGTHS.pack(*map(len, parts)) + b"".join(parts)
    return packed + bytes(-len(packed) & 3)


_packed_names: Final = BoundedCache(_pack_names, entries=1024)


def split_notes(flow: bytes) -> tuple[bytes, bytes]:
    """Returns a flow without its notes, and its notes."""
    if not len(flow) & 3:
        return flow, b""
    names_bytes, number, _ = _unpack_end(flow, len(flow) - _END.size)
    begin = len(flow) - _END.size - names_bytes - number * _NOTE.size
    return flow[:begin], flow[begin:]


def split_names(notes: bytes) -> tuple[bytes, bytes, int]:
    """Returns the names in the notes, the notes alone, and how many they are."""
    if not notes:
        return b"", b"", 0
    end = len(notes) - _END.size
    names_bytes, number, _ = _unpack_end(notes, end)
    return notes[:names_bytes], notes[names_bytes:end], number


def _names_at(notes: bytes, at: int) -> Iterator[tuple[GroupBy, str]]:
    """Yields what a job is counted under, whose names are at an offset."""
    klass, worker, tags = _LENGTHS.unpack_from(notes, at)
    begin = at + _LENGTHS.size
    middle = begin + klass
    end = middle + worker
    yield "all", ""
    yield "class", notes[begin:middle].decode()
    if worker:
        yield "worker", notes[middle:end].decode()
    if tags:
        for tag in _decode_tags(notes[end : end + tags]):
            yield "tag", tag


def _records_by_name(notes: bytes) -> dict[tuple[GroupBy, str], DayRecord]:
    """Returns the counts of each name in the notes; names of equal jobs share one record."""
    if not notes:
        return {}
    names_bytes, number, _ = _unpack_end(notes, len(notes) - _END.size)
    values = struct.unpack_from(">" + number * _NOTE_FORMAT, notes, names_bytes)
    places, columns = values[1::4], (values[0::4], values[2::4], values[3::4])
    named: dict[tuple[GroupBy, str], list[int]] = {}
    for at in dict.fromkeys(places):
        for name in _names_at(notes, at):
            named.setdefault(name, []).append(at)
    records: dict[tuple[int, ...], DayRecord] = {}
    gathered = {}
    for name, own in named.items():
        if tuple(own) not in records:
            chosen = [at in own for at in places]
            records[tuple(own)] = _day_record(*[[*compress(each, chosen)] for each in columns])
        gathered[name] = records[tuple(own)]
    return gathered


def _day_record(outcomes: list[int], waits: list[float], runs: list[float]) -> DayRecord:
    """Counts the outcomes of jobs, and the times of completed ones."""
    failures, retries = outcomes.count(FAILED), outcomes.count(RETRIED)
    if failures or retries:
        completed = [why == COMPLETED for why in outcomes]
        waits, runs = [*compress(waits, completed)], [*compress(runs, completed)]
    return DayRecord(failures, retries, Sketch.of(waits), Sketch.of(runs))


def check_notes(flow: bytes) -> None:
    """Reads the notes of a flow; raises if they can't be read."""
    _records_by_name(split_notes(flow)[1])


# --- records ----------------------------------------------------------------------------------


def record_key(keys: QueueKeys, by: GroupBy, day: int, name: str) -> bytes:
    return _others_key(keys, by, day) + pack_str(name)


def _others_key(keys: QueueKeys, by: GroupBy, day: int) -> bytes:
    """Returns the key of the record for names that have none of their own."""
    return keys.breakdown + pack_int(_GROUPINGS.index(by)) + pack_int(day)


def count_notes(ledger: "Ledger", keys: QueueKeys, day: int, notes: bytes) -> None:
    """Adds notes to the records of their day. Reads and writes 1 key for each name in them."""
    for (by, name), found in _records_by_name(notes).items():
        key, record = _record_for(ledger, keys, by, day, name)
        record.merge(found)
        ledger.tx.put(key, _encode(record))


def _record_for(
    ledger: "Ledger", keys: QueueKeys, by: GroupBy, day: int, name: str
) -> tuple[bytes, DayRecord]:
    """Returns where `name` is counted on a day: its own record, or that of all others."""
    key = record_key(keys, by, day, name)
    value = ledger.tx.get(key)
    if value is not None:
        return key, decode_record(value)
    if by == "all":
        return key, DayRecord()
    others_key = _others_key(keys, by, day)
    others = ledger.tx.get(others_key)
    record = DayRecord() if others is None else decode_record(others)
    if record.names >= MAX_STATS_NAMES:
        return others_key, record
    record.names += 1
    ledger.tx.put(others_key, _encode(record))
    return key, DayRecord()


def forget_days(ledger: "Ledger", keys: QueueKeys, first: int) -> None:
    """Forgets the records of days before `first`."""
    for by in _GROUPINGS:
        prefix = keys.breakdown + pack_int(_GROUPINGS.index(by))
        old = prefix, prefix + pack_int(max(0, first))
        if any(ledger.tx.scan(*old, limit=1)):
            ledger.tx.clear(*old)


# --- reading ----------------------------------------------------------------------------------


class BreakdownOperations:
    """Statistics by name."""

    _ledger: "Ledger"

    @operation(reads=True)
    def stats_by(
        self,
        queue: str,
        by: GroupBy = "class",
        *,
        name: str | None = None,
        since: float | None = None,
        until: float | None = None,
        count: int = 100,
    ) -> StatsTable:
        """Returns wait and run times, failures and retries of `queue` by class, tag or worker.

        >>> store.jobs.put("emails", "Welcome", id="a")
        'a'
        >>> store.jobs.complete(store.jobs.pop("emails", "w")[0].id, "w")
        'complete'
        >>> [(row.name, row.completed) for row in store.jobs.stats_by("emails").rows]
        [('Welcome', 1)]

        The days (UTC) are those from `since` to `until`, today by default. A job counts on the day
        on which it was completed or has failed; percentiles are right to 5 %. Tags are those in the
        option `stats-tags`. "all" gives one row for all jobs. Rows come in the order of completed
        and failed jobs, most first, `count` of them, or only that of `name`. A day keeps
        `MAX_STATS_NAMES` names; what came under others is in `others`. Reads 1 key for each name
        and day, and 1 more.
        """
        last = self._ledger.time(until)
        first = last if since is None else self._ledger.time(since)
        return stats_by(self._ledger, check_queue(queue), by, name, first, last, count)


def stats_by(
    ledger: "Ledger",
    queue: str,
    by: GroupBy,
    name: str | None,
    since: float,
    until: float,
    count: int,
) -> StatsTable:
    if by not in _GROUPINGS:
        raise BadArgument.named("by", f"must be one of {', '.join(_GROUPINGS)}, not {by}")
    first, last = int(since // _DAY), int(until // _DAY)
    if not 0 <= last - first < MAX_STATS_DAYS:
        raise BadArgument(
            f"there are {last - first + 1} days from `since` to `until`, "
            f"1 to {MAX_STATS_DAYS} are allowed"
        )
    keys = ledger.keys.queue(queue)
    found, others = _stored_records(ledger, keys, by, name, first, last)
    _add_pending_notes(ledger, keys, by, name, range(first, last + 1), found)
    rows = [record.row(each) for each, record in found.items()]
    rows.sort(key=lambda row: (-row.completed - row.failures, row.name))
    rest = others.row("") if others.run.count or others.failures or others.retries else None
    return StatsTable(
        queue=queue,
        by=by,
        since=float(first * _DAY),
        until=float((last + 1) * _DAY),
        names=len(rows),
        rows=tuple(rows[: max(0, count)]),
        others=None if name is not None else rest,
    )


def _stored_records(
    ledger: "Ledger", keys: QueueKeys, by: GroupBy, name: str | None, first: int, last: int
) -> tuple[dict[str, DayRecord], DayRecord]:
    """Returns the records of some days, merged by name, and the record of all other names."""
    found: dict[str, DayRecord] = {}
    others = DayRecord()
    for key, value in _stored_pairs(ledger, keys, by, name, first, last):
        _, _, *names = unpack(key, len(keys.breakdown))
        record = found.setdefault(names[0], DayRecord()) if names else others
        record.merge(decode_record(value))
    return found, others


def _stored_pairs(
    ledger: "Ledger", keys: QueueKeys, by: GroupBy, name: str | None, first: int, last: int
) -> Iterator[tuple[bytes, bytes]]:
    if name is None:
        yield from ledger.tx.scan(
            _others_key(keys, by, first), _others_key(keys, by, last) + b"\xff"
        )
        return
    wanted = [record_key(keys, by, day, name) for day in range(first, last + 1)]
    for key, value in zip(wanted, ledger.tx.get_many(wanted), strict=True):
        if value is not None:
            yield key, value


def _add_pending_notes(
    ledger: "Ledger",
    keys: QueueKeys,
    by: GroupBy,
    name: str | None,
    days: range,
    found: dict[str, DayRecord],
) -> None:
    """Adds the notes that are not counted yet, if they are of one of `days`."""
    flow = ledger.tx.get(keys.ended)
    if flow is None or int.from_bytes(flow[:8], "big", signed=True) not in days:
        return
    for (kind, each), record in _records_by_name(split_notes(flow)[1]).items():
        if kind == by and name in (None, each):
            found.setdefault(each, DayRecord()).merge(record)
