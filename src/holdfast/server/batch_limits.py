"""The limits of a batch, checked after each of its steps: a refused batch changes nothing.

Other writers wait while a batch runs, and its answers are held until it is committed.
"""

import time

from holdfast.errors import AnswerTooLarge, BatchTooLong, RequestTooLarge
from holdfast.limits import MAX_ANSWER_BYTES, MAX_BATCH_COMMANDS, MAX_BATCH_SECONDS


def check_steps(count: int) -> None:
    """Refuses a batch of too many steps before any of them is read."""
    if count > MAX_BATCH_COMMANDS:
        raise RequestTooLarge(
            f"the batch has {count} steps, at most {MAX_BATCH_COMMANDS} are accepted",
            hint="Split the batch: each part is its own transaction.",
        )


class BatchMeter:
    """Measures one run of a batch, in CPU time of its thread, so that it does not fail on a busy
    machine."""

    def __init__(self) -> None:
        self._begin = time.thread_time()
        self._answers = 0
        self._bytes = 0

    def note_answer(self, size: int) -> None:
        """Notes a step whose answer has `size` bytes."""
        self._answers += 1
        self._bytes += size
        if self._bytes > MAX_ANSWER_BYTES and self._answers > 1:
            raise AnswerTooLarge(f"the answers of a batch have more than {MAX_ANSWER_BYTES} bytes")
        if time.thread_time() - self._begin > MAX_BATCH_SECONDS:
            raise BatchTooLong(f"the batch took more than {MAX_BATCH_SECONDS:g} seconds")
