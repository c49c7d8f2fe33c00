"""Numbers of a key: count, sum, extremes, the last one, and percentiles.

Percentiles come from a histogram whose buckets grow by 2 %, so a percentile is within 1 % of a
value that was added. Integers add up exactly, as far as 64 bits reach; a sum of floats is
compensated for rounding errors (Neumaier), so that a million small amounts do not drift.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, copysign, exp, isfinite, log
from typing import Final

import msgspec

from holdfast import expiry
from holdfast.engine.contract import Reader, Transaction
from holdfast.errors import BadInput
from holdfast.events.layout import keys_of
from holdfast.events.record_cache import RecordWriter
from holdfast.events.records import Aggregate
from holdfast.limits import MAX_NUMBER_BUCKETS, MAX_NUMBER_MAGNITUDE

__all__ = [
    "NUMBERS_KIND",
    "Numbers",
    "aggregate",
    "parse_number",
    "read",
    "remove_numbers",
    "write",
]

NUMBERS_KIND: Final = "events.numbers"  # the numbers of a key expire

_GROWTH: Final = log(1.02)
_LARGEST: Final = 2**63 - 1  # of an integer that every client can read
_MIDDLE: Final = 2 / 2.02  # of a bucket, from its upper end


class Numbers(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The numbers of a key, as they are stored."""

    count: int = 0
    sum: int | float = 0
    lost: float = 0.0  # the rounding error of the sum
    min: int | float = 0
    max: int | float = 0
    last: int | float = 0
    last_at: int = -1
    zeros: int = 0
    positive: dict[int, int] = {}  # buckets of values, and of the magnitudes of negative ones
    negative: dict[int, int] = {}
    expires_ms: int = 0
    lifetime_ms: int = 0
    scheduled_ms: int = 0

    def add(self, number: int | float, at: int) -> None:
        self.min = min(self.min, number) if self.count else number
        self.max = max(self.max, number) if self.count else number
        self.count += 1
        self._add_to_sum(number)
        if at >= self.last_at:
            self.last, self.last_at = number, at
        if not number:
            self.zeros += 1
            return
        buckets = self.positive if number > 0 else self.negative
        index = ceil(log(abs(number)) / _GROWTH)
        buckets[index] = buckets.get(index, 0) + 1
        if len(buckets) > MAX_NUMBER_BUCKETS:
            _merge_smallest(buckets)

    def _add_to_sum(self, number: int | float) -> None:
        total = self.sum + number
        if isinstance(total, int):
            self.sum = _storable(total)
            self.lost += total - int(self.sum)
            return
        larger, smaller = (self.sum, number) if abs(self.sum) >= abs(number) else (number, self.sum)
        self.lost += (larger - total) + smaller
        self.sum = total

    def merge(self, other: "Numbers") -> None:
        if not other.count:
            return
        self.min = min(self.min, other.min) if self.count else other.min
        self.max = max(self.max, other.max) if self.count else other.max
        self.count += other.count
        self._add_to_sum(other.sum)
        self.lost += other.lost
        if other.last_at >= self.last_at:
            self.last, self.last_at = other.last, other.last_at
        self.zeros += other.zeros
        for own, given in ((self.positive, other.positive), (self.negative, other.negative)):
            for index, count in given.items():
                own[index] = own.get(index, 0) + count

    def total(self) -> int | float:
        return self.sum + self.lost if self.lost else self.sum

    def percentile(self, percent: float) -> float:
        """Returns the value below which `percent` of all lie."""
        if percent in (0, 100):
            return self.max if percent else self.min
        rank = percent / 100 * (self.count - 1)
        for value, count in self._buckets():
            rank -= count
            if rank < 0:
                return min(max(value, self.min), self.max)
        return float(self.max)

    def _buckets(self) -> Iterable[tuple[float, int]]:
        for index in sorted(self.negative, reverse=True):
            yield copysign(exp(index * _GROWTH) * _MIDDLE, -1), self.negative[index]
        yield 0.0, self.zeros
        for index in sorted(self.positive):
            yield exp(index * _GROWTH) * _MIDDLE, self.positive[index]


