"""Metrics as scrapers read them: the Prometheus text format 0.0.4 and OpenMetrics 1.0.0."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from holdfast.engine.contract import Reader, read_counter
from holdfast.keys import unpack
from holdfast.limits import MAX_EXPOSED_SERIES
from holdfast.metrics import distributions, gauges, registry, sketches
from holdfast.metrics.buckets import scan_sequence
from holdfast.metrics.entity import readable, readable_scope
from holdfast.metrics.layout import LAST_SAMPLES, LIFETIMES, Keys
from holdfast.metrics.records import Metric, Number, SketchCell
from holdfast.metrics.rounding import scaled
from holdfast.metrics.top import Scoped, all_totals
from holdfast.metrics.totals import TimeRange, first_visible, touching

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LEFT_OUT: Final = "holdfast_series_left_out"

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_:]")
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_TAKEN_LABELS: Final = ("scope", "window", "quantile")


# What the names of a family's lines may end in, beside the name itself.
_SUFFIXES: Final = {
    "counter": ("_total", "_created"),
    "gauge": (),
    "summary": ("_sum", "_count", "_created"),
}

Labels: TypeAlias = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """One line: what follows the family's name, the labels, the value."""

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
    """The format that an `Accept` header asks for."""
    return OPENMETRICS if "application/openmetrics-text" in accept.lower() else TEXT


def exposition(
    reader: Reader,
    now: float,
    *,
    prefix: tuple[str, ...] | None = None,
    own: Sequence[Family] = (),
    openmetrics: bool = False,
) -> str:
    """The metrics whose spec has `expose`, of one prefix or of all. Reads their series.

    `own` comes first, and takes its names before the metrics do.
    """
    page = _Page()
    left_out: dict[str, int] = {}
    for family in own:
        page.add(family)
    page.close_families()
    for keys, name, stored in registry.every_spec(reader):
        if not stored.metric.expose or prefix not in (None, keys.prefix):
            continue
        family = _family(reader, keys, name, stored.metric, now)
        missing = page.add(family._replace(help=family.help or _default_help(keys, name, family)))
        if missing:
            left_out[readable(*keys.prefix, name)] = missing
    if left_out:
        page.add(_left_out(left_out))
    lines = [line for family in page.families.values() for line in _lines(family, openmetrics)]
    return "\n".join([*lines, "# EOF", ""] if openmetrics else [*lines, ""])


class _Page:
    """The families of one answer. A scraper refuses all of it if a name or a series comes twice."""

    def __init__(self) -> None:
        self.families: dict[str, Family] = {}
        self._names: set[str] = set()  # of lines
        self._shown: set[tuple[str, Labels]] = set()
        self._closed: set[str] = set()

    def close_families(self) -> None:
        """Takes no further series into the families that are there."""
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


# --- families ---------------------------------------------------------------------------------


def _family(reader: Reader, keys: Keys, name: str, metric: Metric, now: float) -> Family:
    stem = metric_name((*keys.prefix, name))
    if metric.type == "gauge":
        series = _gauges(reader, keys, name, metric, now)
        return Family(stem, "gauge", metric.help, series)
    if metric.type == "distribution":
        return Family(stem, "summary", metric.help, _summaries(reader, keys, name, metric, now))
    if metric.lifetime:
        return Family(stem, "counter", metric.help, _lifetimes(reader, keys, name, metric))
    return Family(
        f"{stem}_per_second", "gauge", metric.help, _rates(reader, keys, name, metric, now)
    )


def _default_help(keys: Keys, name: str, family: Family) -> str:
    """What a metric is, where its spec has no `help`."""
    said = "rate of a counter" if family.name.endswith("_per_second") else family.type
    return f"The {said} {name!r} under the prefix {readable(*keys.prefix)!r}."


# What is counted but was not counted yet is 0: a scraper that sees a counter for the first time
# when it is 1 already misses that it has grown. Only a metric without any entity is shown so.
_NO_ENTITY: Final[Scoped] = ("local", ())


def _lifetimes(reader: Reader, keys: Keys, name: str, metric: Metric) -> list[list[Sample]]:
    found = [
        (scaled(read_counter(value), metric.resolution), scoped)
        for scoped, value in _entities(reader, keys, LIFETIMES, name)
    ]
    found = found or [(scaled(0, metric.resolution), _NO_ENTITY)]
    return [[Sample("_total", labels(*scoped), value)] for value, scoped in _highest(found)]


def _rates(reader: Reader, keys: Keys, name: str, metric: Metric, now: float) -> list[list[Sample]]:
    window = metric.sequences[0].soft_expiry
    asked = TimeRange(max(now - window, 0.0), now)
    totals = all_totals(reader, keys, name, metric, asked, now)
    found = [(total / window, scoped) for scoped, total in totals.items()] or [(0.0, _NO_ENTITY)]
    return [
        [Sample("", (*labels(*scoped), ("window", _number(window))), value)]
        for value, scoped in _highest(found)
    ]


