"""Reads what keys hold: members, leaderboards, counters, numbers, series of them, and the keys."""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import merge
from typing import Any, Final, TypeAlias, get_args

from holdfast.call_time import CallTimer
from holdfast.engine.contract import Reader
from holdfast.error_text import shown
from holdfast.errors import AnswerTooLarge, BadInput, IncompleteCounter, WrongKind
from holdfast.events import boards, counts, merged_boards, numbers, sets
from holdfast.events.codec import GROSS_OFF, UNBOUNDED, WINDOWED, KeyRecord, decode
from holdfast.events.deployment import deployed
from holdfast.events.record_cache import RecordCache
from holdfast.events.records import (
    Aggregate,
    BoardEntry,
    Distinct,
    KeyDescription,
    KeyInfo,
    KeyPage,
    Kind,
    Member,
    MemberPage,
    Point,
    Settings,
)
from holdfast.events.set_reads import Cursor, SetOperation, SetView, TimeBounds, merged_members
from holdfast.events.times import (
    LABELS,
    Calendar,
    labels_between,
    labels_within,
    seconds_of,
    to_event_ms,
)
from holdfast.keys import after as key_after
from holdfast.limits import (
    MAX_ANSWER_BYTES,
    MAX_EVENT_KEY_BYTES,
    MAX_EVENT_MS,
    MAX_EVENT_SERIES_POINTS,
    MAX_MERGE_SECONDS,
    MAX_MERGED_KEYS,
    MAX_PAGE_MEMBERS,
)

__all__ = ["KeyOrKeys", "Moment", "ReadMeter", "Reads", "SeriesMeasure", "Window", "encoded"]

# "gross", "distinct", "size", "sum", "min", "max", "avg", "last", "p95", ...
SeriesMeasure: TypeAlias = str
Moment: TypeAlias = str | int | datetime
KeyOrKeys: TypeAlias = str | Sequence[str]
Window: TypeAlias = str | int | float | None  # a duration: seconds, or text such as "24h"

_ITEM_BYTES: Final = 64  # that a number or a name takes beside its text
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_COUNTS: Final = ("gross", "distinct", "size")
_NUMBERS: Final = ("count", "sum", "min", "max", "avg", "last")
_PERCENTILE: Final = re.compile(r"p(\d{1,3}(?:\.\d{1,6})?)")


