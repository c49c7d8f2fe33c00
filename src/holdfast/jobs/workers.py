"""Workers: which were seen recently, and the jobs they hold."""

from typing import TYPE_CHECKING

from holdfast.declarations import operation
from holdfast.jobs.arguments import check_name
from holdfast.jobs.layout import below, last_part, unpack_time
from holdfast.jobs.records import WorkerCounts, WorkerJobs

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


class WorkerOperations:
    """Operations on workers."""

    _ledger: "Ledger"

    @operation()
    def workers(self, *, now: float | None = None) -> list[WorkerCounts]:
        """Returns all workers, the last seen first; forgets those not seen for `max-worker-age`
        seconds.

        Reads 1 key for each worker and for each job that one holds.
        """
        return workers(self._ledger, self._ledger.time(now))

    @operation(reads=True)
    def worker(self, worker: str, *, now: float | None = None) -> WorkerJobs:
        """Returns the jobs that a worker holds, newest lock first; empty for an unknown worker.

        Reads 1 key for each.
        """
        name = check_name(worker, "worker")
        return jobs_of(self._ledger, name, self._ledger.time(now))

    @operation()
    def worker_deregister(self, *workers: str) -> None:
        """Removes workers from the list; a worker comes back when it pops or heartbeats.

        Writes 1 key for each.
        """
        deregister(self._ledger, list(workers))


def workers(ledger: "Ledger", now: float) -> list[WorkerCounts]:
    forget_old(ledger, now)
    prefix = ledger.keys.workers
    pairs = ledger.tx.scan(*below(prefix))
    seen = [(unpack_time(value), last_part(key, prefix)) for key, value in pairs]
    seen.sort(key=lambda each: (each[0], each[1].encode()), reverse=True)
    found: list[WorkerCounts] = []
    for time, name in seen:
        held = held_by(ledger, name)
        found.append(
            WorkerCounts(
                name=name,
                jobs=sum(expires >= now for expires, _ in held),
                stalled=sum(expires <= now for expires, _ in held),
                seen=time,
            )
        )
    return found


def forget_old(ledger: "Ledger", now: float) -> None:
    """Forgets workers that were not seen for too long, with the lists of their jobs."""
    oldest = now - ledger.settings().worker_age
    prefix = ledger.keys.workers
    old = [key for key, value in ledger.tx.scan(*below(prefix)) if unpack_time(value) <= oldest]
    for key in old:
        ledger.tx.delete(key)
        ledger.tx.clear(*below(ledger.keys.worker(last_part(key, prefix)).held))


def jobs_of(ledger: "Ledger", worker: str, now: float) -> WorkerJobs:
    held = sorted(
        held_by(ledger, worker), key=lambda each: (each[0], each[1].encode()), reverse=True
    )
    return WorkerJobs(
        jobs=tuple(jid for expires, jid in held if expires >= now),
        stalled=tuple(jid for expires, jid in held if expires <= now),
    )


def held_by(ledger: "Ledger", worker: str) -> list[tuple[float, str]]:
    prefix = ledger.keys.worker(worker).held
    pairs = ledger.tx.scan(*below(prefix))
    return [(unpack_time(value), last_part(key, prefix)) for key, value in pairs]


def deregister(ledger: "Ledger", workers: list[str]) -> None:
    for worker in workers:
        ledger.tx.delete(ledger.keys.worker(check_name(worker, "worker")).seen)
