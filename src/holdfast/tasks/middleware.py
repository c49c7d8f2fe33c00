"""Middleware: what is done around every run, such as tracing, sessions or error reports."""

from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.tasks.outcomes import Outcome
from holdfast.tasks.run import Run

__all__ = ["Middleware"]


class Middleware(Protocol):
    """Something that is done before and after each run of the tasks of a registry.

    `before` may return a context manager. It is entered before the task's function is called and
    left when that is done, with the exception that the function raised. `after` is called with the
    outcome while the context is still open; the outcome of a task with `Tx` is committed by then.

    If there is also a method `headers() -> dict[str, str]`, what it returns is sent along with each
    job that is put, and found in `run.headers`: the trace context travels so.
    """

    def before(self, run: Run) -> AbstractContextManager[object] | None: ...

    def after(self, run: Run, outcome: Outcome) -> None: ...
