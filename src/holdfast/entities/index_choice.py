"""Chooses how to answer a query: by the primary key, by ids computed from its columns, or an index.

`choose` looks at the table's access and at the query, never at the store. It returns one of four
selections, each of which says which keys hold the answer, and in which order."""

from collections.abc import Sequence
from itertools import product
from typing import Final, TypeAlias

import msgspec

from holdfast.entities import order as value_order
from holdfast.entities.ids import compound_id
from holdfast.entities.messages import ALL, EQ, EQUALITIES, ID, RANGES, Filter, Ordering
from holdfast.entities.order import BEYOND_NULL, END, NULL, entry_part, int_part, text_part
from holdfast.entities.query_checks import check_filters
from holdfast.entities.table_access import IndexAccess, TableAccess
from holdfast.entities.text import normalise
from holdfast.entities.values import MAX_INT, MIN_INT
from holdfast.errors import BadFilter, BadKey, NoIndex
from holdfast.keys import after, pack_str, prefix_range
from holdfast.limits import MAX_QUERY_PLANS, MAX_STRETCHES

_NO_INDEX: Final = "No index matches the filter"
_FIRST_ID: Final = pack_str("")[:1]  # the first byte of every id part


class Stretch(msgspec.Struct, frozen=True, order=True):
    """A piece of an index, without the index's prefix: begin <= entry < end."""

    begin: bytes
    end: bytes


class ByIds(msgspec.Struct, frozen=True):
    """The entities with these ids, in this order; an id that is given twice counts twice."""

    ids: Sequence[str]


class ByKeyColumns(msgspec.Struct, frozen=True):
    """The entities of these computed ids whose columns still hold one of the values asked for."""

    ids: Sequence[str]
    allowed: dict[str, frozenset[bytes]]
    order: Ordering | None = None


class ByPrimary(msgspec.Struct, frozen=True):
    """The entities whose id part is in begin <= part < end, by id."""

    begin: bytes
    end: bytes
    is_descending: bool = False
    is_all: bool = False


class ByIndex(msgspec.Struct, frozen=True):
    """Stretches of an index, in groups. Stretches of a group are read one after the other; groups
    are merged by the part of their entries after the first `fixed` bytes."""

    index: IndexAccess
    groups: Sequence[tuple[int, Sequence[Stretch]]]  # (fixed, stretches) each
    is_descending: bool = False


Selection: TypeAlias = ByIds | ByKeyColumns | ByPrimary | ByIndex


def choose(access: TableAccess, filters: Sequence[Filter], order: Ordering | None) -> Selection:
    """Returns the selection that answers the query; raises if no key can."""
    if order is None and (usual := _by_plan(access, filters)) is not None:
        return usual
    return _choose(access, check_filters(filters), order)


def _choose(access: TableAccess, filters: Sequence[Filter], order: Ordering | None) -> Selection:
    """Like `choose`, for filters that have been checked one by one."""
    if order is not None and not order.by:
        order = None
    if not filters:
        raise NoIndex(_NO_INDEX, hint="To select everything, use ALL on id.")
    if len(filters) == 1 and filters[0].property == ID:
        return _by_id(access, filters[0], order)
    if _is_by_key_columns(access, filters, order):
        return _by_key_columns(access, filters, order)
    if any(filter.property == ID for filter in filters):
        raise NoIndex(
            _NO_INDEX,
            hint=f"Filter {access.name} by id only, or by the first columns of an index.",
        )
    index = _best_index(access, filters, order)
    if order is None and all([filter.op == EQ for filter in filters]):
        _remember_plan(access, index, filters)
    return _by_index(index, filters, order)


# --- plans ------------------------------------------------------------------------------------


def only_id(filters: Sequence[Filter]) -> str | None:
    """Returns the id if the only filter asks for one ASCII id; None if the filters need the full
    check. They are not checked yet."""
    try:
        if len(filters) == 1:
            [filter] = filters
            [id] = filter.values
            if filter.property == ID and filter.op == EQ and type(id) is str and id.isascii():
                return id or None
    except (AttributeError, TypeError, ValueError):
        pass
    return None


