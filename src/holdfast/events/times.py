"""The time of an event, and its labels in keys: @day, @week and so on."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holdfast.error_text import shown
from holdfast.errors import BadInput, InvalidEvent
from holdfast.limits import MAX_EVENT_MS, MAX_LABELLED_MINUTES

__all__ = [
    "LABELS",
    "WEEKDAYS",
    "Calendar",
    "labels",
    "labels_between",
    "labels_within",
    "seconds_of",
    "to_event_ms",
    "zone",
]

LABELS: Final = {
    "minute": "minute",
    "hour": "hour",
    "hourly": "hour",
    "day": "day",
    "daily": "day",
    "week": "week",
    "weekly": "week",
    "month": "month",
    "monthly": "month",
    "quarter": "quarter",
    "quarterly": "quarter",
    "year": "year",
    "yearly": "year",
}

WEEKDAYS: Final = (
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
)

_MINUTE_MS: Final = 60_000
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Calendar(NamedTuple):
    """The way in which the labels of times are written."""

    timezone: str = "UTC"
    first_day: int = 0  # of a week, 0 for Monday
    style: Literal["iso", "flux"] = "iso"


def seconds_of(given: Any) -> float | None:
    """Returns a duration in seconds, from seconds or text such as "90d"; None if it is neither.

    >>> seconds_of("36h"), seconds_of(90), seconds_of("soon")
    (129600.0, 90, None)
    """
    if isinstance(given, int | float) and not isinstance(given, bool):
        return given
    found = _DURATION.fullmatch(given.strip()) if isinstance(given, str) else None
    return float(found[1]) * _UNIT_SECONDS[found[2]] if found else None


@lru_cache(maxsize=64)
def zone(name: str) -> tzinfo:
    """Returns the time zone of that name."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadInput(
            f"unknown time zone {name!r}", hint="Use a name such as 'Europe/Berlin'."
        ) from None


