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
    DEPENDENT       24  (jid, dependent)       -> round      a job that waits for the job; b"" is 0
    DEPENDENCY      25  (jid, dependency)      -> nothing    a job that the job waits for
    COMPLETE        26  (time, jid)            -> nothing    complete jobs, oldest first
    DATA            27  (jid)                  -> text       data too long to be rewritten with the
                                                             record
    RESULT          28  (jid)                  -> ResultRecord  the value that a job returned
    JOB             29  (jid)                  -> JobRecord  the job itself
    LOG             30  (jid)                  -> LogLines   what its workers wrote about their work
    WORKER_PROGRAM  31  (name)                 -> WorkerProgram  runs jobs, while alive
    RATE_WAITER     32  (queue, rate key)      -> counter    jobs scheduled for when the key's rate
                                                             allows them
    BATCH           33  (batch)                -> BatchRecord  its callbacks, open or closed
    BATCH_COUNT     34  (batch, outcome)       -> counter    its jobs, and those of an outcome
    BATCH_JOB       35  (batch, jid)           -> nothing    a job that belongs to it
    BULK_ACTION     36  (id)                   -> BulkRecord  what is done to all jobs of a search
    STEP            37  (jid, number)          -> StepRecord  what a workflow remembers of a step
    SIGNAL          38  (jid, name, number)    -> SignalRecord  a signal that was not taken yet
    QUEUE_TOTAL     39  (queue, name)          -> counter    or sums of times, of days that are no
                                                             longer kept
    BREAKDOWN       40  (queue, by, day, name) -> DayRecord  statistics of a class, tag or worker;
                                                             without a name: of all that have none

`Keys` of space_keys.py builds them. The small records that every operation touches come first and
are stored together, so that a commit writes few pages.
"""

import math
import struct
from enum import IntEnum
from typing import Any, Final

import msgspec

from holdfast.engine.contract import Notice
from holdfast.jobs.arguments import is_name
from holdfast.jobs.records import QueueRecord
from holdfast.keys import pack_float, pack_float_desc, pack_int, pack_str, unpack

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
_NOT_YET: Final = (math.inf, b"")  # no entry yet, for a second that never comes

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

    Every pop and every completion writes the statistics of its queue anyway, so the changes that it
    makes to the counts are stored there, see statistics.py. A put calls `add`: it never conflicts.
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
    """The prefixes of all keys of one queue, packed once, and the endings of its notices.

    It also caches the record, history entry and flow made last: the next operation usually needs
    the same ones.
    """

    __slots__ = (
        "blocked",
        "breakdown",
        "completed_event",
        "default_work",
        "depends",
        "ended",
        "ended_flow",
        "front_work",
        "has_valid_name",
        "last_done_entry",
        "last_entry",
        "last_record",
        "locks",
        "name",
        "normal_work",
        "other",
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
        "work",
        "work_counts",
        "work_end",
    )

    def __init__(self, space: bytes, base: bytes, name: str) -> None:
        packed = pack_str(name)
        self.name = name
        self.has_valid_name = is_name(name)
        self.last_entry = _NOT_YET  # of the history of a job that was put, and its second
        self.last_done_entry = (
            _NOT_YET  # of the history of a job that was completed, and its second
        )
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
        self.front_work = self.work + pack_int(0) + pack_float_desc(0.0)
        self.normal_work = self.work + pack_int(1)
        self.default_work = self.normal_work + pack_float_desc(0.0)
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
        return self.normal_work + pack_float_desc(priority)

    def summary(self, day: int, kind: str) -> bytes:
        return self.statistics + pack_int(day) + pack_str(kind)

    def total(self, name: str) -> bytes:
        return self.totals + pack_str(name)

    def tally(self, day: int, name: str) -> bytes:
        return self.tallies + pack_int(day) + pack_str(name)


class WorkerKeys:
    """The keys of one worker, packed once."""

    __slots__ = ("has_valid_name", "held", "last_entry", "seen")

    def __init__(self, base: bytes, name: str) -> None:
        packed = pack_str(name)
        self.has_valid_name = is_name(name)
        self.last_entry = _NOT_YET  # of the history of what it pops, and its second
        self.seen = base + pack_int(Code.WORKER) + packed
        self.held = base + pack_int(Code.WORKER_JOB) + packed


def until(prefix: bytes, time: float) -> tuple[bytes, bytes]:
    """Returns begin and end of the entries below `prefix` whose time is at most `time`."""
    return prefix, prefix + pack_float(time) + b"\xff"


def since(prefix: bytes, time: float) -> tuple[bytes, bytes]:
    """Returns begin and end of the entries below `prefix` whose time is at least `time`."""
    return prefix + pack_float(time), prefix + b"\xff"


def below(prefix: bytes) -> tuple[bytes, bytes]:
    """Returns begin and end of all entries with a part after `prefix`; no part begins with ff."""
    return prefix, prefix + b"\xff"


def time_and_jid(key: bytes, prefix: bytes) -> tuple[float, str]:
    """Returns the time and the id after `prefix`, of a list that is ordered by time."""
    time, jid = unpack(key, len(prefix))
    return time, jid


def last_part(key: bytes, prefix: bytes) -> str:
    """Returns the name at the end of a key that consists of `prefix` and one name."""
    (name,) = unpack(key, len(prefix))
    return str(name)
