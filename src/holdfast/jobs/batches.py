"""Batches: jobs that belong together, and jobs that are put when all of them are done.

A batch is opened, jobs are put into it, and it is closed. When it is closed and all of its jobs are
complete, its job `on_success` is put; when all are settled (complete, failed or canceled), its job
`on_settled`. Each is put once, in the transaction that settles the last job.

Outcomes are counters, so a job of a large batch costs no more than one of a small batch. Nothing
reads them while the batch is open.
"""

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from holdfast.declarations import operation
from holdfast.engine.contract import read_counter
from holdfast.errors import UnknownBatch, WrongState
from holdfast.jobs.arguments import check_name
from holdfast.jobs.layout import below, last_part
from holdfast.jobs.records import Batch, BatchRecord, JobRecord, NewJob
from holdfast.limits import JOBS_PER_STEP

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

Outcome = Literal["total", "complete", "failed", "canceled"]
_OUTCOMES: Final[tuple[Outcome, ...]] = ("total", "complete", "failed", "canceled")
decode: Final = msgspec.msgpack.Decoder(BatchRecord).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class BatchOperations:
    """Operations on batches."""

    _ledger: "Ledger"

    @operation()
    def batch_open(
        self,
        id: str | None = None,
        *,
        on_success: NewJob | None = None,
        on_settled: NewJob | None = None,
        now: float | None = None,
    ) -> str:
        """Opens a batch and returns its id.

        >>> batch = store.jobs.batch_open(on_success=NewJob(queue="reports", klass="Send"))
        >>> for month in ("may", "june"):
        ...     _ = store.jobs.put("reports", "Count", month, batch=batch)
        >>> store.jobs.batch_close(batch).pending
        2

        The job `on_success` is put when all jobs of the closed batch are complete, `on_settled`
        when each is complete, failed or canceled. Reads 1 key, writes 1.
        """
        return open_batch(self._ledger, id, on_success, on_settled, self._ledger.time(now))

    @operation()
    def batch_close(self, id: str, *, now: float | None = None) -> Batch:
        """Closes a batch: no more jobs can be put into it. Closing it again changes nothing.

        Puts the callbacks at once if nothing is pending. Reads 5 keys, writes 1.
        """
        return close_batch(self._ledger, id, self._ledger.time(now))

    @operation(reads=True)
    def batch(self, id: str) -> Batch | None:
        """Returns the batch with its counts, or None if it does not exist. Reads 5 keys."""
        record = load(self._ledger, check_name(id, "id"))
        return None if record is None else to_batch(self._ledger, record)

    @operation(reads=True)
    def batch_jobs(self, id: str, *, after: str = "", count: int = 25) -> list[str]:
        """Returns ids of the batch's jobs, in the order of the ids, beginning after `after`.

        Reads 1 key for each.
        """
        return jobs_after(self._ledger, check_name(id, "id"), after, min(count, JOBS_PER_STEP))

    @operation()
    def batch_forget(self, id: str) -> bool:
        """Forgets a batch whose jobs are all settled; the jobs stay. Returns whether it existed.

        Removes at most `JOBS_PER_STEP` of its entries; `store.jobs` repeats it until all are gone.
        Reads 2 keys and writes 2 for each.
        """
        existed = load(self._ledger, check_name(id, "id")) is not None
        forget_step(self._ledger, id)
        return existed


# --- how it is done ---------------------------------------------------------------------------


def load(ledger: "Ledger", id: str) -> BatchRecord | None:
    value = ledger.tx.get(ledger.keys.batch(id))
    return None if value is None else decode(value)


def require(ledger: "Ledger", id: str) -> BatchRecord:
    """Returns the batch; raises `UnknownBatch` if it does not exist."""
    record = load(ledger, check_name(id, "batch"))
    if record is None:
        raise UnknownBatch(f"there is no batch {id!r}")
    return record


def _save(ledger: "Ledger", record: BatchRecord) -> None:
    ledger.tx.put(ledger.keys.batch(record.id), _encode(record))


def open_batch(
    ledger: "Ledger",
    id: str | None,
    on_success: NewJob | None,
    on_settled: NewJob | None,
    now: float,
) -> str:
    from holdfast.jobs.puts import check_new, new_jid  # which know batches

    name = new_jid(now) if id is None else check_name(id, "id")
    if load(ledger, name) is not None:
        raise WrongState(f"batch {name!r} exists already")
    for callback in (on_success, on_settled):
        if callback is not None:
            check_new(callback)
    _save(ledger, BatchRecord(id=name, opened=now, on_success=on_success, on_settled=on_settled))
    return name


