"""Checks stored keys of this layer: records, archives, sketches and rows must agree.

The consistency check walks a space in bounded steps and calls `problems_at` with each key.
"""

from collections.abc import Iterator

from holdfast.engine.contract import Reader
from holdfast.events import board_rows
from holdfast.events.codec import ORDERED, KeyRecord, decode
from holdfast.events.layout import (
    BOARD_BESIDE,
    BUNDLE,
    LAYER,
    PLACES,
    RECORD,
    SKETCH,
    VALUES,
    keys_of,
    value_part,
)
from holdfast.events.record_cache import RecordCache
from holdfast.keys import pack_int, prefix_range, unpack, unpack_first

__all__ = ["problems_at"]


def problems_at(reader: Reader, key: bytes, value: bytes) -> Iterator[str]:
    """Yields a sentence for each problem of the pair at `key`.

    Reads a few keys, for a large set or board all of its rows.
    """
    base = len(reader.space) + len(pack_int(LAYER))
    kind, begin = unpack_first(key, base)
    if kind in (RECORD, BOARD_BESIDE):
        [name] = unpack(key, begin)
        yield from _record(reader, decode(name.encode(), key, value))
    elif kind == BUNDLE:
        name, number = unpack(key, begin)
        record = _find(reader, name.encode())
        if record is None or number >= record.bundles:
            yield f"events key {name!r}: a bundle of its archive is left over"
    elif kind == SKETCH:
        [name] = unpack(key, begin)
        record = _find(reader, name.encode())
        if record is None or not record.is_dense:
            yield f"events key {name!r}: a sketch is left over"


def _record(reader: Reader, record: KeyRecord) -> Iterator[str]:
    keys, name = keys_of(reader.space), record.key.decode()
    for number in range(record.bundles):
        if reader.get(keys.bundle(record.key, number)) is None:
            yield f"events key {name!r}: bundle {number} of its archive is missing"
    if record.is_dense and reader.get(keys.sketch(record.key)) is None:
        yield f"events key {name!r}: its sketch is missing"
    if not record.has_rows:
        held = record.head.count(b"\x01")
        if held != record.size:
            yield f"events key {name!r}: counts {record.size} members, holds {held}"
        return
    prefix = keys.generation(record.generation)
    values = sum(1 for _ in reader.scan(*prefix_range(prefix + VALUES)))
    if values != record.size:
        yield f"events key {name!r}: counts {record.size} values, has {values}"
    if not record.is_board:
        yield from _places(reader, prefix, name, record.size)
    elif record.flags & ORDERED:
        yield from _index(reader, record, name)


def _places(reader: Reader, prefix: bytes, name: str, size: int) -> Iterator[str]:
    """Yields a sentence for each member whose place is not the one that its value names."""
    begin, end = prefix_range(prefix + PLACES)
    places = 0
    for key, value in reader.scan(begin, end):
        places += 1
        named = reader.get(prefix + VALUES + value_part(value))
        if named != key[len(begin) :]:
            problem = "is missing" if named is None else "names another place"
            yield f"events key {name!r}: the value {value.decode(errors='replace')!r} {problem}"
    if places != size:
        yield f"events key {name!r}: counts {size} members, has places for {places}"


def _index(reader: Reader, record: KeyRecord, name: str) -> Iterator[str]:
    """Yields a sentence if the index of a board by count is not what its rows by value say."""
    cache = RecordCache(reader)
    counted = sum(1 for _ in board_rows.scan(cache, record))
    ordered = board_rows.highest(cache, record, counted + 1)
    if {(each.value, each.count) for each in ordered} != {
        (each.value, each.count) for each in board_rows.scan(cache, record)
    }:
        yield f"events key {name!r}: its index by count does not agree with its counts"


def _find(reader: Reader, name: bytes) -> KeyRecord | None:
    stored_key = keys_of(reader.space).record(name)
    stored = reader.get(stored_key)
    return None if stored is None else decode(name, stored_key, stored)
