"""Every key of this layer. All begin with (space, 4); the next part is one of these codes:

    SETTINGS         0  ()                     -> dict       all options that were set
    QUEUE            1  (queue)                -> QueueRecord  first seen when, paused, next wake
    COUNT            2  (queue, count)         -> counter    two counts in one, see `Count`; two of
                                                             them are flows, see statistics.py,
                                                             and one counts puts
    WORKER           3  (worker)               -> time       when it was last seen
    WORKER_JOB       4  (worker, jid)          -> time       a job that it holds, and when its lock
                                                             ends
    LOCK             5  (queue, expires, jid)  -> nothing    a lock; once over, the worker is lost
    DAY_SUMMARY      6  (queue, day, kind)     -> summary    wait or run times of a past day
    DAY_COUNT        7  (queue, day, name)     -> counter    retries, failures, failed of a day
    COMPLETE_COUNT   8  ()                     -> two        how many complete jobs are kept, and a
                                                             time before which none was completed
    TRACKED          9  (jid)                  -> time       a tracked job, and since when
    FAILED_COUNT    10  (group)                -> counter    failed jobs of a group
    THROTTLE        11  (throttle)             -> ThrottleRecord  its maximum, holders and waiters
    THROTTLE_HOLDER 12  (throttle, jid)        -> nothing    a job that holds it
    THROTTLE_WAITER 13  (throttle, time, jid)  -> nothing    a job that waits for it, longest first
    UNIQUE_KEY      14  (key)                  -> UniqueRecord  the job that owns a unique key
    SCHEDULED       15  (queue, start, jid)    -> priority   becomes work at `start`
    BLOCKED         16  (queue, time, jid)     -> nothing    blocked by other jobs
    RECURRING_DUE   17  (queue, next, jid)     -> nothing    recurring jobs of a queue by next run
    RECURRING       18  (jid)                  -> RecurringRecord  the recurring job itself
    WORK            19  (queue, front, desc priority, time, arrival)
                                               -> jid        the work list, best first; `front` is 0
                                                             for jobs that were timed out, 1 for all
                                                             others; the jid is packed as in keys
    FAILED          20  (group, time, jid)     -> nothing    failed jobs, oldest first
    TAGGED          21  (tag, time, jid)       -> nothing    jobs that carry a tag
    TAG_COUNT       22  (tag)                  -> counter    how many these are
    TAG_RANK        23  (number, tag)          -> nothing    tags of two jobs and more, by number
    DEPENDENT       24  (jid, dependent)       -> nothing    a job that waits for the job
    DEPENDENCY      25  (jid, dependency)      -> nothing    a job that the job waits for
    COMPLETE        26  (time, jid)            -> nothing    complete jobs, oldest first
    DATA            27  (jid)                  -> text       data too long to be rewritten with the
                                                             record
    RESULT          28  (jid)                  -> ResultRecord  the value that a job returned
    JOB             29  (jid)                  -> JobRecord  the job itself
    LOG             30  (jid)                  -> LogLines   what its workers wrote about their work
    WORKER_PROGRAM  31  (name)                 -> WorkerProgram  runs jobs, while alive
    RATE_WAITER     32  (queue, rate key)      -> counter    jobs scheduled for when the key's rate
                                                             lets them go
    BATCH           33  (batch)                -> BatchRecord  its callbacks, open or closed
    BATCH_COUNT     34  (batch, outcome)       -> counter    its jobs, and those of an outcome
    BATCH_JOB       35  (batch, jid)           -> nothing    a job that belongs to it
    BULK_ACTION     36  (id)                   -> BulkRecord  what is done to all jobs of a search
    STEP            37  (jid, number)          -> StepRecord  what a workflow remembers of a step
    SIGNAL          38  (jid, name, number)    -> SignalRecord  what a workflow was told, not taken
    QUEUE_TOTAL     39  (queue, name)          -> counter    or sums of times of days that are not
                                                             kept
    BREAKDOWN       40  (queue, by, day, name) -> DayRecord  statistics of a class, tag or worker;
                                                             without a name: of all that have none

The small records that every operation touches come first and are stored together, so that a commit
writes few pages.
"""

import math
import struct
from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

import msgspec

