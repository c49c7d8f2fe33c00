"""Deletes: all rows of a slice of the primary index, with their entries, in one transaction."""

from typing import Any

import msgspec

from holdfast.errors import InvalidTableQuery, InvalidTableRequest, RequestTooLarge
from holdfast.limits import MAX_DELETED_BYTES, MAX_DELETED_KEYS
from holdfast.tables import row_codec
from holdfast.tables.conditions import Condition, parse_condition
from holdfast.tables.etags import check_etag, check_tags, row_etag
from holdfast.tables.layout import keys_of
from holdfast.tables.plan import TablePlan
from holdfast.tables.queries import Slice, slice_of
from holdfast.tables.records import DeleteResult
from holdfast.tables.row_codec import StoredRow
from holdfast.tables.row_writer import RowWriter


class Delete(msgspec.Struct, kw_only=True):
    """A delete that was checked against the schema."""

    slice: Slice
    static_key: bytes
    condition: Condition | None
    if_match: str | None
    if_none_match: str | None

    @property
    def has_tags(self) -> bool:
        return self.if_match is not None or self.if_none_match is not None

    @property
    def has_condition(self) -> bool:
        return self.condition is not None or self.has_tags


class DeletedRows:
    """Limits the rows that one call deletes, of one slice or of all slices of a batch."""

    __slots__ = ("keys", "size")

    def __init__(self) -> None:
        self.keys = 0
        self.size = 0

    def take(self, plan: TablePlan, row: StoredRow) -> None:
        """Counts a row with its index entries; raises before too many are in memory."""
        self.keys += 1 + len(plan.indexes)
        self.size += len(row.value)
        if self.keys > MAX_DELETED_KEYS:
            what = f"{MAX_DELETED_KEYS} rows and index entries"
        elif self.size > MAX_DELETED_BYTES:
            what = f"rows of {MAX_DELETED_BYTES} bytes"
        else:
            return
        raise RequestTooLarge(
            f"the delete would remove more than {what}",
            hint="Delete in several calls, with bounds on the next range attribute, or drop the "
            "table.",
        )


def prepare(
    plan: TablePlan,
    space: bytes,
    attributes: Any,
    *,
    condition: Any = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Delete:
    """Checks a delete against the schema. Reads nothing."""
    if not attributes:
        raise InvalidTableQuery(
            "All hash attributes must be given to delete rows",
            hint="To empty a table, drop it.",
        )
    keys = keys_of(space)
    slice = slice_of(plan, keys, plan.primary, attributes)
    found = parse_condition(plan, condition)
    needs_row = check_tags(if_match=if_match, if_none_match=if_none_match) or (
        found is not None and (found.exists is not None or bool(found.row))
    )
    if needs_row and not slice.is_whole_key:
        raise InvalidTableRequest("A condition on a row needs the whole primary key of that row")
    hashes = {e.name: attributes[e.name] for e in plan.primary.hashes}
    hash_slice = slice_of(plan, keys, plan.primary, hashes)
    static_key = keys.statics + plan.number_bytes + hash_slice.begin[len(slice.base) :]
    return Delete(
        slice=slice,
        static_key=static_key,
        condition=found,
        if_match=if_match,
        if_none_match=if_none_match,
    )


def is_met(writer: RowWriter, delete: Delete) -> bool:
    """Returns whether the condition holds; raises `PreconditionFailed` for another etag."""
    if not delete.has_condition:
        return True
    plan = writer.plan
    row = writer.row(delete.slice.begin) if delete.slice.is_whole_key else None
    if row is not None and not writer.is_live(row):
        row = None
    static_value = writer.tx.get(delete.static_key) if plan.statics else None
    if delete.has_tags:
        etag = None if row is None else row_etag(plan, row.body, static_value)
        check_etag(etag, delete.if_match, delete.if_none_match)
    if delete.condition is None:
        return True
    statics = None if static_value is None else plan.values(row_codec.decode(static_value).body)
    return delete.condition.is_met(None if row is None else plan.values(row.body), statics)


def apply(writer: RowWriter, delete: Delete, deleted: DeletedRows) -> DeleteResult:
    """Removes the rows; the statics too if only the hash key was given."""
    slice, rows = delete.slice, []
    if slice.begin < slice.end:
        for pair in writer.rows_between(slice.begin, slice.end):
            deleted.take(writer.plan, pair[1])
            rows.append(pair)
    count = sum(writer.is_live(row) for _, row in rows)
    writer.remove(rows)
    if writer.plan.statics and not slice.fixed and not slice.bounded:
        writer.delete_statics(delete.static_key)
    return DeleteResult(applied=True, count=count)
