"""Converts the BSON values of Meduza's protocol to the kept form and back.

The first element of every array that is sent is a mark: it says whether the array is a Set or a
List. In arrays that are received the mark is optional."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from msgspec.msgpack import Ext

from holdfast.entities.bson_codec import UnsupportedValue
from holdfast.entities.bson_types import Binary, DatetimeMS, Int64
from holdfast.entities.values import Instant, check_items, elements_of, keep_set
from holdfast.errors import BadValue
from holdfast.limits import MAX_VALUE_DEPTH

SET_MARK: Final = "__MDZS__"
LIST_MARK: Final = "__MDZL__"


def from_wire(value: Any, depth: int = 1) -> Any:
    """Returns the kept form of a decoded BSON value."""
    reader = _FROM.get(type(value))
    if reader is None:
        name = value.name if isinstance(value, UnsupportedValue) else type(value).__name__
        raise BadValue(f"Type {name} not allowed for entities")
    return reader(value, depth)


def to_wire(kept: Any) -> Any:
    """Returns the value that the BSON codec writes for a kept one."""
    writer = _TO.get(type(kept))
    return kept if writer is None else writer(kept)


def properties_to_wire(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if (writer := _TO.get(type(value))) is None else writer(value)
        for name, value in properties.items()
    }


def _unchanged(value: Any, depth: int) -> Any:
    return value


def _array(value: list[Any], depth: int) -> Any:
    _check_depth(depth)
    mark = value[0] if value and type(value[0]) is str else ""
    if mark == SET_MARK:
        check_items("Set", len(value) - 1)
        return keep_set([from_wire(item) for item in value[1:]])
    items = value[1:] if mark == LIST_MARK else value
    return [from_wire(item, depth + 1) for item in items]


def _map(value: dict[str, Any], depth: int) -> dict[str, Any]:
    _check_depth(depth)
    return {name: from_wire(item, depth + 1) for name, item in value.items()}


def _check_depth(depth: int) -> None:
    if depth > MAX_VALUE_DEPTH:
        raise BadValue(f"a value is nested deeper than {MAX_VALUE_DEPTH} lists and maps")


def _set_to_wire(value: Ext) -> list[Any]:
    return [SET_MARK, *map(to_wire, elements_of(value))]


def _list_to_wire(value: list[Any]) -> list[Any]:
    return [LIST_MARK, *map(to_wire, value)]


_FROM: Final[dict[type, Callable[[Any, int], Any]]] = {
    type(None): _unchanged,
    bool: _unchanged,
    int: _unchanged,
    Int64: lambda value, depth: int(value),
    float: _unchanged,
    str: _unchanged,
    bytes: _unchanged,
    Binary: lambda value, depth: bytes(value),
    datetime: _unchanged,
    DatetimeMS: lambda value, depth: Instant(int(value)),
    list: _array,
    dict: _map,
}
_TO: Final[dict[type, Callable[[Any], Any]]] = {
    int: Int64,
    Instant: lambda value: DatetimeMS(value.milliseconds),
    Ext: _set_to_wire,
    list: _list_to_wire,
    dict: properties_to_wire,
}