from holdfast.engine.contract import Notice
from holdfast.jobs.arguments import is_name
from holdfast.jobs.records import QueueRecord
from holdfast.keys import pack_float, pack_float_desc, pack_int, pack_str, unpack
from holdfast.limits import MAX_NAMES_KEPT_PACKED

Found = TypeVar("Found")

LAYER: Final = 4


class Code(IntEnum):
    """The second part of a key: its kind."""

    SETTINGS = 0
    QUEUE = 1
    COUNT = 2
    WORKER = 3
    WORKER_JOB = 4
    LOCK = 5
    DAY_SUMMARY = 6
    DAY_COUNT = 7
    COMPLETE_COUNT = 8
    TRACKED = 9
    FAILED_COUNT = 10
    THROTTLE = 11
    THROTTLE_HOLDER = 12
    THROTTLE_WAITER = 13
    UNIQUE_KEY = 14
    SCHEDULED = 15
    BLOCKED = 16
    RECURRING_DUE = 17
    RECURRING = 18
    WORK = 19
    FAILED = 20
    TAGGED = 21
    TAG_COUNT = 22
    TAG_RANK = 23
    DEPENDENT = 24
    DEPENDENCY = 25
    COMPLETE = 26
    DATA = 27
    RESULT = 28
    JOB = 29
    LOG = 30
    WORKER_PROGRAM = 31
    RATE_WAITER = 32
    BATCH = 33
    BATCH_COUNT = 34
    BATCH_JOB = 35
    BULK_ACTION = 36
    STEP = 37
    SIGNAL = 38
    QUEUE_TOTAL = 39
    BREAKDOWN = 40


KEY_NAMES: Final = tuple(code.name.lower() for code in Code)  # what `holdfast inspect` prints

READY: Final = "jobs.ready"  # the topic of notices about a queue that may have something to pop

_encode_json: Final = msgspec.json.Encoder().encode
_NOT_YET: Final = (math.inf, b"")  # nothing was made, in a second that never comes

_NO_FLOW: Final = (b"", math.inf)

_TIME: Final = struct.Struct(">d")
pack_time: Final = _TIME.pack


def unpack_time(value: bytes) -> float:
    return float(_TIME.unpack(value)[0])


_COUNT_AND_TIME: Final = struct.Struct(">qd")
pack_complete: Final = _COUNT_AND_TIME.pack


def unpack_complete(value: bytes | None) -> tuple[int, float]:
    """Returns the number of complete jobs, and a time before which none of them was completed."""
    return (0, math.inf) if value is None else _COUNT_AND_TIME.unpack(value)


pack_priority: Final = pack_time
unpack_priority: Final = unpack_time


class Count(IntEnum):
    """The counters of a queue, with two counts each: a low half and a high one.

    >>> read_pair(3 * LOW + 2 * HIGH)
    (3, 2)

    Every pop and every completion writes the statistics of its queue, so what it changes in the
    counts is kept there, see statistics.py. Nobody else pays for that: to put a job is to `add`,
    which never conflicts.
    """

    WORK = 0  # low: waiting, high: locks, without what is counted in the two flows
    BLOCKED = 1  # low: scheduled, high: depends
    OTHER = 2  # low: throttled, high: recurring
    POPPED = 3  # a flow: so many jobs less wait, and so many more are locked
    ENDED = 4  # a flow: so many jobs less are locked
    PUTS = 5  # one number: how often a job was put into the queue since it exists


LOW: Final = 1
HIGH: Final = 1 << 32  # the low half is a count and never below 0, so it never borrows


def read_pair(number: int) -> tuple[int, int]:
    return number & (HIGH - 1), number >> 32


