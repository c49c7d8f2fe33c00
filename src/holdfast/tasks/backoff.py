"""Backoffs: how long a job waits before its next attempt.

A backoff is any function `(attempt, error) -> seconds`, where the first attempt that failed is 1.
"""

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

from holdfast.errors import BadTask

__all__ = ["Backoff", "backoff_of", "exponential", "fixed"]

Backoff: TypeAlias = Callable[[int, BaseException], float]


def fixed(seconds: float) -> Backoff:
    """Returns a backoff that always waits `seconds`.

    >>> fixed(5)(3, OSError())
    5
    """
    return lambda attempt, error: seconds


def exponential(
    first: float = 1, most: float = 300, *, factor: float = 2, jitter: float = 0.1
) -> Backoff:
    """Returns a backoff that waits `first` seconds, then `factor` times as long, up to `most`.

    Each wait is randomly longer or shorter, by up to the fraction `jitter`, so that jobs that
    failed together don't come back together.

    >>> wait = exponential(first=1, most=60, jitter=0)
    >>> [wait(attempt, OSError()) for attempt in (1, 2, 3, 50)]
    [1.0, 2.0, 4.0, 60.0]
    """

    def seconds(attempt: int, error: BaseException) -> float:
        steps = min(attempt - 1, 1_000)  # a float holds no more
        try:
            wait = min(first * float(factor) ** steps, float(most))
        except OverflowError:
            wait = float(most)
        return wait * (1 + random.uniform(-jitter, jitter))

    return seconds


def backoff_of(given: Backoff | Sequence[float] | float) -> Backoff:
    """Returns the backoff that a task was given: a function, seconds, or a sequence of seconds.

    When a sequence is used up, its last element is used again.

    >>> wait = backoff_of([1, 10])
    >>> [wait(attempt, OSError()) for attempt in (1, 2, 3)]
    [1, 10, 10]
    """
    if callable(given):
        return given
    if isinstance(given, int | float):
        return fixed(given)
    waits = tuple(given)
    if not waits or not all(isinstance(wait, int | float) and wait >= 0 for wait in waits):
        raise BadTask(f"a backoff must be a function or seconds, not {given!r:.100}")
    return lambda attempt, error: waits[min(attempt, len(waits)) - 1]
