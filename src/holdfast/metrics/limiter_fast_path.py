"""The fast path of a limiter: one operation, decided and counted.

Usually a hit finds everything as the previous one left it: the spec is stored, the entity has a
record of its whole window, and the limit is not reached. Here that case is one function for each
algorithm, with as few calls as possible. Any other case takes the general path: a `LimitState`,
which batches use for all their operations.
"""

from collections.abc import Callable
from math import floor
from typing import Any, Final, Protocol, TypeAlias

from holdfast.bounded_cache import BoundedCache, of_spaces
from holdfast.engine.contract import Reader, Transaction
from holdfast.errors import MetricOverflow, NotACounter
from holdfast.limits import MAX_UNITS
from holdfast.metrics import registry
from holdfast.metrics.bucket_windows import EstimateWindow, StrictWindow, weighted_sum
from holdfast.metrics.conditions import (
    WITH_BUCKETS,
    WITH_BURST,
    CompiledCondition,
    ConditionKeys,
    LimiterPlan,
    check_amount,
    condition_keys,
)
from holdfast.metrics.entity import (
    EntityKey,
    EntityLike,
    LocalEntityKey,
    as_entity,
    suffix_of,
    suffix_of_list,
)
from holdfast.metrics.gcra import GcraState
from holdfast.metrics.layout import Keys
from holdfast.metrics.log_window import LogWindow
from holdfast.metrics.records import LimitResult
from holdfast.metrics.window_summaries import newest_of, pack_units, read_summary, split_summary

CheckedOperation: TypeAlias = tuple[CompiledCondition, EntityKey, int]
Hit: TypeAlias = Callable[[Transaction, ConditionKeys, bytes, int, float], LimitResult]
Transact: TypeAlias = Callable[[Callable[[Transaction], Any]], Any]


class SingleHits:
    """Tries single operations under one plan, prefix and namespace."""

    __slots__ = ("_by_name", "_namespace", "_plan", "_transact")

    def __init__(self, transact: Transact, keys: Keys, plan: LimiterPlan, namespace: str) -> None:
        """`transact` runs work on a transaction: a new one of a store, or the one that is open."""
        self._transact = transact
        self._plan = plan
        self._namespace = namespace
        self._by_name: dict[str, tuple[ConditionKeys, Hit]] = {
            name: (condition_keys[keys, condition], hit_function(condition))
            for name, condition in plan.conditions.items()
        }

    def try_incr(self, name: str, entity: EntityLike, amount: int) -> LimitResult:
        # Read before the transaction, so that other writers wait less.
        known = self._by_name.get(name) if isinstance(name, str) else None
        if known is None or type(amount) is not int or not 0 <= amount <= MAX_UNITS:
            _, entity, amount = read_operation(self._plan, name, entity, amount)
            known = self._by_name[name]
        keys, hit = known
        if type(entity) is LocalEntityKey:
            namespace, suffix = entity.packed
            if namespace != self._namespace:
                suffix = suffix_of(entity, self._namespace)
        elif type(entity) is list:
            suffix = suffix_of_list(entity, self._namespace)
        else:
            suffix = suffix_of(as_entity(entity), self._namespace)
        # Passed as defaults: the cells of a closure would cost another percent of the hit.
        result: LimitResult = self._transact(
            lambda tx, hit=hit, keys=keys, suffix=suffix, amount=amount: hit(  # type: ignore[misc]  # it infers no defaults
                tx, keys, suffix, amount, tx.now
            )
        )
        return result


def read_operation(plan: LimiterPlan, name: Any, entity: Any, amount: Any) -> CheckedOperation:
    """Returns one operation with its condition found and its entity and amount checked."""
    condition = plan.find(name)
    if check_amount(amount) > MAX_UNITS:
        raise MetricOverflow(f"an amount of {amount} is more than {MAX_UNITS}")
    return condition, as_entity(entity), amount


# --- the usual hit ----------------------------------------------------------------------------


def hit_function(condition: CompiledCondition) -> Hit:
    """Returns how one operation is tried under a condition."""
    if condition.algorithm in WITH_BURST:
        return _hit_arrival_time
    return _hit_window if condition.is_summarized else _hit_general


# The facts of a summary about one window. They are derived from it, so they can't be out of date:
_SummaryFacts: TypeAlias = tuple[
    bytes,  # the summary
    int,  # the oldest bucket of the window
    int,  # the newest one
    bytes,  # the summary after a hit now, without the units of its newest bucket
    int,  # these units, before the hit
    int,  # the sum of the window
    bytes,  # the key of the newest bucket's counter; empty if the summary does not know the window
    tuple[int, ...] | None,  # the summary's numbers, if the sum moves on with the time
]
_NO_FACTS: Final[_SummaryFacts] = (b"", -1, -1, b"", 0, 0, b"", None)


