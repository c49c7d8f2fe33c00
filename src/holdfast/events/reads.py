"""Reads what keys hold: members, leaderboards, counters, series of them, and the keys."""

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from holdfast.engine.contract import Reader
from holdfast.error_text import shown
from holdfast.errors import BadInput, WrongKind
from holdfast.events import boards, digests, sets
from holdfast.events.codec import MIXED, Record, decode
from holdfast.events.layout import keys_of
from holdfast.events.record_cache import RecordCache
from holdfast.events.records import (
    BoardEntry,
    Distinct,
    KeyInfo,
    KeyPage,
    Member,
    MemberPage,
    Point,
    Settings,
)
from holdfast.events.settings import settings_of
from holdfast.events.times import LABELS, labels_between
from holdfast.keys import after as key_after
from holdfast.limits import MAX_EVENT_SERIES_POINTS, MAX_MERGED_KEYS, MAX_PAGE_MEMBERS

__all__ = ["By", "Moment", "Reads", "answer_bytes", "encoded"]

By: TypeAlias = Literal["gross", "distinct", "size"]
Moment: TypeAlias = str | int | datetime

_ITEM_BYTES: Final = 64  # that a number or a name takes beside its text
_TOKEN: Final = msgspec.msgpack.Decoder(tuple[int, bytes])
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


class Reads:
    """Any number of reads on one snapshot."""

    def __init__(self, reader: Reader, settings: Settings | None = None) -> None:
        self._cache = RecordCache(reader)
        self._settings = settings

    def members(self, key: str, limit: int, after: str | None) -> MemberPage:
        record = self._record(key, board=False)
        last = None if after is None else _read_token(after)
        count = _checked_limit(limit)
        found = sets.members(self._cache, record, limit=count + 1, after=last)
        page = found[:count]
        more = len(found) > count and page
        return MemberPage(
            members=[Member(value=value.decode(), at=at) for value, at in page],
            next=_token(page[-1]) if more else None,
        )

    def contains(self, key: str, value: str) -> Member | None:
        record = self._record(key, board=False)
        found = sets.contains(self._cache, record, encoded(value))
        return None if found is None else Member(value=value, at=found[1])

    def size(self, key: str) -> int:
        record = self._record(key.removeprefix("#") if isinstance(key, str) else key)
        if record.is_board:
            return min(record.size, record.bound)
        return sets.size(self._cache, record)

    def top(self, key: str | Sequence[str], k: int | None) -> list[BoardEntry]:
        records = [self._record(each, board=True) for each in dict.fromkeys(_key_list(key))]
        if k is None:
            k = max((record.bound for record in records if record.is_board), default=0)
        elif type(k) is not int or k < 0:
            raise BadInput(
                f"a leaderboard has no {k!r} highest entries", hint="Give k of 0 or more."
            )
        if len(records) == 1:
            found = boards.top(self._cache, records[0], k)
        else:
            found = boards.merged(self._cache, records, k)
        return [
            BoardEntry(value=entry.value.decode(), count=entry.count, error=entry.error)
            for entry in found
        ]

    def gross(self, key: str) -> int:
        return self._record(key).gross

    def distinct(self, key: str | Sequence[str]) -> Distinct:
        records = [self._record(each) for each in dict.fromkeys(_key_list(key))]
        if len(records) == 1:
            size = self._exact_size(records[0])
            if size is not None:
                return Distinct(count=size, exact=True)
        count, exact = digests.distinct(self._cache, records)
        incomplete = any(record.flags & MIXED for record in records)
        return Distinct(count=count, exact=exact and not incomplete, incomplete=incomplete)

    def _exact_size(self, record: Record) -> int | None:
        """The number of members, if they are all that were ever added."""
        if not record.is_whole or not record.is_dense:
            return None  # a short list of digests says the same
        return record.size if record.is_board else sets.exact_size(self._cache, record)

    def series(self, template: str, by: By, begin: Moment, end: Moment) -> list[Point]:
        found = _PLACEHOLDER.findall(template) if isinstance(template, str) else ()
        if len(found) != 1 or found[0] not in LABELS:
            known = ", ".join(f"{{{label}}}" for label in LABELS)
            raise BadInput(
                f"the template {template!r} needs one time label", hint=f"Use one of {known}."
            )
        if by not in ("gross", "distinct", "size"):
            raise BadInput(f"a series is by gross, distinct or size, not by {shown(by)}")
        points: list[Point] = []
        timezone = (self._settings or settings_of(self._cache.tx)).timezone
        for label in labels_between(LABELS[found[0]], begin, end, timezone):
            if len(points) == MAX_EVENT_SERIES_POINTS:
                raise BadInput(
                    f"the series has more than {MAX_EVENT_SERIES_POINTS} points",
                    hint="Ask for a shorter range, or for longer steps.",
                )
            key = template.replace(f"{{{found[0]}}}", label)
            points.append(Point(label=label, value=self._number(key, by)))
        return points

    def _number(self, key: str, by: By) -> int:
        if by == "gross":
            return self.gross(key)
        return self.size(key) if by == "size" else self.distinct(key).count

    def keys(self, prefix: str, limit: int, after: str | None) -> KeyPage:
        cache = self._cache
        layout = keys_of(cache.tx.space)
        begin, end = layout.record_range(encoded(prefix))
        if after is not None:
            begin = max(begin, key_after(layout.record(encoded(after))))
        count = _checked_limit(limit)
        found: list[KeyInfo] = []
        for stored_key, stored in cache.scan(begin, end):
            key = layout.record_name(stored_key)
            record = decode(key, stored_key, stored)
            if record.expires_ms and record.expires_ms <= cache.now_ms:
                continue
            if len(found) == count:
                return KeyPage(keys=found, next=found[-1].key)
            found.append(
                KeyInfo(key=key.decode(), kind="leaderboard" if record.is_board else "set")
            )
        return KeyPage(keys=found)

    def _record(self, key: str, *, board: bool | None = None) -> Record:
        record = self._cache.record(encoded(key))
        if board is not None and record.known and record.is_board is not board:
            held, hint = ("leaderboard", "`top`") if record.is_board else ("set", "`members`")
            raise WrongKind(f"key {key} holds a {held}", hint=f"Read it with {hint}.")
        return record


