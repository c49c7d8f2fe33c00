"""One view for all reads of a turn of the event loop.

Opening a view, and the layers on it, takes as long as most reads. So the reads of one turn share a
view as long as nobody commits: each sees what its own view would show.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from holdfast.store import Space, View


class _OpenView(NamedTuple):
    space: Space
    is_current: Callable[[], bool] | None  # None if the engine can't tell
    view: View
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
            known, is_current, view, _ = self._open
            if known is space and is_current is not None and is_current():
                return view
            self.end()
        opened = space.view()
        view = opened.__enter__()
        self._open = _OpenView(space, getattr(opened, "is_current", None), view, opened)
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
