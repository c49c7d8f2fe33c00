"""One flush: a list of writes, checked whole before the first is made."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from holdfast.engine.contract import Transaction
from holdfast.errors import BadInput, WrongMetricType
from holdfast.metrics import buckets, distributions, gauges, registry
from holdfast.metrics.entity import EntityLike, as_entity, suffix_of
from holdfast.metrics.layout import Keys
from holdfast.metrics.records import Metric, Number, StoredSpec, Write
from holdfast.metrics.rounding import check_count, check_number, units_of
from holdfast.metrics.specs import listed, nearest
from holdfast.metrics.totals import check_time

_TYPE_OF: Final = {"incr": "counter", "set": "gauge", "add": "gauge", "record": "distribution"}


def write_all(
    tx: Transaction, keys: Keys, namespace: str, writes: Iterable[Any], now: float
) -> int:
    """Makes all writes, or none. Reads 1 key for each metric, then as each write says."""
    specs: dict[str, StoredSpec] = {}
    made = [_prepared(tx, keys, namespace, write, now, specs) for write in listed(writes, "writes")]
    for make in made:
        make()
    return len(made)


def _prepared(
    tx: Transaction,
    keys: Keys,
    namespace: str,
    given: Any,
    now: float,
    specs: dict[str, StoredSpec],
) -> Callable[[], None]:
    write = given if isinstance(given, Write) else _as_write(given)
    name = write.metric
    stored = specs.get(name) if isinstance(name, str) else None
    if stored is None:
        stored = specs[name] = registry.stored_spec(tx, keys, name)
    metric = stored.metric
    if write.op not in _TYPE_OF:
        raise BadInput(f"`op` is one of {', '.join(_TYPE_OF)}, not {write.op!r}")
    if metric.type != _TYPE_OF[write.op]:
        raise _wrong_type(write.op, name, metric)
    at = now if write.at is None else check_time(write.at)
    suffix = suffix_of(as_entity(write.entity), namespace)
    if write.op == "record":
        check_number(write.value)
        check_count(write.count)
        return partial(
            distributions.record,
            tx, keys, name, metric, suffix, float(write.value), write.count, at,
        )  # fmt: skip
    units = units_of(write.value, metric.resolution, signed=write.op != "incr")
    if write.op == "incr":
        return partial(buckets.add_units, tx, keys, name, stored, suffix, units, at)
    make = gauges.set_units if write.op == "set" else gauges.add_units
    return partial(make, tx, keys, name, metric, suffix, units, at)


def incr_one(
    tx: Transaction,
    keys: Keys,
    namespace: str,
    name: str,
    entity: EntityLike,
    value: Number,
    at: float,
) -> None:
    """One increment, without the list around it. Reads 1 key, writes 1 for each sequence."""
    stored = registry.stored_spec(tx, keys, name)
    metric = stored.metric
    if metric.type != "counter":
        raise _wrong_type("incr", name, metric)
    units = units_of(value, metric.resolution)
    suffix = suffix_of(as_entity(entity), namespace)
    buckets.add_units(tx, keys, name, stored, suffix, units, at)


def _wrong_type(op: str, name: str, metric: Metric) -> WrongMetricType:
    return WrongMetricType(f"{op!r} was asked of {name!r}, which is a {metric.type}")


def _as_write(given: Any) -> Write:
    if not isinstance(given, Mapping):
        raise BadInput(f"a write is an object with `metric`, not {given!r}")
    for field in given:
        if field not in Write.__struct_fields__:
            known = nearest(field, Write.__struct_fields__)
            raise BadInput(f"a write has the unknown field {field!r}{known}")
    if "metric" not in given:
        raise BadInput("a write has no metric")
    return Write(**given)
