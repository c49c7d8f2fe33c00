"""The limiter's decision: admits all operations of a list, or none."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from holdfast.call_time import CallTimer
from holdfast.engine.contract import Reader, Transaction
from holdfast.error_text import did_you_mean, shown
from holdfast.errors import BadLimit, MetricOverflow, NotACounter
from holdfast.limits import MAX_UNITS
from holdfast.metrics import registry
from holdfast.metrics.call_timers import timer_of_items
from holdfast.metrics.conditions import WITH_BUCKETS, LimiterPlan, condition_keys
from holdfast.metrics.entity import suffix_of, suffix_of_list
from holdfast.metrics.layout import Keys
from holdfast.metrics.limiter_fast_path import (
    CheckedOperation,
    LimitState,
    hit_function,
    read_limit_state,
    read_operation,
)
from holdfast.metrics.records import BatchResult, LimitResult, Operation
from holdfast.metrics.specs import listed

_FIELDS: Final = frozenset({"condition", "entity", "amount"})  # of an operation
Where: TypeAlias = tuple[Keys, str, float]  # the keys of the prefix, the namespace, now


def read_operations(plan: LimiterPlan, operations: Sequence[Any]) -> list[CheckedOperation]:
    """Returns the operations with their conditions found and their entities and amounts checked."""
    return [_read_operation(plan, operation) for operation in listed(operations, "operations")]


def decide(
    reader: Reader,
    keys: Keys,
    asked: list[CheckedOperation],
    namespace: str,
    now: float,
    timer: CallTimer,
) -> tuple[bool, list[tuple[CheckedOperation, "ConditionGroup"]]]:
    """Returns whether all operations are allowed, and the group of each. Reads only.

    Operations on the same condition and entity share a group, and the group's sum decides.
    """
    groups: dict[tuple[str, bytes], ConditionGroup] = {}
    grouped: list[tuple[CheckedOperation, ConditionGroup]] = []
    for operation in asked:
        condition, entity, amount = operation
        suffix = suffix_of(entity, namespace)
        which = condition.name, suffix
        group = groups.get(which)
        if group is None:
            state = read_limit_state(reader, condition_keys[keys, condition], suffix, now)
            group = groups[which] = ConditionGroup(state)
            timer.check()  # a state may have 10,000 buckets or hits
        group.amount += amount
        grouped.append((operation, group))
    allowed = True
    for group in groups.values():
        group.allowed = group.state.admits(group.amount)
        allowed = allowed and group.allowed
    return allowed, grouped


class ConditionGroup:
    """The operations of a batch on one condition and one entity."""

    __slots__ = ("allowed", "amount", "counted", "prev_total", "state")

    def __init__(self, state: LimitState) -> None:
        self.state = state
        self.prev_total = state.prev_total
        self.amount = 0
        self.counted = 0
        self.allowed = True

    def charge(self, tx: Transaction) -> None:
        if self.counted == 0:
            self.state.charge(tx, self.amount)
            self.counted = self.amount


def try_single(
    tx: Transaction, plan: LimiterPlan, operation: Any, where: Where
) -> BatchResult | None:
    """Tries a single operation, as plain data and in its usual form; None if it has another."""
    if type(operation) is not dict or not operation.keys() <= _FIELDS:
        return None
    name, entity = operation.get("condition"), operation.get("entity")
    amount = operation.get("amount", 1)
    condition = plan.conditions.get(name) if isinstance(name, str) else None
    if condition is None or type(entity) is not list or type(amount) is not int:
        return None
    if not 0 <= amount <= MAX_UNITS:
        return None
    keys, namespace, now = where
    suffix = suffix_of_list(entity, namespace)
    only = hit_function(condition)(tx, condition_keys[keys, condition], suffix, amount, now)
    return BatchResult(allowed=only.allowed, retry_after=only.retry_after, results=[only])


def peek(
    reader: Reader, plan: LimiterPlan, asked: list[CheckedOperation], where: Where
) -> BatchResult:
    """Returns the result that `try_incr` would have. Writes nothing."""
    keys, namespace, now = where
    timer = _timer(asked)
    check_specs(reader, keys, plan, asked)
    allowed, grouped = decide(reader, keys, asked, namespace, now, timer)
    return _batch_result(allowed, grouped)


def try_incr(
    tx: Transaction, plan: LimiterPlan, asked: list[CheckedOperation], where: Where
) -> BatchResult:
    """Counts all operations if all are allowed, none otherwise."""
    keys, namespace, now = where
    if len(asked) == 1:
        [(condition, entity, amount)] = asked
        limit_keys, suffix = condition_keys[keys, condition], suffix_of(entity, namespace)
        only = hit_function(condition)(tx, limit_keys, suffix, amount, now)
        return BatchResult(allowed=only.allowed, retry_after=only.retry_after, results=[only])
    timer = _timer(asked)
    store_specs(tx, keys, plan, asked, timer)
    allowed, grouped = decide(tx, keys, asked, namespace, now, timer)
    if allowed:
        try:
            for _, group in grouped:
                group.charge(tx)
                timer.check()
        except NotACounter as error:
            raise MetricOverflow("a limit's counter would exceed its 64 bits") from error
    return _batch_result(allowed, grouped)


def incr(tx: Transaction, plan: LimiterPlan, asked: list[CheckedOperation], where: Where) -> None:
    """Counts all operations without checking limits. With buckets, writes 1 key for each."""
    keys, namespace, now = where
    timer = _timer(asked)
    store_specs(tx, keys, plan, asked, timer)
    if plan.algorithm not in WITH_BUCKETS:
        for _, group in decide(tx, keys, asked, namespace, now, timer)[1]:
            group.charge(tx)
            timer.check()
        return
    try:
        for condition, entity, amount in asked:
            if amount:
                limit_keys, suffix = condition_keys[keys, condition], suffix_of(entity, namespace)
                tx.add(limit_keys.stem_of(int(now / condition.step)) + suffix, amount)
                tx.delete(limit_keys.summaries + suffix)
    except NotACounter as error:
        raise MetricOverflow("a limit's counter would exceed its 64 bits") from error


# --- specs of conditions ----------------------------------------------------------------------


def store_specs(
    tx: Transaction,
    keys: Keys,
    plan: LimiterPlan,
    asked: list[CheckedOperation],
    timer: CallTimer,
) -> None:
    """Stores the specs of the conditions in use, or refuses those that contradict the stored ones.

    Reads 1 key for each condition, as long as it is the one that is stored.
    """
    if plan.algorithm not in WITH_BUCKETS:
        return
    for condition, _, _ in asked:
        if tx.get(keys.spec(condition.name)) != condition.stored:
            registry.store_spec(tx, keys, condition.name, condition.metric, condition.window_spec)
            timer.check()


def store_all_specs(
    tx: Transaction, keys: Keys, plan: LimiterPlan, on_conflict: registry.OnConflict
) -> None:
    """Stores the specs of all conditions of a new limiter. Reads 1 key for each."""
    if plan.algorithm in WITH_BUCKETS:
        timer = timer_of_items("the definition", len(plan.conditions))
        for name, condition in plan.conditions.items():
            registry.store_spec(
                tx, keys, name, condition.metric, condition.window_spec, on_conflict
            )
            timer.check()


def has_all_specs(reader: Reader, keys: Keys, plan: LimiterPlan) -> bool:
    """Returns whether a new limiter has nothing to store. Reads 1 key for each condition."""
    conditions = plan.conditions.values() if plan.algorithm in WITH_BUCKETS else ()
    return all(reader.get(keys.spec(found.name)) == found.stored for found in conditions)


def check_specs(
    reader: Reader, keys: Keys, plan: LimiterPlan, asked: list[CheckedOperation]
) -> None:
    """Raises for conditions that contradict the stored specs; for reads, which store nothing."""
    if plan.algorithm not in WITH_BUCKETS:
        return
    for condition, _, _ in asked:
        value = reader.get(keys.spec(condition.name))
        if value != condition.stored:
            registry.check_window(value, condition.name, condition.metric, condition.window_spec)


# --- pieces -----------------------------------------------------------------------------------


def _timer(asked: list[CheckedOperation]) -> CallTimer:
    return timer_of_items("the hits", len(asked))


def _read_operation(plan: LimiterPlan, operation: Any) -> CheckedOperation:
    name: Any
    if isinstance(operation, Operation):
        name, entity, amount = operation.condition, operation.entity, operation.amount
    elif isinstance(operation, dict):
        if not operation.keys() <= _FIELDS:
            field = min(set(operation) - _FIELDS, key=str)
            near = did_you_mean(field, ("condition", "entity", "amount"))
            raise BadLimit(
                f"an operation has the unknown field {shown(field)}{near}",
                hint="An operation has `condition`, `entity` and `amount`.",
            )
        name, entity = operation.get("condition"), operation.get("entity")
        amount = operation.get("amount", 1)
    else:
        raise BadLimit(
            f"an operation must have `condition`, `entity` and `amount`, not {shown(operation)}"
        )
    return read_operation(plan, name, entity, amount)


def _batch_result(
    allowed: bool, grouped: list[tuple[CheckedOperation, ConditionGroup]]
) -> BatchResult:
    results = [_result(asked, group) for asked, group in grouped]
    if allowed:
        return BatchResult(allowed=True, retry_after=0.0, results=results)
    waits = [result.retry_after for result in results if not result.allowed]
    never = any(wait is None for wait in waits)
    longest = None if never else max([0.0, *[wait for wait in waits if wait is not None]])
    return BatchResult(allowed=False, retry_after=longest, results=results)


def _result(asked: CheckedOperation, group: ConditionGroup) -> LimitResult:
    condition, _, amount = asked
    state = group.state
    return LimitResult(
        condition=condition.name,
        limit=state.limit,
        window=condition.window,
        amount=amount,
        allowed=group.allowed,
        prev_total=group.prev_total,
        new_total=group.prev_total + group.amount,
        remaining=state.remaining(group.counted),
        retry_after=0.0 if group.allowed else state.retry_after(group.amount),
        reset_after=state.reset_after(),
    )
