"""Fan-outs that are too large for one transaction and continue in background steps.

A handler with `"fan_out": "background"` whose targets expand too far stores a `FanOut` in the
transaction of its event: what to write, and the members to write it for. Bounded steps continue it
through the mechanism that removes expired data: the server's background task, in a library later
writes and `store.sweep()`, or `continue_fan_outs` to do it at once. Each step commits its writes
together with its cursor, so a crash repeats nothing and loses nothing.

The members are those at the moment of the event, see snapshots.py. They come from the last look-up
of a chain: from the rows of each large set, and from one list that holds the members of small sets
or the values of a list attribute.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast import expiry
from holdfast.engine.contract import Reader, Transaction, random_bytes
from holdfast.errors import BadInput, ExpandsTooFar
from holdfast.events import sets
from holdfast.events.codec import FANNED_OUT
from holdfast.events.layout import keys_of
from holdfast.events.record_cache import RecordWriter
from holdfast.events.records import FanOutReport
from holdfast.events.schema import WriteOptions
from holdfast.events.snapshots import Snapshot
from holdfast.events.writes import KeyWrites
from holdfast.keys import prefix_range, unpack
from holdfast.limits import (
    FAN_OUT_STEP_WRITES,
    FINISHED_FAN_OUT_SECONDS,
    MAX_EVENT_KEY_BYTES,
    MAX_EVENT_WRITES,
    MAX_FAN_OUT_COMBINATIONS,
    MAX_FAN_OUT_KEYS,
    MAX_FAN_OUTS,
    MAX_MERGED_KEYS,
)

__all__ = [
    "FAN_OUT_KIND",
    "FINISHED_KIND",
    "Members",
    "begin",
    "continue_fan_out",
    "remove_finished",
    "reports",
    "unfinished",
]

FAN_OUT_KIND: Final = "events.fan_out"  # the subject is the id
FINISHED_KIND: Final = "events.fan_out.finished"


class FanOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fan-out as it is stored."""

    handler: str
    schema: str
    options: WriteOptions
    at: int
    score: int | None = None
    values: list[bytes]
    before: list[bytes]  # parts of keys before a member, and after it
    after: list[bytes]
    generations: list[int] = []
    has_list: bool = False
    total: int = 0  # members
    source: int = 0  # the list, then each generation
    cursor: bytes = b""  # in a generation
    position: int = 0  # in the list
    done: int = 0  # members
    failed: int = 0  # keys
    error: str = ""
    started_ms: int = 0
    finished_ms: int = 0

    def report(self, id: bytes) -> FanOutReport:
        per_member = len(self.before) * len(self.after)
        return FanOutReport(
            id=id.hex(),
            handler=self.handler,
            schema=self.schema,
            keys=self.total * per_member,
            done=self.done * per_member,
            failed=self.failed,
            error=self.error or None,
            started=self.started_ms,
            finished=self.finished_ms or None,
        )


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(FanOut).decode
_decode_list: Final = msgspec.msgpack.Decoder(list[bytes]).decode


class Members:
    """The members that a fan-out writes for: large sets, and a list of all others."""

    def __init__(self, listed: Sequence[bytes] = ()) -> None:
        self.listed = dict.fromkeys(listed)
        self.sets: list[bytes] = []  # keys
        self.total = len(self.listed)

    def look_up(self, cache: RecordWriter, keys: Sequence[bytes]) -> None:
        """Adds the members of the sets with these keys."""
        if len(keys) > MAX_MERGED_KEYS:
            raise ExpandsTooFar(
                f"looks up {len(keys)} sets, a background fan-out reads at most {MAX_MERGED_KEYS}"
            )
        for key in keys:
            record = cache.record(key)
            if record.is_board or record.is_count:
                continue
            if record.has_rows:
                self.sets.append(key)
                self.total += record.size
            else:
                values = sets.newest_values(cache, record, record.bound)
                self.total -= len(self.listed)
                self.listed.update(dict.fromkeys(values))
                self.total += len(self.listed)
        if len(self.listed) > MAX_EVENT_WRITES:
            raise ExpandsTooFar(
                f"expands to {len(self.listed)} members of small sets, "
                f"the limit is {MAX_EVENT_WRITES}"
            )