class Reads:
    """Any number of reads on one snapshot."""

    def __init__(self, reader: Reader, settings: Settings | None = None) -> None:
        self._cache = RecordCache(reader)
        self._settings = settings
        self._timer: CallTimer | None = None

    def _timer_for(self, keys: Sequence[KeyRecord | str]) -> CallTimer | None:
        """Returns what limits all reads of several keys in this call; None for a single key."""
        return self._call_timer() if len(keys) > 1 else self._timer

    def _call_timer(self) -> CallTimer:
        if self._timer is None:
            hint = "Ask for fewer keys, or for a shorter range."
            self._timer = CallTimer("reading the keys", hint, MAX_MERGE_SECONDS)
        return self._timer

    # --- sets ------------------------------------------------------------------------------------

    def members(
        self,
        key: KeyOrKeys,
        limit: int,
        after: str | None,
        *,
        op: SetOperation = "union",
        since: Moment | None = None,
        until: Moment | None = None,
        last: Window = None,
        schema: str | None = None,
    ) -> MemberPage:
        bounds = self._bounds(since, until)
        records = [self._set(each) for each in self._keys(key, last, schema)]
        cursor = None if after is None else Cursor.read(after)
        views = [
            SetView(self._cache, record, bounds, number) for number, record in enumerate(records)
        ]
        page, following = merged_members(
            views, _checked_operation(op), _checked_limit(limit), cursor, self._timer_for(records)
        )
        return MemberPage(
            members=[Member(value=value.decode(), at=at) for value, at in page],
            next=None if following is None else following.text(),
        )

    def contains(self, key: str, value: str) -> Member | None:
        record = self._set(key)
        found = sets.contains(self._cache, record, encoded(value))
        return None if found is None else Member(value=value, at=found[1])

    def size(self, key: str) -> int:
        name = key.removeprefix("#") if isinstance(key, str) else key
        record = self._cache.record(encoded(name))
        if record.is_board:
            return min(record.size, record.bound)
        if not record.known:
            board = self._cache.board_beside(record.key)
            return min(board.size, board.bound)
        return sets.size(self._cache, record)

    # --- leaderboards ----------------------------------------------------------------------------

    def top(
        self, key: KeyOrKeys, k: int | None, last: Window = None, schema: str | None = None
    ) -> list[BoardEntry]:
        records = [self._board(each) for each in self._keys(key, last, schema)]
        if k is None:
            k = max((record.bound for record in records if record.is_board), default=0)
        elif type(k) is not int or k < 0:
            raise BadInput(f"k must be an integer, 0 or more, not {k!r}")
        if len(records) == 1:
            found = boards.top(self._cache, records[0], k)
        else:
            found = merged_boards.merged(self._cache, records, k, self._timer_for(records))
        decays = any(record.half_life_ms for record in records)
        return [
            BoardEntry(
                value=entry.value.decode(),
                count=entry.count,
                error=entry.error,
                score=entry.score if decays else None,
            )
            for entry in found
        ]

    def top_descending(self, key: str, most: int) -> list[BoardEntry]:
        """Returns up to `most` of the K entries of a board, highest count first, of equal counts
        the greater value first: the order of Redis' ZREVRANGE."""
        record = self._board(key)
        found = boards.top_descending(self._cache, record, min(most, record.bound))
        return [BoardEntry(value=e.value.decode(), count=e.count, error=e.error) for e in found]

    # --- counters --------------------------------------------------------------------------------

    def gross(
        self,
        key: KeyOrKeys,
        since: Moment | None = None,
        last: Window = None,
        schema: str | None = None,
        *,
        complete: bool = False,
    ) -> int:
        records = [self._cache.record(encoded(each)) for each in self._keys(key, last, schema)]
        for record in records if complete else ():
            if record.flags & GROSS_OFF:
                raise IncompleteCounter(
                    f"values were added to {record.key.decode()} while its gross counter was off"
                )
        return counts.gross(self._cache, records, self._moment(since), self._timer_for(records))

    def distinct(
        self,
        key: KeyOrKeys,
        op: SetOperation = "union",
        since: Moment | None = None,
        last: Window = None,
        schema: str | None = None,
    ) -> Distinct:
        records = [self._cache.record(encoded(each)) for each in self._keys(key, last, schema)]
        return counts.distinct(
            self._cache,
            records,
            _checked_operation(op),
            self._moment(since),
            self._timer_for(records),
        )

    def counted(
        self, keys: KeyOrKeys, since: Moment | None
    ) -> tuple[list[KeyRecord], int | None, CallTimer | None]:
        """Returns the records whose counters are asked for, the moment in milliseconds, and what
        limits the time of the call."""
        found = [self._cache.record(encoded(each)) for each in self._keys(keys, None, None)]
        return found, self._moment(since), self._timer_for(found)

    def aggregate(
        self,
        key: KeyOrKeys,
        percentiles: Sequence[float],
        last: Window = None,
        schema: str | None = None,
    ) -> Aggregate:
        keys = self._keys(key, last, schema)
        timer = self._timer_for(keys)

        def held() -> Iterator[numbers.Numbers]:
            for position, each in enumerate(keys):
                if timer is not None and position:
                    timer.check()
                yield numbers.read(self._cache.tx, encoded(each))

        return numbers.aggregate(held(), percentiles)

    def describe(self, key: str) -> KeyDescription:
        record = self._cache.record(encoded(key))
        board = self._cache.board_beside(record.key)
        held = numbers.read(self._cache.tx, record.key)
        kinds: list[Kind] = [record.kind] if record.known else []
        kinds += ["leaderboard"] if board.known else []
        kinds += ["numbers"] if held.count else []
        bound = record.bound if record.known else board.bound
        return KeyDescription(
            key=key,
            kinds=kinds,
            size=self.size(key),
            bound=None if bound == UNBOUNDED or not kinds else bound,
            gross=self.gross(key),
            gross_complete=not record.flags & GROSS_OFF,
            distinct=self.distinct(key),
            windowed=bool(record.flags & WINDOWED),
            numbers=held.count,
            expires=record.expires_ms or board.expires_ms or held.expires_ms or None,
        )

    # --- series ----------------------------------------------------------------------------------

    def series(
        self,
        template: str,
        by: SeriesMeasure,
        begin: Moment,
        end: Moment,
        schema: str | None = None,
    ) -> list[Point]:
        label_name, unit = _placeholder(template)
        _check_by(by)
        points: list[Point] = []
        timer = self._call_timer()
        for label in labels_between(unit, begin, end, self._calendar(schema)):
            if len(points) == MAX_EVENT_SERIES_POINTS:
                raise BadInput(
                    f"the series has more than {MAX_EVENT_SERIES_POINTS} points",
                    hint="Ask for a shorter range, or for longer steps.",
                )
            if points:
                timer.check()  # each point may read a large histogram or sketch
            key = template.replace(f"{{{label_name}}}", label)
            points.append(Point(label=label, value=self._number(key, by)))
        return points

    def _number(self, key: str, by: SeriesMeasure) -> int | float | None:
        if by == "gross":
            record = self._cache.record(encoded(key))
            return None if record.flags & GROSS_OFF and not record.gross else self.gross(key)
        if by == "distinct":
            found_distinct = self.distinct(key)
            is_off = found_distinct.incomplete and not found_distinct.count
            return None if is_off else found_distinct.count
        if by == "size":
            return self.size(key)
        percentile = _PERCENTILE.fullmatch(by)
        found = self.aggregate(key, [float(percentile[1])] if percentile else [])
        if percentile:
            return next(iter(found.percentiles.values()), None)
        value: int | float | None = getattr(found, by)
        return value

    # --- keys ------------------------------------------------------------------------------------

    def keys(self, prefix: str, limit: int, after: str | None) -> KeyPage:
        last = None if after is None else encoded(after)
        count = _checked_limit(limit)
        found: list[KeyInfo] = []
        for key, kind in merge(*self._kinds(encoded(prefix), last), key=lambda pair: pair[0]):
            name = key.decode()
            # All that a key holds is on one page: the next one begins after the key.
            if len(found) >= count and found[-1].key != name:
                return KeyPage(keys=found, next=found[-1].key)
            found.append(KeyInfo(key=name, kind=kind))
        return KeyPage(keys=found)

    def _kinds(self, prefix: bytes, last: bytes | None) -> list[Iterator[tuple[bytes, Kind]]]:
        keys = self._cache.keys
        records, beside, held = (
            keys.record_range(prefix),
            keys.boards_beside(prefix),
            keys.numbers_range(prefix),
        )
        if last is not None:
            records = max(records[0], key_after(keys.record(last))), records[1]
            beside = max(beside[0], key_after(keys.board_beside(last))), beside[1]
            held = max(held[0], key_after(keys.numbers(last))), held[1]
        return [self._records_in(records), self._boards_in(beside), self._numbers_in(held)]

    def _records_in(self, range: tuple[bytes, bytes]) -> Iterator[tuple[bytes, Kind]]:
        for stored_key, stored in self._cache.scan(*range):
            record = decode(self._cache.keys.record_name(stored_key), stored_key, stored)
            if not record.expires_ms or record.expires_ms > self._cache.now_ms:
                yield record.key, record.kind

    def _boards_in(self, range: tuple[bytes, bytes]) -> Iterator[tuple[bytes, Kind]]:
        for stored_key, stored in self._cache.scan(*range):
            record = decode(self._cache.keys.key_beside(stored_key), stored_key, stored)
            if not record.expires_ms or record.expires_ms > self._cache.now_ms:
                yield record.key, "leaderboard"

    def _numbers_in(self, range: tuple[bytes, bytes]) -> Iterator[tuple[bytes, Kind]]:
        for stored_key, stored in self._cache.scan(*range):
            if numbers.is_unexpired(stored, self._cache.now_ms):
                yield self._cache.keys.key_beside(stored_key), "numbers"

    # --- arguments -------------------------------------------------------------------------------

    def _set(self, key: str) -> KeyRecord:
        record = self._cache.record(encoded(key))
        if record.known and record.is_board:
            raise WrongKind(f"key {key} holds a leaderboard", hint="Read it with `top`.")
        return KeyRecord(record.key, record.stored_key) if record.is_count else record

    def _board(self, key: str) -> KeyRecord:
        record = self._cache.record(encoded(key))
        if record.is_board:
            return record
        board = self._cache.board_beside(record.key)
        if record.known and not board.known and not record.is_count:
            raise WrongKind(f"key {key} holds a set", hint="Read it with `members`.")
        return board

    def _keys(self, key: KeyOrKeys, last: Window, schema: str | None) -> list[str]:
        """Returns the keys that are asked for; of a template, those of the last steps."""
        given = _key_list(key)
        if last is None:
            return list(dict.fromkeys(given))
        seconds = seconds_of(last)
        if seconds is None or not 0 < seconds < math.inf:
            raise BadInput(f"a window must be a duration such as '24h' or 3600, not {shown(last)}")
        calendar = self._calendar(schema)
        found: dict[str, None] = {}
        for template in given:
            label_name, unit = _placeholder(template)
            for label in labels_within(unit, seconds, self._cache.now_ms, calendar):
                found[template.replace(f"{{{label_name}}}", label)] = None
                if len(found) > MAX_MERGED_KEYS:
                    raise BadInput(
                        f"the window has more than {MAX_MERGED_KEYS} steps",
                        hint="Ask for a shorter window, or for longer steps.",
                    )
        return list(found)

    def _calendar(self, schema: str | None) -> Calendar:
        schemas, stored = deployed(self._cache.tx)
        timezone = (self._settings or stored).timezone
        own = None if schema is None else schemas.schema(schema).calendar
        if own is None:
            return Calendar(timezone)
        return own if own.timezone else own._replace(timezone=timezone)

    def _bounds(self, since: Moment | None, until: Moment | None) -> TimeBounds:
        low, high = self._moment(since), self._moment(until)
        return TimeBounds(-1 if low is None else low, MAX_EVENT_MS if high is None else high)

    def _moment(self, given: Moment | None) -> int | None:
        """Returns a bound in milliseconds; one before 1970 or after 2109 is no bound."""
        if given is None:
            return None
        if type(given) is int:
            return min(max(given, -1), MAX_EVENT_MS)
        timezone = (self._settings or deployed(self._cache.tx)[1]).timezone
        return to_event_ms(given, timezone)


