"""The names of properties, stored once with a table and not in each of its entities.

A stored entity is one of two arrays of msgpack:

    [version, expires, {name: value, ...}]     with the names of its properties
    [number, version, expires, [value, ...]]   its names are the name list of that number

A table gets a name list with the first entity that has just these properties, until it has
`MAX_NAME_LISTS` or their names have `MAX_NAME_LIST_BYTES`. They are part of the table's record,
which every call reads, so they must stay few: later entities with yet other properties keep their
names. A list is never changed or removed before the table is dropped.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Union

import msgspec

from holdfast.entities.records import StoredEntity, StoredHead, encode_entity
from holdfast.entities.values import extension, kept_extension
from holdfast.limits import MAX_NAME_LIST_BYTES, MAX_NAME_LISTS

NameList = tuple[str, ...]

_WITH_NAMES: Final = b"\x93"  # what an entity with its names begins with: an array of three
_as_dict: Final = msgspec.structs.asdict


class NameLists:
    """The name lists of one table: how its entities are written and read."""

    __slots__ = ("_by_set", "_numbers", "lists", "most_bytes", "read", "read_kept")

    def __init__(self, lists: Sequence[NameList]) -> None:
        self.lists: Final = tuple(lists)
        self._numbers: Final = {names: number for number, names in enumerate(lists)}
        self._by_set: Final = {frozenset(names): names for names in lists}
        # What the names of an entity take at most in an answer, where they are not in its bytes.
        self.most_bytes: Final = max([sum(map(len, names)) for names in lists], default=0)
        self.read: Final = _reader(self.lists, extension)  # as a caller gets it
        self.read_kept: Final = _reader(self.lists, kept_extension)  # to be written again

    def write(self, version: int, expires: int, properties: dict[str, Any]) -> bytes | None:
        """Returns the stored form without names; None if no list has just these names."""
        number = self._numbers.get(tuple(properties))
        if number is not None:
            return encode_entity((number, version, expires, tuple(properties.values())))
        names = self._by_set.get(frozenset(properties))
        if names is None:
            return None
        values = [properties[name] for name in names]  # the order is that of the list from now on
        return encode_entity((self._numbers[names], version, expires, values))

    def with_list_of(self, properties: dict[str, Any]) -> tuple[NameList, ...] | None:
        """Returns the lists with one more, of the names of these properties; None if there is no
        room for it, or if the names can't be fields of a struct."""
        lists = (*self.lists, tuple(properties))
        if len(lists) > MAX_NAME_LISTS or not all(map(_is_field, properties)) or not properties:
            return None
        size = sum([len(name) for names in lists for name in names])
        return lists if size <= MAX_NAME_LIST_BYTES else None


def read_head(stored: bytes) -> Any:
    """Returns a stored entity whose properties are not decoded: its version and its expiry."""
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


def _reader(
    lists: Sequence[NameList], hook: Callable[[int, memoryview], Any]
) -> Callable[[bytes], Any]:
    """Returns what reads both forms. The number of a list is the tag of a struct, so that msgspec
    goes from the bytes to the values of the right names in one step."""
    read_with_names = msgspec.msgpack.Decoder(StoredEntity, ext_hook=hook).decode
    if not lists:
        return read_with_names
    structs = tuple(_struct(number, names) for number, names in enumerate(lists))
    read_numbered = msgspec.msgpack.Decoder(Union[structs], ext_hook=hook).decode  # noqa: UP007

    def read(stored: bytes) -> Any:
        if stored[:1] == _WITH_NAMES:
            return read_with_names(stored)
        entity: Any = read_numbered(stored)
        entity.properties = _as_dict(entity.properties)
        return entity

    return read


@lru_cache(maxsize=512)  # a type takes a while to make, and a changed table has the same ones
def _struct(number: int, names: NameList) -> Any:
    """Returns the type of an entity with the list `number`; it stores no more than its fields."""
    values = msgspec.defstruct("Values", [(name, Any) for name in names], array_like=True, gc=False)
    fields = [("version", int), ("expires", int), ("properties", values)]
    return msgspec.defstruct("Numbered", fields, array_like=True, tag=number)
