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

from holdfast.engine.contract import Transaction
from holdfast.keys import pack_int, unpack
from holdfast.limits import MAX_TALLIED_BUCKETS
from holdfast.metrics.layout import TALLIES, Keys


@lru_cache(maxsize=2 * MAX_TALLIED_BUCKETS)
def _numbers(count: int) -> struct.Struct:
    return struct.Struct(f">{count}q")


def read_tally(value: bytes) -> tuple[int, ...]:
    """`since`, `begin`, and the units of each bucket from there on."""
    return _numbers(len(value) >> 3).unpack(value)


def pack_tally(since: int, begin: int, units: list[int]) -> bytes:
    return _numbers(len(units) + 2).pack(since, begin, *units)


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
