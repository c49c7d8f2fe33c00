"""Metrics as scrapers read them: the Prometheus text format 0.0.4 and OpenMetrics 1.0.0."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from holdfast.call_time import CallTimer
from holdfast.engine.contract import Reader
from holdfast.keys import unpack
from holdfast.limits import MAX_EXPOSED_SERIES
from holdfast.metrics.entity import Scoped, readable, readable_scope
from holdfast.metrics.layout import Keys
from holdfast.metrics.records import Number

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_:]")
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_RESERVED_LABELS: Final = ("scope", "window", "quantile")


# The endings that the names of a family's lines may have, beside none.
_SUFFIXES: Final = {
    "counter": ("_total", "_created"),
    "gauge": (),
    "summary": ("_sum", "_count", "_created"),
    "histogram": ("_bucket", "_sum", "_count"),
}

Labels: TypeAlias = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """One line: the ending of its name after the family's, the labels, the value."""

    suffix: str
    labels: Labels
    value: Number


class Family(NamedTuple):
    """All lines of one metric; a series of a summary has several."""

    name: str
    type: str
    help: str
    series: list[list[Sample]]


def content_type(accept: str) -> str:
    """Returns the format that an `Accept` header asks for."""
    return OPENMETRICS if "application/openmetrics-text" in accept.lower() else TEXT


class ExpositionPage:
    """The families of one answer. A scraper refuses all of it if a name or a series comes twice."""

    def __init__(self) -> None:
        self.families: dict[str, Family] = {}
        self._names: set[str] = set()  # of lines
        self._shown: set[tuple[str, Labels]] = set()
        self._closed: set[str] = set()

    def close_families(self) -> None:
        """Refuses further series for the families that were added so far."""
        self._closed = set(self.families)

    def add(self, family: Family) -> int:
        """Adds the series that fit, and returns how many were left out."""
        name, _, _, series = family
        known = self.families.get(name)
        if known is None:
            names = {name, *[name + suffix for suffix in _SUFFIXES[family.type]]}
            if not names.isdisjoint(self._names):
                return len(series)
            self._names |= names
            known = self.families[name] = family._replace(series=[])
        elif known.type != family.type or name in self._closed:
            return len(series)
        left_out = 0
        for samples in series:
            shown = (name, samples[-1].labels)
            if shown in self._shown or len(known.series) == MAX_EXPOSED_SERIES:
                left_out += 1
                continue
            self._shown.add(shown)
            known.series.append(samples)
        return left_out


# --- series of entities ---------------------------------------------------------------------


# A counter without any increment is shown as 0: a scraper that first sees it at 1 would miss that
# increase. This is done only for a metric that has no entities yet.
NO_ENTITY: Final[Scoped] = ("local", ())


def entities_of(
    reader: Reader, keys: Keys, family: int, name: str, timer: CallTimer
) -> Iterator[tuple[Scoped, bytes]]:
    begin, end = keys.entity_range(family, name)
    for key, value in reader.scan(begin, end):
        timer.check()
        scope, components = unpack(key, len(begin))
        yield (scope, components), value


def by_value(found: Iterable[tuple[Number, Scoped]]) -> list[tuple[Number, Scoped]]:
    return sorted(found, key=lambda pair: (-pair[0], str(pair[1][0]), pair[1][1]))


# --- names, labels and lines ------------------------------------------------------------------


def metric_name(parts: Iterable[str]) -> str:
    """Returns prefix components and name as one name of the format.

    >>> metric_name(["My App", "requests"]), metric_name(["404s", "seen"])
    ('My_App_requests', '_404s_seen')
    """
    name = _NOT_IN_NAMES.sub("_", "_".join(parts))
    return f"_{name}" if name[:1].isdigit() else name


def labels(scope: int | str, components: Sequence[str]) -> Labels:
    """Returns the labels of an entity: alternating names and values, or one label.

    >>> labels("local", ["user_id", "1"])
    (('scope', 'local'), ('user_id', '1'))
    >>> labels(0, ["192.0.2.7"])
    (('scope', 'global'), ('entity', '192.0.2.7'))
    """
    first = ("scope", readable_scope(scope))
    if not components:
        return (first,)
    names, values = components[::2], components[1::2]
    if (
        len(names) == len(values)
        and len(set(names)) == len(names)
        and all(_LABEL_NAME.fullmatch(name) and name not in _RESERVED_LABELS for name in names)
        and not any(name.startswith("__") for name in names)  # those are the scraper's own
    ):
        return (first, *zip(names, values, strict=True))
    return (first, ("entity", readable(*components)))


def lines_of(family: Family, openmetrics: bool) -> Iterator[str]:
    # In the old format the type is that of the lines' own name, and a counter's ends in _total.
    name = family.name
    shown = f"{name}_total" if family.type == "counter" and not openmetrics else name
    if family.help:
        yield f"# HELP {shown} {_escaped_help(family.help, openmetrics)}"
    yield f"# TYPE {shown} {family.type}"
    for samples in family.series:
        for suffix, pairs, value in samples:
            if openmetrics and family.type == "summary" and value < 0:
                continue  # OpenMetrics has none there, and its parsers refuse the whole page
            listed = ",".join([f'{label}="{_escaped(text)}"' for label, text in pairs])
            series = f"{{{listed}}}" if listed else ""
            yield f"{name}{suffix}{series} {number_text(value)}"


def number_text(value: Number) -> str:
    if value in (math.inf, -math.inf):  # the sum of a distribution may have grown so far
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escaped_help(text: str, openmetrics: bool) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if openmetrics else text
