"""Metrics: a list of them, charts of one or several, and limits to try."""

from typing import Any, Final, get_args

from holdfast.dashboard.charts import Chart, Line
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.recorded_history import RANGES, Recorded
from holdfast.errors import BadInput, BadRange, HoldfastError
from holdfast.limits import (
    MAX_CHART_POINTS,
    MAX_CHARTED_METRICS,
    MAX_RANKED_BUCKETS,
    ROWS_PER_PAGE,
)
from holdfast.metrics.conditions import Algorithm
from holdfast.metrics.kinds import KINDS
from holdfast.server.http_exchange import HttpResponse

_TONES: Final = ("accent", "two", "three", "four", "dim")
_PREFIX: Final = "prefix"


@page("metrics", menu="metrics")
async def metrics(request: PageRequest) -> HttpResponse:
    """Shows the defined metrics with their sequences."""
    after = request.parameter("cursor") or None
    found = await request.call(
        "metrics.defined", after=after, limit=ROWS_PER_PAGE + 1, prefix=prefix_of(request)
    )
    shown = dict(list(found.items())[:ROWS_PER_PAGE])
    rows = [(name, each.type, each.help) for name, each in shown.items()]
    return await request.render(
        "metrics.html",
        title="Metrics",
        metrics=shown,
        next=list(shown)[-1] if len(found) > len(shown) else None,
        rows=(("metric", "type", "help"), rows),
    )


def prefix_of(request: PageRequest) -> list[str] | None:
    """Returns the prefix in the address, whose parts are separated by commas."""
    return parts_of(request.parameter(_PREFIX)) or None


def parts_of(text: str) -> list[str]:
    """Returns the parts of a text that commas separate.

    >>> parts_of("user, ann")
    ['user', 'ann']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


@page("metrics/{metric}", menu="metrics")
async def metric(request: PageRequest) -> HttpResponse:
    """Shows a metric of one entity over the time of a sequence, with others in the same chart."""
    name, prefix = request.names["metric"], prefix_of(request)
    others = [each for each in request.parameter("with").split(",") if each and each != name]
    charted = [name, *others[: MAX_CHARTED_METRICS - 1]]
    found = await request.call("metrics.defined", names=charted, prefix=prefix)
    known = await request.call("metrics.defined", limit=ROWS_PER_PAGE, prefix=prefix)
    spec = found.get(name)
    if spec is None:
        raise BadInput(f"no metric {name!r:.200} is defined", hint="Its prefix may be another one.")
    sequence = _sequence(request, spec)
    entity = parts_of(request.parameter("entity"))
    value = request.parameter("value") or KINDS[spec.type].charted_values[0]
    lines: list[Line] = []
    times: list[float] = []
    for each, tone in zip(found, _TONES, strict=False):
        type = found[each].type
        wanted = value if type == spec.type else KINDS[type].charted_values[0]
        read = await _series(request, each, entity, sequence, wanted)
        times = [read.start + at * read.step for at in range(len(read.values))]
        lines.append(Line(f"{each} {wanted}", read.values, tone))
    return await request.render(
        "metric.html",
        title=name,
        spec=spec,
        sequence=sequence,
        values=KINDS[spec.type].charted_values,
        value=value,
        others=[each for each in known if each != name],
        chart=Chart(f"{name}, {value}", times, lines),
        top=await _top(request, spec, sequence),
    )


def _sequence(request: PageRequest, spec: Any) -> Any:
    wanted = request.parameter("sequence")
    return next((each for each in spec.sequences if each.name == wanted), spec.sequences[0])


async def _series(
    request: PageRequest, metric: str, entity: list[str], sequence: Any, value: str
) -> Any:
    """Returns the values of a sequence, in steps of as many buckets as a chart can show."""
    span = float(sequence.soft_expiry)
    buckets = max(1, int(span / sequence.time_step))
    step = sequence.time_step * max(1, -(-buckets // MAX_CHART_POINTS))
    end = (request.now // step + 1) * step
    return await request.call(
        "metrics.series",
        metric=metric,
        entity=entity or None,
        start=max(0.0, end - max(step, span // step * step)),
        end=end,
        step=step,
        value=value,
        prefix=prefix_of(request),
    )


async def _top(request: PageRequest, spec: Any, sequence: Any) -> list[Any] | None:
    """Returns the entities with the highest totals of a counter; None if there are too many."""
    if not KINDS[spec.type].has_counters:
        return []
    try:
        found: list[Any] = await request.call(
            "metrics.top",
            metric=request.names["metric"],
            latest=float(sequence.soft_expiry),
            n=10,
            most_buckets=MAX_RANKED_BUCKETS,
            prefix=prefix_of(request),
        )
    except BadRange:
        return None
    return found


@action("metrics/{metric}/reset")
async def reset(request: PageRequest) -> HttpResponse:
    """Deletes everything stored about one entity."""
    name, entity = request.names["metric"], parts_of(request.form.get("entity", ""))
    prefix = parts_of(request.form.get(_PREFIX, "")) or None
    deleted = await request.call(
        "metrics.reset", entities=[entity or None], metrics=[name], prefix=prefix
    )
    notice = f"Deleted {deleted.deleted:,} buckets."
    return request.redirect(
        request.link("metrics", name, prefix=request.form.get(_PREFIX, "")), notice
    )


@page("limits", menu="limits")
async def limits(request: PageRequest) -> HttpResponse:
    """Shows how a limit would decide for an entity, without counting anything."""
    result = problem = None
    recorded = await Recorded.of(request)
    refusals = await recorded.refusals()
    if request.parameter("condition"):
        try:
            result = await request.call("metrics.peek", **limit_of(request.http.parameters))
        except HoldfastError as error:
            problem = error
    return await request.render(
        "limits.html",
        title="Limits",
        rows=(("condition", "refusals"), list(refusals.items())),
        result=result,
        problem=problem,
        refusals=refusals,
        is_recorded=recorded.exists,
        algorithms=get_args(Algorithm),
        chart=await _refusals_chart(request, recorded),
    )


async def _refusals_chart(request: PageRequest, recorded: Recorded) -> Chart | None:
    """Returns the refusals of the condition that was asked for, over the last day."""
    condition = request.parameter("condition")
    entity = ["space", request.space, "condition", condition]
    times, values = await recorded.series("refusals", entity, span=RANGES["day"])
    if not condition or not any(values):
        return None
    return Chart(f"Refusals of {condition}, last day", times, [Line("refusals", values, "bad")])


@action("limits/try")
async def try_limit(request: PageRequest) -> HttpResponse:
    """Counts one operation under a limit."""
    arguments = limit_of(request.form)
    result = await request.call("metrics.try_incr", **arguments)
    shown = {name: request.form.get(name, "") for name in _FIELDS}
    notice = "Allowed, and counted." if result.allowed else "Refused, and not counted."
    return request.redirect(request.link("limits", **shown), notice)


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
