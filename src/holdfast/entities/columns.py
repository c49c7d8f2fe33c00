"""Columns of a model: on the class an expression, on an object the value.

    User.name == "ann"             a filter          User.score + 3       a change
    User.rank.desc()               an ordering       User.groups.add("g") a change

A column is a descriptor without `__set__`, so the values of an object are in its `__dict__` and are
read at full speed; Python asks the column only for values that the object has not set.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from holdfast.entities import messages
from holdfast.entities.messages import Change, Filter, Ordering
from holdfast.entities.schema import Index, IndexType
from holdfast.entities.types import ColumnType
from holdfast.errors import BadChange, BadFilter

T = TypeVar("T")

_MUTABLE: Final = (list, set, dict)


class _Unset:
    """Marks a missing default, since None would be one."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


class Condition(Filter, frozen=True, omit_defaults=True):
    """A filter that can be joined to others with `&`."""

    def __and__(self, other: "Filter | Sequence[Filter]") -> "Conditions":
        return Conditions((self,)) & other

    def __rand__(self, other: "Filter | Sequence[Filter]") -> "Conditions":
        return Conditions(_several(other)) & self

    def __bool__(self) -> bool:
        raise BadFilter(
            f"a filter on {self.property} is neither true nor false",
            hint="Join filters with `&` or give them side by side; `and` and `or` can't work.",
        )


EVERYTHING: Final = Condition(messages.ID, messages.ALL)


class Conditions(tuple[Filter, ...]):
    """Filters that must all match."""

    def __and__(self, other: Filter | Sequence[Filter]) -> "Conditions":
        return Conditions((*self, *_several(other)))

    def __rand__(self, other: Filter | Sequence[Filter]) -> "Conditions":
        return Conditions((*_several(other), *self))


def _several(other: Filter | Sequence[Filter]) -> tuple[Filter, ...]:
    return (other,) if isinstance(other, Filter) else tuple(other)


