"""The structs of this layer: arguments, stored records and results.

A result has no defaults, so that every protocol writes every field, nulls included.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from holdfast.bounded_cache import BoundedCache
from holdfast.error_text import shown
from holdfast.errors import BadInput, WrongMetricType

Number: TypeAlias = int | float
MetricType: TypeAlias = Literal["counter", "gauge", "distribution"]  # the keys of `KINDS`

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
DISTRIBUTION: Final = "distribution"

RELATIVE_ACCURACY: Final = 0.01  # of a distribution's quantiles
MAX_BINS: Final = 2048  # of a sketch: from nanoseconds to days at an accuracy of 0.01


# --- specs ------------------------------------------------------------------------------------


class SequenceSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Buckets of `time_step` seconds that reads may rely on for `expiry` seconds."""

    time_step: Number = 600
    expiry: Number = 3600
    name: str = ""


class MetricSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One metric: its type, its resolution, and the sequences in which its values are kept."""

    type: MetricType = "counter"
    resolution: Number = 1
    sequences: tuple[SequenceSpec, ...] | Mapping[str, SequenceSpec] = ()
    lifetime: bool = False
    expose: bool = False
    help: str = ""
    relative_accuracy: float = RELATIVE_ACCURACY
    max_bins: int = MAX_BINS


class Sequence(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence as it is stored and searched."""

    name: str
    time_step: Number
    soft_expiry: Number
    hard_expiry: int  # how long a bucket is kept after its end


