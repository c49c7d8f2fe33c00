"""Objects that an application provides to its tasks: made once per process, closed at its end."""

import inspect
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any

from holdfast.errors import BadTask
from holdfast.tasks.event_loop import EventLoop

__all__ = ["Provided"]


class Provided:
    """The provided objects of one process.

    A generator function is entered when its object is first needed, and left when the process ends;
    an async one runs on the worker's event loop. If a plain function made the object, its `close`
    or `aclose` is called, if it has one.
    """

    def __init__(self, makers: Mapping[Any, Callable[[], Any]], loop: EventLoop) -> None:
        self._makers = makers
        self._loop = loop
        self._lock = threading.RLock()
        self._made: dict[Any, Any] = {}
        self._stack = ExitStack()

    def get(self, kind: Any, task: str) -> Any:
        """Returns the object of that type; call it from any thread but the loop's."""
        with self._lock:
            if kind not in self._made:
                if kind not in self._makers:
                    raise BadTask(
                        f"task {task} needs a {getattr(kind, '__name__', kind)}, which is not "
                        "provided",
                        hint="Say how one is made: tasks.provide(Mailer, make_mailer).",
                    )
                self._made[kind] = self._make(self._makers[kind])
            return self._made[kind]

    def _make(self, make: Callable[[], Any]) -> Any:
        if inspect.isgeneratorfunction(make):
            return self._stack.enter_context(contextmanager(make)())
        if inspect.isasyncgenfunction(make):
            context = asynccontextmanager(make)()
            made = self._loop.run(context.__aenter__())
            self._stack.callback(lambda: self._loop.run(context.__aexit__(None, None, None)))
            return made
        made = self._loop.run(make()) if inspect.iscoroutinefunction(make) else make()
        if hasattr(made, "aclose"):
            self._stack.callback(lambda: self._loop.run(made.aclose()))
        elif hasattr(made, "close"):
            self._stack.callback(made.close)
        return made

    def close(self) -> None:
        """Closes all objects, the last one first."""
        with self._lock:
            self._made.clear()
            self._stack.close()
