"""Puts entities back into the form that they had before there were name lists."""

import msgspec

from holdfast.entities.layout import keys_of
from holdfast.entities.records import read_table, write_entity, write_record
from holdfast.entities.table_access import access_to
from holdfast.keys import prefix_range
from holdfast.store import Store
from holdfast.transactions import Tx


def make_older(store: Store, table: str, *, keep_lists: bool = False) -> None:
    """Writes all entities with their names, as if an older Holdfast had written them.

    With `keep_lists` the table keeps its name lists, as it has them when old and new entities are
    side by side.
    """

    def rewrite(tx: Tx) -> None:
        raw = tx.raw
        access = access_to(raw, table)
        for key, value in list(raw.scan(*prefix_range(access.entities))):
            entity = access.read_kept(value)
            raw.put(key, write_entity(entity.version, entity.expires, entity.properties))
        if not keep_lists:
            key = keys_of(raw.space).table(table)
            stored = read_table(raw.get(key) or b"")
            raw.put(key, write_record(msgspec.structs.replace(stored, name_lists=())))

    store.transact(rewrite)


def stored_entities(store: Store, table: str) -> list[bytes]:
    """The stored bytes of all entities of a table."""
    with store.view() as view:
        access = access_to(view.raw, table)
        return [value for _, value in view.raw.scan(*prefix_range(access.entities))]


def name_lists(store: Store, table: str) -> tuple[tuple[str, ...], ...]:
    with store.view() as view:
        stored = view.raw.get(keys_of(view.raw.space).table(table))
    return read_table(stored or b"").name_lists
