"""Retention: complete jobs are kept for a time and up to a number, and go when other jobs complete.

A completion removes at most `JOBS_PER_STEP` jobs. If more must go, expiry goes on step by step,
between which others write: shortening the time for 100,000 jobs stops nobody.
"""

from typing import Final

from holdfast import expiry
from holdfast.engine.contract import Transaction
from holdfast.jobs.canceling import forget_job
from holdfast.jobs.layout import below, pack_complete, time_and_jid, unpack_complete
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.records import COMPLETE, NEVER
from holdfast.limits import JOBS_PER_STEP

RETENTION_KIND: Final = "jobs.retention"


def forget_old(ledger: Ledger, now: float, count: int, oldest: float) -> None:
    """Forgets complete jobs that are too old at `now` or too many.

    `count` is how many there are, none completed before `oldest`; if none must go, that is known by
    these alone.
    """
    settings = ledger.settings()
    if (
        oldest > now - settings.jobs_history and count <= settings.jobs_history_count
    ) or forget_some(ledger, now):
        return
    expiry.schedule(ledger.tx, ledger.tx.now, RETENTION_KIND, repr(now).encode())


def forget_some(ledger: Ledger, now: float, limit: int = JOBS_PER_STEP) -> bool:
    """Forgets at most `limit` jobs, oldest first; says whether none is left that must go."""
    settings = ledger.settings()
    count, oldest = unpack_complete(ledger.tx.get(ledger.keys.complete))
    too_old = now - settings.jobs_history
    surplus = count - max(0, int(settings.jobs_history_count))
    if oldest > too_old and surplus <= 0:
        return True
    prefix = ledger.keys.completed
    gone: list[str] = []
    oldest = NEVER
    for key, _ in list(ledger.tx.scan(*below(prefix), limit=limit + 1)):
        time, jid = time_and_jid(key, prefix)
        if len(gone) == limit or (time > too_old and len(gone) >= surplus):
            oldest = time
            break
        ledger.tx.delete(key)
        gone.append(jid)
    for jid in gone:
        job = ledger.job(jid)
        assert job is not None
        assert job.state == COMPLETE
        forget_job(ledger, job)
    ledger.tx.put(ledger.keys.complete, pack_complete(count - len(gone), oldest))
    return oldest > too_old and len(gone) >= surplus


def continue_retention(tx: Transaction, subject: bytes) -> bool:
    """The remover that goes on where a completion stopped; see expiry.py.

    The subject is that completion's time.
    """
    return forget_some(Ledger(tx), float(subject))
