"""Errors of metrics and rate limits."""

from typing import Any

from holdfast.errors.base import BadInput, HoldfastError, NotFound
from holdfast.errors.entities import BadKey, BadValue


class UnknownMetric(NotFound):
    """No spec names this metric."""

    code = "unknown_metric"
    hint = "Name it in the specs of the writer or the reader, or `define` it under this prefix."


class UnknownCondition(NotFound):
    """The limiter has no condition of this name."""

    code = "unknown_condition"
    hint = "Name it in `conditions`, or give it to the limiter when it is made."


class WrongMetricType(BadInput):
    """The operation belongs to another type of metric."""

    code, status = "wrong_type", 409
    hint = "A counter takes `incr`, a gauge `set` and `add`, a distribution `record`."


class BadMetricSpec(BadInput):
    """A metric spec can't be what was meant."""

    code = "bad_spec"


class EmptyPrefix(BadInput):
    """A prefix without a component."""

    code = "empty_prefix"
    hint = "Give a string, or a list of at least one string, that names the caller."


class BadMetricKey(BadKey):
    """A prefix, a namespace or an entity that can't be part of a metric's key."""

    hint = "Components of an entity are strings and integers; prefix and namespace are strings."


class BadMetricValue(BadValue):
    """A number that this metric can't take."""


class MetricOverflow(BadInput):
    """A number too large to be counted exactly."""

    code = "overflow"
    hint = "Give the metric a coarser resolution."


class BadRange(BadInput):
    """A stretch of time, or another bound, that makes no sense."""

    code = "bad_range"


class BadWindow(BadInput):
    """The window of a condition is not a length of time."""

    code = "bad_window"
    hint = "A window is a finite number of seconds above 0."


class BadLimit(BadInput):
    """A limit, an amount or a setting of a limiter that makes no sense."""

    code = "bad_limit"


class DuplicateCondition(BadInput):
    """A batch names a condition twice, and its results are named by condition."""

    code = "duplicate_condition"
    hint = "Use one batch for each, or the list form, whose results go by position."


class SpecConflict(BadInput):
    """A spec contradicts what is stored, so stored numbers would be misread."""

    code, status = "spec_conflict", 409
    hint = "Use another name, or on_conflict='discard' to delete what is stored."


class LimitExceeded(HoldfastError):
    """A rate limit was reached. `result` tells which one and when to try again."""

    code, status = "limit_exceeded", 429
    facts = {"result": dict, "retry_after": float}  # noqa: RUF012  # nobody changes it
    hint = "Wait for the result's retry_after and try again."

    def __init__(self, message: str = "", result: Any = None, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result
        # Seconds; None if it never passes, however long one waits.
        self.retry_after: float | None = getattr(result, "retry_after", None)