# --- beginning ----------------------------------------------------------------------------------


def begin(
    cache: RecordWriter,
    *,
    handler: str,
    schema: str,
    options: WriteOptions,
    at: int,
    score: int | None,
    values: list[bytes],
    parts: tuple[list[bytes], Members, list[bytes]],
) -> FanOutReport:
    """Stores a fan-out, to be continued after the commit.

    Reads 1 key for each set, writes 3 and 2 for each large set.
    """
    before, members, after = parts
    _check(before, members, after, values)
    id = random_bytes(8)
    records = [cache.record(key) for key in members.sets]
    for record in records:
        record.flags |= FANNED_OUT
        record.dirty = True
        cache.put(cache.keys.fan_out_source(record.generation, id), b"")
    if members.listed:
        cache.put(cache.keys.fan_out_list(id), _encode(list(members.listed)))
    fan_out = FanOut(
        handler=handler,
        schema=schema,
        options=options,
        at=at,
        score=score,
        values=values,
        before=before,
        after=after,
        generations=[record.generation for record in records],
        has_list=bool(members.listed),
        total=members.total,
        source=0 if members.listed else 1,
        started_ms=cache.now_ms,
    )
    cache.put(cache.keys.fan_out(id), _encode(fan_out))
    cache.begin_work(FAN_OUT_KIND, id)
    return fan_out.report(id)


def _check(before: list[bytes], members: Members, after: list[bytes], values: list[bytes]) -> None:
    combinations = len(before) * len(after) * max(1, len(values))
    if combinations > MAX_FAN_OUT_COMBINATIONS:
        raise ExpandsTooFar(
            f"makes {combinations} writes for each member, "
            f"a background fan-out makes at most {MAX_FAN_OUT_COMBINATIONS}"
        )
    keys = members.total * len(before) * len(after)
    if keys > MAX_FAN_OUT_KEYS:
        raise ExpandsTooFar(f"expands to {keys} keys, the limit is {MAX_FAN_OUT_KEYS}")


# --- continuing ---------------------------------------------------------------------------------


def continue_fan_out(tx: Transaction, subject: bytes) -> bool:
    """Makes the next step of a fan-out; returns True when it is done.

    Reads and writes about 500 keys.
    """
    key = keys_of(tx.space).fan_out(subject)
    stored = tx.get(key)
    if stored is None:
        return True
    fan_out = _Step(tx, subject, _decode(stored)).run()
    if not fan_out.finished_ms:
        tx.put(key, _encode(fan_out))
        return False
    tx.delete(key)
    tx.put(keys_of(tx.space).fan_out(subject, finished=True), _encode(fan_out))
    return True


