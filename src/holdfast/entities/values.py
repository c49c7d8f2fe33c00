"""The values that an entity can hold, and the form in which they are kept.

    Int, Uint   int, -2^63 .. 2^64 - 1       Set         set: an extension with sorted elements
    Float       float, bit for bit           List        list or tuple
    Text        str                          Map         dict with text keys
    Bool        bool                         null        None
    Binary      bytes                        Timestamp   datetime in whole milliseconds; an
                                                         `Instant` outside the years 1 to 9999

The *kept* form of a value is what msgspec can encode directly: a Set is kept as an `Ext`, every
other value as itself. Values are merged, updated and indexed in this form; a Set becomes a Python
set only when it leaves the layer."""

import struct
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.msgpack import Ext

from holdfast.bounded_cache import BoundedCache
from holdfast.entities import order
from holdfast.entities.order import SET_CODE
from holdfast.errors import BadQuery, BadValue
from holdfast.limits import MAX_COLLECTION_ITEMS, MAX_VALUE_DEPTH

Instant = order.Instant

MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1
MAX_UINT: Final = 2**64 - 1

_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})
_encode: Final = msgspec.msgpack.Encoder(enc_hook=order.write_instant).encode
_decode_list: Final = msgspec.msgpack.Decoder(list[Any]).decode


