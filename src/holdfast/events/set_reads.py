"""Members of several sets read as one: union, intersection and difference, newest first.

Each set is read from its newest member down, a few rows at a time, and a heap picks the newest of
their heads. A union returns each value once, at its newest place within the bounds. The first page
remembers the values that it has returned; a page that begins at a cursor asks the other sets
whether they have the value at a newer place. The cursor is only a position, so it survives changes:
members that are added above it are not seen, removed ones are gone.
"""

import base64
import binascii
import heapq
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from holdfast.call_time import CallTimer
from holdfast.errors import BadInput
from holdfast.events import sets
from holdfast.events.codec import TIME_BYTES, KeyRecord
from holdfast.events.layout import PLACES, VALUES, place, value_part
from holdfast.events.record_cache import RecordCache
from holdfast.keys import prefix_range
from holdfast.limits import MAX_EVENT_MS, MAX_WALKED_MEMBERS

__all__ = ["Cursor", "SetOperation", "SetView", "TimeBounds", "merged_members"]

SetOperation: TypeAlias = Literal["union", "intersection", "difference"]

_FIRST_ROWS: Final = 4  # read of each set at once; twice as many each further time
_MAX_ROWS: Final = 512
_ANCHORS: Final = 3


class TimeBounds(NamedTuple):
    """Times of members that count: `since` exclusive, `until` inclusive, in milliseconds."""

    since: int = -1
    until: int = MAX_EVENT_MS

    def contain(self, at: int) -> bool:
        return self.since < at <= self.until


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """The place of the member that was walked last."""

    at: int
    value: bytes
    sequence: int = 0  # its arrival number, if its set has rows
    source: int = 0  # the position of its set
    anchors: list[bytes] = []  # members of the same millisecond before it, should it be gone

    def text(self) -> str:
        return base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).decode().rstrip("=")

    @staticmethod
    def read(text: str) -> "Cursor":
        """Returns the cursor that `text` made."""
        hint = "Give the `next` of the previous page."
        if not isinstance(text, str):
            raise BadInput(f"{text!r} is not a position in a set", hint=hint)
        try:
            return _decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (msgspec.MsgspecError, binascii.Error, ValueError):
            raise BadInput(f"{text[:40]!r} is not a position in a set", hint=hint) from None


_decode: Final = msgspec.msgpack.Decoder(Cursor).decode


class WalkedMember(NamedTuple):
    """A member that a walk has reached. Sorts newest first; equal times are ordered by set."""

    order: int  # the time, negated
    source: int
    arrival: int  # the position in the walk of its set
    value: bytes
    sequence: int

    @property
    def at(self) -> int:
        return -self.order


