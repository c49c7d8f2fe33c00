"""The one mechanism for everything that expires, exact to the millisecond.

Below (space, 0), one entry for everything that expires:

(None,)                     -> nothing  the space has been dropped: nobody may write to it
(due_ms, kind, subject)     -> nothing  at `due_ms` the remover of `kind` is called with `subject`
(due_ms - 2^50, ...)        -> nothing  the same for a step of work, such as the build of an index

A layer hides expired data at once, by `is_expired` on its own record, and schedules an entry
for the removal. `sweep` calls the removers of what is due, a few at a time: after each write of a
library, and in a loop in the server.

A remover checks that its subject really is due, because its expiry may have been moved and old
entries may be left over. It removes in a bounded step and returns True when nothing is left to do.

Work that is done in steps, as soon as possible, begins with `begin_work`. Its entries come before
all others, so that `sweep` sees them whatever the clock was when they were written: one that was
written by a clock ahead is due.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from holdfast.engine.contract import Notice, Reader, Transaction
from holdfast.errors import BadInput, Conflict, RemovalFailed, StoreUnusable, UnknownSpace
from holdfast.keys import after, pack_bytes, pack_int, pack_str, prefix_range, unpack
from holdfast.limits import (
    CLOCK_AHEAD_SECONDS,
    EXPIRED_PER_WRITE,
    EXPIRY_RETRY_MS,
    FAILED_REMOVAL_RETRY_MS,
    MAX_FAILURE_CHARACTERS,
    UNKNOWN_EXPIRY_RETRY_MS,
    WORK_STEPS_PER_SWEEP,
)

__all__ = [
    "REMOVAL_FAILED_TOPIC",
    "UNKNOWN_KIND_TOPIC",
    "Due",
    "Remover",
    "begin_work",
    "cancel",
    "dropped_key",
    "due",
    "is_dropped",
    "is_expired",
    "mark_dropped",
    "next_due",
    "postpone_failed",
    "refuse_dropped",
    "schedule",
    "sweep",
    "to_ms",
]

Remover: TypeAlias = Callable[[Transaction, bytes], bool]
UNKNOWN_KIND_TOPIC: Final = "expiry.unknown_kind"  # a notice with the kind as its payload
REMOVAL_FAILED_TOPIC: Final = "expiry.removal_failed"  # its payload is JSON: kind and error

LAYER: Final = 0  # the first part of every key below a space; expiry comes before every layer
_CODE: Final = pack_int(LAYER)
_DROPPED: Final = _CODE + b"\x01"  # (0, None): None sorts before every due_ms
_WORK_MS: Final = 1 << 50  # 35,000 years: steps of work are stored so long before they are due
_AHEAD_MS: Final = round(CLOCK_AHEAD_SECONDS * 1_000)


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is due."""

    due_ms: int
    kind: str
    subject: bytes
    is_work: bool = False  # a step of work, and not the end of something

    def is_due(self, now_ms: int) -> bool:
        """Returns whether its time has come, or was set by a clock ahead."""
        return self.due_ms <= now_ms or (self.is_work and self.due_ms > now_ms + _AHEAD_MS)


# --- time -------------------------------------------------------------------------------------


def to_ms(seconds: float) -> int:
    """Returns the nearest millisecond, a half to the even one: what is exact in ms survives the
    float.

    >>> to_ms(1_700_000_000.123), to_ms(0.0015), to_ms(0.0025)
    (1700000000123, 2, 2)
    """
    try:
        return round(seconds * 1_000)
    except (OverflowError, ValueError):
        raise BadInput(f"{seconds} is not a time", hint="Give seconds since 1970.") from None


def is_expired(expires_ms: int, now: float) -> bool:
    """Returns whether `now` has reached `expires_ms`, to the millisecond.

    >>> is_expired(1_500, now=1.499), is_expired(1_500, now=1.5)
    (False, True)
    """
    return to_ms(now) >= expires_ms


# --- entries ----------------------------------------------------------------------------------


