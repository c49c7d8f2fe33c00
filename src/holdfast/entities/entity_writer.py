"""Writes one entity with all that belongs to it: index entries, expiry, counters and the notice.

An `EntityWriter` serves one operation on one table. It puts keys at once, so that later entities of
the same operation see the earlier ones. `finish` writes what is cheaper to write once: the size of
the table, the counts of its indexes, the notice.
"""

from functools import partial
from typing import Any, Final, Literal, TypeAlias

import msgspec

from holdfast import expiry
from holdfast.engine.contract import Notice, Transaction
from holdfast.entities.answer_meters import SEVERAL_CALLS
from holdfast.entities.index_counts import count_changes
from holdfast.entities.layout import entry_value, id_part_of, is_expired_entry, keys_of
from holdfast.entities.records import (
    Stored,
    read_table,
    write_entity,
    write_record,
    write_table,
)
from holdfast.entities.table_access import IndexAccess, TableAccess, access_to
from holdfast.errors import DuplicateKey, RequestTooLarge
from holdfast.keys import pack_int, prefix_range
from holdfast.limits import (
    MAX_CHANGED_BYTES,
    MAX_CHANGED_ENTITIES,
    MAX_CHANGED_KEYS,
    MAX_NOTICE_CHANGES,
)

EXPIRY_KIND: Final = "entities.expired"  # the subject is a table's full name
Changes: TypeAlias = list[tuple[str, str, int, tuple[str, ...]]]  # each like a `Changed`