class SetView:
    """One set within bounds."""

    def __init__(
        self, cache: RecordCache, record: KeyRecord, bounds: TimeBounds, source: int
    ) -> None:
        self._cache = cache
        self._record = record
        self._bounds = bounds
        self._source = source

    def time_of(self, value: bytes) -> int | None:
        """Returns when the member was last added, if it is one within the bounds."""
        if self._record.has_rows:
            found = sets.contains(self._cache, self._record, value)
            at = None if found is None else found[1]
        else:
            at = self._packed_times.get(value)
        return at if at is not None and self._bounds.contain(at) else None

    def walk(self, cursor: Cursor | None) -> Iterator[WalkedMember]:
        """Yields the members, newest first, starting after the cursor."""
        walk = self._walk_rows(cursor) if self._record.has_rows else self._walk_packed(cursor)
        for arrival, (value, at, sequence) in enumerate(walk):
            yield WalkedMember(-at, self._source, arrival, value, sequence)

    @cached_property
    def _packed(self) -> list[sets.Member]:
        return sets.packed_members(self._cache, self._record)

    @cached_property
    def _packed_times(self) -> dict[bytes, int]:
        return dict(self._packed)

    def _walk_packed(self, cursor: Cursor | None) -> Iterator[tuple[bytes, int, int]]:
        members = [member for member in self._packed if self._bounds.contain(member[1])]
        begin = 0 if cursor is None else self._position_after(members, cursor)
        for value, at in members[begin:]:
            yield value, at, 0

    def _position_after(self, members: list[sets.Member], cursor: Cursor) -> int:
        if cursor.source == self._source:
            for value in (cursor.value, *cursor.anchors):
                if (value, cursor.at) in members:
                    return members.index((value, cursor.at)) + 1
        before = cursor.at if cursor.source > self._source else cursor.at + 1
        return next((i for i, (_, at) in enumerate(members) if at < before), len(members))

    def _walk_rows(self, cursor: Cursor | None) -> Iterator[tuple[bytes, int, int]]:
        prefix = self._cache.keys.generation(self._record.generation)
        begin, end = prefix_range(prefix + PLACES)
        size = len(begin)
        if self._bounds.since >= 0:
            begin += place(self._bounds.since + 1, 0)
        if self._bounds.until < MAX_EVENT_MS:
            end = prefix + PLACES + place(self._bounds.until + 1, 0)
        if cursor is not None:
            end = min(end, prefix + PLACES + self._place_after(prefix, cursor))
        limit = _FIRST_ROWS
        while begin < end:
            rows = list(self._cache.scan(begin, end, limit=limit, reverse=True))
            for key, raw in rows:
                where = key[size:]
                at = int.from_bytes(where[:TIME_BYTES], "big")
                yield raw, at, int.from_bytes(where[TIME_BYTES:], "big")
            if len(rows) < limit:
                return
            end = rows[-1][0]
            limit = min(2 * limit, _MAX_ROWS)

    def _place_after(self, prefix: bytes, cursor: Cursor) -> bytes:
        if cursor.source != self._source:
            return place(cursor.at if cursor.source > self._source else cursor.at + 1, 0)
        if cursor.sequence:
            return place(cursor.at, cursor.sequence)
        for value in (cursor.value, *cursor.anchors):
            where = self._cache.get(prefix + VALUES + value_part(value))
            if where is not None and int.from_bytes(where[:TIME_BYTES], "big") == cursor.at:
                return where
        return place(cursor.at + 1, 0)


def merged_members(
    views: Sequence[SetView],
    operation: SetOperation,
    limit: int,
    cursor: Cursor | None,
    timer: CallTimer | None,
) -> tuple[list[sets.Member], Cursor | None]:
    """Returns a page of members, and the cursor of the next page if there may be one.

    The timer limits what many sets take: each member may be looked up in all of them.
    """
    page: list[sets.Member] = []
    returned: set[bytes] = set()
    last: WalkedMember | None = None
    anchors: list[bytes] = []
    walks = views if operation != "difference" else views[:1]
    for walked, member in enumerate(heapq.merge(*(view.walk(cursor) for view in walks))):
        if len(page) == limit or walked == MAX_WALKED_MEMBERS:
            assert last is not None  # the limit is at least 1
            return page, _cursor_at(last, anchors)
        if timer is not None:
            timer.check()
        if _belongs_to_page(views, operation, member, returned, checks=cursor is not None):
            page.append((member.value, member.at))
        returned.add(member.value)
        same = last is not None and (last.at, last.source) == (member.at, member.source)
        anchors = [last.value, *anchors][:_ANCHORS] if same and last is not None else []
        last = member
    return page, None


def _cursor_at(last: WalkedMember, anchors: list[bytes]) -> Cursor:
    return Cursor(last.at, last.value, last.sequence, last.source, anchors)


def _belongs_to_page(
    views: Sequence[SetView],
    operation: SetOperation,
    member: WalkedMember,
    returned: set[bytes],
    *,
    checks: bool,
) -> bool:
    if operation == "difference":
        return all(view.time_of(member.value) is None for view in views[1:])
    if member.value in returned:
        return False
    if operation == "union" and not checks:
        return True  # read from the newest: a newer place would have been seen
    for source, view in enumerate(views):
        if source == member.source:
            continue
        at = view.time_of(member.value)
        if at is None:
            if operation == "intersection":
                return False
        elif checks and (at, -source) > (member.at, -member.source):
            return False  # an earlier page has returned it
    return True
