"""The stored records: entities, deployed tables, and the work on their indexes.

A stored entity is a msgpack array of version, expiry and properties. To get its properties as
something else than a dict, decode it with a struct of the same three fields; `Entities.fetch` takes
such a decoder:

    class StoredUser(msgspec.Struct, array_like=True):
        version: int
        expires: int
        properties: UserColumns  # a struct: one pass of C from stored bytes to the object
"""

from typing import Any, Final, Literal, Protocol

import msgspec

from holdfast.entities.schema import Table
from holdfast.entities.values import extension, kept_extension, unstorable, write_instant
from holdfast.errors import BadValue
from holdfast.limits import MAX_VALUE_DEPTH


class Stored(Protocol):
    """The result of every decoder of stored entities."""

    version: int
    expires: int
    properties: Any


class StoredEntity(msgspec.Struct, array_like=True):
    """An entity as it is stored."""

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


class IndexWork(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of building or clearing an index."""

    kind: Literal["build", "clear"]
    table: str
    table_number: int = 0
    name: str = ""
    cursor: bytes = b""  # the id part of the entity that was done last
    done: int = 0
    conflicts: int = 0  # entities that a unique index can't tell apart
    conflict: str = ""  # the first of them
    is_stuck: bool = False  # all is indexed, and the conflicts keep it from becoming ready


read_entity: Final = msgspec.msgpack.Decoder(StoredEntity, ext_hook=kept_extension).decode
entity_decoder: Final = msgspec.msgpack.Decoder(StoredEntity, ext_hook=extension)
kept_decoder: Final = msgspec.msgpack.Decoder(StoredEntity, ext_hook=kept_extension)
read_head: Final = msgspec.msgpack.Decoder(StoredHead).decode
read_table: Final = msgspec.msgpack.Decoder(StoredTable).decode
read_work: Final = msgspec.msgpack.Decoder(IndexWork).decode
write_record: Final = msgspec.msgpack.Encoder().encode
_encode: Final = msgspec.msgpack.Encoder(enc_hook=write_instant).encode


def write_entity(version: int, expires: int, properties: dict[str, Any]) -> bytes:
    """Returns the stored form; here it shows whether a number or a text can be stored at all."""
    try:
        return _encode((version, expires, properties))
    except (OverflowError, UnicodeEncodeError) as error:
        raise unstorable(error) from None
    except RecursionError:
        raise BadValue(f"a value is nested deeper than {MAX_VALUE_DEPTH}") from None
