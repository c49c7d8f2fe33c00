"""Reads: the rows of a slice, in order, page by page."""

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from holdfast import expiry
from holdfast.engine.contract import Reader
from holdfast.error_text import shown
from holdfast.errors import InvalidTableQuery
from holdfast.keys import after, prefix_range
from holdfast.limits import MAX_PAGE_BYTES, MAX_READ_PAGE_BYTES
from holdfast.tables import row_codec
from holdfast.tables.compression import count_expanded
from holdfast.tables.etags import row_etag
from holdfast.tables.layout import keys_of
from holdfast.tables.page_tokens import Position, make_token, read_token
from holdfast.tables.plan import Attribute, Index, Projection, TablePlan
from holdfast.tables.queries import (
    Query,
    Slice,
    check_shape,
    index_of,
    set_order,
    slice_of,
)
from holdfast.tables.records import Item, Page
from holdfast.tables.revisions import resolve, values_of

Form = Literal["python", "json"]
Pairs = Iterator[tuple[bytes, bytes]]

_MAX_ESCAPED_BYTES: Final = 6  # of JSON for one stored byte


def get_page(reader: Reader, plan: TablePlan, query: Query, form: Form = "python") -> Page:
    """Returns one page of the slice that `query` describes."""
    index = plan.primary if query.index is None else index_of(reader, plan, query.index)
    limit, names = check_shape(plan, index, query)
    slice = slice_of(plan, keys_of(reader.space), index, query.attributes)
    if query.order is not None:
        set_order(slice, query.order)
    position = None
    if query.next is not None:
        position = read_token(slice, query.distinct, query.next)
    if query.count_only:
        return _count(reader, plan, query, slice, position, limit)
    builder = ItemBuilder(reader, plan, index, names, query.with_ttl, form)
    return _collect(reader, plan, query, slice, builder, position, limit)


def check_form(form: Any) -> None:
    if form not in ("python", "json"):
        raise InvalidTableQuery(f"The form must be python or json, not {shown(form)}")


def scan_items(
    reader: Reader, plan: TablePlan, query: Query, form: Form = "python"
) -> Iterator[Item]:
    """Yields all items of the slice without a limit; `reader` must stay open."""
    index = index_of(reader, plan, query.index)
    _, names = check_shape(plan, index, query)
    slice = slice_of(plan, keys_of(reader.space), index, query.attributes)
    if query.order is not None:
        set_order(slice, query.order)
    builder = ItemBuilder(reader, plan, index, names, query.with_ttl, form)
    for key, value in SliceScan(reader, plan, slice, query.distinct, None).all():
        item = builder.item(key, value)
        if item is not None:
            yield item


