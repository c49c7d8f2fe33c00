"""Factories: objects of a model for a test, which names only the columns that it is about."""

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from holdfast.errors import BadKey, UnknownColumn

if TYPE_CHECKING:
    from holdfast.entities import Col, Model
    from holdfast.entities.schema import Table

M = TypeVar("M", bound="Model")

BEGINNING: Final = 1_700_000_000.0  # what a `Clock` shows first, in seconds since 1970


class _Entities(Protocol):
    def put(self, *objects: "Model") -> list[str]: ...


class _PutTarget(Protocol):
    """A store, a space of it, a transaction or a client."""

    @property
    def entities(self) -> _Entities: ...


class Numbered(NamedTuple):
    """A value that is made from the number of its object; `sequence` returns it."""

    make: Callable[[int], Any]


def sequence(pattern: str | Callable[[int], Any]) -> Numbered:
    """Returns a value for `Factory` that differs from object to object.

    `pattern` is a text with `{}` for the number of the object, from 1 on, or a function of that
    number.
    """
    return Numbered(pattern.format if isinstance(pattern, str) else pattern)


class Factory(Generic[M]):
    """Makes objects of `model`, complete enough to be put.

    >>> from holdfast.entities import Model
    >>> class Order(Model, schema="shop", table="Orders", primary="number"):
    ...     number: str
    ...     customer: str
    ...     total: int = 0
    >>> orders = Factory(Order, customer=sequence("customer-{}"))
    >>> orders.build(total=5)
    Order(id=None, number='number-1', customer='customer-1', total=5)
    >>> [order.number for order in orders.build_many(2)]
    ['number-2', 'number-3']

    `values` are for all its objects: a value, which is copied for each object, a function that is
    called for each, or a `sequence`. The other columns have the defaults of the model. A required
    column without a default is derived from its type, with the number of the object in it; so are
    all columns of the primary key and of unique indexes, so that objects do not collide.

    A factory can't derive two things, so give these columns a value or a `sequence`: a text that
    fits the `must_match` of its column in a strict table, and more different keys than short texts,
    choices or booleans allow.
    """

    def __init__(self, model: type[M], **values: Any) -> None:
        from holdfast.entities.models import shape_of  # loads the layer

        shape = shape_of(model)
        for name in values:
            if name != "id" and name not in shape.columns:
                raise UnknownColumn.among(model.__name__, name, shape.columns)
        self.model = model
        self._numbers = count(1)
        derived = {
            name: sequence(_deriver(column))
            for name, column in shape.columns.items()
            if _is_derived(column, shape.table)
        }
        self._values = {**derived, **values}

    def build(self, **values: Any) -> M:
        """Returns a new object; `values` are for this one alone."""
        number = next(self._numbers)
        chosen = {**self._values, **values}
        return self.model(**{name: _resolve(value, number) for name, value in chosen.items()})

    def build_many(self, count: int, **values: Any) -> list[M]:
        """Returns `count` new objects."""
        return [self.build(**values) for _ in range(count)]

    def put(self, store: _PutTarget, **values: Any) -> M:
        """Puts a new object and returns it, with its id. Its table must have been deployed."""
        return self.put_many(store, 1, **values)[0]

    def put_many(self, store: _PutTarget, count: int, **values: Any) -> list[M]:
        """Puts `count` new objects in one transaction and returns them, with their ids.

        Raises `BadKey` if two of them have the same id: the second has replaced the first.
        """
        objects = self.build_many(count, **values)
        ids = store.entities.put(*objects) if objects else []
        if len(set(ids)) < len(ids):
            twice = next(id for id in ids if ids.count(id) > 1)
            raise BadKey(
                f"two objects of {self.model.__name__} have the id {twice!r}",
                hint="Give a column of its primary key a `sequence`.",
            )
        return objects


def _resolve(value: Any, number: int) -> Any:
    if isinstance(value, Numbered):
        return value.make(number)
    return value() if callable(value) else deepcopy(value)


def _is_derived(column: "Col[Any]", table: "Table") -> bool:
    from holdfast.entities.columns import UNSET

    unique = [name for index in table.indexes if index.unique for name in index.columns]
    if column.name in (*table.primary.columns, *unique):
        return True
    return column.required and column.given_default is UNSET


def _deriver(column: "Col[Any]") -> Callable[[int], Any]:
    """Returns a function that makes a value for `column` from a number."""
    from holdfast.entities.types import COLUMN_KINDS

    assert column.type is not None
    kind = COLUMN_KINDS[column.type]
    if kind.is_container:
        return lambda number: kind.python()
    if column.choices:
        return lambda number: column.choices[(number - 1) % len(column.choices)]
    if kind.python is bool:
        return lambda number: number % 2 == 0  # the first is False
    if kind.python is datetime:
        return lambda number: datetime.fromtimestamp(BEGINNING + number, UTC)
    if not kind.is_sized:
        return kind.python  # an integer or a float
    encode: Callable[[str], str | bytes] = str.encode if kind.python is bytes else str
    return lambda number: _fitting_end(encode(f"{column.attribute}-{number}"), column)


def _fitting_end(whole: str | bytes, column: "Col[Any]") -> str | bytes:
    """Returns the end of a value that fits its column: the number is at the end."""
    return whole if column.max_len is None else whole[max(0, len(whole) - column.max_len) :]
