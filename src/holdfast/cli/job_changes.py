"""Commands of `holdfast jobs` that put, find and change jobs, queues and workers."""

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.location import Location, location_options
from holdfast.cli.output import CommandFailure, Output, count_option, counted, duration, moment

if TYPE_CHECKING:
    from holdfast.jobs import BulkAction, JobSearch
    from holdfast.store import Space

_ACTIONS = ("cancel", "retry", "move", "tag", "untag", "priority", "run")
_STATES = (
    *("waiting", "running", "stalled", "scheduled", "depends", "throttled"),
    *("failed", "complete"),
)


@click.command("put")
@click.argument("queue")
@click.argument("klass", metavar="[CLASS]", default="")
@click.argument("text", metavar="[JSON]", default="null")
@click.option(
    "--id",
    metavar="ID",
    help="The job's id. An existing job with this id is moved.  [default: a random one]",
)
@click.option(
    "--delay", type=float, default=0, metavar="SECONDS", help="How long to wait before it may run."
)
@click.option(
    "--priority",
    type=float,
    metavar="NUMBER",
    help="Jobs with a higher priority run first.",
)
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="A tag of the job. May be repeated."
)
@location_options
def put(
    location: Location,
    out: Output,
    queue: str,
    klass: str,
    text: str,
    id: str | None,
    delay: float,
    priority: float | None,
    tags: tuple[str, ...],
) -> None:
    """Put a job into QUEUE: CLASS says which code runs it, JSON is its data.

    Example: holdfast jobs put --data data emails app.SendMail '{"to": "ann"}'
    """
    import msgspec

    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise click.UsageError(f"the data is not JSON: {error}") from None
    with location.open() as opened:
        made = opened.space.jobs.put(
            queue, klass, value, id=id, delay=delay, priority=priority, tags=tags or None
        )
    out.result({"id": made}, lambda: out.say(f"put {made} into {queue}"))


@click.command("pause")
@click.argument("queues", nargs=-1, required=True, metavar="QUEUE...")
@click.option(
    "--stop-running", is_flag=True, help="Also take running jobs back from their workers."
)
@location_options
def pause(location: Location, out: Output, queues: tuple[str, ...], stop_running: bool) -> None:
    """Stop handing out jobs from QUEUE until it is resumed.

    Example: holdfast jobs pause --data data emails
    """
    with location.open() as opened:
        opened.space.jobs.pause(*queues, stop_running=stop_running)
    out.result({"paused": queues}, lambda: out.say(f"paused {', '.join(queues)}"))


@click.command("resume")
@click.argument("queues", nargs=-1, required=True, metavar="QUEUE...")
@location_options
def resume(location: Location, out: Output, queues: tuple[str, ...]) -> None:
    """Hand out jobs from QUEUE again.

    Example: holdfast jobs resume --data data emails
    """
    with location.open() as opened:
        opened.space.jobs.unpause(*queues)
    out.result({"resumed": queues}, lambda: out.say(f"resumed {', '.join(queues)}"))


@click.command("move")
@click.argument("queue")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@location_options
def move(location: Location, out: Output, queue: str, ids: tuple[str, ...]) -> None:
    """Move jobs into QUEUE, whatever their state.

    Example: holdfast jobs move --data data urgent receipt-1001
    """
    with location.open() as opened:
        for id in ids:
            opened.space.jobs.requeue(queue, id)
    out.result({"moved": ids}, lambda: out.say(f"moved {', '.join(ids)} into {queue}"))


@click.command("workers")
@location_options
def workers(location: Location, out: Output) -> None:
    """List workers: when each was last seen, and how many jobs it holds.

    Example: holdfast jobs workers --data data
    """
    with location.open() as opened:
        found = opened.space.jobs.workers()
    rows = [[each.name, moment(each.seen), each.jobs, each.stalled] for each in found]
    out.result(
        {"workers": found},
        lambda: out.table(
            ("worker", "last seen", "jobs", "stalled"), rows, empty="no worker has been seen"
        ),
    )


