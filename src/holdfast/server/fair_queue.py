"""A queue of several clients' work, in which clients take turns."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Hands out one entry of each client in turn, and each client's entries in order of arrival.

    >>> queue = FairQueue[str]()
    >>> for client, entry in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")]:
    ...     queue.put(client, entry)
    >>> [queue.take() for _ in range(len(queue))]
    ['a1', 'b1', 'a2', 'a3']
    """

    def __init__(self) -> None:
        self._entries: dict[str, deque[T]] = {}  # by client; none is empty
        self._clients: deque[str] = deque()  # in the order of their turns
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, client: str, entry: T) -> None:
        """Adds an entry behind the others of this client."""
        entries = self._entries.get(client)
        if entries is None:
            self._entries[client] = deque((entry,))
            self._clients.append(client)
        else:
            entries.append(entry)
        self._length += 1

    def take(self) -> T:
        """Removes and returns the next entry of the client whose turn it is."""
        client = self._clients.popleft()
        entries = self._entries[client]
        entry = entries.popleft()
        if entries:
            self._clients.append(client)
        else:
            del self._entries[client]
        self._length -= 1
        return entry
