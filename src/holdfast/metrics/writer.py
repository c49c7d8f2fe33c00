"""A writer: adds up increments in memory and stores them in one transaction."""

import math
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, Self

from holdfast.errors import OutcomeUnknown
from holdfast.limits import MAX_UNITS, MAX_WRITER_KEYS
from holdfast.metrics.entity import NO_ENTITY, EntityKey, EntityLike, as_entity
from holdfast.metrics.kinds import find_operation
from holdfast.metrics.records import Deleted, Metric, Number, Write, Written
from holdfast.metrics.rounding import units_of
from holdfast.metrics.specs import known_metric
from holdfast.metrics.totals import check_time

# Up to so many, units * resolution / resolution are the same units again.
_EXACT_UNITS: Final = 10**15


class WriteBackend(Protocol):
    """Stores a writer's flush: the layer on a transaction, a store, or a client."""

    def write(self, writes: list[Any], *, prefix: Any, namespace: str) -> Written: ...

    def reset(
        self, entities: list[Any], metrics: list[str] | None, *, prefix: Any, namespace: str
    ) -> Deleted: ...


class _Sum:
    """Units of one metric and entity that belong to the same bucket of every sequence."""

    __slots__ = ("at", "begin", "end", "max_units", "units")

    def __init__(self, at: float, begin: float, end: float, units: int, max_units: int) -> None:
        self.at = at  # of the first increment: it names the buckets exactly
        self.begin = begin
        self.end = end
        self.units = units
        self.max_units = max_units  # with more, value / resolution need not be the same units


