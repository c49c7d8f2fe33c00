"""Exceptions of signal handlers that come too late to undo a commit.

A signal handler may raise between any two steps: Python's own `KeyboardInterrupt`, `SystemExit` of
a handler that calls `sys.exit`, or the exception of a time limit. Mostly it does so right after a
long system call, such as the sync of a commit, and then the commit is done. So the remaining steps
are completed, and the exception is raised after them.
"""

import threading
from inspect import CO_VARARGS
from types import FrameType
from typing import Any, Final, TypeAlias

Interrupt: TypeAlias = BaseException | None  # the exception to raise once the commit is complete

MAX_INTERRUPTS: Final = 10  # of one commit; a step that fails more often fails by itself


def is_of_system(error: BaseException) -> bool:
    """Returns whether the system has reported the error, and not a signal handler, which may well
    raise a `TimeoutError`.

    >>> is_of_system(OSError(5, "Input/output error")), is_of_system(TimeoutError("too slow"))
    (True, False)
    """
    return isinstance(error, OSError) and error.errno is not None


def is_of_handler(error: BaseException) -> bool:
    """Returns whether a signal handler has raised the error, into the work that ran at that moment.

    Python passes a handler the frame that it has interrupted, which is also the frame that calls
    it. No other function is given its caller's frame.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return False  # Python runs the handlers in the main thread
    traceback = error.__traceback__
    while traceback is not None and (called := traceback.tb_next) is not None:
        if any(each is traceback.tb_frame for each in _arguments(called.tb_frame)):
            return True
        traceback = called
    return False


def _arguments(frame: FrameType) -> list[Any]:
    code = frame.f_code
    count = code.co_argcount
    values = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    if code.co_flags & CO_VARARGS:
        several = frame.f_locals.get(code.co_varnames[count + code.co_kwonlyargcount])
        values += several if isinstance(several, tuple) else ()
    return values
