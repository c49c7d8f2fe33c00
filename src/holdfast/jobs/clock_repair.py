"""Clock repair: corrects times that were written while the clock was ahead.

Locks, delays and recurring jobs are stored with the time at which they are due. If the clock jumps
forward and is later set back, everything written in between is due too late, by as much as the
jump: a recurring job could pause for years, and a lost worker's job could stay locked. Each entry
also tells when it was made. One that was made in the future is moved: it becomes due as long after
now as it was due after it was made.

A queue is checked when the store's clock is behind the time that the queue recorded last, by more
than the clocks of different machines may differ. So as long as the clock goes forward, this reads
nothing.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from holdfast.jobs import cron, lists, recurring
from holdfast.jobs.layout import QueueKeys, pack_time, since, time_and_jid
from holdfast.jobs.records import JobRecord, QueueRecord, RecurringRecord
from holdfast.keys import pack_float, pack_str
from holdfast.limits import CLOCK_AHEAD_SECONDS, JOBS_PER_STEP

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

# Moves the entry of a list to another time; returns whether a clock that was ahead had dated it.
Move: TypeAlias = "Callable[[Ledger, QueueKeys, bytes, bytes, float], bool]"


def was_set_back(queue: QueueRecord, clock: float) -> bool:
    """Returns whether the store's clock is behind the latest time that the queue has recorded."""
    return clock < queue.clock_at_wake - CLOCK_AHEAD_SECONDS


def repair_times(ledger: "Ledger", keys: QueueKeys, now: float) -> QueueRecord:
    """Moves entries that were dated ahead to the right time, and returns the queue's record.

    Moves at most `JOBS_PER_STEP` of each list in a transaction; the next call moves the rest.
    """
    is_done = True
    for prefix, move in _moves(keys):
        begin, end = since(prefix, now + CLOCK_AHEAD_SECONDS)
        found = list(ledger.tx.scan(begin, end, limit=JOBS_PER_STEP, reverse=True))
        moved = sum(move(ledger, keys, key, value, now) for key, value in found)
        is_done = is_done and moved < JOBS_PER_STEP
    queue = ledger.queue(keys)
    clock = ledger.tx.now if is_done else queue.clock_at_wake
    queue = replace(queue, wake=lists.next_wake(ledger, keys), clock_at_wake=clock)
    ledger.save_queue(keys, queue)
    ledger.announce_ready(keys)  # a waiting worker sleeps until the next job is due at most
    return queue


def _moves(keys: QueueKeys) -> list[tuple[bytes, Move]]:
    return [
        (keys.locks, _move_lock),
        (keys.scheduled, _move_start),
        (keys.recurring, _move_run),
    ]


def _move_lock(ledger: "Ledger", keys: QueueKeys, key: bytes, value: bytes, now: float) -> bool:
    ends, jid = time_and_jid(key, keys.locks)
    job = _dated_ahead(ledger, jid, key, now)
    if job is None:
        return False
    ahead = job.time - now
    packed_jid = pack_str(jid)
    ledger.tx.delete(key)
    job.place = keys.locks + pack_float(ends - ahead) + packed_jid
    job.time, job.expires = now, job.expires - ahead
    ledger.tx.put(job.place, value)
    ledger.tx.put(ledger.keys.worker(job.worker).held + packed_jid, pack_time(job.expires))
    ledger.save(job)
    return True


def _move_start(ledger: "Ledger", keys: QueueKeys, key: bytes, value: bytes, now: float) -> bool:
    start, jid = time_and_jid(key, keys.scheduled)
    job = _dated_ahead(ledger, jid, key, now)
    if job is None:
        return False
    ledger.tx.delete(key)
    job.place = keys.start(start - (job.time - now), jid)
    job.time = now
    ledger.tx.put(job.place, value)
    ledger.save(job)
    return True


def _dated_ahead(ledger: "Ledger", jid: str, key: bytes, now: float) -> JobRecord | None:
    """Returns the job of an entry, if it was put or popped at a time that has not come."""
    [job] = ledger.jobs([jid])
    if job is None or job.place != key or job.time <= now + CLOCK_AHEAD_SECONDS:
        return None
    return job


def _move_run(ledger: "Ledger", keys: QueueKeys, key: bytes, value: bytes, now: float) -> bool:
    record = recurring.load(ledger, time_and_jid(key, keys.recurring)[1])
    if record is None or record.paused_run is not None:
        return False
    run = _next_run(record, now)
    if run >= record.next:
        return False
    ledger.tx.delete(key)
    record.next = run
    record.made = now if record.made else 0.0
    ledger.tx.put(keys.next_run(run, record.jid), value)
    recurring.save(ledger, record)
    return True


def _next_run(record: RecurringRecord, now: float) -> float:
    """Returns when a recurring job should run next, from now on."""
    if record.cron:
        return cron.parsed(record.cron, record.tz).next_after(now)
    if record.made > now + CLOCK_AHEAD_SECONDS:
        return now + (record.next - record.made)
    if record.made or not record.count:
        return record.next  # its first run, which may be as far away as its maker wanted
    intervals = math.floor((record.next - now) / record.interval)
    return record.next - max(intervals, 0) * record.interval
