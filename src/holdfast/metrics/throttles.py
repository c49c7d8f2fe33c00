"""`throttle`: GCRA with the arguments and the reply of redis-cell."""

import math
from typing import Any

from holdfast.engine.contract import Transaction
from holdfast.error_text import shown
from holdfast.errors import BadLimit
from holdfast.limits import MAX_LIMIT, MAX_SECONDS
from holdfast.metrics.entity import LocalEntityKey, suffix_of
from holdfast.metrics.gcra import GcraState
from holdfast.metrics.layout import Keys, throttle_key
from holdfast.metrics.rounding import MAX_STORED


def throttle(
    tx: Transaction,
    keys: Keys,
    namespace: str,
    now: float,
    key: Any,
    max_burst: Any,
    count: Any,
    period: Any,
    quantity: Any,
) -> list[int]:
    """Returns the five integers of redis-cell. Reads 1 key, writes 1."""
    _check("max_burst", max_burst, 0, MAX_LIMIT - 1)
    _check("count", count, 1, MAX_LIMIT)
    _check("period", period, 1, int(MAX_SECONDS))
    _check("quantity", quantity, 0, MAX_LIMIT)
    stored_at = throttle_key(keys, suffix_of(LocalEntityKey([key]), namespace))
    state = GcraState(stored_at, count, period, max_burst + 1, now, tx.get(stored_at))
    allowed = state.admits(quantity)
    wait = -1
    if allowed:
        state.charge(tx, quantity)
    else:
        retry = state.retry_after(quantity)
        wait = -1 if retry is None else _whole(retry)
    counted = quantity if allowed else 0
    return [
        0 if allowed else 1,
        state.limit,
        state.remaining(counted),
        wait,
        _whole(state.reset_after()),
    ]


def _whole(seconds: float) -> int:
    """Returns whole seconds, rounded up, within the 64 bits of a reply."""
    return min(math.ceil(seconds), MAX_STORED)


def _check(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadLimit(f"`{name}` must be an integer from {least} to {most}, not {shown(value)}")