class Metric(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A normalised spec: sequences named, and in the order in which they are searched."""

    type: str  # a key of `KINDS`
    resolution: Number
    sequences: tuple[Sequence, ...]
    lifetime: bool = False
    expose: bool = False
    help: str = ""
    relative_accuracy: float | None = None  # None: the default, so that it need not be stored
    max_bins: int | None = None

    def require_type(self, name: str, kind: str) -> None:
        """Raises `WrongMetricType` unless the metric is of that kind."""
        if self.type != kind:
            raise WrongMetricType(f"{name!r} is a {self.type}, and a {kind} was expected")

    @property
    def accuracy(self) -> float:
        return RELATIVE_ACCURACY if self.relative_accuracy is None else self.relative_accuracy

    @property
    def bins(self) -> int:
        return MAX_BINS if self.max_bins is None else self.max_bins


class Window(msgspec.Struct, frozen=True, array_like=True):
    """The window of a limiter's condition, which its metric must cover."""

    seconds: Number
    bucket_count: int


class StoredSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored metric: its spec, and the sequences of older specs that are not empty."""

    metric: Metric
    window: Window | None = None  # the metric is, or was once, a limiter's condition
    retired: tuple[Sequence, ...] = ()  # no longer written, and not yet empty


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(StoredSpec).decode


# Returns the spec in a stored value; every increment reads the same few, hence the cache.
decode_spec: Final[Callable[[bytes], StoredSpec]] = BoundedCache(_decode, entries=1_024).__getitem__


def encode_spec(spec: StoredSpec) -> bytes:
    """Returns a spec as it is stored."""
    return _encode(spec)


# --- stored in buckets ------------------------------------------------------------------------


class GaugeCell(msgspec.Struct, frozen=True, array_like=True):
    """The samples of one bucket of a gauge, in units."""

    time: float  # of the last sample
    last: int
    min: int
    max: int
    sum: int
    count: int


class LastSample(msgspec.Struct, frozen=True, array_like=True):
    """The newest sample of a gauge, from which `add` continues."""

    time: float
    units: int


class SketchCell(msgspec.Struct, frozen=True, array_like=True):
    """A sketch of the values in one bucket of a distribution: counts by bin."""

    count: int
    sum: float
    min: float
    max: float
    zeros: int = 0
    positive: dict[int, int] = {}
    negative: dict[int, int] = {}


class LifetimeSum(msgspec.Struct, frozen=True, array_like=True):
    """Count and sum of a distribution's whole life."""

    count: int
    sum: float


# --- writing ----------------------------------------------------------------------------------


class Write(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One element of a flush."""

    metric: str
    entity: Any = None
    value: Number = 1
    at: float | None = None
    op: Literal["incr", "set", "add", "record"] = "incr"
    count: int = 1  # for `record`: how often the value occurred


class Written(msgspec.Struct, frozen=True, kw_only=True):
    written: int


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    deleted: int


# --- reading ----------------------------------------------------------------------------------


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A total, the rates that follow from it, and where it was read."""

    total: Number
    per_second: float
    per_minute: float
    per_hour: float
    per_day: float
    sequence: str
    time_step: Number
    first_bucket: int
    last_bucket: int
    exact: bool  # no bucket that holds something was counted in part


class RateQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One element of `rates`: the arguments of `rate`."""

    metric: str
    entity: Any = None
    latest: float | None = None
    start: float | None = None
    end: float | None = None
    future: Literal["clamp", "extrapolate"] = "clamp"

    @staticmethod
    def arguments(query: Any) -> dict[str, Any]:
        """Returns the arguments of a query, or of an object with the same fields."""
        if isinstance(query, RateQuery):
            return {field: getattr(query, field) for field in query.__struct_fields__}
        known = (*RateQuery.__struct_fields__, "prefix", "namespace", "at")
        if not isinstance(query, dict) or "metric" not in query:
            raise BadInput(f"a query must have the arguments of `rate`, not {shown(query)}")
        for field in query:
            if field not in known:
                raise BadInput(f"a query has the unknown field {field!r}; known fields are {known}")
        return query


class BucketPage(msgspec.Struct, frozen=True, kw_only=True):
    """Buckets by their readable keys; `next` is where the next page begins, if there is one."""

    buckets: dict[str, int]
    next: str | None


class GaugeReading(msgspec.Struct, frozen=True, kw_only=True):
    last: Number | None
    min: Number | None
    max: Number | None
    mean: float | None
    count: int


class DistributionReading(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    sum: float | None
    min: float | None
    max: float | None
    mean: float | None
    quantiles: dict[str, float | None]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Values for a plot; null is "not known", 0 is "nothing happened"."""

    start: Number
    step: Number
    sequence: str
    values: list[Number | None]
    partial: list[bool]


class TopEntity(msgspec.Struct, frozen=True, kw_only=True):
    entity: Any  # a list of components, or an object with `global` and `components`
    total: Number


# --- limits -----------------------------------------------------------------------------------


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An amount to charge to an entity under a condition."""

    condition: str
    entity: Any = None
    amount: int = 1


class LimitResult(msgspec.Struct, frozen=True, kw_only=True):
    """A limiter's decision about one operation. It is true if the operation is allowed."""

    condition: str
    limit: int
    window: Number
    amount: int
    allowed: bool
    prev_total: int
    new_total: int
    remaining: int
    retry_after: float | None  # 0 if allowed, None if it never will be
    reset_after: float

    def __bool__(self) -> bool:
        return self.allowed

    def is_allowed(self) -> bool:
        """Returns `allowed`, by the name that the original's document has for it."""
        return self.allowed


class BatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """A limiter's decision about a list of operations, by position: all of them or none."""

    allowed: bool
    retry_after: float | None
    results: list[LimitResult]

    def __bool__(self) -> bool:
        return self.allowed

    def is_allowed(self) -> bool:
        """Returns `allowed`, by the name that the original's document has for it."""
        return self.allowed

    def __iter__(self) -> Iterator[LimitResult]:
        return iter(self.results)

    @property
    def failed(self) -> dict[int, LimitResult]:
        """The results of denied operations, by position."""
        return {position: found for position, found in enumerate(self.results) if not found.allowed}

    @property
    def passed(self) -> dict[int, LimitResult]:
        """The results of allowed operations, by position. In a denied batch none is counted."""
        return {position: found for position, found in enumerate(self.results) if found.allowed}


class NamedBatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a batch of operations, by the names of their conditions."""

    allowed: bool
    retry_after: float | None
    results: dict[str, LimitResult]

    def __bool__(self) -> bool:
        return self.allowed

    def is_allowed(self) -> bool:
        """Returns `allowed`, by the name that the original's document has for it."""
        return self.allowed

    @property
    def failed(self) -> dict[str, LimitResult]:
        """The results of denied operations, by condition."""
        return {name: found for name, found in self.results.items() if not found.allowed}

    @property
    def passed(self) -> dict[str, LimitResult]:
        """The results of allowed operations, by condition. In a denied batch none is counted."""
        return {name: found for name, found in self.results.items() if found.allowed}
