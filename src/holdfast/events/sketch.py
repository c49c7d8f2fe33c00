"""Estimates how many different values there were, in 8 KiB: a sketch like HyperLogLog.

A value's digest chooses one of 8,192 registers and a rank: rank k comes up with probability 2^-k. A
HyperLogLog register remembers the highest rank that it has seen. One of these also remembers
whether the two ranks below it came up, in the two bits that a byte has to spare, which is worth
28 % of the space at the same error. (Otmar Ertl describes the form as UltraLogLog.)

The estimate maximizes the likelihood: no table of corrections and no switch between formulas, from
the first value to the billionth. Its standard error is
0.76 / sqrt(8192), 0.84 %.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import expm1
from typing import Final

__all__ = [
    "DIGEST_BYTES",
    "EMPTY",
    "digest",
    "estimate",
    "maximum_likelihood",
    "merged_estimate",
    "update",
]

DIGEST_BYTES: Final = 6  # two of 256 values have the same digest once in ten billion keys
REGISTERS: Final = 8_192  # the first 13 bits of a digest; the other 35 make the rank
EMPTY: Final = bytes(REGISTERS)

_DIGEST: Final = struct.Struct(">HI")
_RANK_BITS: Final = DIGEST_BYTES * 8 - 13
_HIGHEST_RANK: Final = _RANK_BITS + 1


def digest(value: bytes) -> bytes:
    """Returns the digest of a value. It is stored, so it never changes."""
    return blake2b(value, digest_size=DIGEST_BYTES).digest()


def update(registers: bytes, digests: bytes) -> bytes:
    """Returns `registers` after the values whose concatenated digests are `digests`.

    >>> round(estimate(update(EMPTY, digest(b"a") + digest(b"b") + digest(b"a"))))
    2
    """
    changed = bytearray(registers)
    by_rank = _registers_after()
    # The three bits after those of the register decide the rank, unless none of them is set.
    by_high = [b""] + [by_rank[_RANK_BITS - 32 - bits.bit_length() + 1] for bits in range(1, 8)]
    for high, low in _DIGEST.iter_unpack(digests):
        index = high >> 3
        grown = by_high[high & 7] or by_rank[_HIGHEST_RANK - low.bit_length()]
        changed[index] = grown[changed[index]]
    return bytes(changed)


@lru_cache(maxsize=1)
def _registers_after() -> list[bytes]:
    """Returns, by rank, what each register becomes when that rank comes up."""
    highest_register = _HIGHEST_RANK << 2 | 3
    return [
        bytes(_register_after(register, rank) for register in range(highest_register + 1))
        for rank in range(_HIGHEST_RANK + 1)
    ]


def _register_after(register: int, rank: int) -> int:
    highest = register >> 2
    if rank > highest:
        # The window of three ranks moves up: its two lower bits are what is still inside.
        window = register & 3 | 4 if register else 0
        return rank << 2 | (window >> (rank - highest)) & 3
    if highest - 2 <= rank < highest:
        return register | 4 >> (highest - rank)
    return register


def estimate(registers: bytes) -> float:
    """Returns how many different values the registers have seen."""
    return _maximum_likelihood(Counter(registers).items())


def union(sketches: Sequence[bytes]) -> bytes:
    """Returns the sketch of all values that these have seen."""
    return bytes(_union(registers) for registers in zip(*sketches, strict=True))


def merged_estimate(sketches: Sequence[bytes]) -> float:
    """Returns how many different values all of the sketches have seen together."""
    together: Counter[int] = Counter()
    for registers, count in Counter(zip(*sketches, strict=True)).items():
        together[_union(registers)] += count
    return _maximum_likelihood(together.items())


def _union(registers: Iterable[int]) -> int:
    """Returns the register that has seen all that these have seen."""
    seen = 0  # bit k: rank k came up
    for register in registers:
        if register:
            seen |= (register & 3 | 4) << (register >> 2) >> 2
    if not seen:
        return 0
    highest = seen.bit_length() - 1
    return highest << 2 | (seen << 2 >> highest) & 3


def _maximum_likelihood(registers: Iterable[tuple[int, int]]) -> float:
    missing, came_up = _observations(registers)
    return maximum_likelihood(missing, came_up, _RANK_BITS) * REGISTERS


def maximum_likelihood(missing: float, came_up: Sequence[int], rank_bits: int) -> float:
    """Returns the number of values per register that makes the observed ranks likeliest.

    With x values per register on average, rank k has come up with probability 1 - exp(-x p), where
    p = 2^-k. A register shows some ranks that came up and of some that did not, so

        log-likelihood(x) = -x * missing + sum over k of came_up[k] * log(1 - exp(-x p))

    with `missing` the sum of p over all ranks that did not. Its derivative falls and is convex:
    Newton's method from the left finds the zero without ever stepping over it.
    """
    total = sum(came_up)
    if not total:
        return 0.0
    ranks = [(n, 2.0 ** -min(rank, rank_bits)) for rank, n in enumerate(came_up) if n]
    if not missing:  # every rank of every register has come up: no digest could tell more
        return float(1 << rank_bits)
    x = total / (missing + sum(count * p for count, p in ranks) / 2)  # left of the zero
    for _ in range(64):
        slope = value = 0.0
        for count, p in ranks:
            growth = expm1(x * p)
            term = count * p / growth
            value += term
            slope += term * p * (growth + 1) / growth
        step = (value - missing) / slope
        x += step
        if step < x * 1e-9:
            break
    return x


def _observations(registers: Iterable[tuple[int, int]]) -> tuple[float, list[int]]:
    """Returns the summed probability of ranks that did not come up, and how often each did."""
    missing = 0.0
    came_up = [0] * (_HIGHEST_RANK + 1)
    for register, count in registers:
        highest = register >> 2
        if not highest:
            missing += count
            continue
        came_up[highest] += count
        if highest < _HIGHEST_RANK:
            missing += count * 2.0**-highest
        for below, bit in ((1, 2), (2, 1)):
            if (rank := highest - below) < 1:
                continue
            if register & bit:
                came_up[rank] += count
            else:
                missing += count * _probability(rank)
    return missing, came_up


def _probability(rank: int) -> float:
    return 2.0 ** -min(rank, _RANK_BITS)
