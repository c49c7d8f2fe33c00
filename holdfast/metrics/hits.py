"""One operation, by far the most frequent list of them: how it is decided, and how it is counted.

A hit mostly finds all as it was left by the one before: the spec is stored, the entity has a record
that knows its whole window, and there is room. That case is written out here, for each algorithm in
one function without a call that it could do without. Whatever is different takes the long way: a
`Standing`, which batches take for all their operations.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from holdfast.engine.contract import Reader, Transaction
from holdfast.errors import MetricOverflow, NotACounter
from holdfast.limits import MAX_UNITS
from holdfast.metrics import registry
from holdfast.metrics.cells import Cell
from holdfast.metrics.conditions import Compiled, Place, Plan, check_amount, place_of
from holdfast.metrics.entity import EntityKey, EntityLike, as_entity, suffix_of
from holdfast.metrics.layout import Keys
from holdfast.metrics.logs import LogWindow
from holdfast.metrics.records import LimitResult
from holdfast.metrics.tallies import moved_tally, pack_units, read_tally
from holdfast.metrics.windows import EstimateWindow, StrictWindow, thinned

Asked: TypeAlias = tuple[Compiled, EntityKey, int]
Hit: TypeAlias = Callable[[Transaction, Place, bytes, int, float], LimitResult]
Transact: TypeAlias = Callable[[Callable[[Transaction], Any]], Any]


class SingleHits:
    """Tries single operations under one plan, prefix and namespace."""

    __slots__ = ("_hit", "_namespace", "_places", "_plan", "_transact")

    def __init__(self, transact: Transact, keys: Keys, plan: Plan, namespace: str) -> None:
        """`transact` runs work on a transaction: a new one of a store, or the one that is open."""
        self._transact = transact
        self._plan = plan
        self._hit = hit_of(plan.algorithm)
        self._namespace = namespace
        self._places: dict[str, Place] = {
            name: place_of(keys, condition) for name, condition in plan.conditions.items()
        }

    def try_incr(self, name: str, entity: EntityLike, amount: int) -> LimitResult:
        # Read before the transaction, so that all who wait to write wait less.
        _, found, amount = read_operation(self._plan, name, entity, amount)
        suffix = suffix_of(found, self._namespace)
        place, hit = self._places[name], self._hit
        result: LimitResult = self._transact(lambda tx: hit(tx, place, suffix, amount, tx.now))
        return result


def read_operation(plan: Plan, name: Any, entity: Any, amount: Any) -> Asked:
    """One operation with its condition found and its entity and amount checked."""
    condition = plan.find(name)
    if check_amount(amount) > MAX_UNITS:
        raise MetricOverflow(f"an amount of {amount} is more than {MAX_UNITS}")
    return condition, as_entity(entity), amount


# --- the usual hit ----------------------------------------------------------------------------


def hit_of(algorithm: str) -> Hit:
    """How one operation is tried under an algorithm."""
    return _HITS[algorithm]


def _hit_window(
    tx: Transaction, place: Place, suffix: bytes, amount: int, now: float
) -> LimitResult:
    """A hit with buckets. Reads 2 keys and writes 2; see `EstimateWindow` for the other ones."""
    condition = place.condition
    if tx.get(place.spec) != condition.stored:
        registry.store_spec(tx, place.keys, condition.name, condition.metric, condition.asks)
    key = place.tallies + suffix
    value = tx.get(key) if condition.is_tallied else None
    window = condition.window
    if value is None or not amount or now <= window:
        return _decided(tx, place, _window(tx, place, suffix, now, value), amount)
    step = condition.step
    first, last = int((now - window) / step), int(now / step)
    tally = read_tally(value)
    begin = tally[1]
    newest = begin + len(tally) - 3
    if tally[0] > first or newest > last:
        return _decided(tx, place, _window(tx, place, suffix, now, value), amount)
    oldest = first - begin + 2  # its place in the tally
    if condition.algorithm == "strict":
        prev_total = sum(tally[oldest:] if oldest > 2 else tally[2:])
    elif first == last or not last * step <= now <= (last + 1) * step:
        return _decided(tx, place, _window(tx, place, suffix, now, value), amount)
    elif oldest < 2:
        prev_total = sum(tally[2:])
    else:
        prev_total = thinned(tally, oldest, (first + 1) * step - (now - window), step)
    new_total = prev_total + amount
    limit = condition.limit
    if new_total > limit:
        return _decided(tx, place, _window(tx, place, suffix, now, value), amount)
    number, bucket = place.bucket
    if number != last:
        bucket = place.stem_of(last)
    try:
        tx.add(bucket + suffix, amount)
    except NotACounter as error:
        raise _overflow() from error
    if newest == last and oldest < 4:
        tx.put(key, value[:-8] + pack_units(tally[-1] + amount))
    else:
        tx.put(key, moved_tally(value, tally, first - 1, last, amount))
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


def _hit_any(tx: Transaction, place: Place, suffix: bytes, amount: int, now: float) -> LimitResult:
    return _decided(tx, place, standing_of(tx, place, suffix, now), amount)


_HITS: Final[dict[str, Hit]] = {
    "estimate": _hit_window,
    "strict": _hit_window,
    "log": _hit_any,
    "gcra": _hit_any,
    "token_bucket": _hit_any,
}


# --- the long way -----------------------------------------------------------------------------


class Standing(Protocol):
    """How an entity stands with a condition; one class for each algorithm."""

    limit: int

    @property
    def prev_total(self) -> int: ...

    def admits(self, amount: int) -> bool: ...

    def charge(self, tx: Transaction, amount: int) -> None: ...

    def remaining(self, counted: int) -> int: ...

    def reset_after(self) -> float: ...

    def retry_after(self, amount: int) -> float | None: ...


def standing_of(reader: Reader, place: Place, suffix: bytes, now: float) -> Standing:
    condition = place.condition
    algorithm = condition.algorithm
    if algorithm == "strict" or algorithm == "estimate":
        value = reader.get(place.tallies + suffix) if condition.is_tallied else None
        return _window(reader, place, suffix, now, value)
    if algorithm == "log":
        return LogWindow(reader, place.logs + suffix, condition.limit, condition.window, now)
    return Cell(
        reader, place.cells + suffix, condition.limit, condition.window, condition.capacity, now
    )


def _window(
    reader: Reader, place: Place, suffix: bytes, now: float, value: bytes | None
) -> Standing:
    kind = StrictWindow if place.condition.algorithm == "strict" else EstimateWindow
    return kind(reader, place, suffix, now, value)


def _decided(tx: Transaction, place: Place, standing: Standing, amount: int) -> LimitResult:
    condition = place.condition
    prev_total = standing.prev_total
    allowed = standing.admits(amount)
    if allowed:
        try:
            standing.charge(tx, amount)
        except NotACounter as error:
            raise _overflow() from error
    return LimitResult(
        condition=condition.name,
        limit=standing.limit,
        window=condition.window,
        amount=amount,
        allowed=allowed,
        prev_total=prev_total,
        new_total=prev_total + amount,
        remaining=standing.remaining(amount if allowed else 0),
        retry_after=0.0 if allowed else standing.retry_after(amount),
        reset_after=standing.reset_after(),
    )


def _overflow() -> MetricOverflow:
    return MetricOverflow("a limit's counter would pass its 64 bits")
