"""The columns of the public Meduza client."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from holdfast.compat.meduza.client.errors import ColumnValueError, MeduzaError
from holdfast.compat.meduza.client.queries import Change, Condition, Filter, from_wire, unmarked
from holdfast.entities.bson_values import LIST_MARK, SET_MARK
from holdfast.entities.columns import now

_UNDEFINED: Final = object()


class Column:
    """A column. On the class of a model it is itself, on an object the value, or a zero."""

    Undefined: ClassVar[Any] = _UNDEFINED
    zero: ClassVar[Any] = None
    primary = False

    def __init__(
        self,
        name: str = "",
        default: Any = _UNDEFINED,
        required: bool = False,
        choices: Any = None,
        maxLen: int = -1,
    ) -> None:
        self.name = name
        self.modelName = name
        self.required = bool(required)
        self.maxLen = maxLen
        self._default = default
        self._choices = None if choices is None else list(choices)

    def __set_name__(self, owner: Any, attribute: str) -> None:
        self.modelName = attribute
        self.name = self.name or attribute

    def __get__(self, instance: Any, owner: Any) -> Any:
        # Values are in the object's own __dict__, where Python looks first.
        return self if instance is None else self.zero

    def default(self) -> Any:
        """Returns the default, calling it if it is a function; `Column.Undefined` without one."""
        if callable(self._default):
            return self._default()
        is_shared = isinstance(self._default, (list, set, dict))
        return self._default.copy() if is_shared else self._default

    def encode(self, data: Any) -> Any:
        """Returns the value for the wire; `ColumnValueError` if choices or length forbid it."""
        value = None if data is None else self.to_wire(data)
        if value is not None:
            self._check(value)
        return value

    def decode(self, data: Any) -> Any:
        """Returns the value from the wire."""
        return None if data is None else self.from_wire(data)

    def to_wire(self, data: Any) -> Any:
        return data

    def from_wire(self, data: Any) -> Any:
        return from_wire(data)

    def _check(self, value: Any) -> None:
        if 0 < self.maxLen < len(value):
            raise ColumnValueError(
                f"Value for {self.name} too large, allowed {self.maxLen}, have {len(value)}"
            )
        self.validateChoices(value)

    def validateChoices(self, value: Any) -> None:
        if self._choices is not None and value not in self._choices:
            raise ColumnValueError(f"{value!r} not in choices for {self.name}")

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: Any) -> Filter:  # type: ignore[override]  # a filter, not a bool
        return Filter(self.name, Condition.EQ, other)

    equals = __eq__

    def __lt__(self, other: Any) -> Filter:
        return Filter(self.name, Condition.LT, other)

    def __le__(self, other: Any) -> Filter:
        return Filter(self.name, Condition.LE, other)

    def __gt__(self, other: Any) -> Filter:
        return Filter(self.name, Condition.GT, other)

    def __ge__(self, other: Any) -> Filter:
        return Filter(self.name, Condition.GE, other)

    def any(self, *values: Any) -> Filter:
        return Filter(self.name, Condition.IN, *values)

    IN = any

    def between(self, min: Any, max: Any) -> Filter:
        return Filter(self.name, Condition.BETWEEN, min, max)

    def increment(self, amount: Any) -> Change:
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise ValueError(f"Invalid type for increment: {type(amount).__name__}")
        return Change(self.name, Change.Increment, amount)

    __add__ = increment

    def __sub__(self, amount: Any) -> Change:
        change = self.increment(amount)
        return Change(change.property, change.op, -amount)


class Key(Column):
    """The id."""

    primary = True

    def to_wire(self, data: Any) -> Any:
        return data.decode() if isinstance(data, bytes) else str(data)

    from_wire = to_wire


class Text(Column):
    """Text; other values are converted to it."""

    zero = ""

    def __init__(self, name: str = "", maxLen: int = -1, **options: Any) -> None:
        super().__init__(name, maxLen=maxLen, **options)

    def to_wire(self, data: Any) -> Any:
        return data.decode() if isinstance(data, bytes) else str(data)

    from_wire = to_wire


class Int(Column):
    """A signed integer of 64 bits."""

    zero: ClassVar[Any] = 0

    def to_wire(self, data: Any) -> Any:
        return int(data)

    from_wire = to_wire


class Uint(Int):
    """An unsigned integer of 64 bits."""


class Float(Column):
    """A floating point number."""

    zero = 0.0

    def to_wire(self, data: Any) -> Any:
        return float(data)

    from_wire = to_wire


class Bool(Column):
    """True or false: an integer is true unless it is 0, a text if it is `1` or `true`."""

    zero = False

    def to_wire(self, data: Any) -> Any:
        return data == "1" or data.lower() == "true" if isinstance(data, str) else bool(data)

    from_wire = to_wire


class Timestamp(Column):
    """A time, in UTC and whole milliseconds; numbers are seconds since 1970."""

    @classmethod
    def now(cls) -> datetime:
        return now()

    def encode(self, data: Any) -> Any:
        if data is None and (default := self.default()) not in (None, _UNDEFINED):
            data = default
        return super().encode(data)

    def to_wire(self, data: Any) -> Any:
        if isinstance(data, datetime):
            return data
        if isinstance(data, (int, float)) and not isinstance(data, bool):
            with suppress(OverflowError, ValueError, OSError):
                return datetime.fromtimestamp(data, UTC)
        raise ColumnValueError(f"Invalid value for datetime: {data!r}")

    from_wire = to_wire


class Binary(Column):
    """Bytes."""

    def to_wire(self, data: Any) -> Any:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise ColumnValueError(f"Invalid value for {self.name}: {data!r} is not bytes")
        return bytes(data)

    from_wire = to_wire


class _Container(Column):
    """A column whose elements have their own column, `type`."""

    kinds: ClassVar[tuple[type, ...]]
    mark: ClassVar[str] = ""

    def __init__(
        self, name: str = "", type: Any = None, default: Any = _UNDEFINED, **options: Any
    ) -> None:
        super().__init__(name, default, **options)
        self._type: Column = (type() if isinstance(type, _TYPE) else type) or Column()

    def to_wire(self, data: Any) -> Any:
        if not isinstance(data, self.kinds):
            raise ValueError(f"Invalid data for {self.name}: {_TYPE(data).__name__}")
        return self._elements_to_wire(data)

    def _elements_to_wire(self, data: Any) -> Any:
        return [self.mark, *(self._type.encode(element) for element in data)]

    def _check(self, value: Any) -> None:
        elements = list(value.values()) if isinstance(value, dict) else value[1:]
        if 0 < self.maxLen < len(elements):
            raise ColumnValueError(
                f"Value for {self.name} too large, allowed {self.maxLen}, have {len(elements)}"
            )
        for element in elements:
            self.validateChoices(element)

    def _decoded(self, data: Any) -> list[Any]:
        if not isinstance(data, (list, tuple, set, frozenset)):
            raise MeduzaError(f"Invalid type for {self.name}: {_TYPE(data).__name__}")
        return [self._type.decode(element) for element in unmarked(data)]


_TYPE: Final = type


class Set(_Container):
    """A set."""

    kinds = (set, frozenset)
    mark = SET_MARK

    def from_wire(self, data: Any) -> Any:
        return set(self._decoded(data))


class List(_Container):
    """A list."""

    kinds = (list, tuple)
    mark = LIST_MARK

    def from_wire(self, data: Any) -> Any:
        return self._decoded(data)


class Map(_Container):
    """A dict with text keys."""

    kinds = (dict,)

    def _elements_to_wire(self, data: Any) -> Any:
        return {key: self._type.encode(value) for key, value in data.items()}

    def from_wire(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise MeduzaError(f"Invalid type for {self.name}: {_TYPE(data).__name__}")
        return {key: self._type.decode(value) for key, value in data.items()}
