"""One flush: a list of writes, all of them checked before the first is made."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from holdfast.bounded_cache import BoundedCache, of_spaces
from holdfast.engine.contract import Transaction
from holdfast.error_text import did_you_mean, shown
from holdfast.errors import BadInput
from holdfast.limits import MAX_UNITS
from holdfast.metrics import registry
from holdfast.metrics.call_timers import timer_of_items
from holdfast.metrics.counters import Counter
from holdfast.metrics.entity import EntityLike, LocalEntityKey, as_entity, suffix_of
from holdfast.metrics.kinds import KINDS, find_operation
from holdfast.metrics.layout import Keys
from holdfast.metrics.records import Number, Write, decode_spec
from holdfast.metrics.rounding import units_of
from holdfast.metrics.specs import listed
from holdfast.metrics.totals import check_time


def write_all(
    tx: Transaction, keys: Keys, namespace: str, writes: Iterable[Any], now: float
) -> int:
    """Makes all writes, or none. Reads 1 key for each metric, and costs what each write does."""
    known: dict[str, Any] = {}
    given = listed(writes, "writes")
    prepared = [_prepare(tx, keys, namespace, write, now, known) for write in given]
    if len(prepared) == 1:
        prepared[0]()
        return 1
    # A record decodes and encodes a sketch in each sequence, however large the sketch is.
    timer = timer_of_items("the writes", len(prepared))
    for write in prepared:
        write()
        timer.check()
    return len(prepared)


def _prepare(
    tx: Transaction,
    keys: Keys,
    namespace: str,
    given: Any,
    now: float,
    known: dict[str, Any],
) -> Callable[[], None]:
    write = given if isinstance(given, Write) else _as_write(given)
    name = write.metric
    bound = known.get(name) if isinstance(name, str) else None
    if bound is None:
        stored = registry.stored_spec(tx, keys, name)
        bound = known[name] = KINDS[stored.metric.type].bind(keys, name, stored)
    operation = find_operation(name, bound.metric, write.op)
    at = now if write.at is None else check_time(write.at)
    suffix = suffix_of(as_entity(write.entity), namespace)
    number = operation.check(bound.metric, write.value, write.count)
    return partial(operation.store, bound, tx, suffix, number, write.count, at)


def incr_one(
    tx: Transaction,
    keys: Keys,
    namespace: str,
    name: str,
    entity: EntityLike,
    value: Number,
    at: float,
) -> None:
    """Makes one increment. Reads 1 key, writes 1 for each sequence."""
    spec = tx.get(keys.spec(name)) if isinstance(name, str) else None
    if spec is None:
        raise registry.unknown_metric(tx, keys, name)
    counter = _counters[keys, name, spec]
    metric = counter.metric
    if type(value) is not int or metric.resolution != 1 or not 0 <= value <= MAX_UNITS:
        value = units_of(value, metric.resolution)
    if type(entity) is not LocalEntityKey:
        entity = as_entity(entity)
    counter.add(tx, suffix_of(entity, namespace), value, at)


def _counter_of(arguments: tuple[Keys, str, bytes]) -> Counter:
    """Returns the counter of a stored spec; cached, since most increments use the same few."""
    keys, name, spec = arguments
    stored = decode_spec(spec)
    find_operation(name, stored.metric, "incr")
    return Counter(keys, name, stored)


_counters: Final = of_spaces(
    BoundedCache(
        _counter_of,
        entries=4_096,
        size_of=lambda key: len(key[0].spec(key[1])) + len(key[2]),
    )
)


def _as_write(given: Any) -> Write:
    if not isinstance(given, Mapping):
        raise BadInput(f"a write must be an object with `metric`, not {shown(given)}")
    for field in given:
        if field not in Write.__struct_fields__:
            known = did_you_mean(field, Write.__struct_fields__)
            raise BadInput(f"a write has the unknown field {field!r}{known}")
    if "metric" not in given:
        raise BadInput("a write has no metric")
    return Write(**given)
