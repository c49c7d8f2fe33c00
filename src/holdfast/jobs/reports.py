"""Reports: a worker settles its jobs and takes the next ones, all in one commit.

So a worker with eight busy slots waits for the disk once, not eight times. If the worker has lost
one of the jobs meanwhile, only that report is refused; the others are settled.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.declarations import operation
from holdfast.errors import BadArgument, UnknownJob, WrongState
from holdfast.jobs import dependencies, lists, locks, logs, results, settlements, steps
from holdfast.jobs.arguments import check_jobs_count, json_text
from holdfast.jobs.logs import LogLine
from holdfast.jobs.pops import pop
from holdfast.jobs.puts import put
from holdfast.jobs.queues import next_wake
from holdfast.jobs.records import Job, JobRecord, NewJob
from holdfast.jobs.steps import Step
from holdfast.jobs.views import to_jobs
from holdfast.limits import MAX_ANSWER_BYTES, MAX_JOB_DATA_BYTES

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


class Report(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The report of a worker about a job that it holds.

    `what` is "heartbeat" (renew the lock), "complete", "retry" (after `delay` seconds; with `free`,
    without using up a retry), "fail", "release" (hand the job back now) or "remember", which only
    checks that the worker holds the job. `result` is kept unless it is None. `puts` are jobs to put
    in the same commit. The rest is for workflows: `steps` are remembered, `took` and `took_number`
    name a signal that was taken, and a retry runs at once when the signal `awaits` is sent, or when
    the jobs in `depends` are complete.
    """

    id: str
    worker: str
    what: Literal["heartbeat", "complete", "retry", "fail", "release", "remember"]
    lock: int | None = None
    lock_seconds: float | None = None
    progress: float | None = None
    progress_text: str = ""
    log: tuple[LogLine, ...] = ()
    result: Any = None
    result_ttl: float | None = None
    delay: float = 0
    free: bool = False
    group: str | None = None
    message: str | None = None
    puts: tuple[NewJob, ...] = ()
    steps: tuple[Step, ...] = ()
    took: str = ""
    took_number: int = 0
    awaits: str = ""
    depends: tuple[str, ...] = ()


