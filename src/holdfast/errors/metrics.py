"""Errors of metrics and rate limits."""

from typing import Any

from holdfast.errors.base import BadInput, HoldfastError, NotFound
from holdfast.errors.entities import BadKey, BadValue


class UnknownMetric(NotFound):
    """No metric of this name is defined under the prefix."""

    code = "unknown_metric"
    hint = "Add it to the specs of the writer or reader, or `define` it under this prefix."


class UnknownCondition(NotFound):
    """The limiter has no condition of this name."""

    code = "unknown_condition"
    hint = "Add it to `conditions`, or to the conditions that the limiter is created with."


class WrongMetricType(BadInput):
    """The metric has another type than the operation needs."""

    code, status = "wrong_type", 409
    hint = "A counter takes `incr`, a gauge `set` and `add`, a distribution `record`."


class BadMetricSpec(BadInput):
    """The spec of a metric is invalid."""

    code = "bad_spec"


class EmptyPrefix(BadInput):
    """A prefix is empty."""

    code = "empty_prefix"
    hint = "Give a string, or a list of at least one string, that names the caller."


class BadMetricKey(BadKey):
    """A prefix, a namespace or an entity can't be part of a metric's key."""

    hint = "Components of an entity are strings and integers; prefix and namespace are strings."


class BadMetricValue(BadValue):
    """The metric can't store this value."""


class MetricOverflow(BadInput):
    """A number would be too large for the 64 bits of a counter."""

    code = "overflow"
    hint = "Use smaller amounts, or give the metric a coarser resolution."


class BadRange(BadInput):
    """A time range, a step or another bound of a read is invalid or too large."""

    code = "bad_range"


class BadWindow(BadInput):
    """The window of a condition is not a valid length of time."""

    code = "bad_window"
    hint = "A window is a finite number of seconds above 0."


class BadLimit(BadInput):
    """A limit, an amount or a setting of a limiter is invalid."""

    code = "bad_limit"


class DuplicateCondition(BadInput):
    """A batch has two operations under one condition, but its results are keyed by condition."""

    code = "duplicate_condition"
    hint = "Use one batch for each, or pass a list of operations, whose results are in its order."


class SpecConflict(BadInput):
    """The spec contradicts the stored one, so stored numbers would be misread."""

    code, status = "spec_conflict", 409
    hint = "Use another name, or `on_conflict='discard'`, which deletes the stored numbers."


class LimitExceeded(HoldfastError):
    """A rate limit was reached; `result` says which one, and when to try again."""

    code, status = "limit_exceeded", 429
    facts = {"result": dict, "retry_after": float}  # noqa: RUF012  # nobody changes it
    hint = "Wait `retry_after` seconds and try again; None means that it would never be allowed."

    def __init__(self, message: str = "", result: Any = None, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result
        # Seconds; None if waiting does not help.
        self.retry_after: float | None = getattr(result, "retry_after", None)