def _by_plan(access: TableAccess, filters: Sequence[Filter]) -> ByIds | ByIndex | None:
    """Returns the selection by a cached plan or by the id; None if the full check is needed.

    A plan exists for columns that an earlier query has filtered together. Each filter must ask for
    one ASCII text or integer. The filters are not checked yet.
    """
    if type(filters) is not list and type(filters) is not tuple:
        return None
    try:
        plan = access.plans.get(tuple([filter.property for filter in filters]))
        if plan is None:
            id = only_id(filters)
            return None if id is None else ByIds((id,))
        index, positions = plan
        values = b""
        for position in positions:
            filter = filters[position]
            [value] = filter.values
            if filter.op != EQ:
                return None
            if type(value) is str:
                # The empty text also finds null.
                if not value or not value.isascii():
                    return None
                values += text_part(value)
            elif type(value) is int and MIN_INT <= value <= MAX_INT:
                values += int_part(value)
            else:
                return None
    except (AttributeError, TypeError, ValueError):
        return None
    return ByIndex(index, ((0, (Stretch(*prefix_range(values)),)),))


def _remember_plan(access: TableAccess, index: IndexAccess, filters: Sequence[Filter]) -> None:
    names = tuple([filter.property for filter in filters])
    if len(access.plans) < MAX_QUERY_PLANS and len(set(names)) == len(names):
        columns = index.columns[: len(names)]
        access.plans[names] = index, tuple([names.index(column) for column in columns])


# --- the primary key --------------------------------------------------------------------------


def _by_id(access: TableAccess, filter: Filter, order: Ordering | None) -> Selection:
    if order is not None and order.by != ID:
        return _all_by_index(access, filter, order)
    is_descending = order is not None and not order.asc
    if filter.op == ALL:
        return ByPrimary(*prefix_range(_FIRST_ID), is_descending, is_all=True)
    if filter.op in RANGES:
        return ByPrimary(*_id_range(filter), is_descending)
    ids = [value for value in filter.values if isinstance(value, str)]
    if order is not None:
        return ByIds(sorted(set(ids), key=_utf8, reverse=is_descending))
    return ByIds(ids)


def _id_range(filter: Filter) -> tuple[bytes, bytes]:
    begin, end = prefix_range(_FIRST_ID)
    for value in filter.values:
        if not isinstance(value, str) and not (value is None and filter.op == "><"):
            return b"", b""
    bounds = [None if value is None else pack_str(value) for value in filter.values]
    if filter.op == "><":
        low, high = bounds
        return low or begin, end if high is None else after(high)
    bound = bounds[0]
    if bound is None:
        return b"", b""
    if filter.op in (">", ">="):
        return (bound if filter.op == ">=" else after(bound)), end
    return begin, (after(bound) if filter.op == "<=" else bound)


def _all_by_index(access: TableAccess, filter: Filter, order: Ordering) -> Selection:
    """Selects all entities in the order of a column, by an index that begins with it."""
    if filter.op == ALL:
        fitting = [i for i in access.indexes if i.columns[0] == order.by and not i.sparse]
        if fitting:
            index = max(fitting, key=lambda i: (i.ready, 1 / len(i.columns)))
            return ByIndex(index, [(0, [Stretch(b"", END)])], not order.asc)
    raise NoIndex(_NO_INDEX, hint=f"No index of {access.name} begins with {order.by!r}.")


# --- the columns of a compound primary key ----------------------------------------------------


def _is_by_key_columns(
    access: TableAccess, filters: Sequence[Filter], order: Ordering | None
) -> bool:
    return (
        bool(access.primary)
        and (order is None or order.by == ID)
        and {filter.property for filter in filters} == set(access.primary)
        and all(filter.op in EQUALITIES for filter in filters)
    )


def _by_key_columns(
    access: TableAccess, filters: Sequence[Filter], order: Ordering | None
) -> ByKeyColumns:
    by_name = {filter.property: filter for filter in filters}
    choices = [
        [(column, kind, value) for value in by_name[column].values]
        for column, kind in access.key_columns
    ]
    _check_stretches([len(values) for values in choices])
    ids = []
    for values in product(*choices):
        try:
            ids.append(compound_id(values, hashed=access.hashed))
        except BadKey:  # a null: no entity was put with it
            continue
    distinct = list(dict.fromkeys(ids))
    if order is not None:
        distinct.sort(key=_utf8, reverse=not order.asc)
    allowed = {name: frozenset(_equal_parts(filter)) for name, filter in by_name.items()}
    return ByKeyColumns(distinct, allowed, order)


# --- secondary indexes ------------------------------------------------------------------------


