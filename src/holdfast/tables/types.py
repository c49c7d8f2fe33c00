"""The types of attributes, each with everything that the layer needs to know about it.

A type is one entry of `ATTRIBUTE_KINDS`; each also exists as a set, for example `set<string>`.
"""

import json
import operator
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Final
from uuid import UUID

import msgspec

from holdfast.keys.encoding import PACKERS, TimeUUID, pack_time_uuid_desc
from holdfast.limits import MAX_COLLECTION_ITEMS, MAX_DECIMAL_ZEROS
from holdfast.tables.values import (
    EXACT,
    accept_blob,
    accept_boolean,
    accept_decimal,
    accept_double,
    accept_float,
    accept_int,
    accept_json,
    accept_key_decimal,
    accept_long,
    accept_string,
    accept_timestamp,
    accept_timeuuid,
    accept_uuid,
    accept_varint,
    text_boolean,
    text_timestamp,
)

Convert = Callable[[Any], Any]
Component = Callable[[Any], bytes]

_SAFE_INTEGER: Final = 2**53 - 1  # the largest that every JSON parser reads exactly
_BIG_JSON: Final = 1  # codes of msgpack extensions: values with integers beyond 64 bits, as text
_BIG_INTEGER: Final = 2


class AttributeKind(msgspec.Struct, frozen=True, kw_only=True):
    """All facts about one type of attribute, and about sets of it."""

    accept: Convert  # anything to the stored value; ValueError says what is wrong
    accept_key: Convert | None = None  # like `accept`, in a key; None: it is `accept`
    from_text: Convert | None = None  # like `accept`, from the text of a URL; None: it is `accept`
    to_json: Convert | None = None  # None: the value is its own JSON form
    pack: Convert | None = None  # None: msgpack encodes the value as it is
    component: Component | None = None  # bytes that sort as the values do; None: can't be in a key
    descending: Component | None = None  # None: the complement of `component`
    python: Any = Any  # what msgspec decodes a stored value into
    zero: Any = None  # the value that `incr` starts from; None: can't be increased
    add: Callable[[Any, Any], Any] = operator.add  # adds an amount to a value
    takes_buffers: bool = False  # Node's form of a Buffer is a value
    takes_objects: bool = False  # every object of JSON is a value
    has_time: bool = False  # a range of values can be given as times
    is_text: bool = False  # a cell of CSV is the text itself, not JSON

    @property
    def order(self) -> Component:
        """Returns the function whose bytes order the members of a set."""
        return self.component or json_text


class AttributeType(msgspec.Struct, frozen=True, kw_only=True):
    """A type that a schema names: how its values are accepted, stored, sorted and shown."""

    name: str
    kind: AttributeKind  # of the value, or of the members of a set
    is_set: bool
    accept: Convert  # anything to the stored value; ValueError says what is wrong
    from_text: Convert  # like `accept`, from the text of a URL
    to_json: Convert | None  # None: the value is its own JSON form
    pack: Convert | None  # None: msgpack encodes the value as it is
    component: Component | None  # None: can't be indexed
    hint: Any  # what msgspec decodes the stored value, or null, into


