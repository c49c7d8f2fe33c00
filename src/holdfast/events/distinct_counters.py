"""The distinct counter of a key: exact while it is small, a sketch from then on.

The digest of each new value is added to the record. From there digests move, a few dozen at a time,
to the key's archive, together with the older members of a set. An archive is a few bundles: a move
writes one more and reads nothing; from time to time they are compacted into one. Up to 256
different digests are kept, and until then the count is exact; beyond, they go into a sketch.

A bundle is the number of bytes of its digests, the digests, and entries of a set, newest first.
"""

import struct
from collections.abc import Sequence
from typing import Final

from holdfast.events import sketch
from holdfast.events.codec import DENSE, KeyRecord
from holdfast.events.record_cache import RecordCache, RecordWriter
from holdfast.limits import EXACT_DISTINCT, MAX_BUNDLES

__all__ = [
    "PENDING_BYTES",
    "absorb_digests",
    "archive",
    "archive_digests",
    "known",
    "read_archive",
    "rewrite",
]

PENDING_BYTES: Final = 40 * sketch.DIGEST_BYTES  # in a record, before they move to the archive
# In an archive, before they move to the sketch, which takes three pages: with a hundred members of
# a set they still share one.
_COLLECTED_BYTES: Final = 300 * sketch.DIGEST_BYTES
_LENGTH: Final = struct.Struct(">H")


def archive_digests(cache: RecordWriter, record: KeyRecord) -> None:
    """Moves the digests of a record to its archive."""
    if record.bundles < MAX_BUNDLES:
        archive(cache, record, b"")
    else:
        known, entries = read_archive(cache, record)
        rewrite(cache, record, absorb_digests(cache, record, known), entries)


def archive(cache: RecordWriter, record: KeyRecord, entries: bytes) -> None:
    """Adds a bundle: the digests of a record, and some of its entries."""
    _write_bundle(cache, record, record.bundles, record.digests, entries)
    record.digests = b""
    record.bundles += 1


def absorb_digests(cache: RecordWriter, record: KeyRecord, known: bytes) -> bytes:
    """Returns the digests that the archive must keep, of `known` and those in the record.

    The others go into the sketch. The record has no digests afterwards.
    """
    known += record.digests
    record.digests = b""
    if not record.is_dense:
        known = b"".join(dict.fromkeys(_split(known)))
        if len(known) <= EXACT_DISTINCT * sketch.DIGEST_BYTES:
            return known
        record.flags |= DENSE
        registers = sketch.EMPTY
    elif len(known) <= _COLLECTED_BYTES:
        return known
    else:
        registers = _registers(cache, record)
    cache.put(cache.keys.sketch(record.key), sketch.update(registers, known))
    return b""


def read_archive(cache: RecordCache, record: KeyRecord) -> tuple[bytes, bytes]:
    """Returns the digests and the entries of a key's archive, the newest bundle first."""
    digests = entries = b""
    for number in reversed(range(record.bundles)):
        stored = cache.get(cache.keys.bundle(record.key, number))
        assert stored is not None  # the record counts what was written
        end = _LENGTH.size + _LENGTH.unpack_from(stored)[0]
        digests += stored[_LENGTH.size : end]
        entries += stored[end:]
    return digests, entries


def rewrite(cache: RecordWriter, record: KeyRecord, known: bytes, entries: bytes) -> None:
    """Replaces all bundles by one, or by none if there is nothing to keep."""
    left = 1 if known or entries else 0
    if left:
        _write_bundle(cache, record, 0, known, entries)
    for number in range(left, record.bundles):
        cache.delete(cache.keys.bundle(record.key, number))
    record.bundles = left


def _write_bundle(
    cache: RecordWriter, record: KeyRecord, number: int, known: bytes, entries: bytes
) -> None:
    stored = _LENGTH.pack(len(known)) + known + entries
    cache.put(cache.keys.bundle(record.key, number), stored)


def known(cache: RecordCache, record: KeyRecord) -> list[bytes]:
    """Returns the digests of a key that its sketch does not have yet; all, if it has no sketch."""
    return list(dict.fromkeys(_split(record.digests + read_archive(cache, record)[0])))


def sketch_of(cache: RecordCache, record: KeyRecord, known: Sequence[bytes]) -> bytes:
    """Returns the sketch of all values of a key, whose other digests are `known`."""
    registers = _registers(cache, record) if record.is_dense else sketch.EMPTY
    return sketch.update(registers, b"".join(known))


def store_sketch(cache: RecordWriter, record: KeyRecord, registers: bytes) -> None:
    """Gives a key that has no digests a sketch."""
    record.flags |= DENSE
    cache.put(cache.keys.sketch(record.key), registers)


def _registers(cache: RecordCache, record: KeyRecord) -> bytes:
    return cache.get(cache.keys.sketch(record.key)) or sketch.EMPTY


def _split(digests: bytes) -> list[bytes]:
    step = sketch.DIGEST_BYTES
    return [digests[begin : begin + step] for begin in range(0, len(digests), step)]
