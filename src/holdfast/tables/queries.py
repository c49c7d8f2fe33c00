"""Queries: each selects a slice of one index, by equality on the hash key and the first range
elements, and bounds on the next one.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from holdfast.engine.contract import Reader
from holdfast.error_text import shown
from holdfast.errors import (
    IndexBuilding,
    IndexNotFound,
    InvalidAttributeValue,
    InvalidTableQuery,
    InvalidTableRequest,
)
from holdfast.keys import prefix_range
from holdfast.limits import DEFAULT_PAGE_ROWS, MAX_COUNTED_ROWS, MAX_PAGE_ROWS
from holdfast.tables.index_build import progress
from holdfast.tables.layout import Keys, hash_key
from holdfast.tables.plan import Element, Index, TablePlan
from holdfast.tables.predicates import (
    Predicate,
    check_operators,
    is_operators,
    parse,
)
from holdfast.tables.records import IndexProgress

# The operators for elements in descending order.
_REVERSED_OPERATORS: Final = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq"}


class Query(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A query, as all protocols express it."""

    attributes: Mapping[str, Any] | None = None
    proj: str | Sequence[str] | None = None
    order: Mapping[str, str] | None = None
    limit: float | None = None
    next: str | None = None
    index: str | None = None
    with_ttl: bool = False
    distinct: bool = False
    count_only: bool = False


class Slice:
    """A range of the keys of one index."""

    __slots__ = ("base", "begin", "bounded", "end", "fixed", "has_hash", "index", "reverse")

    def __init__(self, index: Index, base: bytes, begin: bytes, end: bytes, has_hash: bool) -> None:
        self.index = index
        self.base = base  # the prefix of the whole index
        self.begin = begin
        self.end = end
        self.has_hash = has_hash  # False: the whole table or index
        self.fixed = 0  # how many range elements are fixed by equality
        self.bounded = False  # whether one more range element has bounds
        self.reverse = False

    @property
    def is_whole_key(self) -> bool:
        return self.has_hash and self.fixed == len(self.index.ranges) and not self.bounded


def index_of(reader: Reader, plan: TablePlan, name: str | None) -> Index:
    """Returns the index of that name, the primary one for None.

    Reads nothing, unless the index is being built.
    """
    if name is None:
        return plan.primary
    if not isinstance(name, str):
        raise InvalidTableQuery(f"The index must be a name, not {shown(name)}")
    index = plan.indexes.get(name)
    if index is None:
        raise IndexNotFound(
            f"Invalid query. Index does not exist: {plan.name} has no secondary index {name!r}"
        )
    if not index.complete:
        raise _building(progress(reader, plan, name), plan)
    return index


def check_shape(plan: TablePlan, index: Index, query: Query) -> tuple[int, list[str] | None]:
    """Returns the limit of a query and the names of its projection, if it has one.

    Raises for every problem except those of its attributes, which are checked later.
    """
    limit = _limit(query)
    if not (query.with_ttl is query.distinct is query.count_only is False):
        _check_flags(query)
    if query.order is not None:
        _check_order(index, query.order)
    names = projection_of(plan, query.proj)
    if query.distinct:
        _check_distinct(plan, query, names)
    return limit, names


def slice_of(plan: TablePlan, keys: Keys, index: Index, attributes: Any) -> Slice:
    """Returns the slice that the predicates in `attributes` select."""
    if index.id is None:
        base = keys.rows + plan.number_bytes
    else:
        base = keys.entries_of(plan.number, index.id)
    if type(attributes) is not dict and not isinstance(attributes, Mapping):
        if attributes is not None:
            raise InvalidTableRequest("The attributes of a query are an object")
        attributes = {}
    if not attributes:
        begin, end = prefix_range(base)
        return Slice(index, base, begin, end, False)
    found = Slice(index, base, b"", b"", True)
    element = index.hashes[0]
    try:
        components = b""
        for element in index.hashes:
            value = attributes.get(element.name)
            if value is None:
                _check_names(index, attributes)
            if isinstance(value, dict):
                value = _hash_operand(element, value)
            components += element.component(element.accept(value))
        prefix = base + hash_key(components)
        left = len(attributes) - len(index.hashes)
        if left:
            for element in index.ranges:
                value = attributes.get(element.name)
                if value is None:
                    _check_names(index, attributes)
                left -= 1
                if isinstance(value, dict):
                    predicate = range_predicate(element, value)
                    if len(predicate) > 1 or predicate[0][0] != "eq":
                        _check_last(index, attributes, element, left)
                        found.begin, found.end = bounds(element, predicate, prefix)
                        found.bounded = True
                        return found
                    value = predicate[0][1]
                prefix += element.component(element.accept(value))
                found.fixed += 1
                if not left:
                    break
    except (InvalidAttributeValue, ValueError):
        _check_names(index, attributes)
        _check_values(plan, attributes)
        raise
    if left:
        _check_names(index, attributes)
    found.begin, found.end = prefix_range(prefix)
    return found