@click.command("recurring")
@click.option("--queue", metavar="NAME", help="Only this queue.  [default: all]")
@location_options
def recurring(location: Location, out: Output, queue: str | None) -> None:
    """List recurring jobs: when each runs next, and how often.

    Example: holdfast jobs recurring --data data
    """
    with location.open() as opened:
        jobs = opened.space.jobs
        names = [each.name for each in jobs.queues()] if queue is None else [queue]
        listed = [id for name in names for id in jobs.jobs("recurring", name, count=-1)]
        found = [job for job in map(jobs.recur_get, listed) if job is not None]
    rows = [
        [
            *(job.id, job.klass, job.queue, moment(job.next)),
            f"{job.cron} {job.tz}" if job.cron else f"every {duration(job.interval)}",
            job.count,
        ]
        for job in found
    ]
    heads = ("id", "class", "queue", "next run", "schedule", "runs")
    empty = "no recurring jobs" if queue is None else f"no recurring jobs in {queue}"
    out.result({"recurring": found}, lambda: out.table(heads, rows, empty=empty))


@click.command("search")
@click.option("--queue", metavar="NAME", help="Jobs in this queue.")
@click.option(
    "--state",
    type=click.Choice(_STATES),
    metavar="STATE",
    help=f"Jobs in this state: {', '.join(_STATES)}.",
)
@click.option("--class", "klass", metavar="CLASS", help="Jobs of this class.")
@click.option("--tag", metavar="TAG", help="Jobs with this tag.")
@click.option("--group", metavar="GROUP", help="Failed jobs of this failure group.")
@click.option("--worker", metavar="NAME", help="Jobs that this worker holds.")
@click.option("--text", help="Jobs with this text in their data.")
@count_option(25)
@click.option(
    "--do", "action", type=click.Choice(_ACTIONS), help="Do this to every job that matches."
)
@click.option("--to", "argument", metavar="VALUE", help="The queue, tag or priority for --do.")
@location_options
def search(
    location: Location,
    /,
    out: Output,
    count: int,
    action: str | None,
    argument: str | None,
    **wanted: str | None,
) -> None:
    """Find jobs; with --do, change all of them: cancel, retry, move, tag, reprioritize or run now.

    Example: holdfast jobs search --data data --queue emails --text ann --do move --to urgent
    """
    import msgspec

    from holdfast.jobs import JobSearch

    given = {name: value for name, value in wanted.items() if value is not None}
    found = msgspec.convert(given, JobSearch)
    if argument is not None and action is None:
        raise click.UsageError("--to needs --do: it is the queue, tag or priority for that action")
    with location.open() as opened:
        if action is not None:
            done = _run_action(opened.space, out, action, found, argument)
            out.result(done, lambda: out.say(_summary(done)))
            return
        jobs: list[Any] = []
        cursor, searched, of = None, 0, 0
        while True:
            left = count - len(jobs)
            page = opened.space.jobs.search(found, cursor=cursor, count=left)
            jobs += page.jobs
            cursor, searched, of = page.cursor, page.searched, page.of
            if cursor is None or len(jobs) >= count:
                break
    rows = [[job.id, job.klass, job.state, job.queue, job.worker, job.priority] for job in jobs]

    def show() -> None:
        heads = ("id", "class", "state", "queue", "worker", "priority")
        out.table(heads, rows, empty="no jobs match")
        out.note(f"searched {searched:,} of {of:,}")

    out.result({"jobs": jobs, "searched": searched, "of": of}, show)


def _run_action(
    space: "Space", out: Output, action: str, found: "JobSearch", argument: str | None
) -> "BulkAction":
    """Runs a bulk action step by step, and shows how far it is."""
    name = {"move": "queue", "tag": "tag", "untag": "tag", "priority": "priority"}.get(action)
    options: dict[str, Any] = {}
    if argument is None and name is not None:
        raise click.UsageError(f"--do {action} needs --to: the {name}")
    if argument is not None:
        if name is None:
            raise click.UsageError(f"--do {action} takes no --to")
        options[name] = _number(argument, out) if name == "priority" else argument
    done = space.jobs.bulk_start(action, found, **options)  # type: ignore[arg-type]  # one of them
    with out.progress(action, done.of, "jobs") as tell:
        while done.state == "running":
            done = space.jobs.bulk_step(done.id)
            tell(done.searched)
    return done


def _number(text: str, out: Output) -> float:
    try:
        return float(text)
    except ValueError:
        raise CommandFailure(
            "bad_argument", f"{text!r} is not a priority", "Use a number.", is_json=out.is_json
        ) from None


def _summary(done: "BulkAction") -> str:
    words = f"{done.action}: changed {counted(done.changed, 'job')}"
    return f"{words}, passed over {done.passed_over:,}" if done.passed_over else words


COMMANDS = (put, pause, resume, move, workers, recurring, search)
