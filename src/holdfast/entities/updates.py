"""UPDATE: applies changes to entities.

The changes of a query are checked once, before anything is selected, and then applied to each
entity in the order of the list. A change that does not apply to the type of a value is skipped."""

from collections.abc import Callable, Sequence
from operator import add, mul
from typing import Any, Final

from holdfast.call_time import CallTimer
from holdfast.entities.entity_writer import EntityWriter
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
from holdfast.entities.records import Stored
from holdfast.entities.strict_tables import check_entity
from holdfast.entities.values import (
    MAX_UINT,
    MIN_INT,
    check_items,
    check_name,
    elements_of,
    is_set,
    items_in,
    keep_set,
    to_kept,
)
from holdfast.errors import BadChange

_MAX_INT: Final = 2**63 - 1
_ENTITY_OPERATIONS: Final = frozenset({EXP, DEL})  # these have no property


class ChangedEntity:
    """An entity to which the changes of a query are being applied."""

    __slots__ = ("expires", "is_deleted", "names", "properties", "skipped", "writer")

    def __init__(self, writer: EntityWriter, old: Stored) -> None:
        self.writer = writer
        self.properties = old.properties.copy()
        self.expires = old.expires
        self.names: dict[str, None] = {}  # of the properties that were written, in order
        self.skipped = 0
        self.is_deleted = False

    def write(self, name: str, value: Any) -> None:
        self.properties[name] = value
        self.names[name] = None


# A checked change: the function that applies it, the name of its property, its kept value.
Step = tuple[Callable[[ChangedEntity, str, Any], None], str, Any]


def check_changes(changes: Sequence[Change]) -> list[Step]:
    """Returns the steps of an update; raises if they fit no entity."""
    return [_check(change) for change in changes]


def takes_long(steps: Sequence[Step]) -> bool:
    """Returns whether the steps may take longer than writing the entities: there are many, or they
    copy a set, a list or a map each."""
    return len(steps) > _FEW_STEPS or any(apply in _COPYING for apply, _, _ in steps)


def update_entity(
    writer: EntityWriter,
    id: str,
    id_part: bytes,
    old: Stored,
    steps: Sequence[Step],
    timer: CallTimer | None,
) -> int:
    """Applies `steps` to an entity and writes it; returns how many did not fit their values."""
    entity = ChangedEntity(writer, old)
    for apply, name, value in steps:
        apply(entity, name, value)
        if timer is not None:
            timer.check()  # each step may copy a large set, list or map
        if entity.is_deleted:
            writer.remove(id, id_part, old, op="delete")
            return entity.skipped
    if entity.names or entity.expires != old.expires:
        names = tuple(entity.names)
        if writer.access.strict is not None:
            check_entity(writer.access, id, entity.properties, names=names, is_whole=False)
        writer.update(id, id_part, old, entity.properties, entity.expires, names)
    return entity.skipped


def _check(change: Change) -> Step:
    if not isinstance(change, Change):
        hint = 'One is Change("SET", "name", "ann").'
        raise BadChange(f"{change!r} is not a change", hint=hint)
    op, name = change.op, change.property
    known = _OPERATIONS.get(op)
    if known is None:
        raise BadChange(
            f"Change Op {op} still not supported", hint=f"There are {', '.join(_OPERATIONS)}."
        )
    check_value, apply = known
    if op not in _ENTITY_OPERATIONS:
        if not name:
            raise BadChange("No property name for change")
        if name == ID:
            raise BadChange("The id of an entity cannot be changed")
        check_name(name)
    return apply, name, check_value(op, change.value)


# --- values of changes ------------------------------------------------------------------------


def _any_value(op: str, value: Any) -> Any:
    return to_kept(value)


def _no_value(op: str, value: Any) -> None:
    return None


def _number(op: str, value: Any) -> Any:
    if type(value) is int and MIN_INT <= value <= _MAX_INT:
        return value
    kept = to_kept(value)
    if type(kept) not in (int, float) or (type(kept) is int and not MIN_INT <= kept <= MAX_UINT):
        raise BadChange(f"Invalid value for {op}: {value!r} is not a number of 64 bits")
    return kept


def _nanoseconds(op: str, value: Any) -> int | None:
    kept = to_kept(value)
    if type(kept) is float and kept.is_integer():
        return int(kept)
    if kept is not None and type(kept) is not int:
        raise BadChange(
            f"Invalid value for TTL: {value!r}",
            hint="Give whole nanoseconds, or null for no expiry.",
        )
    return kept


def _elements(op: str, value: Any) -> list[Any]:
    kept = to_kept(value)
    elements = elements_of(kept) if is_set(kept) else kept if type(kept) is list else [kept]
    return elements_of(keep_set(elements))


