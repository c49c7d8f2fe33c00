"""Charts: sparklines as SVG, and the data of charts that the script draws."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup

NONE = "\u2013"  # shown where a value is missing
_WIDTH, _HEIGHT, _MARGIN = 120, 28, 2


class Line(NamedTuple):
    """One line of a chart; `tone` is `accent`, `bad`, `warn` or `dim`."""

    label: str
    values: Sequence[float | None]
    tone: str = "accent"


class Chart(NamedTuple):
    """A chart over time; `unit` follows each value."""

    label: str
    times: Sequence[float]  # seconds since 1970
    lines: Sequence[Line]
    unit: str = ""

    @property
    def highest(self) -> float:
        found = [value for line in self.lines for value in line.values if value is not None]
        return max(found, default=0.0)

    def points(self, line: Line, width: int, height: int) -> str:
        """Returns a line as the points of a `<polyline>`."""
        return points(line.values, width, height, highest=self.highest)


def points(
    values: Sequence[float | None], width: int, height: int, *, highest: float | None = None
) -> str:
    """Returns the points of a line; where a value is missing, there is no point.

    >>> points([0, 1, 2], 10, 10), points([None, 1, 2], 10, 10)
    ('0,8 5,5 10,2', '5,5 10,2')
    """
    most = highest or max((value for value in values if value is not None), default=0) or 1
    step = width / max(1, len(values) - 1)
    return " ".join(
        f"{at * step:.4g},{height - _MARGIN - value / most * (height - 2 * _MARGIN):.4g}"
        for at, value in enumerate(values)
        if value is not None
    )


def sparkline(values: Sequence[float | None], label: str, tone: str = "") -> Markup:
    """Returns a small line without axes; `label` says what it shows."""
    if not any(values):
        return Markup('<span class="none" title="{}">{}</span>').format(f"{label}: nothing", NONE)
    return Markup(
        '<svg class="spark {}" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<polyline points="{}"/></svg>'
    ).format(tone, _WIDTH, _HEIGHT, label, points(values, _WIDTH, _HEIGHT))


def chart_data(chart: Chart) -> str:
    """Returns a chart as JSON, for the attribute that the script reads."""
    data: dict[str, Any] = {
        "unit": chart.unit,
        "times": list(chart.times),
        "lines": [
            {"label": line.label, "tone": line.tone, "values": list(line.values)}
            for line in chart.lines
        ],
    }
    return msgspec.json.encode(data).decode()
