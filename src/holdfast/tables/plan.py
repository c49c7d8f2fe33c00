"""A table's schema, compiled once for all operations.

`plan_of` is a cached pure function of the stored record's bytes. A changed schema has other bytes,
and every process that reads them compiles them again: no cache has to be invalidated.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from holdfast.bounded_cache import BoundedCache
from holdfast.errors import RowKeyTooLong, TableUnavailable
from holdfast.keys import pack_int, pack_str
from holdfast.keys.encoding import COMPLEMENT
from holdfast.limits import (
    MAX_HASH_VALUE_BYTES,
    MAX_INLINE_HASH_BYTES,
    MAX_KEY_BYTES,
    MAX_RANGE_VALUE_BYTES,
    MAX_ROW_KEY_BYTES,
    MIN_COMPRESSED_BY_DEFAULT,
    MIN_COMPRESSED_BYTES,
)
from holdfast.tables import compression
from holdfast.tables.layout import hash_key
from holdfast.tables.policies import Policy, policy_of
from holdfast.tables.records import Item, TableRecord
from holdfast.tables.schema import Schema
from holdfast.tables.types import AttributeKind, AttributeType, Component, type_of, unpack_extension
from holdfast.tables.values import accept_string
from holdfast.tables.versions import version_attribute

LAYOUT: Final = 1  # of the rows; tables with a newer one are refused
VERSION_BYTES: Final = 17  # the length of a version attribute at the end of a row's key

Values = Sequence[Any]  # of a row, by attribute id
_ENCODE: Final = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_AS_DICT: Final = msgspec.structs.asdict
_RECORD: Final = msgspec.msgpack.Decoder(TableRecord)


class Attribute(NamedTuple):
    """An attribute of a table."""

    name: str
    id: int
    type: AttributeType
    accept: Callable[[Any], Any]
    is_key: bool
    is_static: bool


class Element:
    """One hash or range element of an index."""

    __slots__ = ("accept", "attribute", "component", "desc", "id", "max_bytes", "name", "part")

    def __init__(self, attribute: Attribute, desc: bool, max_bytes: int) -> None:
        component = attribute.type.component
        assert component is not None  # the schema was checked: only such types are indexed
        self.attribute = attribute
        self.name = attribute.name
        self.id = attribute.id
        self.accept = attribute.accept
        self.component = _descending(attribute.type.kind, component) if desc else component
        self.part = _part(attribute.accept, self.component)
        self.desc = desc
        self.max_bytes = max_bytes


class Projection:
    """Makes items from stored values: the attributes `names`, whose values are at `positions`."""

    def __init__(self, decoder: Any, names: Sequence[str], positions: Sequence[int]) -> None:
        self.names = tuple(names)
        self._decode = decoder.decode
        fields = decoder.type.__struct_fields__
        self._in_stored_order = tuple(fields) == self.names and tuple(positions) == tuple(
            range(len(fields))
        )
        self._pick = itemgetter(*positions) if len(positions) > 1 else None
        self.json_overhead = sum(len(name.encode()) + 12 for name in names)
        self._only = positions[0] if len(positions) == 1 else 0

    def items(self, bodies: list[bytes]) -> list[Item]:
        """Returns the items of many stored bodies."""
        if self._in_stored_order:
            return list(map(_AS_DICT, map(self._decode, bodies)))
        return [self.item(body) for body in bodies]

    def item(self, body: bytes) -> Item:
        """Returns the item of a stored body."""
        row = self._decode(body)
        if self._in_stored_order:
            return _AS_DICT(row)
        values = msgspec.structs.astuple(row)
        if self._pick is None:
            return {self.names[0]: values[self._only]}
        return dict(zip(self.names, self._pick(values), strict=True))


class Index:
    """The primary index (`id` is None) or a secondary one."""

    def __init__(
        self,
        name: str,
        id: int | None,
        hashes: Sequence[Element],
        ranges: Sequence[Element],
        carried: Sequence[Attribute],
        declared: int,
        per_row: bool,
        complete: bool,
    ) -> None:
        self.name = name
        self.id = id
        self.hashes = tuple(hashes)
        self.ranges = tuple(ranges)
        self.elements = {element.name: element for element in (*hashes, *ranges)}
        self.carried = tuple(carried)
        self.declared = [element.id for element in (*hashes, *ranges)][:declared]
        self.per_row = per_row
        self.complete = complete
        self.positions = {attribute.name: position for position, attribute in enumerate(carried)}
        self.decoder = _decoder([(attribute.name, attribute.type.hint) for attribute in carried])
        self.projection = Projection(
            self.decoder, [attribute.name for attribute in carried], range(len(carried))
        )
        # The first elements of the index, by how many of them a query names.
        path = [(element.name, element.part) for element in (*hashes, *ranges)]
        self.paths = {count: path[:count] for count in (0, *range(len(hashes), len(path) + 1))}
        self.full_prefix = b""  # the table's number and the index's; set by the plan
        self.token_seed = 0  # of the digests in page tokens; set by the plan
        self.prefix = b"" if id is None else pack_int(id)
        self._only_hash = self.hashes[0] if len(self.hashes) == 1 else None
        self._hash_components = [(element.component, element.id) for element in hashes]
        self._range_components = [(element.component, element.id) for element in ranges]

    def hash_part(self, values: Values) -> bytes:
        """Returns a row's hash key, as it follows the prefix of the table or index."""
        return hash_key(self._hash_components_of(values))

    def key(self, values: Values) -> bytes:
        """Returns a row's key below the table or index: hash key and range components."""
        only = self._only_hash
        if only is not None:
            components = only.component(values[only.id])
        else:
            components = self._hash_components_of(values)
        ranges = b""
        for pack, id in self._range_components:
            ranges += pack(values[id])
        if len(components) + len(ranges) > MAX_RANGE_VALUE_BYTES:
            self._check_lengths(values)
        if len(components) > MAX_INLINE_HASH_BYTES:
            components = hash_key(components)
        return components + ranges

    def _hash_components_of(self, values: Values) -> bytes:
        only = self._only_hash
        if only is not None:
            return only.component(values[only.id])
        return b"".join([pack(values[id]) for pack, id in self._hash_components])

    def _check_lengths(self, values: Values) -> None:
        total = 0
        for element in (*self.hashes, *self.ranges):
            value = values[element.id]
            length = _byte_length(value)
            total += length
            if length > element.max_bytes:
                raise RowKeyTooLong(
                    f"The value of {element.name!r} has {length} bytes, at most "
                    f"{element.max_bytes} fit in {self.name}",
                    attribute=element.name,
                )
        components = b"".join([pack(values[id]) for pack, id in self._range_components])
        if total > MAX_ROW_KEY_BYTES or len(components) > MAX_KEY_BYTES - 512:
            raise RowKeyTooLong(
                f"The key attributes in {self.name} have {total} bytes together, at most "
                f"{MAX_ROW_KEY_BYTES} fit",
                attribute=self.hashes[0].name,
            )

    def entry(self, values: Values) -> tuple[bytes, bytes] | None:
        """Returns a row's entry in this index: its key below the table's entries, and its body.

        None if a declared attribute is null."""
        for id in self.declared:
            if values[id] is None:
                return None
        body = [pack_value(attribute, values[attribute.id]) for attribute in self.carried]
        return self.prefix + self.key(values), _ENCODE(body)