def _best_index(
    access: TableAccess, filters: Sequence[Filter], order: Ordering | None
) -> IndexAccess:
    names = frozenset([filter.property for filter in filters])
    fitting = access.indexes_by_columns.get(names)
    if fitting is None:
        known = ", ".join(str(list(index.columns)) for index in access.indexes) or "none"
        raise NoIndex(
            _NO_INDEX,
            hint=f"{access.name} is filtered by {sorted(names)}, its indexes are {known}; "
            "a query names the first columns of one, and no others.",
        )
    ranged = [filter.property for filter in filters if filter.op in RANGES]
    if len(ranged) > 1:
        raise BadFilter("Only a single range per query allowed")
    if ranged:
        fitting = [i for i in fitting if i.columns[len(names) - 1] == ranged[0]]
        if not fitting:
            raise BadFilter("Ranges must come after equality filters in the index's column order")
        if order is not None and order.by != ranged[0]:
            raise BadFilter(f"Range queries can only be ordered by the range property. {_NO_INDEX}")
    if order is not None:
        fitting = [i for i in fitting if order.by in i.columns[: len(names) + 1]]
        if not fitting:
            raise NoIndex(
                _NO_INDEX, hint=f"No index can put these filters in the order of {order.by!r}."
            )
    if len(fitting) == 1:
        return fitting[0]
    complete = [index for index in fitting if index.ready] or fitting
    return max(complete, key=lambda i: _score(i, len(names), order))


def _score(index: IndexAccess, filtered: int, order: Ordering | None) -> float:
    """Returns the share of the index's columns that the query uses, for `max`."""
    follows = order is not None and order.by in index.columns[filtered : filtered + 1]
    return (filtered + follows) / len(index.columns)


def _by_index(index: IndexAccess, filters: Sequence[Filter], order: Ordering | None) -> ByIndex:
    by_name = {filter.property: filter for filter in filters}
    columns = [by_name[column] for column in index.columns[: len(filters)]]
    is_descending = order is not None and not order.asc
    if all([_is_single(filter) for filter in columns]):  # the usual case: one stretch
        values = b"".join([entry_part(filter.values[0]) for filter in columns])
        return ByIndex(index, [(0, [Stretch(*prefix_range(values))])], is_descending)
    last = columns[-1] if columns[-1].op in RANGES else None
    equal = [_equal_parts(filter) for filter in (columns[:-1] if last else columns)]
    _check_stretches([len(parts) for parts in equal])
    # Without an order, the stretches are read in the order of the index. With one, each combination
    # of values of the columns before it makes a group, and the groups are merged.
    ordered_column = 0 if order is None else index.columns.index(order.by)
    groups: list[tuple[int, Sequence[Stretch]]] = []
    for before in product(*equal[:ordered_column]):
        fixed = b"".join(before)
        prefixes = [fixed + b"".join(parts) for parts in product(*equal[ordered_column:])]
        stretches = sorted(_stretch(prefix, last) for prefix in prefixes)
        groups.append((len(fixed), [s for s in stretches if s.begin < s.end]))
    return ByIndex(index, groups, is_descending)


def _is_single(filter: Filter) -> bool:
    """Returns whether the filter asks for one value other than the empty text, which also finds
    null."""
    value = filter.values[0]
    if filter.op != EQ or type(value) is not str:
        return filter.op == EQ
    return bool(value if value.isascii() else normalise(value))


def _equal_parts(filter: Filter) -> list[bytes]:
    """Returns the entry parts that `=` and IN ask for, each once. The empty text also finds missing
    values."""
    parts: dict[bytes, None] = {}
    for value in filter.values:
        parts[entry_part(value)] = None
        if type(value) is str and not normalise(value):
            parts[NULL] = None
    return list(parts)


def _stretch(prefix: bytes, last: Filter | None) -> Stretch:
    if last is None:
        return Stretch(*prefix_range(prefix))
    low, high = _range_of(last)
    return Stretch(prefix + low, prefix + high)


def _range_of(filter: Filter) -> tuple[bytes, bytes]:
    """Returns where the entry parts of a range filter begin and end; null is never among them."""
    if filter.op == "><":
        low, high = filter.values
        return (
            BEYOND_NULL if low is None else entry_part(low),
            END if high is None else prefix_range(entry_part(high))[1],
        )
    [value] = filter.values
    if value is None:
        return b"", b""
    part = entry_part(value)
    first, end = prefix_range(value_order.family(value))
    if filter.op == ">":
        return prefix_range(part)[1], end
    if filter.op == ">=":
        return part, end
    return first, (prefix_range(part)[1] if filter.op == "<=" else part)


def _check_stretches(sizes: list[int]) -> None:
    pieces = 1
    for size in sizes:
        pieces *= size
    if pieces > MAX_STRETCHES:
        raise BadFilter(
            f"the IN filters have {pieces} combinations, at most {MAX_STRETCHES} are allowed",
            hint="Ask for fewer values at a time.",
        )


def _utf8(text: str) -> bytes:
    return text.encode()
