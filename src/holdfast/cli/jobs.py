"""`holdfast jobs`: lists, shows, retries and cancels jobs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import job_changes, job_import, job_stats
from holdfast.cli.location import Location, location_options
from holdfast.cli.output import CommandFailure, Output, age, count_option, counted, moment
from holdfast.cli.root_group import CommandGroup
from holdfast.limits import JOBS_PER_STEP

if TYPE_CHECKING:
    from holdfast.jobs import Job, LogLine, Step
    from holdfast.store import Space

_OF_A_QUEUE = ("waiting", "running", "stalled", "scheduled", "depends", "recurring")
_STATES = (*_OF_A_QUEUE, "failed", "complete")


@click.group("jobs", cls=CommandGroup)
def command() -> None:
    """Put, list, show, find, retry, move and cancel jobs; pause queues; list workers.

    Example: holdfast jobs list --data data emails
    """


for each in (*job_changes.COMMANDS, *job_stats.COMMANDS, *job_import.COMMANDS):
    command.add_command(each)


@command.command("list")
@click.argument("queue", required=False)
@click.option("--queue", "option_queue", metavar="NAME", help="The same as QUEUE.")
@click.option(
    "--state",
    type=click.Choice(_STATES),
    metavar="STATE",
    help=f"List jobs in this state: {', '.join(_STATES)}.  [default: waiting]",
)
@count_option(25)
@click.option(
    "--offset", type=click.IntRange(min=0), default=0, metavar="N", help="How many to skip."
)
@location_options
def list_jobs(
    location: Location,
    out: Output,
    queue: str | None,
    option_queue: str | None,
    state: str | None,
    count: int,
    offset: int,
) -> None:
    """List the jobs of QUEUE, the jobs in a state, or without both, all queues.

    Example: holdfast jobs list --data data emails --state running
    """
    if queue is not None and option_queue not in (None, queue):
        raise click.UsageError(f"name one queue, not both {queue!r} and {option_queue!r}")
    queue = option_queue if queue is None else queue
    if queue is None and state in _OF_A_QUEUE:
        raise click.UsageError(f"jobs that are {state} are listed by queue: give its name")
    with location.open() as opened:
        if queue is not None:
            _refuse_unknown_queue(opened.space, queue, out)
        if queue is None and state is None:
            counts = opened.space.jobs.queues()
            heads = (
                *("queue", "waiting", "running", "stalled", "scheduled", "depends", "throttled"),
                "paused",
            )
            fields = ("name", *heads[1:])
            rows = [[getattr(each, field) for field in fields] for each in counts]
            out.result({"queues": counts}, lambda: out.table(heads, rows, empty="no queues"))
            return
        jobs = _jobs(opened.space, queue, state or "waiting", count, offset)
    if state == "failed":
        columns: tuple[str, ...] = ("id", "class", "queue", "group", "message", "age")
        listed = [_failed_row(job) for job in jobs]
    else:
        columns = ("id", "class", "state", "queue", "worker", "priority")
        listed = [
            [job.id, job.klass, _state_of(job, state), job.queue, job.worker, job.priority]
            for job in jobs
        ]
    if jobs:
        out.result({"jobs": jobs}, lambda: out.table(columns, listed))
    else:
        hint = "" if state else "; --state lists others"
        where = f" in {queue}" if queue else ""
        out.result({"jobs": jobs}, lambda: out.note(f"no {state or 'waiting'} jobs{where}{hint}"))


def _state_of(job: Any, asked: str | None) -> str:
    """Returns the state to show: a lock that has ended makes a running job stalled."""
    return "stalled" if asked == "stalled" else str(job.state)


def _failed_row(job: "Job") -> list[Any]:
    failure = job.failure
    assert failure is not None
    return [job.id, job.klass, job.queue, failure.group, failure.reason, age(failure.when)]


def _refuse_unknown_queue(space: "Space", queue: str, out: Output) -> None:
    from holdfast.error_text import did_you_mean

    known = [each.name for each in space.jobs.queues()]
    if queue not in known and not space.jobs.length(queue):
        raise CommandFailure(
            "unknown_queue",
            f"there is no queue {queue!r}{did_you_mean(queue, known)}",
            "`holdfast jobs list` shows all queues.",
            is_json=out.is_json,
        )


@command.command("show")
@click.argument("id")
@location_options
def show(location: Location, out: Output, id: str) -> None:
    """Show everything about a job: data, progress, result, history, log, steps, and failure.

    Example: holdfast jobs show --data data receipt-1001
    """
    import msgspec

    with location.open() as opened:
        job = _found(opened.space, id, out)
        log = opened.space.jobs.read_log(id)
        steps = opened.space.jobs.steps(id)
        result = opened.space.jobs.result(id)
    shown = {**msgspec.structs.asdict(job), "result": result, "log": log, "steps": steps}
    out.result(shown, lambda: _show(out, job, result, log, steps))


@command.command("retry")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--group", metavar="GROUP", help="All failed jobs of this failure group.")
@click.option("--klass", "--class", metavar="CLASS", help="All failed jobs of this class.")
@click.option("--message", metavar="TEXT", help="All failed jobs whose message contains TEXT.")
@click.option("--all", "everything", is_flag=True, help="All failed jobs.")
@location_options
def retry(
    location: Location,
    out: Output,
    ids: tuple[str, ...],
    group: str | None,
    klass: str | None,
    message: str | None,
    everything: bool,
) -> None:
    """Put failed jobs back into their queues: those named, or those that match.

    Example: holdfast jobs retry --data data --group timeout
    """
    wanted: dict[str, Any] = {"group": group, "klass": klass, "message": message}
    given = {name: value for name, value in wanted.items() if value is not None}
    if bool(ids) == bool(given or everything):
        raise click.UsageError(
            "name jobs, or select them with --group, --class, --message or --all"
        )
    with location.open() as opened:
        if ids:
            jobs = [_found(opened.space, id, out) for id in ids]
            for job in jobs:
                if job.state != "failed":
                    raise CommandFailure(
                        "wrong_state",
                        f"job {job.id} is {job.state}, not failed",
                        "`holdfast jobs list --state failed` shows those that are.",
                        is_json=out.is_json,
                    )
            for job in jobs:
                opened.space.jobs.requeue(job.queue, job.id)
            count = len(jobs)
        else:
            from holdfast.jobs import Match

            count = opened.space.jobs.retry_failed(Match(**given))
    out.result({"retried": count}, lambda: out.say(_requeued_text(count)))


@command.command("cancel")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@location_options
def cancel(location: Location, out: Output, ids: tuple[str, ...]) -> None:
    """Remove jobs, whatever their state. Jobs that depend on one of them must be named too.

    Example: holdfast jobs cancel --data data receipt-1001
    """
    with location.open() as opened:
        for id in ids:
            _found(opened.space, id, out)
        canceled = opened.space.jobs.cancel(*ids)
    out.result({"canceled": canceled}, lambda: out.say(f"canceled {', '.join(canceled)}"))


def _jobs(space: "Space", queue: str | None, state: str, count: int, offset: int) -> "list[Any]":
    jobs = space.jobs
    if state == "waiting":
        return jobs.peek(queue or "", offset + count)[offset:]
    if state == "failed":
        return _failed(space, queue, offset + count)[offset:]
    if state == "complete" and queue is not None:
        return _completed_in(space, queue, offset + count)[offset:]
    ids = jobs.jobs(state, queue or "", offset=offset, count=count)
    if state == "recurring":
        found = [jobs.recur_get(id) for id in ids]
        return [_Recurring(each) for each in found if each is not None]
    return jobs.multiget(*ids)


def _completed_in(space: "Space", queue: str, count: int) -> "list[Job]":
    """Returns the newest jobs that were completed in `queue`."""
    found: list[Job] = []
    offset = 0
    while len(found) < count:
        ids = space.jobs.jobs("complete", offset=offset, count=JOBS_PER_STEP)
        if not ids:
            break
        offset += len(ids)
        found += [job for job in space.jobs.multiget(*ids) if _last_queue(job) == queue]
    return found[:count]


def _last_queue(job: "Job") -> str:
    """Returns the queue that a complete job was put into last."""
    queues = [entry.more.get("q", "") for entry in job.history if entry.what == "put"]
    return str(queues[-1]) if queues else ""


def _failed(space: "Space", queue: str | None, count: int) -> "list[Job]":
    """Returns the first failed jobs; reads several pages, because one may hold fewer than its
    limit."""
    from holdfast.jobs import Match

    failed: list[Job] = []
    cursor = None
    while len(failed) < count:
        left = count - len(failed)
        page = space.jobs.dead_letters(Match(queue=queue), cursor=cursor, count=left)
        failed += page.jobs
        cursor = page.cursor
        if cursor is None:
            break
    return failed


class _Recurring(dict[str, Any]):
    """A recurring job in the columns of a job."""

    def __init__(self, job: Any) -> None:
        super().__init__(
            id=job.id,
            klass=job.klass,
            state="recurring",
            queue=job.queue,
            worker="",
            priority=job.priority,
            next=job.next,
        )

    def __getattr__(self, name: str) -> Any:
        return self[name]


def _found(space: "Space", id: str, out: Output) -> "Job":
    job = space.jobs.get(id)
    if job is None:
        raise CommandFailure(
            "unknown_job",
            f"there is no job {id!r}",
            "`holdfast jobs list` shows queues and jobs.",
            is_json=out.is_json,
        )
    return job


def _show(
    out: Output, job: "Job", result: Any, log: "Sequence[LogLine]", steps: "Sequence[Step]"
) -> None:
    import msgspec

    rows: list[tuple[str, Any]] = [("id", job.id), ("class", job.klass), ("state", job.state)]
    rows += [("queue", job.queue), ("worker", job.worker), ("priority", f"{job.priority:g}")]
    rows += [("retries left", f"{job.remaining:g} of {job.retries:g}")]
    rows += [("tags", " ".join(map(str, job.tags))), ("waits for", " ".join(job.dependencies))]
    rows += [("waited for by", " ".join(job.dependents))]
    rows += [("lock ends", moment(job.expires) if job.expires else "")]
    if job.progress is not None:
        rows += [("progress", f"{job.progress:.0%} {job.progress_text}".rstrip())]
    for name, value in rows:
        if value not in ("", None):
            out.say(f"{name}: {value}")
    out.say(f"data: {msgspec.json.encode(job.data).decode()}")
    if result is not None:
        out.say(f"result: {msgspec.json.encode(result).decode()}")
    if job.failure is not None:
        word = "failed" if job.state == "failed" else "failed before"
        out.say(f"{word}: {job.failure.group}: {job.failure.message}")
    for number, entry in enumerate(job.history):
        if number == 0:
            out.say("history:")
        more = " ".join(
            f"{'queue' if name == 'q' else name}={value}" for name, value in entry.more.items()
        )
        out.say(f"  {moment(entry.when)} {entry.what} {more}".rstrip())
    for number, line in enumerate(log):
        if number == 0:
            out.say("log:")
        out.say(f"  {moment(line.when)} {line.level} {line.text}".rstrip())
    for number, step in enumerate(steps):
        if number == 0:
            out.say("steps:")
        out.say(f"  {_step(step)}")


def _step(step: "Step") -> str:
    import msgspec

    if step.error:
        told = f"failed: {step.error}"
    elif step.ended:
        told = msgspec.json.encode(step.result).decode()[:200]
    else:
        told = "waits"
    attempts = f" ({step.attempts} attempts)" if step.attempts > 1 else ""
    return f"{step.number} {moment(step.ended or step.begun)} {step.name}{attempts}: {told}"


def _requeued_text(count: int) -> str:
    where = "is back in its queue" if count == 1 else "are back in their queues"
    return f"{counted(count, 'job')} {where}"
