"""`holdfast metrics`: reads counters, gauges and distributions."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import click

from holdfast.cli import charts
from holdfast.cli.location import Location, Opened, location_options
from holdfast.cli.output import CommandFailure, Output, count_option, moment
from holdfast.cli.root_group import CommandGroup

_metric = click.argument("metric")
_latest = click.option(
    "--latest",
    type=click.FloatRange(min=0, min_open=True),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="How many seconds back from now.",
)
_prefix = click.option(
    "--prefix",
    multiple=True,
    metavar="PART",
    help="The prefix of the metric. Repeat it for a prefix with several parts.",
)
_global = click.option(
    "--global", "is_global", is_flag=True, help="Read global entities, which all namespaces share."
)


class MetricSelection(NamedTuple):
    """The metric and the entity that a command reads."""

    metric: str
    entity: Any
    options: dict[str, Any]  # for every operation


def _entity(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds METRIC, --entity, --global and --prefix to a command, and passes them as `asked`."""

    def call(
        metric: str,
        entity: tuple[str, ...],
        is_global: bool,
        prefix: tuple[str, ...],
        **more: Any,
    ) -> Any:
        parts: Any = list(entity) or None
        if is_global:
            parts = {"global": True, "components": list(entity)}
        return command(asked=MetricSelection(metric, parts, _options(prefix)), **more)

    call.__doc__ = command.__doc__
    call.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]  # as click does
    named = click.option(
        "--entity",
        multiple=True,
        metavar="PART",
        help="The entity to read. Repeat it for an entity with several parts.",
    )
    return _metric(named(_global(_prefix(call))))


def _options(prefix: Sequence[str]) -> dict[str, Any]:
    return {"prefix": list(prefix)} if prefix else {}


@click.group("metrics", cls=CommandGroup)
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
        status = opened.space.admin.status()
    rows = [(each.metric, each.type, " ".join(each.prefix)) for each in status.defined_metrics]
    out.result(
        {"metrics": status.metrics, "defined": status.defined_metrics},
        lambda: (
            out.table(("metric", "type", "prefix"), rows)
            if rows
            else out.note("no metric is defined")
        ),
    )


@command.command("value")
@_entity
@_latest
@location_options
def value(location: Location, out: Output, asked: MetricSelection, latest: float) -> None:
    """Print the value of METRIC over the last --latest seconds.

    A counter shows its total, a gauge its last sample, a distribution its quantiles.

    Example: holdfast metrics value orders --data data --latest 60
    """
    with _reading(location, out, asked) as opened:
        found = _read(opened, asked, latest)
    if hasattr(found, "quantiles"):
        out.result({"metric": asked.metric, **_fields(found)}, lambda: _distribution(out, found))
        return
    if hasattr(found, "last"):
        said = "no samples" if found.last is None else f"{found.last:,}"
        out.result({"metric": asked.metric, **_fields(found)}, lambda: out.say(said))
        return

    def show() -> None:
        out.say(f"{found.total:,}")
        if not found.total and asked.entity is None:
            out.note(f"No entity was named; `holdfast metrics top {asked.metric}` lists them.")

    out.result({"metric": asked.metric, "total": found.total, "exact": found.exact}, show)


@command.command("rate")
@_entity
@_latest
@location_options
def rate(location: Location, out: Output, asked: MetricSelection, latest: float) -> None:
    """Print the total of the counter METRIC and its rates over the last --latest seconds.

    Example: holdfast metrics rate orders --data data --entity ann --latest 3600
    """
    with _reading(location, out, asked) as opened:
        metric, entity, options = asked
        found = opened.space.metrics.rate(metric, entity, latest=latest, **options)
    rows = [
        ("total", found.total),
        ("per second", round(found.per_second, 3)),
        ("per minute", round(found.per_minute, 3)),
        ("per hour", round(found.per_hour, 3)),
        ("per day", round(found.per_day, 3)),
    ]
    out.result(found, lambda: out.table((asked.metric, "value"), rows))


