"""Lists: entering and leaving the lists of queues, groups and complete jobs.

A job is in exactly one list at a time. Its record names the key that it occupies there, so leaving
takes no search.
"""

from heapq import nlargest
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from holdfast.jobs import batches, rates, statistics, throttle_slots
from holdfast.jobs.layout import (
    HIGH,
    LOW,
    QueueKeys,
    below,
    pack_complete,
    pack_priority,
    time_and_jid,
    unpack_complete,
    unpack_priority,
    until,
)
from holdfast.jobs.records import (
    COMPLETE,
    DEPENDS,
    FAILED,
    NEVER,
    RUNNING,
    SCHEDULED,
    STALLED,
    THROTTLED,
    WAITING,
    Failure,
    JobRecord,
    QueueRecord,
)
from holdfast.keys import pack_float, pack_int, pack_str, unpack
from holdfast.limits import JOBS_PER_STEP, MAX_DUE_COMPARED

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

_FIRST: Final = pack_int(0)  # the arrival of the first job of a time


# --- entering ---------------------------------------------------------------------------------


def enter(ledger: "Ledger", job: JobRecord, now: float, start: float) -> None:
    """Places the job in its queue: blocked by others, scheduled if `start` is ahead, or as work."""
    if job.unmet:
        job.start = start if start > now else 0.0
        enter_blocked(ledger, job, now)
    elif start > now:
        enter_schedule(ledger, job, start)
    else:
        enter_work(ledger, job, now)


def enter_work(
    ledger: "Ledger",
    job: JobRecord,
    time: float,
    *,
    front: bool = False,
    counted: bool = True,
    keys: QueueKeys | None = None,
    queue: QueueRecord | None = None,
    pairs: dict[bytes, bytes] | None = None,
) -> bytes:
    """Adds the job to the work list, after all jobs of its priority that entered at `time` or
    before, and returns its packed id.

    With `counted=False` the caller updates the count. `keys` and `queue` are the queue's keys and
    record, if the caller has them. The entry goes into `pairs`, if given, for the caller to put.
    """
    tx = ledger.tx
    if keys is None:
        keys = ledger.keys.queue(job.queue)
    if queue is None:
        queue = ledger.read_queue(keys)
    line = keys.default_work
    if front:
        line = keys.front_work
    elif job.priority:
        line = keys.line(job.priority)
    job.state = STALLED if front else WAITING
    job.place = place_in_work_list(ledger, keys, line, time, queue)
    packed_jid = pack_str(job.jid)
    if pairs is None:
        tx.put(job.place, packed_jid)
    else:
        pairs[job.place] = packed_jid
    if counted:
        tx.add(keys.work_counts, LOW)
    ledger.announce_ready(keys)
    return packed_jid


def place_in_work_list(
    ledger: "Ledger", keys: QueueKeys, line: bytes, time: float, queue: QueueRecord
) -> bytes:
    """Returns the place after all jobs of one priority, in `line`, that entered at `time` or
    before."""
    entry = line + pack_float(time)
    place = entry + _FIRST
    # Two jobs rarely enter at the same time. If none did at `time` or later, at most one job has
    # entered at `time`, and one read finds it without a scan.
    if time <= queue.last_shared_time or ledger.tx.get(place) is not None:
        place = _place_after_others(ledger, entry)
        if time > queue.last_shared_time:
            ledger.save_queue(keys, replace(queue, last_shared_time=time))
    return place


def _place_after_others(ledger: "Ledger", entry: bytes) -> bytes:
    """Returns the place of a job that enters at a time at which others may have entered."""
    arrivals = ledger.arrivals
    if arrivals is None:
        arrivals = ledger.arrivals = {}
    arrival = arrivals.get(entry, -1) + 1
    # The ledger knows the last job that entered through it. Another `Jobs` of the same transaction
    # may have written too, so check that the place is free.
    if not arrival or ledger.tx.get(entry + pack_int(arrival)) is not None:
        arrival = 0
        for key, _ in ledger.tx.scan(entry, entry + b"\xff", limit=1, reverse=True):
            arrival = unpack(key, len(entry))[0] + 1
    arrivals[entry] = arrival
    return entry + pack_int(arrival)


