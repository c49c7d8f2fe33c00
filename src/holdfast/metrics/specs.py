"""Normalises specs: fills in defaults, names and order; raises for invalid ones."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from holdfast.error_text import did_you_mean, shown
from holdfast.errors import BadInput, BadMetricSpec, UnknownMetric
from holdfast.limits import (
    MAX_BUCKETS,
    MAX_METRIC_HELP_CHARS,
    MAX_SECONDS,
    MAX_SEQUENCES,
    MAX_SKETCH_BINS,
    MAX_UNITS,
    MIN_TIME_STEP,
)
from holdfast.metrics.kinds import KINDS
from holdfast.metrics.records import (
    COUNTER,
    MAX_BINS,
    RELATIVE_ACCURACY,
    Metric,
    MetricSpec,
    Number,
    Sequence,
    SequenceSpec,
)

Specs: TypeAlias = Mapping[str, MetricSpec | Mapping[str, Any]]

_METRIC_FIELDS: Final = MetricSpec.__struct_fields__
_SEQUENCE_FIELDS: Final = ("timeStep", *SequenceSpec.__struct_fields__)


def normalize(specs: Specs) -> dict[str, Metric]:
    """Returns the metrics that `specs` describe, by name.

    >>> metric = normalize({"edits": {"sequences": [{"timeStep": 10}, {}]}})["edits"]
    >>> [(found.name, found.time_step, found.hard_expiry) for found in metric.sequences]
    [('', 10, 3610), ('s1', 600, 4200)]
    """
    if not isinstance(specs, Mapping):
        raise BadMetricSpec(f"specs must be a map from metric name to spec, not {shown(specs)}")
    return {_metric_name(name): normalize_metric(name, spec) for name, spec in specs.items()}


def normalize_metric(name: str, spec: Any) -> Metric:
    fields = _fields(spec, MetricSpec, _METRIC_FIELDS, f"the spec of {name!r}")
    for misplaced in ("timeStep", "time_step", "expiry"):
        if misplaced in fields:
            raise BadMetricSpec(
                f"the spec of {name!r} has {misplaced!r} outside `sequences`",
                hint=f"Write sequences: [{{{misplaced}: ...}}].",
            )
    _refuse_unknown(fields, _METRIC_FIELDS, f"the spec of {name!r}")
    kind = fields.get("type", COUNTER)
    if not isinstance(kind, str) or kind not in KINDS:
        raise BadMetricSpec(
            f"{name!r} has the type {shown(kind)}, expected one of {', '.join(KINDS)}"
        )
    resolution = fields.get("resolution", 1)
    _check_positive(resolution, "resolution", name)
    if isinstance(resolution, int) and resolution > MAX_UNITS:
        raise BadMetricSpec(
            f"{name!r}: the resolution must be at most {MAX_UNITS}, not {resolution}"
        )
    return Metric(
        type=kind,
        resolution=resolution,
        sequences=_sequences(name, fields.get("sequences")),
        lifetime=_typed(fields, "lifetime", bool, False, name),
        expose=_typed(fields, "expose", bool, False, name),
        help=_help(fields, name),
        relative_accuracy=_relative_accuracy(fields, name),
        max_bins=_max_bins(fields, name),
    )


def listed(given: Any, what: str) -> list[Any]:
    """Returns `given` as a list; raises an error about `what` if it is not a list."""
    if type(given) is list:
        return given.copy()
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise BadInput(f"{what} must be a list, not {shown(given)}")
    return list(given)


def known_metric(metrics: Mapping[str, Metric], name: str) -> Metric:
    """Returns the metric of that name, or raises an error with the nearest name."""
    metric = metrics.get(name) if isinstance(name, str) else None
    if metric is None:
        raise UnknownMetric(f"unknown metric {name!r}{did_you_mean(name, metrics)}")
    return metric


# --- sequences --------------------------------------------------------------------------------


def _sequences(name: str, given: Any) -> tuple[Sequence, ...]:
    """Returns the sequences, named in the order given and then sorted by hard expiry, stably."""
    keyed = _keyed(name, given)
    if len(keyed) > MAX_SEQUENCES:
        raise BadMetricSpec(
            f"{name!r} has {len(keyed)} sequences, at most {MAX_SEQUENCES} are allowed"
        )
    found: list[Sequence] = []
    taken: set[str] = set()
    for key, spec in keyed:
        sequence = _sequence(name, key, spec, taken)
        taken.add(sequence.name)
        found.append(sequence)
    return tuple(sorted(found, key=lambda sequence: sequence.hard_expiry))


def _keyed(name: str, given: Any) -> list[tuple[Any, Any]]:
    if isinstance(given, Mapping):
        keyed = list(given.items())
    elif given is None or isinstance(given, list | tuple):
        keyed = list(enumerate(given or ()))
    else:
        raise BadMetricSpec(
            f"the sequences of {name!r} must be a list or a map, not {shown(given)}"
        )
    return keyed or [(0, {})]


def _sequence(metric: str, key: Any, spec: Any, taken: set[str]) -> Sequence:
    where = f"the sequence {key!r} of {metric!r}"
    fields = _fields(spec, SequenceSpec, _SEQUENCE_FIELDS, where)
    _refuse_unknown(fields, _SEQUENCE_FIELDS, where)
    if "timeStep" in fields and "time_step" in fields:
        raise BadMetricSpec(f"{where} has both timeStep and time_step")
    step = fields.get("timeStep", fields.get("time_step", 600))
    expiry = fields.get("expiry", 3600)
    _check_positive(step, "timeStep", where)
    _check_positive(expiry, "expiry", where)
    if step < MIN_TIME_STEP:
        raise BadMetricSpec(f"{where} has a timeStep of {step}, at least {MIN_TIME_STEP} is needed")
    if max(step, expiry) > MAX_SECONDS:
        raise BadMetricSpec(
            f"{where}: timeStep and expiry must be at most {MAX_SECONDS:.0f} seconds, not "
            f"{max(step, expiry)}"
        )
    if expiry / step > MAX_BUCKETS:
        raise BadMetricSpec(
            f"{where} has {expiry / step:.0f} buckets within its expiry, at most {MAX_BUCKETS} fit"
        )
    wanted = _typed(fields, "name", str, "", where)
    while wanted in taken:
        wanted += f"s{key}"
    return Sequence(
        name=wanted, time_step=step, soft_expiry=expiry, hard_expiry=math.ceil(expiry + step)
    )


# --- fields -----------------------------------------------------------------------------------


def _fields(spec: Any, struct: Any, known: Iterable[str], where: str) -> Mapping[str, Any]:
    if isinstance(spec, struct):
        return {field: getattr(spec, field) for field in struct.__struct_fields__}
    if not isinstance(spec, Mapping):
        raise BadMetricSpec(f"{where} is {shown(spec)}, expected a map of {', '.join(known)}")
    return spec


def _refuse_unknown(fields: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for field in fields:
        if field not in known:
            raise BadMetricSpec(
                f"{where} has the unknown field {field!r}{did_you_mean(field, known)}"
            )


def _typed(fields: Mapping[str, Any], field: str, kind: type, default: Any, where: str) -> Any:
    value = fields.get(field, default)
    if not isinstance(value, kind):
        raise BadMetricSpec(f"{where}: {field} must be a {kind.__name__}, not {shown(value)}")
    return value


def _check_positive(value: Any, field: str, where: str) -> None:
    if not is_positive(value):
        seconds = " of seconds" if field in ("timeStep", "expiry") else ""
        raise BadMetricSpec(
            f"{where}: {field} must be a finite number{seconds} above 0, not {shown(value)}"
        )


def is_positive(value: Any) -> bool:
    """Returns whether `value` is a finite number above 0 that fits a double."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value) and value > 0
    except OverflowError:
        return False