class TablePlan:
    """The compiled schema of a table."""

    def __init__(self, record: TableRecord) -> None:
        self.record = record
        self.schema: Schema = msgspec.json.decode(record.schema)
        self.name: str = self.schema["table"]
        self.number = record.number
        self.number_bytes = pack_int(record.number)
        self.version: str | None = version_attribute(self.schema)
        self.width = record.next_id
        elements = self.schema["index"]
        keys = {e["attribute"] for e in elements if e["type"] in ("hash", "range")}
        statics = {e["attribute"] for e in elements if e["type"] == "static"}
        self.attributes = {
            name: _attribute(name, record.ids[name], kind, name in keys, name in statics)
            for name, kind in self.schema["attributes"].items()
        }
        self.slots = {c.name: (c.id, c.accept, c) for c in self.attributes.values()}
        self.statics = [attribute for attribute in self.attributes.values() if attribute.is_static]
        self.to_json = {
            attribute.name: attribute.type.to_json
            for attribute in self.attributes.values()
            if attribute.type.to_json is not None
        }
        self._removed = set(range(self.width)) - {
            attribute.id for attribute in self.attributes.values()
        }
        self._packed = [
            attribute for attribute in self.attributes.values() if attribute.type.pack is not None
        ]
        self.decoder = _decoder(_fields(self.attributes, record.next_id))
        self.projection = self.project(list(self.attributes))
        self.primary = self._primary()
        # A row stores values by id, an index entry in the order of its attributes.
        self.primary.decoder, self.primary.projection = self.decoder, self.projection
        self.key_attributes = [element.attribute for element in self.primary.elements.values()]
        self.key_slots = [(attribute.id, attribute.name) for attribute in self.key_attributes]
        self.indexes = {
            name: self._secondary(name, found)
            for name, found in self.schema.get("secondaryIndexes", {}).items()
        }
        self.per_row_indexes = [index for index in self.indexes.values() if index.per_row]
        self.current_indexes = [index for index in self.indexes.values() if not index.per_row]
        self.policy: Policy = policy_of(self.schema)
        self.generation = 0  # of the policy; new rows store it
        if self.policy.has_generations:
            self.generation = record.policy_generation
        self.default_ttl_ms: int = (
            int(self.schema["options"].get("default_time_to_live") or 0) * 1000
        )
        self.codec, self.warnings = compression.choose(self.schema["options"])
        is_named = self.schema["options"].get("compression") is not None
        self._min_compressed_bytes = MIN_COMPRESSED_BYTES if is_named else MIN_COMPRESSED_BY_DEFAULT
        self.version_id = None if self.version is None else record.ids[self.version]
        # Most tables have rows and nothing else; their puts take the fast path.
        self.is_simple = (
            not self.statics
            and not self.indexes
            and self.policy.keeps_all
            and not self.default_ttl_ms
        )
        self.digest = blake2b(record.schema, digest_size=8).hexdigest()
        for index in (self.primary, *self.indexes.values()):
            index.full_prefix = self.number_bytes + index.prefix
            index.token_seed = crc32(f"{self.name}\0{self.number}\0{index.name}".encode())

    def copy_of_schema(self) -> Schema:
        """Returns a copy for callers, who may change it; the plan is shared."""
        schema: Schema = msgspec.json.decode(self.record.schema)
        return schema

    def project(self, names: Sequence[str]) -> Projection:
        return Projection(self.decoder, names, [self.attributes[name].id for name in names])

    def values(self, body: bytes) -> list[Any]:
        """Returns the values of a row by attribute id; those of removed attributes are dropped."""
        values = list(msgspec.structs.astuple(self.decoder.decode(body)))
        for id in self._removed:
            values[id] = None
        return values

    def pack(self, values: list[Any]) -> bytes:
        """Returns the body of a row with these values, by attribute id; equal for equal values."""
        if self._packed:
            values = values.copy()
            for attribute in self._packed:
                values[attribute.id] = pack_value(attribute, values[attribute.id])
        if values[-1] is None:
            end = len(values) - 1
            while end and values[end - 1] is None:
                end -= 1
            values = values[:end]
        return _ENCODE(values)

    def codec_for(self, body: bytes) -> int:
        """Returns the codec of a row with this body; small rows are not compressed."""
        return self.codec if len(body) >= self._min_compressed_bytes else compression.PLAIN

    def pack_one(self, attribute: Attribute, value: Any) -> bytes:
        return _ENCODE(pack_value(attribute, value))

    def item_as_json(self, item: Item) -> Item:
        """Converts every value of an item to its JSON form, and returns the item."""
        for name, convert in self.to_json.items():
            value = item.get(name)
            if value is not None:
                item[name] = convert(value)
        return item

    def _element(self, element: dict[str, Any]) -> Element:
        is_hash = element["type"] == "hash"
        return Element(
            self.attributes[element["attribute"]],
            element.get("order") == "desc",
            MAX_HASH_VALUE_BYTES if is_hash else MAX_RANGE_VALUE_BYTES,
        )

    def _primary(self) -> Index:
        elements = self.schema["index"]
        hashes = [self._element(e) for e in elements if e["type"] == "hash"]
        ranges = [self._element(e) for e in elements if e["type"] == "range"]
        return Index(
            name="the primary key",
            id=None,
            hashes=hashes,
            ranges=ranges,
            carried=list(self.attributes.values()),
            declared=0,
            per_row=True,
            complete=True,
        )

    def _secondary(self, name: str, elements: list[dict[str, Any]]) -> Index:
        """Returns a secondary index, with the primary key's undeclared attributes added."""
        hashes = [self._element(e) for e in elements if e["type"] == "hash"]
        ranges = [self._element(e) for e in elements if e["type"] == "range"]
        named = {element.name for element in (*hashes, *ranges)}
        implicit = [
            self._element({"type": "range", "attribute": attribute.name, "order": "desc"})
            for attribute in self.key_attributes
            if attribute.name not in named and attribute.name != self.version
        ]
        carried = [element.name for element in (*hashes, *ranges, *implicit)]
        carried += [e["attribute"] for e in elements if e["type"] == "proj"]
        carried += [self.version] if self.version is not None else []
        return Index(
            name=name,
            id=self.record.indexes[name],
            hashes=hashes,
            ranges=ranges + implicit,
            carried=[self.attributes[each] for each in dict.fromkeys(carried)],
            declared=len(hashes) + len(ranges),
            per_row=self.version is None or self.version in named,
            complete=name not in self.record.building,
        )


