"""Errors that were reported hold no memory.

An error holds the frames through which it was raised, with the arguments of its call, and these the
frames of their callers: for a write, its whole group with the arguments of all other calls, and the
outcomes, which hold the error. Only the collector ends such a circle, and a server lets it look at
all objects as rarely as it can (see `memory.py`). So an error that is done with is taken apart.
"""


def forget_frames(error: BaseException | None) -> None:
    """Forgets where an error, and those that led to it, were raised."""
    while error is not None:
        error.__traceback__ = error.__cause__ = None
        error.__context__, error = None, error.__context__
