"""A queue in front of each space: its transactions run one after the other, or together as a group.

Two processes may still want the same space at the same time; then the server lets one of them win.
"""

import threading
from collections.abc import Callable
from typing import Final

from holdfast.engine.group_commit import GroupCommit
from holdfast.engine.group_wait import GroupWait
from holdfast.errors import StoreUnusable

_MAX_IDLE_QUEUES: Final = 64  # that are kept, as spaces are mostly used again


class _SpaceQueue:
    """The queue of one space, and how many threads have joined it."""

    __slots__ = ("group_commit", "users")

    def __init__(self) -> None:
        self.group_commit = GroupCommit(GroupWait())
        self.users = 0


class SpaceQueues:
    """The queues of an engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._emptied = threading.Condition(self._lock)
        self._queues: dict[bytes, _SpaceQueue] = {}
        self._threads_inside: set[int] = set()  # threads that have joined a queue
        self._closed: StoreUnusable | None = None

    def join(self, space: bytes, check: Callable[[], None]) -> "_QueueEntry":
        """Joins the queue of a space for a `with` block; the thread must not be in another one."""
        if threading.get_ident() in self._threads_inside:
            self.refuse_nested(
                "a transaction was begun inside another one of the same store: "
                "use the transaction that the work was given"
            )
        check()
        return _QueueEntry(self, space)

    def enter(self, entry: "_QueueEntry") -> GroupCommit:
        with self._lock:
            if self._closed is not None:
                raise self._closed.with_traceback(None)
            queue = self._queues.get(entry.space)
            if queue is None:
                queue = self._new_queue(entry.space)
            entry.queue = queue
            queue.users += 1
        self._threads_inside.add(threading.get_ident())
        return queue.group_commit

    def _new_queue(self, space: bytes) -> _SpaceQueue:
        """Adds a queue; the lock must be held."""
        if len(self._queues) > _MAX_IDLE_QUEUES:
            self._queues = {name: queue for name, queue in self._queues.items() if queue.users}
        queue = self._queues[space] = _SpaceQueue()
        return queue

    def leave(self, entry: "_QueueEntry") -> None:
        queue, entry.queue = entry.queue, None
        with self._lock:
            self._threads_inside.discard(threading.get_ident())
            if queue is not None:
                queue.users -= 1
                if self._closed is not None:
                    self._emptied.notify_all()

    def refuse_nested(self, why: str) -> None:
        """Raises if this thread is in a queue: it might wait for itself for ever."""
        if threading.get_ident() in self._threads_inside:
            raise RuntimeError(why)

    def close(self, reason: StoreUnusable) -> bool:
        """Admits no more threads, and returns when all have left; False if it was closed before."""
        self.refuse_nested("the store was closed inside one of its transactions: let it end first")
        with self._lock:
            first = self._closed is None
            self._closed = self._closed or reason
            self._emptied.wait_for(lambda: not any(each.users for each in self._queues.values()))
            return first


class _QueueEntry:
    """The entry of a thread in a queue. A class, because a generator-based context manager would
    cost as much as everything that is done here."""

    __slots__ = ("_queues", "queue", "space")

    def __init__(self, queues: SpaceQueues, space: bytes) -> None:
        self._queues = queues
        self.space = space
        self.queue: _SpaceQueue | None = None

    def __enter__(self) -> GroupCommit:
        try:
            return self._queues.enter(self)
        except BaseException:  # also by Ctrl-C, after it was counted
            self._queues.leave(self)
            raise

    def __exit__(self, *exc: object) -> None:
        self._queues.leave(self)
