"""Popping: the next jobs of a queue go to a worker, each under a lock; peeking only shows them.

The order: jobs whose lock and grace period have ended, then the work list. Before it reads the work
list, pop spawns recurring jobs that are due and starts scheduled ones. `wake` is the earliest time
at which a lock ends or a job is due; before that time none of these are read, so a queue without
them costs nothing extra.
"""

from collections.abc import Iterator
from math import floor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.declarations import operation
from holdfast.jobs import (
    batches,
    clock_repair,
    dead_letters,
    deadlines,
    dependencies,
    lists,
    queues,
    rates,
    recurring,
    statistics,
    throttle_slots,
)
from holdfast.jobs.argument_types import check, checks_own_arguments
from holdfast.jobs.arguments import check_jobs_count, check_name, check_queue, check_time
from holdfast.jobs.history import popped_entry, shorten
from holdfast.jobs.layout import (
    LOW,
    QueueKeys,
    WorkerKeys,
    below,
    pack_time,
    time_and_jid,
    until,
)
from holdfast.jobs.records import FAILED, NEVER, RUNNING, Failure, Job, JobRecord, QueueRecord
from holdfast.jobs.views import to_jobs
from holdfast.keys import pack_float, pack_str, unpack
from holdfast.limits import JOBS_PER_STEP, MAX_JOBS_PER_CALL, MAX_POPPED_BYTES

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