def enter_schedule(ledger: "Ledger", job: JobRecord, start: float) -> None:
    keys = ledger.keys.queue(job.queue)
    job.state = SCHEDULED
    job.place = keys.start(start, job.jid)
    store_priority(ledger, job)
    ledger.tx.add(keys.blocked, LOW)
    ledger.schedule_queue_check(keys, start)
    ledger.announce_ready(keys)  # a waiting worker sleeps until the start at most


def store_priority(ledger: "Ledger", job: JobRecord) -> None:
    """Writes the priority of a scheduled job beside its start, where `move_due` looks for it."""
    ledger.tx.put(job.place, pack_priority(job.priority))


def enter_blocked(ledger: "Ledger", job: JobRecord, now: float) -> None:
    keys = ledger.keys.queue(job.queue)
    job.state = DEPENDS
    job.place = keys.blocked_since(now, job.jid)
    ledger.tx.put(job.place, b"")
    ledger.tx.add(keys.blocked, HIGH)


def enter_failed(ledger: "Ledger", job: JobRecord, failure: Failure, now: float) -> None:
    """Puts the job, which has left its list, into a failure group and counts the failure."""
    keys = ledger.keys.queue(job.queue)
    statistics.count_failure(ledger, keys, job, now)
    job.state = FAILED
    job.worker = ""
    job.expires = 0.0
    job.failure = failure
    job.place = ledger.keys.failed_at(failure.group, now, job.jid)
    ledger.tx.put(job.place, b"")
    ledger.tx.add(ledger.keys.failure_group(failure.group), 1)
    statistics.tally(ledger, keys, "failed", statistics.day_of(now))
    if job.batch:
        batches.count(ledger, job, "failed")


def enter_complete(
    ledger: "Ledger", job: JobRecord, packed_jid: bytes, now: float, pairs: dict[bytes, bytes]
) -> tuple[int, float]:
    """Adds the job to the complete ones, in `pairs`, which the caller puts.

    Returns how many complete jobs are kept now, and a time before which none was completed.
    """
    tx, keys = ledger.tx, ledger.keys
    job.state = COMPLETE
    job.queue = ""
    job.place = place = keys.completed + pack_float(now) + packed_jid
    pairs[place] = b""
    if job.batch:
        batches.count(ledger, job, "complete")
    count, oldest = unpack_complete(tx.get(keys.complete))
    count += 1
    if now < oldest:
        oldest = now
    pairs[keys.complete] = pack_complete(count, oldest)
    return count, oldest


# --- leaving ----------------------------------------------------------------------------------


def leave(ledger: "Ledger", job: JobRecord, now: float) -> None:
    """Removes the job from its list; if it was locked, the lock ends and frees its throttles."""
    tx = ledger.tx
    tx.delete(job.place)
    job.place = b""
    if job.state == RUNNING:
        unlock(ledger, job, now)
        tx.add(ledger.keys.queue(job.queue).work_counts, -HIGH)
    elif job.state == COMPLETE:
        count, oldest = unpack_complete(tx.get(ledger.keys.complete))
        tx.put(ledger.keys.complete, pack_complete(count - 1, oldest))
        if job.has_dependents:  # which are being released: later ones wait for its next completion
            job.round += 1
        if job.batch:
            batches.count(ledger, job, "complete", -1)
    elif job.state == FAILED:
        _leave_group(ledger, job)
    else:
        keys = ledger.keys.queue(job.queue)
        if job.state == SCHEDULED:
            tx.add(keys.blocked, -LOW)
            if job.rate_waits:
                rates.leave_waiters(ledger, job)
        elif job.state == DEPENDS:
            tx.add(keys.blocked, -HIGH)
        elif job.state == THROTTLED:
            throttle_slots.leave_waiters(ledger, job, now)
            tx.add(keys.other, -LOW)
        else:
            tx.add(keys.work_counts, -LOW)


def _leave_group(ledger: "Ledger", job: JobRecord) -> None:
    assert job.failure is not None
    ledger.tx.add(ledger.keys.failure_group(job.failure.group), -1)
    if job.batch:
        batches.count(ledger, job, "failed", -1)
    day = statistics.day_of(job.failure.when)
    statistics.tally(ledger, ledger.keys.queue(job.queue), "failed", day, -1)


