"""Middleware that reports the exceptions of tasks to Sentry (extra `sentry`).

    sentry_sdk.init(dsn=...)
    tasks.use(SentryMiddleware())

Each run has its own isolation scope, so a user or tag that a task sets stays with its run.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from holdfast.errors import MissingDriver
from holdfast.tasks import Outcome, Run

try:
    import sentry_sdk
except ImportError as error:
    raise MissingDriver(
        "the package `sentry-sdk` is not installed", hint="pip install 'holdfastdb[sentry]'"
    ) from error

__all__ = ["SentryMiddleware"]


class SentryMiddleware:
    """Reports the exception of each run that failed or will be repeated because of one.

    An event has the tags `task`, `queue`, `job`, `attempt` and `outcome`, and the task's name as
    its transaction.
    """

    def before(self, run: Run) -> AbstractContextManager[object]:
        """Returns the isolation scope of a run, as a context."""
        return self._scope(run)

    def after(self, run: Run, outcome: Outcome) -> None:
        """Sends the exception, if the run had a problem."""
        problem = outcome.problem
        if problem is not None:
            sentry_sdk.capture_exception(problem, tags={"outcome": outcome.what})

    @contextmanager
    def _scope(self, run: Run) -> Iterator[None]:
        job = run.job
        with sentry_sdk.isolation_scope() as scope:
            scope.set_transaction_name(job.task, source="task")
            scope.set_tags(
                {"task": job.task, "queue": job.queue, "job": job.id, "attempt": str(job.attempt)}
            )
            yield
