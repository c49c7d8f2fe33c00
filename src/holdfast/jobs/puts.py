"""Puts new jobs, or existing ones in any state, into a queue, one or many at a time."""

import struct
from collections.abc import Sequence
from math import floor
from typing import TYPE_CHECKING, Any, Final

from holdfast.call_time import CallTimer
from holdfast.declarations import operation
from holdfast.engine.contract import random_bytes
from holdfast.errors import BadArgument, UnknownJob, WrongState
from holdfast.jobs import batches, deadlines, dependencies, lists, steps, tags, unique
from holdfast.jobs.argument_types import ZERO, check, checks_own_arguments
from holdfast.jobs.arguments import (
    check_jids,
    check_jobs_count,
    check_name,
    check_numbers,
    check_parts_count,
    check_queue,
    check_size,
    check_tags,
    is_name,
    json_data,
    json_text,
)
from holdfast.jobs.cancellation import cancel_jobs
from holdfast.jobs.failures import Match
from holdfast.jobs.history import put_entry
from holdfast.jobs.records import FAILED, NO_SEPARATE_DATA, WAITING, JobRecord, NewJob, Tag
from holdfast.keys import after
from holdfast.limits import JOBS_PER_STEP, MAX_BATCH_SECONDS, SECONDS_PER_ITEM

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

_RUNNING: Final = "running"  # the defaults of `unique_for` and `unique_mode`: the same objects
_KEEP: Final = "keep"


class PutOperations:
    """Operations that bring jobs into queues."""

    _ledger: "Ledger"

    @operation()
    @checks_own_arguments
    def put(
        self,
        queue: str,
        klass: str = "",
        data: Any = None,
        *,
        id: str | None = None,
        delay: float = 0,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        retries: float | None = None,
        depends: Sequence[str] | None = None,
        throttles: Sequence[str] | None = None,
        unique: str | None = None,
        unique_for: str | float = "running",
        unique_mode: str = "keep",
        at: float | None = None,
        expires: float | None = None,
        timeout: float | None = None,
        rate_key: str | None = None,
        batch: str | None = None,
        worker: str = "",
        now: float | None = None,
    ) -> str:
        """Puts a job into `queue` and returns its id; an existing job with that id moves there.

        Jobs with a greater `priority` run sooner. The job starts after `delay` seconds or at the
        time `at`, and after all jobs in `depends` are complete. It is dropped if it has not started
        at the time `expires`, and loses its lock if one run takes longer than `timeout` seconds.
        `rate_key` is the key of the option `<queue>-rate-per-key`. `batch` is the id of an open
        batch that the job joins. An existing job keeps what is not given; a new one has priority 0,
        no tags and 5 retries.

        While another job owns the key `unique`, nothing is put: `unique_mode` "keep" returns the
        owner's id, "error" raises `UniqueKeyTaken`, "replace" cancels the owner first. A job owns
        its key while it is "queued", while it is queued or "running", until it is removed
        ("complete"), or for `unique_for` seconds. `worker` is the caller's name: another worker
        that holds the job is told that it has lost it.

        Reads 3 keys, 5 with an `id`, and writes 4; each tag adds 4, each dependency 3, a batch 2.
        """
        if (
            id is None
            and priority is None
            and tags is None
            and retries is None
            and depends is None
            and throttles is None
            and unique is None
            and at is None
            and expires is None
            and timeout is None
            and rate_key is None
            and batch is None
            and now is None
            and delay is ZERO
            and unique_for is _RUNNING
            and unique_mode is _KEEP
            and type(queue) is type(klass) is type(worker) is str
        ):
            return _put(self._ledger, queue, klass, data, self._ledger.tx.now)
        arguments = locals()
        check(PutOperations.put, arguments)
        return put(self._ledger, _new_job_from(arguments), worker, self._ledger.time(now))

    @operation()
    def put_many(
        self, jobs: Sequence[NewJob], *, worker: str = "", now: float | None = None
    ) -> list[str]:
        """Puts all `jobs`, or none if one of them is refused, and returns their ids in order.

        `store.jobs.put_many([NewJob(queue="emails", data={"to": to}) for to in people])`. Costs
        what `put` does for each of them, and one commit.
        """
        check_jobs_count(len(jobs))
        check_parts_count(jobs)
        ledger = self._ledger
        time = ledger.time(now)
        ledger.timer = CallTimer(
            "looking for cycles of dependencies",
            "Put fewer jobs in one call.",
            MAX_BATCH_SECONDS + len(jobs) * SECONDS_PER_ITEM,
        )
        try:
            return [put(ledger, job, worker, time) for job in jobs]
        finally:
            ledger.timer = None

    @operation()
    def requeue(
        self,
        queue: str | None,
        id: str,
        *,
        klass: str | None = None,
        data: Any = None,
        delay: float = 0,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        retries: float | None = None,
        depends: Sequence[str] | None = None,
        worker: str = "",
        now: float | None = None,
    ) -> str:
        """Puts an existing job into `queue`; it keeps its class and data unless others are given.

        Without a queue, a failed job or a dead letter goes back to the queue that it failed in.
        Costs what `put` does.
        """
        job = self._ledger.job(id)
        if job is None:
            raise UnknownJob.of(id)
        new = NewJob(
            queue=origin_of(job) if queue is None else queue,
            klass=job.klass if klass is None else klass,
            data=KeepData if data is None else data,
            id=id,
            delay=delay,
            priority=priority,
            tags=None if tags is None else tuple(tags),
            retries=retries,
            depends=None if depends is None else tuple(depends),
        )
        return put(self._ledger, new, worker, self._ledger.time(now))


