"""Slots on the worker's event loop: many async tasks at a time in one thread."""

import threading

from holdfast.tasks.event_loop import EventLoop, Running
from holdfast.tasks.execution import Attempt
from holdfast.tasks.slots import Done, end_of_run

__all__ = ["AsyncSlot"]


class AsyncSlot:
    """Runs one task at a time on the event loop; a function that is not async gets a thread."""

    kind = "async"
    continues = False

    def __init__(self, name: str, number: int, done: Done, loop: EventLoop) -> None:
        self.name = name
        self.number = number
        self._done = done
        self._loop = loop
        self._running: Running | None = None

    def start(self, attempt: Attempt) -> None:
        """Begins a run. Provided objects are made in this thread, since making one may need the
        loop."""
        ended = attempt.prepare()
        if ended is not None:
            self._done(end_of_run(self, attempt, lambda: ended))
        elif attempt.task is not None and attempt.task.is_async:
            self._running = self._loop.start(self._await(attempt))
        else:
            thread = threading.Thread(target=self._call, args=(attempt,), name=self.name)
            thread.daemon = True
            thread.start()

    def interrupt(self) -> None:
        """Cancels the coroutine; a thread sees it at its next `run.check()`."""
        running = self._running
        if running is not None:
            running.cancel()

    def close(self, timeout: float | None = None) -> None:
        """Does nothing: the loop ends with the worker's runtime."""

    async def _await(self, attempt: Attempt) -> None:
        outcome = await attempt.execute_async()
        self._running = None
        self._done(end_of_run(self, attempt, lambda: outcome))

    def _call(self, attempt: Attempt) -> None:
        self._done(end_of_run(self, attempt, attempt.execute))
