"""Writes the values of one event to keys: sets, leaderboards, and their counters."""

from typing import Final

from holdfast.engine.contract import random_bytes
from holdfast.events import boards, numbers, sets, timed_counters
from holdfast.events.codec import (
    BOARD,
    GROSS_OFF,
    SCORED,
    UNBOUNDED,
    WINDOWED,
    KeyRecord,
    Value,
    prepare,
)
from holdfast.events.record_cache import RecordWriter
from holdfast.events.schema import WriteOptions
from holdfast.events.sketch import DIGEST_BYTES, digest

__all__ = ["KEEPS_NOTHING", "KeyWrites", "keeps_nothing"]

KEEPS_NOTHING: Final = "keeps nothing: `max_stored_values` is 0 and both counters are off"


def keeps_nothing(options: WriteOptions) -> bool:
    """Returns whether a handler stores neither members nor counters."""
    return (
        options.bound == 0
        and not (options.gross or options.distinct)
        and options.operation in ("add", "count_frequency")
    )


class KeyWrites:
    """Writes values with one time to any number of keys.

    An event has one of these, and each step of a background fan-out.
    """

    def __init__(self, cache: RecordWriter, at: int, score: int | None = None) -> None:
        self._cache = cache
        self._at = at
        self._score = score
        self._values: dict[bytes, Value] = {}
        self._written: list[list[bytes]] = []

    def written(self) -> int:
        """Returns how many keys were written."""
        written = self._written
        return len(written[0]) if len(written) == 1 else len(set().union(*written))

    def write(self, options: WriteOptions, keys: list[bytes], values: list[bytes]) -> str | None:
        """Writes each value to each key; returns why not, if it can't or nothing is kept."""
        operation = options.operation
        if not values:
            return None
        if options.bound == 0 and keeps_nothing(options):
            return KEEPS_NOTHING
        if operation == "aggregate":
            return self._aggregate(options, keys, values)
        if options.beside:
            records = [self._cache.board_beside(key) for key in keys]
            self._add_or_count(options, keys, records, values)
            return None
        records = self._cache.records(keys)
        board = BOARD if operation == "count_frequency" else 0
        for flags in {record.flags for record in records}:
            if flags & BOARD != board and (other := _of_other_kind(records, board)) is not None:
                return f"key {other.key.decode()} holds a {other.kind}"
        if operation == "remove":
            self._remove(options, records, values)
        else:
            self._add_or_count(options, keys, records, values)
        return None

    def _add_or_count(
        self,
        options: WriteOptions,
        keys: list[bytes],
        records: list[KeyRecord],
        values: list[bytes],
    ) -> None:
        gross, counted = (1 if options.gross else 0), options.distinct
        bound = UNBOUNDED if options.bound is None else options.bound
        cache = self._cache
        counts = options.operation == "count_frequency"
        for raw in values:
            value = self._values.get(raw) or self._prepared(raw)
            if counts:
                boards.count(
                    cache,
                    records,
                    value,
                    bound,
                    gross=gross,
                    counted=counted,
                    weight=options.weight,
                    half_life_ms=options.half_life_ms,
                )
            else:
                sets.add(
                    cache,
                    records,
                    value,
                    bound,
                    gross=gross,
                    counted=counted,
                    takes_older=options.takes_older,
                    keeps_equal=options.takes_older and self._score is not None,
                )
            if options.windowed:
                self._count_times(records, value, gross=bool(gross), counted=counted)
        if not gross and not options.beside:
            for record in records:
                record.flags |= GROSS_OFF
        lifetime_ms = options.expire_after_ms
        if lifetime_ms or cache.some_expire:
            for record in records:
                cache.extend_lifetime(record, lifetime_ms)
        self._written.append(keys)

    def _count_times(
        self, records: list[KeyRecord], value: Value, *, gross: bool, counted: bool
    ) -> None:
        """Counts a value in the counters that answer `since`."""
        cache, second = self._cache, self._at // 1_000
        for record in records:
            record.flags |= WINDOWED
            if counted:
                timed_counters.add(cache, record.key, timed_counters.VALUES, value.digest, second)
            if not gross:
                continue
            if self._score is None:
                add = random_bytes(DIGEST_BYTES)
            else:
                record.flags |= SCORED
                add = digest(b"%d %b" % (self._score, value.raw))
            timed_counters.add(cache, record.key, timed_counters.ADDS, add, second)

    def _aggregate(
        self, options: WriteOptions, keys: list[bytes], values: list[bytes]
    ) -> str | None:
        parsed = [numbers.parse_number(value) for value in values]
        if None in parsed:
            wrong = values[parsed.index(None)]
            return f"expected a number, not {wrong[:40].decode(errors='replace')!r}"
        found = [number for number in parsed if number is not None]
        numbers.write(self._cache, keys, found, self._at, options.expire_after_ms)
        self._written.append(keys)
        return None

    def _remove(self, options: WriteOptions, records: list[KeyRecord], values: list[bytes]) -> None:
        for record in records:
            removed = [sets.remove(self._cache, record, raw) for raw in values]
            if any(removed):
                record.dirty = True
                self._cache.extend_lifetime(record, options.expire_after_ms)
                self._written.append([record.key])

    def _prepared(self, raw: bytes) -> Value:
        """Returns a value with all that sets and boards need, computed once for all keys."""
        value = self._values[raw] = prepare(raw, digest(raw), self._at)
        return value


def _of_other_kind(records: list[KeyRecord], board: int) -> KeyRecord | None:
    """Returns the first of the records that exists and is not of the kind that `board` says."""
    for record in records:
        if record.flags & BOARD != board and (record.known or record.dirty):
            return record
    return None