def _relative_accuracy(fields: Mapping[str, Any], name: str) -> float | None:
    value = fields.get("relative_accuracy", RELATIVE_ACCURACY)
    _check_positive(value, "relative_accuracy", name)
    if value >= 1 or 1 + value == 1 - value:  # the second: too fine to tell two doubles apart
        raise BadMetricSpec(
            f"{name!r}: relative_accuracy must be between 0 and 1, not {shown(value)}"
        )
    return None if value == RELATIVE_ACCURACY else float(value)


def _max_bins(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get("max_bins", MAX_BINS)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SKETCH_BINS:
        raise BadMetricSpec(
            f"{name!r}: max_bins must be an integer from 1 to {MAX_SKETCH_BINS}, not {shown(value)}"
        )
    return None if value == MAX_BINS else value


def _help(fields: Mapping[str, Any], name: str) -> str:
    text: str = _typed(fields, "help", str, "", name)
    if len(text) > MAX_METRIC_HELP_CHARS:
        raise BadMetricSpec(
            f"the help of {shown(name)} has {len(text)} characters, "
            f"at most {MAX_METRIC_HELP_CHARS} are allowed"
        )
    return text


def _metric_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise BadMetricSpec(f"a metric's name must be a non-empty string, not {name!r}")
    return name


def same_step(one: Number, other: Number) -> bool:
    """Returns whether two time steps are equal as numbers: 10 and 10.0 are the same step."""
    return float(one) == float(other)
