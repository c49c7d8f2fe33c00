"""Settlements: heartbeat, complete, fail and retry by the holder of a lock, and timeout.

Ownership counts, not the clock: the holder may settle a job after its lock has ended, as long as
the job was not handed to another worker. A caller that gives the lock's fencing number is refused
as soon as there is a newer lock.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from holdfast.declarations import operation
from holdfast.errors import BadArgument, JobLost
from holdfast.jobs import (
    batches,
    dead_letters,
    dependencies,
    lists,
    results,
    retention,
    statistics,
)
from holdfast.jobs.argument_types import EMPTY, LARGEST_INT, ZERO, check, checks_own_arguments
from holdfast.jobs.arguments import (
    check_jids,
    check_name,
    check_numbers,
    check_time,
    cut_message,
    json_data,
    json_text,
)
from holdfast.jobs.breakdown import COMPLETED
from holdfast.jobs.history import RETRIED, done_entry, shorten
from holdfast.jobs.ledger import encode
from holdfast.jobs.locks import heartbeat, held_job, timeout
from holdfast.jobs.pops import end_without_retries, pop
from holdfast.jobs.records import COMPLETE, FAILED, Failure, Job, JobRecord
from holdfast.jobs.views import to_jobs
from holdfast.keys import pack_str
from holdfast.limits import (
    MAX_CACHED_JOB_RECORD_BYTES,
    MAX_HISTORY_MESSAGE_CHARS,
    MAX_JOBS_PER_CALL,
)

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


class Unset:
    """Marks an argument that was not given where None is a value."""


UNSET: Final = Unset()


class SettlementOperations:
    """Operations of the worker that holds a job, and `timeout`."""

    _ledger: "Ledger"

    @operation()
    @checks_own_arguments
    def heartbeat(
        self,
        id: str,
        worker: str,
        *,
        data: Any = UNSET,
        progress: float | None = None,
        progress_text: str = "",
        lock: int | None = None,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> float:
        """Renews the lock and returns its new end, no later than the job's own `timeout` allows.

        Reads 2 keys, writes 5.
        """
        if not (
            progress is None
            and lock_seconds is None
            and now is None
            and type(id) is type(worker) is type(progress_text) is str
            and (lock is None or (type(lock) is int and 0 <= lock <= LARGEST_INT))
        ):
            check(SettlementOperations.heartbeat, locals())
        ledger = self._ledger
        time = ledger.tx.now if now is None else check_time(now)
        text = None if data is UNSET else json_data(data)
        if progress is not None:
            results.check_progress(progress)
        expires = None if lock_seconds is None else time + lock_seconds
        job = heartbeat(ledger, id, worker, text, time, lock, expires)
        if progress is not None:
            results.set_progress(ledger, job, progress, progress_text)
        return job.expires

    @operation()
    @checks_own_arguments
    def complete(
        self,
        id: str,
        worker: str,
        *,
        queue: str | None = None,
        data: Any = UNSET,
        next: str | None = None,
        delay: float = 0,
        depends: Sequence[str] = (),
        result: Any = UNSET,
        result_ttl: float | None = None,
        lock: int | None = None,
        now: float | None = None,
    ) -> str:
        """Completes the job, or with `next` moves it to that queue; returns its new state.

        `queue`, if given, must be the one that the job runs in. `data` replaces the job's data;
        `result` is kept for `result(id)`, for `result_ttl` seconds if that is given. Jobs that
        depend on this one start once it is complete.

        Reads 4 keys, writes 6. A result adds 1 write, `next` adds 1 read and 1 write, and with it a
        delay 1 write and each of `depends` 1 read and 3 writes.
        """
        if not (
            queue is None
            and next is None
            and result_ttl is None
            and now is None
            and type(id) is type(worker) is str
            and (lock is None or (type(lock) is int and 0 <= lock <= LARGEST_INT))
            and delay is ZERO
            and depends is EMPTY
        ):
            check(SettlementOperations.complete, locals())
        ledger = self._ledger
        state, _ = complete(
            ledger,
            id,
            worker,
            queue,
            None if data is UNSET else json_data(data),
            ledger.tx.now if now is None else check_time(now),
            next,
            delay,
            check_jids(list(depends)) if depends else (),
            None if result is UNSET else json_text(result, "result"),
            lock,
            result_ttl,
        )
        return state

    @operation()
    @checks_own_arguments
    def complete_and_pop(
        self,
        id: str,
        worker: str,
        count: int = 1,
        *,
        pop_from: str | None = None,
        data: Any = UNSET,
        next: str | None = None,
        result: Any = UNSET,
        lock: int | None = None,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> list[Job]:
        """Completes the job as `complete` does and hands out the next `count` jobs as `pop` does.

        The next jobs come from the queue that the job ran in, or from `pop_from`. So a busy worker
        waits for one commit per job instead of two. If the job can't be completed, none is handed
        out. Costs what the two calls do.
        """
        if not (
            pop_from is None
            and next is None
            and lock_seconds is None
            and now is None
            and type(id) is type(worker) is str
            and (lock is None or (type(lock) is int and 0 <= lock <= LARGEST_INT))
            and type(count) is int
            and 0 < count <= MAX_JOBS_PER_CALL
        ):
            check(SettlementOperations.complete_and_pop, locals())
        ledger = self._ledger
        time = ledger.tx.now if now is None else check_time(now)
        _, left = complete(
            ledger,
            id,
            worker,
            None,
            None if data is UNSET else json_data(data),
            time,
            next,
            0,
            (),
            None if result is UNSET else json_text(result, "result"),
            lock,
        )
        expires = None if lock_seconds is None else time + lock_seconds
        queue = left if pop_from is None else pop_from
        return to_jobs(ledger, pop(ledger, queue, worker, count, time, expires))

    @operation()
    def fail(
        self,
        id: str,
        worker: str,
        group: str,
        message: str,
        *,
        data: Any = UNSET,
        lock: int | None = None,
        now: float | None = None,
    ) -> str:
        """Puts the job into the failure group `group`, or into its queue's dead-letter queue.

        Returns its id.

        Reads 3 keys, writes 9; into a dead-letter queue 6 and 10.
        """
        text = None if data is UNSET else json_data(data)
        return fail(
            self._ledger, id, worker, group, message, text, self._ledger.time(now), lock=lock
        )

    @operation()
    def retry(
        self,
        id: str,
        worker: str,
        *,
        queue: str | None = None,
        delay: float = 0,
        group: str | None = None,
        message: str | None = None,
        free: bool = False,
        lock: int | None = None,
        now: float | None = None,
    ) -> int:
        """Puts the job back, to run after `delay` seconds, and returns how many retries remain.

        -1 means that none was left: the job has failed, in `group` or in `failed-retries-<queue>`.
        With `free` it uses up no retry.

        Reads 4 keys, writes 7; with a delay it writes 8, if no retry was left 9.
        """
        return retry(
            self._ledger,
            id,
            queue,
            worker,
            delay,
            group,
            message,
            self._ledger.time(now),
            lock=lock,
            free=free,
        )

    @operation()
    def timeout(self, *ids: str, now: float | None = None) -> None:
        """Takes running jobs from their workers at once, and puts them first in their queues.

        Reads 3 keys, writes 6 for each.
        """
        timeout(self._ledger, ids, self._ledger.time(now))


# --- complete ---------------------------------------------------------------------------------


def complete(
    ledger: "Ledger",
    jid: str,
    worker: str,
    queue: str | None,
    data: str | bytes | None,
    now: float,
    next_queue: str | None = None,
    delay: float = 0,
    depends: Sequence[str] = (),
    result: str | None = None,
    lock: int | None = None,
    result_ttl: float | None = None,
) -> tuple[str, str]:
    """Returns the job's new state and the queue that it has left."""
    if delay or depends:
        check_numbers(delay=delay)
        if next_queue is None:
            given = "delay" if delay else "depends"
            raise BadArgument.named(given, "can't be used without next")
    tx, all_keys = ledger.tx, ledger.keys
    packed_jid = pack_str(jid)
    key = all_keys.jobs + packed_jid
    job = held_job(ledger, key, jid, worker, lock)
    left = job.queue
    if queue is not None and left != queue:
        raise JobLost.to_queue(jid, left)
    settings = ledger.settings()
    keys = all_keys.cached_queue(left) or all_keys.queue(left)
    job.history += done_entry(keys, now)
    job.entries = entries = job.entries + 1
    if entries > settings.history_length:
        shorten(job, settings.history_length)
    if data is not None:
        ledger.set_data(job, data)
    tx.delete(job.place)
    worker_keys = all_keys.cached_worker(worker) or all_keys.worker(worker)
    tx.delete(worker_keys.held + packed_jid)
    if job.held_throttles or settings.given:
        lists.free_throttle_slots(ledger, job, now)
    pairs = {keys.ended: statistics.count_ended(ledger, keys, job, COMPLETED, worker, now)}
    job.time = now
    job.waited = 0.0
    job.worker = ""
    job.expires = 0.0
    if job.failure is not None:
        job.failure = None
    if result is not None:
        results.keep(ledger, job, result, result_ttl)
    if job.tracked:
        ledger.publish_tracked(job, "completed")
    if next_queue is not None:
        tx.put_all(pairs, checked=True)
        _advance(ledger, job, left, next_queue, now, delay, depends)
        return job.state, left
    ledger.log_job_event(jid, keys.completed_event)
    count, oldest = lists.enter_complete(ledger, job, packed_jid, now, pairs)
    if job.has_dependents:
        dependencies.release_dependents(ledger, job, now)
    record = encode(job)
    if len(record) <= MAX_CACHED_JOB_RECORD_BYTES:
        pairs[key] = record
    else:
        tx.put(key, record)
    tx.put_all(pairs, checked=True)
    if job.batch:
        batches.put_callbacks(ledger, job.batch, now)
    if oldest <= now - settings.jobs_history or count > settings.jobs_history_count:
        retention.forget_old(ledger, now)
    return COMPLETE, left