class Writer:
    """Buffers writes until `flush`, which stores all of them in one transaction.

    Threads may share it. It flushes when it is closed, when its `with` block ends, even by an
    exception, and when it holds `MAX_WRITER_KEYS` keys.
    """

    def __init__(
        self,
        backend: WriteBackend,
        metrics: Mapping[str, Metric],
        *,
        prefix: tuple[str, ...],
        namespace: str,
        clock: Callable[[], float],
    ) -> None:
        self._backend = backend
        self._metrics = dict(metrics)
        self._prefix = prefix
        self._namespace = namespace
        self._store_clock = clock
        self._clock = clock
        self._lock = threading.RLock()
        self._sums: dict[tuple[str, EntityKey], _Sum] = {}
        self._writes: list[Write] = []  # sums of buckets that have ended, and all other writes
        self._keys = 0

    @property
    def names(self) -> list[str]:
        """The metrics that it can write."""
        return list(self._metrics)

    @property
    def where(self) -> dict[str, Any]:
        """The prefix and namespace that it writes to."""
        return {"prefix": self._prefix, "namespace": self._namespace}

    def incr(self, metric: str, entity: EntityLike = None, value: Number = 1) -> None:
        """Adds `value` to a counter. The value of each call is rounded to the resolution."""
        if not isinstance(entity, EntityKey):
            entity = NO_ENTITY if entity is None else as_entity(entity)
        at = self._clock()
        held = self._sums.get((metric, entity)) if isinstance(metric, str) else None
        if held is None or not held.begin <= at < held.end:
            self._begin_sum(metric, entity, value, at)
            return
        spec = self._metrics[metric]
        if type(value) is int and spec.resolution == 1 and 0 <= value <= MAX_UNITS:
            units = value
        else:
            units = units_of(value, spec.resolution)
        with self._lock:
            # Another thread may have flushed, or moved on to the next bucket, in between.
            if self._sums.get((metric, entity)) is held and held.units + units <= held.max_units:
                held.units += units
                return
        self._begin_sum(metric, entity, value, at)

    def set(self, metric: str, entity: EntityLike = None, value: Number = 0) -> None:
        """Sets a gauge to a value."""
        self._buffer(metric, entity, value, "set")

    def add(self, metric: str, entity: EntityLike = None, delta: Number = 1) -> None:
        """Moves a gauge by `delta` from the value that it has at the flush."""
        self._buffer(metric, entity, delta, "add")

    def record(
        self, metric: str, entity: EntityLike = None, value: Number = 0, count: int = 1
    ) -> None:
        """Records that a value of a distribution occurred `count` times."""
        self._buffer(metric, entity, value, "record", count)

    def flush(self) -> None:
        """Stores the buffer in one transaction; if that fails, everything stays buffered.

        If the outcome is unknown, as it can be over a network or after a KeyboardInterrupt, the
        buffer is dropped: the writes may have been stored, and are not stored twice.
        """
        with self._lock:
            writes = self._writes + self._writes_of_sums()
            held = self._keys
            self._clear()
        if not writes:
            return
        try:
            self._backend.write(writes, prefix=self._prefix, namespace=self._namespace)
        except OutcomeUnknown:
            raise  # they may be stored: storing them twice would be worse than losing them
        except Exception:  # after a KeyboardInterrupt they may be stored, too
            with self._lock:
                self._writes = writes + self._writes
                self._keys += held
            raise

    def discard(self) -> None:
        """Discards the buffer without storing it."""
        with self._lock:
            self._clear()

    def reset_all(self, entities: Iterable[EntityLike] = (None,)) -> None:
        """Empties the buffer and deletes all stored buckets of `entities`, in all metrics."""
        self.discard()
        wanted = [as_entity(entity) for entity in entities]
        if wanted:
            names = list(self._metrics)
            self._backend.reset(wanted, names, prefix=self._prefix, namespace=self._namespace)

    def set_current_time(self, at: float) -> None:
        """Freezes the writer's clock."""
        at = check_time(at)
        self._clock = lambda: at

    def reset_current_time(self) -> None:
        """Lets the writer's clock run again."""
        self._clock = self._store_clock

    def close(self) -> None:
        """Flushes. A closed writer can be used again."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_keys", 0):
            warnings.warn(
                f"a metrics writer was dropped with {self._keys} keys in its buffer: close it",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )
            self.flush()

    # --- the buffer ---------------------------------------------------------------------------

    def _begin_sum(self, name: str, entity: EntityKey, value: Number, at: float) -> None:
        """Begins the sum of another bucket; the sum of the previous one is kept for the flush."""
        metric = known_metric(self._metrics, name)
        find_operation(name, metric, "incr")
        units = units_of(value, metric.resolution)
        begin, end = _common_bucket(metric, at)
        max_units = MAX_UNITS if isinstance(metric.resolution, int) else _EXACT_UNITS
        with self._lock:
            if units > max_units:  # too many to be added up with others
                self._writes.append(Write(metric=name, entity=entity, value=value, at=at))
            else:
                held = self._sums.pop((name, entity), None)
                if held is not None:
                    self._writes.append(self._write_of((name, entity), held))
                self._sums[name, entity] = _Sum(at, begin, end, units, max_units)
            self._keys += len(metric.sequences)
            is_full = self._keys >= MAX_WRITER_KEYS
        if is_full:
            self.flush()

    def _buffer(
        self, name: str, entity: EntityLike, value: Number, op: Any, count: int = 1
    ) -> None:
        metric = known_metric(self._metrics, name)
        find_operation(name, metric, op).check(metric, value, count)
        write = Write(
            metric=name,
            entity=as_entity(entity),
            value=value,
            at=self._clock(),
            op=op,
            count=count,
        )
        with self._lock:
            self._writes.append(write)
            self._keys += len(metric.sequences)
            is_full = self._keys >= MAX_WRITER_KEYS
        if is_full:
            self.flush()

    def _writes_of_sums(self) -> list[Write]:
        return [self._write_of(key, held) for key, held in self._sums.items()]

    def _write_of(self, key: tuple[str, EntityKey], held: _Sum) -> Write:
        name, entity = key
        value = held.units * self._metrics[name].resolution
        return Write(metric=name, entity=entity, value=value, at=held.at)

    def _clear(self) -> None:
        self._sums = {}
        self._writes = []
        self._keys = 0


def _common_bucket(metric: Metric, at: float) -> tuple[float, float]:
    """Returns begin and end of the time around `at` in which every sequence keeps its bucket."""
    begin, end = 0.0, math.inf
    for sequence in metric.sequences:
        first, last = _edges(sequence.time_step, at)
        begin, end = max(begin, first), min(end, last)
    return begin, end


def _edges(step: Number, at: float) -> tuple[float, float]:
    """Returns two times: those between them have the same trunc(time / step) as `at`.

    Multiplication and division round differently, so the edges are moved until they agree.
    """
    bucket = int(at / step)
    first = float(bucket * step)
    while int(first / step) < bucket:
        first = math.nextafter(first, math.inf)
    last = math.nextafter((bucket + 1) * step, 0.0)
    while int(last / step) > bucket:
        last = math.nextafter(last, 0.0)
    return min(first, at), math.nextafter(max(last, at), math.inf)
