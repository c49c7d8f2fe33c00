"""A queue in front of each space: its transactions run one after the other, or together as a group.

Two processes may still want the same space at the same time; then the server lets one of them win.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.engine.group_commit import GroupCommit
from holdfast.engine.group_wait import GroupWait
from holdfast.errors import StoreUnusable


class _SpaceQueue:
    __slots__ = ("group_commit", "users")

    def __init__(self) -> None:
        self.group_commit = GroupCommit(GroupWait())
        self.users = 0


class SpaceQueues:
    """The queues of an engine. One that nobody uses is forgotten."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._lines: dict[bytes, _SpaceQueue] = {}
        self._inside: set[int] = set()  # threads that have joined a line
        self._closed: StoreUnusable | None = None

    @contextmanager
    def join(self, space: bytes, check: Callable[[], None]) -> Iterator[GroupCommit]:
        """Joins the queue of a space, for a thread that is in no other one."""
        self.refuse_inside(
            "a transaction was begun inside another one of the same store: "
            "use the transaction that the work was given"
        )
        check()
        thread = threading.get_ident()
        with self._changed:
            if self._closed is not None:
                raise self._closed.with_traceback(None)
            line = self._lines.get(space)
            if line is None:
                line = self._lines[space] = _SpaceQueue()
            line.users += 1
        try:
            self._inside.add(thread)
            yield line.group_commit
        finally:
            with self._changed:
                self._inside.discard(thread)
                line.users -= 1
                if line.users == 0:
                    del self._lines[space]
                    self._changed.notify_all()

    def refuse_inside(self, why: str) -> None:
        """Raises if this thread is in a line: it might wait for itself, for ever."""
        if threading.get_ident() in self._inside:
            raise RuntimeError(why)

    def close(self, reason: StoreUnusable) -> bool:
        """Admits no more threads, and returns when all have left; False if it was closed before."""
        self.refuse_inside("the store was closed inside one of its transactions: let it end first")
        with self._changed:
            first = self._closed is None
            self._closed = self._closed or reason
            self._changed.wait_for(lambda: not self._lines)
            return first
