"""A cache of the records that one call reads and changes: each is read once and written once.

Many events of a batch write to the same keys ("all visitors today"). Their records are decoded when
the first event needs them and written when the batch ends, however often they change in between. If
an event in the middle of a batch fails, only that event is undone.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from holdfast import expiry
from holdfast.bounded_cache import of_spaces
from holdfast.engine.contract import Notice, Reader, Transaction, random_bytes
from holdfast.events.codec import (
    BOARD,
    FANNED_OUT,
    KEPT,
    ORDERED,
    ORDERING,
    ROWS,
    WINDOWED,
    KeyRecord,
    decode,
    encode_changed,
)
from holdfast.events.layout import CHANGED, keys_of
from holdfast.keys import prefix_range
from holdfast.limits import (
    CLEARED_PER_STEP,
    MAX_BATCH_RECORDS,
    MAX_DECODED_RECORDS,
    MAX_DECODED_SPACES,
    MAX_EVENT_KEY_BYTES,
)

__all__ = ["KEY_KIND", "ROWS_KIND", "RecordCache", "RecordWriter"]

KEY_KIND: Final = "events.key"  # a whole key expires
BESIDE_KIND: Final = "events.board_beside"  # a leaderboard beside a set expires
ROWS_KIND: Final = "events.rows"  # an abandoned generation is to be cleared

_KIND_FLAGS: Final = BOARD | KEPT
_KIND_OF_FLAGS: Final = {0: b"set", BOARD: b"leaderboard", KEPT: b"count"}


class RecordCache:
    """The records of a snapshot."""

    def __init__(self, tx: Reader) -> None:
        self.tx = tx
        self.keys = keys_of(tx.space)
        self.now_ms = expiry.to_ms(tx.now)
        self.get = tx.get
        self.scan = tx.scan
        self.some_expire = False  # a record with an expiry was read
        self._records: dict[bytes, KeyRecord] = {}
        self._beside: dict[bytes, KeyRecord] = {}

    def record(self, key: bytes) -> KeyRecord:
        """Returns the record of `key`; a blank one if it does not exist or has expired."""
        return self.records([key])[0]

    def records(self, keys: list[bytes]) -> list[KeyRecord]:
        """Returns the record of each key, like `record`."""
        cached = self._records
        for key in keys:
            if key not in cached:
                cached[key] = self._read(key)
        return [cached[key] for key in keys]

    def _read(self, key: bytes) -> KeyRecord:
        stored_key = self.keys.record(key)
        return self._decode(key, stored_key, self.get(stored_key))

    def _decode(self, key: bytes, stored_key: bytes, stored: bytes | None) -> KeyRecord:
        if stored is None:
            return KeyRecord(key, stored_key)
        record = decode(key, stored_key, stored)
        if record.expires_ms:
            self.some_expire = True
            if record.expires_ms <= self.now_ms:
                self._discard_expired(record)
                return KeyRecord(key, stored_key)
        return record

    def board_beside(self, key: bytes) -> KeyRecord:
        """Returns the leaderboard that may be beside the set of a key, in the flux dialect."""
        found = self._beside.get(key)
        if found is None:
            stored_key = self.keys.board_beside(key)
            stored = self.get(stored_key)
            found = KeyRecord(key, stored_key, beside=True)
            if stored is not None:
                found = decode(key, stored_key, stored)
                found.beside = True
                if found.expires_ms:
                    self.some_expire = True
                    if found.expires_ms <= self.now_ms:
                        self._discard_expired(found)
                        found = KeyRecord(key, stored_key, beside=True)
            self._beside[key] = found
        return found

    def _discard_expired(self, expired: KeyRecord) -> None:
        """Does nothing: a reader ignores what has expired."""


class DecodedRecords:
    """Caches the latest decoded records of a space between calls.

    A call that takes a record owns it, so threads never share one. It is used only if its bytes
    equal the stored ones, so it is right whatever other processes have written, and even after a
    failed transaction.
    """

    __slots__ = ("newer", "older")

    def __init__(self) -> None:
        self.newer: dict[bytes, KeyRecord] = {}
        self.older: dict[bytes, KeyRecord] = {}  # dropped when there are too many newer ones

    def keep(self, records: dict[bytes, KeyRecord]) -> None:
        """Keeps records that the caller does not use again."""
        if len(records) > MAX_DECODED_RECORDS or any(
            len(key) > MAX_EVENT_KEY_BYTES for key in records
        ):
            return
        self.newer.update(records)
        if len(self.newer) > MAX_DECODED_RECORDS:
            self.older, self.newer = self.newer, {}


@of_spaces
@lru_cache(maxsize=MAX_DECODED_SPACES)
def _decoded_of(space: bytes) -> DecodedRecords:
    return DecodedRecords()


class RecordWriter(RecordCache):
    """The records of a transaction, with their changes.

    Rows are written at once, through `put` and `delete`; records when the batch ends.
    """

    tx: Transaction

    def __init__(self, tx: Transaction) -> None:
        super().__init__(tx)
        self.put: Callable[[bytes, bytes], None] = tx.put
        self.delete: Callable[[bytes], None] = tx.delete
        # Keys, and what they hold now: its kind, or the flags of their record.
        self._changed: dict[bytes, bytes | int] = {}
        self._changed_sets: list[list[bytes]] = []  # further keys, of sets
        self._undo: list[tuple[bytes, bytes | None]] = []
        self._is_undoable = False  # each write keeps what it replaces in `_undo`
        self._due: list[tuple[float, str, bytes]] = []
        self._begun: list[tuple[str, bytes]] = []
        self.rescaled = 0  # candidates of decaying leaderboards that were written again
        # By the prefix of a leaderboard's index: nothing is left from this key on.
        self.index_ends: dict[bytes, bytes] = {}
        # By the prefix of a set's places: nothing is left before this key.
        self.first_places: dict[bytes, bytes] = {}
        self._decoded = _decoded_of(tx.space)

    def renew(self) -> None:
        """Prepares for the next call after `finish`: the time may be another one by now."""
        self.now_ms = expiry.to_ms(self.tx.now)
        self.some_expire = False
        self.rescaled = 0
        self.index_ends.clear()
        self.first_places.clear()

    def records(self, keys: list[bytes]) -> list[KeyRecord]:
        """Returns the record of each key; one that is as an earlier call left it is not decoded."""
        cached, get = self._records, self.get
        newer, older = self._decoded.newer, self._decoded.older
        found = []
        for key in keys:
            record = cached.get(key)
            if record is None:
                record = newer.pop(key, None) or older.pop(key, None)
                if record is None:
                    record = self._read(key)
                elif record.stored != (stored := get(record.stored_key)):
                    record = self._decode(key, record.stored_key, stored)
                cached[key] = record
            found.append(record)
        return found

    # --- what belongs to a key as a whole --------------------------------------------------------

    def note_changed(self, key: bytes, kind: bytes) -> None:
        """Publishes a notice that `key` has changed, unless the event is undone."""
        self._changed[key] = kind

    def schedule(self, at: float, kind: str, subject: bytes) -> None:
        """Schedules the remover of `kind` for `at`, unless the event is undone."""
        self._due.append((at, kind, subject))

    def begin_work(self, kind: str, subject: bytes) -> None:
        """Begins work in steps, unless the event is undone."""
        self._begun.append((kind, subject))

    def extend_lifetime(self, record: KeyRecord, lifetime_ms: int) -> None:
        """Extends the life of a key that was just written; its remover still runs at the old end.

        A handler without `expire_after` keeps the lifetime that the key has.
        """
        lifetime_ms = lifetime_ms or record.lifetime_ms
        if not lifetime_ms:
            return
        self.some_expire = True
        record.is_plain = False
        record.lifetime_ms = lifetime_ms
        record.expires_ms = self.now_ms + lifetime_ms
        if not record.scheduled_ms or record.expires_ms < record.scheduled_ms:
            record.scheduled_ms = record.expires_ms
            kind = BESIDE_KIND if record.beside else KEY_KIND
            self._due.append((record.expires_ms / 1_000, kind, record.key))

    def remove_all(self, record: KeyRecord) -> None:
        """Removes a key with all that belongs to it; its rows later, in bounded steps."""
        self.delete(record.stored_key)
        for number in range(record.bundles):
            self.delete(self.keys.bundle(record.key, number))
        if record.is_dense:
            self.delete(self.keys.sketch(record.key))
        if record.flags & WINDOWED:
            begin, end = self.keys.timed_all(record.key)
            for key, _ in list(self.scan(begin, end)):
                self.delete(key)
        self.abandon_generation(record)
        (self._beside if record.beside else self._records).pop(record.key, None)
        self._changed[record.key] = b""

    def new_generation(self, record: KeyRecord) -> bytes:
        """Begins the rows of a key and returns their prefix.

        The number is random, so that writers do not conflict on one shared counter.
        """
        record.is_plain = False
        record.generation = int.from_bytes(random_bytes(8), "big") >> 1
        record.flags |= ROWS
        return self.keys.generation(record.generation)

    def abandon_generation(self, record: KeyRecord) -> None:
        """Abandons the rows of a key: a remover clears them."""
        if record.has_rows:
            generation = record.generation.to_bytes(8, "big")
            self._begun.append((ROWS_KIND, generation))
        record.flags &= ~(ROWS | FANNED_OUT | ORDERED | ORDERING)
        record.generation = record.smallest_listed = record.smallest_used = 0

    def _discard_expired(self, expired: KeyRecord) -> None:
        self.remove_all(expired)

    # --- writing back, taking back ---------------------------------------------------------------

    def flush(self) -> None:
        """Writes all changed records."""
        self._write(self._records)
        if self._beside:
            self._write(self._beside)
        for at, kind, subject in self._due:
            expiry.schedule(self.tx, at, kind, subject)
        self._due.clear()
        for kind, subject in self._begun:
            expiry.begin_work(self.tx, kind, subject)
        self._begun.clear()

    def _write(self, records: dict[bytes, KeyRecord]) -> None:
        self._put_all(encode_changed(records.values(), self._changed))

    def _put_all(self, pairs: dict[bytes, bytes]) -> None:
        """Puts records at stored keys that `Keys` has made, so that the engine need not check."""
        if self._is_undoable:
            for key, value in pairs.items():
                self.put(key, value)
        else:
            self.tx.put_all(pairs, checked=True)

    # --- records that are not decoded ------------------------------------------------------------

    def are_unchanged(self, keys: list[bytes]) -> bool:
        """Returns whether this cache has no unwritten changes of these keys."""
        return not self._records or self._records.keys().isdisjoint(keys)

    def put_sets(self, keys: list[bytes], pairs: dict[bytes, bytes]) -> None:
        """Writes the records of sets, whose keys are `keys`."""
        self._put_all(pairs)
        self._changed_sets.append(keys)

    def write_records(self, records: list[KeyRecord]) -> None:
        """Writes changed records now, so that the store has their current state."""
        self._put_all(encode_changed(records, self._changed))
        for record in records:
            del self._records[record.key]

    def write_out_if_many(self) -> None:
        """Writes all records and forgets them once there are many."""
        if len(self._records) > MAX_BATCH_RECORDS:
            self.flush()
            self._records.clear()
            self._beside.clear()

    def finish(self) -> None:
        """Writes all changed records and publishes which keys they are."""
        self.flush()
        self._decoded.keep(self._records)
        self._records, self._beside = {}, {}
        if self._changed or self._changed_sets:
            notices = partial(_notices, self._changed, self._changed_sets, self.tx.space)
            self._changed, self._changed_sets = {}, []
            self.tx.after_commit_many(CHANGED, notices)

    def begin(self) -> None:
        """Remembers what each write replaces, until `keep` or `undo`."""
        self.flush()
        self._changes_before = dict(self._changed), len(self._changed_sets)
        self._is_undoable = True
        self.put, self.delete = self._undoable_put, self._undoable_delete

    def keep(self) -> None:
        self._undo.clear()
        self._is_undoable = False
        self.put, self.delete = self.tx.put, self.tx.delete

    def undo(self) -> None:
        """Undoes all since `begin`: an event that fails in a batch fails alone."""
        for key, replaced in reversed(self._undo):
            if replaced is None:
                self.tx.delete(key)
            else:
                self.tx.put(key, replaced)
        self._records.clear()
        self._beside.clear()
        self._due.clear()
        self._begun.clear()
        self.index_ends.clear()
        self.first_places.clear()
        self._changed, sets = self._changes_before
        del self._changed_sets[sets:]
        self.keep()

    def _undoable_put(self, key: bytes, value: bytes) -> None:
        self._undo.append((key, self.get(key)))
        self.tx.put(key, value)

    def _undoable_delete(self, key: bytes) -> None:
        self._undo.append((key, self.get(key)))
        self.tx.delete(key)


def _notices(
    changed: dict[bytes, bytes | int], changed_sets: list[list[bytes]], space: bytes
) -> list[Notice]:
    changed_keys: dict[bytes, bytes | int] = {key: 0 for keys in changed_sets for key in keys}
    changed_keys.update(changed)
    return [
        Notice(
            CHANGED + key.decode(),
            kind if isinstance(kind, bytes) else _KIND_OF_FLAGS[kind & _KIND_FLAGS],
            space,
        )
        for key, kind in changed_keys.items()
    ]


# --- removers ---------------------------------------------------------------------------------


def remove_key(tx: Transaction, subject: bytes) -> bool:
    """Removes a key that has expired; runs again later if it was written to since."""
    return _remove_record(tx, subject, keys_of(tx.space).record(subject), KEY_KIND)


def remove_beside(tx: Transaction, subject: bytes) -> bool:
    """Like `remove_key`, for the leaderboard beside a set."""
    return _remove_record(tx, subject, keys_of(tx.space).board_beside(subject), BESIDE_KIND)


def _remove_record(tx: Transaction, subject: bytes, stored_key: bytes, kind: str) -> bool:
    stored = tx.get(stored_key)
    if stored is None:
        return True
    record = decode(subject, stored_key, stored)
    record.beside = kind == BESIDE_KIND
    cache = RecordWriter(tx)
    if record.expires_ms and record.expires_ms <= cache.now_ms:
        cache.remove_all(record)
    elif record.scheduled_ms and record.scheduled_ms <= cache.now_ms:
        record.scheduled_ms = record.expires_ms
        tx.put(stored_key, record.encode())
        if record.expires_ms:
            expiry.schedule(tx, record.expires_ms / 1_000, kind, subject)
    cache.finish()
    return True


def remove_rows(tx: Transaction, subject: bytes) -> bool:
    """Clears some rows of an abandoned generation, once no background fan-out reads it."""
    keys = keys_of(tx.space)
    generation = int.from_bytes(subject, "big")
    if any(tx.scan(*keys.fan_out_sources(generation), limit=1)):
        return False
    begin, end = prefix_range(keys.generation(generation))
    rows = [key for key, _ in tx.scan(begin, end, limit=CLEARED_PER_STEP)]
    if rows:
        tx.clear(begin, rows[-1] + b"\0")
    return len(rows) < CLEARED_PER_STEP
