"""Checks queries before any table is read."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.msgpack import Ext

from holdfast.entities.messages import (
    ALL,
    BETWEEN,
    EQ,
    EQUALITIES,
    ID,
    NO_LIMIT,
    OPERATOR_NAMES,
    RANGES,
    Filter,
)
from holdfast.entities.values import MAX_UINT, MIN_INT, to_kept
from holdfast.errors import BadFilter, BadPaging, BadValue, RequestTooLarge
from holdfast.limits import MAX_ANSWER_ENTITIES, MAX_QUERIES

_FILTER_HINT: Final = 'One is Filter("name", "=", ["ann"]).'
_CONTAINERS: Final = frozenset({list, dict, Ext})


def check_filters(filters: Sequence[Filter]) -> list[Filter]:
    """Returns the filters with their values in kept form."""
    try:
        checked = [_check_filter(filter) for filter in filters]
    except (AttributeError, TypeError):
        _raise_for_non_filter(filters)
        raise
    if len(checked) > 1 and len({filter.property for filter in checked}) < len(checked):
        raise BadFilter(
            "there is more than one filter for a property",
            hint="Use IN for several values, >< for a range.",
        )
    return checked


def _raise_for_non_filter(filters: Any) -> None:
    """Raises for the first of `filters` that is not a filter; called only after a failure."""
    if not isinstance(filters, (list, tuple)):
        raise BadFilter(f"filters must be a list, not {filters!r}", hint=_FILTER_HINT)
    for filter in filters:
        if not isinstance(filter, Filter) or not isinstance(filter.values, (list, tuple)):
            raise BadFilter(f"{filter!r} is not a filter", hint=_FILTER_HINT)


def check_paging(offset: int, limit: int) -> None:
    if (
        type(offset) is int
        and type(limit) is int
        and offset >= 0
        and (limit >= 1 or limit == NO_LIMIT)
    ):
        return
    raise BadPaging(f"Invalid paging parameters: offset: {offset}, limit: {limit}")


def _check_filter(filter: Filter) -> Filter:
    name, op, given = filter.property, filter.op, filter.values
    op = OPERATOR_NAMES.get(op, op)
    if not name:
        raise BadFilter("No property given for filter")
    if op == ALL:
        if name != ID:
            raise BadFilter("ALL is allowed only on primary keys")
        return Filter(name, op)
    if op not in EQUALITIES and op not in RANGES:
        raise BadFilter(
            f"Unsupported operator: '{op}'",
            hint="There are = (EQ), IN, >< (BETWEEN), > (GT), < (LT), >= (GE), <= (LE) and ALL.",
        )
    if op == BETWEEN:
        if len(given) != 2:
            raise BadFilter(
                f"BETWEEN filters must have exactly 2 values, {len(given)} given",
                hint="Give null for an open side.",
            )
    elif not given:
        raise BadFilter("No values given for filter", hint=f"It is the filter on {name!r}.")
    elif len(given) > 1 and op == EQ:
        raise BadFilter("Too many values for equality filter", hint="Use IN for several values.")
    elif len(given) > 1 and op in RANGES:
        raise BadFilter(f"Too many values for the filter '{op}' on {name!r}: it takes 1")
    elif len(given) > MAX_ANSWER_ENTITIES:
        raise BadFilter(
            f"the filter on {name!r} has {len(given)} values, at most {MAX_ANSWER_ENTITIES} are "
            "allowed",
            hint="Ask for fewer values at a time.",
        )
    return Filter(name, op, [_check_value(name, value) for value in given])


def _check_value(name: str, value: Any) -> Any:
    try:
        kept = to_kept(value)
        if type(kept) is str:
            kept.encode()
    except (BadValue, UnicodeEncodeError) as error:
        raise BadFilter(
            f"the filter on {name!r} has a value that can't be compared: {error}"
        ) from None
    if type(kept) in _CONTAINERS:
        raise BadFilter(
            f"the filter on {name!r} compares with a container",
            hint="Only numbers, texts, bools, times, bytes and null can be compared.",
        )
    if type(kept) is int and not MIN_INT <= kept <= MAX_UINT:
        raise BadFilter(f"the filter on {name!r} compares with {kept}, which has more than 64 bits")
    return kept


def check_queries(count: int) -> None:
    """Raises if one call has so many queries that other calls would wait too long."""
    if count > MAX_QUERIES:
        raise RequestTooLarge(
            f"{count} queries in one call, at most {MAX_QUERIES} are accepted",
            hint="Split them: each part is its own transaction.",
        )
