"""The shape of a model, computed once: how its objects become properties and back.

Every call converts objects, so an object whose attributes are named as in the store simply gets the
decoded properties as its `__dict__`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from holdfast.entities.columns import UNSET, Col, now
from holdfast.entities.ids import compound_id
from holdfast.entities.order import identity
from holdfast.entities.schema import Column, Table
from holdfast.entities.types import COLUMN_KINDS, NOW
from holdfast.entities.values import to_kept
from holdfast.errors import BadValue

M = TypeVar("M")

VERSION: Final = "_version"  # the attribute of a loaded object that holds its stored version


class _LoadedEntity(Protocol):
    """The version and properties of a stored entity."""

    @property
    def version(self) -> int: ...

    @property
    def properties(self) -> dict[str, Any]: ...


class _Field(NamedTuple):
    """A column as the encoder sees it."""

    attribute: str
    name: str
    kind: type
    required: bool
    check: Callable[[Any], Any] | None  # further checks, beyond the type
    bounds: tuple[int, int] | None  # of an integer, if `check` checks only these


class Shape:
    """The columns of a model and how they are encoded and loaded."""

    def __init__(self, columns: Iterable[Col[Any]], table: Table) -> None:
        own = tuple(columns)
        self.table = msgspec.structs.replace(table, columns=tuple(map(record, own)))
        self.name = self.table.full_name
        self.columns = {column.attribute: column for column in own}
        self.fields = tuple(_field(column) for column in own)
        self.attributes = {column.name: column.attribute for column in own}
        self.plain = all(name == attribute for name, attribute in self.attributes.items())
        self.names = frozenset(self.attributes)
        self.key = table.primary.columns
        self.types = {column.name: column.type for column in own}
        # If no column has a check, one comparison of types shows that an object is valid.
        self._pick = None
        if len(own) > 1 and all(field.check is None or field.bounds for field in self.fields):
            self._pick = itemgetter(*[field.attribute for field in self.fields])
        self._bounds = [
            (at, *field.bounds) for at, field in enumerate(self.fields) if field.bounds is not None
        ]
        self._names = [field.name for field in self.fields]
        self._kinds = [field.kind for field in self.fields]

    def encode(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the properties to put: every column that is set, checked."""
        if self._pick is not None:
            try:
                given = self._pick(values)
            except KeyError:
                given = ()
            if list(map(type, given)) == self._kinds and self._are_within_bounds(given):
                return dict(zip(self._names, given, strict=True))
        properties: dict[str, Any] = {}
        for attribute, name, kind, required, check, _ in self.fields:
            value = values.get(attribute, UNSET)
            if value is None or value is UNSET:
                # An object that was loaded without the column does not change it in the store.
                if required and (value is None or VERSION not in values):
                    raise self._refused(attribute, "is required and not set")
                if value is None:
                    properties[name] = None
                continue
            if check is not None or type(value) is not kind:
                value = self._checked(attribute, value, kind, check)
            properties[name] = value
        return properties

    def _are_within_bounds(self, given: Sequence[Any]) -> bool:
        for at, low, high in self._bounds:  # noqa: SIM110  # `all` of a generator costs more
            if not low <= given[at] <= high:
                return False
        return True

    def keeps_id(self, properties: Mapping[str, Any], id: str) -> bool:
        """Returns whether the store would put these properties under `id`."""
        keys = [(name, self.types.get(name), to_kept(properties.get(name))) for name in self.key]
        return not keys or compound_id(keys, hashed=self.table.primary.hashed) == id

    def checked_value(self, attribute: str, value: Any) -> Any:
        """Returns `value` as the column keeps it; raises `BadValue` if it does not fit."""
        field = next(field for field in self.fields if field.attribute == attribute)
        if value is None:
            if field.required:
                raise self._refused(attribute, "is required and can't be None")
            return None
        return self._checked(attribute, value, field.kind, field.check)

    def _checked(
        self, attribute: str, value: Any, kind: type, check: Callable[[Any], Any] | None
    ) -> Any:
        column = self.columns[attribute]
        assert column.type is not None
        if type(value) is not kind:
            value = self._converted(attribute, value, kind, COLUMN_KINDS[column.type].converts)
        if check is not None and (reason := check(value)) is not None:
            raise self._refused(attribute, reason)
        return value

    def _converted(self, attribute: str, value: Any, kind: type, also: tuple[type, ...]) -> Any:
        is_bool = isinstance(value, bool) and kind is not bool
        if isinstance(value, kind) and not is_bool:
            return value  # an instance of a subclass, such as an enum
        if isinstance(value, also) and not is_bool:
            return kind(value)
        wanted = self.columns[attribute].type
        raise self._refused(attribute, f"holds {value!r}, which does not fit a {wanted} column")

    def _refused(self, attribute: str, reason: str) -> BadValue:
        return BadValue(f"{self.table.model}.{attribute} {reason}")

    def load(self, model: type[M], found: Iterable[tuple[str, _LoadedEntity]]) -> list[M]:
        """Returns objects made from entities, by id; properties without a column are left out.

        The objects own the property dicts from now on: the caller must not use them again.
        """
        objects = []
        new, is_plain, names = object.__new__, self.plain, self.names
        for id, entity in found:
            values = entity.properties
            if not (is_plain and names.issuperset(values)):
                values = self._renamed(values)
            values["id"] = id
            values[VERSION] = entity.version
            loaded = new(model)
            loaded.__dict__ = values
            objects.append(loaded)
        return objects

    def _renamed(self, values: dict[str, Any]) -> dict[str, Any]:
        attributes = self.attributes
        return {attributes[name]: values[name] for name in values if name in attributes}


