"""Exceptions of signal handlers that come too late to undo a commit.

A signal handler may raise between any two steps: Python's own `KeyboardInterrupt`, `SystemExit` of
a handler that calls `sys.exit`, or the exception of a time limit. Mostly it does so right after a
long system call, such as the sync of a commit, and then the commit is done. So the remaining steps
are completed, and the exception is raised after them.
"""

from typing import Final, TypeAlias

Interrupt: TypeAlias = BaseException | None  # the exception to raise once the commit is complete

MAX_INTERRUPTS: Final = 10  # of one commit; a step that fails more often fails by itself


def is_of_system(error: BaseException) -> bool:
    """Returns whether the system has reported the error, and not a signal handler, which may well
    raise a `TimeoutError`.

    >>> is_of_system(OSError(5, "Input/output error")), is_of_system(TimeoutError("too slow"))
    (True, False)
    """
    return isinstance(error, OSError) and error.errno is not None
