"""Calls that take more than one transaction: waits, and long work in bounded steps."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.binding import Runner, per_call
from holdfast.declarations import operation
from holdfast.engine.contract import Subscription
from holdfast.errors import JobNeeded, UnknownJob, ViewOnlyReads
from holdfast.jobs import dependencies, queues
from holdfast.jobs.argument_types import check_argument_types
from holdfast.jobs.arguments import check_queue
from holdfast.jobs.batches import forget_step
from holdfast.jobs.bulk import Action, BulkAction
from holdfast.jobs.cancellation import cancel_jobs, cancel_open
from holdfast.jobs.failures import Match
from holdfast.jobs.handles import JobHandle, QueueHandle
from holdfast.jobs.layer import Jobs
from holdfast.jobs.ledger import LOG, READY, Ledger, event_marker
from holdfast.jobs.puts import requeue_letters_step
from holdfast.jobs.records import COMPLETE, FAILED, Job, QueueCounts, Tag, WorkerCounts
from holdfast.jobs.search import JobSearch
from holdfast.limits import JOBS_PER_STEP, MAX_QUEUED_NOTICES

if TYPE_CHECKING:
    from holdfast.jobs.v1 import StoreJobsV1

    _PerCall = Jobs
else:
    _PerCall = per_call(Jobs)

T = TypeVar("T")


@check_argument_types
class StoreJobs(_PerCall):
    """The job queue of a store: one transaction per call, unless its description says otherwise."""

    if TYPE_CHECKING:

        def __init__(self, runner: Runner, make: Callable[[Any], Jobs] = ...) -> None: ...

        _runner: Runner
        _make: Callable[[Any], Jobs]

    @property
    def v1(self) -> "StoreJobsV1":
        """Returns the calls of the seed, the first Qless."""
        from holdfast.jobs.v1 import StoreJobsV1

        return StoreJobsV1(self._runner, lambda tx: self._make(tx).v1)

    @operation(local=True)
    def queue(self, name: str) -> QueueHandle:
        """Returns a handle on one queue: `store.jobs.queue("emails").pop("worker")`."""
        return QueueHandle(self, name)

    def __getitem__(self, id: str) -> JobHandle:
        """Returns a handle on one job: `store.jobs["welcome"].complete("worker")`."""
        return JobHandle(self, id)

    # --- looking: on a view, unless something is due and must be moved first -------------------

    @operation(reads=True)
    def peek(self, queue: str, count: int = 1, *, now: float | None = None) -> list[Job]:
        return self._try_view_first(lambda jobs: jobs.peek(queue, count, now=now))

    @operation(reads=True)
    def queues(self, *, now: float | None = None) -> list[QueueCounts]:
        return self._try_view_first(lambda jobs: jobs.queues(now=now))

    @operation(reads=True)
    def counts(self, queue: str, *, now: float | None = None) -> QueueCounts:
        return self._try_view_first(lambda jobs: jobs.counts(queue, now=now))

    @operation(reads=True)
    def workers(self, *, now: float | None = None) -> list[WorkerCounts]:
        return self._try_view_first(lambda jobs: jobs.workers(now=now))

    @operation(reads=True)
    def jobs(
        self,
        state: str,
        queue: str = "",
        *,
        offset: int = 0,
        count: int = 25,
        now: float | None = None,
    ) -> list[str]:
        return self._try_view_first(
            lambda jobs: jobs.jobs(state, queue, offset=offset, count=count, now=now)
        )

    def _try_view_first(self, work: Callable[[Jobs], T]) -> T:
        try:
            with self._runner.view() as reader:
                return work(self._make(reader))  # a view refuses to write
        except ViewOnlyReads:
            return self._runner.transact(lambda tx: work(self._make(tx)))

    # --- waiting --------------------------------------------------------------------------------

    @operation(waits=True)
    def pop_wait(
        self,
        queues: str | Sequence[str],
        worker: str,
        count: int = 1,
        *,
        timeout: float | None = None,
        lock_seconds: float | None = None,
    ) -> list[Job]:
        """Pops from the first of `queues` that has a job; waits up to `timeout` seconds.

        No transaction is open while it waits. It wakes when a job is put, comes back or becomes
        due, when a lock ends, and when a queue is unpaused. Returns an empty list if there is no
        job within `timeout`. Costs what `pop` does for each queue, each time it looks, and reads 2
        keys before it waits.
        """
        names = [queues] if isinstance(queues, str) else list(queues)
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._runner.subscribe(READY) as ready:
            while True:
                for name in names:
                    jobs = self.pop(name, worker, count, lock_seconds=lock_seconds)
                    if jobs:
                        return jobs
                if not self._wait(ready, names, deadline):
                    return []

    def _wait(self, ready: Subscription, names: list[str], deadline: float | None) -> bool:
        """Waits until one of the queues may have a job; False when the deadline has come."""
        with self._runner.view() as reader:
            wake = self._make(reader).next_wake(*names)
            until_wake = None if wake is None else max(0.001, wake - reader.now)
        wanted = {b"", *(name.encode() for name in names)}
        begin = time.monotonic()
        while True:
            passed = time.monotonic()
            left = None if deadline is None else deadline - passed
            if left is not None and left <= 0:
                return False
            rest = None if until_wake is None else until_wake - (passed - begin)
            if rest is not None and rest <= 0:
                return True
            notice = ready.get(
                min((each for each in (left, rest) if each is not None), default=None)
            )
            if notice is not None and notice.payload in wanted:
                return True

    @operation(reads=True, waits=True)
    def result_wait(self, id: str, *, timeout: float | None = None) -> Job:
        """Returns the job once it is complete or failed, at the latest after `timeout` seconds.

        Reads 1 key each time the job changes.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._runner.subscribe(LOG) as log:
            while True:
                job = self.get(id)
                if job is None:
                    raise UnknownJob.of(id)
                left = None if deadline is None else deadline - time.monotonic()
                if job.state in (COMPLETE, FAILED) or (left is not None and left <= 0):
                    return job
                _wait_for_event(log, event_marker(id), left)

    # --- long work in bounded steps -----------------------------------------------------------

    @operation(local=True)
    def put_all(self, jobs: Sequence[Any], *, worker: str = "") -> Iterator[str]:
        """Puts any number of jobs, `JOBS_PER_STEP` in a transaction; yields their ids."""
        listed = list(jobs)
        for at in range(0, len(listed), JOBS_PER_STEP):
            yield from self.put_many(listed[at : at + JOBS_PER_STEP], worker=worker)

    @operation()
    def cancel(self, *ids: str, now: float | None = None) -> list[str]:
        """Cancels jobs and returns `ids`; unknown and complete ones are skipped.

        Every job that depends on one of them must be canceled with it; otherwise `JobNeeded` is
        raised. Up to `JOBS_PER_STEP` jobs are canceled in one transaction, all or none; more take
        several transactions. Reads 2 keys and writes 3 to 6 for each job.
        """
        if len(ids) <= JOBS_PER_STEP:
            return super().cancel(*ids, now=now)
        with self._runner.view() as reader:
            ledger = Ledger(reader)  # type: ignore[arg-type]  # it only reads
            dependencies.refuse_missing_dependents(ledger, list(ids))
            ordered = dependencies.leaves_first(ledger, ids)
        named = set(ids)
        for step in _steps(ordered):
            self._runner.transact(
                lambda tx, step=step: cancel_jobs(  # type: ignore[misc]
                    Ledger(tx), step, tx.now if now is None else now, mentioned=named
                )
            )
        return list(ids)

    @operation()
    def cancel_queue(self, queue: str) -> int:
        """Cancels every job that waits, is blocked or runs in `queue`; returns how many.

        In steps of `JOBS_PER_STEP`, together with all jobs that depend on them. To keep workers
        from taking jobs meanwhile, pause the queue first. Reads 5 keys and writes 3 to 6 for each
        job.
        """
        total = 0
        check_queue(queue)
        while ids := self._read(lambda ledger: queues.some_jobs(ledger, queue, JOBS_PER_STEP)):
            total += self._cancel_with_dependents(ids)
        return total

    def _cancel_with_dependents(self, ids: list[str]) -> int:
        """Cancels those of `ids` that are not complete and all jobs that depend on them, in steps;
        returns how many."""
        total = 0
        while True:
            ordered = self._read(lambda ledger: dependencies.leaves_first(ledger, ids))
            try:
                for step in _steps(ordered):
                    total += self._runner.transact(
                        lambda tx, step=step: cancel_open(Ledger(tx), step, tx.now)  # type: ignore[misc]
                    )
            except JobNeeded:  # by a job that was put since they were read
                continue
            return total

    def _read(self, work: Callable[[Ledger], T]) -> T:
        with self._runner.view() as reader:
            return work(Ledger(reader))  # type: ignore[arg-type]  # it only reads

    @operation()
    def pause(self, *queues: str, stop_running: bool = False) -> None:
        """Pauses `queues`: pops return nothing. `stop_running` also takes back the running jobs.

        Pausing is one transaction; the running jobs follow in steps of `JOBS_PER_STEP`.
        Reads 1 key and writes 1 for each queue; reads 4 and writes 6 for each job taken back.
        """
        super().pause(*queues)
        for queue in queues if stop_running else ():
            while self._runner.transact(lambda tx, queue=queue: _stop_some(self._make(tx), queue)):  # type: ignore[misc]
                pass

    @operation()
    def unfail(self, queue: str, group: str, count: int = 25, *, now: float | None = None) -> int:
        """Puts the `count` oldest jobs of a failure group into `queue`; returns how many.

        In steps of `JOBS_PER_STEP`. Reads 5 keys and writes 7 for each.
        """
        total = 0
        while total < count:
            wanted = min(JOBS_PER_STEP, count - total)
            moved = super().unfail(queue, group, wanted, now=now)
            total += moved
            if moved < wanted:
                break
        return total

    @operation()
    def retry_failed(self, match: Match) -> int:
        """Puts every failed job that matches back into its queue; returns how many.

        `store.jobs.retry_failed(Match(klass="app.SendMail", message="timed out"))`. Reads 2 keys
        for each failed job; reads 3 more and writes 7 for each that is put back.
        """
        total = 0
        cursor: str | None = None
        while True:
            moved, cursor = self.retry_step(match, cursor=cursor)
            total += moved
            if cursor is None:
                return total

    @operation()
    def bulk_run(
        self,
        action: Action,
        search: JobSearch,
        *,
        queue: str | None = None,
        tag: Tag | None = None,
        priority: float | None = None,
    ) -> BulkAction:
        """Applies an action to all jobs that match `search`, and returns when it is done.

        `store.jobs.bulk_run("move", JobSearch(tag="vip"), queue="fast")`. `bulk_start` lists the
        actions, and does not wait. In steps of `JOBS_PER_STEP`. Reads up to 5 keys for each job
        that it looks at, and costs what the action does for each match.
        """
        found = self.bulk_start(action, search, queue=queue, tag=tag, priority=priority)
        while found.state == "running":
            found = self.bulk_step(found.id)
        return found

    @operation()
    def batch_cancel(self, id: str) -> int:
        """Cancels all jobs of a batch that are not complete, and all jobs that depend on them.

        Closes the batch first; its `on_settled` job is put at the end. Returns how many jobs were
        canceled. In steps of `JOBS_PER_STEP`. Reads 10 keys and writes 5 for each job.
        """
        self.batch_close(id)
        total, cursor = 0, ""
        while True:
            ids = self.batch_jobs(id, after=cursor, count=JOBS_PER_STEP)
            if not ids:
                return total
            total += self._cancel_with_dependents(ids)
            cursor = ids[-1]

    @operation()
    def batch_forget(self, id: str) -> bool:
        """Forgets a batch whose jobs are all settled; the jobs stay. Returns whether it existed.

        In steps of `JOBS_PER_STEP`. Reads 2 keys and writes 2 for each.
        """
        if self.batch(id) is None:
            return False
        while self._runner.transact(lambda tx: forget_step(Ledger(tx), id)):
            pass
        return True

    @operation()
    def requeue_letters(self, queue: str, match: Match | None = None) -> int:
        """Sends matching jobs of a dead-letter queue back to the queues that they came from.

        Returns how many. Jobs that were put into `queue` directly stay. In steps of
        `JOBS_PER_STEP`: reads 2 keys for each job of the queue, and costs what `put` does for each
        job sent back.
        """
        total = 0
        cursor: bytes | None = b""
        while cursor is not None:
            moved, cursor = self._runner.transact(
                lambda tx, at=cursor: requeue_letters_step(  # type: ignore[misc]
                    Ledger(tx), queue, match or Match(), at, tx.now
                )
            )
            total += moved
        return total

    @operation()
    def throttle_delete(self, name: str, *, now: float | None = None) -> int:
        """Removes the limit of a throttle and releases all jobs that wait for it; returns 0.

        Releases `JOBS_PER_STEP` jobs in a transaction. Reads 3 keys and writes 1;
        reads 4 and writes 5 for each job that waited.
        """
        while super().throttle_delete(name, now=now):
            pass
        return 0


def _steps(ids: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(ids), JOBS_PER_STEP):
        yield ids[at : at + JOBS_PER_STEP]


def _stop_some(jobs: Jobs, queue: str) -> int:
    """Takes up to `JOBS_PER_STEP` running jobs from their workers."""
    ids = [
        *jobs.jobs("stalled", queue, count=JOBS_PER_STEP),
        *jobs.jobs("running", queue, count=JOBS_PER_STEP),
    ]
    jobs.timeout(*ids[:JOBS_PER_STEP])
    return len(ids)


def _wait_for_event(log: Subscription, wanted: bytes, timeout: float | None) -> None:
    """Waits until something is published about the job."""
    end = None if timeout is None else time.monotonic() + timeout
    for _ in range(MAX_QUEUED_NOTICES):
        left = None if end is None else max(0.0, end - time.monotonic())
        notice = log.get(left)
        if notice is None or wanted in notice.payload:
            return