def _plan_of(record: bytes) -> TablePlan:
    found = _RECORD.decode(record)
    if found.layout > LAYOUT:
        raise TableUnavailable(
            f"a table has the layout version {found.layout}, this Holdfast knows {LAYOUT}",
            hint="Install a newer Holdfast.",
        )
    return TablePlan(found)


# Returns the plan of a table, from the bytes of its record.
plan_of: Final[Callable[[bytes], TablePlan]] = BoundedCache(_plan_of, entries=4096).__getitem__


def pack_value(attribute: Attribute, value: Any) -> Any:
    pack = attribute.type.pack
    return value if pack is None or value is None else pack(value)


def encode_record(record: TableRecord) -> bytes:
    return _ENCODE(record)


def _attribute(name: str, id: int, kind: str, is_key: bool, is_static: bool) -> Attribute:
    found = type_of(kind)
    accept = (found.kind.accept_key if is_key else None) or found.accept
    return Attribute(name, id, found, accept, is_key, is_static)


def _descending(kind: AttributeKind, component: Component) -> Component:
    return kind.descending or (lambda value: component(value).translate(COMPLEMENT))


def _part(accept: Callable[[Any], Any], component: Component) -> Component:
    """Returns the function that converts a given value to its bytes in a key."""
    if accept is accept_string and component is pack_str:
        return text_part
    return lambda value: component(accept(value))


def text_part(value: Any) -> bytes:
    """Returns the bytes of a text in a key, in ascending order."""
    if type(value) is str and value.isascii() and "\0" not in value and "\1" not in value:
        return f"\x54{value}\0".encode()  # what `pack_str` returns for most texts
    return pack_str(accept_string(value))


def _byte_length(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else 0


def _fields(attributes: dict[str, Attribute], width: int) -> list[tuple[str, Any]]:
    """Returns name and type of every id; the values of removed attributes are skipped."""
    fields: list[tuple[str, Any]] = [(f"_{id}", Any) for id in range(width)]
    for attribute in attributes.values():
        fields[attribute.id] = (attribute.name, attribute.type.hint)
    return fields


def _decoder(fields: list[tuple[str, Any]]) -> Any:
    """Returns a decoder of arrays into a struct, in C. A name that can't be a field is replaced."""
    struct = msgspec.defstruct(
        "Row",
        [
            (name if name.isidentifier() else f"_{position}", hint, None)
            for position, (name, hint) in enumerate(fields)
        ],
        array_like=True,
        gc=False,  # it is short-lived, and never part of a reference cycle
    )
    return msgspec.msgpack.Decoder(struct, ext_hook=unpack_extension)
