"""`holdfast worker`: runs the jobs of tasks."""

import sys
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.location import Location, location_options
from holdfast.cli.output import Output

if TYPE_CHECKING:
    from holdfast.tasks.worker_program import WorkerOptions


@click.command("worker")
@click.argument("modules", nargs=-1, metavar="MODULE[:REGISTRY]...")
@click.option("--engine", metavar="URL", help="The URL of an engine, instead of --data.")
@click.option(
    "--durability",
    type=click.Choice(["commit", "interval"]),
    default="commit",
    show_default=True,
    help="Sync to disk at every commit, or once a second.",
)
@click.option(
    "--queues",
    metavar="A,B*",
    help="Queues to work on, in this order.  [default: the queues of the tasks]",
)
@click.option("--threads", type=click.IntRange(0, 10_000), metavar="N",
              help="Jobs to run at a time in threads.  [default: 1]")  # fmt: skip
@click.option("--async", "async_slots", type=click.IntRange(0, 100_000), default=0, metavar="N",
              help="Jobs to run at a time on an event loop.")  # fmt: skip
@click.option("--processes", type=click.IntRange(0, 1_000), default=0, metavar="N",
              help="Jobs to run at a time in processes.")  # fmt: skip
@click.option("--order", default="strict", show_default=True, metavar="ORDER",
              help="Queue order: strict, round-robin, shuffled, 'weighted a=5,b=1'.")  # fmt: skip
@click.option("--prefetch", type=click.IntRange(0, 5_000), default=200, show_default=True,
              metavar="N",
              help="Jobs to fetch ahead while jobs are short; at most 20 ms of work.")  # fmt: skip
@click.option("--burst", is_flag=True, help="Exit when no job is left.")
@click.option("--watch", is_flag=True, help="Restart when a source file changes.")
@click.option(
    "--resume",
    is_flag=True,
    help="First release the jobs that a worker of this --name still holds.",
)
@click.option("--drain", type=click.FloatRange(0), default=30.0, show_default=True,
              metavar="SECONDS",
              help="How long running jobs may take to finish when the worker stops.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
              help="The timeout of tasks that set none.")  # fmt: skip
@click.option("--lock", "lock_seconds", type=click.FloatRange(1), default=60.0,
              metavar="SECONDS", show_default=True,
              help="How long a job is locked; the lock is renewed while the job runs.")  # fmt: skip
@click.option("--max-jobs", type=click.IntRange(1), metavar="N", help="Restart after N jobs.")
@click.option(
    "--max-memory",
    type=click.IntRange(1),
    metavar="MB",
    help="Restart when it uses more memory than this.",
)
@click.option("--name", default="", metavar="NAME", help="The worker's name.  [default: HOST-PID]")
@click.option(
    "--path", multiple=True, metavar="DIR", help="A folder to import from. May be repeated."
)
@click.option(
    "--preload", multiple=True, metavar="MODULE", help="A module to import first. May be repeated."
)
@click.option("--allow", multiple=True, metavar="PREFIX",
              help="Also run classes below PREFIX by dotted name, as Qless does.")  # fmt: skip
@click.option("--qless-script", default="", metavar="FILE",
              help="Qless script for --url redis://...  [default: that of qless-py]")  # fmt: skip
@click.option("--workdir", metavar="DIR",
              help="Folder for sandboxes.  [default: the system's temporary folder]")  # fmt: skip
@click.option(
    "--http", default="", metavar="HOST:PORT", help="Serve /livez, /readyz and /metrics here."
)
@location_options
def command(location: Location, /, out: Output, modules: tuple[str, ...], **options: Any) -> None:
    """Run a worker that takes jobs and runs their tasks.

    MODULE is imported from the current folder and defines a registry, `tasks = Tasks()`. On
    SIGTERM, the worker lets running jobs finish and releases the others. On SIGHUP, it restarts
    with new code.

    Example: holdfast worker shop.tasks --data data --threads 8
    """
    from holdfast.errors import HoldfastError
    from holdfast.tasks.worker_log import start_logging
    from holdfast.tasks.worker_program import Program

    if not modules and not options["allow"]:
        raise click.UsageError("Name a module with tasks: holdfast worker MODULE[:REGISTRY]")
    start_logging()
    try:
        status = Program(_given(location, modules, options), out.note).run()
    except HoldfastError as error:
        if out.is_json:
            raise
        raise click.ClickException(str(error)) from None
    sys.exit(status)


def _given(
    location: Location, modules: tuple[str, ...], options: dict[str, Any]
) -> "WorkerOptions":
    from holdfast.cli.location import server_url
    from holdfast.tasks.loading import WorkerSource
    from holdfast.tasks.worker_program import WorkerOptions

    script = options.pop("qless_script")
    opener: dict[str, Any] = {}
    if location.url and location.url.startswith(("redis://", "rediss://")):
        from holdfast.compat.qless.script_store import OPENER

        opener = {"opener": OPENER, "opener_options": (script,)}
    source = WorkerSource(
        targets=modules,
        store="" if location.url else options.pop("engine") or location.data,
        server=server_url(location.url, location.token) if location.url else "",
        durability=options.pop("durability"),
        space=location.space,
        path=options.pop("path"),
        preload=options.pop("preload"),
        allow=options.pop("allow"),
        **opener,
    )
    options.pop("engine", None)
    queues = tuple((options.pop("queues") or "").replace(",", " ").split())
    memory = options.pop("max_memory")
    return WorkerOptions(
        source=source,
        queues=queues,
        max_memory_bytes=None if memory is None else memory * 2**20,
        **options,
    )
