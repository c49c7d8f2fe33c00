"""One view for all reads of a turn of the event loop.

Opening a view, and the layers on it, takes as long as most reads. So the reads of one turn share a
view as long as nobody commits: each sees what its own view would show. A read that turns out to be
too large for the loop is abandoned with `TooLong`; its caller runs it again in a thread.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from holdfast.limits import MAX_READ_ON_LOOP_BYTES
from holdfast.store import Space, View, short_view


class _Uncounted:
    """Replaces the counter of a view whose engine does not count what is read."""

    left = 0


class _OpenView(NamedTuple):
    space: Space
    is_current: Callable[[], bool] | None  # None if the engine can't tell
    view: View
    counted: Any  # has the bytes that a read may still read, as `left`
    opened: AbstractContextManager[View]


class TurnView:
    """The view of the current turn, if something was read in it. Lives on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: _OpenView | None = None
        self._ends_soon = False

    def of(self, space: Space) -> View:
        """Returns a view that shows all commits before this call."""
        if self._open is not None:
            known, is_current, view, counted, _ = self._open
            if known is space and is_current is not None and is_current():
                counted.left = MAX_READ_ON_LOOP_BYTES
                return view
            self.end()
        opened = short_view(space)
        view = opened.__enter__()
        reader: Any = view.raw
        counted = reader if hasattr(reader, "left") else _Uncounted()
        self._open = _OpenView(space, getattr(opened, "is_current", None), view, counted, opened)
        if not self._ends_soon:
            self._ends_soon = True
            self._loop.call_soon(self._end_turn)
        return view

    def _end_turn(self) -> None:
        self._ends_soon = False
        self.end()

    def end(self) -> None:
        """Closes the view: while it is open, its pages can't be reused."""
        if self._open is not None:
            (*_, opened), self._open = self._open, None
            opened.__exit__(None, None, None)
