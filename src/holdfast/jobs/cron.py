"""Cron expressions: when the next run is, in a time zone with its daylight saving.

Five fields, minute hour day-of-month month day-of-week, or six with seconds in front. A field is
`*`, a number, a range `1-5`, a list `1,15`, each with a step `*/10`, or names of months and days.
Day-of-week 0 and 7 are Sunday. As in every cron: when both day fields are restricted, a day that
fits either of them counts. `@hourly` and its like work too.

A local time that daylight saving skips runs at the next valid minute; one that comes twice runs the
first time.
"""

from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holdfast.bounded_cache import bounded_cache
from holdfast.errors import BadArgument
from holdfast.limits import MAX_CRON_CHARS, MAX_CRON_YEARS

_MONTHS: Final = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
_DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_RANGES: Final = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_FIELDS: Final = ("second", "minute", "hour", "day of month", "month", "day of week")


class Cron:
    """A parsed expression in a time zone."""

    __slots__ = (
        "_any_day",
        "_any_weekday",
        "_days",
        "_hours",
        "_minutes",
        "_months",
        "_seconds",
        "_weekdays",
        "_zone",
    )

    def __init__(self, expression: str, zone: str) -> None:
        if len(expression) > MAX_CRON_CHARS:
            raise _bad(expression, f"{len(expression)} characters, at most {MAX_CRON_CHARS} fit")
        fields = _NAMED.get(expression.strip().lower(), expression).split()
        if len(fields) == 5:
            fields.insert(0, "0")
        if len(fields) != 6:
            raise _bad(expression, f"{len(fields)} fields, 5 or 6 are expected")
        sets = [_parse(expression, at, field) for at, field in enumerate(fields)]
        seconds, minutes, hours, self._days, self._months, weekdays = sets
        self._hours, self._minutes, self._seconds = sorted(hours), sorted(minutes), sorted(seconds)
        self._weekdays = {day % 7 for day in weekdays}
        self._any_day = fields[3].startswith("*")
        self._any_weekday = fields[5].startswith("*")
        try:
            self._zone = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise BadArgument(
                f"the time zone {zone!r:.100} is unknown", hint="Use a name such as Europe/Berlin."
            ) from None

    def next_after(self, time: float) -> float:
        """Returns the first run after `time`, in seconds since the epoch."""
        local = datetime.fromtimestamp(time, self._zone).replace(tzinfo=None)
        for candidate in self._local_times(local):
            moment = self._moment(candidate)
            if moment > time:
                return moment
        raise BadArgument(
            f"the cron expression has no run within {MAX_CRON_YEARS} years",
            hint="Check its day of month and month.",
        )

    def newest_runs(self, first: float, until: float, count: int) -> list[float]:
        """Returns the newest `count` runs from `first` to `until`, in order.

        Looks back over a span that doubles until it holds enough runs, so the cost depends on
        `count`, not on the time that was missed.
        """
        span = 1.0 * count
        while True:
            begin = max(first, until - span)
            runs = [first] if begin == first else []
            run = self.next_after(begin)
            while run <= until:
                runs.append(run)
                run = self.next_after(run)
            if len(runs) >= count or begin == first:
                return runs[-count:]
            span *= 2

    def _local_times(self, local: datetime) -> Iterator[datetime]:
        """Yields the local times that match, beginning with `local`."""
        day = local.replace(hour=0, minute=0, second=0, microsecond=0)
        last = day.year + MAX_CRON_YEARS
        while day.year <= last:
            if day.month not in self._months:
                day = (day.replace(day=28) + timedelta(days=4)).replace(day=1)
                continue
            if self._fits(day):
                yield from self._times_of(day, local)
            day += timedelta(days=1)

    def _times_of(self, day: datetime, local: datetime) -> Iterator[datetime]:
        """Yields the times of `day` that match, beginning with `local`. There may be 86,400."""
        begin = (local - day).total_seconds()
        for hour in _since(self._hours, begin // 3600):
            for minute in _since(self._minutes, (begin - hour * 3600) // 60):
                time = hour * 3600 + minute * 60
                for second in _since(self._seconds, begin - time):
                    yield day + timedelta(seconds=time + second)

    def _fits(self, day: datetime) -> bool:
        by_day = day.day in self._days
        by_weekday = day.isoweekday() % 7 in self._weekdays
        if self._any_day or self._any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday

    def _moment(self, local: datetime) -> float:
        """Returns the first moment at which clocks show `local`, or else the next valid minute."""
        moment = local.replace(tzinfo=self._zone).timestamp()
        if datetime.fromtimestamp(moment, self._zone).replace(tzinfo=None) == local:
            return moment
        # Skipped by daylight saving: with the offset from before the gap, `local` falls as long
        # after the gap as it is inside it.
        before = local.replace(tzinfo=self._zone, fold=0).utcoffset()
        after = local.replace(tzinfo=self._zone, fold=1).utcoffset()
        assert before is not None
        assert after is not None
        earliest = (local - after).replace(tzinfo=UTC)
        latest = (local - before).replace(tzinfo=UTC)
        while latest - earliest > timedelta(seconds=1):
            middle = earliest + (latest - earliest) / 2
            if middle.astimezone(self._zone).utcoffset() == after:
                latest = middle
            else:
                earliest = middle
        return float(-(-int(latest.timestamp()) // 60) * 60)


def _since(numbers: list[int], first: float) -> list[int]:
    """Returns those of the sorted numbers that are not below `first`."""
    return numbers[bisect_left(numbers, first) :]


@bounded_cache(256)
def parsed(expression: str, zone: str) -> Cron:
    return Cron(expression, zone)


def _parse(expression: str, at: int, field: str) -> set[int]:
    """Returns the numbers that one field matches."""
    numbers: set[int] = set()
    for part in field.lower().split(","):
        span, _, step_text = part.partition("/")
        low, high = _RANGES[at]
        if span != "*":
            first, _, last = span.partition("-")
            begin = _number(expression, at, first)
            # `5/15` counts on from 5, `5` alone is only itself
            end = _number(expression, at, last) if last else high if step_text else begin
            if not low <= begin <= end <= high:
                raise _bad(expression, f"{part} is not a valid {_FIELDS[at]} from {low} to {high}")
            low, high = begin, end
        step = int(step_text) if step_text.isdecimal() else 0 if "/" in part else 1
        if step < 1:
            raise _bad(expression, f"the step of {part} is not a number above 0")
        numbers.update(range(low, high + 1, step))
    return numbers


def _number(expression: str, at: int, text: str) -> int:
    if text.isdecimal():
        return int(text)
    names = _MONTHS if at == 4 else _DAYS if at == 5 else []
    if text in names:
        return names.index(text) + (1 if at == 4 else 0)
    raise _bad(expression, f"{text or 'nothing'} is not a valid {_FIELDS[at]}")


def _bad(expression: str, reason: str) -> BadArgument:
    return BadArgument(
        f"{expression!r:.200} is not a cron expression",
        hint=f"{reason[0].upper()}{reason[1:]}.",
    )
