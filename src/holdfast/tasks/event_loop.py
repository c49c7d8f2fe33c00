"""The event loop of a worker: async tasks run on it, in its own thread."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

__all__ = ["Awaited", "EventLoop", "Running"]

T = TypeVar("T")


class EventLoop:
    """An event loop that is started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closing = threading.Event()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` on the loop and returns its result, from any other thread."""
        return self.submit(work).result()

    def submit(self, work: Coroutine[Any, Any, T]) -> "Awaited[T]":
        """Like `start`, with a handle that can also wait for the result."""
        loop = self._started()
        awaited: Awaited[T] = Awaited(loop)
        loop.call_soon_threadsafe(awaited.begin, work)
        return awaited

    def start(self, work: Coroutine[Any, Any, Any]) -> "Running":
        """Starts `work` in the caller's context; returns a handle that can cancel it from any
        thread."""
        loop = self._started()
        running = Running(loop)
        loop.call_soon_threadsafe(running.begin, work)
        return running

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._is_closing = threading.Event()
                serve = (self._loop, self._is_closing)
                self._thread = threading.Thread(
                    target=_serve, args=serve, name="holdfast-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Cancels running coroutines and ends the thread. A second call does nothing."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is not None and thread is not None:
            self._is_closing.set()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()


class Running:
    """A coroutine that runs on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Creates the task; called on the loop."""
        self._task = self._loop.create_task(work)

    def cancel(self) -> None:
        """Cancels the coroutine, from any thread."""
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


class Awaited(Running, Generic[T]):
    """A coroutine that runs on the loop, while another thread waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._future: Future[T] = Future()

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        super().begin(work)
        assert self._task is not None
        self._task.add_done_callback(self._end)

    def result(self) -> T:
        """Returns the result, or raises the exception, as soon as the coroutine has ended."""
        return self._future.result()

    def _end(self, task: "asyncio.Task[T]") -> None:
        if task.cancelled():
            self._future.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._future.set_exception(error)
        else:
            self._future.set_result(task.result())


def _serve(loop: asyncio.AbstractEventLoop, is_closing: threading.Event) -> None:
    asyncio.set_event_loop(loop)
    try:
        while not is_closing.is_set():
            # asyncio raises these where the coroutine is awaited, and here too, where they would
            # end the loop, and with it the runs of all others.
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
