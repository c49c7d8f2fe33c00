"""Unique jobs: while a job owns a key, no other job can be put with it.

No operation releases a key. A put that wants it looks at the owner instead: the key is free once
the owner has left the states for which it was taken. So jobs without a key cost nothing extra, and
jobs with one only when they are put.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.errors import BadArgument, UniqueKeyTaken
from holdfast.jobs.arguments import check_name
from holdfast.jobs.records import (
    DEPENDS,
    RUNNING,
    SCHEDULED,
    STALLED,
    THROTTLED,
    WAITING,
    JobRecord,
    NewJob,
    UniqueRecord,
)
from holdfast.limits import CLOCK_AHEAD_SECONDS

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

_QUEUED: Final = frozenset({WAITING, SCHEDULED, DEPENDS, STALLED, THROTTLED})
_OWNING_STATES: Final[dict[str, frozenset[str] | None]] = {
    "queued": _QUEUED,
    "running": _QUEUED | {RUNNING},
    "complete": None,  # as long as the job exists
}
_MODES: Final = ("keep", "replace", "error")
_decode: Final = msgspec.msgpack.Decoder(UniqueRecord).decode
_encode: Final = msgspec.msgpack.Encoder().encode


def claim(ledger: "Ledger", new: NewJob, jid: str, now: float) -> str | None:
    """Makes `jid` the owner of the key of `new`; returns the id of another job that owns it.

    In mode "keep" the owner keeps it; in mode "replace" the caller has to cancel the owner. Reads 2
    keys, writes 1.
    """
    assert new.unique is not None
    key = ledger.keys.unique(check_name(new.unique, "unique"))
    check(new)
    owner = _owner(ledger, key, new.unique, now)
    if owner is not None and owner.jid != jid:
        if new.unique_mode == "error":
            raise UniqueKeyTaken(f"job {owner.jid!r} owns the unique key {new.unique!r}")
        if new.unique_mode == "keep":
            return owner.jid
    taken = UniqueRecord(jid=jid)
    if not isinstance(new.unique_for, str):
        taken = UniqueRecord(jid=jid, until=now + new.unique_for, since=now)
    ledger.tx.put(key, _encode(taken))
    return None if owner is None or owner.jid == jid else owner.jid


def forget(ledger: "Ledger", job: JobRecord) -> None:
    """Frees the unique key of a job that is removed, unless another job has taken it over."""
    key = ledger.keys.unique(job.unique)
    value = ledger.tx.get(key)
    if value is not None and _decode(value).jid == job.jid:
        ledger.tx.delete(key)


def check(new: NewJob) -> None:
    """Refuses an unknown `unique_for` or `unique_mode`."""
    if isinstance(new.unique_for, str) and new.unique_for not in _OWNING_STATES:
        raise BadArgument.named(
            "unique_for",
            f"is unknown: {new.unique_for}",
            hint="Use queued, running, complete or a number of seconds.",
        )
    if new.unique_mode not in _MODES:
        raise BadArgument.named(
            "unique_mode",
            f"is unknown: {new.unique_mode}",
            hint="Use keep, replace or error.",
        )


def _owner(ledger: "Ledger", key: bytes, unique: str, now: float) -> JobRecord | None:
    value = ledger.tx.get(key)
    if value is None:
        return None
    record = _decode(value)
    job = ledger.job(record.jid)
    if job is None or job.unique != unique:
        return None
    if record.until is not None:
        # A key that was taken in the future was taken while the clock was ahead.
        is_of_now = record.since <= now + CLOCK_AHEAD_SECONDS
        return job if is_of_now and now < record.until else None
    states = _OWNING_STATES[job.unique_for]
    return job if states is None or job.state in states else None
