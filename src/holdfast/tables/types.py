"""The 26 types of attributes, each with all that the layer asks of a type."""

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Final
from uuid import UUID

import msgspec

from holdfast.keys.encoding import PACKERS, TimeUUID
from holdfast.limits import MAX_DECIMAL_ZEROS
from holdfast.tables.values import ACCEPT, EXACT, FROM_TEXT

Convert = Callable[[Any], Any]

_SAFE_INTEGER: Final = 2**53 - 1  # what every JSON parser keeps
_BIG_JSON: Final = 1  # codes of msgpack extensions: values with integers beyond 64 bits, as text
_BIG_INTEGER: Final = 2


class AttributeType(msgspec.Struct, frozen=True, kw_only=True):
    """One type: how its values are accepted, stored, sorted and shown."""

    name: str
    element: str  # the type itself, or what the set holds
    is_set: bool
    accept: Convert  # anything to the stored value; ValueError says what is wrong
    from_text: Convert  # like `accept`, from the text of a URL
    to_json: Convert | None  # None: the value is its own JSON form
    pack: Convert | None  # None: msgpack takes the value as it is
    component: Callable[[Any], bytes] | None  # None: can't be indexed
    hint: Any  # what msgspec decodes the stored value into


def plain_text(value: Decimal) -> str:
    """Returns plain notation, unless it would need more than 40 zeros.

    >>> plain_text(Decimal("1.40")), plain_text(Decimal("1E-3")), plain_text(Decimal("1E+41"))
    ('1.40', '0.001', '1E+41')
    """
    _, digits, exponent = value.as_tuple()
    zeros = int(exponent) if int(exponent) > 0 else -(len(digits) + int(exponent))
    return str(value) if zeros > MAX_DECIMAL_ZEROS else format(value, "f")