def _advance(
    ledger: "Ledger",
    job: JobRecord,
    left: str,
    queue: str,
    now: float,
    delay: float,
    depends: Sequence[str],
) -> None:
    check_name(queue, "next")
    event = {"jid": job.jid, "to": queue, "event": "advanced", "queue": left}
    ledger.log(event)
    job.queue = queue
    job.remaining = job.retries
    ledger.add_to_history(job, "put", now, {"q": queue})
    ledger.tx.add(ledger.keys.queue(queue).puts, 1)
    if depends:
        dependencies.replace(ledger, job, list(depends))
    ledger.register_queue(ledger.keys.queue(queue), now)
    lists.enter(ledger, job, now, now + delay)
    ledger.save(job)


# --- fail and retry ---------------------------------------------------------------------------


def fail(
    ledger: "Ledger",
    jid: str,
    worker: str,
    group: str,
    message: str,
    data: str | bytes | None,
    now: float,
    *,
    lock: int | None = None,
) -> str:
    check_name(worker, "worker")
    check_name(group, "group")
    job = held_job(ledger, ledger.keys.job(jid), jid, worker, lock)
    if data is not None:
        ledger.set_data(job, data)
    fail_job(ledger, job, worker, group, message, now)
    return jid


def fail_job(
    ledger: "Ledger", job: JobRecord, worker: str, group: str, message: str, now: float
) -> None:
    """Fails a job in any state."""
    message = cut_message(message)
    ledger.log(
        {"message": message, "jid": job.jid, "group": group, "event": "failed", "worker": worker}
    )
    ledger.publish_tracked(job, "failed")
    ledger.add_to_history(job, "failed", now, {"worker": worker, "group": group})
    lists.leave(ledger, job, now)
    dead_letters.enter_failed(ledger, job, Failure(group, message, int(now), worker), now)
    if job.parent and job.state == FAILED:
        dependencies.release_parent(ledger, job, now)
    ledger.save(job)
    if job.batch:
        batches.put_callbacks(ledger, job.batch, now)


