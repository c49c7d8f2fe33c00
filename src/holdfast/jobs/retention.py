"""Retention: complete jobs are kept for a time and up to a number; completions remove the others.

A completion removes at most `JOBS_PER_STEP` jobs. If more have to go, expiry continues in steps,
and other writes go on in between: shortening the time for 100,000 jobs blocks nobody.
"""

from typing import Final

from holdfast import expiry
from holdfast.engine.contract import Transaction
from holdfast.jobs.cancellation import forget_job
from holdfast.jobs.dependencies import is_awaited
from holdfast.jobs.layout import below, pack_complete, time_and_jid, unpack_complete
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.records import COMPLETE, NEVER
from holdfast.jobs.steps import remember_child
from holdfast.limits import JOBS_PER_STEP

RETENTION_KIND: Final = "jobs.retention"
_FEW: Final = 3  # a completion seldom finds more that are too old


def forget_old(ledger: Ledger, now: float) -> None:
    """Forgets complete jobs that are too old at `now` or too many."""
    if not forget_some(ledger, now):
        expiry.begin_work(ledger.tx, RETENTION_KIND, repr(now).encode())


def forget_some(ledger: Ledger, now: float, limit: int = JOBS_PER_STEP) -> bool:
    """Forgets at most `limit` jobs, oldest first; returns whether all that must go are gone."""
    settings = ledger.settings()
    count, oldest = unpack_complete(ledger.tx.get(ledger.keys.complete))
    too_old = now - settings.jobs_history
    surplus = count - max(0, int(settings.jobs_history_count))
    if oldest > too_old and surplus <= 0:
        return True
    if oldest > too_old:
        # With the maximum reached, each completion removes one job; this finds it at least cost.
        removed = _oldest(ledger, min(surplus, limit))
        oldest = removed[-1][1]
    else:
        removed, oldest = _find_too_old(ledger, too_old, surplus, min(limit, max(surplus, _FEW)))
        if oldest <= too_old and len(removed) < limit:
            removed, oldest = _find_too_old(ledger, too_old, surplus, limit)
    kept = 0
    for key, time, jid in removed:
        job = ledger.job(jid)
        assert job is not None
        assert job.state == COMPLETE
        if job.has_dependents and is_awaited(
            ledger, job
        ):  # until expiry has released the last job that waited for it
            kept += 1
            oldest = min(oldest, time)
            continue
        ledger.tx.delete(key)
        if job.parent:
            remember_child(ledger, job)
        forget_job(ledger, job)
    ledger.tx.put(ledger.keys.complete, pack_complete(count - len(removed) + kept, oldest))
    return not kept and oldest > too_old and len(removed) >= surplus


def _oldest(ledger: Ledger, limit: int) -> list[tuple[bytes, float, str]]:
    """Returns the keys, times and jids of complete jobs, oldest first."""
    prefix = ledger.keys.completed
    found = list(ledger.tx.scan(*below(prefix), limit=limit))
    return [(key, *time_and_jid(key, prefix)) for key, _ in found]


def _find_too_old(
    ledger: Ledger, too_old: float, surplus: int, limit: int
) -> tuple[list[tuple[bytes, float, str]], float]:
    """Returns at most `limit` jobs that must go, and when the first of all others was completed."""
    found = _oldest(ledger, limit + 1)
    for number, (_, time, _) in enumerate(found):
        if number == limit or (time > too_old and number >= surplus):
            return found[:number], time
    return found, NEVER


def continue_retention(tx: Transaction, subject: bytes) -> bool:
    """Continues the retention that a completion began; see expiry.py.

    The subject is that completion's time.
    """
    return forget_some(Ledger(tx), float(subject))
