"""The keys that the script would store in a Redis, for programs that read them.

None of them is stored: each is a view of the job queue, exists exactly while it has content, and
can't be written. `score`, `kind` and `has` read a few keys; so does `size` where members are
counted already. If members are counted and stored in the order of their scores (`is_ordered`),
`range` reads what it returns and what comes before it, from the nearer end; everything else reads
all members.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from holdfast.compat.qless import replies
from holdfast.engine.contract import Transaction, read_counter
from holdfast.jobs import recurring, statistics
from holdfast.jobs.arguments import tag_text
from holdfast.jobs.layout import (
    QueueKeys,
    below,
    last_part,
    time_and_jid,
    unpack_complete,
    unpack_time,
)
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.queues import known_queues
from holdfast.jobs.records import JobRecord
from holdfast.jobs.statistics import DAY
from holdfast.keys import pack_str, unpack

Pair = tuple[bytes, bytes]  # as it is stored
Pairs = Iterator[Pair]
Scored = Iterator[tuple[str, float]]  # members of a sorted set, lowest score first

_QUEUE: Final = re.compile(r"ql:q:(.+)-(work|locks|scheduled|depends|recur)", re.DOTALL)
_STATISTICS: Final = re.compile(r"ql:s:(wait|run|stats):(\d{1,12}):(.+)", re.DOTALL)
_BUCKETS: Final = (
    *(f"s{number}" for number in range(60)),
    *(f"m{number}" for number in range(1, 60)),
    *(f"h{number}" for number in range(1, 24)),
    *(f"d{number}" for number in range(1, 7)),
)
_TALLIES: Final = ("retries", "failures", "failed")
_PARTS: Final = ("work", "locks", "scheduled", "depends", "recur")


class VirtualKeys:
    """The virtual keys of one space, on one transaction or view."""

    def __init__(self, tx: Transaction) -> None:
        self._ledger = Ledger(tx)
        self._tx = tx
        self._keys = self._ledger.keys

    def names(self) -> Iterator[str]:
        """Yields every key that exists."""
        for jid in self._names_below(self._keys.jobs):
            yield f"ql:j:{jid}"
        for jid in self._names_below(self._keys.recurring):
            yield f"ql:r:{jid}"
        for queue in self._queues():
            yield from (key for part in _PARTS if self.size(key := f"ql:q:{queue}-{part}"))
        for worker in self._names_below(self._keys.workers):
            yield from (key for key in [f"ql:w:{worker}:jobs"] if self.size(key))
        for tag in self._names_below(self._keys.tag_counts):
            yield from (key for key in [f"ql:t:{tag}"] if self.size(key))
        for group in self._groups():
            yield f"ql:f:{group}"
        for key in ("ql:queues", "ql:workers", "ql:tracked", "ql:completed", "ql:tags"):
            if self.size(key):
                yield key
        yield from (key for key, has in self._others() if has)
        for queue in self._queues():
            for day in self._days(queue):
                names = (f"ql:s:{kind}:{day * DAY}:{queue}" for kind in ("wait", "run", "stats"))
                yield from filter(self.fields, names)

    def kind(self, key: str) -> str:
        """Returns the type that Redis would report: hash, zset, set, list or none."""
        return kind_of_name(key) if self.has(key) else "none"

    def has(self, key: str) -> bool:
        """Returns whether a key exists. Reads a few keys; for paused queues, all queues that are
        not paused."""
        kind = kind_of_name(key)
        if kind == "hash":
            return bool(self.fields(key))
        if kind == "set":
            return any(True for _ in self._members(key))
        if is_ordered(key):
            return self.size(key) > 0
        prefix = self._score_prefix(key)
        if prefix is not None:
            return any(True for _ in self._tx.scan(*below(prefix), limit=1))
        return any(True for _ in self.scored(key) or ())

    # --- sorted sets ------------------------------------------------------------------------------

    def scored(self, key: str) -> Scored | None:
        """Returns the members of a sorted set with their scores; None if the key is of another
        kind."""
        found = _QUEUE.fullmatch(key)
        if found is not None:
            return self._queue_part(self._keys.queue(found[1]), found[2])
        if key.startswith("ql:t:"):
            return self._timed(self._keys.tagged(key[5:]))
        prefix = self._score_prefix(key)
        if prefix is not None:
            return self._scored_by_value(prefix)
        lists: dict[str, Callable[[], Scored]] = {
            "ql:queues": self._known_queues,
            "ql:completed": lambda: self._timed(self._keys.completed),
            "ql:tags": self._tag_counts,
        }
        return lists[key]() if key in lists else None

    def _score_prefix(self, key: str) -> bytes | None:
        """Returns the prefix of a sorted set that stores each member's score as a value."""
        if key.startswith("ql:w:") and key.endswith(":jobs"):
            return self._keys.worker(key[5:-5]).held
        if key == "ql:workers":
            return self._keys.workers
        return self._keys.tracked_jobs if key == "ql:tracked" else None

    def size(self, key: str) -> int:
        """Returns how many members a sorted set has; those of a queue are counted already."""
        found = _QUEUE.fullmatch(key)
        if found is not None:
            return self._counts(self._keys.queue(found[1]))[found[2]]
        if key == "ql:completed":
            return unpack_complete(self._tx.get(self._keys.complete))[0]
        if key.startswith("ql:t:"):
            return read_counter(self._tx.get(self._keys.tag_count(key[5:])))
        if key.startswith("ql:f:"):
            return read_counter(self._tx.get(self._keys.failure_group(key[5:])))
        return sum(1 for _ in self.scored(key) or ())

    def range(self, key: str, first: int, last: int) -> list[tuple[str, float]]:
        """Returns the members from rank `first` to rank `last`, lowest score first; -1 is the last
        rank."""
        if not is_ordered(key):
            end = None if last == -1 else last + 1
            return list(self.scored(key) or ())[first:end]
        pairs, read = self._pairs(key), self._reader_of(key)
        found = [read(pair) for pair in _ranks(pairs, self.size(key), first, last)]
        return [each for each in found if each is not None]

    def _pairs(self, key: str) -> Callable[[bool, int], Pairs]:
        """Returns a function that scans a sorted set that is stored in order, from either end."""
        prefix, is_reversed = self._stored_at(key)

        def scan(from_end: bool, limit: int) -> Pairs:
            begin, end = below(prefix)
            return self._tx.scan(begin, end, limit=limit, reverse=from_end != is_reversed)

        return scan

    def _stored_at(self, key: str) -> tuple[bytes, bool]:
        """Returns where a sorted set is stored in order, and whether its highest score comes
        first."""
        found = _QUEUE.fullmatch(key)
        if found is not None:
            return self._prefix(self._keys.queue(found[1]), found[2]), found[2] == "work"
        if key.startswith("ql:t:"):
            return self._keys.tagged(key[5:]), False
        if key.startswith("ql:f:"):
            return self._keys.failed_in(key[5:]), True  # newest first
        return self._keys.completed, False

    def _reader_of(self, key: str) -> Callable[[Pair], tuple[str, float] | None]:
        found = _QUEUE.fullmatch(key)
        if found is not None and found[2] == "work":
            return self._waiting
        prefix, _ = self._stored_at(key)

        def read(pair: Pair) -> tuple[str, float]:
            time, jid = time_and_jid(pair[0], prefix)
            return jid, time

        return read

    def _waiting(self, pair: Pair) -> tuple[str, float] | None:
        job = self._ledger.job_at(self._keys.jobs + pair[1])
        return None if job is None else (job.jid, job.priority - job.time / 1e10)

    def score(self, key: str, member: str) -> float | None:
        """Returns the score of one member, without reading the others."""
        found = _QUEUE.fullmatch(key)
        if found is not None:
            return self._score_in_queue(self._keys.queue(found[1]), found[2], member)
        prefix = self._score_prefix(key)
        if prefix is not None:
            value = self._tx.get(prefix + pack_str(member))
            return None if value is None else unpack_time(value)
        if key == "ql:queues":
            return self._ledger.queue(self._keys.queue(member)).known_since
        if key == "ql:tags":
            return read_counter(self._tx.get(self._keys.tag_count(member))) or None
        job = self._ledger.job(member)
        if job is None:
            return None
        if key == "ql:completed":
            return self._time_in(job, self._keys.completed)
        tags = [f"ql:t:{tag_text(tag)}" for tag in job.tags]
        return job.tagged[tags.index(key)] if key in tags else None

    def _score_in_queue(self, keys: QueueKeys, part: str, member: str) -> float | None:
        if part == "recur":
            record = recurring.load(self._ledger, member)
            return record.next if record is not None and record.queue == keys.name else None
        job = self._ledger.job(member)
        if job is None:
            return None
        if part == "work":
            waits = job.place.startswith(keys.work)
            return job.priority - job.time / 1e10 if waits else None
        return self._time_in(job, self._prefix(keys, part))

    def _time_in(self, job: JobRecord, prefix: bytes) -> float | None:
        """Returns the job's time in a list; None if the list does not have it."""
        return time_and_jid(job.place, prefix)[0] if job.place.startswith(prefix) else None

    def _queue_part(self, keys: QueueKeys, part: str) -> Scored:
        if part == "work":  # the best job, with the highest score, comes first
            for pair in self._tx.scan(*below(keys.work), reverse=True):
                if (found := self._waiting(pair)) is not None:
                    yield found
        else:
            yield from self._timed(self._prefix(keys, part))

    def _prefix(self, keys: QueueKeys, part: str) -> bytes:
        return {
            "work": keys.work,
            "locks": keys.locks,
            "scheduled": keys.scheduled,
            "depends": keys.depends,
            "recur": keys.recurring,
        }[part]

    def _counts(self, keys: QueueKeys) -> dict[str, int]:
        work, locks = self._ledger.work_counts(keys)
        scheduled, depends = self._ledger.pair(keys.blocked)
        _, recur = self._ledger.pair(keys.other)
        return dict(zip(_PARTS, (work, locks, scheduled, depends, recur), strict=True))

    def _timed(self, prefix: bytes) -> Scored:
        for key, _ in self._tx.scan(*below(prefix)):
            time, jid = time_and_jid(key, prefix)
            yield jid, time

    def _scored_by_value(self, prefix: bytes) -> Scored:
        pairs = self._tx.scan(*below(prefix))
        found = [(last_part(key, prefix), unpack_time(value)) for key, value in pairs]
        yield from sorted(found, key=_score_then_name)

    def _known_queues(self) -> Scored:
        for name in known_queues(self._ledger):
            yield name, self._ledger.queue(self._keys.queue(name)).known_since or 0.0

    def _tag_counts(self) -> Scored:
        prefix = self._keys.tag_counts
        pairs = self._tx.scan(*below(prefix))
        found = [(last_part(key, prefix), float(read_counter(value))) for key, value in pairs]
        yield from sorted(found, key=_score_then_name)

    # --- hashes, sets, lists ----------------------------------------------------------------------

    def fields(self, key: str) -> dict[str, Any]:
        """Returns the fields of a hash; empty if there is none."""
        if key == "ql:config":
            return dict(self._ledger.settings().given)
        if key.startswith("ql:j:"):
            job = self._ledger.job(key[5:])
            return {} if job is None else replies.job(self._ledger, job)
        if key.startswith("ql:r:"):
            record = recurring.load(self._ledger, key[5:])
            return {} if record is None else replies.recurring(record)
        found = _STATISTICS.fullmatch(key)
        return {} if found is None else self._statistics(found[1], int(found[2]), found[3])

    def _statistics(self, kind: str, date: int, queue: str) -> dict[str, Any]:
        """Returns the statistics of a day as the script keeps them; empty if there are none."""
        if date % DAY:
            return {}
        if kind == "stats":
            keys = self._keys.queue(queue)
            tallies = {
                name: read_counter(self._tx.get(keys.tally(date // DAY, name))) for name in _TALLIES
            }
            return {name: number for name, number in tallies.items() if number}
        wait, run = statistics.day_times(self._ledger, queue, date // DAY)
        measured = wait if kind == "wait" else run
        if not measured.count:
            return {}
        summary = {"total": measured.count, "mean": measured.mean, "vk": measured.vk}
        names = zip(_BUCKETS, measured.histogram(), strict=True)
        return {**summary, **{name: number for name, number in names if number}}

    def _days(self, queue: str) -> list[int]:
        """Returns the days for which a queue has statistics."""
        keys = self._keys.queue(queue)
        found = {
            int(unpack(key, len(prefix))[0])
            for prefix in (keys.statistics, keys.tallies)
            for key, _ in self._tx.scan(*below(prefix))
        }
        return sorted(found | statistics.days_being_written(self._tx, keys))

    def members(self, key: str) -> list[str]:
        """Returns the members of a set; empty if there is none."""
        return list(self._members(key))

    def _members(self, key: str) -> Iterator[str]:
        if key == "ql:failures":
            yield from self._groups()
        if key == "ql:paused_queues":
            for queue in self._names_below(self._keys.queues):
                if self._ledger.queue(self._keys.queue(queue)).paused:
                    yield queue

    def items(self, key: str, first: int = 0, last: int = -1) -> list[str]:
        """Returns the items of a list from `first` to `last`, newest first; empty if there is
        none."""
        if not key.startswith("ql:f:"):
            return []
        return [jid for jid, _ in self.range(key, first, last)]

    def _others(self) -> list[tuple[str, bool]]:
        keys = ("ql:failures", "ql:paused_queues")
        return [(key, self.has(key)) for key in keys] + [
            ("ql:config", bool(self.fields("ql:config")))
        ]

    def _groups(self) -> Iterator[str]:
        prefix = self._keys.failure_groups
        for key, value in self._tx.scan(*below(prefix)):
            if read_counter(value) > 0:
                yield last_part(key, prefix)

    def _queues(self) -> Iterator[str]:
        """Yields every queue that has content, known or not."""
        prefix = self._keys.all_queue_counts
        seen = ""
        for key, _ in self._tx.scan(*below(prefix)):
            name = str(unpack(key, len(prefix))[0])
            if name != seen:
                yield name
            seen = name

    def _names_below(self, prefix: bytes) -> Iterator[str]:
        for key, _ in self._tx.scan(*below(prefix)):
            yield last_part(key, prefix)


def kind_of_name(key: str) -> str:
    """Returns the type that a key of this name has if it exists; only names of Qless do."""
    if key in ("ql:failures", "ql:paused_queues"):
        return "set"
    if key.startswith("ql:f:"):
        return "list"
    is_hash = key == "ql:config" or key.startswith(("ql:j:", "ql:r:", "ql:s:"))
    return "hash" if is_hash else "zset"


def is_ordered(key: str) -> bool:
    """Returns whether the members of a sorted set or list are stored in their order, and
    counted."""
    is_known = key == "ql:completed" or key.startswith(("ql:t:", "ql:f:"))
    return is_known or _QUEUE.fullmatch(key) is not None


def _ranks(pairs: Callable[[bool, int], Pairs], size: int, first: int, last: int) -> list[Pair]:
    """Returns the pairs of these ranks, in order, read from the nearer end."""
    first = max(0, first + size if first < 0 else first)
    last = min(size - 1, last + size if last < 0 else last)
    if first > last:
        return []
    behind = size - 1 - last
    if first <= behind:
        return list(islice(pairs(False, last + 1), first, None))
    found = islice(pairs(True, size - first), behind, None)
    return list(found)[::-1]


def _score_then_name(entry: tuple[str, float]) -> tuple[float, bytes]:
    return entry[1], entry[0].encode()
