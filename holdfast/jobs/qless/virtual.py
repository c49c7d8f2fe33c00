"""The keys that the script would have left in a Redis, for those who look into them.

Nothing is stored for them: each is a view of the job queue, exists exactly while it has content,
and can't be written. `score` reads a few keys, `size` a few where they are counted already, and all
else reads what it shows.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from holdfast.engine.contract import Transaction, read_counter
from holdfast.jobs import recurring
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
from holdfast.jobs.qless import replies
from holdfast.jobs.queues import known_queues
from holdfast.jobs.records import JobRecord
from holdfast.keys import pack_str, unpack

Scored = Iterator[tuple[str, float]]  # members of a sorted set, lowest score first

_QUEUE: Final = re.compile(r"ql:q:(.+)-(work|locks|scheduled|depends|recur)", re.DOTALL)
_PARTS: Final = ("work", "locks", "scheduled", "depends", "recur")


class VirtualKeys:
    """All of them in one space, on one transaction or view."""

    def __init__(self, tx: Transaction) -> None:
        self._ledger = Ledger(tx)
        self._tx = tx
        self._keys = self._ledger.keys

    def names(self) -> Iterator[str]:
        """Every key that exists."""
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

    def kind(self, key: str) -> str:
        """The word that Redis would say: hash, zset, set, list or none."""
        kind = kind_of_name(key)
        if kind == "zset":
            has = self.size(key) > 0
        elif kind == "hash":
            has = bool(self.fields(key))
        else:
            has = bool(self.members(key) if kind == "set" else self.items(key))
        return kind if has else "none"

    # --- sorted sets ------------------------------------------------------------------------------

    def scored(self, key: str) -> Scored | None:
        """The members of a sorted set with their scores; None if the key is of another kind."""
        found = _QUEUE.fullmatch(key)
        if found is not None:
            return self._queue_part(self._keys.queue(found[1]), found[2])
        if key.startswith("ql:t:"):
            return self._timed(self._keys.tagged(key[5:]))
        valued = self._valued_below(key)
        if valued is not None:
            return self._valued(valued)
        lists: dict[str, Callable[[], Scored]] = {
            "ql:queues": self._known_queues,
            "ql:completed": lambda: self._timed(self._keys.completed),
            "ql:tags": self._tag_counts,
        }
        return lists[key]() if key in lists else None

    def _valued_below(self, key: str) -> bytes | None:
        """Where a sorted set has a key for each member, whose value is its score."""
        if key.startswith("ql:w:") and key.endswith(":jobs"):
            return self._keys.worker(key[5:-5]).held
        if key == "ql:workers":
            return self._keys.workers
        return self._keys.tracked_jobs if key == "ql:tracked" else None

    def size(self, key: str) -> int:
        """How many members a sorted set has; those of a queue are counted already."""
        found = _QUEUE.fullmatch(key)
        if found is not None:
            return self._counts(self._keys.queue(found[1]))[found[2]]
        if key == "ql:completed":
            return unpack_complete(self._tx.get(self._keys.complete))[0]
        if key.startswith("ql:t:"):
            return read_counter(self._tx.get(self._keys.tag_count(key[5:])))
        return sum(1 for _ in self.scored(key) or ())

    def score(self, key: str, member: str) -> float | None:
        """The score of one member, without a look at the others."""
        found = _QUEUE.fullmatch(key)
        if found is not None:
            return self._score_in_queue(self._keys.queue(found[1]), found[2], member)
        valued = self._valued_below(key)
        if valued is not None:
            value = self._tx.get(valued + pack_str(member))
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
        """The time under which a job stands in a list, if it does."""
        return time_and_jid(job.place, prefix)[0] if job.place.startswith(prefix) else None

    def _queue_part(self, keys: QueueKeys, part: str) -> Scored:
        if part == "work":  # whose best, with the highest score, comes first
            for _, packed_jid in self._tx.scan(*below(keys.work), reverse=True):
                job = self._ledger.job_at(self._keys.jobs + packed_jid)
                if job is not None:
                    yield job.jid, job.priority - job.time / 1e10
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

    def _valued(self, prefix: bytes) -> Scored:
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
        """The fields of a hash; empty if there is none."""
        if key == "ql:config":
            return dict(self._ledger.settings().given)
        if key.startswith("ql:j:"):
            job = self._ledger.job(key[5:])
            return {} if job is None else replies.job(self._ledger, job)
        if key.startswith("ql:r:"):
            record = recurring.load(self._ledger, key[5:])
            return {} if record is None else replies.recurring(record)
        return {}

    def members(self, key: str) -> list[str]:
        """The members of a set; empty if there is none."""
        if key == "ql:failures":
            return list(self._groups())
        if key == "ql:paused_queues":
            queues = self._names_below(self._keys.queues)
            return [q for q in queues if self._ledger.queue(self._keys.queue(q)).paused]
        return []

    def items(self, key: str) -> list[str]:
        """The items of a list, newest first; empty if there is none."""
        if not key.startswith("ql:f:"):
            return []
        return [jid for jid, _ in self._timed(self._keys.failed_in(key[5:]))][::-1]

    def _others(self) -> list[tuple[str, bool]]:
        keys = ("ql:failures", "ql:paused_queues")
        return [(key, bool(self.members(key))) for key in keys] + [
            ("ql:config", bool(self.fields("ql:config")))
        ]

    def _groups(self) -> Iterator[str]:
        prefix = self._keys.failure_groups
        for key, value in self._tx.scan(*below(prefix)):
            if read_counter(value) > 0:
                yield last_part(key, prefix)

    def _queues(self) -> Iterator[str]:
        """Every queue that has something, known or not."""
        prefix = self._keys.all_counts
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
    """The kind that a key of this name has if it exists; of other names there are none."""
    if key in ("ql:failures", "ql:paused_queues"):
        return "set"
    if key.startswith("ql:f:"):
        return "list"
    return "hash" if key == "ql:config" or key.startswith(("ql:j:", "ql:r:")) else "zset"


def _score_then_name(entry: tuple[str, float]) -> tuple[float, bytes]:
    return entry[1], entry[0].encode()
