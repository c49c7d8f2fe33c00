"""One flush: a list of writes, checked whole before the first is made."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, Final

from holdfast.engine.contract import Transaction
from holdfast.error_text import shown
from holdfast.errors import BadInput, WrongMetricType
from holdfast.limits import MAX_UNITS
from holdfast.metrics import buckets, distributions, gauges, registry
from holdfast.metrics.entity import EntityLike, LocalEntityKey, as_entity, suffix_of
from holdfast.metrics.layout import Keys
from holdfast.metrics.records import Metric, Number, Write
from holdfast.metrics.rounding import check_count, check_number, units_of
from holdfast.metrics.specs import listed, nearest
from holdfast.metrics.totals import check_time

_TYPE_OF: Final = {"incr": "counter", "set": "gauge", "add": "gauge", "record": "distribution"}


def write_all(
    tx: Transaction, keys: Keys, namespace: str, writes: Iterable[Any], now: float
) -> int:
    """Makes all writes, or none. Reads 1 key for each metric, then as each write says."""
    known: dict[str, buckets.Counter] = {}
    made = [_prepared(tx, keys, namespace, write, now, known) for write in listed(writes, "writes")]
    for make in made:
        make()
    return len(made)


def _prepared(
    tx: Transaction,
    keys: Keys,
    namespace: str,
    given: Any,
    now: float,
    known: dict[str, buckets.Counter],
) -> Callable[[], None]:
    write = given if isinstance(given, Write) else _as_write(given)
    name = write.metric
    counter = known.get(name) if isinstance(name, str) else None
    if counter is None:
        stored = registry.stored_spec(tx, keys, name)
        counter = known[name] = buckets.Counter(keys, name, stored)
    metric = counter.metric
    if not isinstance(write.op, str) or write.op not in _TYPE_OF:
        raise BadInput(f"`op` is one of {', '.join(_TYPE_OF)}, not {shown(write.op)}")
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
        return partial(counter.add, tx, suffix, units, at)
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
    spec = tx.get(keys.spec(name)) if type(name) is str else None
    if spec is None:
        stored = registry.stored_spec(tx, keys, name)  # or the error that names the nearest one
        counter = buckets.Counter(keys, name, stored)
    else:
        counter = _counter_of(keys, name, spec)
    metric = counter.metric
    if metric.type != "counter":
        raise _wrong_type("incr", name, metric)
    if type(value) is not int or metric.resolution != 1 or not 0 <= value <= MAX_UNITS:
        value = units_of(value, metric.resolution)
    if type(entity) is not LocalEntityKey:
        entity = as_entity(entity)
    counter.add(tx, suffix_of(entity, namespace), value, at)


@lru_cache(maxsize=4_096)
def _counter_of(keys: Keys, name: str, spec: bytes) -> buckets.Counter:
    """The metric of a stored spec. The same few are asked for with every increment."""
    return buckets.Counter(keys, name, registry.decode_spec(spec))


def _wrong_type(op: str, name: str, metric: Metric) -> WrongMetricType:
    return WrongMetricType(f"{op!r} was asked of {name!r}, which is a {metric.type}")


def _as_write(given: Any) -> Write:
    if not isinstance(given, Mapping):
        raise BadInput(f"a write is an object with `metric`, not {shown(given)}")
    for field in given:
        if field not in Write.__struct_fields__:
            known = nearest(field, Write.__struct_fields__)
            raise BadInput(f"a write has the unknown field {field!r}{known}")
    if "metric" not in given:
        raise BadInput("a write has no metric")
    return Write(**given)
