"""Puts: one row, merged into the stored one, with conditions, statics, indexes and retention."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from holdfast.error_text import did_you_mean, shown
from holdfast.errors import (
    InvalidAttributeValue,
    InvalidTableRequest,
    MissingKeyAttribute,
    RowTooLarge,
    TtlNotAllowed,
    UnknownAttribute,
)
from holdfast.limits import MAX_ATTRIBUTE_BYTES, MAX_RANGE_VALUE_BYTES, MAX_TTL_SECONDS
from holdfast.tables import row_codec, types
from holdfast.tables.conditions import Condition, parse_condition
from holdfast.tables.etags import check_etag, check_tags, row_etag
from holdfast.tables.plan import Attribute, TablePlan, Values
from holdfast.tables.predicates import accept_value
from holdfast.tables.records import Item, PutResult
from holdfast.tables.row_codec import StoredRow
from holdfast.tables.row_writer import RowWriter
from holdfast.tables.values import accept_string

UNSET: Final = -1  # `_ttl` was not given
NO_EXPIRY: Final = 0  # `_ttl` was null: the row never expires

Change = tuple[
    Attribute, Callable[[Any], Any]
]  # a partial update: from the stored value to the next


class CheckedPut(msgspec.Struct, gc=False):
    """A put that was checked against the schema, before the stored row is read."""

    values: list[Any]  # by attribute id; a full row but for what is merged
    named: Mapping[str, Any]  # the attributes of the request
    changes: list[Change]
    ttl_ms: int
    is_new: bool  # the version was generated: nothing can be stored under this key
    condition: Condition | None
    if_match: str | None
    if_none_match: str | None
    return_old: bool

    def given(self, plan: TablePlan, *, statics: bool) -> list[Attribute]:
        """Returns the attributes that replace a value, of the row or of its statics."""
        changed = {attribute.name for attribute, _ in self.changes}
        named = [plan.attributes[name] for name in self.named if name in plan.attributes]
        return [c for c in named if c.is_static is statics and c.name not in changed]

    @property
    def has_condition(self) -> bool:
        return (
            self.condition is not None
            or self.if_match is not None
            or self.if_none_match is not None
        )

    def needs_row(self) -> bool:
        return not self.is_new or self.has_condition or self.return_old


class FoundRow(msgspec.Struct, gc=False):
    """The stored row that a put changes, its values if it is live, and the static values."""

    key: bytes
    row: StoredRow | None
    values: list[Any] | None
    static_key: bytes
    static_value: bytes | None
    statics: list[Any] | None


def prepare(
    plan: TablePlan,
    attributes: Any,
    make_version: Callable[[], Any],
    *,
    condition: Any = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
    return_old: bool = False,
) -> CheckedPut:
    """Checks a put against the schema. Reads nothing."""
    if attributes is None:
        attributes = {}
    if type(attributes) is not dict and not isinstance(attributes, Mapping):
        raise InvalidTableRequest("The attributes of a put are an object")
    if if_match is not None or if_none_match is not None:
        check_tags(if_match=if_match, if_none_match=if_none_match)
    found = None if condition is None else parse_condition(plan, condition)
    values: list[Any] = [None] * plan.width
    changes: list[Change] = []
    slots = plan.slots
    try:
        for name, value in attributes.items():
            if name not in slots:
                if name != "_ttl":
                    raise _unknown(plan, name)
                continue
            if value is None:
                continue
            id, accept, attribute = slots[name]
            kind = type(value)
            if kind is str and accept is accept_string and value.isascii():
                values[id] = value  # `accept` returns most texts unchanged
            elif kind is dict and (change := _partial(attribute, value)) is not None:
                changes.append((attribute, change))
            else:
                values[id] = accept(value)
    except ValueError:
        _raise_first_problem(plan, attributes)
    ttl_ms = _ttl(plan, attributes["_ttl"]) if "_ttl" in attributes else UNSET
    is_new = False
    for id, name in plan.key_slots:
        if values[id] is None:
            if name != plan.version:
                _raise_first_problem(plan, attributes)
            values[id] = make_version()
            is_new = True
    return CheckedPut(
        values, attributes, changes, ttl_ms, is_new, found, if_match, if_none_match, return_old
    )


def find(writer: RowWriter, put: CheckedPut) -> FoundRow:
    """Reads what the put needs: at most the row and the statics of its hash key."""
    plan = writer.plan
    key = writer.row_key(put.values)
    row = writer.row(key) if put.needs_row() else None
    live = row is not None and writer.is_live(row)
    found = FoundRow(
        key, row, plan.values(row.body) if live and row is not None else None, b"", None, None
    )
    if plan.statics and _needs_statics(plan, put):
        found.static_key = writer.static_key(put.values)
        found.static_value = writer.tx.get(found.static_key)
        if found.static_value is not None:
            found.statics = plan.values(row_codec.decode(found.static_value).body)
    return found


def is_met(writer: RowWriter, put: CheckedPut, found: FoundRow) -> bool:
    """Returns whether the condition holds; raises `PreconditionFailed` for another etag."""
    if put.if_match is not None or put.if_none_match is not None:
        etag = None
        if found.values is not None and found.row is not None:
            etag = row_etag(writer.plan, found.row.body, found.static_value)
        check_etag(etag, put.if_match, put.if_none_match)
    return put.condition is None or put.condition.is_met(found.values, found.statics)


def write(writer: RowWriter, put: CheckedPut) -> Any:
    """Writes a put whose conditions hold, and returns its version.

    A new row of a table without statics, indexes and retention takes the fast path."""
    plan = writer.plan
    if plan.is_simple and put.ttl_ms == UNSET and not put.changes:
        body = plan.pack(put.values)
        is_short = len(body) <= MAX_RANGE_VALUE_BYTES
        if is_short and writer.add_simple_row(put.values, body, put.is_new):
            return None if plan.version_id is None else put.values[plan.version_id]
    return apply(writer, put, find(writer, put)).tid


def apply(writer: RowWriter, put: CheckedPut, found: FoundRow) -> PutResult:
    """Writes the row, its statics and entries. All checks come first."""
    plan = writer.plan
    values = put.values if found.values is None else _merge(plan, found.values, put)
    for attribute, change in put.changes:
        if not attribute.is_static:
            before = None if found.values is None else found.values[attribute.id]
            values[attribute.id] = _changed(attribute, change, before)
    static_body = _static_body(plan, put, found) if plan.statics else None
    body = plan.pack(_without_statics(plan, values) if plan.statics else values)
    if len(body) > MAX_RANGE_VALUE_BYTES:
        _check_sizes(plan, values, body)
    if static_body is not None:
        writer.write_statics(found.static_key, static_body, found.static_value)
    row = row_codec.encode(
        body,
        codec=plan.codec_for(body),
        expires_ms=_expiry(writer, put, found),
        generation=plan.generation,
    )
    writer.write_row(found.key, row, values, found.row)
    if not plan.policy.keeps_all:
        plan.policy.prune(writer, found.key, values)
    old = None
    if put.return_old and found.values is not None:
        old = item_of(plan, found.values, found.statics)
    tid = None if plan.version_id is None else values[plan.version_id]
    return PutResult(applied=True, tid=tid, old=old)


def item_of(plan: TablePlan, values: Values, statics: Values | None) -> Item:
    """Returns a row as a dict of its attributes, from its values by id."""
    return {
        attribute.name: (statics[attribute.id] if statics is not None else None)
        if attribute.is_static
        else values[attribute.id]
        for attribute in plan.attributes.values()
    }


# --- checking ------------------------------------------------------------------------------------


def _unknown(plan: TablePlan, name: Any) -> UnknownAttribute:
    near = did_you_mean(name, plan.attributes)
    return UnknownAttribute(f"Unknown attribute {name}{near}", attribute=str(name))


def _raise_first_problem(plan: TablePlan, attributes: Mapping[str, Any]) -> None:
    """Raises for an attribute that the schema does not have, otherwise for the first invalid one in
    the order of the schema."""
    for name in attributes:
        if name not in plan.attributes and name != "_ttl":
            raise _unknown(plan, name)
    for attribute in plan.attributes.values():
        value = attributes.get(attribute.name)
        if value is not None:
            try:
                is_partial = type(value) is dict and _partial(attribute, value) is not None
            except ValueError as error:
                raise InvalidAttributeValue(
                    f"Invalid update of {attribute.name!r} ({attribute.type.name}): {error}",
                    attribute=attribute.name,
                ) from None
            if not is_partial:
                accept_value(attribute, value)
        elif attribute.is_key and attribute.name != plan.version:
            raise MissingKeyAttribute(
                f"Index attribute {attribute.name!r} is missing", attribute=attribute.name
            )
    raise AssertionError("an attribute was refused and then accepted")


def _partial(attribute: Attribute, value: dict[str, Any]) -> Callable[[Any], Any] | None:
    """Returns the change that `{"incr": 1}` or `{"add": [...]}` makes to a stored value."""
    if attribute.is_key or not value:
        return None
    type = attribute.type
    if type.is_set and value.keys() <= {"add", "remove"}:
        added, removed = (
            type.accept([] if members is None else members)
            for members in (value.get("add"), value.get("remove"))
        )

        def change(before: Any) -> Any:
            members = type.accept([*(before or []), *(added or [])]) or []
            return types.without_members(type.kind, members, removed or [])

        return change
    may_be_value = type.kind.takes_buffers or type.kind.takes_objects
    if not type.is_set and value.keys() == {"incr"} and not may_be_value:
        amount = value["incr"]
        types.increased(type, None, amount)
        return lambda before: types.increased(type, before, amount)
    return None


def _changed(attribute: Attribute, change: Callable[[Any], Any], before: Any) -> Any:
    try:
        return change(before)
    except ValueError as error:
        raise InvalidAttributeValue(
            f"Invalid value of {attribute.name!r} after the update: {error}",
            attribute=attribute.name,
        ) from None


def _ttl(plan: TablePlan, seconds: Any) -> int:
    if not plan.policy.keeps_all:
        raise TtlNotAllowed(
            f"A custom _ttl is not allowed: {plan.name} has the policy {plan.policy.type}",
            attribute="_ttl",
        )
    if seconds is None:
        return NO_EXPIRY
    whole = None
    if not isinstance(seconds, bool | str):
        try:
            whole = int(seconds)
        except (TypeError, ValueError, OverflowError):
            whole = None
    if whole is None or whole != seconds or not 1 <= whole <= MAX_TTL_SECONDS:
        raise InvalidAttributeValue(
            f"Invalid value of '_ttl': {shown(seconds)} is not an integer of seconds "
            f"from 1 to {MAX_TTL_SECONDS}",
            attribute="_ttl",
        )
    return whole * 1000


def _check_sizes(plan: TablePlan, values: Values, body: bytes) -> None:
    """Raises if a value is too long for an index or too large for a row."""
    for index in plan.indexes.values():
        index.entry(values)
    if len(body) <= MAX_ATTRIBUTE_BYTES:
        return
    for attribute in plan.attributes.values():
        if not attribute.is_key and values[attribute.id] is not None:
            size = _size(plan, attribute, values[attribute.id])
            if size > MAX_ATTRIBUTE_BYTES:
                raise RowTooLarge(
                    f"The value of {attribute.name!r} has {size} bytes, at most "
                    f"{MAX_ATTRIBUTE_BYTES} fit",
                    attribute=attribute.name,
                )


def _size(plan: TablePlan, attribute: Attribute, value: Any) -> int:
    """Returns the size of a value: its own for texts and blobs, the stored one for others."""
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else len(plan.pack_one(attribute, value))


# --- merging -------------------------------------------------------------------------------------


def _needs_statics(plan: TablePlan, put: CheckedPut) -> bool:
    return (
        bool(put.given(plan, statics=True))
        or any(attribute.is_static for attribute, _ in put.changes)
        or (put.condition is not None and bool(put.condition.static))
        or put.return_old
        or put.if_match is not None
        or put.if_none_match is not None
    )


def _merge(plan: TablePlan, values: list[Any], put: CheckedPut) -> list[Any]:
    merged = values.copy()
    for attribute in put.given(plan, statics=False):
        merged[attribute.id] = put.values[attribute.id]
    return merged


def _without_statics(plan: TablePlan, values: list[Any]) -> list[Any]:
    values = values.copy()
    for attribute in plan.statics:
        values[attribute.id] = None
    return values


def _static_body(plan: TablePlan, put: CheckedPut, found: FoundRow) -> bytes | None:
    """Returns the static values of the hash key after this put; None if it names none."""
    given = put.given(plan, statics=True)
    changes = [(attribute, change) for attribute, change in put.changes if attribute.is_static]
    if not given and not changes:
        return None
    statics = [None] * plan.width if found.statics is None else found.statics.copy()
    for attribute in given:
        statics[attribute.id] = put.values[attribute.id]
    for attribute, change in changes:
        statics[attribute.id] = _changed(attribute, change, statics[attribute.id])
    body = plan.pack(statics)
    if len(body) > MAX_ATTRIBUTE_BYTES:
        _check_sizes(plan, statics, body)
    return body


def _expiry(writer: RowWriter, put: CheckedPut, found: FoundRow) -> int:
    plan = writer.plan
    if plan.policy.sets_expiry:
        return writer.now_ms + plan.policy.ttl_ms
    if put.ttl_ms == NO_EXPIRY:
        return 0
    if put.ttl_ms != UNSET:
        return writer.now_ms + put.ttl_ms
    if plan.default_ttl_ms:
        return writer.now_ms + plan.default_ttl_ms
    return found.row.expires_ms if found.values is not None and found.row is not None else 0
