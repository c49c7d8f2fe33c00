"""Cancellation: removes jobs and everything that belongs to them."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from holdfast.declarations import operation
from holdfast.jobs import batches, dependencies, lists, steps, tags, unique
from holdfast.jobs.arguments import check_jid, check_jobs_count
from holdfast.jobs.records import COMPLETE, JobRecord

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


def cancel_jobs(
    ledger: "Ledger", jids: Iterable[str], now: float, *, mentioned: Collection[str] | None = None
) -> None:
    """Cancels `jids`; jobs that depend on them must be `mentioned`, by default in `jids`."""
    distinct = list(dict.fromkeys(jids))
    dependencies.refuse_missing_dependents(ledger, distinct, mentioned)
    for jid in distinct:
        # Read one by one: an earlier one of them may have been its dependency, or held its
        # throttle.
        job = ledger.job(jid)
        if job is not None and job.state != COMPLETE:
            _cancel(ledger, job, now)


def cancel_open(ledger: "Ledger", jids: list[str], now: float) -> int:
    """Cancels those of `jids` that exist and are not complete; returns how many.

    Jobs that depend on them must be in `jids` too.
    """
    found = ledger.jobs(jids)
    open_jids = [job.jid for job in found if job is not None and job.state != COMPLETE]
    cancel_jobs(ledger, open_jids, now)
    return len(open_jids)


def _cancel(ledger: "Ledger", job: JobRecord, now: float) -> None:
    event = {"jid": job.jid, "queue": job.queue, "event": "canceled", "worker": job.worker}
    ledger.log(event)
    if job.worker:
        ledger.notify_worker(job.worker, event)
    lists.leave(ledger, job, now)
    awaited = dependencies.dependencies_of(ledger, job) if job.has_steps else []
    dependencies.forget_all(ledger, job)
    for jid in dependencies.dependents_of(ledger, job):
        other = ledger.job(jid)
        assert other is not None
        dependencies.forget(ledger, other, job.jid)
        ledger.save(other)
    if job.batch:
        batches.count(ledger, job, "canceled")
    forget_job(ledger, job)
    ledger.publish_tracked(job, "canceled")
    for jid in awaited:
        child = ledger.job(jid)
        if child is not None and child.parent == job.jid and child.state != COMPLETE:
            _cancel(ledger, child, now)
    if job.batch:
        batches.put_callbacks(ledger, job.batch, now)


def forget_job(ledger: "Ledger", job: JobRecord) -> None:
    """Removes a job that has left its list, with its tags and all that it owns."""
    tx, keys = ledger.tx, ledger.keys
    tags.detach_all(ledger, job)
    tx.delete(keys.job(job.jid))
    if not job.data:
        tx.delete(keys.data(job.jid))
    if job.has_result:
        tx.delete(keys.result(job.jid))
    if job.has_log:
        tx.delete(keys.log(job.jid))
    if job.has_steps:
        steps.forget_steps(ledger, job)
    if job.unique:
        unique.forget(ledger, job)
    if job.batch:
        tx.delete(keys.batch_job(job.batch, job.jid))


class CancelOperations:
    """Operations that cancel jobs."""

    _ledger: "Ledger"

    @operation()
    def cancel(self, *ids: str, now: float | None = None) -> list[str]:
        """Cancels jobs and returns `ids`; unknown and complete ones are skipped.

        Every job that depends on one of them must be canceled with it; otherwise `JobNeeded` is
        raised and nothing changes. Reads 2 keys and writes 3 to 6 for each job.
        """
        check_jobs_count(len(ids))
        cancel_jobs(self._ledger, map(check_jid, ids), self._ledger.time(now))
        return list(ids)