def to_event_ms(given: Any, timezone: str) -> int:
    """Returns milliseconds since the epoch, from the same or from ISO 8601.

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
            f"the time {text[:40]!r} is not ISO 8601",
            hint="Give milliseconds since the epoch, or text such as '2012-08-08T12:00:00Z'.",
        ) from None


def labels(ms: int, calendar: Calendar) -> dict[str, list[bytes]]:
    """Returns all labels of a time, as a scope has them.

    >>> labels(1344451380000, Calendar())["@week"]
    [b'2012-W32']
    """
    return _labels_of_minute(ms // _MINUTE_MS, calendar)


@lru_cache(maxsize=MAX_LABELLED_MINUTES)
def _labels_of_minute(minute: int, calendar: Calendar) -> dict[str, list[bytes]]:
    moment = (_EPOCH + timedelta(minutes=minute)).astimezone(zone(calendar.timezone))
    found = {
        f"@{label}": [_format(moment, unit, calendar.first_day).encode()]
        for label, unit in LABELS.items()
    }
    if calendar.style == "flux":
        for unit, form in _FLUX_FORMATS.items():
            label = [moment.strftime(form).encode()]
            found[f"@{unit}"] = found[f"@{_FLUX_NAMES[unit]}"] = label
    return found


_FLUX_FORMATS: Final = {"day": "daily-%d-%m-%y", "week": "weekly-%U-%y", "month": "monthly-%m-%y"}
_FLUX_NAMES: Final = {"day": "daily", "week": "weekly", "month": "monthly"}


def _format(moment: datetime, unit: str, first_day: int) -> str:
    if unit == "week":
        # The ISO week of the Monday that a week with another first day has.
        year, week, _ = (moment + timedelta(days=-first_day % 7)).isocalendar()
        return f"{year:04}-W{week:02}"
    if unit == "quarter":
        return f"{moment.year:04}-Q{(moment.month + 2) // 3}"
    formats = {
        "minute": "%Y-%m-%dT%H-%M",
        "hour": "%Y-%m-%dT%H",
        "day": "%Y-%m-%d",
        "month": "%Y-%m",
        "year": "%Y",
    }
    return moment.strftime(formats[unit])


def labels_between(
    unit: str, begin: str | int | datetime, end: str | int | datetime, calendar: Calendar
) -> Iterator[str]:
    """Yields the labels of every step from `begin` to `end`, both included, each label once.

    >>> list(labels_between("month", "2012-11-30", "2013-01-01", Calendar()))
    ['2012-11', '2012-12', '2013-01']
    """
    if unit not in _CLOCK_STEPS:
        yield from _dates_between(unit, begin, end, calendar)
        return
    seen = set()
    for label in _times_between(unit, begin, end, calendar):
        if label not in seen:
            seen.add(label)
            yield label


def labels_within(unit: str, seconds: float, now_ms: int, calendar: Calendar) -> Iterator[str]:
    """Yields the labels of the steps that began within the last `seconds`, and the present one.

    >>> list(labels_within("day", 3 * 86400, 1344451380000, Calendar()))
    ['2012-08-06', '2012-08-07', '2012-08-08']
    """
    begin_ms = max(0, now_ms - round(seconds * 1_000))
    between = _times_between if unit in _CLOCK_STEPS else _dates_between
    found = between(unit, begin_ms, now_ms, calendar)
    under_way = next(found, None)  # it began before the window, and may still last
    label = None
    for label in found:
        yield label
    if label is None and under_way is not None:
        yield under_way


def _dates_between(
    unit: str, begin: str | int | datetime, end: str | int | datetime, calendar: Calendar
) -> Iterator[str]:
    """Yields the labels of days, weeks and so on, as the wall clock of the zone shows them.

    Steps of a day must not slip by an hour where clocks change.
    """
    first_day = calendar.first_day
    step = _begin_of(unit, _moment(begin, calendar, fold=0).replace(tzinfo=None), first_day)
    last = _format(_moment(end, calendar, fold=1), unit, first_day)
    label = _format(step, unit, first_day)
    while label <= last:
        yield label
        try:
            step = _next(unit, step)
        except (OverflowError, ValueError):
            return  # the calendar ends with the year 9999
        label = _format(step, unit, first_day)


# Minutes by which all labels of a unit are met: offsets of time zones are whole quarters of an
# hour, also where clocks change.
_CLOCK_STEPS: Final = {"minute": 1, "hour": 15}


def _times_between(
    unit: str, begin: str | int | datetime, end: str | int | datetime, calendar: Calendar
) -> Iterator[str]:
    """Yields the labels of minutes or hours as they pass.

    Where clocks are set forward some labels never come; where they are set back, some come twice.
    """
    local, minutes = zone(calendar.timezone), _CLOCK_STEPS[unit]
    moment = _moment(begin, calendar, fold=0).astimezone(UTC)
    moment = moment.replace(minute=moment.minute - moment.minute % minutes, second=0, microsecond=0)
    last = _moment(end, calendar, fold=1).astimezone(UTC)
    label = ""
    while moment <= last:
        found = _format(moment.astimezone(local), unit, calendar.first_day)
        if found != label:
            yield found
            label = found
        try:
            moment += timedelta(minutes=minutes)
        except OverflowError:
            return  # the calendar ends with the year 9999


def _moment(given: str | int | datetime, calendar: Calendar, *, fold: int) -> datetime:
    """Returns a point in time in the zone; `fold` tells which of two that the clock shows alike."""
    local = zone(calendar.timezone)
    if isinstance(given, str):
        labelled = _from_label(given.strip())
        if labelled is not None:
            return labelled.replace(tzinfo=local, fold=fold)
    ms = to_event_ms(given, calendar.timezone)
    return (_EPOCH + timedelta(milliseconds=ms)).astimezone(local)


def _from_label(text: str) -> datetime | None:
    """Returns the time of a label, such as 2012, 2012-08, 2012-W32 or 2012-08-08T18-43."""
    try:
        if len(text) == 7 and text[4:6] == "-Q" and text[6] in "1234":
            return datetime(int(text[:4]), 3 * int(text[6]) - 2, 1)
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


def _begin_of(unit: str, moment: datetime, first_day: int) -> datetime:
    day = datetime(moment.year, moment.month, moment.day)
    if unit == "week":
        return day - timedelta(days=(day.weekday() - first_day) % 7)
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(month=day.month - (day.month - 1) % 3, day=1)
    return day.replace(month=1, day=1) if unit == "year" else day


def _next(unit: str, step: datetime) -> datetime:
    if unit == "month":
        return (step + timedelta(days=31)).replace(day=1)
    if unit == "quarter":
        return (step + timedelta(days=93)).replace(day=1)
    if unit == "year":
        return step.replace(year=step.year + 1)
    return step + timedelta(days=1 if unit == "day" else 7)
