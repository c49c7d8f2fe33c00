"""The memory of a workflow: finished steps are not repeated in later runs.

Each verb of a run (`step`, `sleep`, `wait`, ...) gets a number in the order of the calls. A step
that is remembered under that number must have the same name. The logic of a verb is a generator
that yields what has to be done, see workflow_verbs.py.
"""

import asyncio
import typing
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from holdfast.errors import (
    JobLost,
    UnknownJob,
    WorkflowChanged,
    WorkflowTooLarge,
    WrongState,
)
from holdfast.jobs.records import FAILED, Job
from holdfast.jobs.reports import Report
from holdfast.jobs.steps import Step, child_step
from holdfast.json_data import json_problem_in
from holdfast.limits import (
    MAX_STEP_RESULT_BYTES,
    MAX_STEPS,
    MAX_WORKFLOW_BYTES,
    SIGNAL_WAIT_SECONDS,
)
from holdfast.store import Space
from holdfast.tasks.backoff import Backoff
from holdfast.tasks.outcomes import Fail, Outcome, Parked, Retry, Snooze, error_text
from holdfast.tasks.run import Run
from holdfast.tasks.step_replay import (
    child_failed,
    gathered_value,
    is_settled,
    name_of,
    replayed,
    restored_error,
    returned_by,
)
from holdfast.tasks.task import Task, TaskCall
from holdfast.tasks.values import UNFIT, to_plain
from holdfast.tasks.workflow_verbs import (
    CallFunction,
    CallStore,
    Verb,
    drive,
    drive_async,
    return_false,
)

__all__ = ["WorkflowMemory"]

_PAGE: Final = 1_000
_encode_json: Final = msgspec.json.Encoder().encode
_LOST: Final = (JobLost, UnknownJob, WrongState)