def _placeholder(template: str) -> tuple[str, str]:
    """Returns the time label of a template, and its unit."""
    # Each step of a window or a series makes a key of it, before the first of them is read.
    if isinstance(template, str) and len(template) > MAX_EVENT_KEY_BYTES:
        raise BadInput(
            f"the template has {len(template)} letters, at most {MAX_EVENT_KEY_BYTES} fit"
        )
    found = _PLACEHOLDER.findall(template) if isinstance(template, str) else ()
    if len(found) != 1 or found[0] not in LABELS:
        known = ", ".join(f"{{{label}}}" for label in LABELS)
        raise BadInput(
            f"the template {shown(template)} needs one time label", hint=f"Use one of {known}."
        )
    return found[0], LABELS[found[0]]


def _check_by(by: SeriesMeasure) -> None:
    if by in _COUNTS or by in _NUMBERS:
        return
    if not isinstance(by, str) or not _PERCENTILE.fullmatch(by) or float(by[1:]) > 100:
        raise BadInput(
            f"a series must be by gross, distinct or size, not by {shown(by)}",
            hint="Of numbers: count, sum, min, max, avg, last, or a percentile such as p95.",
        )


def _checked_operation(op: SetOperation) -> SetOperation:
    if op not in get_args(SetOperation):
        raise BadInput(f"an op must be union, intersection or difference, not {shown(op)}")
    return op