class Col(Generic[T]):
    """A column whose values are of type `T`: `name: Col[str] = column(required=True)`."""

    def __init__(
        self,
        name: str = "",
        *,
        default: Any = UNSET,
        required: bool = False,
        max_len: int | None = None,
        choices: Sequence[Any] = (),
        type: ColumnType | None = None,
        subtype: ColumnType | None = None,
        comment: str = "",
    ) -> None:
        self.name = name  # on the wire
        self.attribute = name
        self.given_default = default
        self.required = required
        self.max_len = max_len
        self.choices = tuple(choices)
        self.type = type
        self.subtype = subtype
        self.comment = comment

    def __set_name__(self, owner: Any, attribute: str) -> None:
        self.attribute = attribute
        self.name = self.name or attribute

    @overload
    def __get__(self, instance: None, owner: Any) -> "Col[T]": ...

    @overload
    def __get__(self, instance: object, owner: Any) -> T: ...

    def __get__(self, instance: object | None, owner: Any) -> Any:
        if instance is None:
            return self
        default = self.given_default
        if default is UNSET or (callable(default) and default not in _MUTABLE):
            return None  # calling the function now would not give the object's own value
        return self.make_default()

    if TYPE_CHECKING:  # it does not exist at run time, see above

        def __set__(self, instance: object, value: T) -> None: ...

    def make_default(self) -> Any:
        """Returns the default for a new object, or UNSET."""
        default = self.given_default
        if callable(default):
            return default()
        return default.copy() if isinstance(default, _MUTABLE) else default

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, value: T) -> Condition:  # type: ignore[override]  # a filter, not a bool
        return Condition(self.name, messages.EQ, (value,))

    def __ne__(self, value: object) -> Any:
        raise BadFilter(
            f"an index can't select by inequality: {self.name} != {value!r}",
            hint="Select what you want with ==, in_, between, <, <=, >, >=, and drop the rest.",
        )

    def __lt__(self, value: T) -> Condition:
        return Condition(self.name, messages.LT, (value,))

    def __le__(self, value: T) -> Condition:
        return Condition(self.name, messages.LE, (value,))

    def __gt__(self, value: T) -> Condition:
        return Condition(self.name, messages.GT, (value,))

    def __ge__(self, value: T) -> Condition:
        return Condition(self.name, messages.GE, (value,))

    def in_(self, *values: T) -> Condition:
        """Returns the filter for any of these values."""
        return Condition(self.name, messages.IN, values)

    def between(self, low: T | None, high: T | None) -> Condition:
        """Returns the filter for low <= value <= high; None leaves an end open."""
        return Condition(self.name, messages.BETWEEN, (low, high))

    def asc(self) -> Ordering:
        """Returns the order by this column, smallest value first."""
        return Ordering(self.name, True)

    def desc(self) -> Ordering:
        """Returns the order by this column, largest value first."""
        return Ordering(self.name, False)

    def __add__(self, amount: float) -> Change:
        """Returns the change that adds `amount`; a missing value counts as 0."""
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise BadChange(f"Invalid value for INCR of {self.name}: {amount!r} is not a number")
        return Change(messages.INCR, self.name, amount)

    def __sub__(self, amount: float) -> Change:
        change = self + amount
        return Change(change.op, change.property, -amount)

    def __mul__(self, factor: float) -> Change:
        return Change(messages.MUL, self.name, factor)

    def set(self, value: T) -> Change:
        """Returns the change to `value`; the same as the keyword `name=value` of `update`."""
        return Change(messages.SET, self.name, value)

    def unset(self) -> Change:
        """Returns the change that removes the property."""
        return Change(messages.PDEL, self.name)

    def add(self, *elements: Any) -> Change:
        """Returns the change that adds elements to a Set, given one by one or together."""
        return Change(messages.SADD, self.name, one_by_one(elements))

    def remove(self, *elements: Any) -> Change:
        """Returns the change that removes elements from a Set."""
        return Change(messages.SDEL, self.name, one_by_one(elements))

    def append(self, element: Any) -> Change:
        """Returns the change that appends an element to a List."""
        return Change(messages.LADD, self.name, [element])  # a bare list would be its elements

    def put_keys(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Change:
        """Returns the change that sets keys of a Map, given as a dict, as keywords or both."""
        return Change(messages.MSET, self.name, {**(values or {}), **more})

    def remove_keys(self, *keys: str | Sequence[str]) -> Change:
        """Returns the change that removes keys of a Map."""
        return Change(messages.MDEL, self.name, one_by_one(keys))

    def __repr__(self) -> str:
        return f"<column {self.attribute}>"


def one_by_one(elements: tuple[Any, ...]) -> list[Any]:
    """Returns the elements of a Set as they were given: side by side, or in one collection."""
    if len(elements) == 1 and isinstance(elements[0], (set, frozenset, list, tuple)):
        return list(elements[0])
    return list(elements)


def column(
    name: str = "",
    *,
    default: Any = UNSET,
    required: bool = False,
    max_len: int | None = None,
    choices: Sequence[Any] = (),
    type: ColumnType | None = None,
    subtype: ColumnType | None = None,
    comment: str = "",
) -> Any:
    """Returns a column of a model, whose annotation gives its type.

    `name` is its name in the store if that is not the attribute's, `default` a value or a function
    that makes one, such as `now` or `set`. `required` columns must be set when an object is put.
    `type`, and `subtype` for the elements of a container, are needed only where the annotation is
    ambiguous: "Uint" for an `int`.
    """
    return Col[Any](
        name,
        default=default,
        required=required,
        max_len=max_len,
        choices=choices,
        type=type,
        subtype=subtype,
        comment=comment,
    )


def col(value: T) -> Col[T]:
    """Returns the column itself, typed as a column: `col(User.rank)` for a `rank: int`.

    A column annotated as `rank: Col[int]` does not need it.
    """
    if not isinstance(value, Col):
        raise TypeError(f"{value!r} is not a column: write col(Model.attribute)")
    return value


def index(
    *columns: str, unique: bool = False, sparse: bool = False, type: IndexType | None = None
) -> Index:
    """Returns an index of a model, by the names of its columns in the store."""
    kind: IndexType = type or ("simple" if len(columns) == 1 else "compound")
    return Index(columns=columns, type=kind, unique=unique, sparse=sparse)


def now() -> datetime:
    """Returns the current time in UTC and whole milliseconds, the precision of a Timestamp."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
