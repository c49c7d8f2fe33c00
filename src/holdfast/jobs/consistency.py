"""Checks the stored keys of this layer: jobs, their lists and all counts must agree.

`problems_at` gets one key after the other from a scan of the space in bounded steps. Each check
reads one snapshot, so a write between two checks is never mistaken for damage.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.engine.contract import Reader, read_counter
from holdfast.error_text import counted
from holdfast.jobs import batches, breakdown, bulk, statistics
from holdfast.jobs.arguments import tag_text
from holdfast.jobs.layout import (
    LAYER,
    Code,
    Count,
    below,
    last_part,
    time_and_jid,
    unpack_complete,
)
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.records import (
    RUNNING,
    STALLED,
    WAITING,
    JobRecord,
    RecurringRecord,
    ThrottleRecord,
)
from holdfast.jobs.search import read_cursor
from holdfast.keys import pack_int, pack_str, unpack, unpack_first

__all__ = ["problems_at"]

KeyCheck: TypeAlias = Callable[[Ledger, bytes, bytes, int], Iterator[str]]

_job_of: Final = msgspec.msgpack.Decoder(JobRecord).decode
_recurring_of: Final = msgspec.msgpack.Decoder(RecurringRecord).decode
_throttle_of: Final = msgspec.msgpack.Decoder(ThrottleRecord).decode


def problems_at(reader: Reader, key: bytes, value: bytes) -> Iterator[str]:
    """Yields a sentence for each problem of the pair at `key`.

    Reads a few keys, for a count all that it counts.
    """
    kind, begin = unpack_first(key, len(reader.space) + len(pack_int(LAYER)))
    look = _KEY_CHECKS.get(kind)
    if look is not None:
        yield from look(Ledger(reader), key, value, begin)  # type: ignore[arg-type]  # it only reads


def _is_listed(ledger: Ledger, job: JobRecord) -> bool:
    """Returns whether the job's worker must have it in its list.

    A job leaves the list when its worker is notified that the lock has ended. A worker that was not
    seen for long is forgotten together with its list.
    """
    return (
        job.state == RUNNING
        and not job.holder_notified
        and job.expires > ledger.tx.now
        and job.time > ledger.tx.now - ledger.settings().worker_age
        and ledger.tx.get(ledger.keys.worker(job.worker).seen) is not None
    )


# --- jobs ----------------------------------------------------------------------------------------


def _job(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    job = _job_of(value)
    get, keys = ledger.tx.get, ledger.keys
    placed = get(job.place)
    if placed is None or (job.state in (WAITING, STALLED) and placed != pack_str(job.jid)):
        yield f"job {job.jid}: it is {job.state}, but not in that list"
    if _is_listed(ledger, job) and get(keys.held_job(job.worker, job.jid)) is None:
        yield f"job {job.jid}: the list of its worker {job.worker} lacks it"
    if not job.data and get(keys.data(job.jid)) is None:
        yield f"job {job.jid}: its data is missing"
    for tag, since in zip(map(tag_text, job.tags), job.tagged, strict=True):
        if get(keys.tagged_at(tag, since, job.jid)) is None:
            yield f"job {job.jid}: the list of tag {tag!r} lacks it"
    for throttle in job.held_throttles:
        if get(keys.holder(throttle, job.jid)) is None:
            yield f"job {job.jid}: the holders of throttle {throttle!r} lack it"
    if job.rate_waits and read_counter(get(keys.rate_waiters(job.queue, job.rate_key))) < 1:
        yield f"job {job.jid}: waits for the rate of {job.rate_key!r}, which counts no waiting job"
    if job.batch and get(keys.batch_job(job.batch, job.jid)) is None:
        yield f"job {job.jid}: batch {job.batch!r} does not list it"
    unmet = _count(ledger, keys.dependencies_of(job.jid))
    if unmet != job.unmet:
        yield f"job {job.jid}: waits for {counted(job.unmet, 'job')}, but {unmet:,} are listed"


def _placed(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    """Lists by queue, group or throttle, and then by time: the job must be at this very place."""
    yield from _at_place(ledger, key, str(unpack(key, begin)[-1]))


def _work(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    yield from _at_place(ledger, key, str(unpack(value)[0]))


def _at_place(ledger: Ledger, key: bytes, jid: str) -> Iterator[str]:
    job = ledger.job(jid)
    if job is None:
        yield f"job {jid}: it is in a list, but does not exist"
    elif job.place != key:
        yield f"job {jid}: it is {job.state}, but also in another list"


def _held(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    worker, jid = unpack(key, begin)
    job = ledger.job(jid)
    if job is None or job.worker != worker:
        yield f"worker {worker}: its list has job {jid}, which it does not hold"


def _data(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    [jid] = unpack(key, begin)
    job = ledger.job(jid)
    if job is None or job.data:
        yield f"job {jid}: data is left over"


def _log(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    [jid] = unpack(key, begin)
    job = ledger.job(jid)
    if job is None or not job.has_log:
        yield f"job {jid}: a log is left over"


def _step(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    jid = unpack(key, begin)[0]
    job = ledger.job(jid)
    if job is None or not job.has_steps:
        yield f"job {jid}: a step or signal of a workflow is left over"


def _tagged(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    tag, since, jid = unpack(key, begin)
    job = ledger.job(jid)
    carried = {} if job is None else dict(zip(map(tag_text, job.tags), job.tagged, strict=True))
    if carried.get(tag) != since:
        yield f"tag {tag!r}: lists job {jid}, which does not carry it"


def _dependent(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    jid, dependent = unpack(key, begin)
    if ledger.tx.get(ledger.keys.dependency(dependent, jid)) is None:
        yield f"job {jid}: job {dependent} is listed as waiting for it, but does not"


def _dependency(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    jid, dependency = unpack(key, begin)
    if ledger.tx.get(ledger.keys.dependent(dependency, jid)) is None:
        yield f"job {jid}: waits for job {dependency}, which does not list it"


def _holder(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    throttle, jid = unpack(key, begin)
    job = ledger.job(jid)
    if job is None or throttle not in job.held_throttles:
        yield f"throttle {throttle!r}: job {jid} is listed as a holder, but does not hold it"


def _rate_waiters(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    queue, rate_key = unpack(key, begin)
    prefix = ledger.keys.queue(queue).scheduled
    scheduled = (
        ledger.job(time_and_jid(each, prefix)[1]) for each, _ in ledger.tx.scan(*below(prefix))
    )
    has = sum(1 for job in scheduled if job and job.rate_waits and job.rate_key == rate_key)
    counted = read_counter(value)
    if counted != has:
        yield f"rate of {rate_key!r} in queue {queue}: counts {counted} jobs that wait, has {has}"


# --- batches and bulk actions --------------------------------------------------------------------


def _batch(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    [id] = unpack(key, begin)
    record = batches.decode(value)
    if record.id != id:
        yield f"batch {id!r}: its record is that of {record.id!r}"
    found = batches.to_batch(ledger, record)
    if min(found.total, found.complete, found.failed, found.canceled, found.pending) < 0:
        yield f"batch {id!r}: counts more outcomes than jobs"


def _of_a_batch(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    id, name = unpack(key, begin)
    if ledger.tx.get(ledger.keys.batch(id)) is None:
        yield f"batch {id!r}: {name!r} is left over"


def _batch_job(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    yield from _of_a_batch(ledger, key, value, begin)
    id, jid = unpack(key, begin)
    job = ledger.job(jid)
    if job is None or job.batch != id:
        yield f"batch {id!r}: lists job {jid}, which does not belong to it"


def _bulk_action(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    [id] = unpack(key, begin)
    action = bulk.decode(value)
    if action.id != id:
        yield f"bulk action {id!r}: its record is that of {action.id!r}"
    if action.cursor is not None:
        read_cursor(action.cursor)


# --- statistics ----------------------------------------------------------------------------------


def _total(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    queue, name = unpack(key, begin)
    if statistics.total_from(name, value) < 0:
        yield f"queue {queue}: its total of {name} is below 0"


def _breakdown(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    queue, _, day, *names = unpack(key, begin)
    record = breakdown.decode_record(value)
    for times in (record.wait, record.run):
        if sum(times.buckets.values()) != times.count:
            yield f"queue {queue}: the times of day {day} are not the {times.count} that it counts"
    if not names:
        has = _count(ledger, key) - 1  # without this record itself
        if record.names != has:
            yield f"queue {queue}: day {day} counts {record.names} names, has {has}"


# --- recurring jobs ------------------------------------------------------------------------------


def _recurring(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    record = _recurring_of(value)
    run = ledger.keys.queue(record.queue).next_run(record.next, record.jid)
    if ledger.tx.get(run) is None:
        yield f"recurring job {record.jid}: its next run is in no list"


def _next_run(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    queue, time, jid = unpack(key, begin)
    stored = ledger.tx.get(ledger.keys.recurring_job(jid))
    record = None if stored is None else _recurring_of(stored)
    if record is None or (record.queue, record.next) != (queue, time):
        yield f"recurring job {jid}: a run is listed that is not its next one"


# --- counts --------------------------------------------------------------------------------------


def _queue(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    """Checks for counters that should exist; existing ones are checked by themselves."""
    [name] = unpack(key, begin)
    keys = ledger.keys.queue(name)
    counters = {
        Count.WORK: keys.work_counts,
        Count.BLOCKED: keys.blocked,
        Count.OTHER: keys.other,
    }
    for count, counter in counters.items():
        if ledger.tx.get(counter) is None:
            yield from _counts_differ(ledger, name, count)


def _queue_counts(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    name, count = unpack(key, begin)
    if count <= Count.OTHER:  # the flows are checked with the work
        yield from _counts_differ(ledger, name, Count(count))
    elif count == Count.PUTS:
        if read_counter(value) < 0:
            yield f"queue {name}: its number of puts is below 0"
    else:
        breakdown.check_notes(value)


def _counts_differ(ledger: Ledger, name: str, count: Count) -> Iterator[str]:
    keys = ledger.keys.queue(name)
    lists: dict[str, int] = {}
    if count is Count.WORK:
        counted = ledger.work_counts(keys)
        lists = {"waiting": _count(ledger, keys.work), "running": _count(ledger, keys.locks)}
    elif count is Count.BLOCKED:
        counted = ledger.pair(keys.blocked)
        lists = {
            "scheduled": _count(ledger, keys.scheduled),
            "depends": _count(ledger, keys.depends),
        }
    else:
        counted = ledger.pair(keys.other)
        lists = {
            "throttled": _throttled(ledger, name),
            "recurring": _count(ledger, keys.recurring),
        }
    for (words, has), number in zip(lists.items(), counted, strict=True):
        if number != has:
            yield f"queue {name}: counts {number} {words} jobs, has {has}"


def _throttled(ledger: Ledger, queue: str) -> int:
    prefix = ledger.keys.throttle_waiters
    waiting = (ledger.job(unpack(k, len(prefix))[2]) for k, _ in ledger.tx.scan(*below(prefix)))
    return sum(1 for job in waiting if job is not None and job.queue == queue)


def _group(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    [group] = unpack(key, begin)
    yield from _differs(ledger, f"group {group!r}", "failed jobs", value, "failed_in", group)


def _tag_count(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    [tag] = unpack(key, begin)
    yield from _differs(ledger, f"tag {tag!r}", "jobs", value, "tagged", tag)
    number = read_counter(value)
    if number > 1 and ledger.tx.get(ledger.keys.tag_rank(number, tag)) is None:
        yield f"tag {tag!r}: is missing among the most used"


def _tag_rank(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    number, tag = unpack(key, begin)
    if read_counter(ledger.tx.get(ledger.keys.tag_count(tag))) != number:
        yield f"tag {tag!r}: is listed with {number} jobs, but has another number"


def _throttle(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    name = last_part(key, ledger.keys.throttles)
    record = _throttle_of(value)
    held = _count(ledger, ledger.keys.holders_of(name))
    waiting = _count(ledger, ledger.keys.waiters_of(name))
    if (record.held, record.waiting) != (held, waiting):
        yield (
            f"throttle {name!r}: counts {record.held} jobs that hold it and {record.waiting} that "
            f"wait, has {held} and {waiting}"
        )


def _complete(ledger: Ledger, key: bytes, value: bytes, begin: int) -> Iterator[str]:
    counted, oldest = unpack_complete(value)
    prefix = ledger.keys.completed
    has = _count(ledger, prefix)
    if counted != has:
        yield f"complete jobs: {counted} are counted, {has} are there"
    for first, _ in ledger.tx.scan(*below(prefix), limit=1):
        if time_and_jid(first, prefix)[0] < oldest:
            yield "complete jobs: one is older than the oldest should be"


def _differs(
    ledger: Ledger, who: str, words: str, value: bytes, list_of: str, name: str
) -> Iterator[str]:
    counted, has = read_counter(value), _count(ledger, getattr(ledger.keys, list_of)(name))
    if counted != has:
        yield f"{who}: counts {counted} {words}, has {has}"


def _count(ledger: Ledger, prefix: bytes) -> int:
    return sum(1 for _ in ledger.tx.scan(*below(prefix)))


_KEY_CHECKS: Final[Mapping[Any, KeyCheck]] = {
    Code.QUEUE: _queue,
    Code.COUNT: _queue_counts,
    Code.WORKER_JOB: _held,
    Code.LOCK: _placed,
    Code.COMPLETE_COUNT: _complete,
    Code.FAILED_COUNT: _group,
    Code.THROTTLE: _throttle,
    Code.THROTTLE_HOLDER: _holder,
    Code.THROTTLE_WAITER: _placed,
    Code.SCHEDULED: _placed,
    Code.BLOCKED: _placed,
    Code.RECURRING_DUE: _next_run,
    Code.RECURRING: _recurring,
    Code.WORK: _work,
    Code.FAILED: _placed,
    Code.TAGGED: _tagged,
    Code.TAG_COUNT: _tag_count,
    Code.TAG_RANK: _tag_rank,
    Code.DEPENDENT: _dependent,
    Code.DEPENDENCY: _dependency,
    Code.COMPLETE: _placed,
    Code.DATA: _data,
    Code.JOB: _job,
    Code.LOG: _log,
    Code.RATE_WAITER: _rate_waiters,
    Code.BATCH: _batch,
    Code.BATCH_COUNT: _of_a_batch,
    Code.BATCH_JOB: _batch_job,
    Code.BULK_ACTION: _bulk_action,
    Code.STEP: _step,
    Code.SIGNAL: _step,
    Code.QUEUE_TOTAL: _total,
    Code.BREAKDOWN: _breakdown,
}