def _new_job_from(arguments: dict[str, Any]) -> NewJob:
    """Returns the job that the arguments of `put` describe."""
    given = {name: arguments[name] for name in NewJob.__struct_fields__ if name in arguments}
    for name in ("tags", "depends", "throttles"):
        if given[name] is not None:
            given[name] = tuple(given[name])
    return NewJob(**given)


def requeue_letters_step(
    ledger: "Ledger", queue: str, match: Match, cursor: bytes, now: float
) -> tuple[int, bytes | None]:
    """Sends back dead letters among the next `JOBS_PER_STEP` jobs of a queue's work list.

    Returns how many were sent back, and where to continue; None after the last.
    """
    keys = ledger.keys.queue(check_queue(queue))
    begin = max(keys.work, cursor)
    entries = list(ledger.tx.scan(begin, keys.work_end, limit=JOBS_PER_STEP))
    moved = 0
    for _, packed_jid in entries:
        job = ledger.job_at(ledger.keys.jobs + packed_jid)
        assert job is not None
        if job.origin and job.failure is not None and match.fits_letter(job):
            new = NewJob(queue=job.origin, id=job.jid, klass=job.klass, data=KeepData)
            put(ledger, new, "", now)
            moved += 1
    return moved, after(entries[-1][0]) if len(entries) == JOBS_PER_STEP else None


def origin_of(job: JobRecord) -> str:
    """Returns the queue in which the job failed."""
    if job.origin:
        return job.origin
    if job.state != FAILED:
        raise WrongState.of(job.jid, job.state, "failed; name a queue")
    return job.queue


class KeepData:
    """Marks the data that a job already has."""


# --- how it is done ---------------------------------------------------------------------------


def put(ledger: "Ledger", new: NewJob, caller: str, now: float) -> str:
    """Puts one job. `caller` is the worker that does so, "" if no worker does."""
    options = None if _is_plain(new) else new
    return _put(ledger, new.queue, new.klass, new.data, now, options, caller)


def _is_plain(new: NewJob) -> bool:
    """Returns whether the job has no options but its class and data."""
    plain = NewJob(queue=new.queue, klass=new.klass, data=new.data)
    return new == plain and new.data is not KeepData


def _put(
    ledger: "Ledger",
    queue: str,
    klass: str,
    data: Any,
    now: float,
    options: NewJob | None = None,
    caller: str = "",
) -> str:
    """Puts one job. Without `options`, the usual case, it is a new one that can run at once."""
    keys = ledger.keys.cached_queue(queue)
    if keys is None or not keys.has_valid_name:
        keys = ledger.keys.queue(check_name(queue, "queue"))
    jid = new_jid(now) if options is None or options.id is None else check_name(options.id, "id")
    if klass and not is_name(klass):
        check_name(klass, "klass")
    start = None  # at once
    entry = put_entry(keys, now)
    if options is None:
        text = json_data(data)
        ledger.log_job_event(jid, keys.put_event)
        job = JobRecord(
            jid, klass, WAITING, queue, b"", now, NO_SEPARATE_DATA, history=entry, entries=1
        )
        ledger.set_data(job, text)
    else:
        new_text = None if data is KeepData else json_data(data)
        _check_values(options)
        asked = _start_of(options, now)
        if options.unique is not None:
            owner = unique.claim(ledger, options, jid, now)
            if owner is not None:
                if options.unique_mode == "keep":
                    return owner
                cancel_jobs(ledger, [owner], now)
        ledger.log_job_event(jid, keys.put_event)
        job = _job_for(ledger, options, jid, new_text, caller, now)
        if new_text is not None:
            ledger.set_data(job, new_text)
        _apply_options(ledger, job, options, now)
        ledger.add_entry(job, entry)
        job.awaits = ""
        job.parent = options.parent
        job.time = now
        if asked > now or job.unmet:
            start = asked
    ledger.tx.add(keys.puts, 1)
    record = ledger.register_queue(keys, now)
    if start is None:
        pairs: dict[bytes, bytes] = {}
        packed_jid = lists.enter_work(ledger, job, now, keys=keys, queue=record, pairs=pairs)
        ledger.save_and_cache(ledger.keys.jobs + packed_jid, job, pairs)
        ledger.tx.put_all(pairs, checked=True)
    else:
        lists.enter(ledger, job, now, start)
        ledger.save(job)
    if job.tracked:
        ledger.publish_tracked(job, "put")
    return jid


