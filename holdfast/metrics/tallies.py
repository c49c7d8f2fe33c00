"""Tallies: all that a limiter counts for one entity, in one record beside the counters.

The counters of the buckets are the truth. A tally repeats those of one entity and one condition
from a bucket on, so that a hit reads one record where it would read a counter for each bucket:

    since, begin, units of bucket begin, of bucket begin + 1, ...   8 bytes each, big-endian

It holds every counter of its entity from `since` on, and before `begin` there is none, because
whoever adds to one of them writes the tally too, or deletes it. The newest of them is not 0, and
when that one expires the tally goes with it. Whoever finds none reads the counters and makes one.
"""

import struct
from functools import lru_cache
from typing import Final

from holdfast.engine.contract import Transaction
from holdfast.keys import pack_int, unpack
from holdfast.limits import MAX_TALLIED_BUCKETS
from holdfast.metrics.layout import TALLIES, Keys

pack_units: Final = struct.Struct(">q").pack  # of one bucket
_pack_begin: Final = struct.Struct(">qq").pack


@lru_cache(maxsize=2 * MAX_TALLIED_BUCKETS)
def _numbers(count: int) -> struct.Struct:
    return struct.Struct(f">{count}q")


def read_tally(value: bytes) -> tuple[int, ...]:
    """`since`, `begin`, and the units of each bucket from there on."""
    return _numbers(len(value) >> 3).unpack(value)


def pack_tally(since: int, begin: int, units: list[int]) -> bytes:
    return _numbers(len(units) + 2).pack(since, begin, *units)


def moved_tally(value: bytes, tally: tuple[int, ...], first: int, last: int, amount: int) -> bytes:
    """What `value`, which is `tally`, becomes when `amount` is added to the bucket `last`, its
    newest one or a later one, and nothing before `first` is asked for any more.

    >>> value = pack_tally(1, 3, [7, 8, 9])
    >>> [read_tally(moved_tally(value, read_tally(value), 4, last, 1)) for last in (5, 7)]
    [(4, 4, 8, 10), (4, 4, 8, 9, 0, 1)]
    """
    since, begin = tally[0], tally[1]
    cut, gap = first - begin, last - newest_of(tally)
    if cut >= len(tally) - 2:
        return _pack_begin(first, last) + pack_units(amount)
    head = _pack_begin(first, first) if cut > 0 else _pack_begin(since, begin)
    units = value[16 + 8 * cut :] if cut > 0 else value[16:]
    if gap == 0:
        return head + units[:-8] + pack_units(tally[-1] + amount)
    return head + units + bytes(8 * gap - 8) + pack_units(amount)


def newest_of(tally: tuple[int, ...]) -> int:
    """The newest bucket that is not empty."""
    return tally[1] + len(tally) - 3


def drop_expired_tally(tx: Transaction, keys: Keys, name: str, key: bytes, stem: bytes) -> None:
    """Deletes the tally whose newest counter is at `key` below `stem`. Reads 1 key."""
    bucket = unpack(key, len(stem))[0]
    place = keys.of_entity(TALLIES, name, key[len(stem) + len(pack_int(bucket)) :])
    value = tx.get(place)
    if value is not None and newest_of(read_tally(value)) <= bucket:
        tx.delete(place)
