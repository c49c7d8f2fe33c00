"""Jobs as callers see them: converts records to `Job`, and has the operations that only read."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.declarations import operation
from holdfast.errors import AnswerTooLarge
from holdfast.jobs import dependencies
from holdfast.jobs.arguments import check_jid, check_jobs_count, from_json
from holdfast.jobs.history import history_of
from holdfast.jobs.records import Job, JobRecord
from holdfast.limits import MAX_ANSWER_BYTES

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


def to_job(ledger: "Ledger", job: JobRecord) -> Job:
    return Job(  # by position: by name it would take four times as long
        job.jid,
        job.klass,
        job.state,  # type: ignore[arg-type]  # always one of them
        job.queue,
        job.worker,
        from_json(job.data or ledger.data_bytes_of(job)),
        job.priority,
        job.expires,
        job.lock,
        job.retries,
        job.remaining,
        tuple(job.tags) if job.tags else (),
        history_of(job),
        job.failure,
        job.spawned_from or None,
        job.tracked,
        tuple(dependencies.dependents_of(ledger, job)) if job.has_dependents else (),
        tuple(dependencies.dependencies_of(ledger, job)) if job.unmet else (),
        job.progress,
        job.progress_text,
        tuple(job.throttles) if job.throttles else (),
        job.unique or None,
        job.origin or None,
        job.rate_key or None,
        job.timeout or None,
        job.start_by or None,
        job.batch or None,
    )


def to_jobs(ledger: "Ledger", jobs: Iterable[JobRecord]) -> list[Job]:
    found = []
    before = ledger.long_data_bytes
    for job in jobs:
        found.append(to_job(ledger, job))  # for one job half the cost of a comprehension
        if not job.data:
            check_answer(ledger, before, len(found))
    return found


def check_answer(ledger: "Ledger", before: int, count: int) -> None:
    """Raises if the data of several jobs, read since `before`, is too large for one answer."""
    if ledger.long_data_bytes - before > MAX_ANSWER_BYTES and count > 1:
        raise AnswerTooLarge(
            f"the data of these jobs has more than {MAX_ANSWER_BYTES} bytes",
            hint="Ask for fewer jobs at once.",
        )


class ViewOperations:
    """Operations that read jobs."""

    _ledger: "Ledger"

    @operation(reads=True)
    def get(self, id: str) -> Job | None:
        """Returns the job, or None if it does not exist.

        Reads 1 key, more only for long data and dependencies.
        """
        job = self._ledger.job(check_jid(id))
        return None if job is None else to_job(self._ledger, job)

    @operation(reads=True)
    def multiget(self, *ids: str) -> list[Job]:
        """Returns the jobs of those `ids` that exist, in their order. Reads 1 key for each."""
        check_jobs_count(len(ids))
        found = self._ledger.jobs([check_jid(id) for id in ids])
        return to_jobs(self._ledger, filter(None, found))
