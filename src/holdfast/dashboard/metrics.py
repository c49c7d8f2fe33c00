"""Metrics: a list of them, charts of one or several, and limits to try."""

from typing import Any, Final

from holdfast.dashboard.charts import Chart, Line
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.recorded_history import RANGES, Recorded
from holdfast.dashboard.visit import Visit
from holdfast.errors import BadInput, BadRange, HoldfastError
from holdfast.limits import (
    MAX_CHART_POINTS,
    MAX_CHARTED_METRICS,
    MAX_RANKED_BUCKETS,
    ROWS_PER_PAGE,
)
from holdfast.metrics.kinds import KINDS
from holdfast.server.http_exchange import HttpResponse

_TONES: Final = ("accent", "two", "three", "four", "dim")
_PREFIX: Final = "prefix"


@page("metrics", menu="metrics")
async def metrics(visit: Visit) -> HttpResponse:
    """Shows the defined metrics with their sequences."""
    after = visit.parameter("cursor") or None
    found = await visit.call(
        "metrics.defined", after=after, limit=ROWS_PER_PAGE + 1, prefix=prefix_of(visit)
    )
    shown = dict(list(found.items())[:ROWS_PER_PAGE])
    rows = [(name, each.type, each.help) for name, each in shown.items()]
    return await visit.render(
        "metrics.html",
        title="Metrics",
        metrics=shown,
        next=list(shown)[-1] if len(found) > len(shown) else None,
        rows=(("metric", "type", "help"), rows),
    )


def prefix_of(visit: Visit) -> list[str] | None:
    """Returns the prefix in the address, whose parts are separated by commas."""
    return parts_of(visit.parameter(_PREFIX)) or None