def _merge_smallest(buckets: dict[int, int]) -> None:
    first, second = sorted(buckets)[:2]
    buckets[second] += buckets.pop(first)


_decode: Final = msgspec.msgpack.Decoder(Numbers).decode
_encode: Final = msgspec.msgpack.Encoder().encode


def parse_number(text: bytes) -> int | float | None:
    """Returns the number that a value is, or None.

    >>> [parse_number(text) for text in (b"12", b"-0.5", b"twelve", b"nan", b"1_000")]
    [12, -0.5, None, None, None]
    """
    if text.find(b"_") >= 0:
        return None  # Python would accept it as a number
    try:
        number: int | float = int(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            return None
    if not isfinite(number) or abs(number) > MAX_NUMBER_MAGNITUDE:
        return None
    return _storable(number)


def _storable(number: int | float) -> int | float:
    """Returns the number, an integer of more than 64 bits as the nearest float: none is stored."""
    return number if -_LARGEST <= number <= _LARGEST else float(number)


def write(
    cache: RecordWriter, keys: Sequence[bytes], numbers: Sequence[int | float], at: int, life: int
) -> None:
    """Adds numbers to each key. Reads and writes 1 key for each."""
    for key in keys:
        stored_key = cache.keys.numbers(key)
        held = _unexpired(cache.get(stored_key), cache.now_ms)
        for number in numbers:
            held.add(number, at)
        held.lifetime_ms = life or held.lifetime_ms
        if held.lifetime_ms:
            held.expires_ms = cache.now_ms + held.lifetime_ms
            if not held.scheduled_ms or held.expires_ms < held.scheduled_ms:
                held.scheduled_ms = held.expires_ms
                cache.schedule(held.expires_ms / 1_000, NUMBERS_KIND, key)
        cache.put(stored_key, _encode(held))
        cache.note_changed(key, b"numbers")


def read(reader: Reader, key: bytes) -> Numbers:
    """Returns the numbers of a key. Reads 1 key."""
    return _unexpired(reader.get(keys_of(reader.space).numbers(key)), expiry.to_ms(reader.now))


def _unexpired(stored: bytes | None, now_ms: int) -> Numbers:
    if stored is None:
        return Numbers(positive={}, negative={})
    held = _decode(stored)
    if held.expires_ms and held.expires_ms <= now_ms:
        return Numbers(positive={}, negative={})
    return held


def is_unexpired(stored: bytes, now_ms: int) -> bool:
    return _unexpired(stored, now_ms).count > 0


def remove_numbers(tx: Transaction, subject: bytes) -> bool:
    """Removes numbers that have expired; runs again later if they were written to since."""
    key = keys_of(tx.space).numbers(subject)
    stored = tx.get(key)
    if stored is None:
        return True
    held = _decode(stored)
    if held.expires_ms and held.expires_ms <= expiry.to_ms(tx.now):
        tx.delete(key)
    elif held.expires_ms:
        held.scheduled_ms = expiry.schedule(tx, held.expires_ms / 1_000, NUMBERS_KIND, subject)
        tx.put(key, _encode(held))
    return True


def aggregate(held: Iterable[Numbers], percentiles: Sequence[float]) -> Aggregate:
    """Returns the aggregate of the numbers of several keys."""
    if not isinstance(percentiles, list | tuple) or len(percentiles) > 100:
        raise BadInput("percentiles must be a list of at most 100 numbers")
    for each in percentiles:
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 <= each <= 100:
            raise BadInput(f"a percentile must be a number from 0 to 100, not {each!r}")
    together = Numbers(positive={}, negative={})
    for numbers in held:
        together.merge(numbers)
    if not together.count:
        return Aggregate(count=0)
    total = together.total()
    return Aggregate(
        count=together.count,
        sum=total,
        min=together.min,
        max=together.max,
        avg=total / together.count,
        last=together.last,
        percentiles={f"p{each:.15g}": together.percentile(each) for each in percentiles},
    )


def value_of(found: Aggregate, by: str) -> int | float | None:
    """Returns one number of an aggregate, by its name in a series."""
    if by.startswith("p"):
        percentiles: Mapping[str, float] = found.percentiles
        return percentiles.get(by)
    value: int | float | None = getattr(found, by)
    return value
