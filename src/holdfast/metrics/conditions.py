"""Conditions of a limiter: limit, window and burst, parsed, checked and compiled."""

import math
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from holdfast.bounded_cache import BoundedCache, BoundedDict, of_spaces
from holdfast.error_text import did_you_mean, shown
from holdfast.errors import BadLimit, BadWindow, KeyTooLong, UnknownCondition
from holdfast.keys import pack_int
from holdfast.limits import (
    MAX_BUCKET_COUNT,
    MAX_CACHED_KEY_BYTES,
    MAX_CONDITION_LETTERS,
    MAX_KEY_BYTES,
    MAX_LIMIT,
    MAX_LOG_LIMIT,
    MAX_SECONDS,
    MAX_SUMMARIZED_BUCKETS,
    MIN_TIME_STEP,
)
from holdfast.metrics.gcra import interval_of, rate_of
from holdfast.metrics.layout import ARRIVAL_TIMES, LOGS, WINDOW_SUMMARIES, Keys
from holdfast.metrics.records import (
    COUNTER,
    Metric,
    Number,
    Sequence,
    StoredSpec,
    Window,
    encode_spec,
)
from holdfast.metrics.specs import is_positive

Algorithm: TypeAlias = Literal["estimate", "strict", "log", "gcra", "token_bucket"]

ALGORITHMS: Final = ("estimate", "strict", "log", "gcra", "token_bucket")
WITH_BUCKETS: Final = ("estimate", "strict")
WITH_BURST: Final = ("gcra", "token_bucket")
BUCKET_COUNT: Final = 30

_UNITS: Final = {
    "s": 1, "sec": 1, "second": 1,
    "m": 60, "min": 60, "minute": 60,
    "h": 3600, "hr": 3600, "hour": 3600,
    "d": 86400, "day": 86400,
    "w": 604800, "week": 604800,
}  # fmt: skip
_NOTATION: Final = re.compile(
    r"\s*+(?P<limit>\d++)\s*+(?:/|\bper\b)\s*+(?P<count>\d++(?:\.\d++)?+)?+\s*+"
    r"(?P<unit>[a-z]+?)s?(?:\s++burst\s++(?P<burst>\d++))?+\s*+",
    re.IGNORECASE,
)


class LimitCondition(msgspec.Struct, frozen=True, omit_defaults=True):
    """At most `limit` in `window` seconds; `burst` is the capacity of GCRA and token bucket.

    >>> LimitCondition(4.9, 60).limit, LimitCondition(10, 60).per_second()
    (4, 0.16666666666666666)
    """

    limit: int
    window: Number
    burst: int | None = None

    def __post_init__(self) -> None:
        # The fraction is dropped and text is read, as the original does.
        msgspec.structs.force_setattr(self, "limit", _checked_limit(self.limit))
        if not is_positive(self.window):
            raise BadWindow(f"the window is {shown(self.window)}")
        if self.window > MAX_SECONDS:
            raise BadWindow(
                f"the window is {self.window}, at most {MAX_SECONDS:.0f} seconds are allowed"
            )
        if self.burst is not None and (
            not _is_whole(self.burst) or not 1 <= self.burst <= MAX_LIMIT
        ):
            raise BadLimit(
                f"`burst` must be an integer from 1 to {MAX_LIMIT}, not {shown(self.burst)}"
            )
        if self.burst is not None and self.limit == 0:
            raise BadLimit("a limit of 0 lets nothing in, so it has no burst")

    def per_second(self) -> float:
        """Returns the rate that the condition allows, for comparing conditions."""
        return self.limit / self.window

    @classmethod
    def parse(cls, text: str) -> "LimitCondition":
        """Reads a condition as people write it.

        >>> LimitCondition.parse("10/minute") == LimitCondition(10, 60)
        True
        >>> LimitCondition.parse("5 per 2 seconds").window
        2
        >>> LimitCondition.parse("1000/s burst 2000").burst
        2000
        """
        is_short = isinstance(text, str) and len(text) <= MAX_CONDITION_LETTERS
        found = _NOTATION.fullmatch(text) if is_short else None
        unit = _UNITS.get(found["unit"].lower()) if found else None
        if found is None or unit is None:
            raise BadLimit(
                f"{text!r} is not a condition",
                hint="Write '10/minute', '5 per 2 seconds' or '1000/s burst 2000'.",
            )
        count = float(found["count"] or 1)
        window = count * unit
        burst = int(found["burst"]) if found["burst"] else None
        return cls(int(found["limit"]), int(window) if window.is_integer() else window, burst)


