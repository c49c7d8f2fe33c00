"""The queues that a worker serves: names, and patterns such as `mail-*`."""

import fnmatch
import time
from collections.abc import Sequence
from typing import Any, Final

from holdfast.limits import WORKER_PROGRAM_SECONDS

__all__ = ["ServedQueues"]

_REFRESH_SECONDS: Final = WORKER_PROGRAM_SECONDS / 3  # how often the list of queues is read


class ServedQueues:
    """Names in the order given; a pattern means all queues that match it."""

    def __init__(self, jobs: Any, words: Sequence[str]) -> None:
        self._jobs = jobs
        self._words = tuple(dict.fromkeys(words))
        self._patterns = tuple(word for word in self._words if _is_pattern(word))
        self._current: list[str] = [word for word in self._words if not _is_pattern(word)]
        self._next_refresh = 0.0

    def current(self) -> list[str]:
        """Returns the queues to ask for jobs now."""
        if self._patterns and time.monotonic() >= self._next_refresh:
            self._next_refresh = time.monotonic() + _REFRESH_SECONDS
            self._current = self._expanded([queue.name for queue in self._jobs.queues()])
        return self._current

    def wants(self, queue: str) -> bool:
        """Returns whether the worker serves a queue; a new one that matches is added."""
        if queue in self._current:
            return True
        if any(fnmatch.fnmatchcase(queue, pattern) for pattern in self._patterns):
            self._next_refresh = 0.0
            return True
        return False

    def _expanded(self, known: Sequence[str]) -> list[str]:
        found: dict[str, None] = {}
        for word in self._words:
            matching = fnmatch.filter(sorted(known), word) if _is_pattern(word) else [word]
            found.update(dict.fromkeys(matching))
        return list(found)


def _is_pattern(word: str) -> bool:
    return any(character in word for character in "*?[")
