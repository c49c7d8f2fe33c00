"""Waits a moment so that returning writers share the next commit.

A writer usually returns with its next commit as soon as the last one is done. A group
that starts the moment the last one has finished would start without them: half of the writers
would write while the other half waits, and there would be twice as many waits for the disk as
necessary. So if commits take long, the next group waits a moment for the writers of the last.
"""

import time
from collections.abc import Callable

from holdfast.limits import GROUP_WAIT_STEP_SECONDS, MAX_GROUP_WAIT_SECONDS


class GroupWait:
    """Estimates how many writers a group should expect, and how long to wait for them."""

    __slots__ = ("commit_seconds", "expected_writers")

    def __init__(self) -> None:
        self.expected_writers = 1  # writers in a full group, judging by the last ones
        self.commit_seconds = 0.0  # the mean of the last commits

    def wait(self, count_arrived: Callable[[], int]) -> None:
        """Waits for the expected writers while they keep arriving.

        It waits for at most a part of the time that a commit takes: at worst that is added to the
        wait of the writers that are here, and at best it halves the number of commits.
        """
        max_seconds = min(self.commit_seconds / 2, MAX_GROUP_WAIT_SECONDS)
        if max_seconds < GROUP_WAIT_STEP_SECONDS:
            return
        end = time.perf_counter() + max_seconds
        arrived, quiet = count_arrived(), 0
        while arrived < self.expected_writers and quiet < 2 and time.perf_counter() < end:
            time.sleep(GROUP_WAIT_STEP_SECONDS)
            before, arrived = arrived, count_arrived()
            quiet = quiet + 1 if arrived == before else 0

    def note(self, expected_writers: int, seconds: float) -> None:
        """Notes how long a group took, and how many writers were in it or wait for the next one."""
        self.expected_writers = max(
            expected_writers, (self.expected_writers + expected_writers) // 2
        )
        self.commit_seconds += (seconds - self.commit_seconds) / 4