def set_order(slice: Slice, order: Mapping[str, str]) -> None:
    """Reverses the slice if the order of every named attribute is the opposite of the index's."""
    free: set[bool] = set()
    for place, element in enumerate(slice.index.ranges):
        if element.name in order and place >= slice.fixed:
            free.add((order[element.name] == "desc") != element.desc)
    if len(free) > 1:
        raise InvalidTableQuery(
            "Inconsistent sort order: all attributes must agree with the index, or none"
        )
    slice.reverse = free == {True}


def projection_of(plan: TablePlan, proj: Any) -> list[str] | None:
    """Returns the names in `proj`, each once; None if there is no projection."""
    if proj is None:
        return None
    names = [proj] if isinstance(proj, str) else proj
    if not isinstance(names, list | tuple) or not names:
        raise InvalidTableQuery(
            "Invalid query. Projection must be an attribute's name or an array of names"
        )
    for name in names:
        if not isinstance(name, str) or name not in plan.attributes:
            raise InvalidTableQuery(
                f"Invalid query. Projection {shown(name)} is not an attribute of {plan.name}",
                attribute=str(name),
            )
    return list(dict.fromkeys(names))


# --- internals -----------------------------------------------------------------------------------


def _building(found: IndexProgress, plan: TablePlan) -> IndexBuilding:
    what = f"The index {found.index!r} of {plan.name}"
    if found.problem:
        return IndexBuilding(f"{what} can't be built: {found.problem}", hint="")
    return IndexBuilding(f"{what} is being built: {found.rows} of {found.total} rows are done")


def _check_flags(query: Query) -> None:
    for name in ("with_ttl", "distinct", "count_only"):
        if type(getattr(query, name)) is not bool:
            raise InvalidTableQuery(
                f"{name} must be true or false, not {shown(getattr(query, name))}"
            )


def _check_order(index: Index, order: Any) -> None:
    """Raises unless `order` gives range attributes of the index a direction."""
    if not isinstance(order, Mapping):
        raise InvalidTableQuery("Invalid sort order: an object of attributes and asc or desc")
    ranges = {element.name for element in index.ranges}
    for name, direction in order.items():
        if name not in ranges:
            raise InvalidTableQuery(
                f"Invalid query. Cannot order on attribute {shown(name)}", attribute=str(name)
            )
        if direction not in ("asc", "desc"):
            raise InvalidTableQuery(
                f"Invalid query. Invalid sort order {shown(direction)} of {name!r}",
                attribute=str(name),
            )


def _limit(query: Query) -> int:
    limit: Any = query.limit
    if limit is None:
        return MAX_COUNTED_ROWS if query.count_only else DEFAULT_PAGE_ROWS
    if isinstance(limit, float | Decimal) and math.isfinite(limit) and limit == int(limit):
        limit = int(limit)  # JSON has one kind of number: 2.0 is 2
    if type(limit) is not int or limit < 1:
        raise InvalidTableQuery(f"The limit must be an integer of at least 1, not {shown(limit)}")
    return min(limit, MAX_COUNTED_ROWS if query.count_only else MAX_PAGE_ROWS)


def _check_distinct(plan: TablePlan, query: Query, names: list[str] | None) -> None:
    hashes = {element.name for element in plan.primary.hashes}
    allowed = hashes | {attribute.name for attribute in plan.statics}
    if names is None or not set(names) <= allowed:
        raise InvalidTableQuery("distinct needs a Projection of hash and static attributes only")
    given = query.attributes if isinstance(query.attributes, Mapping) else {}
    has_range = any(element.name in given for element in plan.primary.ranges)
    if query.index is not None or query.order is not None or has_range:
        raise InvalidTableQuery("distinct can't be combined with an index, range or order")


