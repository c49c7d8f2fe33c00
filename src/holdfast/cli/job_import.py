"""`holdfast jobs import`: imports the jobs of another queue system."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from holdfast.cli.location import Location, location_options
from holdfast.cli.output import CommandFailure, Output, counted

if TYPE_CHECKING:
    from holdfast.job_import.redis_reader import RedisReader
    from holdfast.job_import.transfer import JobSource, Transfer

_SCHEMES = {
    "redis": "redis",
    "rediss": "rediss",
    "valkey": "redis",
    "valkeys": "rediss",
    "rq": "redis",
    "celery": "redis",
}


@click.command("import")
@click.argument("source", metavar="URL")
@click.option(
    "--tasks",
    "mapping",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="A JSON object that maps function names of RQ or Celery to task names.",
)
@location_options
def import_jobs(location: Location, out: Output, source: str, mapping: str | None) -> None:
    """Import the jobs of another queue system from Redis, and verify them.

    URL is redis://HOST:PORT/DATABASE for Qless, and the same with rq:// or celery:// for jobs that
    wait in RQ or Celery. Stop its workers first. If the import is interrupted, run it again: it
    skips jobs that are already here.

    Example: holdfast jobs import --data data redis://localhost:6379/0
    """
    from holdfast.job_import.redis_reader import RedisReader
    from holdfast.job_import.transfer import transfer

    scheme, rest = urlsplit(source).scheme, source.partition("://")[2]
    if scheme not in _SCHEMES:
        raise click.UsageError(f"{source!r} is not a URL of redis://, rq:// or celery://")
    if mapping is not None and scheme not in ("rq", "celery"):
        raise click.UsageError("--tasks is for rq:// and celery://: jobs of Qless keep their class")
    with (
        RedisReader(f"{_SCHEMES[scheme]}://{rest}") as redis,
        location.open(creates=True) as opened,
    ):
        found = _source(scheme, redis, mapping)
        with out.progress("import", found.total(), "jobs") as tell:
            done = transfer(found, opened.space.jobs, tell)
    if done.differing:
        for problem in done.problems:
            out.note(problem)
        raise CommandFailure(
            "import_differs",
            f"{counted(done.differing, 'job')} here differ from what the source has",
            "They were here before, or have changed since; nothing was overwritten.",
            is_json=out.is_json,
        )
    out.result(done, lambda: _say(out, done))


def _source(scheme: str, redis: "RedisReader", mapping: str | None) -> "JobSource":
    from holdfast.job_import.celery import CelerySource
    from holdfast.job_import.qless import QlessSource
    from holdfast.job_import.rq import RqSource
    from holdfast.job_import.task_names import TaskNames

    if scheme == "rq":
        return RqSource(redis, TaskNames.read(mapping))
    if scheme == "celery":
        return CelerySource(redis, TaskNames.read(mapping))
    return QlessSource(redis)


def _say(out: Output, done: "Transfer") -> None:
    for problem in done.problems:
        out.note(problem)
    words = f"imported {counted(done.imported, 'job')}"
    if done.recurring:
        words += f" and {counted(done.recurring, 'recurring job')}"
    if done.present:
        words += f", {done.present:,} were here already"
    if done.left_out:
        words += f", left out {done.left_out:,}"
    out.say(f"{words}, verified, digest {done.digest[:16]}")


COMMANDS = (import_jobs,)
