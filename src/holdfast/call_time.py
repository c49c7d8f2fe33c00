"""Limits the processor time of one call.

It is for calls whose work is a product: each part has a bound, but many parts make a long call, for
which other writers or other large reads wait.
"""

from time import thread_time

from holdfast.errors import BatchTooLong
from holdfast.limits import MAX_BATCH_SECONDS

__all__ = ["CallTimer"]


class CallTimer:
    """Measures one call in CPU time of its thread: a busy machine does not make it fail."""

    __slots__ = ("_begin", "_hint", "_seconds", "_what")

    def __init__(self, what: str, hint: str, seconds: float = MAX_BATCH_SECONDS) -> None:
        self._what = what  # in the error message, such as "the reads"
        self._hint = hint
        self._seconds = seconds
        self._begin = thread_time()

    def check(self) -> None:
        """Raises `BatchTooLong` if the call has taken too long; to be called between its parts."""
        if thread_time() - self._begin > self._seconds:
            raise BatchTooLong(
                f"{self._what} took more than {self._seconds:g} seconds of processor time",
                hint=self._hint,
            )