class Take(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Asks for up to `count` jobs for a worker, from the first of `queues` that have any."""

    worker: str
    queues: tuple[str, ...]
    count: int = 1
    lock_seconds: float | None = None


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A report that was refused: the worker no longer holds the job.

    `code` is "job_lost", "unknown_job" if it was canceled, or "wrong_state".
    """

    id: str
    code: str
    message: str


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to reports: those that were refused, and the jobs that were taken.

    `wake` is the number of seconds after which one of the queues may have a job even if none is
    put; None if never, 0 if there may be more jobs that did not fit into this answer.
    """

    refused: tuple[Refusal, ...] = ()
    jobs: tuple[Job, ...] = ()
    wake: float | None = None


class ReportOperations:
    """The operation of worker programs."""

    _ledger: "Ledger"

    @operation()
    def report(
        self,
        reports: Sequence[Report],
        *,
        takes: Sequence[Take] = (),
        all_or_none: bool = False,
        now: float | None = None,
    ) -> Reported:
        """Settles jobs, or renews their locks, and hands out the next ones, in one commit.

        >>> store.jobs.put("emails", id="welcome")
        'welcome'
        >>> [job] = store.jobs.report([], takes=[Take(worker="w", queues=("emails",))]).jobs
        >>> store.jobs.report([Report(id=job.id, worker="w", what="complete", lock=job.lock)])
        Reported(refused=(), jobs=(), wake=None)

        A report about a job that the worker has lost is refused, the others take effect; with
        `all_or_none` it raises and nothing is done. Costs what the single calls do.
        """
        check_jobs_count(len(reports) + len(takes))
        ledger = self._ledger
        time = ledger.time(now)
        refused = [
            refusal for each in reports for refusal in _apply(ledger, each, time, all_or_none)
        ]
        begun = ledger.long_data_bytes
        jobs = to_jobs(ledger, _pop_all(ledger, takes, time))
        wake = None
        if _is_full(ledger, begun):
            wake = time
        elif len(jobs) < sum(take.count for take in takes):
            queues = dict.fromkeys(queue for take in takes for queue in take.queues)
            wake = next_wake(ledger, queues)
        return Reported(
            refused=tuple(refused),
            jobs=tuple(jobs),
            wake=None if wake is None else max(0.0, wake - time),
        )


# --- how it is done ---------------------------------------------------------------------------


def _apply(ledger: "Ledger", report: Report, now: float, all_or_none: bool) -> Iterator[Refusal]:
    try:
        _settle(ledger, report, now)
    except (UnknownJob, WrongState) as refusal:  # raised before anything was written
        if all_or_none:
            raise
        yield Refusal(id=report.id, code=refusal.code, message=str(refusal))
        return
    if report.log or report.steps or report.progress is not None:
        job = ledger.job(report.id)
        if job is not None:  # `jobs-history` may have removed it at once
            _save_details(ledger, job, report, now)
    if report.took:
        steps.drop_signal(ledger, report.id, report.took, report.took_number)
    for new in report.puts:
        put(ledger, new, report.worker, now)
    if report.depends:
        _wait_for_jobs(ledger, report, now)


def _settle(ledger: "Ledger", report: Report, now: float) -> None:
    id, worker, lock = report.id, report.worker, report.lock
    match report.what:
        case "complete":
            kept = report.result is not None
            result = json_text(report.result, "result") if kept else None
            settlements.complete(
                ledger,
                id,
                worker,
                None,
                None,
                now,
                result=result,
                lock=lock,
                result_ttl=report.result_ttl,
            )
        case "heartbeat":
            expires = None if report.lock_seconds is None else now + report.lock_seconds
            locks.heartbeat(ledger, id, worker, None, now, lock, expires)
        case "retry":
            settlements.retry(
                ledger,
                id,
                None,
                worker,
                0 if _has_awaited_signal(ledger, report) else report.delay,
                report.group,
                report.message,
                now,
                lock=lock,
                free=report.free,
                awaits=report.awaits,
            )
        case "fail":
            group, message = report.group or "", report.message or ""
            settlements.fail(ledger, id, worker, group, message, None, now, lock=lock)
        case "remember":
            locks.held(ledger, id, worker, lock)
        case "release":
            locks.release(ledger, id, worker, now, lock)
        case unknown:
            raise BadArgument.named("what", f"is unknown: {unknown}")


def _save_details(ledger: "Ledger", job: JobRecord, report: Report, now: float) -> None:
    if report.steps:
        steps.write_steps(ledger, job, report.steps)
    if report.log:
        logs.add_lines(ledger, job, report.log, now)
    if report.progress is None:
        if report.log:
            ledger.save(job)
    else:
        results.check_progress(report.progress)
        results.set_progress(ledger, job, report.progress, report.progress_text)


def _has_awaited_signal(ledger: "Ledger", report: Report) -> bool:
    """Returns whether the signal that the job wants to wait for is there already."""
    return bool(report.awaits) and steps.has_signal(ledger, report.id, report.awaits)


def _wait_for_jobs(ledger: "Ledger", report: Report, now: float) -> None:
    """Makes a job that was put back wait for other jobs, such as the children of a workflow."""
    job = ledger.job(report.id)
    assert job is not None
    lists.leave(ledger, job, now)
    dependencies.replace(ledger, job, list(report.depends))
    lists.enter(ledger, job, now, now + report.delay)
    ledger.save(job)


def _pop_all(ledger: "Ledger", takes: Sequence[Take], now: float) -> Iterator[JobRecord]:
    """Pops for each of `takes`; a queue that had fewer jobs than asked for is not asked again.

    It ends early when another job might not fit into the answer.
    """
    empty: set[str] = set()
    begun = ledger.long_data_bytes
    for take in takes:
        wanted = take.count
        expires = None if take.lock_seconds is None else now + take.lock_seconds
        for queue in take.queues:
            while wanted > 0 and queue not in empty:
                if _is_full(ledger, begun):
                    return
                # A pop of several jobs may fill the whole answer by itself.
                asked = 1 if ledger.long_data_bytes > begun else wanted
                jobs = pop(ledger, queue, take.worker, asked, now, expires)
                if len(jobs) < asked:
                    empty.add(queue)
                wanted -= len(jobs)
                yield from jobs


def _is_full(ledger: "Ledger", begun: int) -> bool:
    """Returns whether another job might not fit the answer, after what was read since `begun`."""
    return ledger.long_data_bytes - begun + MAX_JOB_DATA_BYTES > MAX_ANSWER_BYTES
