"""`holdfast jobs stats`: how long jobs waited and ran, and how many failed."""

import time
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.location import Location, location_options
from holdfast.cli.output import Output, count_option

if TYPE_CHECKING:
    from holdfast.jobs import Spread, StatsRow

_DAY = 86_400
_OTHERS = "(all others)"
_COLUMNS = (
    *("completed", "failed", "retries"),
    *("wait p50", "wait p90", "wait p99", "run p50", "run p90", "run p99"),
)


@click.command("stats")
@click.argument("queue")
@click.option(
    "--by",
    type=click.Choice(["all", "class", "tag", "worker"]),
    default="class",
    show_default=True,
    help="What to group by; only tags in the option stats-tags are counted.",
)
@click.option("--name", metavar="NAME", help="Only this class, tag or worker.")
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many days, including today (UTC).",
)
@count_option(100, what="lines")
@location_options
def stats(
    location: Location,
    out: Output,
    queue: str,
    by: str,
    name: str | None,
    days: int,
    count: int,
) -> None:
    """Show how long the jobs of QUEUE waited and ran, in seconds, and how many failed.

    Example: holdfast jobs stats --data data emails --by worker --days 7
    """
    now = time.time()
    with location.open() as opened:
        found = opened.space.jobs.stats_by(
            queue,
            by,  # type: ignore[arg-type]  # one of the choices
            name=name,
            since=max(0.0, now - (days - 1) * _DAY),
            until=now,
            count=count,
        )
    rows = [_row(row.name, row) for row in found.rows]
    if found.others is not None:
        rows.append(_row(_OTHERS, found.others))

    def show() -> None:
        when = "today" if days == 1 else f"in the last {days} days"
        empty = f"no job of {queue} has completed or failed {when}"
        out.table((by, *_COLUMNS), rows, empty=empty)
        if found.names > len(found.rows):
            out.note(f"{len(found.rows):,} of {found.names:,} are shown")

    out.result(found, show)


def _row(name: str, row: "StatsRow") -> list[Any]:
    return [name, row.completed, row.failures, row.retries, *_times(row.wait), *_times(row.run)]


def _times(times: "Spread") -> list[str]:
    return [f"{seconds:.3g}" for seconds in (times.p50, times.p90, times.p99)]


COMMANDS = (stats,)
