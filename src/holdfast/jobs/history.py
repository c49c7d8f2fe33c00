"""History: what happened to a job, kept in its record as entries that are encoded one by one.

Adding an entry appends its bytes. The history is decoded only to show it.
"""

import struct
from typing import Final

import msgspec

from holdfast.jobs.layout import QueueKeys, WorkerKeys
from holdfast.jobs.records import HistoryEntry, JobRecord

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[HistoryEntry, ...]).decode
_pack_length: Final = struct.Struct(">BI").pack
_ARRAY_32: Final = 0xDD  # the first byte of a msgpack array whose length has 32 bits
_SHORT: Final = [bytes((0x90 + length,)) for length in range(16)]  # the same for up to 15 elements


RETRIED: Final = "retried"  # a worker handed the job back; the originals have no such entry


def put_entry(keys: QueueKeys, now: float) -> bytes:
    """Returns the entry of a job that is put; the same bytes for a whole second."""
    begin, entry = keys.last_entry
    age = now - begin
    if age < 0.0 or age >= 1.0:
        second = int(now)
        entry = _encode(HistoryEntry("put", second, {"q": keys.name}))
        keys.last_entry = float(second), entry
    return entry


def popped_entry(keys: WorkerKeys, worker: str, now: float) -> bytes:
    """Returns the entry of a job that `worker` pops; the same bytes for a whole second."""
    begin, entry = keys.last_entry
    age = now - begin
    if age < 0.0 or age >= 1.0:
        second = int(now)
        entry = _encode(HistoryEntry("popped", second, {"worker": worker}))
        keys.last_entry = float(second), entry
    return entry


def done_entry(keys: QueueKeys, now: float) -> bytes:
    """Returns the entry of a job that is completed; the same bytes for a whole second."""
    begin, entry = keys.last_done_entry
    age = now - begin
    if age < 0.0 or age >= 1.0:
        second = int(now)
        entry = _encode(HistoryEntry("done", second))
        keys.last_done_entry = float(second), entry
    return entry


def history_of(job: JobRecord) -> tuple[HistoryEntry, ...]:
    """Returns all entries, oldest first."""
    entries = job.entries
    head = _SHORT[entries] if entries < 16 else _pack_length(_ARRAY_32, entries)
    return _decode(head + job.history)


def qless_history_of(job: JobRecord) -> tuple[HistoryEntry, ...]:
    """Returns all entries that Qless writes too; its clients know no others."""
    return tuple(
        entry
        for entry in history_of(job)
        if entry.what != RETRIED or not entry.more.keys() >= {"worker", "remaining"}
    )


def shorten(job: JobRecord, limit: int) -> None:
    """Keeps the first entry and the newest ones, `limit` in all."""
    history = history_of(job)
    kept = history[:1] + history[len(history) - limit + 1 :]
    job.history = b"".join(map(_encode, kept))
    job.entries = len(kept)