class PopOperations:
    """Operations that take jobs from queues."""

    _ledger: "Ledger"

    @operation()
    @checks_own_arguments
    def pop(
        self,
        queue: str,
        worker: str,
        count: int = 1,
        *,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> list[Job]:
        """Hands the next `count` jobs of `queue` to `worker`, each locked for `lock_seconds`.

        Without `lock_seconds`, the options `<queue>-heartbeat` and `heartbeat` say how long a lock
        lasts. A worker that does not renew it in time loses the job, after a notice and a grace
        period. A job's own `timeout` ends its lock early. Returns fewer jobs if the queue has a
        rate that is used up, or if their data would exceed `MAX_POPPED_BYTES`, and none if it is
        paused. Reads 5 keys and writes 6 for one job, 2 and 4 for each further one. A rate adds 3
        and 2, and 30 reads where few jobs start.
        """
        if not (
            lock_seconds is None
            and now is None
            and type(queue) is type(worker) is str
            and type(count) is int
            and 0 < count <= MAX_JOBS_PER_CALL
        ):
            check(PopOperations.pop, locals())
        ledger = self._ledger
        time = ledger.tx.now if now is None else check_time(now)
        expires = None if lock_seconds is None else time + lock_seconds
        return to_jobs(ledger, pop(ledger, queue, worker, count, time, expires))

    @operation()
    def peek(self, queue: str, count: int = 1, *, now: float | None = None) -> list[Job]:
        """Returns the next `count` jobs of `queue` without taking them.

        Starts jobs that are due, so it may write. Reads 2 keys for each job, and 3 more.
        """
        jobs = peek(self._ledger, check_queue(queue), count, self._ledger.time(now))
        return to_jobs(self._ledger, jobs)


# --- pop --------------------------------------------------------------------------------------


def pop(
    ledger: "Ledger",
    queue: str,
    worker: str,
    count: int,
    now: float,
    expires: float | None = None,
    *,
    grace_period: float | None = None,
) -> list[JobRecord]:
    """Takes up to `count` jobs; `expires` and `grace_period` replace what is configured."""
    worker_keys = ledger.keys.cached_worker(worker)
    if worker_keys is None or not worker_keys.has_valid_name:
        worker_keys = ledger.keys.worker(check_name(worker, "worker"))
    if count > MAX_JOBS_PER_CALL:
        check_jobs_count(count)
    keys = ledger.keys.cached_queue(queue)
    if keys is None or not keys.has_valid_name:
        keys = ledger.keys.queue(check_name(queue, "queue"))
    record = ledger.read_queue(keys)
    if record.paused:
        return []
    if ledger.tx.now < record.clock_at_wake and clock_repair.was_set_back(record, ledger.tx.now):
        record = clock_repair.repair_times(ledger, keys, now)
    settings = ledger.settings()
    rate = None
    if settings.given:
        if (limit := settings.concurrency_of(queue)) > 0:
            count = min(count, limit - queues.count_running(ledger, keys, now, limit))
        rate = settings.rate_of(queue)
        if rate is not None and count > 0:
            count = min(count, rates.left(ledger, rate, now, queue)[0])
    if count <= 0:
        ledger.tx.put(worker_keys.seen, pack_time(now))
        return []
    if expires is None:
        expires = now + (settings.heartbeat_of(queue) if settings.given else settings.heartbeat)
    jobs: list[JobRecord] = []
    answer = _AnswerBudget(ledger) if count > 1 else None
    is_due = now >= record.wake
    if is_due:
        if grace_period is None:
            jobs = _reclaim(ledger, keys, now, count, settings.grace_period, answer)
        else:  # the seed's pop: a holder that a later pop has notified is not notified again
            jobs = _reclaim(ledger, keys, now, count, grace_period, answer, once=True)
        if len(jobs) < count:
            recurring.spawn(ledger, keys, now, count - len(jobs))
            lists.move_due(ledger, keys, now, limit=max(JOBS_PER_STEP, count))
    reclaimed = len(jobs)
    if _take_work(ledger, keys, now, count, jobs, answer):
        record = ledger.read_queue(keys)  # scheduling has written it
    wake = NEVER if is_due else record.wake  # NEVER: computed below
    # After the scan, which is quickest before any write.
    pairs = {worker_keys.seen: pack_time(now)}
    if jobs:
        pairs[keys.popped] = statistics.count_popped(ledger, keys, now, jobs, len(jobs) - reclaimed)
        if reclaimed:
            _revoke_locks(ledger, jobs[:reclaimed])
        if rate is not None:
            rates.charge(ledger, rate, now, queue, count=len(jobs))
        longest = settings.history_length
        expires = _lock_jobs(ledger, keys, jobs, worker, worker_keys, now, expires, longest, pairs)
    ledger.tx.put_all(pairs, checked=True)
    if wake != record.wake or (jobs and expires < wake):
        _store_next_wake(ledger, keys, record, wake, expires if jobs else NEVER)
    return jobs


def _revoke_locks(ledger: "Ledger", jobs: list[JobRecord]) -> None:
    """Takes jobs whose locks have ended from their holders."""
    for job in jobs:
        ledger.tx.delete(job.place)
        ledger.tx.delete(ledger.keys.held_job(job.worker, job.jid))


class _AnswerBudget:
    """Limits the bytes of data that the jobs of one pop have together.

    A pop returns fewer jobs rather than an error: a worker that asks for 100 jobs should get the
    first few large ones. Jobs with short data are not counted.
    """

    __slots__ = ("_begun", "_ledger")

    def __init__(self, ledger: "Ledger") -> None:
        self._ledger = ledger
        self._begun = ledger.long_data_bytes

    def fits(self, job: JobRecord) -> bool:
        """Counts the data of one more job; False if it does not fit."""
        if not job.data:
            self._ledger.data_of(job)
        return self._ledger.long_data_bytes - self._begun <= MAX_POPPED_BYTES


def _take_work(
    ledger: "Ledger",
    keys: QueueKeys,
    now: float,
    count: int,
    jobs: list[JobRecord],
    answer: _AnswerBudget | None,
) -> bool:
    """Takes jobs from the work list until `jobs` has `count`, or as many as one answer holds.

    Sets jobs aside whose throttle or rate is used up, and drops those whose deadline has passed.
    Returns whether a job was scheduled for later.
    """
    tx = ledger.tx
    job_keys = ledger.keys.jobs
    aside = dropped = 0
    scheduled = False
    while (wanted := count - len(jobs)) > 0 and aside + dropped < JOBS_PER_STEP:
        entries = [*tx.scan(keys.work, keys.work_end, limit=wanted)]
        for key, packed_jid in entries:
            job = ledger.job_to_update(job_keys + packed_jid)
            assert job is not None
            if answer is not None and not answer.fits(job) and jobs:
                entries.clear()  # the next pop gets the rest
                break
            if job.start_by and deadlines.is_over(job, now):
                deadlines.drop(ledger, job, now)
                dropped += 1
                continue
            tx.delete(key)
            if job.rate_key and (wait := _wait_for_key(ledger, job, now)) is not None:
                _schedule(ledger, job, now, wait)
                scheduled = True
                aside += 1
            elif job.throttles and (full := throttle_slots.acquire(ledger, job, now)) is not None:
                throttle_slots.set_aside(ledger, keys, job, full, now)
                aside += 1
            else:
                jobs.append(job)
                job.start_by = 0.0
                if job.rate_key:
                    _charge_key(ledger, job, now)
        if len(entries) < wanted:
            break
    if aside:
        tx.add(keys.work_counts, -LOW * aside)
    return scheduled


def _wait_for_key(ledger: "Ledger", job: JobRecord, now: float) -> float | None:
    """Returns for how long the job must wait for the rate of its key; None if it may start."""
    rate = ledger.settings().key_rate_of(job.queue)
    if rate is None:
        return None
    number, wait = rates.left(ledger, rate, now, job.queue, job.rate_key)
    return None if number else wait


def _charge_key(ledger: "Ledger", job: JobRecord, now: float) -> None:
    rate = ledger.settings().key_rate_of(job.queue)
    if rate is not None:
        rates.charge(ledger, rate, now, job.queue, job.rate_key)


def _schedule(ledger: "Ledger", job: JobRecord, now: float, wait: float) -> None:
    """Schedules a job that must wait for the rate of its key."""
    rate = ledger.settings().key_rate_of(job.queue)
    assert rate is not None
    lists.enter_schedule(ledger, job, rates.next_turn(ledger, job, rate, now, wait))
    ledger.save(job)


def _lock_jobs(
    ledger: "Ledger",
    keys: QueueKeys,
    jobs: list[JobRecord],
    worker: str,
    worker_keys: WorkerKeys,
    now: float,
    expires: float,
    longest: int,
    pairs: dict[bytes, bytes],
) -> float:
    """Gives each of `jobs` to `worker`, under a fencing number greater than any before.

    Adds the writes to `pairs`, which the caller puts. Returns when the first of the locks ends; a
    job's own `timeout` may end its lock early.

    The number is derived from the clock, so that it also grows when a job is canceled and put again
    under the same id.
    """
    job_keys = ledger.keys.jobs
    held = worker_keys.held
    locks = keys.locks + pack_float(expires)
    packed_expires = pack_time(expires)
    micros = floor(ledger.tx.now * 1_000_000.0)
    entry = popped_entry(worker_keys, worker, now)
    earliest = configured = expires
    for job in jobs:
        packed_jid = pack_str(job.jid)
        if job.timeout and now + job.timeout < configured:
            expires = now + job.timeout
            earliest = min(earliest, expires)
            locks, packed_expires = keys.locks + pack_float(expires), pack_time(expires)
        elif expires is not configured:
            expires = configured
            locks, packed_expires = keys.locks + pack_float(expires), pack_time(expires)
        job.state = RUNNING
        job.worker = worker
        job.expires = expires
        job.lock = micros if micros > job.lock else job.lock + 1
        if job.holder_notified:
            job.holder_notified = False
        waited = now - job.time
        job.waited = waited if waited > 0.0 else 0.0
        job.time = now
        job.place = place = locks + packed_jid
        job.history += entry
        job.entries = entries = job.entries + 1
        if entries > longest:
            shorten(job, longest)
        pairs[place] = b""
        pairs[held + packed_jid] = packed_expires
        if type(expires) is float:
            ledger.save_and_cache(job_keys + packed_jid, job, pairs)
        else:  # an int is read back as a float, so it can't be cached
            ledger.save(job)
        if job.tracked:
            ledger.publish_tracked(job, "popped")
    return earliest


def _store_next_wake(
    ledger: "Ledger", keys: QueueKeys, record: QueueRecord, wake: float, expires: float
) -> None:
    """Stores the queue's next `wake`, if it has changed."""
    if wake == NEVER and record.wake != NEVER:
        wake = lists.next_wake(ledger, keys)
        # Spawning, above all, may have written the record: read it again.
        record = ledger.read_queue(keys)
    wake = min(wake, expires)
    if wake != record.wake:
        clock = max(record.clock_at_wake, ledger.tx.now) if wake != NEVER else 0.0
        ledger.save_queue(keys, replace(record, wake=wake, clock_at_wake=clock))


# --- locks that have ended --------------------------------------------------------------------


def _reclaim(
    ledger: "Ledger",
    keys: QueueKeys,
    now: float,
    count: int,
    grace: float,
    answer: _AnswerBudget | None,
    *,
    once: bool = False,
) -> list[JobRecord]:
    """Checks up to `count` locks that have ended, earliest first; returns the jobs to hand over.

    The first time, the holder gets a notice and a grace period. The next time, the job is handed
    over, or fails if it has no retries left. Without a grace period both happen at once; then a
    holder that was already notified is notified again, unless `once` is set.
    """
    found: list[JobRecord] = []
    for key, _ in list(ledger.tx.scan(*until(keys.locks, now), limit=count)):
        job = ledger.job(time_and_jid(key, keys.locks)[1])
        assert job is not None
        if not job.holder_notified or (grace <= 0 and not once):
            _notify_holder(ledger, keys, job, now)
            if grace > 0:
                lists.extend_lock(ledger, keys, job, now + grace)
                ledger.save(job)
                continue
        if answer is not None and not answer.fits(job) and found:
            break  # it had its notice, and the next pop hands it over
        job.remaining -= 1
        if job.remaining < 0:
            end_without_retries(ledger, job, now)
            ledger.save(job)
        elif job.rate_key and (wait := _wait_for_key(ledger, job, now)) is not None:
            lists.leave(ledger, job, now)
            job.worker = ""
            job.expires = 0.0
            _schedule(ledger, job, now, wait)
        else:
            found.append(job)
            if job.rate_key:
                _charge_key(ledger, job, now)
    return found


def _notify_holder(ledger: "Ledger", keys: QueueKeys, job: JobRecord, now: float) -> None:
    """Publishes to the holder that its lock has ended."""
    job.holder_notified = True
    ledger.add_to_history(job, "timed-out", now)
    ledger.publish_tracked(job, "stalled")
    ledger.notify_worker_and_log(
        job.worker, {"jid": job.jid, "event": "lock_lost", "worker": job.worker}
    )
    ledger.tx.delete(ledger.keys.held_job(job.worker, job.jid))
    statistics.count_lost_lock(ledger, keys, job, now)


def end_without_retries(
    ledger: "Ledger",
    job: JobRecord,
    now: float,
    *,
    group: str | None = None,
    failure: Failure | None = None,
    publish: bool = True,
) -> None:
    """Fails a running job that has used up its retries, in `group` if it is given."""
    holder = job.worker
    group = f"failed-retries-{job.queue}" if group is None else group
    message = f'Job exhausted retries in queue "{job.queue}"'
    ledger.add_to_history(job, "failed", now, {"group": group})
    lists.leave(ledger, job, now)
    dead_letters.enter_failed(ledger, job, failure or Failure(group, message, now, ""), now)
    if job.state == FAILED:
        job.remaining = -1
        if job.parent:
            dependencies.release_parent(ledger, job, now)
    ledger.publish_tracked(job, "failed")
    if job.batch:
        batches.put_callbacks(ledger, job.batch, now)
    event = {"message": message, "jid": job.jid, "group": group, "event": "failed"}
    (ledger.log if publish else ledger.log_quietly)({**event, "worker": holder})


# --- peek -------------------------------------------------------------------------------------


def peek(ledger: "Ledger", queue: str, count: int, now: float) -> list[JobRecord]:
    check_jobs_count(count)
    keys = ledger.keys.queue(queue)
    if count <= 0:
        return []
    if clock_repair.was_set_back(ledger.read_queue(keys), ledger.tx.now):
        clock_repair.repair_times(ledger, keys, now)
    expired = [
        time_and_jid(key, keys.locks)[1]
        for key, _ in ledger.tx.scan(*until(keys.locks, now), limit=count)
    ]
    if len(expired) < count and is_due(ledger, keys, now):
        recurring.spawn(ledger, keys, now, count - len(expired))
        lists.move_due(ledger, keys, now, limit=max(JOBS_PER_STEP, count))
        _store_next_wake(ledger, keys, ledger.read_queue(keys), NEVER, NEVER)
    return [
        job
        for job in ledger.jobs([*expired, *_first_jobs(ledger, keys, count - len(expired))])
        if job
    ]


def is_due(ledger: "Ledger", keys: QueueKeys, now: float) -> bool:
    """Returns whether a scheduled or recurring job of the queue is due."""
    if ledger.read_queue(keys).wake > now:
        return False
    return any(
        True
        for prefix in (keys.scheduled, keys.recurring)
        for _ in ledger.tx.scan(*until(prefix, now), limit=1)
    )


def _first_jobs(ledger: "Ledger", keys: QueueKeys, count: int) -> Iterator[str]:
    if count > 0:
        for _, value in ledger.tx.scan(*below(keys.work), limit=count):
            yield unpack(value)[0]
