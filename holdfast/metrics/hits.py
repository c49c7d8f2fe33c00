"""One hit of a limiter: all that does not change from hit to hit is looked up once."""

from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.engine.contract import Transaction
from holdfast.metrics import admission
from holdfast.metrics.conditions import Place, Plan, place_of
from holdfast.metrics.entity import EntityLike, suffix_of
from holdfast.metrics.layout import Keys
from holdfast.metrics.records import LimitResult

Transact = Callable[[Callable[[Transaction], Any]], Any]


class SingleHits:
    """Tries single operations under one plan, prefix and namespace."""

    __slots__ = ("_namespace", "_places", "_plan", "_transact")

    def __init__(self, transact: Transact, keys: Keys, plan: Plan, namespace: str) -> None:
        """`transact` runs work on a transaction: a new one of a store, or the one that is open."""
        self._transact = transact
        self._plan = plan
        self._namespace = namespace
        self._places: dict[str, Place] = {
            name: place_of(keys, condition) for name, condition in plan.conditions.items()
        }

    def __call__(self, name: str, entity: EntityLike, amount: int) -> LimitResult:
        # Read before the transaction, so that all who wait to write wait less.
        _, found, amount = admission.read_operation(self._plan, name, entity, amount)
        suffix = suffix_of(found, self._namespace)
        place = self._places[name]
        result: LimitResult = self._transact(
            partial(admission.try_one, self._plan.algorithm, place, suffix, amount, None)
        )
        return result