def schedule(tx: Transaction, at: float, kind: str, subject: bytes) -> int:
    """Schedules a call of the remover of `kind` with `subject` at `at`, in seconds; returns `at` in
    ms.

    Writes 1 key.
    """
    due_ms = to_ms(at)
    tx.put(_entry(tx.space, due_ms, kind, subject), b"")
    return due_ms


def begin_work(tx: Transaction, kind: str, subject: bytes) -> None:
    """Schedules calls of the remover of `kind` with `subject`, from now on until it returns True.

    Writes 1 key.
    """
    tx.put(_entry(tx.space, to_ms(tx.now) - _WORK_MS, kind, subject), b"")


def cancel(tx: Transaction, at: float, kind: str, subject: bytes) -> None:
    """Cancels what was scheduled with the same arguments, if anything was.

    An entry whose removal has begun stays, and its remover finds nothing due. Deletes 1 key.
    """
    tx.delete(_entry(tx.space, to_ms(at), kind, subject))


def due(reader: Reader, limit: int) -> list[Due]:
    """Returns what is due at `reader.now`, longest due first, at most `limit`. Reads as many
    keys."""
    begin, now_ms = after(dropped_key(reader.space)), to_ms(reader.now)
    pairs = reader.scan(begin, _end_of_due(reader.space, now_ms), limit=limit)
    entries = [_read(reader.space, key) for key, _ in pairs]
    return [entry for entry in entries if entry.is_due(now_ms)]


def next_due(reader: Reader) -> float | None:
    """Returns when something is due next, in seconds; None if nothing expires. Reads 1 key."""
    begin, end = after(dropped_key(reader.space)), prefix_range(reader.space + _CODE)[1]
    for key, _ in reader.scan(begin, end, limit=1):
        entry = _read(reader.space, key)
        return reader.now if entry.is_due(to_ms(reader.now)) else entry.due_ms / 1_000
    return None


def sweep(
    tx: Transaction, removers: Mapping[str, Remover], *, limit: int = EXPIRED_PER_WRITE
) -> int:
    """Removes what is due at `tx.now`, at most `limit` entries, and returns how many it handled.

    Fewer than `limit` means that nothing due is left but steps of work: one sweep takes at most
    `WORK_STEPS_PER_SWEEP` of them, because each may change many records. An entry whose remover
    returns False goes to the end of the queue, `EXPIRY_RETRY_MS` from now, so that it can't hold up
    those behind it. So does one of a kind that `removers` does not know, for
    `UNKNOWN_EXPIRY_RETRY_MS`, with a notice.

    Raises `UnknownSpace` if the space has been dropped. An exception of a remover is raised as
    `RemovalFailed`: what was half done must be undone with the transaction. Afterwards
    `postpone_failed` postpones that entry, so that the others are handled.

    Reads 1 key for each entry and those of its remover. With nothing due: one scan of no key.
    """
    now_ms = to_ms(tx.now)
    begin, end = tx.space + _CODE, _end_of_due(tx.space, now_ms)
    entries = [key for key, _ in tx.scan(begin, end, limit=limit)]
    if not entries:
        return 0
    if entries[0] == dropped_key(tx.space):
        raise _dropped()
    found = _due_among(tx, entries, now_ms, limit)
    if len(found) > WORK_STEPS_PER_SWEEP:
        steps = [entry for entry in found if entry.is_work]
        found = [entry for entry in found if not entry.is_work] + steps[:WORK_STEPS_PER_SWEEP]
    for entry in found:
        # Before the call, because a remover may schedule the same subject again, at any time.
        tx.delete(_key_of(tx.space, entry))
        remover = removers.get(entry.kind)
        if remover is None:
            _postpone(tx, entry, now_ms + UNKNOWN_EXPIRY_RETRY_MS)
            tx.after_commit(Notice(UNKNOWN_KIND_TOPIC, entry.kind.encode()))
        elif not _call(remover, tx, entry):
            _postpone(tx, entry, now_ms + EXPIRY_RETRY_MS)
    return len(found)