def iso_text(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds")[:23] + "Z"


def json_text(value: Any) -> bytes:
    """Returns compact text with sorted members: equal for equal values, and the order of a set.

    >>> json_text({"b": 1.0, "a": 2.5}) == json_text({"a": 2.5, "b": 1})
    True
    """
    plain = _with_plain_numbers(value)
    return json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _with_plain_numbers(value: Any) -> Any:
    """Returns a JSON value with 1.0 as 1: JSON has one kind of numbers."""
    if type(value) is float:
        return int(value) if value.is_integer() else value
    if type(value) is list:
        return [_with_plain_numbers(each) for each in value]
    if type(value) is dict:
        return {name: _with_plain_numbers(each) for name, each in value.items()}
    return value


def unpack_extension(code: int, data: memoryview) -> Any:
    text = bytes(data)
    return json.loads(text) if code == _BIG_JSON else int(text)


def _pack_varint(value: int) -> Any:
    if -(2**63) <= value < 2**63:
        return value
    return msgspec.msgpack.Ext(_BIG_INTEGER, str(value).encode())


def _pack_json(value: Any) -> Any:
    return msgspec.msgpack.Ext(_BIG_JSON, json_text_as_written(value)) if _is_big(value) else value


def json_text_as_written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _is_big(value: Any) -> bool:
    """Returns whether an integer beyond 64 bits is somewhere in a JSON value."""
    if type(value) is int:
        return not -(2**63) <= value < 2**63
    if type(value) is list:
        return any(map(_is_big, value))
    return type(value) is dict and any(map(_is_big, value.values()))


def _varint_json(value: int) -> int | str:
    return value if -_SAFE_INTEGER <= value <= _SAFE_INTEGER else str(value)


def _blob_json(value: bytes) -> str:
    return b64encode(value).decode()


# The bytes of a value in a key, which sort as the values do. `json` can't be in keys.
COMPONENTS: Final[dict[str, Callable[[Any], bytes]]] = {
    "string": PACKERS[str],
    "blob": PACKERS[bytes],
    "boolean": PACKERS[bool],
    "int": PACKERS[int],
    "long": PACKERS[int],
    "varint": PACKERS[int],
    "decimal": PACKERS[Decimal],
    "float": PACKERS[float],
    "double": PACKERS[float],
    "timeuuid": PACKERS[TimeUUID],
    "uuid": PACKERS[UUID],
    "timestamp": PACKERS[datetime],
}

_TO_JSON: Final[dict[str, Convert]] = {
    "blob": _blob_json,
    "long": str,
    "varint": _varint_json,
    "decimal": plain_text,
    "timeuuid": str,
    "uuid": str,
    "timestamp": iso_text,
}

_PACK: Final[dict[str, Convert]] = {"varint": _pack_varint, "json": _pack_json}

_HINTS: Final[dict[str, Any]] = {
    "string": str,
    "blob": bytes,
    "boolean": bool,
    "int": int,
    "long": int,
    "varint": Any,
    "decimal": Decimal,
    "float": float,
    "double": float,
    "timeuuid": UUID,
    "uuid": UUID,
    "timestamp": datetime,
    "json": Any,
}

_ZERO: Final[dict[str, Any]] = {
    "int": 0,
    "long": 0,
    "varint": 0,
    "decimal": Decimal(0),
    "float": 0.0,
    "double": 0.0,
}

TYPE_NAMES: Final = frozenset([*ACCEPT, *(f"set<{name}>" for name in ACCEPT)])


@lru_cache(maxsize=64)
def type_of(name: str) -> AttributeType:
    """Returns the type of that name, which is one of `TYPE_NAMES`."""
    if not name.startswith("set<"):
        return AttributeType(
            name=name,
            element=name,
            is_set=False,
            accept=ACCEPT[name],
            from_text=FROM_TEXT[name],
            to_json=_TO_JSON.get(name),
            pack=_PACK.get(name),
            component=COMPONENTS.get(name),
            hint=_HINTS[name] | None if _HINTS[name] is not Any else Any,
        )
    element = name[4:-1]
    to_json, pack = _TO_JSON.get(element), _PACK.get(element)
    return AttributeType(
        name=name,
        element=element,
        is_set=True,
        accept=partial(accept_set, element),
        from_text=_no_text,
        to_json=None if to_json is None else partial(_each, to_json),
        pack=None if pack is None else partial(_each, pack),
        component=None,
        hint=_optional_list(_HINTS[element]),
    )


def _optional_list(hint: Any) -> Any:
    return list[hint] | None


def accept_set(element: str, value: Any) -> list[Any] | None:
    """Returns a sorted set without duplicates (the first form stays); None if it is empty."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise ValueError("an array is expected")
    accept, order = ACCEPT[element], COMPONENTS.get(element, json_text)
    members: dict[bytes, Any] = {}
    for each in value:
        if each is None:
            raise ValueError("the members of a set are not null")
        member = accept(each)
        members.setdefault(order(member), member)
    return [members[key] for key in sorted(members)] or None


def without(element: str, members: list[Any], removed: list[Any]) -> list[Any] | None:
    """Returns the members of a set that equal none of `removed`."""
    order = COMPONENTS.get(element, json_text)
    gone = set(map(order, removed))
    return [member for member in members if order(member) not in gone] or None


def increased(kind: AttributeType, value: Any, amount: Any) -> Any:
    """`value` plus `amount`, exactly where the type is exact; no value counts as 0."""
    if kind.is_set or kind.name not in _ZERO:
        raise ValueError(f"a {kind.name} can't be increased, only numbers can")
    amount = ACCEPT["decimal" if kind.name == "decimal" else kind.name](amount)
    before = _ZERO[kind.name] if value is None else value
    return kind.accept(EXACT.add(before, amount) if kind.name == "decimal" else before + amount)


def equal(kind: AttributeType, left: Any, right: Any) -> bool:
    """Returns whether two values, neither of them null, are the same to their type."""
    if kind.component is not None:
        return kind.component(left) == kind.component(right)
    if kind.is_set:
        order = COMPONENTS.get(kind.element, json_text)
        return list(map(order, left)) == list(map(order, right))
    return json_text(left) == json_text(right)


def _each(convert: Convert, values: list[Any]) -> list[Any]:
    return [convert(value) for value in values]


def _no_text(text: str) -> Any:
    raise ValueError("a set can't be written in a URL")