class ReadMeter:
    """Bounds the answers and the processor time of many reads in one call: other large reads wait
    for them."""

    def __init__(self) -> None:
        self._timer = CallTimer("the reads", "Ask for fewer in one call.")
        self._answers = self._bytes = 0

    def count(self, answer: Any) -> None:
        """Counts an answer; raises if together they are too large, or took too long."""
        self._answers += 1
        self._bytes += _answer_bytes(answer)
        if self._bytes > MAX_ANSWER_BYTES and self._answers > 1:
            raise AnswerTooLarge(f"the reads have more than {MAX_ANSWER_BYTES} bytes")
        if self._answers > 1:
            self._timer.check()


def _answer_bytes(answer: Any) -> int:
    """Estimates the bytes of an answer: its texts, and something for each of its items."""
    if isinstance(answer, MemberPage):
        answer = answer.members
    if isinstance(answer, KeyPage):
        return sum(len(each.key) for each in answer.keys) + _ITEM_BYTES * len(answer.keys)
    if not isinstance(answer, list):
        return _ITEM_BYTES
    return sum(
        len(getattr(each, "value", "")) if not isinstance(each, Point) else 0 for each in answer
    ) + _ITEM_BYTES * len(answer)


def _key_list(key: KeyOrKeys) -> Sequence[str]:
    keys = (key,) if isinstance(key, str) else key
    if not isinstance(keys, list | tuple):
        raise BadInput(f"expected a key or a list of keys, not {shown(key)}")
    if not 0 < len(keys) <= MAX_MERGED_KEYS:
        raise BadInput(f"{len(keys)} keys at once, but 1 to {MAX_MERGED_KEYS} can be merged")
    return keys


def encoded(text: str) -> bytes:
    if not isinstance(text, str):
        raise BadInput(f"a key or a value must be text, not {shown(text)}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{text[:40]!r} is not valid Unicode") from None


def _checked_limit(limit: int) -> int:
    if type(limit) is not int or not 0 < limit <= MAX_PAGE_MEMBERS:
        raise BadInput(f"limit must be from 1 to {MAX_PAGE_MEMBERS}, not {limit!r}")
    return limit
