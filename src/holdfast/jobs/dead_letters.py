"""Dead letters: a job that would fail goes to the queue that `<queue>-dead-letter` names.

It waits there like any other job, keeps its failure, and remembers the queue that it came from.
"""

from typing import TYPE_CHECKING

from holdfast.jobs import lists, statistics
from holdfast.jobs.history import put_entry
from holdfast.jobs.records import Failure, JobRecord

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


def enter_failed(ledger: "Ledger", job: JobRecord, failure: Failure, now: float) -> None:
    """Puts the job, which has left its list, into its dead-letter queue or its failure group."""
    settings = ledger.settings()
    queue = settings.dead_letter_of(job.queue) if settings.given else None
    if queue is None or queue == job.queue:
        lists.enter_failed(ledger, job, failure, now)
        return
    statistics.count_failure(ledger, ledger.keys.queue(job.queue), job, now)
    keys = ledger.keys.queue(queue)
    ledger.log_job_event(job.jid, keys.put_event)
    job.origin = job.origin or job.queue
    job.queue = queue
    job.failure = failure
    job.worker = ""
    job.expires = 0.0
    job.remaining = job.retries
    job.time = now
    ledger.add_entry(job, put_entry(keys, now))
    ledger.tx.add(keys.puts, 1)
    ledger.register_queue(keys, now)
    lists.enter_work(ledger, job, now)