class _Step:
    """One step of a fan-out, in one transaction."""

    def __init__(self, tx: Transaction, id: bytes, fan_out: FanOut) -> None:
        self._tx = tx
        self._id = id
        self._fan_out = fan_out
        self._cache = RecordWriter(tx)
        self._writes = KeyWrites(self._cache, fan_out.at, fan_out.score)
        per_member = len(fan_out.before) * len(fan_out.after) * max(1, len(fan_out.values))
        self._limit = max(1, FAN_OUT_STEP_WRITES // per_member)
        self._failed = fan_out.failed
        self._error = fan_out.error

    def run(self) -> FanOut:
        fan_out = self._fan_out
        if fan_out.source == 0:
            changes = self._continue_list()
        elif fan_out.source <= len(fan_out.generations):
            changes = self._continue_generation(fan_out.generations[fan_out.source - 1])
        else:
            self._clean_up()
            changes = {"finished_ms": self._cache.now_ms, "done": fan_out.total}
        self._cache.finish()
        return msgspec.structs.replace(fan_out, **changes, failed=self._failed, error=self._error)

    def _continue_list(self) -> dict[str, object]:
        fan_out = self._fan_out
        end = fan_out.position + self._limit
        listed = self._listed()
        members = listed[fan_out.position : end]
        self._write_for(members)
        is_end = end >= len(listed)
        return {
            "position": end,
            "done": fan_out.done + len(members),
            "source": 1 if is_end else 0,
        }

    def _continue_generation(self, generation: int) -> dict[str, object]:
        fan_out = self._fan_out
        snapshot = Snapshot(self._tx, self._id, generation)
        members, cursor = snapshot.members(fan_out.cursor, self._limit)
        seen = self._seen_before(members)
        self._write_for([member for part, member in members if part not in seen])
        done = fan_out.done + len(members)
        if cursor is None:
            return {"cursor": b"", "source": fan_out.source + 1, "done": done}
        if len(fan_out.generations) == 1:
            # Changes before the cursor need no notes. With several sets, each is asked about the
            # members of the others until the end.
            self._tx.put(keys_of(self._tx.space).fan_out_source(generation, self._id), cursor)
        return {"cursor": cursor, "done": done}

    def _seen_before(self, members: list[tuple[bytes, bytes]]) -> set[bytes]:
        """Returns the parts of members that an earlier source had too."""
        fan_out = self._fan_out
        listed = set(self._listed()) if fan_out.has_list else set()
        seen = {part for part, member in members if member in listed}
        for generation in fan_out.generations[: fan_out.source - 1]:
            earlier = Snapshot(self._tx, self._id, generation)
            seen.update(part for part, _ in members if earlier.contains(part))
        return seen

    def _write_for(self, members: list[bytes]) -> None:
        """Writes for all members at once, or one by one if a key among them can't be written."""
        fan_out = self._fan_out
        keys = [
            before + member + after
            for member in members
            for before in fan_out.before
            for after in fan_out.after
        ]
        error = self._write(list(dict.fromkeys(keys)))
        if error is None:
            return
        for key in dict.fromkeys(keys):
            error = self._write([key])
            if error is not None:
                self._failed += 1
                self._error = error

    def _write(self, keys: list[bytes]) -> str | None:
        longest = max(map(len, keys), default=0)
        if longest > MAX_EVENT_KEY_BYTES:
            return f"a target key has {longest} bytes, at most {MAX_EVENT_KEY_BYTES} fit"
        return self._writes.write(self._fan_out.options, keys, self._fan_out.values)

    def _listed(self) -> list[bytes]:
        stored = self._tx.get(keys_of(self._tx.space).fan_out_list(self._id))
        return _decode_list(stored) if stored else []

    def _clean_up(self) -> None:
        """Removes all but the record, which reports the fan-out for another day."""
        keys, tx = keys_of(self._tx.space), self._tx
        for generation in self._fan_out.generations:
            tx.delete(keys.fan_out_source(generation, self._id))
        tx.delete(keys.fan_out_list(self._id))
        tx.clear(*keys.fan_out_all_changes(self._id))
        expiry.schedule(tx, tx.now + FINISHED_FAN_OUT_SECONDS, FINISHED_KIND, self._id)


def remove_finished(tx: Transaction, subject: bytes) -> bool:
    """Forgets a fan-out that was finished a day ago."""
    tx.delete(keys_of(tx.space).fan_out(subject, finished=True))
    return True


# --- reports ------------------------------------------------------------------------------------


def reports(reader: Reader, limit: int) -> list[FanOutReport]:
    """Returns the fan-outs that run, then those that were finished within a day."""
    if type(limit) is not int or not 0 < limit <= MAX_FAN_OUTS:
        raise BadInput(f"limit must be from 1 to {MAX_FAN_OUTS}, not {limit!r}")
    running, finished = keys_of(reader.space).fan_outs
    found = _stored(reader, running, limit)
    found += _stored(reader, finished, limit - len(found)) if len(found) < limit else []
    return [fan_out.report(id) for id, fan_out in found]


def unfinished(reader: Reader) -> list[bytes]:
    """Returns the ids of fan-outs that are not finished, some of them if there are many."""
    return [id for id, _ in _stored(reader, keys_of(reader.space).fan_outs[0], MAX_FAN_OUTS)]


def _stored(reader: Reader, prefix: bytes, limit: int) -> list[tuple[bytes, FanOut]]:
    begin, end = prefix_range(prefix)
    return [
        (unpack(key, len(prefix))[0], _decode(stored))
        for key, stored in reader.scan(begin, end, limit=limit)
    ]