ConditionLike: TypeAlias = LimitCondition | str | Mapping[str, Any]


class CompiledCondition(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A condition with all that a check needs, computed once. It compares by identity."""

    name: str
    limit: int
    window: Number
    step: float
    capacity: int  # of GCRA and token bucket, as are the next three: see gcra.py
    rate: int
    interval: int
    stored_rate: bytes
    metric: Metric
    window_spec: Window
    algorithm: str
    stored: bytes  # the spec, as the limiter itself stores it
    is_strict: bool
    is_summarized: bool  # whether one record summarizes its counters


class ConditionKeys:
    """A condition under a prefix: its keys, computed once."""

    __slots__ = (
        "arrival_times",
        "bucket",
        "condition",
        "logs",
        "prefix_keys",
        "spec",
        "stem",
        "summaries",
    )

    def __init__(self, keys: Keys, condition: CompiledCondition) -> None:
        self.prefix_keys: Final = keys
        self.condition: Final = condition
        self.spec: Final = keys.spec(condition.name)
        self.stem: Final = keys.sequence(condition.name, "")
        # The beginning of an entity's keys; its suffix follows.
        self.summaries: Final = keys.entity_key(WINDOW_SUMMARIES, condition.name, b"")
        self.arrival_times: Final = keys.entity_key(ARRIVAL_TIMES, condition.name, b"")
        self.logs: Final = keys.entity_key(LOGS, condition.name, b"")
        self.bucket = (-1, b"")  # the bucket of the last call, mostly that of the next one too

    def stem_of(self, number: int) -> bytes:
        """Returns the beginning of the keys of a bucket's counters."""
        known, stem = self.bucket
        if known != number:
            stem = self.stem + pack_int(number)
            self.bucket = (number, stem)
        return stem


def _condition_keys(arguments: tuple[Keys, CompiledCondition]) -> ConditionKeys:
    return ConditionKeys(*arguments)


# By the keys of a prefix and the condition.
condition_keys: Final = of_spaces(
    BoundedCache(_condition_keys, entries=1_024, size_of=lambda key: len(key[0].spec(key[1].name)))
)


class LimiterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a limiter under one algorithm."""

    conditions: dict[str, CompiledCondition]
    algorithm: str
    bucket_count: int

    def find(self, name: str) -> CompiledCondition:
        found = self.conditions.get(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownCondition(
                f"unknown condition {name!r}{did_you_mean(name, self.conditions)}"
            )
        return found


Conditions: TypeAlias = Mapping[str, ConditionLike] | LimiterPlan


def make_plan(
    conditions: Conditions, bucket_count: int = BUCKET_COUNT, algorithm: str = "estimate"
) -> LimiterPlan:
    """Returns the plan of `conditions`; a plan is returned unchanged, so that it is made once."""
    if isinstance(conditions, LimiterPlan):
        return conditions
    if type(conditions) is not dict:
        return _make_plan(conditions, bucket_count, algorithm)
    # Requests mostly repeat the same conditions.
    try:
        asked = _encode((conditions, bucket_count, algorithm))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        # Raises the error that says what is wrong.
        return _make_plan(conditions, bucket_count, algorithm)
    plan = _plans.get(asked)
    if plan is None:
        plan = _make_plan(conditions, bucket_count, algorithm)
        if len(asked) <= MAX_CACHED_KEY_BYTES:
            _plans.keep(asked, plan, len(asked))
    return plan


def _make_plan(conditions: Any, bucket_count: int, algorithm: str) -> LimiterPlan:
    if algorithm not in ALGORITHMS:
        raise BadLimit(
            f"unknown algorithm {algorithm!r}{did_you_mean(algorithm, ALGORITHMS)}",
            hint=f"There are {', '.join(ALGORITHMS)}.",
        )
    if not _is_whole(bucket_count) or not 1 <= bucket_count <= MAX_BUCKET_COUNT:
        raise BadLimit(
            f"bucket_count must be an integer from 1 to {MAX_BUCKET_COUNT}, "
            f"not {shown(bucket_count)}"
        )
    if not isinstance(conditions, Mapping):
        raise BadLimit(f"conditions must be a map from name to condition, not {shown(conditions)}")
    compiled = {
        name: _compiled(name, as_condition(given), bucket_count, algorithm)
        for name, given in conditions.items()
    }
    return LimiterPlan(conditions=compiled, algorithm=algorithm, bucket_count=bucket_count)


def as_condition(given: Any) -> LimitCondition:
    """Returns the condition that an object of fields or a text such as `10/minute` describes."""
    if isinstance(given, LimitCondition):
        return given
    if isinstance(given, str):
        return LimitCondition.parse(given)
    if not isinstance(given, Mapping):
        raise BadLimit(f"a condition must have `limit` and `window`, not {shown(given)}")
    for field in given:
        if field not in LimitCondition.__struct_fields__:
            known = did_you_mean(field, LimitCondition.__struct_fields__)
            raise BadLimit(f"a condition has the unknown field {field!r}{known}")
    if "limit" not in given:
        raise BadLimit("a condition has no limit")
    if "window" not in given:
        raise BadWindow("a condition has no window")
    return LimitCondition(given["limit"], given["window"], given.get("burst"))


def check_amount(amount: Any) -> int:
    if type(amount) is int and amount >= 0:
        return amount
    if not _is_whole(amount) or amount < 0:
        raise BadLimit(f"an amount must be an integer, 0 or more, not {shown(amount)}")
    return int(amount)


def _compiled(
    name: Any, condition: LimitCondition, bucket_count: int, algorithm: str
) -> CompiledCondition:
    if not isinstance(name, str) or not name:
        raise BadLimit(f"a condition's name must be a non-empty string, not {name!r}")
    # 60 and 60.0 are equal, but results show the window as it was given.
    return _compiled_conditions[
        name, condition, bucket_count, algorithm, type(condition.window).__name__
    ]


def _compile(asked: tuple[str, LimitCondition, int, str, str]) -> CompiledCondition:
    name, condition, bucket_count, algorithm, _ = asked
    if len(name) > MAX_KEY_BYTES:  # before it is packed into a dozen keys
        raise KeyTooLong(f"a condition's name has {len(name)} characters, no key is so long")
    step = condition.window / bucket_count
    if algorithm in WITH_BUCKETS and step < MIN_TIME_STEP:
        raise BadLimit(
            f"{name!r} has buckets of {step} seconds, at least {MIN_TIME_STEP} are needed",
            hint="Use fewer buckets, or algorithm='gcra'.",
        )
    if condition.burst is not None and algorithm not in WITH_BURST:
        raise BadLimit(f"{name!r} has a burst, and algorithm {algorithm!r} takes none")
    if algorithm == "log" and condition.limit > MAX_LOG_LIMIT:
        raise BadLimit(
            f"{name!r} has the limit {condition.limit}, the log keeps at most {MAX_LOG_LIMIT}",
            hint="Use algorithm='strict', whose cost does not grow with the limit.",
        )
    hard = math.ceil(condition.window + step)
    sequence = Sequence(name="", time_step=step, soft_expiry=condition.window, hard_expiry=hard)
    metric = Metric(type=COUNTER, resolution=1, sequences=(sequence,))
    window_spec = Window(condition.window, bucket_count)
    rate = rate_of(condition.limit)
    return CompiledCondition(
        name=name,
        limit=condition.limit,
        window=condition.window,
        step=step,
        capacity=condition.limit if condition.burst is None else condition.burst,
        rate=rate,
        interval=interval_of(condition.window),
        stored_rate=b"%d" % rate,
        metric=metric,
        window_spec=window_spec,
        algorithm=algorithm,
        stored=encode_spec(StoredSpec(metric=metric, window=window_spec)),
        is_strict=algorithm == "strict",
        is_summarized=algorithm in WITH_BUCKETS and bucket_count <= MAX_SUMMARIZED_BUCKETS,
    )


_compiled_conditions: Final = BoundedCache(_compile, entries=1_024)
# By what was asked, as JSON: 60 is not 60.0 there.
_plans: Final[BoundedDict[bytes, LimiterPlan]] = BoundedDict(entries=1_024)
_encode: Final = msgspec.json.Encoder().encode


def _checked_limit(given: Any) -> int:
    try:
        number = float(given) if isinstance(given, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if isinstance(given, bool) or not 0 <= number < math.inf:
        raise BadLimit(f"a limit must be a number, 0 or more, not {shown(given)}")
    limit = given if isinstance(given, int) else int(number)
    if limit > MAX_LIMIT:
        raise BadLimit(f"a limit must be at most {MAX_LIMIT}, not {shown(given)}")
    return limit


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
