"""The kinds of metrics: one entry of `KINDS` tells the layer all that depends on a kind.

A kind decides how a value is checked and stored, which values a series can show, how it is exposed
to scrapers, and which changes of a spec are incompatible with stored data. The rest of the layer
uses this table, so a new kind is a module with these functions, an entry here, and its name in
`MetricType`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.engine.contract import Transaction
from holdfast.error_text import shown
from holdfast.errors import BadInput, WrongMetricType
from holdfast.expiry import Remover
from holdfast.metrics import counters, distributions, gauges
from holdfast.metrics.counters import Counter
from holdfast.metrics.distributions import Distribution
from holdfast.metrics.gauges import Gauge
from holdfast.metrics.layout import Keys
from holdfast.metrics.prometheus import Family
from holdfast.metrics.records import COUNTER, DISTRIBUTION, GAUGE, Metric, Number, StoredSpec
from holdfast.metrics.rounding import check_count, check_number, units_of
from holdfast.metrics.totals import Point


class WriteOperation(NamedTuple):
    """One way to write to a kind, named by the `op` of a `Write`."""

    check: Callable[[Metric, Any, Any], Number]  # value and count to the number that is stored
    store: Callable[[Any, Transaction, bytes, Any, int, float], None]  # number, count and time


class MetricKind(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the layer needs to know about a kind of metrics."""

    bind: Callable[[Keys, str, StoredSpec], Any]  # a metric under a prefix, for its operations
    operations: Mapping[str, WriteOperation]  # by `op`
    series_values: str  # the values that a series can show, as a list in words
    charted_values: tuple[str, ...]  # those that the dashboard offers, the most useful first
    has_series_value: Callable[[Any], bool]
    series_point: Callable[..., Point]
    family: Callable[..., Family]  # what scrapers see
    conflict: Callable[[str, Metric, Metric], str | None] = lambda name, old, new: None
    has_counters: bool = False  # its buckets hold counters, which `buckets` lists and `top` ranks
    removers: Mapping[str, Remover] = {}  # of what it lets expire beside its buckets


def _check_units(metric: Metric, value: Any, count: Any) -> int:
    return units_of(value, metric.resolution)


def _check_signed_units(metric: Metric, value: Any, count: Any) -> int:
    return units_of(value, metric.resolution, signed=True)


def _check_sample(metric: Metric, value: Any, count: Any) -> float:
    check_number(value)
    check_count(count)
    return float(value)


def _incr(
    counter: Counter, tx: Transaction, suffix: bytes, units: int, count: int, at: float
) -> None:
    counter.add(tx, suffix, units, at)


def _set(gauge: Gauge, tx: Transaction, suffix: bytes, units: int, count: int, at: float) -> None:
    gauge.set(tx, suffix, units, at)


def _add(gauge: Gauge, tx: Transaction, suffix: bytes, units: int, count: int, at: float) -> None:
    gauge.add(tx, suffix, units, at)


KINDS: Final[dict[str, MetricKind]] = {
    COUNTER: MetricKind(
        bind=Counter,
        operations={"incr": WriteOperation(_check_units, _incr)},
        series_values=", ".join(counters.SERIES_VALUES),
        charted_values=("total", "per_second"),
        has_series_value=counters.SERIES_VALUES.__contains__,
        series_point=counters.series_point,
        family=counters.family,
        has_counters=True,
    ),
    GAUGE: MetricKind(
        bind=Gauge,
        operations={
            "set": WriteOperation(_check_signed_units, _set),
            "add": WriteOperation(_check_signed_units, _add),
        },
        series_values=", ".join(gauges.SERIES_VALUES),
        charted_values=("last", "mean", "min", "max"),
        has_series_value=gauges.SERIES_VALUES.__contains__,
        series_point=gauges.series_point,
        family=gauges.family,
        removers=gauges.REMOVERS,
    ),
    DISTRIBUTION: MetricKind(
        bind=Distribution,
        operations={"record": WriteOperation(_check_sample, Distribution.record)},
        series_values=f"{', '.join(distributions.SERIES_VALUES)} and quantiles such as p50",
        charted_values=("p50", "p99", "mean", "count"),
        has_series_value=distributions.has_series_value,
        series_point=distributions.series_point,
        family=distributions.family,
        conflict=distributions.conflict,
    ),
}


def find_operation(name: str, metric: Metric, op: Any) -> WriteOperation:
    """Returns the operation `op` of a metric; raises `WrongMetricType` if its kind has none."""
    found = KINDS[metric.type].operations.get(op) if isinstance(op, str) else None
    if found is None:
        known = [each for kind in KINDS.values() for each in kind.operations]
        if op not in known:
            raise BadInput(f"`op` must be one of {', '.join(known)}, not {shown(op)}")
        raise WrongMetricType(f"{op!r} is not an operation of {name!r}, which is a {metric.type}")
    return found
