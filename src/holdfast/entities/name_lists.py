"""Name lists: property names that are stored once with a table instead of in each entity.

A stored entity is one of two msgpack arrays:

    [version, expires, {name: value, ...}]     with the names of its properties
    [number, version, expires, [value, ...]]   its names are the name list of that number

The first entity with a new set of properties adds a name list, until the table has
`MAX_NAME_LISTS` or their names take `MAX_NAME_LIST_BYTES`. The lists are part of the table's
record, which every call reads, so they must stay few: later entities with other properties store
their names themselves. A list is never changed, and is removed only with its table.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Union

import msgspec

from holdfast.entities.records import StoredEntity, StoredHead, encode_entity
from holdfast.entities.values import extension, kept_extension
from holdfast.limits import MAX_NAME_LIST_BYTES, MAX_NAME_LISTS, VALUES_PER_SIZE_CHECK

NameList = tuple[str, ...]

_WITH_NAMES: Final = b"\x93"  # the first byte of an entity with names: an array of three
_as_dict: Final = msgspec.structs.asdict
# The first bytes of a msgpack array, by the number of its items.
_ARRAY_BEGINS: Final = tuple(
    bytes([0x90 | count]) if count < 16 else b"\xdc" + count.to_bytes(2)
    for count in range(VALUES_PER_SIZE_CHECK + 1)
)


class Readers(NamedTuple):
    """Functions that read stored entities: one, or many at once, which is faster."""

    one: Callable[[bytes], Any]
    many: Callable[[list[bytes]], list[Any]]


class NameLists:
    """The name lists of one table: how its entities are written and read."""

    __slots__ = ("_by_set", "_numbers", "kept", "lists", "most_bytes", "plain")

    def __init__(self, lists: Sequence[NameList]) -> None:
        self.lists: Final = tuple(lists)
        self._numbers: Final = {names: number for number, names in enumerate(lists)}
        self._by_set: Final = {frozenset(names): names for names in lists}
        # How many bytes names can add to an answer, beyond those of the stored entity.
        self.most_bytes: Final = max([sum(map(len, names)) for names in lists], default=0)
        self.plain: Final = _readers(self.lists, extension)  # as a caller gets them
        self.kept: Final = _readers(self.lists, kept_extension)  # to be written again

    def write(self, version: int, expires: int, properties: dict[str, Any]) -> bytes | None:
        """Returns the stored form without names; None if no list has exactly these names."""
        number = self._numbers.get(tuple(properties))
        if number is not None:
            return encode_entity((number, version, expires, tuple(properties.values())))
        names = self._by_set.get(frozenset(properties))
        if names is None:
            return None
        values = [properties[name] for name in names]  # stored in the order of the list
        return encode_entity((self._numbers[names], version, expires, values))

    def with_list_of(self, properties: dict[str, Any]) -> tuple[NameList, ...] | None:
        """Returns the lists and a new one with the names of these properties; None if the limits
        allow no more, or if the names can't be fields of a struct."""
        lists = (*self.lists, tuple(properties))
        if len(lists) > MAX_NAME_LISTS or not all(map(_is_field, properties)) or not properties:
            return None
        size = sum([len(name) for names in lists for name in names])
        return lists if size <= MAX_NAME_LIST_BYTES else None


def read_head(stored: bytes) -> Any:
    """Returns the version and the expiry of a stored entity, without decoding its properties."""
    return _read_head(stored) if stored[:1] == _WITH_NAMES else _read_numbered_head(stored)


def _is_field(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not name.startswith("__")


class _NumberedHead(msgspec.Struct, array_like=True):
    number: int
    version: int
    expires: int
    values: msgspec.Raw


_read_head: Final = msgspec.msgpack.Decoder(StoredHead).decode
_read_numbered_head: Final = msgspec.msgpack.Decoder(_NumberedHead).decode


def _readers(lists: Sequence[NameList], hook: Callable[[int, memoryview], Any]) -> Readers:
    """Returns functions that read both forms. The number of a list is the tag of a struct, so
    msgspec decodes the bytes into values with the right names in one step."""
    read_with_names = msgspec.msgpack.Decoder(StoredEntity, ext_hook=hook).decode
    structs = tuple(_struct(number, names) for number, names in enumerate(lists))
    numbered: Any = Union[structs] if structs else StoredEntity  # noqa: UP007
    read_numbered = msgspec.msgpack.Decoder(numbered, ext_hook=hook).decode
    read_array = msgspec.msgpack.Decoder(list[numbered], ext_hook=hook).decode

    def read(stored: bytes) -> Any:
        if stored[:1] == _WITH_NAMES:
            return read_with_names(stored)
        entity: Any = read_numbered(stored)
        entity.properties = _as_dict(entity.properties)
        return entity

    def read_many(stored: list[bytes]) -> list[Any]:
        count = len(stored)
        if count >= len(_ARRAY_BEGINS) or not structs:
            return [read(each) for each in stored]
        try:
            # As the items of one array, which takes a third less time.
            entities = read_array(b"".join((_ARRAY_BEGINS[count], *stored)))
        except msgspec.MsgspecError:  # an entity with names: its third item is a map, not a list
            return [read(each) for each in stored]
        for entity in entities:
            entity.properties = _as_dict(entity.properties)
        return entities

    return Readers(read if structs else read_with_names, read_many)


@lru_cache(maxsize=512)  # making a type is slow, and a changed table needs the same ones
def _struct(number: int, names: NameList) -> Any:
    """Returns the struct type of entities with the name list `number`."""
    values = msgspec.defstruct("Values", [(name, Any) for name in names], array_like=True, gc=False)
    fields = [("version", int), ("expires", int), ("properties", values)]
    return msgspec.defstruct("Numbered", fields, array_like=True, tag=number)