class EntityWriter:
    """Writes to one table, within one operation. Nothing is complete before `finish`."""

    __slots__ = ("_bytes", "_changes", "_entries", "_size", "access", "tx")

    def __init__(self, tx: Transaction, access: TableAccess) -> None:
        self.tx = tx
        self.access = access
        self._size = 0
        self._bytes = 0  # of the entities that were written
        # By index: 1 for an entry that was added, -1 for one that was removed, 0 for both.
        self._entries: dict[int, dict[bytes, int]] = {}
        self._changes: Changes = []

    @property
    def now_ms(self) -> int:
        return expiry.to_ms(self.tx.now)

    def put(
        self,
        id: str,
        id_part: bytes,
        old: Stored | None,
        properties: dict[str, Any],
        expires: int,
        names: tuple[str, ...],
    ) -> None:
        """Replaces `old`, which must not have expired, by the entity. `names` are the given
        properties."""
        version = 1 if old is None else old.version + 1
        self.tx.put(self.access.entities + id_part, self._stored(version, expires, properties))
        old_expires = 0
        if old is None:
            self._size += 1
            self._index_new(id_part, properties, expires)
        else:
            old_expires = old.expires
            self._update_entries(id_part, old, properties, expires)
        if old_expires != expires:
            self._move_expiry(id_part, old_expires, expires)
        self._changed(id, "put", version, names)

    def update(
        self,
        id: str,
        id_part: bytes,
        old: Stored,
        properties: dict[str, Any],
        expires: int,
        names: tuple[str, ...],
    ) -> None:
        """Replaces `old`, which must not have expired. `names` are the changed properties."""
        access, version = self.access, old.version + 1
        self.tx.put(access.entities + id_part, self._stored(version, expires, properties))
        # Most updates change neither a column of an index nor the expiry.
        if old.expires != expires:
            self._update_entries(id_part, old, properties, expires)
            self._move_expiry(id_part, old.expires, expires)
        elif not access.indexed.isdisjoint(names):
            self._update_entries(id_part, old, properties, expires)
        self._changed(id, "update", version, names)

    def put_new(
        self, id: str, id_part: bytes, properties: dict[str, Any], names: tuple[str, ...]
    ) -> None:
        """Like `put`, for the most common case: an entity that is new and never expires."""
        self.tx.put(self.access.entities + id_part, self._stored(1, 0, properties))
        self._size += 1
        self._index_new(id_part, properties, 0)
        self._changed(id, "put", 1, names)

    def remove(
        self, id: str, id_part: bytes, old: Stored, *, op: Literal["delete", "expire"]
    ) -> None:
        """Removes the entity, its index entries and its expiry."""
        self.tx.delete(self.access.entities + id_part)
        self._size -= 1
        for index in self.access.indexes:
            values = index.values_part(old.properties)
            if values is not None:
                self._remove_entry(index, values + id_part)
        if old.expires:
            self._move_expiry(id_part, old.expires, 0)
        self._changed(id, op, old.version, ())

    def _stored(self, version: int, expires: int, properties: dict[str, Any]) -> bytes:
        """Returns the stored form of an entity; its names go into the table's record if they are
        new and the table can take another name list."""
        stored = self.access.name_lists.write(version, expires, properties)
        if stored is None and (lists := self.access.name_lists.with_list_of(properties)):
            key = keys_of(self.tx.space).table(self.access.name)
            table = read_table(self.tx.get(key) or b"")
            self.tx.put(key, write_table(msgspec.structs.replace(table, name_lists=lists)))
            self.access = access_to(self.tx, self.access.name)
            stored = self.access.name_lists.write(version, expires, properties)
        stored = stored or write_entity(version, expires, properties)
        self._bytes += len(stored)
        if self._bytes > MAX_CHANGED_BYTES and self._changes:
            raise RequestTooLarge(
                f"the call would write more than {MAX_CHANGED_BYTES} bytes", hint=SEVERAL_CALLS
            )
        return stored

    def _changed(self, id: str, op: str, version: int, names: tuple[str, ...]) -> None:
        self._changes.append((id, op, version, names))
        if len(self._changes) > MAX_CHANGED_ENTITIES:
            raise RequestTooLarge(
                f"more than {MAX_CHANGED_ENTITIES} entities would change in one call",
                hint=SEVERAL_CALLS,
            )
        if len(self._changes) * (1 + len(self.access.indexes)) > MAX_CHANGED_KEYS:
            raise RequestTooLarge(
                f"more than {MAX_CHANGED_KEYS} entities and index entries would change in one call",
                hint=SEVERAL_CALLS,
            )

    def finish(self) -> None:
        """Updates the counters, and publishes the notices after the commit."""
        tx, access = self.tx, self.access
        if self._size:
            tx.add(access.size, self._size)
        for index in access.indexes if self._entries else ():
            if entries := self._entries.get(index.number):
                count_changes(tx, index, entries)
        if self._changes:
            # Not a method: the transaction would refer to itself, and would stay in memory with its
            # LMDB snapshot until the garbage collector runs.
            tx.after_commit_many(access.topic, partial(_notices, access, self._changes))

    def _index_new(self, id_part: bytes, properties: dict[str, Any], expires: int) -> None:
        value = entry_value(id_part, expires)
        for index in self.access.indexes:
            values = index.values_part(properties)
            if values is not None:
                if index.unique:
                    self._check_unique(index, values, id_part, properties)
                entry = values + id_part
                self.tx.put(index.entries + entry, value)
                self._note(index, entry, 1)

    def _update_entries(
        self, id_part: bytes, old: Stored, properties: dict[str, Any], expires: int
    ) -> None:
        value = entry_value(id_part, expires)
        for index in self.access.indexes:
            # A merge keeps the objects that were read for most properties.
            if old.expires == expires and index.has_same_values(old.properties, properties):
                continue
            before = index.values_part(old.properties)
            now = index.values_part(properties)
            if before == now and old.expires == expires:
                continue
            if before is not None and before != now:
                self._remove_entry(index, before + id_part)
            if now is not None:
                if index.unique and before != now:
                    self._check_unique(index, now, id_part, properties)
                is_stored = before == now and self._is_stored(index, now + id_part)
                self.tx.put(index.entries + now + id_part, value)
                if not is_stored:
                    self._note(index, now + id_part, 1)

    def _remove_entry(self, index: IndexAccess, entry: bytes) -> None:
        if self._is_stored(index, entry):
            self.tx.delete(index.entries + entry)
            self._note(index, entry, -1)

    def _note(self, index: IndexAccess, entry: bytes, change: int) -> None:
        entries = self._entries.get(index.number)
        if entries is None:
            self._entries[index.number] = {entry: change}
        else:
            entries[entry] = entries.get(entry, 0) + change

    def _is_stored(self, index: IndexAccess, entry: bytes) -> bool:
        # An entity may lack its entry only while the index is being built.
        return index.ready or self.tx.get(index.entries + entry) is not None

    def _check_unique(
        self, index: IndexAccess, values: bytes, id_part: bytes, properties: dict[str, Any]
    ) -> None:
        if index.has_null(properties):
            return
        for key, value in self.tx.scan(*prefix_range(index.entries + values)):
            if id_part_of(key, value) != id_part and not is_expired_entry(value, self.now_ms):
                raise DuplicateKey(
                    "Duplicate Key",
                    hint=f"{index.name} is unique and holds these values. {DuplicateKey.hint}",
                )

    def _move_expiry(self, id_part: bytes, old_expires: int, expires: int) -> None:
        if old_expires:
            self.tx.delete(self.access.expiring + pack_int(old_expires) + id_part)
        if expires:
            self.tx.put(self.access.expiring + pack_int(expires) + id_part, b"")
            # One entry per table and second: a thousand sessions that end together share it.
            second = -(-expires // 1000)
            expiry.schedule(self.tx, second, EXPIRY_KIND, self.access.name.encode())


def _notices(access: TableAccess, changes: Changes) -> list[Notice]:
    notices = []
    for first in range(0, len(changes), MAX_NOTICE_CHANGES):
        # The same bytes as a `ChangeNotice`, for a fifth of the cost: tuples instead of records.
        payload = write_record(
            {"table": access.name, "changes": changes[first : first + MAX_NOTICE_CHANGES]}
        )
        notices.append(Notice(access.topic, payload))
    return notices
