"""The operations of jobs, for a client. Made by `make client` from operations.py."""

from collections.abc import Sequence
from typing import Any, Final

from holdfast.client.calls import Call
from holdfast.client.layers import AwaitedLayer, CalledLayer, RecordedLayer, awaited, recorded
from holdfast.jobs.breakdown import GroupBy
from holdfast.jobs.bulk import Action, BulkAction
from holdfast.jobs.failures import Match
from holdfast.jobs.imports import Imported, ImportedDay, ImportedJob, ImportedRecurring, JobsDigest
from holdfast.jobs.logs import LogLine
from holdfast.jobs.queue_figures import JobTotals, QueueFigures
from holdfast.jobs.records import (
    Batch,
    DeadLetters,
    Job,
    JobPage,
    NewJob,
    QueueCounts,
    QueueStats,
    RecurringJob,
    StatsTable,
    Tag,
    Throttle,
    TrackedJobs,
    WorkerCounts,
    WorkerJobs,
)
from holdfast.jobs.reports import Report, Reported, Take
from holdfast.jobs.search import JobSearch, SearchPage
from holdfast.jobs.settings import Value
from holdfast.jobs.settlements import UNSET
from holdfast.jobs.steps import Signal, Step
from holdfast.jobs.worker_programs import WorkerProgram


