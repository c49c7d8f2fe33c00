"""The layer's own errors for arguments of the wrong type.

The server decodes arguments by their types, so it notices a wrong one before the layer does. It
raises the error that the layer would raise, so that a call fails in the same way everywhere.
"""

from typing import Final

from holdfast.errors import (
    BadLimit,
    BadMetricKey,
    BadMetricSpec,
    BadMetricValue,
    BadRange,
    HoldfastError,
    MetricOverflow,
    UnknownMetric,
    WrongMetricType,
)

_BY_ARGUMENT: Final[dict[str, type[HoldfastError]]] = {
    **dict.fromkeys(("entity", "entities[]", "prefix", "namespace", "key"), BadMetricKey),
    **dict.fromkeys(("value", "delta", "count"), BadMetricValue),
    **dict.fromkeys(("at", "latest", "start", "end", "future", "step"), BadRange),
    **dict.fromkeys(("limit", "n", "scope", "quantiles[]"), BadRange),
    **dict.fromkeys(("operations[]", "conditions", "bucket_count", "algorithm"), BadLimit),
    **dict.fromkeys(("max_burst", "period", "quantity"), BadLimit),
    **dict.fromkeys(("metric", "metrics[]"), UnknownMetric),
    "specs": BadMetricSpec,
    "throttle.count": BadLimit,
    "series.value": WrongMetricType,
}


def error_for_argument(
    operation: str, argument: str, *, is_beyond: bool
) -> type[HoldfastError] | None:
    """Returns the error for an argument, or an element of it (`operations[]`), of a wrong type.

    `is_beyond` is a number of more than 64 bits.
    """
    by_argument = _BY_ARGUMENT.get(argument)
    found = _BY_ARGUMENT.get(f"{operation}.{argument}", by_argument)
    return MetricOverflow if is_beyond and found is BadMetricValue else found
