"""Execution: runs the task of a popped job and makes the report of its outcome.

Everything that runs tasks goes through `Attempt`: thread slots, asyncio slots, process slots, the
inline runner and workflows. The logic is written once, as a generator that yields what has to be
awaited; `execute` drives it from a thread, `execute_async` from an event loop.

    runtime = Runtime(tasks, store)      # once in a process
    attempt = runtime.attempt(job)       # a job that was popped
    outcome = attempt.execute()          # runs the task; never raises what the task raises
    report = attempt.report(outcome)     # for `store.jobs.report`; None if there is nothing to send
"""

import asyncio
import concurrent.futures
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, ExitStack
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import (
    BadTask,
    BadTaskArgument,
    JobLost,
    TaskTimedOut,
    UnknownJob,
    WorkflowChanged,
    WorkflowTooLarge,
    WrongState,
)
from holdfast.jobs.records import Job
from holdfast.jobs.reports import Report
from holdfast.store import Space, Tx
from holdfast.tasks.event_loop import Awaited, EventLoop
from holdfast.tasks.outcomes import (
    Fail,
    Outcome,
    Parked,
    Retry,
    Settled,
    Snooze,
    error_text,
    failure_text,
    unknown_task,
)
from holdfast.tasks.parameters import Parameter
from holdfast.tasks.provided_objects import Provided
from holdfast.tasks.redis_restrictions import check_redis_restrictions
from holdfast.tasks.run import Run
from holdfast.tasks.sandboxes import Sandboxes
from holdfast.tasks.values import UNFIT, to_plain
from holdfast.tasks.workflows import AsyncRun, Workflow

if TYPE_CHECKING:
    from holdfast.client.client import ClientSpace
    from holdfast.tasks.registry import Tasks
    from holdfast.tasks.task import Task

__all__ = ["Attempt", "Runtime"]

Flow = Generator[Awaitable[Any], Any, Outcome]
_log: Final = logging.getLogger("holdfast.tasks")
_LOST: Final = (JobLost, UnknownJob, WrongState)


class Runtime:
    """The tasks, the store and the objects that all runs of one process share."""

    def __init__(
        self,
        tasks: "Tasks",
        where: "Space | ClientSpace | None",
        *,
        workdir: str | None = None,
    ) -> None:
        self.tasks = tasks
        self.sandboxes = Sandboxes(workdir)
        self.use(where)
        self.loop = EventLoop()
        self.provided = Provided(tasks.providers, self.loop)
        self.middleware = tasks.middleware

    def use(self, where: "Space | ClientSpace | None") -> None:
        """Sets the store of the runs; None until a task needs it."""
        self.where: Any = where
        self.is_remote = not isinstance(where, Space)
        self.is_scripted = getattr(where, "is_scripted", False)  # a Redis with Qless' script
        self.clock = where.read_clock if isinstance(where, Space) else time.time

    def check(self) -> None:
        """Raises for tasks that can't run here, and for annotations that can't be read."""
        if self.is_scripted:
            check_redis_restrictions(self.tasks)
        for task in self.tasks:
            if "tx" in task.parameters.kinds and self.is_remote:
                raise BadTask(
                    f"task {task.name} takes a Tx, but this worker is connected to a server",
                    hint="Its function can't run where the store is: take a Batch, or let the "
                    "worker open the folder or engine itself.",
                )

    def attempt(
        self, job: Job, *, beat: Callable[[Run], None] | None = None, slot: int = 0
    ) -> "Attempt":
        """Returns a run of a job that was popped; `slot` is the number of its sandbox."""
        task = self.tasks.find(job.klass)
        is_async_workflow = isinstance(task, Workflow) and task.is_async
        kind = AsyncRun if is_async_workflow else Run
        run = kind(
            job, self.where, clock=self.clock, beat=beat, sandboxes=self.sandboxes, slot=slot
        )
        return Attempt(self, job, run, task)

    def close(self) -> None:
        """Closes the provided objects and the event loop, and removes sandboxes."""
        self.provided.close()
        self.loop.close()
        self.sandboxes.close()


