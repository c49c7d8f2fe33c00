"""Locks: which worker holds a job, for how long, and how the lock is renewed or released."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.errors import JobLost, UnknownJob, WrongState
from holdfast.jobs import lists
from holdfast.jobs.arguments import check_jobs_count, check_name
from holdfast.jobs.layout import pack_time
from holdfast.jobs.ledger import encode
from holdfast.jobs.records import RUNNING, JobRecord
from holdfast.keys import pack_float, pack_str

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


def held_job(ledger: "Ledger", key: bytes, jid: str, worker: str, lock: int | None) -> JobRecord:
    """Returns the job at `key` if `worker` holds it, by the lock number `lock` if one is given."""
    job = ledger.job_to_update(key)
    # A pop checked the holder's name, so only a name that differs has to be checked.
    if (
        job is not None
        and job.worker == worker
        and job.state == RUNNING
        and (lock is None or lock == job.lock)
    ):
        return job
    check_name(worker, "worker")
    if job is None:
        raise UnknownJob.of(jid)
    if job.state != RUNNING:
        raise WrongState.of(jid, job.state, "running")
    raise JobLost.to_worker(jid, job.worker, None if job.worker != worker else job.lock)


def heartbeat(
    ledger: "Ledger",
    jid: str,
    worker: str,
    data: str | bytes | None,
    now: float,
    lock: int | None = None,
    expires: float | None = None,
) -> JobRecord:
    """Renews the lock until `expires`, by default for as long as is configured."""
    tx = ledger.tx
    packed_jid = pack_str(jid)
    key = ledger.keys.jobs + packed_jid
    job = held_job(ledger, key, jid, worker, lock)
    if expires is None:
        settings = ledger.settings()
        expires = now + (settings.heartbeat_of(job.queue) if settings.given else settings.heartbeat)
    if job.timeout:
        expires = min(expires, job.time + job.timeout)
    keys = ledger.keys.queue(job.queue)
    tx.delete(job.place)
    job.place = place = keys.locks + pack_float(expires) + packed_jid
    tx.put(place, b"")
    if expires < job.expires or job.holder_notified:  # the end of a grace period may be later, too
        ledger.schedule_queue_check(keys, expires)
    job.expires = expires
    if job.holder_notified:
        job.holder_notified = False
    if data is not None:
        ledger.set_data(job, data)
    tx.put(key, encode(job))
    worker_keys = ledger.keys.worker(worker)
    tx.put(worker_keys.held + packed_jid, pack_time(expires))
    tx.put(worker_keys.seen, pack_time(now))
    return job


def timeout(ledger: "Ledger", jids: Iterable[str], now: float) -> None:
    distinct = list(dict.fromkeys(jids))
    check_jobs_count(len(distinct))
    jobs: list[JobRecord] = []
    for jid, job in zip(distinct, ledger.jobs(distinct), strict=True):
        if job is None:
            raise UnknownJob.of(jid)
        if job.state != RUNNING:
            raise WrongState.of(jid, job.state, "running")
        jobs.append(job)
    for job in jobs:
        ledger.notify_worker_and_log(
            job.worker, {"jid": job.jid, "event": "lock_lost", "worker": job.worker}
        )
        _return_to_front(ledger, job, now)


def held(ledger: "Ledger", jid: str, worker: str, lock: int | None) -> JobRecord:
    """Returns the job if the worker holds it; the caller may save it."""
    return held_job(ledger, ledger.keys.job(jid), jid, worker, lock)


def release(ledger: "Ledger", jid: str, worker: str, now: float, lock: int | None) -> None:
    """Like `timeout`, but called by the holder, which needs no notice."""
    _return_to_front(ledger, held_job(ledger, ledger.keys.job(jid), jid, worker, lock), now)


def _return_to_front(ledger: "Ledger", job: JobRecord, now: float) -> None:
    """Moves a running job to the front of its queue; that uses up no retry."""
    ledger.add_to_history(job, "timed-out", now)
    lists.leave(ledger, job, now)
    job.worker = ""
    job.expires = 0.0
    lists.enter_work(ledger, job, now, front=True)
    ledger.save(job)
