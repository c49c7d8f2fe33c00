"""A moment for those who come again.

Whoever was just told that its commit is done mostly comes again at once, with the next one. A group
that leaves the moment the last one is through leaves without them: then half of all who are there
write while the other half waits, in turns, and the disk is waited for twice as often as it had to
be. So where a commit takes long, the next group waits a moment for those who were in the last ones.
"""

import time
from collections.abc import Callable

from holdfast.limits import GROUP_WAIT_STEP_SECONDS, MAX_GROUP_WAIT_SECONDS


class GroupWait:
    """Whom a group expects, and how long it waits for them."""

    __slots__ = ("commit_seconds", "in_play")

    def __init__(self) -> None:
        self.in_play = 1  # who would be in a full group, by the last ones
        self.commit_seconds = 0.0  # that the last ones took

    def wait(self, here: Callable[[], int]) -> None:
        """Waits for those who are expected, while they keep coming; `here` counts who is there.

        Never for longer than a part of what a commit takes: at worst it adds that to the wait of
        those who are here, and at best it halves the number of commits.
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
        """A group took so long, and so many were in it or already wait for the next one."""
        self.in_play = max(in_play, (self.in_play + in_play) // 2)
        self.commit_seconds += (seconds - self.commit_seconds) / 4