class WorkflowMemory:
    """The steps of one workflow, in one run of it."""

    def __init__(
        self, run: Run, job: Job, where: Any, *, clock: Callable[[], float], is_async: bool
    ) -> None:
        self._run = run
        self._clock = clock
        self._job = job
        self._where = where
        self._is_async = is_async
        self._known: dict[int, Step] = {}
        self._next = 0
        self._saved_bytes = 0
        self._unsaved: dict[int, Step] = {}  # by number: stored with the next commit
        # Steps that raised, each with the asyncio task that called it: they count if the error
        # is caught.
        self._failed_steps: list[tuple[Any, Step]] = []
        self._asked_by: dict[int, Any] = {}  # step numbers to asyncio tasks, in an async workflow
        self._main: Any = None  # the asyncio task of the workflow itself
        self._removed_children: dict[str, Any] = {}  # results of children that were removed since
        self._store_error: Exception | None = (
            None  # of the store: what it has remembered is unknown
        )

    def load(self) -> None:
        """Reads what earlier runs have remembered.

        The first run reads too, for one empty page: a job's history may be cut, and a job that is
        put again keeps its steps, so nothing else tells whether there are any.
        """
        last = -1
        while page := self._where.jobs.steps(self._job.id, after=last, count=_PAGE):
            for step in page:
                if step.number < MAX_STEPS:
                    self._known[step.number] = step
                    self._saved_bytes += len(_encode_json(step.result))
                else:
                    self._removed_children[step.name] = step.result
            last = page[-1].number

    async def await_workflow(self, workflow: Awaitable[Any]) -> Any:
        """Awaits an async workflow, and remembers which asyncio task is its own."""
        self._main = asyncio.current_task()
        return await workflow

    # --- verbs ------------------------------------------------------------------------------------

    def step(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        retries: int = 0,
        backoff: Backoff | None = None,
    ) -> Any:
        """Runs the function once; later runs get its result."""
        called = function.function if isinstance(function, Task) else function
        return self._begin(
            name_of(function),
            lambda number, known: self._step_verb(
                number,
                known,
                name_of(function),
                partial(called, *args, **kwargs),
                returned_by(called),
                retries,
                backoff,
            ),
        )

    def remember_value(self, name: str, make: Callable[[], Any], annotation: Any) -> Any:
        """Remembers a value that would differ in each run, such as a time or a random number."""
        return self._begin(
            name,
            lambda number, known: self._step_verb(number, known, name, make, annotation, 0, None),
        )

    def transact(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs the function in a transaction that also remembers it: exactly once."""
        name = name_of(function)
        return self._begin(
            name,
            lambda number, known: self._transact_verb(number, known, name, function, args, kwargs),
        )

    def sleep(self, seconds: float) -> Any:
        """Ends the run for `seconds`."""
        return self._begin("sleep", lambda number, known: self._sleep_verb(number, known, seconds))

    def wait(self, signal: str, timeout: float | None, default: Any) -> Any:
        """Ends the run until a signal comes."""
        return self._begin(
            f"wait {signal}",
            lambda number, known: self._wait_verb(number, known, signal, timeout, default),
        )

    def gather(self, calls: Sequence[TaskCall[Any]], return_errors: bool) -> Any:
        """Ends the run until child jobs are settled, and returns their results."""
        return self._begin(
            "gather", lambda number, known: self._gather_verb(number, known, calls, return_errors)
        )

    def version(self, name: str) -> Any:
        """Returns whether the workflow takes the new path: it had not passed this place before."""
        known = self._known.get(self._next)
        if known is not None and known.name != f"version {name}":
            return self._run_verb(return_false())
        return self._begin(
            f"version {name}",
            lambda number, known: self._step_verb(
                number, known, f"version {name}", lambda: True, bool, 0, None
            ),
        )

    # --- numbers ----------------------------------------------------------------------------------

    def _begin(self, name: str, verb: Callable[[int, Step | None], Verb]) -> Any:
        """Assigns the verb its number now, even if it is awaited later, and drives it."""
        self._run.check()
        if self._store_error is not None:  # the workflow caught it; a later run could differ
            raise self._store_error
        asker = asyncio.current_task() if self._is_async else None
        self._save_caught(asker)
        number = self._next
        self._next += 1
        if number >= MAX_STEPS:
            raise WorkflowTooLarge(f"workflow {self._job.id} has more than {MAX_STEPS} steps")
        if asker is not None:
            self._asked_by[number] = asker
        known = self._known.get(number)
        if known is not None and known.name != name:
            raise WorkflowChanged(
                f"step {number} of workflow {self._job.id} was {known.name!r} in an earlier run, "
                f"and is {name!r} now"
            )
        return self._run_verb(verb(number, known))

    def _save_caught(self, asker: Any) -> None:
        """Remembers failed steps whose error the workflow has caught.

        It was caught if the branch that called the step calls another one, or has ended while the
        workflow continues. Other errors may still end the workflow.
        """
        left: list[tuple[Any, Step]] = []
        for owner, step in self._failed_steps:
            if owner is asker or (asker is self._main and owner.done()):
                self._unsaved[step.number] = step
            else:
                left.append((owner, step))
        self._failed_steps = left

    def _note_failed_step(self, failed: Step) -> None:
        self._failed_steps.append((self._asked_by.get(failed.number), failed))

    def _run_verb(self, verb: Verb) -> Any:
        return drive_async(verb) if self._is_async else drive(verb)

    # --- the logic of each verb -------------------------------------------------------------------

    def _step_verb(
        self,
        number: int,
        known: Step | None,
        name: str,
        function: Callable[[], Any],
        annotation: Any,
        retries: int,
        backoff: Backoff | None,
    ) -> Verb:
        if known is not None and known.ended:
            return replayed(known, annotation)
        attempts = 1 if known is None else known.attempts + 1
        begun = self._clock() if known is None else known.begun
        try:
            value = yield CallFunction(function)
        except (Retry, Fail, Snooze):
            raise
        except Exception as error:
            failed = self._failed_step(number, name, begun, attempts, error)
            if attempts <= retries:
                wait = 0.0 if backoff is None else max(0.0, float(backoff(attempts, error)))
                self._park(msgspec.structs.replace(failed, ended=0.0), wait, message=failed.error)
            if retries:
                yield CallStore(lambda: self._remember(failed))
            else:
                self._note_failed_step(failed)
            raise
        step = self._finished_step(number, name, begun, attempts, value)
        yield CallStore(lambda: self._remember(step))
        return value

    def _transact_verb(
        self,
        number: int,
        known: Step | None,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Verb:
        if known is not None and known.ended:
            return replayed(known, returned_by(function))
        begun = self._clock()
        # What the function and the report have raised. Work may run again, after reads that were
        # out of date: only the error that ends the transaction counts.
        own: list[Exception] = []
        lost: list[Exception] = []

        def work(tx: Any) -> tuple[Any, Report]:
            try:
                value = function(tx, *args, **kwargs)
            except Exception as error:
                own.append(error)
                raise
            report = self._report(self._finished_step(number, name, begun, 1, value))
            try:
                tx.jobs.report([report], all_or_none=True)
            except _LOST as refusal:
                lost.append(refusal)
                raise
            return value, report

        try:
            value, report = yield CallStore(partial(self._commit, work))
        except Exception as error:
            if isinstance(error, _LOST) and _is_in(error, lost):
                self._run.mark_lost(error.code, str(error))
            elif _is_in(error, own) or _is_refused(error):
                self._note_failed_step(self._failed_step(number, name, begun, 1, error))
            else:  # it may have been committed: only the next run will know
                self._store_error = error
            raise
        self._mark_saved(report)
        return value

    def _commit(self, work: Callable[[Any], Any]) -> Any:
        if isinstance(self._where, Space):
            return self._where.transact(work)
        recorded = 0
        try:
            with self._where.batch() as batch:
                value = work(batch)
                recorded = len(batch)
        except _LOST as refusal:
            if refusal.position == recorded - 1:  # the report is the last of its operations
                self._run.mark_lost(refusal.code, str(refusal))
            raise
        return value

    def _sleep_verb(self, number: int, known: Step | None, seconds: float) -> Verb:
        if known is not None and known.ended:
            return None
        now = self._clock()
        until = now + seconds if known is None else known.until
        begun = now if known is None else known.begun
        step = Step(number=number, name="sleep", begun=begun, until=until)
        if now < until:
            self._park(step, until - now, message="the workflow sleeps")
        self._unsaved[number] = msgspec.structs.replace(step, ended=now)
        return None
        yield  # a generator, as all verbs are

    def _wait_verb(
        self, number: int, known: Step | None, signal: str, timeout: float | None, default: Any
    ) -> Verb:
        if known is not None and known.ended:
            return known.result
        now = self._clock()
        begun = now if known is None else known.begun
        wait_seconds = SIGNAL_WAIT_SECONDS if timeout is None else timeout
        until = now + wait_seconds if known is None else known.until
        step = Step(number=number, name=f"wait {signal}", begun=begun, until=until)
        signals = yield CallStore(lambda: self._where.jobs.signals(self._job.id))
        first = next((each for each in signals if each.name == signal), None)
        if first is not None:
            done = self._finished_step(number, step.name, begun, 1, first.value)
            yield CallStore(lambda: self._remember(done, took=signal, took_number=first.number))
            return first.value
        if now < until:
            self._park(step, until - now, awaits=signal, message=f"the workflow awaits {signal}")
        done = self._finished_step(number, step.name, begun, 1, default)
        yield CallStore(lambda: self._remember(done))
        return default

    def _gather_verb(
        self,
        number: int,
        known: Step | None,
        calls: Sequence[TaskCall[Any]],
        return_errors: bool,
    ) -> Verb:
        decoders = [call.decode for call in calls]
        if known is not None and known.ended:
            if known.error:
                raise restored_error(known)
            return [gathered_value(each, decoders[at]) for at, each in enumerate(known.result)]
        begun = self._clock() if known is None else known.begun
        ids = tuple(f"{self._job.id}/{number}.{at}" for at in range(len(calls)))
        step = Step(number=number, name="gather", begun=begun, children=ids)
        if known is None and calls:
            puts = tuple(
                msgspec.structs.replace(call.job, id=id, parent=self._job.id, unique=None)
                for call, id in zip(calls, ids, strict=True)
            )
            message = f"the workflow waits for {len(ids)} children"
            self._park(step, 0, depends=ids, puts=puts, message=message)
        found = yield CallStore(lambda: self._children(ids))
        left = tuple(id for id, job in found.items() if job is not None and not is_settled(job))
        if left:
            self._park(
                step, 0, depends=left, message=f"the workflow waits for {len(left)} children"
            )
        results = yield CallStore(lambda: [self._result_of(id, job) for id, job in found.items()])
        errors = [each for each in results if "error" in each]
        if errors and not return_errors:
            error = child_failed(errors[0])
            self._note_failed_step(self._failed_step(number, "gather", begun, 1, error))
            raise error
        done = self._finished_step(number, "gather", begun, 1, results)
        yield CallStore(lambda: self._remember(msgspec.structs.replace(done, children=ids)))
        return [gathered_value(each, decoders[at]) for at, each in enumerate(results)]

    def _children(self, ids: tuple[str, ...]) -> dict[str, Job | None]:
        found: dict[str, Job | None] = dict.fromkeys(ids)
        for at in range(0, len(ids), _PAGE):
            found |= {job.id: job for job in self._where.jobs.multiget(*ids[at : at + _PAGE])}
        return found

    def _result_of(self, id: str, job: Job | None) -> dict[str, Any]:
        if job is None and (name := child_step(id)) in self._removed_children:
            return {"result": self._removed_children[name]}
        if job is None:
            return {"id": id, "error": "it no longer exists", "group": "gone"}
        if job.state == FAILED and job.failure is not None:
            return {"id": id, "error": job.failure.message[-1000:], "group": job.failure.group}
        return {"result": self._where.jobs.result(id)}

    # --- commits ----------------------------------------------------------------------------------

    def _finished_step(
        self, number: int, name: str, begun: float, attempts: int, value: Any
    ) -> Step:
        plain = self._plain_result(name, value)
        size = len(_encode_json(plain))
        if size > MAX_STEP_RESULT_BYTES:
            raise WorkflowTooLarge(
                f"the result of step {name} has {size} bytes, at most {MAX_STEP_RESULT_BYTES} fit"
            )
        if self._saved_bytes + size > MAX_WORKFLOW_BYTES:
            raise WorkflowTooLarge(
                f"the results of workflow {self._job.id} have more than {MAX_WORKFLOW_BYTES} bytes"
            )
        return Step(
            number=number,
            name=name,
            begun=begun,
            ended=self._clock(),
            attempts=attempts,
            result=plain,
        )

    def _plain_result(self, name: str, value: Any) -> Any:
        """Fails a workflow at once: the step has run, and would run again with each retry."""
        try:
            plain = to_plain(value)
            problem: object = json_problem_in(plain, "it")
        except UNFIT as error:
            plain, problem = None, error
        if problem is not None:
            why = f"what step {name} returned can't be stored: {problem}"
            raise Fail(f"{self._job.queue}-bad-result", why) from None
        return plain

    def _failed_step(
        self, number: int, name: str, begun: float, attempts: int, error: Exception
    ) -> Step:
        kind = type(error)
        return Step(
            number=number,
            name=name,
            begun=begun,
            ended=self._clock(),
            attempts=attempts,
            error=error_text(error)[:1000],
            error_class=f"{kind.__module__}:{kind.__qualname__}",
        )

    def _report(self, step: Step, **more: Any) -> Report:
        return Report(
            id=self._job.id,
            worker=self._job.worker,
            what="remember",
            lock=self._job.lock,
            steps=(*self._unsaved.values(), step),
            **more,
        )

    def _remember(self, step: Step, **more: Any) -> None:
        report = self._report(step, **more)
        try:
            reported = self._where.jobs.report([report])
        except Exception as error:
            self._store_error = error
            raise
        for refusal in reported.refused:
            self._run.mark_lost(refusal.code, refusal.message)
            self._run.check()
        self._mark_saved(report)

    def _mark_saved(self, report: Report) -> None:
        """Marks steps as stored by a commit; others may have been added meanwhile."""
        for step in report.steps:
            self._unsaved.pop(step.number, None)
            self._saved_bytes += len(_encode_json(step.result))

    def _park(self, step: Step, delay: float, **more: Any) -> typing.NoReturn:
        steps = (*self._unsaved.values(), step)
        raise Parked(Outcome(what="retry", free=True, delay=delay, steps=steps, **more))


def _is_in(error: Exception, errors: Sequence[Exception]) -> bool:
    return any(error is each for each in errors)


def _is_refused(error: Exception) -> bool:
    """Returns whether the server has refused an operation of the batch, and so all of it."""
    return getattr(error, "position", None) is not None
