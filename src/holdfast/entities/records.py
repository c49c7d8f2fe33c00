"""The stored records: entities, deployed tables, and the work on their indexes."""

from typing import Any, Final, Literal, Protocol

import msgspec

from holdfast.entities.schema import Table
from holdfast.entities.values import unstorable, write_instant
from holdfast.errors import BadValue, UnsupportedFormat
from holdfast.limits import MAX_VALUE_DEPTH


class Stored(Protocol):
    """A stored entity, in either form: with names, or with a name list."""

    version: int
    expires: int
    properties: Any


class StoredEntity(msgspec.Struct, array_like=True):
    """An entity as it is stored with its names; `name_lists` has the other form."""

    version: int  # 1 when it was put first, and one more with every change
    expires: int  # milliseconds since 1970, or 0 for never
    properties: dict[str, Any]


class StoredHead(msgspec.Struct, array_like=True):
    """A stored entity whose properties are not decoded, to ask only whether it has expired."""

    version: int
    expires: int
    properties: msgspec.Raw


class StoredIndex(msgspec.Struct, frozen=True, array_like=True):
    """The stored facts about an index beyond its columns."""

    number: int
    ready: bool = True  # all entities are in it


class StoredTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table as it was deployed. `indexes` are those of `table`, in the same order."""

    number: int
    table: Table
    indexes: tuple[StoredIndex, ...] = ()
    name_lists: tuple[tuple[str, ...], ...] = ()  # see `name_lists`


class IndexWork(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of building or clearing an index."""

    kind: Literal["build", "clear"]
    table: str
    table_number: int = 0
    name: str = ""
    cursor: bytes = b""  # the id part of the entity that was done last
    done: int = 0
    conflicts: int = 0  # entities that violate the uniqueness of the index
    conflict: str = ""  # the first of them
    is_stuck: bool = False  # everything is indexed, but conflicts keep it from becoming ready


read_work: Final = msgspec.msgpack.Decoder(IndexWork).decode
write_record: Final = msgspec.msgpack.Encoder().encode
_encode: Final = msgspec.msgpack.Encoder(enc_hook=write_instant).encode
_read_table: Final = msgspec.msgpack.Decoder(StoredTable).decode
_read_layout: Final = msgspec.msgpack.Decoder(tuple[int, msgspec.Raw]).decode
# The layout of a table's entities. A record with a layout is an array, so that versions before name
# lists refuse to read it: their next deploy would lose the name lists.
_NAME_LISTS: Final = 1
_HAS_LAYOUT: Final = b"\x92"  # the first byte of an array of two


def read_table(stored: bytes) -> StoredTable:
    """Returns a deployed table."""
    if stored[:1] != _HAS_LAYOUT:
        return _read_table(stored)
    layout, record = _read_layout(stored)
    if layout != _NAME_LISTS:
        raise UnsupportedFormat(
            f"a table of entities has the layout {layout}, this Holdfast knows {_NAME_LISTS}"
        )
    return _read_table(record)


def write_table(table: StoredTable) -> bytes:
    """Returns the stored form of a deployed table."""
    return write_record((_NAME_LISTS, table) if table.name_lists else table)


def write_entity(version: int, expires: int, properties: dict[str, Any]) -> bytes:
    """Returns the stored form of an entity, with its names."""
    return encode_entity((version, expires, properties))


def encode_entity(fields: tuple[Any, ...]) -> bytes:
    """Returns the bytes of a stored form; raises if a number or a text can't be encoded."""
    try:
        return _encode(fields)
    except (OverflowError, UnicodeEncodeError) as error:
        raise unstorable(error) from None
    except RecursionError:
        raise BadValue(f"a value is nested deeper than {MAX_VALUE_DEPTH}") from None
