"""The slots of throttles: taken when a job is popped, released when its lock ends."""

from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.jobs.layout import LOW, QueueKeys
from holdfast.jobs.records import THROTTLED, JobRecord, ThrottleRecord

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

_decode: Final = msgspec.msgpack.Decoder(ThrottleRecord).decode
_encode: Final = msgspec.msgpack.Encoder().encode


def load(ledger: "Ledger", name: str, now: float) -> ThrottleRecord:
    """Returns the throttle as it is at `now`; one that was never set, or has expired, limits
    nothing."""
    value = ledger.tx.get(ledger.keys.throttle(name))
    record = ThrottleRecord() if value is None else _decode(value)
    if record.expires is not None and record.expires <= now:
        record.maximum, record.expires = 0, None
    return record


def save(ledger: "Ledger", name: str, record: ThrottleRecord) -> None:
    if record == ThrottleRecord():
        ledger.tx.delete(ledger.keys.throttle(name))
    else:
        ledger.tx.put(ledger.keys.throttle(name), _encode(record))


def acquire(ledger: "Ledger", job: JobRecord, now: float) -> str | None:
    """Takes a slot of each of the job's throttles; if one is full, takes none and returns it."""
    records = {name: load(ledger, name, now) for name in job.throttles}
    for name, record in records.items():
        if record.maximum and record.held >= record.maximum and name not in job.held_throttles:
            return name
    for name, record in records.items():
        if name not in job.held_throttles:
            record.held += 1
            ledger.tx.put(ledger.keys.holder(name, job.jid), b"")
            save(ledger, name, record)
    job.held_throttles = list(records)
    return None


def set_aside(ledger: "Ledger", keys: QueueKeys, job: JobRecord, throttle: str, now: float) -> None:
    """Makes a job that has left the work list wait for `throttle`."""
    record = load(ledger, throttle, now)
    record.waiting += 1
    save(ledger, throttle, record)
    job.state = THROTTLED
    job.waits_for_throttle = throttle
    job.place = ledger.keys.waiter(throttle, job.time, job.jid)
    ledger.tx.put(job.place, b"")
    ledger.tx.add(keys.other, LOW)
    ledger.save(job)


def leave_waiters(ledger: "Ledger", job: JobRecord, now: float) -> None:
    """Removes a job that has left its place from the count of waiting jobs."""
    record = load(ledger, job.waits_for_throttle, now)
    record.waiting -= 1
    save(ledger, job.waits_for_throttle, record)
    job.waits_for_throttle = ""


def release(ledger: "Ledger", job: JobRecord, now: float) -> list[str]:
    """Releases the slots of the job's lock; returns the throttles that have free slots now."""
    names, job.held_throttles = job.held_throttles, []
    for name in names:
        record = load(ledger, name, now)
        record.held -= 1
        ledger.tx.delete(ledger.keys.holder(name, job.jid))
        save(ledger, name, record)
    return names