class QueueKeys:
    """The beginnings of all keys of one queue, packed once, and how words about it end.

    And what was made for it last, for that hardly ever changes from one operation to the next.
    """

    __slots__ = (
        "blocked",
        "breakdown",
        "completed_event",
        "depends",
        "ended",
        "ended_flow",
        "front",
        "is_named",
        "last_done",
        "last_entry",
        "last_record",
        "locks",
        "name",
        "other",
        "plain",
        "popped",
        "popped_flow",
        "put_event",
        "puts",
        "ready",
        "record",
        "recurring",
        "scheduled",
        "statistics",
        "tallies",
        "totals",
        "usual",
        "work",
        "work_counts",
        "work_end",
    )

    def __init__(self, space: bytes, base: bytes, name: str) -> None:
        packed = pack_str(name)
        self.name = name
        self.is_named = is_name(name)
        self.last_entry = _NOT_YET  # of the history of a job that was put, and its second
        self.last_done = _NOT_YET  # the same of one that was completed
        self.last_record: tuple[bytes | None, QueueRecord] = None, QueueRecord()
        self.popped_flow: Any = _NO_FLOW  # the last that was written, decoded; see statistics.py
        self.ended_flow: Any = _NO_FLOW
        named = _encode_json(name)
        self.put_event = b',"event":"put","queue":' + named + b"}"
        self.completed_event = b',"event":"completed","queue":' + named + b"}"
        self.ready = Notice(READY, name.encode(), space)
        self.record = base + pack_int(Code.QUEUE) + packed
        counts = base + pack_int(Code.COUNT) + packed
        self.work_counts = counts + pack_int(Count.WORK)
        self.blocked = counts + pack_int(Count.BLOCKED)
        self.other = counts + pack_int(Count.OTHER)
        self.popped = counts + pack_int(Count.POPPED)
        self.ended = counts + pack_int(Count.ENDED)
        self.puts = counts + pack_int(Count.PUTS)
        self.locks = base + pack_int(Code.LOCK) + packed
        self.statistics = base + pack_int(Code.DAY_SUMMARY) + packed
        self.tallies = base + pack_int(Code.DAY_COUNT) + packed
        self.totals = base + pack_int(Code.QUEUE_TOTAL) + packed
        self.breakdown = base + pack_int(Code.BREAKDOWN) + packed
        self.scheduled = base + pack_int(Code.SCHEDULED) + packed
        self.depends = base + pack_int(Code.BLOCKED) + packed
        self.recurring = base + pack_int(Code.RECURRING_DUE) + packed
        self.work = base + pack_int(Code.WORK) + packed
        self.front = self.work + pack_int(0) + pack_float_desc(0.0)
        self.usual = self.work + pack_int(1)
        self.plain = self.usual + pack_float_desc(0.0)
        self.work_end = self.work + b"\xff"

    def lock(self, expires: float, jid: str) -> bytes:
        return self.locks + pack_float(expires) + pack_str(jid)

    def start(self, start: float, jid: str) -> bytes:
        return self.scheduled + pack_float(start) + pack_str(jid)

    def blocked_since(self, time: float, jid: str) -> bytes:
        return self.depends + pack_float(time) + pack_str(jid)

    def next_run(self, next_run: float, jid: str) -> bytes:
        return self.recurring + pack_float(next_run) + pack_str(jid)

    def line(self, priority: float) -> bytes:
        """Returns the prefix of the work list's entries of a priority; time and arrival follow."""
        return self.usual + pack_float_desc(priority)

    def summary(self, day: int, kind: str) -> bytes:
        return self.statistics + pack_int(day) + pack_str(kind)

    def total(self, name: str) -> bytes:
        return self.totals + pack_str(name)

    def tally(self, day: int, name: str) -> bytes:
        return self.tallies + pack_int(day) + pack_str(name)


class WorkerKeys:
    """The keys of one worker, packed once."""

    __slots__ = ("held", "is_named", "last_entry", "seen")

    def __init__(self, base: bytes, name: str) -> None:
        packed = pack_str(name)
        self.is_named = is_name(name)
        self.last_entry = _NOT_YET  # of the history of what it pops, and its second
        self.seen = base + pack_int(Code.WORKER) + packed
        self.held = base + pack_int(Code.WORKER_JOB) + packed


