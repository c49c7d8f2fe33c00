"""The limits of a batch, checked after each of its steps: a refused batch changes nothing.

Other writers wait while a batch runs, and its answers are held until it is committed.
"""

from holdfast.call_time import CallTimer
from holdfast.errors import AnswerTooLarge, BatchTooLong, RequestTooLarge
from holdfast.limits import MAX_ANSWER_BYTES, MAX_BATCH_COMMANDS


def check_steps(count: int) -> None:
    """Refuses a batch of too many steps before any of them is read."""
    if count > MAX_BATCH_COMMANDS:
        raise RequestTooLarge(
            f"the batch has {count} steps, at most {MAX_BATCH_COMMANDS} are accepted",
            hint="Split the batch: each part is its own transaction.",
        )


class BatchMeter:
    """Measures one run of a batch: the bytes of its answers, and its processor time."""

    def __init__(self) -> None:
        self._timer = CallTimer("the batch", BatchTooLong.hint)
        self._answers = 0
        self._bytes = 0

    def note_answer(self, size: int) -> None:
        """Notes a step whose answer has `size` bytes."""
        self._answers += 1
        self._bytes += size
        if self._bytes > MAX_ANSWER_BYTES and self._answers > 1:
            raise AnswerTooLarge(f"the answers of a batch have more than {MAX_ANSWER_BYTES} bytes")
        self._timer.check()