def _summary_entry(keys_and_suffix: tuple[ConditionKeys, bytes]) -> list[Any]:
    """Returns the key of an entity's summary, and facts about the summary that was found last.

    Usually the next hit finds the same one, in the same window, and need not decode it again.
    """
    keys, suffix = keys_and_suffix
    return [keys.summaries + suffix, _NO_FACTS]


def _entry_size(keys_and_suffix: tuple[ConditionKeys, bytes]) -> int:
    keys, suffix = keys_and_suffix
    return len(keys.spec) + len(suffix)


_summary_entries: Final = of_spaces(
    BoundedCache(_summary_entry, entries=8_192, size_of=_entry_size)
)


def _hit_window(
    tx: Transaction, keys: ConditionKeys, suffix: bytes, amount: int, now: float
) -> LimitResult:
    """Tries a hit by its summary. Reads 2 keys, writes 2; `EstimateWindow` does all else."""
    condition = keys.condition
    if tx.get(keys.spec) != condition.stored:
        registry.store_spec(
            tx, keys.prefix_keys, condition.name, condition.metric, condition.window_spec
        )
    window, step, limit = condition.window, condition.step, condition.limit
    first, last = int((now - window) / step), int(now / step)
    entry = _summary_entries[keys, suffix]
    key, known = entry
    value = tx.get(key)
    summary, since, until, head, units, prev_total, counter, numbers = known
    if value != summary or first != since or last != until:
        known = entry[1] = _covering_summary(keys, suffix, value, now)
        _, _, _, head, units, prev_total, counter, numbers = known
    elif numbers is not None:
        prev_total = _window_estimate(condition, numbers, now)
    new_total = prev_total + amount
    if (
        not counter
        or not amount
        or new_total > limit
        or not (condition.is_strict or last * step <= now <= (last + 1) * step)
    ):
        return _decide(tx, keys, _window(tx, keys, suffix, now, value), amount)
    try:
        tx.add(counter, amount)
    except NotACounter as error:
        raise _overflow() from error
    units += amount
    value = head + pack_units(units)
    tx.put(key, value)
    if numbers is None or newest_of(numbers) == last:
        numbers = numbers and (*numbers[:-1], units)
        entry[1] = (value, first, last, head, units, new_total, counter, numbers)
    return LimitResult(
        condition=condition.name,
        limit=limit,
        window=window,
        amount=amount,
        allowed=True,
        prev_total=prev_total,
        new_total=new_total,
        remaining=limit - new_total,
        retry_after=0.0,
        reset_after=(last + 1) * step + window - now,
    )


def _covering_summary(
    keys: ConditionKeys, suffix: bytes, value: bytes | None, now: float
) -> _SummaryFacts:
    """Returns the facts of a summary about the window that ends now, if it covers all of it."""
    condition = keys.condition
    start, step = now - condition.window, condition.step
    first, last = int(start / step), int(now / step)
    if value is None or start <= 0 or first == last:
        return _NO_FACTS
    summary = read_summary(value)
    if summary[0] > first or newest_of(summary) > last:
        return _NO_FACTS
    counter = keys.stem_of(last) + suffix
    head, units = split_summary(value, summary, first - 1, last)
    oldest = first - summary[1] + 2  # its index in the summary
    if condition.is_strict or oldest < 2:
        total = sum(summary[oldest:] if oldest > 2 else summary[2:])
        return value, first, last, head, units, total, counter, None
    return (
        value,
        first,
        last,
        head,
        units,
        _window_estimate(condition, summary, now),
        counter,
        summary,
    )


def _window_estimate(condition: CompiledCondition, summary: tuple[int, ...], now: float) -> int:
    """Returns the estimate of the window that ends now, from its summary."""
    start, step = now - condition.window, condition.step
    first = int(start / step)
    oldest = first - summary[1] + 2  # its index in the summary
    return weighted_sum(summary, oldest, (first + 1) * step - start, step)


def _arrival_entry(keys_and_suffix: tuple[ConditionKeys, bytes]) -> list[Any]:
    """Returns the key of an entity's arrival time, and the value that was written last, parsed.

    Usually the next hit finds the same value, and need not parse it again.
    """
    keys, suffix = keys_and_suffix
    return [keys.arrival_times + suffix, (b"", 0)]