class ItemBuilder:
    """Makes the items of an answer from stored rows."""

    def __init__(
        self,
        reader: Reader,
        plan: TablePlan,
        index: Index,
        names: list[str] | None,
        with_ttl: bool,
        form: Form,
    ) -> None:
        self._reader = reader
        self._plan = plan
        self._index = index
        self._with_ttl = with_ttl
        self._as_json = form == "json" and bool(plan.to_json)
        self._from_row = False  # whether an index entry must be followed to its row
        self._projection = self._choose(names)
        self._statics: list[Attribute] = []
        if plan.statics:
            self._statics = [c for c in plan.statics if c.name in self._projection.names]
            self._static_prefix: bytes | None = None
            self._static_values: list[Any] | None = None
        # The expanded size of the last item, and of its statics: stored pairs do not show it.
        self._item_bytes = 0
        self._static_bytes = 0
        # Without any of these, an item is just the decoded value.
        self._plain = not (self._statics or self._from_row or with_ttl or self._as_json)

    def _choose(self, names: list[str] | None) -> Projection:
        plan, index = self._plan, self._index
        if index.id is None:
            return plan.projection if names is None else plan.project(names)
        if names is None:
            return index.projection
        if all(name in index.positions for name in names):
            return Projection(index.decoder, names, [index.positions[name] for name in names])
        self._from_row = True
        return plan.project(names)

    def item(self, key: bytes, value: bytes) -> Item | None:
        """Returns the item of a stored pair; None if it has expired."""
        if not value[0]:
            body, expires_ms = value[1:], 0
        else:
            row, now_ms = row_codec.decode(value), expiry.to_ms(self._reader.now)
            if not row.is_live(now_ms):
                return None
            body, expires_ms = row.body, row.expires_ms
            if row.codec:
                count_expanded(self._reader, len(body))
            if row.is_uncertain:
                found = resolve(self._reader, self._plan, self._index, key, row, now_ms)
                if found is None:
                    return None
                body, expires_ms = found
        self._item_bytes = len(body)
        if self._plain:
            return self._projection.item(body)
        return self._full_item(key, body, expires_ms)

    def collect(self, scan: "SliceScan", limit: int) -> tuple[list[Item], bytes, bytes, bool]:
        """Returns the items of a page, its last pair, and whether more may follow."""
        items: list[Item] = []
        size, worth_measuring = 0, unmeasured_bytes(self._projection, limit)
        measured = _PageSize(self._plan, is_json=self._as_json)
        key = value = b""
        plain_item = self._projection.item if self._plain else None
        pairs: Pairs | None = scan.first_portion(limit)
        while pairs is not None:
            count, found = 0, b""
            for found, data in pairs:
                count += 1
                if plain_item is not None and not data[0]:
                    items.append(plain_item(data[1:]))
                    size += len(data)
                else:
                    item = self.item(found, data)
                    if item is None:
                        continue
                    items.append(item)
                    size += self._item_bytes
                key, value = found, data
                if (
                    len(items) == limit
                    or size > MAX_READ_PAGE_BYTES
                    or (size >= worth_measuring and measured.is_full(items))
                ):
                    return items, key, value, True
            pairs = scan.next_portion(found, count, limit)
        return items, key, value, False

    def _full_item(self, key: bytes, body: bytes, expires_ms: int) -> Item:
        plan = self._plan
        values: list[Any] | None = None
        if self._from_row:
            values = values_of(plan, self._index, body)
            row = self._reader.get(
                keys_of(self._reader.space).rows + plan.number_bytes + plan.primary.key(values)
            )
            assert row is not None, "an index entry has its row"
            body = row_codec.decode(row).body
            self._item_bytes = len(body)
        item = self._projection.item(body)
        if self._statics:
            if values is None:
                index = plan.primary if self._index.id is None else self._index
                self._find_statics(key, index, body)
            else:
                self._read_statics(values)
            self._item_bytes += self._static_bytes
            for attribute in self._statics:
                found = self._static_values
                item[attribute.name] = None if found is None else found[attribute.id]
        if self._as_json:
            plan.item_as_json(item)
        if self._with_ttl:
            left_ms = expires_ms - expiry.to_ms(self._reader.now)
            item["_ttl"] = left_ms // 1000 if expires_ms else None
        return item

    def _find_statics(self, key: bytes, index: Index, body: bytes) -> None:
        """Reads the statics of a row, once for all rows of a hash key that follow each other."""
        if self._static_prefix is not None and key.startswith(self._static_prefix):
            return
        values = values_of(self._plan, index, body)
        part = self._read_statics(values)
        if index.id is None:
            rows = keys_of(self._reader.space).rows + self._plan.number_bytes
            self._static_prefix = rows + part

    def _read_statics(self, values: list[Any]) -> bytes:
        plan = self._plan
        part = plan.primary.hash_part(values)
        value = self._reader.get(keys_of(self._reader.space).statics + plan.number_bytes + part)
        body = b"" if value is None else row_codec.decode(value).body
        self._static_bytes = len(body)
        self._static_values = plan.values(body) if body else None
        return part


def _collect(
    reader: Reader,
    plan: TablePlan,
    query: Query,
    slice: Slice,
    builder: ItemBuilder,
    position: Position | None,
    limit: int,
) -> Page:
    scan = SliceScan(reader, plan, slice, query.distinct, position)
    items, last, last_value, is_cut = builder.collect(scan, limit)
    etag = None
    if items and slice.index.id is None and slice.is_whole_key:
        etag = _etag(reader, plan, last_value)
    token = None
    if is_cut:
        token = make_token(
            slice, query.distinct, _position(plan, slice, query.distinct, last, last_value)
        )
    return Page(items=items, count=len(items), next=token, etag=etag)


def unmeasured_bytes(projection: Projection, limit: int) -> int:
    """Returns the stored bytes below which a page can't reach its full size."""
    return (MAX_PAGE_BYTES - limit * projection.json_overhead) // _MAX_ESCAPED_BYTES


class _PageSize:
    """The exact size of a page's JSON as it grows: each item is encoded once."""

    def __init__(self, plan: TablePlan, *, is_json: bool) -> None:
        self._plan = plan
        self._is_json = is_json  # whether the items' values are in their JSON form already
        self._count = 0
        self._bytes = 0

    def is_full(self, items: list[Item]) -> bool:
        """Returns whether the page has reached its size. Called for large pages only."""
        for item in items[self._count :]:
            as_json = item if self._is_json else self._plan.item_as_json(item.copy())
            self._bytes += len(msgspec.json.encode(as_json))
        self._count = len(items)
        return self._bytes >= MAX_PAGE_BYTES


