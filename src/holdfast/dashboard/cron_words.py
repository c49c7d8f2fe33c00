"""Cron expressions in words: "at 06:30 on Monday to Friday"."""

from typing import Final

_MACROS: Final = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}  # fmt: skip
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS: Final = (
    "", "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def in_words(cron: str, zone: str = "UTC") -> str:
    """Returns when an expression runs; the expression itself if it has no simple words.

    >>> in_words("*/5 * * * *"), in_words("30 6 * * 1-5", "Europe/Paris")
    ('every 5 minutes', 'at 06:30 on Monday to Friday, Europe/Paris')
    >>> in_words("0 0 1 1 *"), in_words("15 * * * *"), in_words("0 9,17 * * *")
    ('at 00:00 on day 1 in January, UTC', 'at minute 15 of every hour', 'at 09:00 and 17:00, UTC')
    """
    fields = _MACROS.get(cron.strip().lower(), cron).split()
    if len(fields) != 5:
        return cron
    minute, hour, day, month, weekday = fields
    days = "".join(
        [
            "" if day in ("*", "?") else f" on day {_listed(day, ())}",
            "" if month == "*" else f" in {_listed(month, _MONTHS)}",
            "" if weekday in ("*", "?") else f" on {_listed(weekday, _DAYS)}",
        ]
    )
    time = _time(minute, hour)
    if time is None:
        return cron
    return f"{time}{days}, {zone or 'UTC'}" if ":" in time else f"{time}{days}"


def _time(minute: str, hour: str) -> str | None:
    if minute.startswith("*/") and hour == "*":
        return f"every {minute[2:]} minutes"
    if minute == "*" and hour == "*":
        return "every minute"
    if not minute.isdigit():
        return None
    if hour == "*":
        return f"at minute {minute} of every hour"
    if hour.startswith("*/"):
        return f"at minute {minute} of every {hour[2:]} hours"
    hours = hour.split(",")
    if not all(each.isdigit() for each in hours):
        return None
    return "at " + _joined([f"{int(each):02}:{int(minute):02}" for each in hours])


def _listed(field: str, names: tuple[str, ...]) -> str:
    ends = [[_name(end, names) for end in part.split("-")] for part in field.split(",")]
    return _joined([" to ".join(each) for each in ends])


def _name(text: str, names: tuple[str, ...]) -> str:
    if text.isdigit() and names:
        return names[int(text) % 7 if len(names) == 7 else min(int(text), 12)]
    known = {name[:3].lower(): name for name in names if name}
    return known.get(text[:3].lower(), text)


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
