"""The fast path of reads: equality on the first key attributes, optional bounds on the next one,
and a limit.

It returns the same page as `reads.get_page`, at half the cost. For any other query (a whole key,
whose page has an etag; a static attribute; a row that will expire; a large page; any mistake) it
returns None, and the caller uses `get_page`, which also raises the errors.
"""

from typing import Any, Final

from holdfast.engine.contract import Reader
from holdfast.keys import prefix_range
from holdfast.limits import DEFAULT_PAGE_ROWS, MAX_INLINE_HASH_BYTES, MAX_PAGE_ROWS
from holdfast.tables.compression import count_expanded, expand
from holdfast.tables.layout import keys_of
from holdfast.tables.page_tokens import forward_token
from holdfast.tables.plan import Index, TablePlan, text_part
from holdfast.tables.queries import bounds, range_predicate
from holdfast.tables.reads import unmeasured_bytes
from holdfast.tables.records import Page
from holdfast.tables.row_codec import MAX_CODE

_NOTHING: Final[dict[str, Any]] = {}
_BOUNDS: Final = frozenset({"ge", "gt", "le", "lt"})


def fast_page(
    reader: Reader, plan: TablePlan, name: str | None, attributes: Any, limit: Any
) -> Page | None:
    """Returns the first page of a slice of the index `name`; None if `get_page` must read it."""
    if limit is None:
        limit = DEFAULT_PAGE_ROWS
    elif type(limit) is not int or not 0 < limit <= MAX_PAGE_ROWS:
        return None
    index: Index | None = plan.primary
    if name is not None:
        index = plan.indexes.get(name) if type(name) is str else None
    if index is None or not index.complete or plan.statics:
        return None
    keys = keys_of(reader.space)
    base = (keys.rows if index.id is None else keys.entries) + index.full_prefix
    found = _range(index, base, _NOTHING if attributes is None else attributes)
    if found is None:
        return None
    begin, end = found
    bodies: list[bytes] = []
    projection = index.projection
    left = unmeasured_bytes(projection, limit)
    last = b""
    for last, value in reader.scan(begin, end, limit=limit):  # noqa: B007
        header = value[0]
        if not header:
            body = value[1:]
        elif header <= MAX_CODE:
            body = expand(header, value[1:])
            count_expanded(reader, len(body))
        else:
            return None
        left -= len(body)
        if left < 0:
            return None
        bodies.append(body)
    count = len(bodies)
    items = [projection.item(bodies[0])] if count == 1 else projection.items(bodies)
    token = forward_token(index, len(base), begin, end, last) if count == limit else None
    return Page(items=items, count=count, next=token)


def _range(index: Index, base: bytes, attributes: Any) -> tuple[bytes, bytes] | None:
    """Returns the range of keys of `attributes`, if they are the first elements of the index."""
    if type(attributes) is not dict:
        return None
    path = index.paths.get(len(attributes))
    if path is None:
        return None
    # A page for a whole key has an etag; bounds on the last element make it a slice.
    if len(path) == len(index.elements) and type(attributes.get(path[-1][0])) is not dict:
        return None
    prefix = base
    try:
        for name, part in path:
            value = attributes[name]
            if type(value) is dict:
                return _bounded(index, base, attributes, prefix, name)
            prefix += part(value)
    except (KeyError, ValueError):
        return None
    # A long hash key is stored as its digest.
    if len(prefix) - len(base) > MAX_INLINE_HASH_BYTES:
        return None
    return prefix_range(prefix)


def _bounded(
    index: Index, base: bytes, attributes: dict[str, Any], prefix: bytes, name: str
) -> tuple[bytes, bytes] | None:
    """Like `_range`, where `name` has bounds; it must be the last one, and a range element."""
    is_last = name == index.paths[len(attributes)][-1][0]
    if not is_last or len(attributes) == len(index.hashes):
        return None
    if len(prefix) - len(base) > MAX_INLINE_HASH_BYTES:
        return None
    element, operators = index.elements[name], attributes[name]
    if element.part is text_part and len(operators) == 1:
        [(operator, text)] = operators.items()
        if type(text) is str and operator in _BOUNDS:
            return _bounded_by_text(operator, prefix, prefix + text_part(text))
    predicate = range_predicate(element, operators)
    if len(attributes) == len(index.elements) and [name for name, _ in predicate] == ["eq"]:
        return None
    begin, end = bounds(element, predicate, prefix)
    return (begin, end) if begin < end else None


def _bounded_by_text(operator: str, prefix: bytes, point: bytes) -> tuple[bytes, bytes]:
    """Returns the range of keys for one of the `_BOUNDS`, as `queries.bounds` does."""
    if operator == "ge":
        return point, prefix_range(prefix)[1]
    if operator == "lt":
        return prefix, point
    point_end = prefix_range(point)[1]
    return (point_end, prefix_range(prefix)[1]) if operator == "gt" else (prefix, point_end)
