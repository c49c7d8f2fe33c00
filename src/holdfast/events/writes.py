"""Writing the values of one event to keys: sets, leaderboards, and their counters."""

from holdfast.events import boards, sets
from holdfast.events.codec import BOARD, GROSS_OFF, UNBOUNDED, Record, Value, pack_time, prepare
from holdfast.events.record_cache import RecordWriter
from holdfast.events.schema import WriteOptions
from holdfast.events.sketch import digest

__all__ = ["KeyWrites"]


class KeyWrites:
    """Writes values with one time to any number of keys.

    An event has one of these, and each step of a background fan-out.
    """

    def __init__(self, cache: RecordWriter, at: int) -> None:
        self._cache = cache
        self._at = at
        self._values: dict[bytes, Value] = {}
        self.written: set[bytes] = set()

    def write(self, options: WriteOptions, keys: list[bytes], values: list[bytes]) -> str | None:
        """Writes each value to each key; returns why not, if a key holds another kind."""
        if not values:
            return None
        records = self._cache.records(keys)
        board = BOARD if options.operation == "count_frequency" else 0
        for record in records:
            if record.flags & BOARD != board and (record.known or record.dirty):
                return f"key {record.key.decode()} holds a {record.kind}"
        if options.operation == "remove":
            self._remove(options, records, values)
        else:
            self._add_or_count(options, keys, records, values)
        return None

    def _add_or_count(
        self, options: WriteOptions, keys: list[bytes], records: list[Record], values: list[bytes]
    ) -> None:
        gross, counted = (1 if options.gross else 0), options.distinct
        bound = UNBOUNDED if options.bound is None else options.bound
        if not (bound or gross or counted):
            return  # neither members nor counters: nothing is kept
        add = boards.count if options.operation == "count_frequency" else sets.add
        cache = self._cache
        for value in self._prepared(values):
            add(cache, records, value, bound, gross=gross, counted=counted)
        if not gross:
            for record in records:
                record.flags |= GROSS_OFF
        lifetime_ms = options.expire_after_ms
        for record in records if lifetime_ms or cache.some_expire else ():
            cache.extend_lifetime(record, lifetime_ms)
        self.written.update(keys)

    def _remove(self, options: WriteOptions, records: list[Record], values: list[bytes]) -> None:
        for record in records:
            removed = [sets.remove(self._cache, record, raw) for raw in values]
            if any(removed):
                record.dirty = True
                self._cache.extend_lifetime(record, options.expire_after_ms)
                self.written.add(record.key)

    def _prepared(self, raws: list[bytes]) -> list[Value]:
        """Returns values with all that sets and boards need, computed once for all keys."""
        at = self._at
        time = pack_time(at)
        prepared = []
        for raw in raws:
            value = self._values.get(raw)
            if value is None:
                value = self._values[raw] = prepare(raw, digest(raw), at, time)
            prepared.append(value)
        return prepared