def plain_text(value: Decimal) -> str:
    """Returns a decimal in plain notation, unless that would need more than 40 zeros.

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


# One entry for each type; docs/why/extending.md says how to add one.
ATTRIBUTE_KINDS: Final[dict[str, AttributeKind]] = {
    "string": AttributeKind(
        accept=accept_string,
        component=PACKERS[str],
        python=str,
        takes_buffers=True,
        is_text=True,
    ),
    "blob": AttributeKind(
        accept=accept_blob,
        to_json=_blob_json,
        component=PACKERS[bytes],
        python=bytes,
        takes_buffers=True,
        is_text=True,
    ),
    "boolean": AttributeKind(
        accept=accept_boolean,
        from_text=text_boolean,
        component=PACKERS[bool],
        python=bool,
    ),
    "int": AttributeKind(accept=accept_int, component=PACKERS[int], python=int, zero=0),
    "long": AttributeKind(
        accept=accept_long,
        to_json=str,
        component=PACKERS[int],
        python=int,
        zero=0,
        is_text=True,
    ),
    "varint": AttributeKind(
        accept=accept_varint,
        to_json=_varint_json,
        pack=_pack_varint,
        component=PACKERS[int],
        zero=0,
        is_text=True,
    ),
    "decimal": AttributeKind(
        accept=accept_decimal,
        accept_key=accept_key_decimal,
        to_json=plain_text,
        component=PACKERS[Decimal],
        python=Decimal,
        zero=Decimal(0),
        add=EXACT.add,
        is_text=True,
    ),
    "float": AttributeKind(
        accept=accept_float,
        component=PACKERS[float],
        python=float,
        zero=0.0,
    ),
    "double": AttributeKind(
        accept=accept_double,
        component=PACKERS[float],
        python=float,
        zero=0.0,
    ),
    "timeuuid": AttributeKind(
        accept=accept_timeuuid,
        to_json=str,
        component=PACKERS[TimeUUID],
        descending=pack_time_uuid_desc,
        python=UUID,
        has_time=True,
        is_text=True,
    ),
    "uuid": AttributeKind(
        accept=accept_uuid,
        to_json=str,
        component=PACKERS[UUID],
        python=UUID,
        is_text=True,
    ),
    "timestamp": AttributeKind(
        accept=accept_timestamp,
        from_text=text_timestamp,
        to_json=iso_text,
        component=PACKERS[datetime],
        python=datetime,
        is_text=True,
    ),
    "json": AttributeKind(accept=accept_json, pack=_pack_json, takes_objects=True),
}


def type_names() -> list[str]:
    """Returns the names of all types, and of sets of them."""
    return [*ATTRIBUTE_KINDS, *(f"set<{name}>" for name in ATTRIBUTE_KINDS)]


def is_type(name: str) -> bool:
    """Returns whether a schema can name this type."""
    return _element_name(name) in ATTRIBUTE_KINDS


def _element_name(name: str) -> str:
    return name[4:-1] if name.startswith("set<") and name.endswith(">") else name


@lru_cache(maxsize=64)
def type_of(name: str) -> AttributeType:
    """Returns the type of that name, which is one of `type_names()`."""
    kind = ATTRIBUTE_KINDS[_element_name(name)]
    if name in ATTRIBUTE_KINDS:
        return AttributeType(
            name=name,
            kind=kind,
            is_set=False,
            accept=kind.accept,
            from_text=kind.from_text or kind.accept,
            to_json=kind.to_json,
            pack=kind.pack,
            component=kind.component,
            hint=Any if kind.python is Any else kind.python | None,
        )
    return AttributeType(
        name=name,
        kind=kind,
        is_set=True,
        accept=partial(accept_set, kind),
        from_text=_no_text,
        to_json=None if kind.to_json is None else partial(_each, kind.to_json),
        pack=None if kind.pack is None else partial(_each, kind.pack),
        component=None,
        hint=_optional_list(kind.python),
    )


def _optional_list(hint: Any) -> Any:
    return list[hint] | None


def accept_set(kind: AttributeKind, value: Any) -> list[Any] | None:
    """Returns a sorted set without duplicates (the first form stays); None if it is empty."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise ValueError("an array is expected")
    accept, order = kind.accept, kind.order
    members: dict[bytes, Any] = {}
    for each in value:
        if each is None:
            raise ValueError("the members of a set are not null")
        member = accept(each)
        members.setdefault(order(member), member)
    if len(members) > MAX_COLLECTION_ITEMS:
        raise ValueError(
            f"a set has at most {MAX_COLLECTION_ITEMS} members, these are {len(members)}"
        )
    return [members[key] for key in sorted(members)] or None


def without_members(
    kind: AttributeKind, members: list[Any], removed: list[Any]
) -> list[Any] | None:
    """Returns the members of a set that equal none of `removed`."""
    order = kind.order
    removed_keys = set(map(order, removed))
    return [member for member in members if order(member) not in removed_keys] or None


def increased(type: AttributeType, value: Any, amount: Any) -> Any:
    """Returns `value` plus `amount`, exactly if the type is exact; a missing value counts as 0."""
    kind = type.kind
    if type.is_set or kind.zero is None:
        raise ValueError(f"a {type.name} can't be increased, only numbers can")
    before = kind.zero if value is None else value
    return kind.accept(kind.add(before, kind.accept(amount)))


def equal(type: AttributeType, left: Any, right: Any) -> bool:
    """Returns whether two values of a type are equal; neither may be null."""
    if type.component is not None:
        return type.component(left) == type.component(right)
    if type.is_set:
        order = type.kind.order
        return list(map(order, left)) == list(map(order, right))
    return json_text(left) == json_text(right)


def _each(convert: Convert, values: list[Any]) -> list[Any]:
    return [convert(value) for value in values]


def _no_text(text: str) -> Any:
    raise ValueError("a set can't be written in a URL")