def _job_for(
    ledger: "Ledger", new: NewJob, jid: str, text: str | bytes | None, caller: str, now: float
) -> JobRecord:
    """Returns the record of the job to put: a new one, or the existing one with that id."""
    # A generated id is new: no job has it, and nobody tracks it.
    job = None if new.id is None else ledger.job(jid)
    if job is None:
        job = JobRecord(
            jid=jid, klass=new.klass, state=WAITING, queue=new.queue, data=NO_SEPARATE_DATA
        )
        if new.id is not None:
            job.tracked = ledger.tx.get(ledger.keys.tracked(jid)) is not None
        return job
    _leave_list(ledger, job, caller, now)
    job.klass = new.klass
    job.queue = new.queue
    job.origin = ""
    job.start_by = 0.0
    if job.has_steps and text is not None:  # with other data it is another workflow
        steps.forget_steps(ledger, job)
    return job


def check_new(new: NewJob) -> None:
    """Raises what `put` would raise for this job, without putting it."""
    check_name(new.queue, "queue")
    if new.klass:
        check_name(new.klass, "klass")
    if new.id is not None:
        check_name(new.id, "id")
    check_size(json_text(new.data), "the data")
    _check_values(new)
    _start_of(new, 0.0)
    check_tags(new.tags or ())
    check_jids(new.depends or ())
    if new.unique is not None:
        check_name(new.unique, "unique")
        unique.check(new)


def _check_values(new: NewJob) -> None:
    """Raises if an option has a value that no job can have, whatever is in the store."""
    if new.delay or new.priority or new.retries or new.expires:
        check_numbers(
            delay=new.delay, priority=new.priority, retries=new.retries, expires=new.expires
        )
    if new.throttles is not None:
        for name in new.throttles:
            check_name(name, "throttles")
    if new.timeout is not None:
        check_numbers(timeout=new.timeout)
        if new.timeout < 0:
            raise BadArgument.named("timeout", f"must not be below 0: {new.timeout}")
    if new.rate_key is not None:
        check_name(new.rate_key, "rate_key")


def _start_of(new: NewJob, now: float) -> float:
    """Returns when a job should start; a time before `now` is now."""
    if new.at is None:
        return now + new.delay
    if new.delay:
        raise BadArgument("give either `delay` or `at`")
    check_numbers(at=new.at)
    return new.at


def _leave_list(ledger: "Ledger", job: JobRecord, caller: str, now: float) -> None:
    """Removes a job from its list, and tells its holder unless that is the caller."""
    if job.worker and job.worker != caller:
        ledger.notify_worker_and_log(
            job.worker, {"jid": job.jid, "event": "lock_lost", "worker": job.worker}
        )
    lists.leave(ledger, job, now)
    job.worker = ""
    job.expires = 0.0
    job.holder_notified = False
    job.start = 0.0
    job.progress = None
    job.progress_text = ""
    if job.has_result:
        job.has_result = False
        ledger.tx.delete(ledger.keys.result(job.jid))


def _apply_options(ledger: "Ledger", job: JobRecord, new: NewJob, now: float) -> None:
    """Sets the options that are given and keeps the others; tags are indexed again either way."""
    if new.tags is not None or job.tags:
        given = job.tags if new.tags is None else check_tags(new.tags)
        wanted = list(given)
        tags.detach_all(ledger, job)
        for tag in wanted:
            tags.attach(ledger, job, tag, now)
    if new.priority is not None:
        job.priority = new.priority + 0.0  # turns the seed's -0.0 into 0.0
    if new.retries is not None:
        job.retries = new.retries
    job.remaining = job.retries
    if new.throttles is not None:
        job.throttles = list(new.throttles)
    if new.depends:
        jids = check_jids(list(new.depends))
        dependencies.replace(ledger, job, jids)
    if new.timeout is not None:
        job.timeout = new.timeout
    if new.rate_key is not None:
        job.rate_key = new.rate_key
    if new.batch is not None and new.batch != job.batch:
        batches.join(ledger, job, new.batch)
    if new.expires is not None:
        deadlines.set_deadline(ledger, job, new.expires, now)
    if new.unique is not None:
        job.unique = new.unique
        job.unique_for = new.unique_for if isinstance(new.unique_for, str) else ""


def new_jid(now: float) -> str:
    """Returns a new id of 32 hex digits. It begins with the time, so that jobs put together are
    stored together."""
    return (_pack_micros(floor(now * 1_000_000.0)) + random_bytes(8)).hex()


_pack_micros: Final = struct.Struct(">Q").pack
