"""A reader: promises of rates that are fetched together, all as of one moment."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from operator import methodcaller
from typing import Any, Generic, TypeVar, overload

from holdfast.engine.contract import Reader as EngineReader
from holdfast.engine.contract import read_counter
from holdfast.keys import pack_int
from holdfast.metrics.counters import check_length, total_of
from holdfast.metrics.entity import EntityKey, EntityLike, as_entity, suffix_of
from holdfast.metrics.layout import keys_of
from holdfast.metrics.records import COUNTER, Metric, Number
from holdfast.metrics.specs import known_metric
from holdfast.metrics.totals import (
    Future,
    Span,
    TimeRange,
    check_time,
    first_visible,
    span_of,
    time_range,
)

N = TypeVar("N", int, float)
K = TypeVar("K")
CounterName = tuple[str, EntityKey, str]  # metric, entity, sequence
View = Callable[[], AbstractContextManager[EngineReader]]


class RatePromise(Generic[N]):
    """A total and its rates, fetched when one of them is first asked for."""

    def __init__(self, reader: "Reader", name: str, entity: EntityKey, asked: TimeRange) -> None:
        self._reader: Reader = reader
        self._metric = known_metric(reader.metrics, name)
        self._metric.require_type(name, COUNTER)
        self._asked = asked
        self._span = span_of(self._metric, asked, reader.now(), reader.future)
        self._counter: CounterName = (name, entity, self._span.sequence.name)
        self._now = reader.now()
        self._total: Any = None
        self._exact = True

    def total(self) -> N:
        """Returns an integer if the resolution is one, else a float."""
        if self._total is None:
            counts = self._reader.counts(self._counter, self._span)
            self._total, self._exact = total_of(self._metric, counts, self._span, self._now)
        total: N = self._total
        return total

    def per_second(self) -> float:
        """Returns the total per second of the range."""
        check_length(self._asked)
        return self.total() / (self._asked.end - self._asked.start)

    def per_minute(self) -> float:
        """Returns the total per minute of the range."""
        return self.per_second() * 60

    def per_hour(self) -> float:
        """Returns the total per hour of the range."""
        return self.per_second() * 3600

    def per_day(self) -> float:
        """Returns the total per day of the range."""
        return self.per_second() * 86400

    @property
    def exact(self) -> bool:
        """Returns whether no bucket that holds something was counted in part."""
        self.total()
        return self._exact

    @property
    def sequence(self) -> str:
        """The name of the sequence that serves the range."""
        return self._span.sequence.name

    @property
    def buckets(self) -> tuple[int, int]:
        """The first and the last bucket of the range."""
        return self._span.first, self._span.last


class PromiseReads:
    """Reads a list or a map of promises at once; the result has its keys."""

    @overload
    def total(self, promises: Mapping[K, RatePromise[Any]]) -> dict[K, Number]: ...
    @overload
    def total(self, promises: list[RatePromise[Any]]) -> list[Number]: ...
    def total(self, promises: Any) -> Any:
        """Returns the totals of a list or a map of promises, with its keys."""
        return self._resolved(promises, "total")

    @overload
    def per_second(self, promises: Mapping[K, RatePromise[Any]]) -> dict[K, float]: ...
    @overload
    def per_second(self, promises: list[RatePromise[Any]]) -> list[float]: ...
    def per_second(self, promises: Any) -> Any:
        """Like `total`, for the rates per second."""
        return self._resolved(promises, "per_second")

    @overload
    def per_minute(self, promises: Mapping[K, RatePromise[Any]]) -> dict[K, float]: ...
    @overload
    def per_minute(self, promises: list[RatePromise[Any]]) -> list[float]: ...
    def per_minute(self, promises: Any) -> Any:
        """Like `total`, for the rates per minute."""
        return self._resolved(promises, "per_minute")

    @overload
    def per_hour(self, promises: Mapping[K, RatePromise[Any]]) -> dict[K, float]: ...
    @overload
    def per_hour(self, promises: list[RatePromise[Any]]) -> list[float]: ...
    def per_hour(self, promises: Any) -> Any:
        """Like `total`, for the rates per hour."""
        return self._resolved(promises, "per_hour")

    @overload
    def per_day(self, promises: Mapping[K, RatePromise[Any]]) -> dict[K, float]: ...
    @overload
    def per_day(self, promises: list[RatePromise[Any]]) -> list[float]: ...
    def per_day(self, promises: Any) -> Any:
        """Like `total`, for the rates per day."""
        return self._resolved(promises, "per_day")

    def _resolved(self, promises: Any, name: str) -> Any:
        resolve = methodcaller(name)  # a client's promises have their own methods
        if isinstance(promises, Mapping):
            return {key: resolve(promise) for key, promise in promises.items()}
        return [resolve(promise) for promise in promises]


class Reader(PromiseReads):
    """Reads rates as of one moment, which it takes at its first use.

    Values that were fetched do not change, so a reader is a snapshot: make a new one to see newer
    writes.
    """

    def __init__(
        self,
        view: View,
        metrics: Mapping[str, Metric],
        *,
        prefix: tuple[str, ...],
        namespace: str,
        clock: Callable[[], float],
        future: Future = "clamp",
    ) -> None:
        self.metrics = metrics
        self.future = future
        self._view = view
        self._prefix = prefix
        self._namespace = namespace
        self._clock = clock
        self._now: float | None = None
        self._found: dict[CounterName, dict[int, int]] = {}
        self._asked: list[tuple[CounterName, Span, float]] = []  # each with its time

    # --- time ---------------------------------------------------------------------------------

    def now(self) -> float:
        """Returns the time of all reads, from the clock at the first use."""
        if self._now is None:
            self._now = self._clock()
        return self._now

    def set_current_time(self, at: float) -> None:
        """Makes all further reads as of the time `at`."""
        self._now = check_time(at)

    def reset_current_time(self) -> None:
        """Reads the clock again at the next use."""
        self._now = None

    def latest(self, seconds: float) -> TimeRange:
        """Returns the last `seconds` until now."""
        return time_range(self.now(), latest=seconds)

    def time_range(self, start: float, end: float) -> TimeRange:
        """Returns the range from `start` to `end`, for `get_rate`."""
        return time_range(self.now(), start=start, end=end)

    # --- promises -----------------------------------------------------------------------------

    def get_rate(self, metric: str, entity: EntityLike, asked: TimeRange) -> RatePromise[Any]:
        """Returns a promise of the rate over a range. Reads nothing yet."""
        promise: RatePromise[Any] = RatePromise(self, metric, as_entity(entity), asked)
        self._asked.append((promise._counter, promise._span, promise._now))
        return promise

    def get_rates(
        self, metrics: Iterable[str], entity: EntityLike, asked: TimeRange
    ) -> dict[str, RatePromise[Any]]:
        """Like `get_rate`, for several metrics by name."""
        return {metric: self.get_rate(metric, entity, asked) for metric in metrics}

    def fetch(self) -> None:
        """Fetches all promises that are not fetched yet, in one transaction."""
        asked, self._asked = self._asked, []
        if not asked:
            return
        try:
            self._fetch(asked)
        except BaseException:
            self._asked = asked + self._asked  # otherwise the next read would find nothing
            raise

    def _fetch(self, asked: list[tuple[CounterName, Span, float]]) -> None:
        with self._view() as reader:
            keys = keys_of(reader.space, self._prefix)
            for (name, entity, sequence), span, now in asked:
                found = self._found.setdefault((name, entity, sequence), {})
                first = max(span.first, first_visible(span.sequence, now))
                if span.is_empty:
                    continue
                missing = [n for n in range(first, span.last + 1) if n not in found]
                stem, suffix = keys.sequence(name, sequence), suffix_of(entity, self._namespace)
                wanted = [stem + pack_int(bucket) + suffix for bucket in missing]
                for bucket, value in zip(missing, reader.get_many(wanted), strict=True):
                    if value is not None:
                        found[bucket] = read_counter(value)

    def counts(self, place: CounterName, span: Span) -> dict[int, int]:
        """Returns the counts of a promise's buckets, ascending; fetches them if needed."""
        self.fetch()
        found = self._found.get(place, {})
        return {
            number: found[number] for number in sorted(found) if span.first <= number <= span.last
        }