def postpone_failed(tx: Transaction, failure: RemovalFailed) -> None:
    """Postpones the entry of `failure` by `FAILED_REMOVAL_RETRY_MS`, and leaves a notice.

    For a separate transaction, once that of the sweep has been undone. Reads 1 key, writes 2.
    """
    entry: Due = failure.entry
    key = _key_of(tx.space, entry)
    # Another process may have removed it meanwhile, or emptied the space.
    if tx.get(key) is None:
        return
    tx.delete(key)
    _postpone(tx, entry, to_ms(tx.now) + FAILED_REMOVAL_RETRY_MS)
    error = repr(failure.__cause__)[:MAX_FAILURE_CHARACTERS]
    payload = msgspec.json.encode({"kind": entry.kind, "error": error})
    tx.after_commit(Notice(REMOVAL_FAILED_TOPIC, payload))


# --- dropped spaces ---------------------------------------------------------------------------


def mark_dropped(tx: Transaction) -> None:
    """Makes every later `sweep` of the space raise `UnknownSpace`. Writes 1 key.

    A process may hold a handle on a space that another one has dropped. The store sweeps with each
    write, and the marker sorts before everything that can be due: the scan for due entries finds it
    first, so a writer needs no read of its own to learn that its space is gone.
    """
    tx.put(dropped_key(tx.space), b"")


def refuse_dropped(reader: Reader) -> None:
    """Raises `UnknownSpace` if the space has been dropped; for callers that do not sweep. Reads 1
    key."""
    if is_dropped(reader):
        raise _dropped()


def is_dropped(reader: Reader) -> bool:
    """Returns whether the space has been dropped. Reads 1 key."""
    return reader.get(dropped_key(reader.space)) is not None


def dropped_key(space: bytes) -> bytes:
    """Returns the key of a dropped space's marker: the one key to keep when its data is cleared."""
    return space + _DROPPED


def _dropped() -> UnknownSpace:
    return UnknownSpace("this space has been dropped")


# --- handling entries ------------------------------------------------------------------------


def _call(remover: Remover, tx: Transaction, entry: Due) -> bool:
    try:
        return remover(tx, entry.subject)
    except (Conflict, StoreUnusable, UnknownSpace):
        raise  # these are about the transaction as a whole, not about one entry
    except Exception as error:
        raise RemovalFailed(f"the removal of a {entry.kind!r} failed", entry=entry) from error


def _due_among(tx: Transaction, keys: list[bytes], now_ms: int, limit: int) -> list[Due]:
    """Returns the entries that are due. Steps of work that are not due yet may hide others."""
    entries = [_read(tx.space, key) for key in keys]
    found = [entry for entry in entries if entry.is_due(now_ms)]
    if len(found) < len(entries) == limit:
        begin, end = tx.space + _CODE + pack_int(0), _end_of_due(tx.space, now_ms)
        others = [key for key, _ in tx.scan(begin, end, limit=limit - len(found))]
        found += [_read(tx.space, key) for key in others if key not in keys]
    return found


def _postpone(tx: Transaction, entry: Due, until_ms: int) -> None:
    tx.put(_key_of(tx.space, msgspec.structs.replace(entry, due_ms=until_ms)), b"")


def _key_of(space: bytes, entry: Due) -> bytes:
    stored_ms = entry.due_ms - _WORK_MS if entry.is_work else entry.due_ms
    return _entry(space, stored_ms, entry.kind, entry.subject)


def _entry(space: bytes, due_ms: int, kind: str, subject: bytes) -> bytes:
    return space + _CODE + pack_int(due_ms) + pack_str(kind) + pack_bytes(subject)


def _end_of_due(space: bytes, now_ms: int) -> bytes:
    return space + _CODE + pack_int(now_ms + 1)


def _read(space: bytes, key: bytes) -> Due:
    stored_ms, kind, subject = unpack(key, len(space) + len(_CODE))
    is_work = stored_ms < 0
    due_ms = stored_ms + _WORK_MS if is_work else stored_ms
    return Due(due_ms=due_ms, kind=kind, subject=subject, is_work=is_work)
