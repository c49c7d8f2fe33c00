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

    __slots__ = ("commit_seconds", "in_play")

    def __init__(self) -> None:
        self.in_play = 1  # writers in a full group, judging by the last ones
        self.commit_seconds = 0.0  # the mean of the last commits

    def wait(self, here: Callable[[], int]) -> None:
        """Waits for the expected writers while they keep arriving; `here` counts those that have.

        It waits for at most a part of the time that a commit takes: at worst that is added to the
        wait of the writers that are here, and at best it halves the number of commits.
        """
        patience = min(self.commit_seconds / 2, MAX_GROUP_WAIT_SECONDS)
        if patience < GROUP_WAIT_STEP_SECONDS:
            return
        end = time.perf_counter() + patience
        now_here, quiet = here(), 0
        while now_here < self.in_play and quiet < 2 and time.perf_counter() < end:
            time.sleep(GROUP_WAIT_STEP_SECONDS)
            before, now_here = now_here, here()
            quiet = quiet + 1 if now_here == before else 0

    def note(self, in_play: int, seconds: float) -> None:
        """Notes how long a group took, and how many writers were in it or wait for the next one."""
        self.in_play = max(in_play, (self.in_play + in_play) // 2)
        self.commit_seconds += (seconds - self.commit_seconds) / 4