class Attempt:
    """One run of one job."""

    def __init__(
        self, runtime: Runtime, job: Job, run: Run, task: "Task[Any, Any, Any, Any] | None"
    ) -> None:
        self.job = job
        self.run = run
        self.task = task
        self.is_settled = False  # by the task's own transaction
        self._runtime = runtime
        self._is_prepared = False
        self._arguments: dict[str, Any] = {}
        self._injected: dict[str, Any] = {}
        self._awaited: Awaited[Any] | None = None

    # --- running ----------------------------------------------------------------------------------

    def execute(self) -> Outcome:
        """Runs the task and returns the outcome for its job."""
        flow = self._flow(is_async=False)
        try:
            waited = next(flow)
            while True:
                try:
                    value = self._wait_for(waited)
                except BaseException as error:
                    waited = flow.throw(error)
                else:
                    waited = flow.send(value)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    def _wait_for(self, waited: Awaitable[Any]) -> Any:
        self._awaited = awaited = self._runtime.loop.submit(_coroutine(waited))
        if self.run.stopped is not None:  # just before: `interrupt` found nothing to cancel
            awaited.cancel()
        try:
            return awaited.result()
        finally:
            self._awaited = None

    def interrupt(self) -> None:
        """Cancels what `execute` waits for, if the run was stopped; called by another thread."""
        awaited = self._awaited
        if awaited is not None and self.run.stopped is not None:
            awaited.cancel()

    async def execute_async(self) -> Outcome:
        """Like `execute`, on an event loop. Call `prepare` before, in a thread."""
        flow = self._flow(is_async=True)
        try:
            waited = next(flow)
            while True:
                try:
                    value = await waited
                except BaseException as error:
                    waited = flow.throw(error)
                else:
                    waited = flow.send(value)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    def prepare(self) -> Outcome | None:
        """Decodes arguments and makes provided objects; returns an outcome if that ends the run.

        A second call does nothing.
        """
        if self._is_prepared:
            return None
        self._is_prepared = True
        if self.task is None:
            return unknown_task(self.job)
        try:
            self._arguments = self.task.parameters.decode(self.job.data)
        except BadTaskArgument as error:
            group = f"{self.job.queue}-bad-arguments"
            return Outcome(what="fail", group=group, message=error.message, error=error)
        try:
            for each in self.task.parameters.all:
                if each.kind == "provided":
                    kind = each.annotation
                    self._injected[each.name] = self._runtime.provided.get(kind, self.task.name)
            if isinstance(self.task, Workflow):
                self._remember()
        except Exception as error:
            return self.outcome_of(error)
        return None

    def _remember(self) -> None:
        """Loads what earlier runs of a workflow have remembered."""
        from holdfast.tasks.workflow_memory import WorkflowMemory  # most workers need none

        assert self.task is not None
        memory = WorkflowMemory(
            self.run,
            self.job,
            self._runtime.where,
            clock=self._runtime.clock,
            is_async=self.task.is_async,
        )
        memory.load()
        self.run.remember_with(memory)

    def report(self, outcome: Outcome) -> Report | None:
        """Returns the report for the store; None if the run has committed itself or was lost."""
        if self.is_settled or outcome.what == "lost":
            return None
        unsent = self.run.take_unsent()
        puts = self.run.puts if outcome.what == "complete" else outcome.puts
        if outcome.what == "complete" and not unsent and not puts:
            return Report(  # the usual end of a run: with fewer arguments it takes half the time
                id=self.job.id,
                worker=self.job.worker,
                what="complete",
                lock=self.job.lock,
                result=outcome.result,
                result_ttl=outcome.result_ttl,
                steps=outcome.steps,
            )
        return Report(
            id=self.job.id,
            worker=self.job.worker,
            what=outcome.what,
            lock=self.job.lock,
            progress=unsent.progress,
            progress_text=unsent.progress_text,
            log=unsent.log,
            result=outcome.result,
            result_ttl=outcome.result_ttl,
            delay=outcome.delay,
            free=outcome.free,
            group=outcome.group,
            message=outcome.message,
            puts=puts,
            steps=outcome.steps,
            awaits=outcome.awaits,
            depends=outcome.depends,
        )

    # --- one logic for both -----------------------------------------------------------------------

    def _flow(self, *, is_async: bool) -> Flow:
        ended = self.prepare()
        if ended is not None:
            return ended
        try:
            if self._runtime.middleware:
                return (yield from self._within_middleware(is_async))
            return (yield from self._call_task(is_async))
        except BaseException as error:
            return self.outcome_of(error)
        finally:
            self.run.remove_sandbox()

    def _within_middleware(self, is_async: bool) -> Flow:
        outcome: Outcome | None = None
        try:
            with ExitStack() as contexts:
                try:
                    for each in self._runtime.middleware:
                        context = each.before(self.run)
                        if context is not None:
                            contexts.enter_context(context)
                    outcome = yield from self._call_task(is_async)
                except BaseException as error:
                    outcome = self.outcome_of(error)
                    raise
                finally:
                    if outcome is not None:
                        self._call_middleware_after(outcome)
        except BaseException as error:
            # An exception on leaving a context counts too, unless the task had already committed.
            is_its_own = outcome is not None and (
                outcome.error is error or isinstance(error, Parked)
            )
            if not is_its_own and not self.is_settled:
                outcome = self.outcome_of(error)
        assert outcome is not None
        return outcome

    def _call_middleware_after(self, outcome: Outcome) -> None:
        for each in reversed(self._runtime.middleware):
            try:
                each.after(self.run, outcome)
            except Exception:
                _log.exception("middleware %r failed after job %s", each, self.job.id)

    def _call_task(self, is_async: bool) -> Flow:
        assert self.task is not None
        kinds = self.task.parameters.kinds
        if "tx" in kinds:
            return self._in_transaction()
        if "batch" in kinds:
            return (yield from self._in_batch(is_async))
        value = self._call({})
        if inspect.isawaitable(value):
            value = yield self.run.awaitable_of(value)
        return self._outcome_of_value(value)

    def _call(self, given: dict[str, Any]) -> Any:
        assert self.task is not None

        def inject(parameter: Parameter) -> Any:
            if parameter.kind == "run":
                return self.run
            if parameter.kind == "provided":
                return self._injected[parameter.name]
            return given[parameter.kind]

        return self.task.parameters.call(self.task.function, self._arguments, inject)

    def _in_transaction(self) -> Outcome:
        """Runs the task in a transaction whose last write is the job's completion."""

        def work(tx: Tx) -> Outcome:
            self.run.reset()
            outcome = self._outcome_of_value(self._call({"tx": tx}))
            report = self.report(outcome)
            if report is None or report.what != "complete":
                raise _Undone(outcome)
            try:
                tx.jobs.report([report], all_or_none=True)
            except _LOST as refusal:
                raise _Undone(Outcome(what="lost", error=refusal)) from None
            return outcome

        where = self._runtime.where
        assert isinstance(where, Space)
        self.run.disable_heartbeat()
        try:
            outcome = where.transact(work)
        except _Undone as undone:
            return undone.outcome
        self.is_settled = True
        return outcome

    def _in_batch(self, is_async: bool) -> Flow:
        """Runs the task with a batch that is sent with the job's completion."""
        batch, send = self._batch()
        value = self._call({"batch": batch})
        if inspect.isawaitable(value):
            value = yield value
        outcome = self._outcome_of_value(value)
        report = self.report(outcome)
        if report is None or report.what != "complete":
            return outcome
        batch.jobs.report([report], all_or_none=True)
        last = len(batch) - 1
        try:
            if is_async:
                yield asyncio.to_thread(send)
            else:
                send()
        except _LOST as refusal:
            if refusal.position != last:
                raise
            return Outcome(what="lost", error=refusal)
        self.is_settled = True
        return outcome

    def _batch(self) -> tuple[Any, Callable[[], object]]:
        where = self._runtime.where
        if isinstance(where, Space):
            from holdfast.tasks.recorded_batch import RecordedBatch  # loads the client

            recorded = RecordedBatch()
            return recorded, lambda: where.transact(recorded.apply)
        context: AbstractContextManager[Any] = where.batch()
        return context.__enter__(), lambda: context.__exit__(None, None, None)

    # --- the outcome for the job ------------------------------------------------------------------

    def _outcome_of_value(self, value: Any) -> Outcome:
        assert self.task is not None
        if self.run.is_lost:
            return Outcome(what="lost", error=self.run.stopped)
        try:
            plain = None if value is None else to_plain(value)
        except UNFIT as error:
            return Outcome(
                what="fail",
                group=f"{self.job.queue}-bad-result",
                message=f"what {self.task.name} returned can't be stored: {error}",
                error=error,
            )
        return Outcome(what="complete", result=plain, result_ttl=self.task.options_given.result_ttl)

    def outcome_of(self, error: BaseException) -> Outcome:
        """Returns the outcome for the job after an exception, or after the run was stopped."""
        stopped = self.run.stopped
        if self.run.is_lost:
            return Outcome(what="lost", error=error)
        if isinstance(error, Parked):
            return error.outcome
        if isinstance(error, WorkflowChanged | WorkflowTooLarge):
            group = f"{self.job.queue}-{type(error).__name__}"
            return Outcome(what="fail", group=group, message=str(error), error=error)
        if isinstance(stopped, TaskTimedOut):
            return self._retry_or_fail(error, "timeout", str(stopped), str(stopped))
        if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
            return Outcome(what="release", error=error)
        if isinstance(error, Settled):
            return Outcome(what="lost")
        if isinstance(error, Snooze):
            return Outcome(
                what="retry", delay=error.seconds, free=True, message=str(error), error=error
            )
        if isinstance(error, Fail):
            message = error.message or error_text(error)
            return Outcome(what="fail", group=error.group, message=message, error=error)
        name = type(error.__cause__ or error if isinstance(error, Retry) else error).__name__
        group = f"{self.job.queue}-{name}"
        if isinstance(error, Retry):
            why = error.why or error_text(error)
            return self._retry_or_fail(error, group, why, why, after=error.after, free=error.free)
        if not self._may_retry(error):
            return Outcome(what="fail", group=group, message=failure_text(error), error=error)
        return self._retry_or_fail(error, group, error_text(error), failure_text(error))

    def _may_retry(self, error: BaseException) -> bool:
        if self.task is None:
            return True
        options = self.task.options_given
        if isinstance(error, asyncio.CancelledError):  # of something that the task awaited
            error = concurrent.futures.CancelledError()  # which is an Exception
        return isinstance(error, options.retry_on) and not isinstance(error, options.fail_on)

    def _retry_or_fail(
        self,
        error: BaseException,
        group: str,
        why: str,
        message: str,
        *,
        after: float | None = None,
        free: bool = False,
    ) -> Outcome:
        """Returns a retry, or the failure if none is left."""
        if not free and self.job.remaining < 1:
            return Outcome(what="fail", group=group, message=message, error=error)
        delay = self._backoff(error) if after is None else after
        return Outcome(what="retry", delay=delay, free=free, group=group, message=why, error=error)

    def _backoff(self, error: BaseException) -> float:
        assert self.task is not None
        try:
            return max(0.0, float(self.task.options_given.backoff(self.run.job.attempt, error)))
        except Exception:  # the application's function; its job must be settled anyway
            _log.exception("the backoff of task %s failed", self.task.name)
            return 0.0


class _Undone(Exception):
    """Ends the transaction of a task without its writes."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


async def _awaited(waited: Awaitable[Any]) -> Any:
    return await waited


def _coroutine(waited: Awaitable[Any]) -> Any:
    return waited if inspect.iscoroutine(waited) else _awaited(waited)
