"""The fast path for adds to sets: adds a value to the stored bytes, without decoding the record.

The usual add has a new value that is newer than all others, and the set's head and digests have
room. It changes three numbers of the header and inserts the value's digest and entry at one place:
digests grow at their end, and the head, which follows them, grows at its beginning. So the stored
bytes are split there and joined around the new ones. A new set consists of a header and the new
bytes. Every other add is left to sets.py, which works on a decoded record.
"""

import struct
from functools import lru_cache
from typing import Final

from holdfast.events import sets
from holdfast.events.codec import DENSE, LIFE, LIFE_FOLLOWS, PARTIAL, UNBOUNDED, Value
from holdfast.events.record_cache import RecordWriter
from holdfast.events.schema import WriteOptions
from holdfast.events.sketch import DIGEST_BYTES
from holdfast.limits import HEAD_BYTES, HEAD_MEMBERS, MAX_BUNDLES

__all__ = ["add", "applies_to"]

# The header of codec.py, split differently: flags and bundles, gross, and the sizes.
_HEADER: Final = struct.Struct(">HQ10s")
_HEADER_BYTES: Final = _HEADER.size
_pack: Final = _HEADER.pack
_unpack: Final = _HEADER.unpack_from
_SIZES: Final = struct.Struct(">IIH")  # bound, size, bytes of digests
# Flags and bundles of sets that qualify: packed, every member counted, and no optional part, or
# only the expiry.
_PLAIN: Final = frozenset(
    flags << 8 | bundles
    for flags in (0, PARTIAL, DENSE, PARTIAL | DENSE)
    for bundles in range(MAX_BUNDLES + 1)
)
_LIVING: Final = frozenset(kind | LIFE_FOLLOWS << 8 for kind in _PLAIN)
_AFTER_TIME: Final = b"\x02"  # greater than the 01 that follows a time in a head

# By the sizes of a set: where its head begins, and the sizes after one more member.
_Sizes = dict[bytes, tuple[int, bytes]]


def applies_to(options: WriteOptions) -> bool:
    """Returns whether `add` can serve a handler with these options."""
    return (
        options.operation == "add"
        and options.gross
        and options.distinct
        and (options.bound is None or options.bound > HEAD_MEMBERS)
        and not (options.windowed or options.beside or options.takes_older)
    )


@lru_cache(maxsize=64)
def _usual_sizes(bound: int) -> _Sizes:
    sizes = [_SIZES.pack(bound, size, size * DIGEST_BYTES) for size in range(HEAD_MEMBERS + 1)]
    return {
        sizes[size]: (_HEADER_BYTES + size * DIGEST_BYTES, sizes[size + 1])
        for size in range(HEAD_MEMBERS)
    }


def add(
    cache: RecordWriter,
    keys: list[bytes],
    stored_keys: list[bytes],
    value: Value,
    options: WriteOptions,
) -> str | None:
    """Adds a value to the sets with these keys. If a key holds something else, returns an error
    text.

    `stored_keys` are the keys of their records.
    """
    if not cache.are_unchanged(keys):
        return _add_decoded(cache, keys, value, options)
    usual_sizes = _usual_sizes(UNBOUNDED if options.bound is None else options.bound)
    digest, entry = value.digest, value.entry
    added = digest + entry
    later = value.time + _AFTER_TIME
    free = HEAD_BYTES - len(entry)
    pairs: dict[bytes, bytes] = {}
    unusual: list[bytes] = []
    lifetime_ms = options.expire_after_ms
    plain = _PLAIN if not lifetime_ms else frozenset()
    join = b"".join
    for key, stored in zip(stored_keys, cache.tx.get_many(stored_keys)):  # noqa: B905  # is slower
        if stored is not None:
            kind, gross, sizes = _unpack(stored)
            if sizes in usual_sizes:
                begin, sizes = usual_sizes[sizes]
                if kind in plain:
                    head = stored[begin:]
                    if head < later and len(head) <= free:
                        digests = stored[_HEADER_BYTES:begin]
                        if digests.find(digest) < 0:  # `in` would raise and catch an error first
                            header = _pack(kind, gross + 1, sizes)
                            pairs[key] = join((header, digests, added, head))
                            continue
                elif kind in _LIVING:
                    life = _extended(stored, lifetime_ms, cache.now_ms)
                    head = stored[begin + LIFE.size :]
                    digests = stored[_HEADER_BYTES + LIFE.size : begin + LIFE.size]
                    if life and head < later and len(head) <= free and digests.find(digest) < 0:
                        header = _pack(kind, gross + 1, sizes)
                        pairs[key] = join((header, life, digests, added, head))
                        continue
        elif free >= 0 and not lifetime_ms:
            pairs[key] = _first(options.bound) + added
            continue
        unusual.append(key)
    if unusual:
        by_stored = dict(zip(stored_keys, keys, strict=True))
        error = _add_decoded(cache, [by_stored[key] for key in unusual], value, options)
        if error is not None:
            return error
        keys = [by_stored[key] for key in pairs]
    cache.put_sets(keys, pairs)
    return None


def _extended(stored: bytes, lifetime_ms: int, now_ms: int) -> bytes:
    """Returns the expiry of a set after a write; nothing if its remover must be told."""
    expires_ms, own_lifetime_ms, scheduled_ms = LIFE.unpack_from(stored, _HEADER_BYTES)
    lifetime_ms = lifetime_ms or own_lifetime_ms
    if expires_ms <= now_ms or not scheduled_ms or now_ms + lifetime_ms < scheduled_ms:
        return b""
    return LIFE.pack(now_ms + lifetime_ms, lifetime_ms, scheduled_ms)


@lru_cache(maxsize=64)
def _first(bound: int | None) -> bytes:
    """Returns the header of a set with one member."""
    sizes = _SIZES.pack(UNBOUNDED if bound is None else bound, 1, DIGEST_BYTES)
    return _pack(0, 1, sizes)


def _add_decoded(
    cache: RecordWriter, keys: list[bytes], value: Value, options: WriteOptions
) -> str | None:
    """Adds to decoded records; returns an error text as `add` does."""
    records = cache.records(keys)
    for record in records:
        if record.is_board and (record.known or record.dirty):
            return f"key {record.key.decode()} holds a {record.kind}"
    bound = UNBOUNDED if options.bound is None else options.bound
    sets.add(cache, records, value, bound, gross=1, counted=True)
    if options.expire_after_ms or cache.some_expire:
        for record in records:
            cache.extend_lifetime(record, options.expire_after_ms)
    cache.write_records(records)
    return None