def record(column: Col[Any]) -> Column:
    """Returns the column as a schema record."""
    assert column.type is not None
    return Column(
        name=column.name,
        type=column.type,
        client_name="" if column.attribute == column.name else column.attribute,
        comment=column.comment,
        default=_default(column),
        required=column.required,
        max_len=column.max_len,
        choices=column.choices,
        subtype=column.subtype,
    )


def _default(column: Col[Any]) -> Any:
    default = column.given_default
    if default is now and column.type and COLUMN_KINDS[column.type].has_now:
        return NOW
    if default is UNSET or (callable(default) and default not in (set, list, dict)):
        return None  # a schema can't express a default that is a function of the program
    return _with_lists(column.make_default())


def _with_lists(value: Any) -> Any:
    """Returns a default as a schema writes it: each set in it as a list, sorted as the store
    sorts it."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=lambda element: identity(to_kept(element)))
    if isinstance(value, (list, tuple)):
        return [_with_lists(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_lists(item) for key, item in value.items()}
    return value


def _field(column: Col[Any]) -> _Field:
    assert column.type is not None
    checks = list(_checks(column))

    def check(value: Any) -> str | None:
        return next((reason for one in checks if (reason := one(value)) is not None), None)

    known = COLUMN_KINDS[column.type]
    kind, bounds = known.python, known.bounds
    if bounds is not None:
        checks.append(lambda value: _bounds_reason(bounds, value))
    return _Field(
        column.attribute,
        column.name,
        kind,
        column.required,
        check if checks else None,
        bounds if len(checks) == 1 else None,
    )


def _checks(column: Col[Any]) -> Iterator[Callable[[Any], str | None]]:
    assert column.type is not None
    kind = COLUMN_KINDS[column.type]
    if (most := column.max_len) is not None and kind.is_sized:
        yield (
            lambda value: (
                f"has length {len(value)}, at most {most} fit" if len(value) > most else None
            )
        )
    if kind.is_container:
        if column.choices or column.subtype:
            yield lambda value: _element_reason(column, value)
    elif column.choices:
        yield lambda value: _choice_reason(column, value)


def _bounds_reason(bounds: tuple[int, int], value: int) -> str | None:
    low, high = bounds
    if low <= value <= high:
        return None
    return f"is {value}, below {low}" if value < low else f"is {value}, above {high}"


def _choice_reason(column: Col[Any], value: Any) -> str | None:
    if value in column.choices:
        return None
    return f"is {value!r}, none of {', '.join(map(repr, column.choices))}"


def _element_reason(column: Col[Any], value: Any) -> str | None:
    elements = value.values() if isinstance(value, dict) else value
    subtype = column.subtype
    kind = COLUMN_KINDS[subtype] if subtype else None
    kinds = (kind.python, *kind.converts) if kind else (object,)
    bounds = kind.bounds if kind else None
    for element in elements:
        if element is not None and not isinstance(element, kinds):
            return f"holds the element {element!r}, which is not of type {subtype}"
        if bounds is not None and isinstance(element, int):
            reason = _bounds_reason(bounds, element)
            if reason is not None:
                return f"holds an element that {reason}"
        if column.choices and element not in column.choices:
            return _choice_reason(column, element)
    return None
