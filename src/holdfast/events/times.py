"""The time of an event, and the labels that it gives to keys: @day, @week and their brothers."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holdfast.error_text import shown
from holdfast.errors import BadInput, InvalidEvent
from holdfast.limits import MAX_EVENT_MS

__all__ = ["LABELS", "labels", "labels_between", "to_event_ms", "zone"]

LABELS: Final = {
    "minute": "minute",
    "hour": "hour",
    "day": "day",
    "daily": "day",
    "week": "week",
    "weekly": "week",
    "month": "month",
    "monthly": "month",
    "year": "year",
    "yearly": "year",
}

_MINUTE_MS: Final = 60_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=64)
def zone(name: str) -> tzinfo:
    """The time zone of that name."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadInput(
            f"unknown time zone {name!r}", hint="Use a name such as 'Europe/Berlin'."
        ) from None


def to_event_ms(given: Any, timezone: str) -> int:
    """Milliseconds since the epoch, from the same or from ISO 8601.

    >>> to_event_ms("2012-08-08T12:00Z", "UTC")
    1344427200000
    """
    moment = _from_iso(given) if isinstance(given, str) else given
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone(timezone))
        ms = (aware - _EPOCH) // timedelta(milliseconds=1)
    elif isinstance(moment, bool) or not isinstance(moment, int | float) or moment != moment:
        raise InvalidEvent(f"the time is {shown(moment)}, expected milliseconds or ISO 8601")
    else:
        ms = int(min(max(moment, -1), MAX_EVENT_MS))
    if not 0 <= ms < MAX_EVENT_MS:
        raise InvalidEvent(
            f"the time {given} is not between 1970 and 2109",
            hint="Times are in milliseconds since the epoch, or in ISO 8601.",
        )
    return ms


def _from_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidEvent(
            f"the time {text[:40]!r} is no ISO 8601",
            hint="Give milliseconds since the epoch, or text such as '2012-08-08T12:00:00Z'.",
        ) from None


def labels(ms: int, timezone: str) -> dict[str, list[bytes]]:
    """All labels of a time, as a scope has them.

    >>> labels(1344451380000, "UTC")["@week"]
    [b'2012-W32']
    """
    return _labels_of_minute(ms // _MINUTE_MS, timezone)


@lru_cache(maxsize=4_096)
def _labels_of_minute(minute: int, timezone: str) -> dict[str, list[bytes]]:
    moment = (_EPOCH + timedelta(minutes=minute)).astimezone(zone(timezone))
    return {f"@{label}": [_format(moment, unit).encode()] for label, unit in LABELS.items()}


def _format(moment: datetime, unit: str) -> str:
    if unit == "week":
        year, week, _ = moment.isocalendar()
        return f"{year:04}-W{week:02}"
    formats = {
        "minute": "%Y-%m-%dT%H-%M",
        "hour": "%Y-%m-%dT%H",
        "day": "%Y-%m-%d",
        "month": "%Y-%m",
        "year": "%Y",
    }
    return moment.strftime(formats[unit])


def labels_between(
    unit: str, begin: str | int | datetime, end: str | int | datetime, timezone: str
) -> Iterator[str]:
    """The labels of every step from `begin` to `end`, both included.

    >>> list(labels_between("month", "2012-11-30", "2013-01-01", "UTC"))
    ['2012-11', '2012-12', '2013-01']
    """
    step = _begin_of(unit, _moment(begin, timezone))
    last = _format(_moment(end, timezone), unit)
    label = _format(step, unit)
    while label <= last:
        yield label
        try:
            step = _next(unit, step)
        except (OverflowError, ValueError):
            return  # the calendar ends with the year 9999
        label = _format(step, unit)


def _moment(given: str | int | datetime, timezone: str) -> datetime:
    """A point in time, in wall-clock terms of the zone: steps of a day must not slip by an hour
    where clocks change."""
    if isinstance(given, str):
        local = _from_label(given.strip())
        if local is not None:
            return local
    ms = to_event_ms(given, timezone)
    moment = (_EPOCH + timedelta(milliseconds=ms)).astimezone(zone(timezone))
    return moment.replace(tzinfo=None)


def _from_label(text: str) -> datetime | None:
    """A time from a label, such as 2012, 2012-08, 2012-W32 or 2012-08-08T18-43."""
    try:
        if len(text) == 8 and text[4:6] == "-W":
            return datetime.combine(
                date.fromisocalendar(int(text[:4]), int(text[6:]), 1), datetime.min.time()
            )
        for layout in ("%Y-%m-%d", "%Y-%m", "%Y", "%Y-%m-%dT%H", "%Y-%m-%dT%H-%M"):
            if len(text) == len(datetime(2000, 1, 1).strftime(layout)):
                return datetime.strptime(text, layout)
    except ValueError:
        pass
    return None


def _begin_of(unit: str, moment: datetime) -> datetime:
    if unit == "minute":
        return moment.replace(second=0, microsecond=0)
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = datetime(moment.year, moment.month, moment.day)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    return day.replace(month=1, day=1) if unit == "year" else day


def _next(unit: str, step: datetime) -> datetime:
    if unit == "month":
        return (step + timedelta(days=31)).replace(day=1)
    if unit == "year":
        return step.replace(year=step.year + 1)
    lengths = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
    return step + lengths.get(unit, timedelta(days=7))
