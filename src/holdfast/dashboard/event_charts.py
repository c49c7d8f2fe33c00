"""Counters of keys that have a time label, `visitors:2026-11-17`, as a chart over time."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from holdfast.dashboard.charts import Chart, Line
from holdfast.dashboard.page_request import PageRequest
from holdfast.errors import HoldfastError


class Label(NamedTuple):
    """How a time label is written, and how many of them a chart shows."""

    name: str
    pattern: re.Pattern[str]
    days: float  # the length of one step
    steps: int


_LABELS: Final = (
    Label("hour", re.compile(r"\d{4}-\d\d-\d\dT\d\d"), 1 / 24, 48),
    Label("day", re.compile(r"\d{4}-\d\d-\d\d"), 1, 60),
    Label("week", re.compile(r"\d{4}-W\d\d"), 7, 26),
    Label("month", re.compile(r"\d{4}-\d\d"), 30.4, 24),
)


def template_of(key: str) -> tuple[str, Label] | None:
    """Returns the key with its time label in braces.

    >>> template_of("visitors:2026-11-17")[0], template_of("visitors:ann")
    ('visitors:{day}', None)
    """
    for label in _LABELS:
        for part in key.split(":"):
            if label.pattern.fullmatch(part):
                return key.replace(part, f"{{{label.name}}}", 1), label
    return None


async def chart_of(request: PageRequest, key: str, *, has_numbers: bool) -> Chart | None:
    """Returns the counters of the last steps; None if the key has no time label."""
    found = template_of(key)
    if found is None or "{" in key:
        return None
    template, label = found
    now = datetime.fromtimestamp(request.now, UTC)
    begin = now - timedelta(days=label.days * (label.steps - 1))
    lines = []
    times: list[float] = []
    wanted = ("avg", "p95") if has_numbers else ("gross", "distinct")
    for by, tone in zip(wanted, ("accent", "two"), strict=True):
        try:
            points = await request.call(
                "events.series",
                template=template,
                by=by,
                to=int(now.timestamp() * 1000),
                **{"from": int(begin.timestamp() * 1000)},
            )
        except HoldfastError:  # the label is part of a name, not a time
            return None
        times = [begin.timestamp() + at * label.days * 86400 for at in range(len(points))]
        lines.append(Line(by, [point.value for point in points], tone))
    return Chart(f"{template}, one point for each {label.name}", times, lines)
