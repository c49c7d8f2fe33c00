"""The operations of rate limits on one transaction."""

from collections.abc import Sequence
from typing import Any

from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.metrics import admission
from holdfast.metrics.conditions import BUCKET_COUNT, Algorithm, Conditions, make_plan
from holdfast.metrics.entity import Prefix, as_namespace, as_prefix
from holdfast.metrics.layout import Keys, keys_of, named_keys
from holdfast.metrics.limit_exceeded import exceeded
from holdfast.metrics.records import BatchResult, Operation
from holdfast.metrics.registry import OnConflict
from holdfast.metrics.scope import NAMESPACE, PREFIX, MetricsScope
from holdfast.metrics.throttles import throttle
from holdfast.metrics.totals import check_time


class ScopedOperations:
    """Operations on one transaction, optionally with a bound prefix and namespace."""

    _tx: Transaction
    _scope: MetricsScope | None = None  # None: the arguments of each call are all there is

    def _keys(self, prefix: Prefix) -> Keys:
        if self._scope is not None:
            prefix, _ = self._scope.fill(prefix, NAMESPACE)
        return keys_of(self._tx.space, as_prefix(prefix))

    def _where(self, prefix: Prefix, namespace: str, at: float | None) -> tuple[Keys, str, float]:
        tx = self._tx
        if self._scope is not None:
            prefix, namespace = self._scope.fill(prefix, namespace)
        if type(prefix) is str:
            keys = named_keys[tx.space, prefix]
        else:
            keys = keys_of(tx.space, as_prefix(prefix))
        if namespace is not NAMESPACE:
            as_namespace(namespace)
        return keys, namespace, tx.now if at is None else check_time(at)


class LimitOperations(ScopedOperations):
    """Operations on rate limits."""

    @operation()
    def try_incr(
        self,
        operations: Sequence[Operation | dict[str, Any]],
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> BatchResult:
        """Counts all operations if their conditions allow all of them, none otherwise.

        For each condition and entity: with buckets reads 2 keys and writes 2, and reads 1 more for
        each bucket if it was not hit in the last window; with `gcra` and `token_bucket` reads 1 and
        writes 1; with `log` reads what is in the window.
        """
        plan = make_plan(conditions, bucket_count, algorithm)
        where = self._where(prefix, namespace, at)
        if type(operations) is list and len(operations) == 1:
            only = admission.try_single(self._tx, plan, operations[0], where)
            if only is not None:
                return only
        asked = admission.read_operations(plan, operations)
        return admission.try_incr(self._tx, plan, asked, where)

    @operation()
    def require(
        self,
        operations: Sequence[Operation | dict[str, Any]],
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> BatchResult:
        """Counts all operations, or raises `LimitExceeded`, which undoes the whole transaction.

        In a batch over the network it guards the whole batch: if a limit refuses, nothing is done,
        and the error says which limit it was and when to try again. Costs what `try_incr` does.
        """
        result = self.try_incr(
            operations,
            conditions,
            bucket_count,
            algorithm,
            prefix=prefix,
            namespace=namespace,
            at=at,
        )
        if not result.allowed:
            raise exceeded(result, result.failed.values())
        return result

    @operation()
    def define_limits(
        self,
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        on_conflict: OnConflict = "refuse",
        *,
        prefix: Prefix = PREFIX,
    ) -> None:
        """Stores the conditions of a limiter, as `define` stores the specs of metrics.

        Raises if a window or a number of buckets contradicts the stored one;
        `on_conflict="discard"` deletes the stored data instead. A limiter stores new conditions by
        itself, so this call is optional. Reads 1 key for each condition, writes 2 for a new one.
        """
        plan = make_plan(conditions, bucket_count, algorithm)
        admission.store_all_specs(self._tx, self._keys(prefix), plan, on_conflict)

    @operation(reads=True)
    def peek(
        self,
        operations: Sequence[Operation | dict[str, Any]],
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> BatchResult:
        """Returns the result that `try_incr` would have. Reads the same keys, writes nothing."""
        plan = make_plan(conditions, bucket_count, algorithm)
        asked = admission.read_operations(plan, operations)
        return admission.peek(self._tx, plan, asked, self._where(prefix, namespace, at))

    @operation()
    def limit_incr(
        self,
        operations: Sequence[Operation | dict[str, Any]],
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> None:
        """Counts operations without checking their limits.

        With an algorithm that uses buckets, reads 1 key and writes 2 for each.
        """
        plan = make_plan(conditions, bucket_count, algorithm)
        asked = admission.read_operations(plan, operations)
        admission.incr(self._tx, plan, asked, self._where(prefix, namespace, at))

    @operation()
    def throttle(
        self,
        key: str,
        max_burst: int,
        count: int,
        period: int,
        quantity: int = 1,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> list[int]:
        """Applies GCRA as redis-cell does, `count` in `period` seconds, and returns five integers.

        They are: 0 if allowed or 1 if limited, the limit, what remains of it, the seconds until a
        retry can succeed (-1 if it is allowed, or never will be), and the seconds until all of the
        limit is available. Reads 1 key, writes 1.
        """
        keys, namespace, now = self._where(prefix, namespace, at)
        return throttle(self._tx, keys, namespace, now, key, max_burst, count, period, quantity)