@command.command("series")
@_entity
@_latest
@click.option(
    "--step", type=float, metavar="SECONDS", help="Length of one step.  [default: as stored]"
)
@click.option(
    "--value",
    "kind",
    metavar="NAME",
    help="Counter: total or per_second; gauge: last, min, max or mean; distribution: p50, p99 or "
    "count.  [default: total, last or p50]",
)
@location_options
def series(
    location: Location,
    out: Output,
    asked: MetricSelection,
    latest: float,
    step: float | None,
    kind: str | None,
) -> None:
    """Print METRIC over time, with a small chart on a terminal.

    Example: holdfast metrics series orders --data data --latest 86400 --step 3600
    """
    with _reading(location, out, asked) as opened:
        found = _series(opened, asked, latest, step, kind)
    times = [moment(found.start + number * found.step) for number in range(len(found.values))]
    rows = list(zip(times, found.values, strict=True))
    out.result(found, lambda: charts.series(out, ("from", asked.metric), rows))


@command.command("top")
@_metric
@_global
@_prefix
@_latest
@count_option(10)
@location_options
def top(
    location: Location,
    out: Output,
    metric: str,
    is_global: bool,
    prefix: tuple[str, ...],
    latest: float,
    count: int,
) -> None:
    """Rank the entities with the highest totals of the counter METRIC.

    Example: holdfast metrics top orders --data data --latest 3600
    """
    asked = MetricSelection(metric, None, _options(prefix))
    scope = "global" if is_global else "local"
    with _reading(location, out, asked) as opened:
        found = opened.space.metrics.top(
            metric, latest=latest, n=count, scope=scope, **asked.options
        )
    rows = [(_shown(each.entity), each.total) for each in found]
    empty = f"no {'global ' if is_global else ''}entity has a total in the last {latest:g} seconds"
    out.result({"top": found}, lambda: charts.ranking(out, ("entity", metric), rows, empty=empty))


# --- reading -------------------------------------------------------------------------------------


@contextmanager
def _reading(location: Location, out: Output, asked: MetricSelection) -> Iterator[Opened]:
    """Opens the store; an error about an unknown metric names the prefixes that define it."""
    from holdfast.error_text import nearest
    from holdfast.errors import Forbidden, UnknownMetric

    with location.open() as opened:
        try:
            yield opened
        except UnknownMetric as error:
            try:
                known = opened.space.admin.status().defined_metrics
            except Forbidden:
                raise error from None
            prefixes = [each.prefix for each in known if each.metric == asked.metric]
            if not prefixes:
                near = nearest(asked.metric, [each.metric for each in known])
                hint = "" if near is None else f"Did you mean {near!r}? "
                hint += "`holdfast metrics list` shows all that are defined."
                raise CommandFailure(error.code, error.message, hint, is_json=out.is_json) from None
            ways = [" ".join(f"--prefix {part}" for part in prefix) for prefix in prefixes]
            hint = f"It is defined under another prefix: {' or '.join(ways)}."
            raise CommandFailure(error.code, error.message, hint, is_json=out.is_json) from None


def _read(opened: Opened, asked: MetricSelection, latest: float) -> Any:
    """Returns a `Rate`, a `GaugeReading` or a `DistributionReading`, by the type of the metric."""
    from holdfast.errors import WrongMetricType

    metrics = opened.space.metrics
    for read in (metrics.rate, metrics.gauge):
        try:
            return read(asked.metric, asked.entity, latest=latest, **asked.options)
        except WrongMetricType:
            continue
    return metrics.distribution(asked.metric, asked.entity, latest=latest, **asked.options)


def _series(
    opened: Opened, asked: MetricSelection, latest: float, step: float | None, kind: str | None
) -> Any:
    from holdfast.metrics.kinds import KINDS

    metric, entity, options = asked
    metrics = opened.space.metrics
    end = time.time()
    spec = metrics.defined(names=[metric], **options).get(metric)
    if spec is not None:
        kind = kind or KINDS[spec.type].charted_values[0]
        if KINDS[spec.type].has_counters:
            now = metrics.rate(metric, None, latest=latest, **options)
            end = (now.last_bucket + 1) * now.time_step
    return metrics.series(
        metric, entity, start=end - latest, end=end, step=step, value=kind or "total", **options
    )


def _distribution(out: Output, found: Any) -> None:
    if not found.count:
        out.say("no samples")
        return
    figures = {name: getattr(found, name) for name in ("count", "mean", "min", "max")}
    quantiles = {f"p{float(name) * 100:g}": each for name, each in found.quantiles.items()}
    out.table(("of", "value"), list((figures | quantiles).items()))


def _fields(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


def _shown(entity: Any) -> str:
    parts = entity["components"] if isinstance(entity, dict) else entity
    return " ".join(map(str, parts)) or "(none)"
