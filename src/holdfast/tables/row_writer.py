"""Writes rows of one table together with their index entries, expiry and the table's counts.

These invariants hold after every change; this module and `index_build.py` rely on them:
* an index of all rows has one entry for each stored row whose declared attributes are not null;
* an index of current revisions has the entries of each record's newest *stored* row and of its
  fallbacks (`revisions.py`): one, unless that row expires before older ones do.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from holdfast import expiry
from holdfast.engine.contract import Transaction
from holdfast.keys import after, prefix_range
from holdfast.limits import (
    EXPIRED_REVISIONS_PER_STEP,
    MAX_EXPIRING_ROWS_READ,
    MAX_FALLBACKS,
    MIN_COMPRESSED_BYTES,
    PRUNED_PER_TRANSACTION,
)
from holdfast.tables import layout, revisions, row_codec
from holdfast.tables.layout import BYTES, ROWS
from holdfast.tables.plan import VERSION_BYTES, Index, TablePlan, Values
from holdfast.tables.revisions import ChainEntry, ChainMember
from holdfast.tables.row_codec import StoredRow

EXPIRED_ROW: Final = (
    "tables.row"  # the kind of its expiry; the subject is the row's key below the space
)


class PruneRoom:
    """Counts what the puts of one transaction may still prune after a change of the policy."""

    __slots__ = ("expiring", "rows")

    def __init__(self) -> None:
        self.rows = PRUNED_PER_TRANSACTION
        self.expiring = MAX_EXPIRING_ROWS_READ  # to be read


class RowWriter:
    """The changes of one transaction to one table; `finish` writes the counts of all of them."""

    def __init__(self, tx: Transaction, plan: TablePlan) -> None:
        self.tx = tx
        self.plan = plan
        self._keys = layout.table_keys(tx.space, plan.number)
        self._rows = self._keys.rows
        self._counts = [0, 0, 0, 0]
        self.prune_room = PruneRoom()

    @property
    def now_ms(self) -> int:
        return expiry.to_ms(self.tx.now)

    # --- reading ---------------------------------------------------------------------------------

    def row_key(self, values: Values) -> bytes:
        return self._rows + self.plan.primary.key(values)

    def static_key(self, values: Values) -> bytes:
        return self._keys.statics + self.plan.primary.hash_part(values)

    def row(self, key: bytes) -> StoredRow | None:
        """Returns the stored row, live or not."""
        value = self.tx.get(key)
        return None if value is None else row_codec.decode(value)

    def without_expiry(self, key: bytes) -> list[tuple[bytes, StoredRow]]:
        """Returns the stored row, unless it will expire."""
        row = self.row(key)
        return [] if row is None or row.expires_ms else [(key, row)]

    def is_live(self, row: StoredRow) -> bool:
        return not row.expires_ms or row.is_live(self.now_ms)

    def record_of(self, key: bytes) -> bytes:
        """Returns the prefix of all revisions of a row's record."""
        return key[:-VERSION_BYTES] if self.plan.version is not None else key

    def newest(self, record: bytes, count: int) -> list[tuple[bytes, StoredRow]]:
        """Returns the newest stored revisions of a record, newest first."""
        begin, end = prefix_range(record)
        return [(k, row_codec.decode(v)) for k, v in self.tx.scan(begin, end, limit=count)]

    def rows_between(self, begin: bytes, end: bytes) -> Iterator[tuple[bytes, StoredRow]]:
        """Returns the stored rows of a range, live or not, in the order of their keys."""
        return ((key, row_codec.decode(value)) for key, value in self.tx.scan(begin, end))

    def hash_prefix(self, values: Values) -> bytes:
        """Returns the prefix of all rows with the hash key of `values`."""
        return self._rows + self.plan.primary.hash_part(values)

    # --- writing ---------------------------------------------------------------------------------

    def write_row(self, key: bytes, row: StoredRow, values: Values, old: StoredRow | None) -> None:
        """Writes `row`, replacing `old`, which is None if nothing was stored under the key."""
        if self.plan.current_indexes:
            row = self._update_current_entries(key, row, values)
        self.tx.put(key, row.value)
        counts = self._counts
        if old is None:
            counts[layout.ROWS] += 1
            counts[layout.BYTES] += len(key) + len(row.value)
        else:
            counts[layout.BYTES] += len(row.value) - len(old.value)
        if row.expires_ms or old is not None:
            self._reschedule(key, 0 if old is None else old.expires_ms, row.expires_ms)
        if self.plan.per_row_indexes:
            before = None if old is None else self.plan.values(old.body)
            for index in self.plan.per_row_indexes:
                self._replace_entry(index, before, old, values, row)

    def add_simple_row(self, values: Values, body: bytes, is_new: bool) -> bool:
        """Puts a row of a simple table, unless one is stored under its key."""
        tx, counts = self.tx, self._counts
        key = self._rows + self.plan.primary.key(values)
        if not is_new and tx.get(key) is not None:
            return False
        value = b"\0" + body
        if len(body) >= MIN_COMPRESSED_BYTES:
            value = row_codec.encode(body, codec=self.plan.codec_for(body)).value
        tx.put(key, value)
        counts[ROWS] += 1
        counts[BYTES] += len(key) + len(value)
        return True

    def write_statics(self, key: bytes, body: bytes, old: bytes | None) -> None:
        value = row_codec.encode(body, codec=self.plan.codec_for(body)).value
        self.tx.put(key, value)
        self._counts[layout.BYTES] += len(value) - (len(old) if old else -len(key))

    def delete_statics(self, key: bytes) -> None:
        old = self.tx.get(key)
        if old is not None:
            self.tx.delete(key)
            self._counts[layout.BYTES] -= len(key) + len(old)

    def expire(self, key: bytes, row: StoredRow, expires_ms: int) -> None:
        """Sets the expiry of a row that is not the newest of its record."""
        expiring = row.with_expiry(expires_ms)
        self.tx.put(key, expiring.value)
        self._counts[layout.BYTES] += len(expiring.value) - len(row.value)
        self._reschedule(key, row.expires_ms, expires_ms)
        if self.plan.per_row_indexes:
            values = self.plan.values(row.body)
            for index in self.plan.per_row_indexes:
                self._replace_entry(index, values, row, values, expiring)

    def store_generation(self, key: bytes, row: StoredRow, generation: int) -> None:
        """Stores in a record's newest row that the policy of this generation has been applied."""
        value = row.with_generation(generation).value
        self.tx.put(key, value)
        self._counts[layout.BYTES] += len(value) - len(row.value)

    def remove(self, rows: Sequence[tuple[bytes, StoredRow]]) -> None:
        """Removes stored rows, given in the order of their keys."""
        if not self.plan.current_indexes:
            for key, row in rows:
                self._remove_row(key, row)
            return
        begin = 0
        while begin < len(rows):
            record = self.record_of(rows[begin][0])
            end = begin + 1
            while end < len(rows) and rows[end][0].startswith(record):
                end += 1
            self._remove_from_record(record, rows[begin:end])
            begin = end

    def remove_expired(self, key: bytes, row: StoredRow) -> bool:
        """Removes an expired row; returns False if it has to be called again.

        The newest row of a record is removed after expired ones that follow it: as the newest row,
        each of them would have to store a list of fallbacks.
        """
        following = []
        record = self.record_of(key)
        if self.plan.current_indexes and self.newest(record, 1)[0][0] == key:
            following = self._expired(after(key), prefix_range(record)[1])
        is_last = len(following) < EXPIRED_REVISIONS_PER_STEP
        self.remove([(key, row), *following] if is_last else following)
        return is_last

    def finish(self) -> None:
        for key, delta in zip(self._keys.counts, self._counts, strict=True):
            if delta:
                self.tx.add(key, delta)

    # --- internals -------------------------------------------------------------------------------

    def _remove_from_record(self, record: bytes, rows: Sequence[tuple[bytes, StoredRow]]) -> None:
        [(newest, head)] = self.newest(record, 1)
        before = revisions.chain_of(newest, head)
        removed = {key for key, _ in rows}
        affected = [member for member in before if member.key in removed]
        was = self._load_chain(before) if affected else []
        for key, each in rows:
            self._remove_row(key, each)
        if not affected:
            return
        if newest in removed:
            for key, each in self._expired(*prefix_range(record)):
                self._remove_row(key, each)
                removed.add(key)
        following = self.newest(record, 1)
        after = self._chain_without(before, removed, affected, following)
        if following:
            self._store_fallbacks(*following[0], after)
        self._replace_entries(was, self._load_chain(after))

    def _expired(self, begin: bytes, end: bytes) -> list[tuple[bytes, StoredRow]]:
        """Returns the expired revisions that a range begins with, some at most."""
        found = self.tx.scan(begin, end, limit=EXPIRED_REVISIONS_PER_STEP)
        rows = ((key, row_codec.decode(value)) for key, value in found)
        return list(takewhile(lambda pair: not self.is_live(pair[1]), rows))

    def _chain_without(
        self,
        before: Sequence[ChainMember],
        removed: set[bytes],
        affected: Sequence[ChainMember],
        following: Sequence[tuple[bytes, StoredRow]],
    ) -> Sequence[ChainMember]:
        """Returns the chain of a record without the rows that were just removed."""
        if not following:
            return []
        key, row = following[0]
        kept = [member for member in before if member.key not in removed]
        # A row after an expired one, which it did not outlive, has expired too.
        has_expired = all(member.until <= self.now_ms for member in affected)
        is_complete = len(before) <= MAX_FALLBACKS
        if has_expired and is_complete and kept and kept[0].key == key:
            return kept
        front = [member for member in kept if member.key < affected[0].key]
        front = front or [ChainMember(key, revisions.until(row))]
        return revisions.extended(self.tx, front)

    def _remove_row(self, key: bytes, row: StoredRow) -> None:
        self.tx.delete(key)
        self._counts[layout.ROWS] -= 1
        self._counts[layout.BYTES] -= len(key) + len(row.value)
        self._reschedule(key, row.expires_ms, 0)
        if self.plan.per_row_indexes:
            values = self.plan.values(row.body)
            for index in self.plan.per_row_indexes:
                self._replace_entry(index, values, row, None, None)

    def _update_current_entries(self, key: bytes, row: StoredRow, values: Values) -> StoredRow:
        """Updates the entries of a record for a row that is about to be put, and returns the row in
        the form to store."""
        newest = self.newest(self.record_of(key), 1)
        before = revisions.chain_of(*newest[0]) if newest else []
        if before and key > before[0].key and before[0].until == revisions.NEVER:
            return row  # it can't become current
        after = revisions.chain_with(self.tx, before, key, revisions.until(row))
        if len(before) <= 1 and len(after) == 1 and after[0].key == key:
            replaced = newest[0][1] if newest else None
            was = None if replaced is None else self.plan.values(replaced.body)
            for index in self.plan.current_indexes:
                self._replace_entry(index, was, replaced, values, row)
            return row
        was_members = self._load_chain(before)
        written = ChainEntry(key, row, values)
        self._replace_entries(was_members, self._load_chain(after, written))
        if after[0].key == key:
            return row.with_fallbacks(revisions.encode_fallbacks(after[1:]))
        self._store_fallbacks(*newest[0], after)
        return row

    def _load_chain(
        self, chain: Sequence[ChainMember], written: ChainEntry | None = None
    ) -> list[ChainEntry]:
        """Returns the rows of a chain, one of which may be about to be written."""
        found = []
        for member in chain:
            if written is not None and member.key == written.key:
                found.append(written)
                continue
            row = self.row(member.key)
            if row is not None:
                found.append(ChainEntry(member.key, row, self.plan.values(row.body)))
        return found

    def _store_fallbacks(self, key: bytes, row: StoredRow, chain: Sequence[ChainMember]) -> None:
        """Stores the list of fallbacks in the newest row of a record."""
        kept = row.with_fallbacks(revisions.encode_fallbacks(chain[1:]))
        if kept is not row:
            self.tx.put(key, kept.value)
            self._counts[layout.BYTES] += len(kept.value) - len(row.value)

    def _replace_entries(self, before: Sequence[ChainEntry], after: Sequence[ChainEntry]) -> None:
        """Replaces the entries of one chain by those of another; writes only differences."""
        for index in self.plan.current_indexes:
            was, now = revisions.entries_of(index, before), revisions.entries_of(index, after)
            for key in was.keys() - now.keys():
                self._counts[layout.ENTRIES] -= index.complete or self._has_entry(key)
                self.tx.delete(self._keys.entries + key)
            for key, value in now.items():
                if was.get(key) != value:
                    is_new = key not in was if index.complete else not self._has_entry(key)
                    self._counts[layout.ENTRIES] += is_new
                    self.tx.put(self._keys.entries + key, value)

    def rebuild_chain(self, key: bytes, row: StoredRow) -> list[ChainEntry]:
        """Returns the chain of a record, and stores its list of fallbacks in the newest row."""
        chain = revisions.extended(self.tx, [ChainMember(key, revisions.until(row))])
        self._store_fallbacks(key, row, chain)
        return self._load_chain(chain)

    def _replace_entry(
        self,
        index: Index,
        before: Values | None,
        old: StoredRow | None,
        after: Values | None,
        new: StoredRow | None,
    ) -> None:
        """Replaces one entry by another; writes only differences."""
        was = None if before is None else index.entry(before)
        now = None if after is None else index.entry(after)
        was_expiry = old.expires_ms if old is not None else 0
        new_expiry = new.expires_ms if new is not None else 0
        if was == now and (was is None or was_expiry == new_expiry):
            return
        if was is not None and (now is None or was[0] != now[0]):
            self._counts[layout.ENTRIES] -= index.complete or self._has_entry(was[0])
            self.tx.delete(self._keys.entries + was[0])
        if now is not None:
            if index.complete:
                self._counts[layout.ENTRIES] += was is None or was[0] != now[0]
            else:
                self._counts[layout.ENTRIES] += not self._has_entry(now[0])
            value = row_codec.encode(now[1], expires_ms=new_expiry).value
            self.tx.put(self._keys.entries + now[0], value)

    def _has_entry(self, key: bytes) -> bool:
        """Returns whether an entry is stored: while an index is built, it may not be yet."""
        return self.tx.get(self._keys.entries + key) is not None

    def _reschedule(self, key: bytes, was_ms: int, now_ms: int) -> None:
        if was_ms == now_ms:
            return
        subject = key[len(self.tx.space) :]
        if was_ms:
            expiry.cancel(self.tx, was_ms / 1000, EXPIRED_ROW, subject)
            self._counts[layout.EXPIRING] -= 1
        if now_ms:
            expiry.schedule(self.tx, now_ms / 1000, EXPIRED_ROW, subject)
            self._counts[layout.EXPIRING] += 1
