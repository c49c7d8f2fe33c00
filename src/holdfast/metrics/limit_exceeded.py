"""The error of a limit that was reached: which limit it is, and when to try again."""

from collections.abc import Iterable

from holdfast.errors import LimitExceeded
from holdfast.metrics.records import BatchResult, LimitResult, NamedBatchResult


def exceeded(
    result: LimitResult | BatchResult | NamedBatchResult, failed: Iterable[LimitResult]
) -> LimitExceeded:
    """Returns the error that says which of the limits refused, and carries the whole result."""
    reasons = "; ".join(
        f"{each.condition!r} allows {each.limit} in {each.window:g} seconds, "
        f"{each.prev_total} counted so far and {each.amount} more asked for"
        for each in failed
    )
    return LimitExceeded(reasons, result, hint=_hint(result.retry_after))


def _hint(retry_after: float | None) -> str:
    if retry_after is None:
        return "It asks for more than the limit ever allows: ask for less, or raise the limit."
    return f"Nothing was counted. Try again in {retry_after:g} seconds."
