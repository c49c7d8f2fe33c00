"""Commands for batches: jobs that belong together, and jobs that follow when all are done.

None of the originals has them. `on-complete` is the job that is put when all jobs of a batch are
settled; the layer calls it `on_settled`.
"""

from typing import TYPE_CHECKING

from holdfast.compat.qless import replies
from holdfast.compat.qless.arguments import Arguments, json
from holdfast.compat.qless.read_commands import Reply
from holdfast.compat.qless.write_commands import new_job
from holdfast.errors import BadArgument
from holdfast.jobs import batches, cancellation, dependencies
from holdfast.jobs.records import NewJob
from holdfast.limits import JOBS_PER_STEP, MAX_JOBS_PER_CALL

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


def batch_open(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    """Runs `batch.open id [on-success job] [on-complete job]`; a job is an object as in `mput`."""
    id = arguments.name("Batch", "id")
    given = arguments.known_options("Batch", "on-success", "on-complete")
    on_success, on_complete = (_callback(given, name) for name in ("on-success", "on-complete"))
    return batches.open_batch(ledger, id, on_success, on_complete, now)


def _callback(given: dict[str, str], name: str) -> NewJob | None:
    if name not in given:
        return None
    return new_job(json(given[name], f'Batch(): Arg "{name}" not JSON: '), "Batch", name)


def batch_close(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    closed = batches.close_batch(ledger, arguments.name("Batch", "id"), now)
    return replies.text(replies.batch(closed))


def batch_get(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    record = batches.load(ledger, arguments.name("Batch", "id"))
    return None if record is None else replies.text(replies.batch(batches.to_batch(ledger, record)))


def batch_jobs(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    """Runs `batch.jobs id [after [count]]`: the ids of its jobs, after the id `after`."""
    id = arguments.name("Batch", "id")
    after = arguments.optional() or ""
    count = arguments.whole('Batch(): Arg "count" not a number: ', 25)
    return batches.jobs_after(ledger, id, after, min(count, MAX_JOBS_PER_CALL))


def batch_cancel(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    """Closes a batch and cancels all of its jobs that are not complete; returns how many."""
    id = arguments.name("Batch", "id")
    _refuse_large(ledger, id, "JOBS.BATCH_CANCEL")
    batches.close_batch(ledger, id, now)
    jids = batches.jobs_after(ledger, id, "", MAX_JOBS_PER_CALL)
    ordered = dependencies.leaves_first(ledger, jids, MAX_JOBS_PER_CALL)
    return cancellation.cancel_open(ledger, ordered, now)


def batch_forget(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    """Forgets a batch whose jobs are all settled; returns 0 if it does not exist."""
    id = arguments.name("Batch", "id")
    if batches.load(ledger, id) is None:
        return 0
    _refuse_large(ledger, id, "JOBS.BATCH_FORGET")
    for _ in range(MAX_JOBS_PER_CALL // JOBS_PER_STEP + 1):
        if not batches.forget_step(ledger, id):
            break
    return 1


def _refuse_large(ledger: "Ledger", id: str, instead: str) -> None:
    """Refuses a batch of more jobs than one transaction should change."""
    total = batches.to_batch(ledger, batches.require(ledger, id)).total
    if total > MAX_JOBS_PER_CALL:
        raise BadArgument(
            f"Batch(): {id} has {total} jobs, at most {MAX_JOBS_PER_CALL} fit one command",
            hint=f"{instead} takes any number, in several transactions.",
        )
