"""`throttle`: GCRA with plain arguments, as the clients of redis-cell know it."""

import math
from typing import Any

from holdfast.engine.contract import Transaction
from holdfast.errors import BadLimit
from holdfast.metrics.cells import Cell
from holdfast.metrics.entity import LocalEntityKey, suffix_of
from holdfast.metrics.layout import Keys, throttle_key


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
    """The five integers of redis-cell. Reads 1 key, writes 1."""
    _check("max_burst", max_burst, 0)
    _check("count", count, 1)
    _check("period", period, 1)
    _check("quantity", quantity, 0)
    place = throttle_key(keys, suffix_of(LocalEntityKey([key]), namespace))
    cell = Cell(tx, place, count, period, max_burst + 1, now)
    allowed = cell.admits(quantity)
    wait = -1
    if allowed:
        cell.charge(tx, quantity)
    else:
        retry = cell.retry_after(quantity)
        wait = -1 if retry is None else math.ceil(retry)
    counted = quantity if allowed else 0
    return [
        0 if allowed else 1,
        cell.limit,
        cell.remaining(counted),
        wait,
        math.ceil(cell.reset_after()),
    ]


def _check(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadLimit(f"`{name}` is an integer, {least} or more, not {value!r}")
