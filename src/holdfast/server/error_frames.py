"""Releases the memory that reported errors hold.

An error refers to the frames through which it was raised, with the arguments of its call, and these
to the frames of their callers: for a write, its whole group with the arguments of all other calls,
and the outcomes, which refer to the error. Only the garbage collector frees such a cycle, and a
server runs it over all objects as rarely as it can (see `memory.py`). So once an error has been
reported, its frames are removed from it.
"""


def forget_frames(error: BaseException | None) -> None:
    """Removes the frames from an error, and from those that caused it."""
    while error is not None:
        error.__traceback__ = error.__cause__ = None
        error.__context__, error = None, error.__context__
