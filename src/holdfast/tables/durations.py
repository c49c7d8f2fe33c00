"""Durations in a schema: a number of seconds, or a text that names its unit.

duration = number | "number unit"        86400, "1 day", "86400 s", "86400000 ms", "1.5 h"
unit     = ms | s | min | h | d | w, or its name in full, singular or plural
"""

import re
from typing import Any, Final

from holdfast.error_text import did_you_mean, shown
from holdfast.limits import MAX_DURATION_SECONDS, MAX_UNITLESS_SECONDS

# Possessive quantifiers keep the match linear in the length of the text.
_DURATION: Final = re.compile(r"([0-9]{1,15}+(?:\.[0-9]{1,9}+)?+) ?+([A-Za-z]{1,12}+)", re.ASCII)
_MILLISECONDS: Final = {
    "ms": 1, "millisecond": 1, "s": 1_000, "sec": 1_000, "second": 1_000, "min": 60_000,
    "minute": 60_000, "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000,
    "w": 604_800_000, "week": 604_800_000,
}  # fmt: skip
UNITS: Final = "ms, s, min, h, day or week"


def normalised(value: Any) -> Any:
    """Returns a duration as it is stored: seconds, or a text if a number would be ambiguous.

    Raises ValueError for a text that is not a duration; callers check values of other types.

    >>> normalised("1 day"), normalised("86400000 ms"), normalised("1.5 s"), normalised("400 days")
    (86400, 86400, 1.5, '34560000 s')
    """
    if not isinstance(value, str):
        return value
    seconds = _parse(value)
    return f"{seconds} s" if seconds > MAX_UNITLESS_SECONDS else seconds


def seconds_of(value: Any) -> float:
    """Returns the seconds of a stored duration."""
    return _parse(value) if isinstance(value, str) else value


def is_ambiguous(value: Any) -> bool:
    """Returns whether a number without a unit is so large that milliseconds may be meant."""
    return not isinstance(value, str) and value > MAX_UNITLESS_SECONDS


def _parse(text: str) -> float:
    match = _DURATION.fullmatch(text.strip() if len(text) < 100 else text)
    if match is None:
        raise ValueError(f'a text such as "1 day" or "86400 s" is a duration, not {shown(text)}')
    name = match[2].lower()
    singular = name if name in _MILLISECONDS else name.removesuffix("s")
    if singular not in _MILLISECONDS:
        near = did_you_mean(name, _MILLISECONDS)
        raise ValueError(f"the unit {shown(match[2])} is not known{near}: use {UNITS}")
    milliseconds = float(match[1]) * _MILLISECONDS[singular]
    if milliseconds > MAX_DURATION_SECONDS * 1000:
        raise ValueError(f"a duration has at most {MAX_DURATION_SECONDS} seconds")
    seconds = milliseconds / 1000
    return int(seconds) if seconds.is_integer() else seconds