def to_kept(value: Any, depth: int = 1) -> Any:
    """Returns the kept form of `value`, or raises `BadValue`."""
    kind = type(value)
    if kind in _PLAIN or kind is Instant:
        return value
    if kind is Ext:
        return _keep_extension(value)
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, (list, tuple)):
        _check_depth(depth)
        check_items("List", len(value))
        return [to_kept(item, depth + 1) for item in value]
    if isinstance(value, dict):
        _check_depth(depth)
        check_items("Map", len(value))
        return {check_name(name): to_kept(item, depth + 1) for name, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return keep_set(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):  # a subclass, such as an enumeration, whose own str() is its name
        return str.__str__(value)
    for base in (int, float, bytes):
        if isinstance(value, base):
            plain: Any = base
            return plain(value)
    raise BadValue(
        f"Type {kind.__name__} not allowed for entities",
        hint="A value is None, bool, int, float, str, bytes, datetime, set, list or dict.",
    )


def keep_properties(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns the kept form of all properties, without `id`, which is stored separately."""
    if _PLAIN.issuperset(map(type, properties.values())) and _named[tuple(properties)]:
        return properties
    return _keep_checked(properties)


def _are_names(names: tuple[Any, ...]) -> bool:
    return all(type(name) is str and name and "\0" not in name and name != "id" for name in names)


# The entities of a table mostly have the same properties.
_named: Final = BoundedCache(_are_names, entries=1024)


def _keep_checked(properties: dict[str, Any]) -> dict[str, Any]:
    kept = {}
    for name, value in properties.items():
        if not isinstance(name, str) or not name:
            raise BadQuery("Empty properties not allowed in entities")
        if name != "id":
            kept[check_name(name)] = to_kept(value)
    return kept


def keep_set(elements: Iterable[Any]) -> Ext:
    """Returns a Set: its elements distinct and in ascending order. The first of equal elements is
    kept."""
    distinct: dict[bytes, Any] = {}
    try:
        for element in elements:
            kept = to_kept(element)
            if type(kept) in (Ext, list, dict):
                raise BadValue(
                    "Type Set not allowed for entities with an element that is a container",
                    hint="The elements of a Set are numbers, texts, bools, times, bytes or null.",
                )
            distinct.setdefault(order.identity(kept), kept)
        check_items("Set", len(distinct))
        return Ext(SET_CODE, _encode([distinct[key] for key in sorted(distinct)]))
    except (OverflowError, UnicodeEncodeError) as error:
        raise unstorable(error) from None


def unstorable(error: OverflowError | UnicodeEncodeError) -> BadValue:
    """Returns the error for a number or a text that no encoder can write."""
    if isinstance(error, OverflowError):
        return BadValue(
            "Type int not allowed for entities beyond 64 bits",
            hint="Integers go from -2^63 to 2^64 - 1.",
        )
    return BadValue(
        f"Type str not allowed for entities with a lone surrogate: {error.reason}",
        hint="Store bytes where text may not be Unicode.",
    )


def _keep_extension(value: Ext) -> Any:
    """Checks a Set or an Instant that came in its stored form: clients can send it as msgpack."""
    try:
        if value.code == SET_CODE:
            check_items("Set", items_in(value))
            return keep_set(_decode_list(value.data))
        if value.code == order.INSTANT_CODE:
            return order.read_instant(bytes(value.data))
    except (msgspec.MsgspecError, struct.error, UnicodeDecodeError, RecursionError):
        pass
    raise BadValue(
        f"Type Ext not allowed for entities: extension {value.code} is damaged or unknown"
    )


def elements_of(kept_set: Ext) -> list[Any]:
    """Returns the elements of a kept Set, in ascending order."""
    return [_instant(element) for element in _decode_list(kept_set.data)]


def items_in(kept_set: Ext) -> int:
    """Returns the number of elements of a kept Set; it reads the header of their array only."""
    data = bytes(memoryview(kept_set.data)[:5])
    if data[:1] in (b"\xdc", b"\xdd"):
        return int.from_bytes(data[1 : 3 if data[:1] == b"\xdc" else 5])
    return data[0] & 15 if data else 0


def check_items(kind: str, items: int) -> None:
    """Raises if a collection has, or gets, so many items that changing it would take long."""
    if items > MAX_COLLECTION_ITEMS:
        raise BadValue(
            f"a {kind} of {items} items is not allowed for entities, at most "
            f"{MAX_COLLECTION_ITEMS} fit",
            hint="Store the items as entities of their own, or as one text or bytes.",
        )


def is_set(kept: Any) -> bool:
    return type(kept) is Ext and kept.code == SET_CODE


def from_kept(kept: Any) -> Any:
    """Returns the value as a caller gets it: the opposite of `to_kept`."""
    kind = type(kept)
    if kind in _PLAIN:
        return kept
    if kind is list:
        return [from_kept(item) for item in kept]
    if kind is dict:
        return {name: from_kept(item) for name, item in kept.items()}
    return extension(kept.code, kept.data) if kind is Ext else kept


def extension(code: int, data: memoryview | bytes) -> Any:
    """Returns the value of a stored extension as a caller gets it; for decoders."""
    if code == SET_CODE:
        return {_instant(element) for element in _decode_list(data)}
    return order.read_instant(bytes(data))


def kept_extension(code: int, data: memoryview | bytes) -> Any:
    """Returns a Set in kept form; for decoders of entities that will be written again."""
    return Ext(code, bytes(data)) if code == SET_CODE else order.read_instant(bytes(data))


def write_instant(value: Any) -> Ext:
    """Encodes an Instant, the one value that msgspec can't; the `enc_hook` of all encoders."""
    if isinstance(value, Instant):
        return order.write_instant(value)
    raise BadValue(f"Type {type(value).__name__} not allowed for entities")


def _instant(element: Any) -> Any:
    return order.read_instant(bytes(element.data)) if type(element) is Ext else element


def _moment(moment: datetime) -> datetime:
    """Returns `moment` in UTC and whole milliseconds; without a time zone it is taken as UTC."""
    try:
        utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise BadValue(
            f"the datetime {moment.isoformat()} is outside the years 1 to 9999"
        ) from None
    excess = utc.microsecond % 1000
    return utc.replace(microsecond=utc.microsecond - excess) if excess else utc


def check_name(name: Any) -> str:
    """Returns `name` if it can name a property or a key of a Map; raises otherwise."""
    if not isinstance(name, str) or "\0" in name:
        raise BadValue(f"{name!r} is not a name for a property: it must be text without U+0000")
    return name


def _check_depth(depth: int) -> None:
    if depth > MAX_VALUE_DEPTH:
        raise BadValue(f"a value is nested deeper than {MAX_VALUE_DEPTH} lists and maps")