def close_batch(ledger: "Ledger", id: str, now: float) -> Batch:
    record = require(ledger, id)
    if record.closed is None:
        record.closed = now
        _save(ledger, record)
    put_callbacks(ledger, id, now)
    return to_batch(ledger, record)


def jobs_after(ledger: "Ledger", id: str, after: str, count: int) -> list[str]:
    """Returns up to `count` ids of the batch's jobs, by id, after `after`."""
    prefix = ledger.keys.batch_jobs_of(id)
    begin, end = below(prefix)
    if after:
        begin = ledger.keys.batch_job(id, after) + b"\0"
    found = ledger.tx.scan(begin, end, limit=max(0, count))
    return [last_part(key, prefix) for key, _ in found]


def to_batch(ledger: "Ledger", record: BatchRecord) -> Batch:
    counts = _counts(ledger, record.id)
    pending = counts["total"] - counts["complete"] - counts["failed"] - counts["canceled"]
    return Batch(
        id=record.id,
        opened=record.opened,
        closed=record.closed,
        pending=pending,
        is_settled=record.closed is not None and not pending,
        **counts,
    )


def _counts(ledger: "Ledger", id: str) -> dict[Outcome, int]:
    values = ledger.tx.get_many([ledger.keys.batch_count(id, name) for name in _OUTCOMES])
    return {name: read_counter(value) for name, value in zip(_OUTCOMES, values, strict=True)}


def join(ledger: "Ledger", job: JobRecord, id: str) -> None:
    """Makes the job, which its caller saves, a member of an open batch. Reads 1 key, writes 2."""
    record = require(ledger, id)
    if record.closed is not None:
        raise WrongState(f"batch {id!r} is closed: no more jobs can be put into it")
    if job.batch:
        raise WrongState(f"job {job.jid!r} belongs to batch {job.batch!r} already")
    job.batch = id
    ledger.tx.put(ledger.keys.batch_job(id, job.jid), b"")
    ledger.tx.add(ledger.keys.batch_count(id, "total"), 1)


def count(ledger: "Ledger", job: JobRecord, outcome: Outcome, delta: int = 1) -> None:
    """Counts the outcome of a job of a batch. Writes 1 key."""
    ledger.tx.add(ledger.keys.batch_count(job.batch, outcome), delta)


def put_callbacks(ledger: "Ledger", id: str, now: float) -> None:
    """Puts the callbacks of a closed batch whose jobs are done. Reads 5 keys once it is closed."""
    record = load(ledger, id)
    if record is None or record.closed is None or (record.settled_put and record.success_put):
        return
    batch = to_batch(ledger, record)
    if not batch.is_settled:
        return
    callbacks = []
    if not record.success_put and batch.complete == batch.total:
        record.success_put = True
        callbacks.append(record.on_success)
    if not record.settled_put:
        record.settled_put = True
        callbacks.append(record.on_settled)
    if callbacks:
        from holdfast.jobs.puts import put  # which knows batches

        _save(ledger, record)
        for callback in filter(None, callbacks):
            follower = _usable_callback(ledger, callback, now)
            if follower is not None:
                put(ledger, follower, "", now)


def _usable_callback(ledger: "Ledger", callback: NewJob, now: float) -> NewJob | None:
    """Returns the callback without options that are no longer valid; None if its time is over.

    A refused callback would undo the completion of the batch's last job, every time it is tried.
    """
    if callback.expires is not None and callback.expires <= now:
        return None
    if callback.unique_mode == "error":
        callback = msgspec.structs.replace(callback, unique_mode="keep")
    outer = None if callback.batch is None else load(ledger, callback.batch)
    if callback.batch is not None and (outer is None or outer.closed is not None):
        callback = msgspec.structs.replace(callback, batch=None)
    return callback


def forget_step(ledger: "Ledger", id: str) -> bool:
    """Removes entries of a settled batch; returns whether some are left."""
    record = load(ledger, check_name(id, "id"))
    if record is None:
        return False
    if not to_batch(ledger, record).is_settled:
        raise WrongState(f"batch {id!r} has jobs that are not settled")
    prefix = ledger.keys.batch_jobs_of(id)
    found = list(ledger.tx.scan(*below(prefix), limit=JOBS_PER_STEP))
    for key, _ in found:
        ledger.tx.delete(key)
        job = ledger.job(last_part(key, prefix))
        if job is not None and job.batch == id:
            job.batch = ""
            ledger.save(job)
    if len(found) == JOBS_PER_STEP:
        return True
    ledger.tx.clear(*below(ledger.keys.batch_counts_of(id)))
    ledger.tx.delete(ledger.keys.batch(id))
    return False