def parts_of(text: str) -> list[str]:
    """
    >>> parts_of("user, ann")
    ['user', 'ann']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


@page("metrics/{metric}", menu="metrics")
async def metric(visit: Visit) -> HttpResponse:
    """Shows a metric of one entity over the time of a sequence, with others in the same chart."""
    name, prefix = visit.names["metric"], prefix_of(visit)
    others = [each for each in visit.parameter("with").split(",") if each and each != name]
    asked = [name, *others[: MAX_CHARTED_METRICS - 1]]
    found = await visit.call("metrics.defined", names=asked, prefix=prefix)
    known = await visit.call("metrics.defined", limit=ROWS_PER_PAGE, prefix=prefix)
    spec = found.get(name)
    if spec is None:
        raise BadInput(f"no metric {name!r:.200} is defined", hint="Its prefix may be another one.")
    sequence = _sequence(visit, spec)
    entity = parts_of(visit.parameter("entity"))
    value = visit.parameter("value") or KINDS[spec.type].charted_values[0]
    lines: list[Line] = []
    times: list[float] = []
    for each, tone in zip(found, _TONES, strict=False):
        type = found[each].type
        wanted = value if type == spec.type else KINDS[type].charted_values[0]
        read = await _series(visit, each, entity, sequence, wanted)
        times = [read.start + at * read.step for at in range(len(read.values))]
        lines.append(Line(f"{each} {wanted}", read.values, tone))
    return await visit.render(
        "metric.html",
        title=name,
        spec=spec,
        sequence=sequence,
        values=KINDS[spec.type].charted_values,
        value=value,
        others=[each for each in known if each != name],
        chart=Chart(f"{name}, {value}", times, lines),
        top=await _top(visit, spec, sequence),
    )


def _sequence(visit: Visit, spec: Any) -> Any:
    wanted = visit.parameter("sequence")
    return next((each for each in spec.sequences if each.name == wanted), spec.sequences[0])


async def _series(visit: Visit, metric: str, entity: list[str], sequence: Any, value: str) -> Any:
    """Returns the values of a sequence, in steps of as many buckets as a chart can show."""
    span = float(sequence.soft_expiry)
    buckets = max(1, int(span / sequence.time_step))
    step = sequence.time_step * max(1, -(-buckets // MAX_CHART_POINTS))
    end = (visit.now // step + 1) * step
    return await visit.call(
        "metrics.series",
        metric=metric,
        entity=entity or None,
        start=max(0.0, end - max(step, span // step * step)),
        end=end,
        step=step,
        value=value,
        prefix=prefix_of(visit),
    )


async def _top(visit: Visit, spec: Any, sequence: Any) -> list[Any] | None:
    """Returns the entities with the highest totals of a counter; None if there are too many."""
    if not KINDS[spec.type].has_counters:
        return []
    try:
        found: list[Any] = await visit.call(
            "metrics.top",
            metric=visit.names["metric"],
            latest=float(sequence.soft_expiry),
            n=10,
            most_buckets=MAX_RANKED_BUCKETS,
            prefix=prefix_of(visit),
        )
    except BadRange:
        return None
    return found


@action("metrics/{metric}/reset")
async def reset(visit: Visit) -> HttpResponse:
    """Deletes everything stored about one entity."""
    name, entity = visit.names["metric"], parts_of(visit.form.get("entity", ""))
    prefix = parts_of(visit.form.get(_PREFIX, "")) or None
    deleted = await visit.call(
        "metrics.reset", entities=[entity or None], metrics=[name], prefix=prefix
    )
    said = f"Deleted {deleted.deleted:,} buckets."
    return visit.leave(visit.link("metrics", name, prefix=visit.form.get(_PREFIX, "")), said)


@page("limits", menu="limits")
async def limits(visit: Visit) -> HttpResponse:
    """Shows how a limit would decide for an entity, without counting anything."""
    result = problem = None
    recorded = await Recorded.of(visit)
    refusals = await recorded.refusals()
    if visit.parameter("condition"):
        try:
            result = await visit.call("metrics.peek", **limit_of(visit.request.parameters))
        except HoldfastError as error:
            problem = error
    return await visit.render(
        "limits.html",
        title="Limits",
        rows=(("condition", "refusals"), list(refusals.items())),
        result=result,
        problem=problem,
        refusals=refusals,
        is_recorded=recorded.exists,
        chart=await _refusals_chart(visit, recorded),
    )


async def _refusals_chart(visit: Visit, recorded: Recorded) -> Chart | None:
    """Returns the refusals of the condition that was asked for, over the last day."""
    condition = visit.parameter("condition")
    entity = ["space", visit.space, "condition", condition]
    times, values = await recorded.series("refusals", entity, span=RANGES["day"])
    if not condition or not any(values):
        return None
    return Chart(f"Refusals of {condition}, last day", times, [Line("refusals", values, "bad")])


@action("limits/try")
async def try_limit(visit: Visit) -> HttpResponse:
    """Counts one operation under a limit."""
    arguments = limit_of(visit.form)
    result = await visit.call("metrics.try_incr", **arguments)
    shown = {name: visit.form.get(name, "") for name in _FIELDS}
    said = "Allowed, and counted." if result.allowed else "Refused, and not counted."
    return visit.leave(visit.link("limits", **shown), said)


_FIELDS: Final = ("condition", "limit", "window", "entity", "amount", "algorithm")


def limit_of(fields: Any) -> dict[str, Any]:
    """Returns the arguments of a limiter from the fields of a form."""
    try:
        limit, window = int(fields.get("limit") or 10), float(fields.get("window") or 60)
        amount = int(fields.get("amount") or 1)
    except ValueError:
        raise BadInput("limit, window and amount must be numbers") from None
    condition = fields.get("condition", "")
    operation = {"condition": condition, "entity": parts_of(fields.get("entity", "")) or None}
    return {
        "operations": [{**operation, "amount": amount}],
        "conditions": {condition: {"limit": limit, "window": window}},
        "algorithm": fields.get("algorithm") or "estimate",
    }
