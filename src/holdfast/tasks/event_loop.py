"""The event loop of a worker: async tasks run on it, in its own thread."""

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["EventLoop"]

T = TypeVar("T")


class EventLoop:
    """An event loop that is started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` on the loop and returns its result, from any other thread."""
        return self.submit(work).result()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts `work` with the caller's context; cancelling the future cancels it."""
        loop = self._started()
        context = contextvars.copy_context()
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        loop.call_soon_threadsafe(_start, loop, work, context, future)
        return future

    def start(self, work: Coroutine[Any, Any, Any]) -> "Running":
        """Starts `work` and returns a handle that can cancel it from any thread."""
        loop = self._started()
        running = Running(loop)
        loop.call_soon_threadsafe(running.begin, work)
        return running

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="holdfast-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Cancels running coroutines and ends the thread. A second call does nothing."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is not None and thread is not None:
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


def _start(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, T],
    context: contextvars.Context,
    future: Future[T],
) -> None:
    def finish(task: "asyncio.Task[T]") -> None:
        if task.cancelled():
            future.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            future.set_exception(error)
        else:
            future.set_result(task.result())

    loop.create_task(work, context=context).add_done_callback(finish)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