def answer_bytes(answer: Any) -> int:
    """About what an answer takes: its texts, and something for each of its items."""
    if isinstance(answer, MemberPage):
        answer = answer.members
    if isinstance(answer, KeyPage):
        return sum(len(each.key) for each in answer.keys) + _ITEM_BYTES * len(answer.keys)
    if not isinstance(answer, list):
        return _ITEM_BYTES
    return sum(
        len(getattr(each, "value", "")) if not isinstance(each, Point) else 0 for each in answer
    ) + _ITEM_BYTES * len(answer)


def _key_list(key: str | Sequence[str]) -> Sequence[str]:
    keys = (key,) if isinstance(key, str) else key
    if not isinstance(keys, list | tuple):
        raise BadInput(f"a key, or a list of keys, is asked for, not {key!r}")
    if not 0 < len(keys) <= MAX_MERGED_KEYS:
        raise BadInput(f"{len(keys)} keys at once, 1 to {MAX_MERGED_KEYS} may be merged")
    return keys


def encoded(text: str) -> bytes:
    if not isinstance(text, str):
        raise BadInput(f"a key or a value is text, not {shown(text)}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{text[:40]!r} is no valid Unicode") from None


def _checked_limit(limit: int) -> int:
    if type(limit) is not int or not 0 < limit <= MAX_PAGE_MEMBERS:
        raise BadInput(f"a page of {limit!r}, 1 to {MAX_PAGE_MEMBERS} may be asked for")
    return limit


def _token(member: sets.Member) -> str:
    value, at = member
    return base64.urlsafe_b64encode(msgspec.msgpack.encode((at, value))).decode().rstrip("=")


def _read_token(token: str) -> sets.Member:
    if not isinstance(token, str):
        raise BadInput(f"{token!r} is no place in a set", hint="Give `next` of the page before.")
    try:
        at, value = _TOKEN.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return value, at
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise BadInput(
            f"{token[:40]!r} is no place in a set", hint="Give `next` of the page before."
        ) from None
