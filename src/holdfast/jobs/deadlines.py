"""Deadlines: a job that has not started by its deadline is dropped and counted.

From the deadline on, a pop skips the job; the store's expiry removes it soon after.
"""

from typing import TYPE_CHECKING, Final

from holdfast import expiry
from holdfast.engine.contract import Transaction
from holdfast.errors import BadArgument
from holdfast.jobs import batches, dependencies, lists, statistics
from holdfast.jobs.cancellation import forget_job
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.records import COMPLETE, FAILED, RUNNING, Failure, JobRecord

if TYPE_CHECKING:
    from holdfast.engine.contract import Reader

DEADLINE_KIND: Final = "jobs.deadline"
EXPIRED_GROUP: Final = "expired"


def set_deadline(ledger: Ledger, job: JobRecord, deadline: float, now: float) -> None:
    """Schedules the job, which the caller saves, to be dropped at `deadline`. Writes 1 key."""
    if deadline <= now:
        raise BadArgument.named("expires", f"must be later than now, {now}, not {deadline}")
    job.start_by = deadline
    expiry.schedule(ledger.tx, deadline, DEADLINE_KIND, job.jid.encode())


def is_over(job: JobRecord, now: float) -> bool:
    """Returns whether the job should have started before `now`."""
    return 0 < job.start_by <= now


def drop(ledger: Ledger, job: JobRecord, now: float) -> None:
    """Removes a job that did not start in time; one that others depend on fails instead."""
    keys = ledger.keys.queue(job.queue)
    statistics.tally(ledger, keys, "expired", statistics.day_of(now))
    ledger.log_quietly({"jid": job.jid, "event": "expired", "queue": job.queue})
    lists.leave(ledger, job, now)
    if dependencies.is_awaited(ledger, job):
        message = f"the job did not start by {job.start_by:.3f}"
        job.start_by = 0.0
        lists.enter_failed(ledger, job, Failure(EXPIRED_GROUP, message, int(now), ""), now)
        ledger.add_to_history(job, "failed", now, {"group": EXPIRED_GROUP})
        if job.parent:
            dependencies.release_parent(ledger, job, now)
        ledger.save(job)
    else:
        dependencies.forget_all(ledger, job)
        if job.batch:
            batches.count(ledger, job, "canceled")
        forget_job(ledger, job)
    if job.batch:
        batches.put_callbacks(ledger, job.batch, now)


def remove_expired(tx: Transaction, subject: bytes) -> bool:
    """Removes a job that did not start in time; see expiry.py."""
    ledger = Ledger(tx)
    job = ledger.job(subject.decode())
    if job is not None and _waits_too_long(job, tx):
        drop(ledger, job, tx.now)
    return True


def _waits_too_long(job: JobRecord, reader: "Reader") -> bool:
    has_started = job.state in (RUNNING, FAILED, COMPLETE)
    return not has_started and bool(job.start_by) and is_over(job, reader.now)
