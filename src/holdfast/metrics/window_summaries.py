"""Window summaries: the counts of one entity in a limiter's window, in one record.

The counters of the buckets are authoritative. A summary copies those of one entity and one
condition from a bucket on, so that a hit reads one record instead of a counter for each bucket:

    since, begin, units of bucket begin, of bucket begin + 1, ...   8 bytes each, big-endian

It holds every counter of its entity from `since` on, and none exists before `begin`: each write
to one of these counters writes the summary too, or deletes it. The newest counter is not 0; when it
expires, the summary is deleted with it. A hit that finds no summary reads the counters and writes
one.
"""

import struct
from functools import lru_cache
from typing import Final

from holdfast.engine.contract import Transaction
from holdfast.keys import pack_int, unpack
from holdfast.limits import MAX_SUMMARIZED_BUCKETS
from holdfast.metrics.layout import WINDOW_SUMMARIES, Keys

pack_units: Final = struct.Struct(">q").pack  # of one bucket
_pack_begin: Final = struct.Struct(">qq").pack


@lru_cache(maxsize=2 * MAX_SUMMARIZED_BUCKETS)
def _numbers(count: int) -> struct.Struct:
    return struct.Struct(f">{count}q")


def read_numbers(value: bytes) -> tuple[int, ...]:
    """Returns numbers of 8 bytes each: those of a summary, or of joined counters."""
    return _numbers(len(value) >> 3).unpack(value)


read_summary: Final = read_numbers


def pack_summary(since: int, begin: int, units: list[int]) -> bytes:
    return _numbers(len(units) + 2).pack(since, begin, *units)


def split_summary(
    value: bytes, summary: tuple[int, ...], first: int, last: int
) -> tuple[bytes, int]:
    """Returns a summary without the units of the bucket `last`, and those units.

    `last` is its newest bucket or a later one; buckets before `first` are dropped.

    >>> value = pack_summary(1, 3, [7, 8, 9])
    >>> head, units = split_summary(value, read_summary(value), 4, last=7)
    >>> read_summary(head + pack_units(units + 1))
    (4, 4, 8, 9, 0, 1)
    """
    cut, gap = first - summary[1], last - newest_of(summary)
    if cut >= len(summary) - 2:
        return _pack_begin(first, last), 0
    head = _pack_begin(first, first) + value[16 + 8 * cut :] if cut > 0 else value
    return (head + bytes(8 * gap - 8), 0) if gap else (head[:-8], summary[-1])


def newest_of(summary: tuple[int, ...]) -> int:
    """Returns the newest bucket that is not empty."""
    return summary[1] + len(summary) - 3


def drop_expired_summary(tx: Transaction, keys: Keys, name: str, key: bytes, stem: bytes) -> None:
    """Deletes the summary whose newest counter is at `key` below `stem`. Reads 1 key."""
    bucket = unpack(key, len(stem))[0]
    summary_key = keys.entity_key(WINDOW_SUMMARIES, name, key[len(stem) + len(pack_int(bucket)) :])
    value = tx.get(summary_key)
    if value is not None and newest_of(read_summary(value)) <= bucket:
        tx.delete(summary_key)