def _hash_operand(element: Element, value: dict[str, Any]) -> Any:
    """Returns the value that a hash attribute equals, from an object."""
    if not is_operators(element.attribute, value):
        return value
    predicate = parse(element.attribute, value, InvalidTableQuery)
    if len(predicate) != 1 or predicate[0][0] != "eq":
        raise _not_on_hash(element)
    if predicate[0][1] is None:
        raise _undefined(element)
    return predicate[0][1]


def _check_names(index: Index, attributes: Mapping[str, Any]) -> None:
    """Raises for a problem with the shape of a query, whatever its values are. The shape is checked
    before values, and missing attributes after all else."""
    for name, value in attributes.items():
        if name not in index.elements:
            raise not_in_index(name)
        element = index.elements[name]
        if value is None:
            raise _undefined(element)
        if is_operators(element.attribute, value):
            check_operators(element.attribute, value, InvalidTableQuery)
            if element in index.hashes and not _is_equality(value):
                raise _not_on_hash(element)
    given = [element for element in index.ranges if element.name in attributes]
    for element in given[:-1]:
        value = attributes[element.name]
        if is_operators(element.attribute, value) and not _is_equality(value):
            raise _found_after(element)
    for element in index.hashes:
        if element.name not in attributes:
            raise InvalidTableQuery(
                f"All hash attributes must be given, {element.name!r} is missing",
                attribute=element.name,
            )
    for gap, element in zip(index.ranges, given, strict=False):
        if gap is not element:
            raise InvalidTableQuery(
                f"Invalid query. Attribute {gap.name!r} must be fixed by equality before "
                f"{given[-1].name!r}",
                attribute=given[-1].name,
            )


def _check_values(plan: TablePlan, attributes: Mapping[str, Any]) -> None:
    """Raises for the first value, in the order of the schema, that its type does not accept."""
    for attribute in plan.attributes.values():
        if attribute.name in attributes:
            parse(attribute, attributes[attribute.name], InvalidTableQuery)


def _check_last(index: Index, attributes: Mapping[str, Any], element: Element, left: int) -> None:
    if left:
        _check_names(index, attributes)
        raise _found_after(element)


def range_predicate(element: Element, value: dict[str, Any]) -> Predicate:
    predicate = parse(element.attribute, value, InvalidTableQuery)
    for _, operand in predicate:
        if operand is None:
            raise _undefined(element)
    return predicate


def bounds(element: Element, predicate: Predicate, prefix: bytes) -> tuple[bytes, bytes]:
    """Returns the range of keys for which all operators hold, in the element's order."""
    begin, end = prefix_range(prefix)
    for operator, operand in predicate:
        point, point_end = prefix_range(prefix + element.component(operand))
        if element.desc:
            operator = _REVERSED_OPERATORS[operator]
        if operator == "ge":
            begin = max(begin, point)
        elif operator == "gt":
            begin = max(begin, point_end)
        elif operator == "le":
            end = min(end, point_end)
        elif operator == "lt":
            end = min(end, point)
        else:
            begin, end = max(begin, point), min(end, point_end)
    return begin, end


def _is_equality(operators: Mapping[str, Any]) -> bool:
    return [name.lower() for name in operators] == ["eq"]


def not_in_index(name: Any) -> InvalidTableQuery:
    return InvalidTableQuery(
        f"Invalid query. Attribute {shown(name)} is not a part of primary key or index",
        attribute=str(name),
    )


def _not_on_hash(element: Element) -> InvalidTableQuery:
    return InvalidTableQuery(
        f"Invalid query. Non-eq conditions allowed only on range columns: {element.name!r}",
        attribute=element.name,
    )


def _found_after(element: Element) -> InvalidTableQuery:
    return InvalidTableQuery(
        f"Invalid query. Found predicate after non-eq predicate on {element.name!r}"
    )


def _undefined(element: Element) -> InvalidTableQuery:
    return InvalidTableQuery(
        f"Invalid query. Attribute {element.name!r} is undefined", attribute=element.name
    )