class CalledJobs(CalledLayer):
    """The operations of `Jobs`, called."""

    def announce_worker(self, program: WorkerProgram, *, now: float | None = None) -> None:
        """Announces that a worker program is alive, and what it is doing."""
        return self._call(_ANNOUNCE_WORKER, program, now)

    def batch(self, id: str) -> Batch | None:
        """Returns the batch with its counts, or None if it does not exist. Reads 5 keys."""
        return self._call(_BATCH, id)

    def batch_cancel(self, id: str) -> int:
        """Cancels all jobs of a batch that are not complete, and all jobs that depend on them."""
        return self._call(_BATCH_CANCEL, id)

    def batch_close(self, id: str, *, now: float | None = None) -> Batch:
        """Closes a batch: no more jobs can be put into it. Closing it again changes nothing."""
        return self._call(_BATCH_CLOSE, id, now)

    def batch_forget(self, id: str) -> bool:
        """Forgets a batch whose jobs are all settled; the jobs stay. Returns whether it
        existed.
        """
        return self._call(_BATCH_FORGET, id)

    def batch_jobs(self, id: str, *, after: str = "", count: int = 25) -> list[str]:
        """Returns ids of the batch's jobs, in the order of the ids, beginning after `after`."""
        return self._call(_BATCH_JOBS, id, after, count)

    def batch_open(
        self,
        id: str | None = None,
        *,
        on_success: NewJob | None = None,
        on_settled: NewJob | None = None,
        now: float | None = None,
    ) -> str:
        """Opens a batch and returns its id."""
        return self._call(_BATCH_OPEN, id, on_success, on_settled, now)

    def bulk(self, id: str) -> BulkAction | None:
        """Returns a bulk action, or None if it is unknown or ended a week ago. Reads 1 key."""
        return self._call(_BULK, id)

    def bulk_run(
        self,
        action: Action,
        search: JobSearch,
        *,
        queue: str | None = None,
        tag: Tag | None = None,
        priority: float | None = None,
    ) -> BulkAction:
        """Applies an action to all jobs that match `search`, and returns when it is done."""
        return self._call(_BULK_RUN, action, search, queue, tag, priority)

    def bulk_start(
        self,
        action: Action,
        search: JobSearch,
        *,
        queue: str | None = None,
        tag: Tag | None = None,
        priority: float | None = None,
        id: str | None = None,
        now: float | None = None,
    ) -> BulkAction:
        """Starts an action on all jobs that match `search`: "cancel", "retry", "move", "tag",
        "untag", "priority" or "run" (now).
        """
        return self._call(_BULK_START, action, search, queue, tag, priority, id, now)

    def bulk_step(self, id: str, *, now: float | None = None) -> BulkAction:
        """Runs the next step of a bulk action: reads some jobs, and changes those that match."""
        return self._call(_BULK_STEP, id, now)

    def bulk_stop(self, id: str, *, now: float | None = None) -> BulkAction:
        """Stops a bulk action; its changes so far stay. Reads 1 key, writes 2."""
        return self._call(_BULK_STOP, id, now)

    def bulks(self) -> list[BulkAction]:
        """Returns all bulk actions that run or ended within a week. Reads 1 key for each."""
        return self._call(_BULKS)

    def cancel(self, *ids: str, now: float | None = None) -> list[str]:
        """Cancels jobs and returns `ids`; unknown and complete ones are skipped."""
        return self._call(_CANCEL, now, ids)

    def cancel_queue(self, queue: str) -> int:
        """Cancels every job that waits, is blocked or runs in `queue`; returns how many."""
        return self._call(_CANCEL_QUEUE, queue)

    def complete(
        self,
        id: str,
        worker: str,
        *,
        queue: str | None = None,
        data: Any = UNSET,
        next: str | None = None,
        delay: float = 0,
        depends: Sequence[str] = (),
        result: Any = UNSET,
        result_ttl: float | None = None,
        lock: int | None = None,
        now: float | None = None,
    ) -> str:
        """Completes the job, or with `next` moves it to that queue; returns its new state."""
        return self._call(
            _COMPLETE, id, worker, queue, data, next, delay, depends, result, result_ttl, lock, now
        )

    def complete_and_pop(
        self,
        id: str,
        worker: str,
        count: int = 1,
        *,
        pop_from: str | None = None,
        data: Any = UNSET,
        next: str | None = None,
        result: Any = UNSET,
        lock: int | None = None,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> list[Job]:
        """Completes the job as `complete` does and hands out the next `count` jobs as `pop`
        does.
        """
        return self._call(
            _COMPLETE_AND_POP,
            id,
            worker,
            count,
            pop_from,
            data,
            next,
            result,
            lock,
            lock_seconds,
            now,
        )

    def config(self) -> dict[str, Value]:
        """Returns the values of all options of Qless, and of others that were set. Reads 1
        key.
        """
        return self._call(_CONFIG)

    def config_get(self, option: str) -> Value | None:
        """Returns the value of an option as it was set, else its default or None. Reads 1 key."""
        return self._call(_CONFIG_GET, option)

    def config_set(self, option: str, value: Value) -> None:
        """Sets an option of one queue or of all; raises for an option that does not exist."""
        return self._call(_CONFIG_SET, option, value)

    def config_unset(self, option: str) -> None:
        """Resets an option to its default. Reads 1 key, writes 1."""
        return self._call(_CONFIG_UNSET, option)

    def counts(self, queue: str, *, now: float | None = None) -> QueueCounts:
        """Returns the counts of one queue, all 0 if it was never used."""
        return self._call(_COUNTS, queue, now)

    def dead_letters(
        self, match: Match | None = None, *, cursor: str | None = None, count: int = 25
    ) -> DeadLetters:
        """Returns failed jobs that match, by group and then oldest first, a page at a time."""
        return self._call(_DEAD_LETTERS, match, cursor, count)

    def depends_off(self, id: str, *ids: str, all: bool = False, now: float | None = None) -> None:
        """Removes `ids`, or all, from a job's dependencies; it starts when none is left."""
        return self._call(_DEPENDS_OFF, id, all, now, ids)

    def depends_on(self, id: str, *ids: str) -> None:
        """Makes a job in state `depends` wait for more jobs; complete ones count as met."""
        return self._call(_DEPENDS_ON, id, ids)

    def digest(self, ids: Sequence[str]) -> JobsDigest:
        """Returns a digest of jobs: of their ids, classes, data, priorities, retries and tags."""
        return self._call(_DIGEST, ids)

    def fail(
        self,
        id: str,
        worker: str,
        group: str,
        message: str,
        *,
        data: Any = UNSET,
        lock: int | None = None,
        now: float | None = None,
    ) -> str:
        """Puts the job into the failure group `group`, or into its queue's dead-letter queue."""
        return self._call(_FAIL, id, worker, group, message, data, lock, now)

    def failed(self) -> dict[str, int]:
        """Returns how many jobs are in each failure group. Reads 1 key for each group."""
        return self._call(_FAILED)

    def failed_in(self, group: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """Returns the failed jobs of a group, newest first."""
        return self._call(_FAILED_IN, group, offset, count)

    def figures(self, *queues: str, after: str = "", count: int = 25) -> list[QueueFigures]:
        """Returns the figures of `queues`, or of the `count` queues whose names follow
        `after`.
        """
        return self._call(_FIGURES, after, count, queues)

    def get(self, id: str) -> Job | None:
        """Returns the job, or None if it does not exist."""
        return self._call(_GET, id)

    def heartbeat(
        self,
        id: str,
        worker: str,
        *,
        data: Any = UNSET,
        progress: float | None = None,
        progress_text: str = "",
        lock: int | None = None,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> float:
        """Renews the lock and returns its new end, no later than the job's own `timeout`
        allows.
        """
        return self._call(
            _HEARTBEAT, id, worker, data, progress, progress_text, lock, lock_seconds, now
        )

    def import_jobs(
        self,
        jobs: Sequence[ImportedJob],
        *,
        recurring: Sequence[ImportedRecurring] = (),
        statistics: Sequence[ImportedDay] = (),
    ) -> Imported:
        """Imports jobs of another system as they are: state, history, failure, lock and time."""
        return self._call(_IMPORT_JOBS, jobs, recurring, statistics)

    def jobs(
        self,
        state: str,
        queue: str = "",
        *,
        offset: int = 0,
        count: int = 25,
        now: float | None = None,
    ) -> list[str]:
        """Returns ids of the "complete" jobs, or of the jobs of a queue that are "running",
        "stalled", "scheduled", "depends" or "recurring".
        """
        return self._call(_JOBS, state, queue, offset, count, now)

    def length(self, queue: str) -> int:
        """Returns how many jobs of the queue wait, are scheduled or run. Reads 4 keys."""
        return self._call(_LENGTH, queue)

    def log(
        self, id: str, message: str, data: dict[str, Any] | None = None, *, now: float | None = None
    ) -> None:
        """Adds an entry to the job's history: `message` as what happened, `data` as more about
        it.
        """
        return self._call(_LOG, id, message, data, now)

    def multiget(self, *ids: str) -> list[Job]:
        """Returns the jobs of those `ids` that exist, in their order. Reads 1 key for each."""
        return self._call(_MULTIGET, ids)

    def pause(self, *queues: str, stop_running: bool = False) -> None:
        """Pauses `queues`: pops return nothing. `stop_running` also takes back the running
        jobs.
        """
        return self._call(_PAUSE, stop_running, queues)

    def peek(self, queue: str, count: int = 1, *, now: float | None = None) -> list[Job]:
        """Returns the next `count` jobs of `queue` without taking them."""
        return self._call(_PEEK, queue, count, now)

    def pop(
        self,
        queue: str,
        worker: str,
        count: int = 1,
        *,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> list[Job]:
        """Hands the next `count` jobs of `queue` to `worker`, each locked for `lock_seconds`."""
        return self._call(_POP, queue, worker, count, lock_seconds, now)

    def pop_wait(
        self,
        queues: str | Sequence[str],
        worker: str,
        count: int = 1,
        *,
        timeout: float | None = None,
        lock_seconds: float | None = None,
    ) -> list[Job]:
        """Pops from the first of `queues` that has a job; waits up to `timeout` seconds."""
        return self._call(_POP_WAIT, queues, worker, count, timeout, lock_seconds)

    def priority(self, id: str, priority: float) -> None:
        """Changes the job's priority; a waiting job becomes the first of its new priority."""
        return self._call(_PRIORITY, id, priority)

    def put(
        self,
        queue: str,
        klass: str = "",
        data: Any = None,
        *,
        id: str | None = None,
        delay: float = 0,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        retries: float | None = None,
        depends: Sequence[str] | None = None,
        throttles: Sequence[str] | None = None,
        unique: str | None = None,
        unique_for: str | float = "running",
        unique_mode: str = "keep",
        at: float | None = None,
        expires: float | None = None,
        timeout: float | None = None,
        rate_key: str | None = None,
        batch: str | None = None,
        worker: str = "",
        now: float | None = None,
    ) -> str:
        """Puts a job into `queue` and returns its id; an existing job with that id moves
        there.
        """
        return self._call(
            _PUT,
            queue,
            klass,
            data,
            id,
            delay,
            priority,
            tags,
            retries,
            depends,
            throttles,
            unique,
            unique_for,
            unique_mode,
            at,
            expires,
            timeout,
            rate_key,
            batch,
            worker,
            now,
        )

    def put_many(
        self, jobs: Sequence[NewJob], *, worker: str = "", now: float | None = None
    ) -> list[str]:
        """Puts all `jobs`, or none if one of them is refused, and returns their ids in order."""
        return self._call(_PUT_MANY, jobs, worker, now)

    def queue_forget(self, *queues: str) -> None:
        """Removes `queues` from the list of known queues; their jobs stay. A put lists them
        again.
        """
        return self._call(_QUEUE_FORGET, queues)

    def queues(self, *, now: float | None = None) -> list[QueueCounts]:
        """Returns the counts of all known queues, in the order in which they were first used."""
        return self._call(_QUEUES, now)

    def read_log(self, id: str) -> tuple[LogLine, ...]:
        """Returns the lines that the workers of a job wrote, oldest first."""
        return self._call(_READ_LOG, id)

    def recur(
        self,
        queue: str,
        klass: str = "",
        data: Any = None,
        *,
        interval: float | None = None,
        cron: str | None = None,
        tz: str = "UTC",
        offset: float = 0,
        id: str | None = None,
        priority: float = 0,
        tags: Sequence[Tag] = (),
        retries: float = 0,
        backlog: float = 0,
        throttles: Sequence[str] = (),
        unique: str | None = None,
        unique_for: str | float = "running",
        now: float | None = None,
    ) -> str:
        """Creates a recurring job and returns its id. Replacing one keeps its count and its
        pause.
        """
        return self._call(
            _RECUR,
            queue,
            klass,
            data,
            interval,
            cron,
            tz,
            offset,
            id,
            priority,
            tags,
            retries,
            backlog,
            throttles,
            unique,
            unique_for,
            now,
        )

    def recur_get(self, id: str) -> RecurringJob | None:
        """Returns the recurring job, or None if it does not exist. Reads 1 key."""
        return self._call(_RECUR_GET, id)

    def recur_pause(self, id: str) -> None:
        """Pauses a recurring job: it spawns no jobs until `recur_resume`."""
        return self._call(_RECUR_PAUSE, id)

    def recur_resume(self, id: str, *, now: float | None = None) -> None:
        """Ends the pause of a recurring job; runs that it has missed are not caught up on."""
        return self._call(_RECUR_RESUME, id, now)

    def recur_tag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Adds tags to the jobs that a recurring job will spawn; returns all of its tags."""
        return self._call(_RECUR_TAG, id, tags)

    def recur_untag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Removes tags from the jobs that a recurring job will spawn; returns the rest."""
        return self._call(_RECUR_UNTAG, id, tags)

    def recur_update(
        self,
        id: str,
        *,
        priority: float | None = None,
        interval: float | None = None,
        retries: float | None = None,
        data: Any = None,
        klass: str | None = None,
        queue: str | None = None,
        backlog: float | None = None,
        now: float | None = None,
    ) -> None:
        """Changes the given attributes of a recurring job; None keeps one as it is."""
        return self._call(
            _RECUR_UPDATE, id, priority, interval, retries, data, klass, queue, backlog, now
        )

    def recurring(self, *, after: str | None = None, count: int = 25) -> list[RecurringJob]:
        """Returns up to `count` recurring jobs of all queues, by id, beginning after `after`."""
        return self._call(_RECURRING, after, count)

    def report(
        self,
        reports: Sequence[Report],
        *,
        takes: Sequence[Take] = (),
        all_or_none: bool = False,
        now: float | None = None,
    ) -> Reported:
        """Settles jobs, or renews their locks, and hands out the next ones, in one commit."""
        return self._call(_REPORT, reports, takes, all_or_none, now)

    def requeue(
        self,
        queue: str | None,
        id: str,
        *,
        klass: str | None = None,
        data: Any = None,
        delay: float = 0,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        retries: float | None = None,
        depends: Sequence[str] | None = None,
        worker: str = "",
        now: float | None = None,
    ) -> str:
        """Puts an existing job into `queue`; it keeps its class and data unless others are
        given.
        """
        return self._call(
            _REQUEUE, queue, id, klass, data, delay, priority, tags, retries, depends, worker, now
        )

    def requeue_letters(self, queue: str, match: Match | None = None) -> int:
        """Sends matching jobs of a dead-letter queue back to the queues that they came from."""
        return self._call(_REQUEUE_LETTERS, queue, match)

    def result(self, id: str) -> Any:
        """Returns the result that the job completed with, or None. Reads 1 key."""
        return self._call(_RESULT, id)

    def result_wait(self, id: str, *, timeout: float | None = None) -> Job:
        """Returns the job once it is complete or failed, at the latest after `timeout`
        seconds.
        """
        return self._call(_RESULT_WAIT, id, timeout)

    def retry(
        self,
        id: str,
        worker: str,
        *,
        queue: str | None = None,
        delay: float = 0,
        group: str | None = None,
        message: str | None = None,
        free: bool = False,
        lock: int | None = None,
        now: float | None = None,
    ) -> int:
        """Puts the job back, to run after `delay` seconds, and returns how many retries
        remain.
        """
        return self._call(_RETRY, id, worker, queue, delay, group, message, free, lock, now)

    def retry_failed(self, match: Match) -> int:
        """Puts every failed job that matches back into its queue; returns how many."""
        return self._call(_RETRY_FAILED, match)

    def search(
        self, search: JobSearch | None = None, *, cursor: str | None = None, count: int = 25
    ) -> SearchPage:
        """Returns jobs that match `search`, a page at a time."""
        return self._call(_SEARCH, search, cursor, count)

    def signal(self, id: str, name: str, value: Any = None, *, now: float | None = None) -> None:
        """Sends a signal to a workflow: a run that waits for `name` continues with `value`."""
        return self._call(_SIGNAL, id, name, value, now)

    def signals(self, id: str) -> list[Signal]:
        """Returns the signals that a workflow has not taken yet, oldest first of each name."""
        return self._call(_SIGNALS, id)

    def stats(self, queue: str, date: float | None = None) -> QueueStats:
        """Returns the statistics of `queue` on the day (UTC) that `date` falls into; today's
        by default.
        """
        return self._call(_STATS, queue, date)

    def stats_by(
        self,
        queue: str,
        by: GroupBy = "class",
        *,
        name: str | None = None,
        since: float | None = None,
        until: float | None = None,
        count: int = 100,
    ) -> StatsTable:
        """Returns wait and run times, failures and retries of `queue` by class, tag or worker."""
        return self._call(_STATS_BY, queue, by, name, since, until, count)

    def steps(self, id: str, *, after: int = -1, count: int = 1000) -> list[Step]:
        """Returns the steps of a workflow after number `after`, as many as fit into one
        answer.
        """
        return self._call(_STEPS, id, after, count)

    def tag(self, id: str, *tags: Tag, now: float | None = None) -> tuple[Tag, ...]:
        """Adds tags to a job and returns all of its tags."""
        return self._call(_TAG, id, now, tags)

    def tagged(self, tag: Tag, *, offset: int = 0, count: int = 25) -> JobPage:
        """Returns the jobs that have `tag`, in the order in which they got it."""
        return self._call(_TAGGED, tag, offset, count)

    def throttle_delete(self, name: str, *, now: float | None = None) -> int:
        """Removes the limit of a throttle and releases all jobs that wait for it; returns 0."""
        return self._call(_THROTTLE_DELETE, name, now)

    def throttle_get(self, name: str, *, now: float | None = None) -> Throttle:
        """Returns a throttle: its maximum, how many jobs hold it, and how many wait for it."""
        return self._call(_THROTTLE_GET, name, now)

    def throttle_locks(self, name: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """Returns the jobs that hold the throttle. Reads 1 key for each job up to the end of
        the page.
        """
        return self._call(_THROTTLE_LOCKS, name, offset, count)

    def throttle_pending(self, name: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """Returns the jobs that wait for the throttle, the longest waiting first."""
        return self._call(_THROTTLE_PENDING, name, offset, count)

    def throttle_set(
        self, name: str, maximum: int, *, ttl: float | None = None, now: float | None = None
    ) -> None:
        """Limits how many jobs that name this throttle run at once; 0 removes the limit."""
        return self._call(_THROTTLE_SET, name, maximum, ttl, now)

    def throttles(
        self, *, after: str | None = None, count: int = 25, now: float | None = None
    ) -> list[Throttle]:
        """Returns up to `count` throttles by name, beginning after `after`."""
        return self._call(_THROTTLES, after, count, now)

    def timeout(self, *ids: str, now: float | None = None) -> None:
        """Takes running jobs from their workers at once, and puts them first in their queues."""
        return self._call(_TIMEOUT, now, ids)

    def top_tags(self, *, offset: int = 0, count: int = 25) -> tuple[str, ...]:
        """Returns the tags that at least two jobs have, the most used first."""
        return self._call(_TOP_TAGS, offset, count)

    def totals(self) -> JobTotals:
        """Returns how many queues, failed jobs, worker programs, schedules and throttles there
        are.
        """
        return self._call(_TOTALS)

    def track(self, id: str, *, now: float | None = None) -> bool:
        """Publishes everything that happens to the job; returns False if it was tracked
        already.
        """
        return self._call(_TRACK, id, now)

    def tracked(self) -> TrackedJobs:
        """Returns all tracked jobs in the order they were tracked, and the ids of removed
        ones.
        """
        return self._call(_TRACKED)

    def unfail(self, queue: str, group: str, count: int = 25, *, now: float | None = None) -> int:
        """Puts the `count` oldest jobs of a failure group into `queue`; returns how many."""
        return self._call(_UNFAIL, queue, group, count, now)

    def unpause(self, *queues: str) -> None:
        """Resumes `queues`: pops return their jobs again. Reads 1 key and writes 1 for each."""
        return self._call(_UNPAUSE, queues)

    def unrecur(self, id: str) -> None:
        """Ends a recurring job; jobs that it has spawned stay. Reads 1 key, writes 3."""
        return self._call(_UNRECUR, id)

    def untag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Removes tags from a job and returns the rest."""
        return self._call(_UNTAG, id, tags)

    def untrack(self, id: str) -> bool:
        """Stops tracking a job, even one that no longer exists; returns whether it was
        tracked.
        """
        return self._call(_UNTRACK, id)

    def v1_call(
        self, name: str, arguments: Sequence[Any] = (), *, named: dict[str, Any] | None = None
    ) -> Any:
        """Runs a call of version 1 of Qless: `v1_call("put", ["queue", "id", "{}", 0])`."""
        return self._call(_V1_CALL, name, arguments, named)

    def withdraw_worker(self, name: str) -> None:
        """Removes the record of a worker program that has ended. Writes 1 key."""
        return self._call(_WITHDRAW_WORKER, name)

    def worker(self, worker: str, *, now: float | None = None) -> WorkerJobs:
        """Returns the jobs that a worker holds, newest lock first; empty for an unknown
        worker.
        """
        return self._call(_WORKER, worker, now)

    def worker_deregister(self, *workers: str) -> None:
        """Removes workers from the list; a worker comes back when it pops or heartbeats."""
        return self._call(_WORKER_DEREGISTER, workers)

    def worker_programs(self, *, now: float | None = None) -> list[WorkerProgram]:
        """Returns the worker programs that are alive, by name."""
        return self._call(_WORKER_PROGRAMS, now)

    def workers(self, *, now: float | None = None) -> list[WorkerCounts]:
        """Returns the workers that were seen within `max-worker-age` seconds, the last seen
        first.
        """
        return self._call(_WORKERS, now)


class AwaitedJobs(AwaitedLayer):
    """The operations of `Jobs`, each a coroutine."""

    announce_worker = awaited(CalledJobs.announce_worker)
    batch = awaited(CalledJobs.batch)
    batch_cancel = awaited(CalledJobs.batch_cancel)
    batch_close = awaited(CalledJobs.batch_close)
    batch_forget = awaited(CalledJobs.batch_forget)
    batch_jobs = awaited(CalledJobs.batch_jobs)
    batch_open = awaited(CalledJobs.batch_open)
    bulk = awaited(CalledJobs.bulk)
    bulk_run = awaited(CalledJobs.bulk_run)
    bulk_start = awaited(CalledJobs.bulk_start)
    bulk_step = awaited(CalledJobs.bulk_step)
    bulk_stop = awaited(CalledJobs.bulk_stop)
    bulks = awaited(CalledJobs.bulks)
    cancel = awaited(CalledJobs.cancel)
    cancel_queue = awaited(CalledJobs.cancel_queue)
    complete = awaited(CalledJobs.complete)
    complete_and_pop = awaited(CalledJobs.complete_and_pop)
    config = awaited(CalledJobs.config)
    config_get = awaited(CalledJobs.config_get)
    config_set = awaited(CalledJobs.config_set)
    config_unset = awaited(CalledJobs.config_unset)
    counts = awaited(CalledJobs.counts)
    dead_letters = awaited(CalledJobs.dead_letters)
    depends_off = awaited(CalledJobs.depends_off)
    depends_on = awaited(CalledJobs.depends_on)
    digest = awaited(CalledJobs.digest)
    fail = awaited(CalledJobs.fail)
    failed = awaited(CalledJobs.failed)
    failed_in = awaited(CalledJobs.failed_in)
    figures = awaited(CalledJobs.figures)
    get = awaited(CalledJobs.get)
    heartbeat = awaited(CalledJobs.heartbeat)
    import_jobs = awaited(CalledJobs.import_jobs)
    jobs = awaited(CalledJobs.jobs)
    length = awaited(CalledJobs.length)
    log = awaited(CalledJobs.log)
    multiget = awaited(CalledJobs.multiget)
    pause = awaited(CalledJobs.pause)
    peek = awaited(CalledJobs.peek)
    pop = awaited(CalledJobs.pop)
    pop_wait = awaited(CalledJobs.pop_wait)
    priority = awaited(CalledJobs.priority)
    put = awaited(CalledJobs.put)
    put_many = awaited(CalledJobs.put_many)
    queue_forget = awaited(CalledJobs.queue_forget)
    queues = awaited(CalledJobs.queues)
    read_log = awaited(CalledJobs.read_log)
    recur = awaited(CalledJobs.recur)
    recur_get = awaited(CalledJobs.recur_get)
    recur_pause = awaited(CalledJobs.recur_pause)
    recur_resume = awaited(CalledJobs.recur_resume)
    recur_tag = awaited(CalledJobs.recur_tag)
    recur_untag = awaited(CalledJobs.recur_untag)
    recur_update = awaited(CalledJobs.recur_update)
    recurring = awaited(CalledJobs.recurring)
    report = awaited(CalledJobs.report)
    requeue = awaited(CalledJobs.requeue)
    requeue_letters = awaited(CalledJobs.requeue_letters)
    result = awaited(CalledJobs.result)
    result_wait = awaited(CalledJobs.result_wait)
    retry = awaited(CalledJobs.retry)
    retry_failed = awaited(CalledJobs.retry_failed)
    search = awaited(CalledJobs.search)
    signal = awaited(CalledJobs.signal)
    signals = awaited(CalledJobs.signals)
    stats = awaited(CalledJobs.stats)
    stats_by = awaited(CalledJobs.stats_by)
    steps = awaited(CalledJobs.steps)
    tag = awaited(CalledJobs.tag)
    tagged = awaited(CalledJobs.tagged)
    throttle_delete = awaited(CalledJobs.throttle_delete)
    throttle_get = awaited(CalledJobs.throttle_get)
    throttle_locks = awaited(CalledJobs.throttle_locks)
    throttle_pending = awaited(CalledJobs.throttle_pending)
    throttle_set = awaited(CalledJobs.throttle_set)
    throttles = awaited(CalledJobs.throttles)
    timeout = awaited(CalledJobs.timeout)
    top_tags = awaited(CalledJobs.top_tags)
    totals = awaited(CalledJobs.totals)
    track = awaited(CalledJobs.track)
    tracked = awaited(CalledJobs.tracked)
    unfail = awaited(CalledJobs.unfail)
    unpause = awaited(CalledJobs.unpause)
    unrecur = awaited(CalledJobs.unrecur)
    untag = awaited(CalledJobs.untag)
    untrack = awaited(CalledJobs.untrack)
    v1_call = awaited(CalledJobs.v1_call)
    withdraw_worker = awaited(CalledJobs.withdraw_worker)
    worker = awaited(CalledJobs.worker)
    worker_deregister = awaited(CalledJobs.worker_deregister)
    worker_programs = awaited(CalledJobs.worker_programs)
    workers = awaited(CalledJobs.workers)


class RecordedJobs(RecordedLayer):
    """The operations of `Jobs`, kept to be sent together."""

    announce_worker = recorded(CalledJobs.announce_worker)
    batch = recorded(CalledJobs.batch)
    batch_close = recorded(CalledJobs.batch_close)
    batch_jobs = recorded(CalledJobs.batch_jobs)
    batch_open = recorded(CalledJobs.batch_open)
    bulk = recorded(CalledJobs.bulk)
    bulk_start = recorded(CalledJobs.bulk_start)
    bulk_step = recorded(CalledJobs.bulk_step)
    bulk_stop = recorded(CalledJobs.bulk_stop)
    bulks = recorded(CalledJobs.bulks)
    complete = recorded(CalledJobs.complete)
    complete_and_pop = recorded(CalledJobs.complete_and_pop)
    config = recorded(CalledJobs.config)
    config_get = recorded(CalledJobs.config_get)
    config_set = recorded(CalledJobs.config_set)
    config_unset = recorded(CalledJobs.config_unset)
    dead_letters = recorded(CalledJobs.dead_letters)
    depends_off = recorded(CalledJobs.depends_off)
    depends_on = recorded(CalledJobs.depends_on)
    digest = recorded(CalledJobs.digest)
    fail = recorded(CalledJobs.fail)
    failed = recorded(CalledJobs.failed)
    failed_in = recorded(CalledJobs.failed_in)
    figures = recorded(CalledJobs.figures)
    get = recorded(CalledJobs.get)
    heartbeat = recorded(CalledJobs.heartbeat)
    import_jobs = recorded(CalledJobs.import_jobs)
    length = recorded(CalledJobs.length)
    log = recorded(CalledJobs.log)
    multiget = recorded(CalledJobs.multiget)
    pop = recorded(CalledJobs.pop)
    priority = recorded(CalledJobs.priority)
    put = recorded(CalledJobs.put)
    put_many = recorded(CalledJobs.put_many)
    queue_forget = recorded(CalledJobs.queue_forget)
    read_log = recorded(CalledJobs.read_log)
    recur = recorded(CalledJobs.recur)
    recur_get = recorded(CalledJobs.recur_get)
    recur_pause = recorded(CalledJobs.recur_pause)
    recur_resume = recorded(CalledJobs.recur_resume)
    recur_tag = recorded(CalledJobs.recur_tag)
    recur_untag = recorded(CalledJobs.recur_untag)
    recur_update = recorded(CalledJobs.recur_update)
    recurring = recorded(CalledJobs.recurring)
    report = recorded(CalledJobs.report)
    requeue = recorded(CalledJobs.requeue)
    result = recorded(CalledJobs.result)
    retry = recorded(CalledJobs.retry)
    search = recorded(CalledJobs.search)
    signal = recorded(CalledJobs.signal)
    signals = recorded(CalledJobs.signals)
    stats = recorded(CalledJobs.stats)
    stats_by = recorded(CalledJobs.stats_by)
    steps = recorded(CalledJobs.steps)
    tag = recorded(CalledJobs.tag)
    tagged = recorded(CalledJobs.tagged)
    throttle_get = recorded(CalledJobs.throttle_get)
    throttle_locks = recorded(CalledJobs.throttle_locks)
    throttle_pending = recorded(CalledJobs.throttle_pending)
    throttle_set = recorded(CalledJobs.throttle_set)
    throttles = recorded(CalledJobs.throttles)
    timeout = recorded(CalledJobs.timeout)
    top_tags = recorded(CalledJobs.top_tags)
    totals = recorded(CalledJobs.totals)
    track = recorded(CalledJobs.track)
    tracked = recorded(CalledJobs.tracked)
    unpause = recorded(CalledJobs.unpause)
    unrecur = recorded(CalledJobs.unrecur)
    untag = recorded(CalledJobs.untag)
    untrack = recorded(CalledJobs.untrack)
    v1_call = recorded(CalledJobs.v1_call)
    withdraw_worker = recorded(CalledJobs.withdraw_worker)
    worker = recorded(CalledJobs.worker)
    worker_deregister = recorded(CalledJobs.worker_deregister)
    worker_programs = recorded(CalledJobs.worker_programs)


_ANNOUNCE_WORKER: Final = Call("jobs.announce_worker", "write", CalledJobs.announce_worker)
_BATCH: Final = Call("jobs.batch", "read", CalledJobs.batch)
_BATCH_CANCEL: Final = Call("jobs.batch_cancel", "long", CalledJobs.batch_cancel)
_BATCH_CLOSE: Final = Call("jobs.batch_close", "write", CalledJobs.batch_close)
_BATCH_FORGET: Final = Call("jobs.batch_forget", "long", CalledJobs.batch_forget)
_BATCH_JOBS: Final = Call("jobs.batch_jobs", "read", CalledJobs.batch_jobs)
_BATCH_OPEN: Final = Call("jobs.batch_open", "write", CalledJobs.batch_open)
_BULK: Final = Call("jobs.bulk", "read", CalledJobs.bulk)
_BULK_RUN: Final = Call("jobs.bulk_run", "long", CalledJobs.bulk_run)
_BULK_START: Final = Call("jobs.bulk_start", "write", CalledJobs.bulk_start)
_BULK_STEP: Final = Call("jobs.bulk_step", "write", CalledJobs.bulk_step)
_BULK_STOP: Final = Call("jobs.bulk_stop", "write", CalledJobs.bulk_stop)
_BULKS: Final = Call("jobs.bulks", "read", CalledJobs.bulks)
_CANCEL: Final = Call("jobs.cancel", "long", CalledJobs.cancel)
_CANCEL_QUEUE: Final = Call("jobs.cancel_queue", "long", CalledJobs.cancel_queue)
_COMPLETE: Final = Call("jobs.complete", "write", CalledJobs.complete)
_COMPLETE_AND_POP: Final = Call("jobs.complete_and_pop", "write", CalledJobs.complete_and_pop)
_CONFIG: Final = Call("jobs.config", "read", CalledJobs.config)
_CONFIG_GET: Final = Call("jobs.config_get", "read", CalledJobs.config_get)
_CONFIG_SET: Final = Call("jobs.config_set", "write", CalledJobs.config_set)
_CONFIG_UNSET: Final = Call("jobs.config_unset", "write", CalledJobs.config_unset)
_COUNTS: Final = Call("jobs.counts", "long", CalledJobs.counts, only_reads=True)
_DEAD_LETTERS: Final = Call("jobs.dead_letters", "read", CalledJobs.dead_letters)
_DEPENDS_OFF: Final = Call("jobs.depends_off", "write", CalledJobs.depends_off)
_DEPENDS_ON: Final = Call("jobs.depends_on", "write", CalledJobs.depends_on)
_DIGEST: Final = Call("jobs.digest", "read", CalledJobs.digest)
_FAIL: Final = Call("jobs.fail", "write", CalledJobs.fail)
_FAILED: Final = Call("jobs.failed", "read", CalledJobs.failed)
_FAILED_IN: Final = Call("jobs.failed_in", "read", CalledJobs.failed_in)
_FIGURES: Final = Call("jobs.figures", "read", CalledJobs.figures)
_GET: Final = Call("jobs.get", "read", CalledJobs.get)
_HEARTBEAT: Final = Call("jobs.heartbeat", "write", CalledJobs.heartbeat)
_IMPORT_JOBS: Final = Call("jobs.import_jobs", "write", CalledJobs.import_jobs)
_JOBS: Final = Call("jobs.jobs", "long", CalledJobs.jobs, only_reads=True)
_LENGTH: Final = Call("jobs.length", "read", CalledJobs.length)
_LOG: Final = Call("jobs.log", "write", CalledJobs.log)
_MULTIGET: Final = Call("jobs.multiget", "read", CalledJobs.multiget)
_PAUSE: Final = Call("jobs.pause", "long", CalledJobs.pause)
_PEEK: Final = Call("jobs.peek", "long", CalledJobs.peek, only_reads=True)
_POP: Final = Call("jobs.pop", "write", CalledJobs.pop)
_POP_WAIT: Final = Call("jobs.pop_wait", "wait", CalledJobs.pop_wait)
_PRIORITY: Final = Call("jobs.priority", "write", CalledJobs.priority)
_PUT: Final = Call("jobs.put", "write", CalledJobs.put)
_PUT_MANY: Final = Call("jobs.put_many", "write", CalledJobs.put_many)
_QUEUE_FORGET: Final = Call("jobs.queue_forget", "write", CalledJobs.queue_forget)
_QUEUES: Final = Call("jobs.queues", "long", CalledJobs.queues, only_reads=True)
_READ_LOG: Final = Call("jobs.read_log", "read", CalledJobs.read_log)
_RECUR: Final = Call("jobs.recur", "write", CalledJobs.recur)
_RECUR_GET: Final = Call("jobs.recur_get", "read", CalledJobs.recur_get)
_RECUR_PAUSE: Final = Call("jobs.recur_pause", "write", CalledJobs.recur_pause)
_RECUR_RESUME: Final = Call("jobs.recur_resume", "write", CalledJobs.recur_resume)
_RECUR_TAG: Final = Call("jobs.recur_tag", "write", CalledJobs.recur_tag)
_RECUR_UNTAG: Final = Call("jobs.recur_untag", "write", CalledJobs.recur_untag)
_RECUR_UPDATE: Final = Call("jobs.recur_update", "write", CalledJobs.recur_update)
_RECURRING: Final = Call("jobs.recurring", "read", CalledJobs.recurring)
_REPORT: Final = Call("jobs.report", "write", CalledJobs.report)
_REQUEUE: Final = Call("jobs.requeue", "write", CalledJobs.requeue)
_REQUEUE_LETTERS: Final = Call("jobs.requeue_letters", "long", CalledJobs.requeue_letters)
_RESULT: Final = Call("jobs.result", "read", CalledJobs.result)
_RESULT_WAIT: Final = Call("jobs.result_wait", "wait", CalledJobs.result_wait, only_reads=True)
_RETRY: Final = Call("jobs.retry", "write", CalledJobs.retry)
_RETRY_FAILED: Final = Call("jobs.retry_failed", "long", CalledJobs.retry_failed)
_SEARCH: Final = Call("jobs.search", "read", CalledJobs.search)
_SIGNAL: Final = Call("jobs.signal", "write", CalledJobs.signal)
_SIGNALS: Final = Call("jobs.signals", "read", CalledJobs.signals)
_STATS: Final = Call("jobs.stats", "read", CalledJobs.stats)
_STATS_BY: Final = Call("jobs.stats_by", "read", CalledJobs.stats_by)
_STEPS: Final = Call("jobs.steps", "read", CalledJobs.steps)
_TAG: Final = Call("jobs.tag", "write", CalledJobs.tag)
_TAGGED: Final = Call("jobs.tagged", "read", CalledJobs.tagged)
_THROTTLE_DELETE: Final = Call("jobs.throttle_delete", "long", CalledJobs.throttle_delete)
_THROTTLE_GET: Final = Call("jobs.throttle_get", "read", CalledJobs.throttle_get)
_THROTTLE_LOCKS: Final = Call("jobs.throttle_locks", "read", CalledJobs.throttle_locks)
_THROTTLE_PENDING: Final = Call("jobs.throttle_pending", "read", CalledJobs.throttle_pending)
_THROTTLE_SET: Final = Call("jobs.throttle_set", "write", CalledJobs.throttle_set)
_THROTTLES: Final = Call("jobs.throttles", "read", CalledJobs.throttles)
_TIMEOUT: Final = Call("jobs.timeout", "write", CalledJobs.timeout)
_TOP_TAGS: Final = Call("jobs.top_tags", "read", CalledJobs.top_tags)
_TOTALS: Final = Call("jobs.totals", "read", CalledJobs.totals)
_TRACK: Final = Call("jobs.track", "write", CalledJobs.track)
_TRACKED: Final = Call("jobs.tracked", "read", CalledJobs.tracked)
_UNFAIL: Final = Call("jobs.unfail", "long", CalledJobs.unfail)
_UNPAUSE: Final = Call("jobs.unpause", "write", CalledJobs.unpause)
_UNRECUR: Final = Call("jobs.unrecur", "write", CalledJobs.unrecur)
_UNTAG: Final = Call("jobs.untag", "write", CalledJobs.untag)
_UNTRACK: Final = Call("jobs.untrack", "write", CalledJobs.untrack)
_V1_CALL: Final = Call("jobs.v1_call", "write", CalledJobs.v1_call)
_WITHDRAW_WORKER: Final = Call("jobs.withdraw_worker", "write", CalledJobs.withdraw_worker)
_WORKER: Final = Call("jobs.worker", "read", CalledJobs.worker)
_WORKER_DEREGISTER: Final = Call("jobs.worker_deregister", "write", CalledJobs.worker_deregister)
_WORKER_PROGRAMS: Final = Call("jobs.worker_programs", "read", CalledJobs.worker_programs)
_WORKERS: Final = Call("jobs.workers", "long", CalledJobs.workers, only_reads=True)
