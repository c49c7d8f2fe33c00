"""Tracking, history entries and priorities: operations on single jobs by callers that don't hold
them."""

from typing import TYPE_CHECKING, Any, Final

from holdfast.declarations import operation
from holdfast.engine.contract import Notice
from holdfast.errors import BadArgument, UnknownJob
from holdfast.jobs import lists
from holdfast.jobs.arguments import (
    EMPTY_NAME,
    check_jid,
    check_json,
    check_numbers,
    cut_message,
    shortened,
)
from holdfast.jobs.layout import below, last_part, pack_time, unpack_time
from holdfast.jobs.ledger import TRACKED
from holdfast.jobs.records import SCHEDULED, STALLED, WAITING, JobRecord, TrackedJobs
from holdfast.jobs.views import to_job

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

BEFORE_ALL: Final = -1.0  # a time before every `now`


class TrackingOperations:
    """Operations on single jobs by callers that don't hold them."""

    _ledger: "Ledger"

    @operation()
    def track(self, id: str, *, now: float | None = None) -> bool:
        """Publishes everything that happens to the job; returns False if it was tracked already.

        Reads 2 keys, writes 2.
        """
        return track(self._ledger, id, self._ledger.time(now))

    @operation()
    def untrack(self, id: str) -> bool:
        """Stops tracking a job, even one that no longer exists; returns whether it was tracked.

        Reads 2 keys, writes 2.
        """
        return untrack(self._ledger, id)

    @operation(reads=True)
    def tracked(self) -> TrackedJobs:
        """Returns all tracked jobs in the order they were tracked, and the ids of removed ones.

        Reads 2 keys each.
        """
        jobs, expired = tracked_jobs(self._ledger)
        return TrackedJobs(
            jobs=tuple(to_job(self._ledger, job) for job in jobs), expired=tuple(expired)
        )

    @operation()
    def log(
        self,
        id: str,
        message: str,
        data: dict[str, Any] | None = None,
        *,
        now: float | None = None,
    ) -> None:
        """Adds an entry to the job's history: `message` as what happened, `data` as more about it.

        Reads 2, writes 1.
        """
        log(self._ledger, id, message, data, self._ledger.time(now))

    @operation()
    def priority(self, id: str, priority: float) -> None:
        """Changes the job's priority; a waiting job becomes the first of its new priority.

        Reads 1 key, writes 3.
        """
        set_priority(self._ledger, id, priority)


def track(ledger: "Ledger", jid: str, now: float) -> bool:
    check_jid(jid)
    job = ledger.job(jid)
    if job is None:
        raise UnknownJob.of(jid)
    ledger.tx.after_commit(Notice(f"{TRACKED}track", jid.encode()))
    if job.tracked:
        return False
    job.tracked = True
    ledger.save(job)
    ledger.tx.put(ledger.keys.tracked(jid), pack_time(now))
    return True


def untrack(ledger: "Ledger", jid: str) -> bool:
    check_jid(jid)
    ledger.tx.after_commit(Notice(f"{TRACKED}untrack", jid.encode()))
    key = ledger.keys.tracked(jid)
    was_tracked = ledger.tx.get(key) is not None
    ledger.tx.delete(key)
    job = ledger.job(jid)
    if job is not None and job.tracked:
        job.tracked = False
        ledger.save(job)
    return was_tracked


def tracked_jobs(ledger: "Ledger") -> tuple[list[JobRecord], list[str]]:
    prefix = ledger.keys.tracked_jobs
    pairs = ledger.tx.scan(*below(prefix))
    ordered = sorted((unpack_time(value), last_part(key, prefix)) for key, value in pairs)
    jids = [jid for _, jid in ordered]
    found = ledger.jobs(jids)
    expired = [jid for jid, job in zip(jids, found, strict=True) if job is None]
    return [job for job in found if job is not None], expired


def log(ledger: "Ledger", jid: str, message: str, data: dict[str, Any] | None, now: float) -> None:
    if not message:
        raise BadArgument.named("message", EMPTY_NAME)
    job = ledger.job(check_jid(jid))
    if job is None:
        raise UnknownJob.of(jid)
    check_json(data)
    more = {name: value for name, value in (data or {}).items() if name not in ("what", "when")}
    try:
        ledger.add_to_history(job, cut_message(message), now, more)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadArgument(
            f"data can't be kept in a history: {shortened(ascii(data))}",
            hint=f"The encoder says: {error}.",
        ) from None
    ledger.save(job)


def set_priority(ledger: "Ledger", jid: str, priority: float) -> None:
    job = ledger.job(jid)
    if job is None:
        raise UnknownJob.of(jid)
    check_numbers(priority=priority)
    job.priority = float(priority)
    if job.state == WAITING or job.state == STALLED:
        _to_front(ledger, job)
    elif job.state == SCHEDULED:
        lists.store_priority(ledger, job)
    ledger.save(job)


def _to_front(ledger: "Ledger", job: JobRecord) -> None:
    """Moves a job of the work list before all others of its priority."""
    state = job.state
    ledger.tx.delete(job.place)
    lists.enter_work(ledger, job, BEFORE_ALL, counted=False)
    job.state = state  # one that was timed out still is