# --- locks ------------------------------------------------------------------------------------


def extend_lock(ledger: "Ledger", keys: QueueKeys, job: JobRecord, end: float) -> None:
    """Moves the end of the job's lock to `end`. `expires` stays what the holder was promised."""
    ledger.tx.delete(job.place)
    job.place = keys.lock(end, job.jid)
    ledger.tx.put(job.place, b"")


def unlock(ledger: "Ledger", job: JobRecord, now: float) -> None:
    """Releases what a lock that has ended occupied; the caller changes the count."""
    ledger.tx.delete(ledger.keys.held_job(job.worker, job.jid))
    free_throttle_slots(ledger, job, now)


def free_throttle_slots(ledger: "Ledger", job: JobRecord, now: float) -> None:
    """Lets other jobs use the throttle slots that the lock occupied."""
    if job.held_throttles:
        for throttle in throttle_slots.release(ledger, job, now):
            admit(ledger, throttle, now)
    settings = ledger.settings()
    if settings.given and settings.concurrency_of(job.queue):
        ledger.announce_ready(ledger.keys.queue(job.queue))


def admit(ledger: "Ledger", name: str, now: float) -> int:
    """Returns jobs that wait for a throttle to their work lists while it has free slots, and says
    how many still wait.

    They keep the time at which they entered their queue, and so their place in it.
    """
    record = throttle_slots.load(ledger, name, now)
    room = record.maximum - record.held if record.maximum else JOBS_PER_STEP
    prefix = ledger.keys.waiters_of(name)
    if room <= 0 or not record.waiting:
        return record.waiting
    waiters = list(ledger.tx.scan(*below(prefix), limit=min(room, JOBS_PER_STEP)))
    for key, _ in waiters:
        job = ledger.job(time_and_jid(key, prefix)[1])
        assert job is not None
        ledger.tx.delete(key)
        ledger.tx.add(ledger.keys.queue(job.queue).other, -LOW)
        job.waits_for_throttle = ""
        enter_work(ledger, job, job.time)
        ledger.save(job)
    record.waiting -= len(waiters)
    throttle_slots.save(ledger, name, record)
    return record.waiting


# --- clocks -----------------------------------------------------------------------------------


def move_due(ledger: "Ledger", keys: QueueKeys, now: float, *, limit: int = JOBS_PER_STEP) -> int:
    """Turns scheduled jobs whose start has come into work, earliest first; returns how many.

    One call moves at most `limit` jobs, so that a pop never waits for a large backlog. If more are
    due it moves the most urgent, so a caller that takes up to `limit` jobs gets the right ones. Of
    more than `MAX_DUE_COMPARED`, only the first are compared.
    """
    due = list(ledger.tx.scan(*until(keys.scheduled, now), limit=limit + 1))
    if len(due) > limit:
        compared = max(limit, MAX_DUE_COMPARED)
        first = ledger.tx.scan(*until(keys.scheduled, now), limit=compared)
        due = nlargest(limit, first, key=_priority_of)
    for key, _ in due:
        job = ledger.job(time_and_jid(key, keys.scheduled)[1])
        assert job is not None
        ledger.tx.delete(key)
        if job.rate_waits:
            rates.leave_waiters(ledger, job)
        enter_work(ledger, job, now, counted=False)
        ledger.save(job)
    if due:
        ledger.tx.add(keys.work_counts, LOW * len(due))
        ledger.tx.add(keys.blocked, -LOW * len(due))
    return len(due)


def _priority_of(entry: tuple[bytes, bytes]) -> float:
    return unpack_priority(entry[1])


def next_wake(ledger: "Ledger", keys: QueueKeys) -> float:
    """Returns when the next lock ends, job starts or recurring job runs. Reads 3 keys."""
    earliest = NEVER
    for prefix in (keys.locks, keys.scheduled, keys.recurring):
        for key, _ in ledger.tx.scan(*below(prefix), limit=1):
            earliest = min(earliest, time_and_jid(key, prefix)[0])
    return earliest
