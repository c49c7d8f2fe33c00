"""Timed counters: how many different values were added after a given time.

Up to 256 values, the digest of each is kept with the second of its last add, and the count is
exact. Beyond, a digest chooses one of 2,048 registers and a rank, as in HyperLogLog. A register
keeps a staircase of (rank, second) pairs: a pair is dropped when another one has at least its rank
and is at least as late. For any `since`, the value of a register is the highest rank after that
time, so one structure answers every `since`, with a standard error of 2.3 %. Two counters are
merged by merging their staircases.

A key has two of these: one counts values, the other adds. An add with a score is identified by
score and value, so that a log that is sent twice counts once; any other add has a random digest.
"""

import struct
from collections.abc import Iterable
from itertools import islice
from typing import Final, TypeAlias

from holdfast.engine.contract import Reader
from holdfast.events.layout import Keys
from holdfast.events.record_cache import RecordWriter
from holdfast.events.sketch import DIGEST_BYTES, maximum_likelihood
from holdfast.keys import pack_int, prefix_range
from holdfast.limits import EXACT_DISTINCT

__all__ = ["ADDS", "STANDARD_ERROR", "VALUES", "TimedCounter", "add", "read", "store"]

VALUES: Final = 0  # the counters of a key
ADDS: Final = 1

STANDARD_ERROR: Final = 0.023
REGISTERS: Final = 2_048
ROW_REGISTERS: Final = 32
_RANK_BITS: Final = DIGEST_BYTES * 8 - 11
_IN_ROWS: Final = b"\xff"  # the list of a counter that has rows
_ENTRY: Final = struct.Struct(f">{DIGEST_BYTES}sI")  # digest, second
_PAIR: Final = struct.Struct(">BI")  # rank, second

Staircase: TypeAlias = list[tuple[int, int]]  # (rank, second)


def _register_of(digest: bytes) -> tuple[int, int]:
    """Returns the register and the rank of a digest."""
    number = int.from_bytes(digest, "big")
    rest = number & ((1 << _RANK_BITS) - 1)
    return number >> _RANK_BITS, _RANK_BITS + 1 - rest.bit_length()


def _insert(staircase: Staircase, rank: int, second: int) -> bool:
    """Adds a pair and drops those that it beats; returns whether anything changed."""
    for other_rank, other_second in staircase:
        if other_rank >= rank and other_second >= second:
            return False
    staircase[:] = [pair for pair in staircase if pair[0] > rank or pair[1] > second]
    staircase.append((rank, second))
    return True


class TimedCounter:
    """Digests with their seconds: each of them, or staircases in registers."""

    def __init__(self, entries: dict[bytes, int] | None = None) -> None:
        self.entries: dict[bytes, int] | None = {} if entries is None else entries
        self.registers: dict[int, Staircase] = {}

    def merge(self, other: "TimedCounter") -> None:
        """Counts all that `other` has counted."""
        if self.entries is not None and other.entries is not None:
            for digest, second in other.entries.items():
                self.entries[digest] = max(second, self.entries.get(digest, 0))
            return
        self.use_registers()
        if other.entries is not None:
            self._add_entries(other.entries)
        for register, staircase in other.registers.items():
            own = self.registers.setdefault(register, [])
            for rank, second in staircase:
                _insert(own, rank, second)

    def use_registers(self) -> None:
        entries, self.entries = self.entries, None
        self._add_entries(entries or {})

    def _add_entries(self, entries: dict[bytes, int]) -> None:
        for digest, second in entries.items():
            register, rank = _register_of(digest)
            _insert(self.registers.setdefault(register, []), rank, second)

    def since(self, second: int) -> "TimedCounter":
        """Returns a counter of what was added after `second`."""
        if self.entries is not None:
            return TimedCounter({d: at for d, at in self.entries.items() if at > second})
        later = TimedCounter()
        later.entries = None
        for register, staircase in self.registers.items():
            kept = [pair for pair in staircase if pair[1] > second]
            if kept:
                later.registers[register] = kept
        return later

    def count(self) -> float:
        if self.entries is not None:
            return len(self.entries)
        return _estimate(max(rank for rank, _ in pairs) for pairs in self.registers.values())


def _estimate(ranks: Iterable[int]) -> float:
    """Returns the number of values that makes the highest ranks of the registers likeliest."""
    came_up = [0] * (_RANK_BITS + 2)
    missing = 0.0
    registers = 0
    for rank in ranks:
        registers += 1
        came_up[rank] += 1
        if rank <= _RANK_BITS:
            missing += 2.0**-rank
    missing += REGISTERS - registers
    return maximum_likelihood(missing, came_up, _RANK_BITS) * REGISTERS