def retry(
    ledger: "Ledger",
    jid: str,
    queue: str | None,
    worker: str,
    delay: float,
    group: str | None,
    message: str | None,
    now: float,
    *,
    lock: int | None = None,
    free: bool = False,
    awaits: str = "",
) -> int:
    check_numbers(delay=delay)
    job = held_job(ledger, ledger.keys.job(jid), jid, worker, lock)
    if queue is not None and job.queue != queue:
        raise JobLost.to_queue(jid, job.queue)
    if group is not None:
        check_name(group, "group")
    failure = None
    if group is not None and message is not None:
        failure = Failure(group, cut_message(message), int(now), worker)
    job.remaining -= 0 if free else 1
    if job.remaining < 0 and not free:
        end_without_retries(ledger, job, now, group=group, failure=failure, publish=False)
        ledger.save(job)
        return -1
    ledger.add_to_history(
        job, RETRIED, now, _retry_history(worker, int(job.remaining), group, message)
    )
    if not free:
        statistics.count_retry(ledger, ledger.keys.queue(job.queue), job, now)
    lists.leave(ledger, job, now)
    job.worker = ""
    job.expires = 0.0
    if failure is not None:
        job.failure = failure
    job.awaits = awaits
    lists.enter(ledger, job, now, now + delay)
    ledger.save(job)
    return int(job.remaining)


def _retry_history(
    worker: str, remaining: int, group: str | None, message: str | None
) -> dict[str, Any]:
    more: dict[str, Any] = {"worker": worker, "remaining": remaining}
    if group is not None:
        more["group"] = group
    if message is not None:
        more["message"] = cut_message(message, MAX_HISTORY_MESSAGE_CHARS)
    return more
