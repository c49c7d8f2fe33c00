"""`holdfast metrics`: what was counted."""

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import charts
from holdfast.cli.location import Location, location_options
from holdfast.cli.output import Output, moment
from holdfast.cli.root_group import Group

if TYPE_CHECKING:
    from collections.abc import Callable

_metric = click.argument("metric")
_entity = click.option(
    "--entity", multiple=True, metavar="PART", help="Of whom. May be repeated, for its parts."
)


def _latest(default: float) -> "Callable[[Any], Any]":
    return click.option(
        "--latest",
        type=click.FloatRange(min=0, min_open=True),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help="How far back from now.",
    )


@click.group("metrics", cls=Group)
def command() -> None:
    """Read metrics: values, rates, series and rankings.

    Example: holdfast metrics rate orders --data data --latest 3600
    """


@command.command("list")
@location_options
def list_metrics(location: Location, out: Output) -> None:
    """List the metrics that are defined.

    Example: holdfast metrics list --data data
    """
    with location.open() as opened:
        names = opened.space.admin.status().metrics
    out.result(
        {"metrics": names},
        lambda: out.say("\n".join(names)) if names else out.note("no metric is defined"),
    )


@command.command("value")
@_metric
@_entity
@_latest(3600)
@location_options
def value(
    location: Location, out: Output, metric: str, entity: tuple[str, ...], latest: float
) -> None:
    """Print the total of METRIC over the last --latest seconds.

    Example: holdfast metrics value orders --data data --latest 60
    """
    with location.open() as opened:
        rate = opened.space.metrics.rate(metric, list(entity) or None, latest=latest)
    out.result(
        {"metric": metric, "total": rate.total, "exact": rate.exact},
        lambda: out.say(f"{rate.total:,}"),
    )


@command.command("rate")
@_metric
@_entity
@_latest(3600)
@location_options
def rate(
    location: Location, out: Output, metric: str, entity: tuple[str, ...], latest: float
) -> None:
    """Print the total of METRIC and its rates over the last --latest seconds.

    Example: holdfast metrics rate orders --data data --entity ann --latest 3600
    """
    with location.open() as opened:
        found = opened.space.metrics.rate(metric, list(entity) or None, latest=latest)
    rows = [
        ("total", found.total),
        ("per second", round(found.per_second, 3)),
        ("per minute", round(found.per_minute, 3)),
        ("per hour", round(found.per_hour, 3)),
        ("per day", round(found.per_day, 3)),
    ]
    out.result(found, lambda: out.table((metric, "value"), rows))


@command.command("series")
@_metric
@_entity
@_latest(3600)
@click.option("--step", type=float, metavar="SECONDS", help="Of one value; as they are stored.")
@location_options
def series(
    location: Location,
    out: Output,
    metric: str,
    entity: tuple[str, ...],
    latest: float,
    step: float | None,
) -> None:
    """Print METRIC over time, with a small chart on a terminal.

    Example: holdfast metrics series orders --data data --latest 86400 --step 3600
    """
    with location.open() as opened:
        now = opened.space.metrics.rate(metric, None, latest=latest)
        end = (now.last_bucket + 1) * now.time_step
        found = opened.space.metrics.series(
            metric, list(entity) or None, start=end - latest, end=end, step=step
        )
    times = [moment(found.start + number * found.step) for number in range(len(found.values))]
    rows = list(zip(times, found.values, strict=True))
    out.result(found, lambda: charts.series(out, ("from", metric), rows))


@command.command("top")
@_metric
@_latest(3600)
@click.option(
    "--count", type=click.IntRange(min=1), default=10, show_default=True, help="How many."
)
@location_options
def top(location: Location, out: Output, metric: str, latest: float, count: int) -> None:
    """Rank the entities with the highest totals of METRIC.

    Example: holdfast metrics top orders --data data --latest 3600
    """
    with location.open() as opened:
        found = opened.space.metrics.top(metric, latest=latest, n=count)
    rows = [(_shown(each.entity), each.total) for each in found]
    out.result({"top": found}, lambda: charts.ranking(out, ("entity", metric), rows))


def _shown(entity: Any) -> str:
    if isinstance(entity, dict):
        entity = entity.get("components") or []
    parts = getattr(entity, "components", entity)
    return " ".join(map(str, parts)) if isinstance(parts, list | tuple) else str(parts)