def _gauges(
    reader: Reader, keys: Keys, name: str, metric: Metric, now: float
) -> list[list[Sample]]:
    found = []
    for scoped, value in _entities(reader, keys, LAST_SAMPLES, name):
        last = gauges.decode_last(value)
        if gauges.is_visible(metric, last, now):
            found.append((scaled(last.units, metric.resolution), scoped))
    return [[Sample("", labels(*scoped), value)] for value, scoped in _highest(found)]


def _summaries(
    reader: Reader, keys: Keys, name: str, metric: Metric, now: float
) -> list[list[Sample]]:
    cells = _window_cells(reader, keys, name, metric, now)
    lifetimes = {
        scoped: distributions.read_lifetime(value)
        for scoped, value in _entities(reader, keys, LIFETIMES, name)
    }
    if not lifetimes:
        base = labels(*_NO_ENTITY)
        return [[Sample("_sum", base, 0), Sample("_count", base, 0)]]
    series = []
    for _, scoped in _highest([(life.count, scoped) for scoped, life in lifetimes.items()]):
        merged = sketches.merged(cells.get(scoped, ()), metric.bins)
        base = labels(*scoped)
        samples = []
        for q in distributions.QUANTILES:
            value = sketches.quantile(merged, q, metric.accuracy)
            if value is not None:
                samples.append(Sample("", (*base, ("quantile", _number(q))), value))
        samples.append(Sample("_sum", base, lifetimes[scoped].sum))
        samples.append(Sample("_count", base, lifetimes[scoped].count))
        series.append(samples)
    return series


def _window_cells(
    reader: Reader, keys: Keys, name: str, metric: Metric, now: float
) -> dict[Scoped, list[SketchCell]]:
    """The sketches of the first sequence's soft expiry, by entity."""
    sequence = metric.sequences[0]
    asked = TimeRange(max(now - sequence.soft_expiry, 0.0), now)
    first, last = touching(sequence, asked, now)
    first = max(first, first_visible(sequence, now))
    found: dict[Scoped, list[SketchCell]] = {}
    stem = keys.sequence(name, sequence.name)
    for _, scope, components, value in scan_sequence(reader, stem, first, last):
        found.setdefault((scope, components), []).append(distributions.decode_cell(value))
    return found


def _left_out(left_out: dict[str, int]) -> Family:
    series = [[Sample("", (("metric", name),), count)] for name, count in left_out.items()]
    return Family(
        LEFT_OUT, "gauge", "Series that were too many, or whose names were taken.", series
    )


def _entities(reader: Reader, keys: Keys, family: int, name: str) -> Iterator[tuple[Scoped, bytes]]:
    begin, end = keys.of_all(family, name)
    for key, value in reader.scan(begin, end):
        scope, components = unpack(key, len(begin))
        yield (scope, components), value


def _highest(found: Iterable[tuple[Number, Scoped]]) -> list[tuple[Number, Scoped]]:
    return sorted(found, key=lambda pair: (-pair[0], str(pair[1][0]), pair[1][1]))


# --- names, labels and lines ------------------------------------------------------------------


def metric_name(parts: Iterable[str]) -> str:
    """Prefix components and name as one name of the format.

    >>> metric_name(["My App", "requests"]), metric_name(["404s", "seen"])
    ('My_App_requests', '_404s_seen')
    """
    name = _NOT_IN_NAMES.sub("_", "_".join(parts))
    return f"_{name}" if name[:1].isdigit() else name


def labels(scope: int | str, components: Sequence[str]) -> Labels:
    """The labels of an entity: names and values in turn if they look so, else one label.

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
        and all(_LABEL_NAME.fullmatch(name) and name not in _TAKEN_LABELS for name in names)
        and not any(name.startswith("__") for name in names)  # those are the scraper's own
    ):
        return (first, *zip(names, values, strict=True))
    return (first, ("entity", readable(*components)))


def _lines(family: Family, openmetrics: bool) -> Iterator[str]:
    # In the old format the type is that of the lines' own name, and a counter's ends in _total.
    name = family.name
    shown = f"{name}_total" if family.type == "counter" and not openmetrics else name
    if family.help:
        yield f"# HELP {shown} {_escaped_help(family.help, openmetrics)}"
    yield f"# TYPE {shown} {family.type}"
    for samples in family.series:
        for suffix, pairs, value in samples:
            listed = ",".join([f'{label}="{_escaped(text)}"' for label, text in pairs])
            series = f"{{{listed}}}" if listed else ""
            yield f"{name}{suffix}{series} {_number(value)}"


def _number(value: Number) -> str:
    if value in (math.inf, -math.inf):  # the sum of a distribution may have grown so far
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escaped_help(text: str, openmetrics: bool) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if openmetrics else text
