"""The rounding of this layer, and the conversion of values to whole units of the resolution."""

import math
from typing import Any, Final

from holdfast.error_text import shown
from holdfast.errors import BadMetricValue, MetricOverflow
from holdfast.limits import MAX_UNITS

MAX_STORED: Final = 2**63 - 1  # what a counter holds, and therefore all else

_TENS: Final = tuple(float(10**exponent) for exponent in range(16))


def round15(number: float) -> int:
    """Rounds half away from zero, also a double that is not exactly a half because of its
    representation.

    >>> round15(2.5), round15(-2.5), round15(2.4999), round15(0.285 / 0.01)
    (3, -3, 2, 29)
    """
    if type(number) is int:
        return number
    size = abs(number)
    if 1 <= size < 1e14:
        tens = _TENS[14 - math.floor(math.log10(size))]
        size = math.floor(size * tens + 0.5) / tens
    if size < 1e15:
        size = math.floor(size + 0.5)
    return int(size) if number >= 0 else -int(size)


def units_of(value: Any, resolution: float, *, signed: bool = False) -> int:
    """Returns `value` in whole units of `resolution`; raises for a negative one unless `signed`.

    >>> units_of(25, 0.01), units_of(14, 10), units_of(-1.5, 0.5, signed=True)
    (2500, 1, -3)
    """
    if type(value) is not int or resolution != 1:
        check_number(value)
    if value < 0 and not signed:
        raise BadMetricValue(
            f"a counter got {shown(value)}, and counters only go up",
            hint="Use a gauge for what rises and falls.",
        )
    try:
        units: int = (
            value if resolution == 1 and type(value) is int else round15(value / resolution)
        )
    except OverflowError:
        units = MAX_UNITS + 1
    if not -MAX_UNITS <= units <= MAX_UNITS:
        raise MetricOverflow(
            f"{value!r} at resolution {resolution} is more than {MAX_UNITS} units in one call"
        )
    return units


def check_number(value: Any) -> None:
    """Raises for anything but a finite number; text is refused even if it looks like a number."""
    if type(value) is bool or not isinstance(value, int | float):
        raise BadMetricValue(f"a value must be a number, not {shown(value)}")
    try:
        finite = math.isfinite(value)
    except OverflowError:
        raise MetricOverflow("a value has at most 308 digits") from None
    if not finite:
        raise BadMetricValue(f"a value must be a finite number, not {shown(value)}")


def check_count(count: Any) -> None:
    """Raises unless `count` is a possible number of occurrences: an integer, 1 or more."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise BadMetricValue(f"count must be an integer, 1 or more, not {shown(count)}")
    if count > MAX_UNITS:
        raise MetricOverflow(f"count must be at most {MAX_UNITS} in one call")


def check_stored(name: str, *numbers: int) -> None:
    """Raises if a sum or a count has grown beyond the 64 bits that are stored."""
    for number in numbers:
        if not -MAX_STORED - 1 <= number <= MAX_STORED:
            raise MetricOverflow(f"{name!r} would exceed the 64 bits of a stored number")


def scaled(units: float, resolution: float) -> int | float:
    """Returns units as a value: an integer if the resolution was written as one, else a float."""
    rounded = round15(units)
    return rounded * resolution if isinstance(resolution, int) else float(rounded) * resolution