class _Seen(dict[str, Found]):
    """The keys of the queues or workers that were asked for, so that they are packed once."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[str], Found]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Found:
        if len(self) >= MAX_NAMES_KEPT_PACKED:
            self.clear()
        found = self[name] = self._make(name)
        return found


class Keys:
    """All keys of the layer in one space."""

    __slots__ = (
        "_base",
        "_batch_counts",
        "_batch_jobs",
        "_data",
        "_dependencies",
        "_dependents",
        "_log",
        "_rate_waiters",
        "_result",
        "_signals",
        "_steps",
        "_tracked",
        "_unique",
        "batches",
        "bulk_actions",
        "complete",
        "completed",
        "failed",
        "failure_groups",
        "jobs",
        "queue",
        "queue_seen",
        "queues",
        "recurring",
        "settings",
        "tag_counts",
        "tag_ranks",
        "tags",
        "throttle_holders",
        "throttle_waiters",
        "throttles",
        "worker",
        "worker_programs",
        "worker_seen",
        "workers",
    )

    def __init__(self, space: bytes) -> None:
        base = self._base = space + pack_int(LAYER)
        self.settings = base + pack_int(Code.SETTINGS)
        self.queues = base + pack_int(Code.QUEUE)
        self.workers = base + pack_int(Code.WORKER)
        self.complete = base + pack_int(Code.COMPLETE_COUNT)
        self._tracked = base + pack_int(Code.TRACKED)
        self.failure_groups = base + pack_int(Code.FAILED_COUNT)
        self.throttles = base + pack_int(Code.THROTTLE)
        self.throttle_holders = base + pack_int(Code.THROTTLE_HOLDER)
        self.throttle_waiters = base + pack_int(Code.THROTTLE_WAITER)
        self._unique = base + pack_int(Code.UNIQUE_KEY)
        self.recurring = base + pack_int(Code.RECURRING)
        self.failed = base + pack_int(Code.FAILED)
        self.tags = base + pack_int(Code.TAGGED)
        self.tag_counts = base + pack_int(Code.TAG_COUNT)
        self.tag_ranks = base + pack_int(Code.TAG_RANK)
        self._dependents = base + pack_int(Code.DEPENDENT)
        self._dependencies = base + pack_int(Code.DEPENDENCY)
        self.completed = base + pack_int(Code.COMPLETE)
        self._data = base + pack_int(Code.DATA)
        self._result = base + pack_int(Code.RESULT)
        self.jobs = base + pack_int(Code.JOB)
        self._log = base + pack_int(Code.LOG)
        self._steps = base + pack_int(Code.STEP)
        self._signals = base + pack_int(Code.SIGNAL)
        self.worker_programs = base + pack_int(Code.WORKER_PROGRAM)
        self._rate_waiters = base + pack_int(Code.RATE_WAITER)
        self.batches = base + pack_int(Code.BATCH)
        self._batch_counts = base + pack_int(Code.BATCH_COUNT)
        self._batch_jobs = base + pack_int(Code.BATCH_JOB)
        self.bulk_actions = base + pack_int(Code.BULK_ACTION)
        queues = _Seen(partial(QueueKeys, space, base))
        self.queue: Callable[[str], QueueKeys] = queues.__getitem__
        self.queue_seen: Callable[[str], QueueKeys | None] = queues.get
        workers = _Seen(partial(WorkerKeys, base))
        self.worker: Callable[[str], WorkerKeys] = workers.__getitem__
        self.worker_seen: Callable[[str], WorkerKeys | None] = workers.get

    @property
    def all(self) -> bytes:
        """The beginning of every key of the layer."""
        return self._base

    @property
    def all_counts(self) -> bytes:
        """The beginning of the counters of all queues."""
        return self._base + pack_int(Code.COUNT)

    @property
    def tracked_jobs(self) -> bytes:
        return self._tracked

    def job(self, jid: str) -> bytes:
        return self.jobs + pack_str(jid)

    def data(self, jid: str) -> bytes:
        return self._data + pack_str(jid)

    def result(self, jid: str) -> bytes:
        return self._result + pack_str(jid)

    def log(self, jid: str) -> bytes:
        return self._log + pack_str(jid)

    def worker_program(self, name: str) -> bytes:
        return self.worker_programs + pack_str(name)

    def steps_of(self, jid: str) -> bytes:
        return self._steps + pack_str(jid)

    def signals_of(self, jid: str) -> bytes:
        return self._signals + pack_str(jid)

    def signals_named(self, jid: str, name: str) -> bytes:
        return self._signals + pack_str(jid) + pack_str(name)

    def recurring_job(self, jid: str) -> bytes:
        return self.recurring + pack_str(jid)

    def held_job(self, worker: str, jid: str) -> bytes:
        return self.worker(worker).held + pack_str(jid)

    def tracked(self, jid: str) -> bytes:
        return self._tracked + pack_str(jid)

    def unique(self, key: str) -> bytes:
        return self._unique + pack_str(key)

    def failure_group(self, group: str) -> bytes:
        return self.failure_groups + pack_str(group)

    def failed_in(self, group: str) -> bytes:
        return self.failed + pack_str(group)

    def failed_at(self, group: str, time: float, jid: str) -> bytes:
        return self.failed + pack_str(group) + pack_float(time) + pack_str(jid)

    def tagged(self, tag: str) -> bytes:
        return self.tags + pack_str(tag)

    def tagged_at(self, tag: str, time: float, jid: str) -> bytes:
        return self.tags + pack_str(tag) + pack_float(time) + pack_str(jid)

    def tag_count(self, tag: str) -> bytes:
        return self.tag_counts + pack_str(tag)

    def tag_rank(self, number: int, tag: str) -> bytes:
        return self.tag_ranks + pack_int(number) + pack_str(tag)

    def dependents_of(self, jid: str) -> bytes:
        return self._dependents + pack_str(jid)

    def dependent(self, jid: str, dependent: str) -> bytes:
        return self._dependents + pack_str(jid) + pack_str(dependent)

    def dependencies_of(self, jid: str) -> bytes:
        return self._dependencies + pack_str(jid)

    def dependency(self, jid: str, dependency: str) -> bytes:
        return self._dependencies + pack_str(jid) + pack_str(dependency)

    def batch(self, batch: str) -> bytes:
        return self.batches + pack_str(batch)

    def batch_count(self, batch: str, outcome: str) -> bytes:
        return self._batch_counts + pack_str(batch) + pack_str(outcome)

    def batch_counts_of(self, batch: str) -> bytes:
        return self._batch_counts + pack_str(batch)

    def batch_jobs_of(self, batch: str) -> bytes:
        return self._batch_jobs + pack_str(batch)

    def batch_job(self, batch: str, jid: str) -> bytes:
        return self._batch_jobs + pack_str(batch) + pack_str(jid)

    def bulk_action(self, id: str) -> bytes:
        return self.bulk_actions + pack_str(id)

    def rate_waiters(self, queue: str, rate_key: str) -> bytes:
        return self._rate_waiters + pack_str(queue) + pack_str(rate_key)

    def throttle(self, name: str) -> bytes:
        return self.throttles + pack_str(name)

    def holders_of(self, throttle: str) -> bytes:
        return self.throttle_holders + pack_str(throttle)

    def holder(self, throttle: str, jid: str) -> bytes:
        return self.throttle_holders + pack_str(throttle) + pack_str(jid)

    def waiters_of(self, throttle: str) -> bytes:
        return self.throttle_waiters + pack_str(throttle)

    def waiter(self, throttle: str, time: float, jid: str) -> bytes:
        return self.throttle_waiters + pack_str(throttle) + pack_float(time) + pack_str(jid)


@lru_cache(maxsize=256)
def keys_of(space: bytes) -> Keys:
    return Keys(space)


def until(prefix: bytes, time: float) -> tuple[bytes, bytes]:
    """Begin and end of the entries below `prefix` whose time is at most `time`."""
    return prefix, prefix + pack_float(time) + b"\xff"


def since(prefix: bytes, time: float) -> tuple[bytes, bytes]:
    """Begin and end of the entries below `prefix` whose time is at least `time`."""
    return prefix + pack_float(time), prefix + b"\xff"


def below(prefix: bytes) -> tuple[bytes, bytes]:
    """Begin and end of all entries that have a part behind `prefix`; ff begins no part."""
    return prefix, prefix + b"\xff"


def time_and_jid(key: bytes, prefix: bytes) -> tuple[float, str]:
    """Returns the time and the id after `prefix`, of a list that is ordered by time."""
    time, jid = unpack(key, len(prefix))
    return time, jid


def last_part(key: bytes, prefix: bytes) -> str:
    """The name at the end of a key that consists of `prefix` and one name more."""
    (name,) = unpack(key, len(prefix))
    return str(name)