_arrival_entries: Final = of_spaces(
    BoundedCache(_arrival_entry, entries=8_192, size_of=_entry_size)
)


def _hit_arrival_time(
    tx: Transaction, keys: ConditionKeys, suffix: bytes, amount: int, now: float
) -> LimitResult:
    """Tries a hit by its arrival time. Reads 1 key, writes 1. See `GcraState` for the numbers."""
    condition = keys.condition
    entry = _arrival_entries[keys, suffix]
    key, (known, arrival) = entry
    value = tx.get(key)
    if value is None or not amount:
        return _decide(tx, keys, _gcra_state(condition, key, now, value), amount)
    if value != known:
        text, rate_text = value.split(None, 1)
        if rate_text != condition.stored_rate:
            return _decide(tx, keys, _gcra_state(condition, key, now, value), amount)
        arrival = int(text)
    rate, interval, capacity = condition.rate, condition.interval, condition.capacity
    time = floor(now * 1_000_000 + 0.5) * rate  # inlines `microseconds`
    used = arrival - time if arrival > time else 0
    after = used + amount * interval
    if after > capacity * interval:
        return _decide(tx, keys, _gcra_state(condition, key, now, value), amount)
    arrival = time + after
    value = b"%d %b" % (arrival, condition.stored_rate)
    tx.put(key, value)
    entry[1] = (value, arrival)
    prev_total = -(-used // interval)
    return LimitResult(
        condition=condition.name,
        limit=capacity,
        window=condition.window,
        amount=amount,
        allowed=True,
        prev_total=prev_total,
        new_total=prev_total + amount,
        remaining=capacity - -(-after // interval),
        retry_after=0.0,
        reset_after=-(-after // rate) / 1_000_000,
    )


def _hit_general(
    tx: Transaction, keys: ConditionKeys, suffix: bytes, amount: int, now: float
) -> LimitResult:
    condition = keys.condition
    if condition.algorithm in WITH_BUCKETS and tx.get(keys.spec) != condition.stored:
        registry.store_spec(
            tx, keys.prefix_keys, condition.name, condition.metric, condition.window_spec
        )
    return _decide(tx, keys, read_limit_state(tx, keys, suffix, now), amount)


# --- all other hits ---------------------------------------------------------------------------


class LimitState(Protocol):
    """The state of an entity under a condition; one class for each algorithm."""

    limit: int

    @property
    def prev_total(self) -> int: ...

    def admits(self, amount: int) -> bool: ...

    def charge(self, tx: Transaction, amount: int) -> None: ...

    def remaining(self, counted: int) -> int: ...

    def reset_after(self) -> float: ...

    def retry_after(self, amount: int) -> float | None: ...


def read_limit_state(reader: Reader, keys: ConditionKeys, suffix: bytes, now: float) -> LimitState:
    condition = keys.condition
    algorithm = condition.algorithm
    if algorithm in WITH_BUCKETS:
        value = reader.get(keys.summaries + suffix) if condition.is_summarized else None
        return _window(reader, keys, suffix, now, value)
    if algorithm == "log":
        return LogWindow(reader, keys.logs + suffix, condition.limit, condition.window, now)
    key = keys.arrival_times + suffix
    return _gcra_state(condition, key, now, reader.get(key))


def _window(
    reader: Reader, keys: ConditionKeys, suffix: bytes, now: float, value: bytes | None
) -> LimitState:
    kind = StrictWindow if keys.condition.is_strict else EstimateWindow
    return kind(reader, keys, suffix, now, value)


def _gcra_state(
    condition: CompiledCondition, key: bytes, now: float, value: bytes | None
) -> LimitState:
    return GcraState(key, condition.limit, condition.window, condition.capacity, now, value)


def _decide(tx: Transaction, keys: ConditionKeys, state: LimitState, amount: int) -> LimitResult:
    condition = keys.condition
    prev_total = state.prev_total
    allowed = state.admits(amount)
    if allowed:
        try:
            state.charge(tx, amount)
        except NotACounter as error:
            raise _overflow() from error
    return LimitResult(
        condition=condition.name,
        limit=state.limit,
        window=condition.window,
        amount=amount,
        allowed=allowed,
        prev_total=prev_total,
        new_total=prev_total + amount,
        remaining=state.remaining(amount if allowed else 0),
        retry_after=0.0 if allowed else state.retry_after(amount),
        reset_after=state.reset_after(),
    )


def _overflow() -> MetricOverflow:
    return MetricOverflow("a limit's counter would exceed its 64 bits")