# --- stored ---------------------------------------------------------------------------------------


def add(cache: RecordWriter, key: bytes, counter: int, digest: bytes, second: int) -> None:
    """Counts a digest. Reads 1 or 2 keys, writes 1."""
    list_key = cache.keys.timed(key, counter)
    stored = cache.get(list_key) or b""
    if stored == _IN_ROWS:
        _add_to_row(cache, list_key, digest, second)
        return
    at = _find(stored, digest)
    entry = _ENTRY.pack(digest, second)
    if at >= 0:
        if stored[at + DIGEST_BYTES : at + _ENTRY.size] < entry[DIGEST_BYTES:]:
            cache.put(list_key, stored[:at] + entry + stored[at + _ENTRY.size :])
    elif len(stored) < EXACT_DISTINCT * _ENTRY.size:
        cache.put(list_key, stored + entry)
    else:
        grown = TimedCounter(_entries(stored + entry))
        grown.use_registers()
        _store_rows(cache, list_key, grown)


def _find(stored: bytes, digest: bytes) -> int:
    at = stored.find(digest)
    while at >= 0 and at % _ENTRY.size:  # found across two entries
        at = stored.find(digest, at + 1)
    return at


def _add_to_row(cache: RecordWriter, list_key: bytes, digest: bytes, second: int) -> None:
    register, rank = _register_of(digest)
    number, position = divmod(register, ROW_REGISTERS)
    row_key = list_key + pack_int(number)
    row = _unpack_row(cache.get(row_key) or b"")
    if _insert(row.setdefault(position, []), rank, second):
        cache.put(row_key, _pack_row(row))


def store(cache: RecordWriter, key: bytes, counter: int, timed: TimedCounter) -> None:
    """Stores a whole counter at a key that has none."""
    list_key = cache.keys.timed(key, counter)
    if timed.entries is not None and len(timed.entries) <= EXACT_DISTINCT:
        packed = (_ENTRY.pack(digest, second) for digest, second in timed.entries.items())
        cache.put(list_key, b"".join(packed))
        return
    if timed.entries is not None:
        timed.use_registers()
    _store_rows(cache, list_key, timed)


def _store_rows(cache: RecordWriter, list_key: bytes, timed: TimedCounter) -> None:
    cache.put(list_key, _IN_ROWS)
    rows: dict[int, dict[int, Staircase]] = {}
    for register, staircase in timed.registers.items():
        number, position = divmod(register, ROW_REGISTERS)
        rows.setdefault(number, {})[position] = staircase
    for number, row in rows.items():
        cache.put(list_key + pack_int(number), _pack_row(row))


def read(reader: Reader, keys: Keys, key: bytes, counter: int) -> TimedCounter:
    """Returns a counter of a key. Reads 1 key, or up to 65."""
    list_key = keys.timed(key, counter)
    stored = reader.get(list_key) or b""
    if stored != _IN_ROWS:
        return TimedCounter(_entries(stored))
    timed = TimedCounter()
    timed.entries = None
    begin, end = prefix_range(list_key)
    rows = reader.scan(begin + b"\x00", end, limit=REGISTERS // ROW_REGISTERS)
    numbers = {list_key + pack_int(n): n for n in range(REGISTERS // ROW_REGISTERS)}
    for row_key, row in rows:
        for position, staircase in _unpack_row(row).items():
            timed.registers[numbers[row_key] * ROW_REGISTERS + position] = staircase
    return timed


def _entries(stored: bytes) -> dict[bytes, int]:
    return dict(_ENTRY.iter_unpack(stored))


def _pack_row(row: dict[int, Staircase]) -> bytes:
    """Encodes registers: for each, its position, the number of its pairs, and the pairs."""
    return b"".join(
        bytes((position, len(pairs))) + b"".join(_PAIR.pack(*pair) for pair in pairs)
        for position, pairs in sorted(row.items())
    )


def _unpack_row(stored: bytes) -> dict[int, Staircase]:
    row: dict[int, Staircase] = {}
    at = 0
    while at < len(stored):
        position, count = stored[at], stored[at + 1]
        at += 2
        end = at + count * _PAIR.size
        row[position] = list(islice(_PAIR.iter_unpack(stored[at:end]), count))
        at = end
    return row
