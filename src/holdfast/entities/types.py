"""The types of columns, each with all that schemas, models, strict tables and generators need.

A type is one entry of `COLUMN_KINDS`; its name is listed in `ColumnType` for type checkers. How a
value is stored, sorted and sent depends on the Python type of the value, not on its column (see
`values.py`), so a type whose values are of one of those needs nothing else.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec
from msgspec.msgpack import Ext

from holdfast.entities.order import Instant
from holdfast.entities.values import MAX_INT, MAX_UINT, MIN_INT

ColumnType = Literal[
    "Int", "Uint", "Float", "Text", "Bool", "Timestamp", "Binary", "Set", "List", "Map"
]
NOW: Final = "$now"  # as the default of a Timestamp column: the moment of creation

_FLOAT: Final = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


class ValueMismatch(Exception):
    """A value that does not fit its column; the message says what it is."""


class Scalar(NamedTuple):
    """A value in a schema file that is neither a list nor a map."""

    value: Any  # as YAML understands it
    written: str  # as it is written
    is_quoted: bool
    shown: str  # for messages


class ColumnKind(msgspec.Struct, frozen=True, kw_only=True):
    """All facts about one type of column."""

    python: type  # the type of the value in an object of a model
    converts: tuple[type, ...] = ()  # values of these types become `python`
    annotations: tuple[type, ...] = ()  # those that mean this type; none: it must be named
    fits: Callable[[Any], bool]  # whether a strict table accepts a stored value
    read: Callable[[Scalar], Any] | None = None  # a default of a schema; None for a container
    bounds: tuple[int, int] | None = None  # of an integer
    is_text: bool = False  # schema files mean it as written; choices become literal types
    is_sized: bool = False  # `max_len` bounds it
    has_now: bool = False  # `$now` is a default
    is_container: bool = False
    has_names: bool = False  # a container of values by name
    is_distinct: bool = False  # a container that holds a value once, and no containers
    go: str  # of a container, with {} for its element
    go_key: str = ""  # as the element of a Go map's keys, if that is not `go`
    go_is_nil: bool = False  # whether a Go value of it can be nil
    typescript: str  # of a container, with {} for its element
    typescript_bigint: str = ""  # with `--bigint`, if that is not `typescript`
    meduza: str = ""  # the type to use in code for the public Meduza clients, if they lack this one

    @property
    def python_source(self) -> str:
        """The type in generated Python; of a container, with {} for its element."""
        name = self.python.__name__
        if not self.is_container:
            return name
        return f"{name}[str, {{}}]" if self.has_names else f"{name}[{{}}]"


# --- values of schema files ----------------------------------------------------------------------


def _read_text(scalar: Scalar) -> str:
    return scalar.written


def _read_bool(scalar: Scalar) -> bool:
    if not isinstance(scalar.value, bool):
        raise ValueMismatch(scalar.shown)
    return scalar.value


def _read_float(scalar: Scalar) -> float:
    value = scalar.value
    if isinstance(value, str) and not scalar.is_quoted and _FLOAT.fullmatch(value):
        return float(value)  # YAML 1.1 wants a dot and a sign in 1.0e+3; people write 1e3
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueMismatch(scalar.shown)
    return float(value)


def _read_binary(scalar: Scalar) -> bytes:
    if isinstance(scalar.value, str):
        return scalar.value.encode()
    if not isinstance(scalar.value, bytes):
        raise ValueMismatch(scalar.shown)
    return scalar.value


def _integer_reader(low: int, high: int) -> Callable[[Scalar], int]:
    def read(scalar: Scalar) -> int:
        number = scalar.value
        if not isinstance(number, int) or isinstance(number, bool):
            raise ValueMismatch(scalar.shown)
        if not low <= number <= high:
            raise ValueMismatch(f"{number}, which needs more than 64 bits or has the wrong sign,")
        return number

    return read


def _read_timestamp(scalar: Scalar) -> Any:
    value = scalar.value
    if value in (NOW, "current_timestamp"):
        return NOW
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            from holdfast.yaml_text import shortened  # loads yaml, which only schema files need

            raise ValueMismatch(f"'{shortened(value)}'") from None
    if not isinstance(value, date):
        raise ValueMismatch(f"'{value}'")
    return read_moment(value)


def read_moment(value: date) -> datetime:
    """Returns a date or a moment of a schema file in UTC and whole milliseconds."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    milliseconds = aware.microsecond // 1000  # finer times can't be stored
    try:
        return aware.astimezone(UTC).replace(microsecond=milliseconds * 1000)
    except OverflowError:
        raise ValueMismatch(f"'{value}', which is outside the years 1 to 9999 in UTC,") from None