def _count(
    reader: Reader,
    plan: TablePlan,
    query: Query,
    slice: Slice,
    position: Position | None,
    limit: int,
) -> Page:
    count, now_ms = 0, expiry.to_ms(reader.now)
    for key, value in SliceScan(reader, plan, slice, query.distinct, position).all():
        if value[0]:
            row = row_codec.decode(value)
            if not row.is_live(now_ms):
                continue
            if row.is_uncertain and not resolve(reader, plan, slice.index, key, row, now_ms):
                continue
        count += 1
        if count == limit:
            end = _position(plan, slice, query.distinct, key, value)
            token = make_token(slice, query.distinct, end)
            return Page(items=[], count=count, next=token)
    return Page(items=[], count=count)


def _etag(reader: Reader, plan: TablePlan, value: bytes) -> str:
    body = row_codec.decode(value).body
    statics = None
    if plan.statics:
        part = plan.primary.hash_part(plan.values(body))
        statics = reader.get(keys_of(reader.space).statics + plan.number_bytes + part)
    return row_etag(plan, body, statics)


# --- scanning ------------------------------------------------------------------------------------


class SliceScan:
    """The stored pairs of a slice from a position on, in the order of the answer."""

    __slots__ = ("_begin", "_end", "_reader", "_reverse", "_special")

    def __init__(
        self,
        reader: Reader,
        plan: TablePlan,
        slice: Slice,
        distinct: bool,
        position: Position | None,
    ) -> None:
        self._reader = reader
        self._reverse = slice.reverse
        self._begin, self._end = slice.begin, slice.end
        self._special: Pairs | None = None
        if distinct:
            self._special = _first_of_hashes(reader, plan, slice, position)
        elif slice.reverse and not slice.has_hash:
            self._special = _reversed_hashes(reader, plan, slice, position)
        elif position is not None:
            self._continue_after(position.key)

    def first_portion(self, limit: int) -> Pairs | None:
        """Returns the first portion; more are needed only if some of its rows have expired."""
        if self._special is not None:
            return self._special
        if self._begin >= self._end:
            return None
        return self._reader.scan(self._begin, self._end, limit=limit, reverse=self._reverse)

    def next_portion(self, key: bytes, count: int, limit: int) -> Pairs | None:
        """Returns the portion after the one that ended with `key`; None if that was all."""
        if self._special is not None or count < limit:
            return None
        self._continue_after(key)
        return self.first_portion(limit)

    def all(self) -> Pairs:
        if self._special is not None:
            return self._special
        if self._begin >= self._end:
            return iter(())
        return self._reader.scan(self._begin, self._end, reverse=self._reverse)

    def _continue_after(self, key: bytes) -> None:
        if self._reverse:
            self._end = key
        else:
            self._begin = after(key)


def _hash_ranges(reader: Reader, plan: TablePlan, slice: Slice, begin: bytes) -> Pairs:
    """Yields begin and end of each hash key of a slice, one read for each."""
    while begin < slice.end:
        pair = next(iter(reader.scan(begin, slice.end, limit=1)), None)
        if pair is None:
            return
        prefix = _hash_prefix(plan, slice, pair[1])
        end = prefix_range(prefix)[1]
        yield prefix, end
        begin = end


def _hash_prefix(plan: TablePlan, slice: Slice, value: bytes) -> bytes:
    values = values_of(plan, slice.index, row_codec.decode(value).body)
    return slice.base + slice.index.hash_part(values)


def _position(plan: TablePlan, slice: Slice, distinct: bool, key: bytes, value: bytes) -> Position:
    if distinct or (slice.reverse and not slice.has_hash):
        return Position(key, _hash_prefix(plan, slice, value))
    return Position(key)


def _first_of_hashes(
    reader: Reader, plan: TablePlan, slice: Slice, position: Position | None
) -> Pairs:
    """Yields the first live row of each hash key."""
    now_ms = expiry.to_ms(reader.now)
    begin = slice.begin if position is None else prefix_range(position.hash_prefix)[1]
    for prefix, end in _hash_ranges(reader, plan, slice, begin):
        for key, value in reader.scan(prefix, end):
            if not value[0] or row_codec.decode(value).is_live(now_ms):
                yield key, value
                break


def _reversed_hashes(
    reader: Reader, plan: TablePlan, slice: Slice, position: Position | None
) -> Pairs:
    """Yields every hash key in the order of the index, its rows in reverse."""
    begin = slice.begin
    if position is not None:
        yield from reader.scan(position.hash_prefix, position.key, reverse=True)
        begin = prefix_range(position.hash_prefix)[1]
    for prefix, end in _hash_ranges(reader, plan, slice, begin):
        yield from reader.scan(prefix, end, reverse=True)
