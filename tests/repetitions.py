"""The number of repetitions of random tests: a few, or many with `--full`."""

import os
from typing import Final

VARIABLE: Final = "HOLDFAST_TEST_FULL"  # set by `--full`, for the workers of pytest-xdist too


def repeated(few: int, *, full: int) -> int:
    """Returns the number for this run of the tests."""
    return full if os.environ.get(VARIABLE) else few