def _items(op: str, value: Any) -> list[Any]:
    kept = to_kept(value)
    if is_set(kept):
        return elements_of(kept)
    items: list[Any] = kept if type(kept) is list else to_kept([kept])  # the list is a level more
    return items


def _document(op: str, value: Any) -> dict[str, Any]:
    kept = to_kept(value)
    if type(kept) is not dict:
        raise BadChange(f"Invalid value for {op}: it must be a document, not {type(kept).__name__}")
    return kept


def _keys(op: str, value: Any) -> frozenset[str]:
    keys = _items(op, value)
    if not all(type(key) is str for key in keys):
        raise BadChange(f"Invalid value for {op}: it must be a text or a list of texts")
    return frozenset(keys)


# --- applying changes ------------------------------------------------------------------------


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
        entity.expires = expiry_of(value, 0, entity.writer.now_ms)


def _increment(entity: ChangedEntity, name: str, value: Any) -> None:
    _calculate(entity, name, value, add)


def _multiply(entity: ChangedEntity, name: str, value: Any) -> None:
    _calculate(entity, name, value, mul)


def _calculate(
    entity: ChangedEntity, name: str, operand: Any, calculate: Callable[[Any, Any], Any]
) -> None:
    number = entity.properties.get(name)
    if number is None:
        number = 0
    if type(number) is not int and type(number) is not float:
        entity.skipped += 1
        return
    result = calculate(number, operand)
    if type(result) is int and not MIN_INT <= result <= _MAX_INT:
        _check_uint(entity, name, number, operand, result)
    entity.properties[name] = result
    entity.names[name] = None


def _check_uint(entity: ChangedEntity, name: str, number: Any, operand: Any, result: int) -> None:
    """Raises unless a number beyond a signed 64-bit integer may be unsigned: only an unsigned
    column, number or operand may exceed 2^63 - 1."""
    column = entity.writer.access.table.column(name)
    is_uint = column is not None and column.kind.bounds == (0, MAX_UINT)
    is_large = is_uint or number > _MAX_INT or operand > _MAX_INT
    if not MIN_INT <= result <= (MAX_UINT if is_large else _MAX_INT):
        raise BadChange(f"{name} would become {result}, which has more than 64 bits")


def _add_to_set(entity: ChangedEntity, name: str, elements: list[Any]) -> None:
    present = entity.properties.get(name)
    if present is None:
        entity.write(name, keep_set(elements))
    elif is_set(present):
        check_items("Set", items_in(present))
        entity.write(name, keep_set(elements_of(present) + elements))
    else:
        entity.skipped += 1


def _remove_from_set(entity: ChangedEntity, name: str, elements: list[Any]) -> None:
    present = entity.properties.get(name)
    if present is not None and is_set(present):
        check_items("Set", items_in(present))
        removed = {identity(element) for element in elements}
        left = [item for item in elements_of(present) if identity(item) not in removed]
        entity.write(name, keep_set(left))
    elif present is not None:
        entity.skipped += 1


def _put_into_map(entity: ChangedEntity, name: str, items: dict[str, Any]) -> None:
    present = entity.properties.get(name)
    if present is None or type(present) is dict:
        check_items("Map", len(present or ()))
        both = {**(present or {}), **items}
        check_items("Map", len(both))
        entity.write(name, both)
    else:
        entity.skipped += 1


def _remove_from_map(entity: ChangedEntity, name: str, keys: frozenset[str]) -> None:
    present = entity.properties.get(name)
    if type(present) is dict:
        entity.write(name, {key: item for key, item in present.items() if key not in keys})
    elif present is not None:
        entity.skipped += 1


def _append_to_list(entity: ChangedEntity, name: str, items: list[Any]) -> None:
    present = entity.properties.get(name)
    if present is None or type(present) is list:
        check_items("List", len(present or ()) + len(items))
        entity.write(name, [*(present or []), *items])
    else:
        entity.skipped += 1


_FEW_STEPS: Final = 10  # on numbers and texts: these take less time than the write
_COPYING: Final = frozenset(
    {_add_to_set, _remove_from_set, _put_into_map, _remove_from_map, _append_to_list}
)

# The functions that check the value of a change, and that apply it.
_OPERATIONS: Final[
    dict[str, tuple[Callable[[str, Any], Any], Callable[[ChangedEntity, str, Any], None]]]
] = {
    SET: (_any_value, _set),
    INCR: (_number, _increment),
    MUL: (_number, _multiply),
    EXP: (_nanoseconds, _expire),
    PDEL: (_no_value, _delete_property),
    DEL: (_no_value, _delete),
    SADD: (_elements, _add_to_set),
    SDEL: (_elements, _remove_from_set),
    MSET: (_document, _put_into_map),
    MDEL: (_keys, _remove_from_map),
    LADD: (_items, _append_to_list),
}
