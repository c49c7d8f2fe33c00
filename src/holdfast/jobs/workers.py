"""Workers: which were seen recently, and the jobs they hold."""

from typing import TYPE_CHECKING

from holdfast.declarations import operation
from holdfast.jobs.arguments import check_name
from holdfast.jobs.layout import below, last_part, unpack_time
from holdfast.jobs.records import WorkerCounts, WorkerJobs
from holdfast.limits import JOBS_PER_STEP

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


class WorkerOperations:
    """Operations on workers."""

    _ledger: "Ledger"

    @operation()
    def workers(self, *, now: float | None = None) -> list[WorkerCounts]:
        """Returns the workers that were seen within `max-worker-age` seconds, the last seen first.

        Forgets up to `JOBS_PER_STEP` others. Reads 1 key for each worker and for each job that one
        holds.
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
    oldest = now - ledger.settings().worker_age
    prefix = ledger.keys.workers
    pairs = ledger.tx.scan(*below(prefix))
    all_seen = [(unpack_time(value), last_part(key, prefix)) for key, value in pairs]
    seen = [each for each in all_seen if each[0] > oldest]
    for _, name in [each for each in all_seen if each[0] <= oldest][:JOBS_PER_STEP]:
        _forget(ledger, name)
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


def forget_if_old(ledger: "Ledger", worker: str, now: float) -> None:
    """Forgets a worker that was not seen for too long, with the list of its jobs."""
    seen = ledger.tx.get(ledger.keys.worker(worker).seen)
    if seen is not None and unpack_time(seen) <= now - ledger.settings().worker_age:
        _forget(ledger, worker)


def _forget(ledger: "Ledger", worker: str) -> None:
    keys = ledger.keys.worker(worker)
    ledger.tx.delete(keys.seen)
    ledger.tx.clear(*below(keys.held))


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
