"""Histograms of wait and run times: percentiles, and bars that people can read."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from holdfast.dashboard.templates import duration
from holdfast.jobs import Times

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Where the 148 buckets of `Times.histogram` begin, in seconds.
BEGINS: Final = (
    *range(60),
    *(minute * _MINUTE for minute in range(1, 60)),
    *(hour * _HOUR for hour in range(1, 24)),
    *(day * _DAY for day in range(1, 7)),
)
# The bars: where each ends, in seconds, and its label.
_GROUPS: Final = (
    (1, "< 1 s"), (5, "1-5 s"), (15, "5-15 s"), (60, "15-60 s"), (300, "1-5 min"),
    (900, "5-15 min"), (_HOUR, "15-60 min"), (6 * _HOUR, "1-6 h"), (_DAY, "6-24 h"),
    (float("inf"), "> 1 d"),
)  # fmt: skip


class Bar(NamedTuple):
    """One bar: its name, how many, and its share of the highest in percent."""

    label: str
    number: int
    percent: float


def bars(histogram: Sequence[int]) -> list[Bar]:
    """Returns the bars of a histogram.

    >>> [bar.number for bar in bars([3, 1, 1])][:3]
    [3, 2, 0]
    """
    numbers = [0] * len(_GROUPS)
    at = 0
    for begin, number in zip(BEGINS, histogram, strict=False):
        while begin >= _GROUPS[at][0]:
            at += 1
        numbers[at] += number
    most = max(numbers, default=0) or 1
    return [
        Bar(name, number, 100 * number / most)
        for (_, name), number in zip(_GROUPS, numbers, strict=True)
    ]


def percentile(times: Times, share: float) -> float | None:
    """Returns the beginning of the bucket that `share` of all times do not exceed, in seconds.

    >>> percentile(Times(count=4, mean=1.0, std=0.0, histogram=(1, 2, 1)), 0.5)
    1.0
    """
    wanted = share * sum(times.histogram)
    seen = 0
    for begin, number in zip(BEGINS, times.histogram, strict=False):
        seen += number
        if number and seen >= wanted:
            return float(begin)
    return None


def percentile_text(times: Times, share: float) -> str:
    """Returns a percentile as text, as precisely as its bucket allows."""
    found = percentile(times, share)
    return "< 1 s" if found == 0 else duration(found)
