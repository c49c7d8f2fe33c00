"""Counts the commits of one process."""

import threading


class CommitCounts:
    """Counts commits of `groups`, `transactions` in them, `conflicts` and `round_trips`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("groups", "transactions", "conflicts", "round_trips"), 0)

    def add(self, what: str, number: int = 1) -> None:
        if number:
            with self._lock:
                self._counts[what] += number

    def add_group(self, transactions: int) -> None:
        """Counts a group that was committed."""
        with self._lock:
            self._counts["groups"] += 1
            self._counts["transactions"] += transactions

    def forked(self) -> None:
        """Called in a child process: the parent may have held the lock."""
        self._lock = threading.Lock()

    def as_dict(self) -> dict[str, int]:
        return dict(self._counts)
