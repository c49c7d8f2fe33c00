"""UPDATE: applies changes to entities.

The changes of a query are checked once, before anything is selected, and then applied to each
entity in the order of the list. A change leaves a value alone whose type it can't be applied to."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from holdfast.entities.messages import (
    DEL,
    EXP,
    ID,
    INCR,
    LADD,
    MDEL,
    MSET,
    MUL,
    PDEL,
    SADD,
    SDEL,
    SET,
    Change,
)
from holdfast.entities.order import identity
from holdfast.entities.puts import expiry_of
from holdfast.entities.table_access import TableAccess
from holdfast.entities.values import (
    MAX_UINT,
    MIN_INT,
    check_name,
    elements_of,
    is_set,
    keep,
    keep_set,
)
from holdfast.errors import BadChange

_MAX_INT: Final = 2**63 - 1
_OF_THE_ENTITY: Final = frozenset({EXP, DEL})  # these need no property


class ChangedEntity:
    """One entity on its way through the changes of a query."""

    __slots__ = ("access", "expires", "is_deleted", "names", "now_ms", "properties", "skipped")

    def __init__(
        self, access: TableAccess, properties: dict[str, Any], expires: int, now_ms: int
    ) -> None:
        self.access = access
        self.properties = dict(properties)
        self.expires = expires
        self.now_ms = now_ms
        self.names: dict[str, None] = {}  # of the properties that were written, in order
        self.skipped = 0
        self.is_deleted = False

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            _APPLY[change.op](self, change.property, change.value)
            if self.is_deleted:
                return

    def write(self, name: str, value: Any) -> None:
        self.properties[name] = value
        self.names[name] = None


def check_changes(changes: Sequence[Change]) -> list[Change]:
    """Returns the changes with their values in kept form; raises if no entity could take them."""
    return [_check(change) for change in changes]


def _check(change: Change) -> Change:
    if not isinstance(change, Change):
        hint = 'One is Change("SET", "name", "ann").'
        raise BadChange(f"{change!r} is not a change", hint=hint)
    op, name = change.op, change.property
    if op not in _APPLY:
        raise BadChange(
            f"Change Op {op} still not supported", hint=f"There are {', '.join(_APPLY)}."
        )
    if op not in _OF_THE_ENTITY:
        if not name:
            raise BadChange("No property name for change")
        if name == ID:
            raise BadChange("The id of an entity cannot be changed")
        check_name(name)
    return Change(op, name, _CHECK_VALUE.get(op, _any_value)(op, change.value))


# --- values of changes ------------------------------------------------------------------------


def _any_value(op: str, value: Any) -> Any:
    return keep(value)


def _no_value(op: str, value: Any) -> None:
    return None


def _number(op: str, value: Any) -> Any:
    kept = keep(value)
    if type(kept) not in (int, float) or (type(kept) is int and not MIN_INT <= kept <= MAX_UINT):
        raise BadChange(f"Invalid value for {op}: {value!r} is not a number of 64 bits")
    return kept


def _nanoseconds(op: str, value: Any) -> int | None:
    kept = keep(value)
    if type(kept) is float and kept.is_integer():
        return int(kept)
    if kept is not None and type(kept) is not int:
        raise BadChange(
            f"Invalid value for TTL: {value!r}",
            hint="Give whole nanoseconds, or null for no expiry.",
        )
    return kept


def _elements(op: str, value: Any) -> list[Any]:
    kept = keep(value)
    elements = elements_of(kept) if is_set(kept) else kept if type(kept) is list else [kept]
    return elements_of(keep_set(elements))


def _items(op: str, value: Any) -> list[Any]:
    kept = keep(value)
    if is_set(kept):
        return elements_of(kept)
    items: list[Any] = kept if type(kept) is list else keep([kept])  # the list is a level more
    return items


def _document(op: str, value: Any) -> dict[str, Any]:
    kept = keep(value)
    if type(kept) is not dict:
        raise BadChange(f"Invalid value for {op}: it takes a document, not {type(kept).__name__}")
    return kept


def _keys(op: str, value: Any) -> list[str]:
    keys = _items(op, value)
    if not all(type(key) is str for key in keys):
        raise BadChange(f"Invalid value for {op}: it takes a text or several")
    return keys


# --- what they do -----------------------------------------------------------------------------


def _set(entity: ChangedEntity, name: str, value: Any) -> None:
    entity.write(name, value)


def _delete_property(entity: ChangedEntity, name: str, value: Any) -> None:
    if name in entity.properties:
        del entity.properties[name]
        entity.names[name] = None


def _delete(entity: ChangedEntity, name: str, value: Any) -> None:
    entity.is_deleted = True


def _expire(entity: ChangedEntity, name: str, value: int | None) -> None:
    if value is None:
        entity.expires = 0
    elif value <= 0:
        entity.is_deleted = True
    else:
        entity.expires = expiry_of(value, 0, entity.now_ms)


def _increment(entity: ChangedEntity, name: str, value: Any) -> None:
    _calculate(entity, name, value, lambda number: number + value)


def _multiply(entity: ChangedEntity, name: str, value: Any) -> None:
    _calculate(entity, name, value, lambda number: number * value)


def _calculate(
    entity: ChangedEntity, name: str, operand: Any, calculate: Callable[[Any], Any]
) -> None:
    number = entity.properties.get(name)
    if number is None:
        number = 0
    if type(number) not in (int, float):
        entity.skipped += 1
        return
    result = calculate(number)
    if type(result) is int and not MIN_INT <= result <= _MAX_INT:
        # An Int stays one: only a column, or an operand, that is unsigned reaches beyond 2^63 - 1.
        column = entity.access.table.column(name)
        is_uint = column is not None and column.kind.bounds == (0, MAX_UINT)
        is_large = is_uint or number > _MAX_INT or operand > _MAX_INT
        if not MIN_INT <= result <= (MAX_UINT if is_large else _MAX_INT):
            raise BadChange(f"{name} would become {result}, which has more than 64 bits")
    entity.write(name, result)


def _add_to_set(entity: ChangedEntity, name: str, elements: list[Any]) -> None:
    present = entity.properties.get(name)
    if present is None:
        entity.write(name, keep_set(elements))
    elif is_set(present):
        entity.write(name, keep_set(elements_of(present) + elements))
    else:
        entity.skipped += 1


def _take_from_set(entity: ChangedEntity, name: str, elements: list[Any]) -> None:
    present = entity.properties.get(name)
    if present is not None and is_set(present):
        taken = {identity(element) for element in elements}
        left = [item for item in elements_of(present) if identity(item) not in taken]
        entity.write(name, keep_set(left))
    elif present is not None:
        entity.skipped += 1


def _put_into_map(entity: ChangedEntity, name: str, items: dict[str, Any]) -> None:
    present = entity.properties.get(name)
    if present is None or type(present) is dict:
        entity.write(name, {**(present or {}), **items})
    else:
        entity.skipped += 1


def _take_from_map(entity: ChangedEntity, name: str, keys: list[str]) -> None:
    present = entity.properties.get(name)
    if type(present) is dict:
        entity.write(name, {key: item for key, item in present.items() if key not in keys})
    elif present is not None:
        entity.skipped += 1


def _append_to_list(entity: ChangedEntity, name: str, items: list[Any]) -> None:
    present = entity.properties.get(name)
    if present is None or type(present) is list:
        entity.write(name, [*(present or []), *items])
    else:
        entity.skipped += 1


_APPLY: Final[dict[str, Callable[[ChangedEntity, str, Any], None]]] = {
    SET: _set,
    INCR: _increment,
    MUL: _multiply,
    EXP: _expire,
    PDEL: _delete_property,
    DEL: _delete,
    SADD: _add_to_set,
    SDEL: _take_from_set,
    MSET: _put_into_map,
    MDEL: _take_from_map,
    LADD: _append_to_list,
}
_CHECK_VALUE: Final[dict[str, Callable[[str, Any], Any]]] = {
    INCR: _number,
    MUL: _number,
    EXP: _nanoseconds,
    PDEL: _no_value,
    DEL: _no_value,
    SADD: _elements,
    SDEL: _elements,
    MSET: _document,
    MDEL: _keys,
    LADD: _items,
}