# --- the table -----------------------------------------------------------------------------------

COLUMN_KINDS: Final[dict[str, ColumnKind]] = {
    "Int": ColumnKind(
        python=int,
        annotations=(int,),
        fits=lambda value: type(value) is int and value <= MAX_INT,
        read=_integer_reader(MIN_INT, MAX_INT),
        bounds=(MIN_INT, MAX_INT),
        go="int64",
        typescript="number",
        typescript_bigint="bigint",
    ),
    "Uint": ColumnKind(
        python=int,
        fits=lambda value: type(value) is int and value >= 0,
        read=_integer_reader(0, MAX_UINT),
        bounds=(0, MAX_UINT),
        go="uint64",
        typescript="number",
        typescript_bigint="bigint",
    ),
    "Float": ColumnKind(
        python=float,
        converts=(int,),
        annotations=(float,),
        fits=lambda value: type(value) in (float, int),
        read=_read_float,
        go="float64",
        typescript="number",
    ),
    "Text": ColumnKind(
        python=str,
        annotations=(str,),
        fits=lambda value: type(value) is str,
        read=_read_text,
        is_text=True,
        is_sized=True,
        go="string",
        typescript="string",
    ),
    "Bool": ColumnKind(
        python=bool,
        annotations=(bool,),
        fits=lambda value: type(value) is bool,
        read=_read_bool,
        go="bool",
        typescript="boolean",
    ),
    "Timestamp": ColumnKind(
        python=datetime,
        annotations=(datetime,),
        fits=lambda value: type(value) in (datetime, Instant),
        read=_read_timestamp,
        has_now=True,
        go="time.Time",
        typescript="Date",
    ),
    "Binary": ColumnKind(
        python=bytes,
        converts=(bytearray, memoryview),
        annotations=(bytes,),
        fits=lambda value: type(value) is bytes,
        read=_read_binary,
        is_sized=True,
        go="[]byte",
        go_key="string",  # a slice can't be a key
        go_is_nil=True,
        typescript="Uint8Array",
    ),
    "Set": ColumnKind(
        python=set,
        converts=(frozenset,),
        annotations=(set, frozenset),
        fits=lambda value: type(value) is Ext,
        is_sized=True,
        is_container=True,
        is_distinct=True,
        go="map[{}]struct{{}}",
        go_is_nil=True,
        typescript="Set<{}>",
    ),
    "List": ColumnKind(
        python=list,
        converts=(tuple,),
        annotations=(list,),
        fits=lambda value: type(value) is list,
        is_sized=True,
        is_container=True,
        go="[]{}",
        go_is_nil=True,
        typescript="{}[]",
    ),
    "Map": ColumnKind(
        python=dict,
        annotations=(dict,),
        fits=lambda value: type(value) is dict,
        is_sized=True,
        is_container=True,
        has_names=True,
        go="map[string]{}",
        go_is_nil=True,
        typescript="Record<string, {}>",
    ),
}

COLUMN_TYPES: Final[tuple[ColumnType, ...]] = get_args(ColumnType)


def meduza_type(type: str) -> str:
    """Returns the name of a type in code for the public Meduza clients."""
    return COLUMN_KINDS[type].meduza or type


def is_now(type: str, default: Any) -> bool:
    """Returns whether a column's default is the time at which an entity is created."""
    return bool(default == NOW and COLUMN_KINDS[type].has_now)
