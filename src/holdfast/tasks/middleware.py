"""Middleware: code that runs around every run, such as tracing, sessions or error reports."""

from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.tasks.outcomes import Outcome
from holdfast.tasks.run import Run

__all__ = ["Middleware"]


class Middleware(Protocol):
    """Code that runs before and after each run of a registry's tasks.

    `before` may return a context manager. It is entered before the task's function is called, and
    left afterwards, with the exception that the function raised, if any. `after` is called with the
    outcome while the context is still open; the effects of a task with `Tx` are committed by then.

    An optional method `headers() -> dict[str, str]` returns headers to store with each job that is
    put; the run finds them in `run.headers`. A trace context is passed on in this way.
    """

    def before(self, run: Run) -> AbstractContextManager[object] | None:
        """Called before the task; may return a context manager to run it in."""

    def after(self, run: Run, outcome: Outcome) -> None:
        """Called with the outcome of the run."""
