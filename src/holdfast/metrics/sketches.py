"""DDSketch: quantiles within a relative accuracy, from counts by bin that merge without loss.

Bin k holds the values from gamma^(k - 1) to gamma^k; nothing here touches a store.
"""

import math
from collections.abc import Iterable

from holdfast.call_time import CallTimer
from holdfast.error_text import shown
from holdfast.errors import BadRange
from holdfast.metrics.records import SketchCell

_SMALLEST = 2.3e-308  # below, a double loses digits, and the value counts as zero

EMPTY = SketchCell(0, 0.0, math.inf, -math.inf)


def bin_of(value: float, accuracy: float) -> int:
    """Returns the bin of a value above 0.

    >>> [bin_of(value, 0.01) for value in (50, 90, 95, 99)]
    [196, 225, 228, 230]
    """
    return math.ceil(math.log(value) / math.log(_gamma(accuracy)))


def value_of(bin_number: int, accuracy: float) -> float:
    """Returns the value that represents a bin: all values in it are within `accuracy`."""
    gamma = _gamma(accuracy)
    try:
        return 2 * (float(gamma**bin_number) / (gamma + 1))  # doubled last: it might not fit
    except OverflowError:
        return math.inf  # the bin of the largest doubles; `quantile` limits it to the highest value


def with_value(
    cell: SketchCell, value: float, count: int, accuracy: float, max_bins: int
) -> SketchCell:
    """Returns `cell` with `count` more occurrences of `value`."""
    zeros, positive, negative = cell.zeros, cell.positive, cell.negative
    if abs(value) < _SMALLEST:
        zeros += count
    elif value > 0:
        positive = _added(positive, {bin_of(value, accuracy): count}, max_bins)
    else:
        negative = _added(negative, {bin_of(-value, accuracy): count}, max_bins)
    return SketchCell(
        cell.count + count,
        cell.sum + value * count,
        min(cell.min, value),
        max(cell.max, value),
        zeros,
        positive,
        negative,
    )


def merged(
    cells: Iterable[SketchCell], max_bins: int, timer: CallTimer | None = None
) -> SketchCell:
    """Returns one sketch of all values of `cells`."""
    found = EMPTY
    positive: dict[int, int] = {}
    negative: dict[int, int] = {}
    for cell in cells:
        _add(positive, cell.positive, max_bins)
        _add(negative, cell.negative, max_bins)
        found = SketchCell(
            found.count + cell.count,
            found.sum + cell.sum,
            min(found.min, cell.min),
            max(found.max, cell.max),
            found.zeros + cell.zeros,
            positive,
            negative,
        )
        if timer is not None:
            timer.check()
    return found


def quantile(cell: SketchCell, q: float, accuracy: float) -> float | None:
    """Returns the value at rank floor(q * (count - 1)), within `accuracy`; None if it is empty.

    The lowest and the highest are exact.
    """
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
        raise BadRange(f"a quantile must be a number from 0 to 1, not {shown(q)}")
    if cell.count == 0:
        return None
    if q in (0, 1):
        return cell.max if q else cell.min
    rank = q * (cell.count - 1)
    return min(max(_at_rank(cell, rank, accuracy), cell.min), cell.max)


def _at_rank(cell: SketchCell, rank: float, accuracy: float) -> float:
    seen = 0
    for number in sorted(cell.negative, reverse=True):
        seen += cell.negative[number]
        if seen > rank:
            return -value_of(number, accuracy)
    seen += cell.zeros
    if seen > rank:
        return 0.0
    for number in sorted(cell.positive):
        seen += cell.positive[number]
        if seen > rank:
            return value_of(number, accuracy)
    return cell.max


def _added(bins: dict[int, int], more: dict[int, int], max_bins: int) -> dict[int, int]:
    found = dict(bins)
    _add(found, more, max_bins)
    return found


def _add(found: dict[int, int], more: dict[int, int], max_bins: int) -> None:
    """Adds the counts of `more` to `found`, which a merge of many sketches copies only once."""
    for number, count in more.items():
        found[number] = found.get(number, 0) + count
    if len(found) > max_bins:
        numbers = sorted(found)
        kept = len(found) - max_bins
        for number in numbers[:kept]:  # the lowest bins are merged, and lose accuracy, first
            found[numbers[kept]] += found.pop(number)


def _gamma(accuracy: float) -> float:
    return (1 + accuracy) / (1 - accuracy)
