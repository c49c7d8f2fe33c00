"""The overview: what needs attention first, then numbers, charts and lists."""

from typing import Any, NamedTuple

from holdfast.dashboard.charts import Chart, Line
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import page
from holdfast.dashboard.recorded_history import RANGES, Range, Recorded
from holdfast.error_text import counted
from holdfast.limits import QUEUES_ON_OVERVIEW
from holdfast.server.http_exchange import HttpResponse

_LONG_WAIT = 60.0  # seconds after which a queue without workers is an alert


class Alert(NamedTuple):
    """Something that needs attention: its queue, what it is, and the page to look at."""

    queue: str
    text: str
    link: str
    tone: str = "warn"


@page("")
async def overview(request: PageRequest) -> HttpResponse:
    """Shows a space at a glance."""
    queues = await request.call("jobs.queues")
    busiest = sorted(queues, key=_need_for_attention, reverse=True)[:QUEUES_ON_OVERVIEW]
    names = [each.name for each in busiest]
    figures = await request.call("jobs.figures", queues=names) if names else []
    failed = await request.call("jobs.failed")
    programs = await request.call("jobs.worker_programs")
    recorded = await Recorded.of(request)
    span = RANGES.get(request.parameter("range", "hour"), RANGES["hour"])
    return await request.render(
        "overview.html",
        title="Overview",
        figures=figures,
        number=len(queues),
        waiting=sum(each.waiting for each in queues),
        running=sum(each.running for each in queues),
        failed=sum(failed.values()),
        alerts=_alerts(request, figures, failed, programs),
        programs=programs,
        facts=await request.call("admin.server") if request.may("admin.server") else None,
        throughput=await recorded.by_queue("completed", names),
        ranges=RANGES,
        span=span,
        charts=await _charts(recorded, span),
    )


def _need_for_attention(queue: Any) -> tuple[bool, int, int]:
    return queue.paused or bool(queue.stalled), queue.waiting, queue.running


def _jobs_have(number: int) -> str:
    return f"{counted(number, 'job')} {'has' if number == 1 else 'have'}"


def _alerts(
    request: PageRequest, figures: list[Any], failed: dict[str, int], programs: Any
) -> list[Alert]:
    """Returns what needs attention, the worst first."""
    served = {queue for program in programs for queue in program.queues}
    found = [
        Alert(group, f"{_jobs_have(number)} failed", request.link("failures", group), "bad")
        for group, number in sorted(failed.items(), key=lambda each: -each[1])[:5]
    ]
    for each in figures:
        counts = each.counts
        link = request.link("queues", counts.name)
        if counts.stalled:
            owner = "its" if counts.stalled == 1 else "their"
            text = f"{_jobs_have(counts.stalled)} lost {owner} worker"
            found.append(
                Alert(counts.name, text, request.link("queues", counts.name, state="stalled"))
            )
        if counts.paused:
            found.append(Alert(counts.name, "is paused", link))
        elif (
            counts.waiting
            and not counts.running
            and counts.name not in served
            and each.oldest_age > _LONG_WAIT
        ):
            minutes = f"{each.oldest_age / 60:,.0f} min"
            text = f"no worker serves this queue; its oldest job has waited {minutes}"
            found.append(Alert(counts.name, text, link))
    return found[:12]


async def _charts(recorded: Recorded, span: Range) -> dict[str, Chart]:
    """Returns the charts for which there is recorded data."""
    ago = f"last {span.label}"
    charts = {}
    times, completed = await recorded.jobs("completed", span=span)
    _, failed = await recorded.jobs("failed", span=span)
    _, put = await recorded.jobs("put", span=span)
    if times:
        lines = [
            Line("completed", completed),
            Line("failed", failed, "bad"),
            Line("put", put, "dim"),
        ]
        charts["jobs"] = Chart(f"Jobs a minute, {ago}", times, lines, "/min")
    times, commits = await recorded.series("commits", span=span)
    if times:
        _, p50 = await recorded.series("commit_ms", value="p50", span=span)
        _, p99 = await recorded.series("commit_ms", value="p99", span=span)
        rate = [None if each is None else each / span.step for each in commits]
        charts["commits"] = Chart(f"Commits a second, {ago}", times, [Line("commits", rate)], "/s")
        lines = [Line("p50", p50), Line("p99", p99, "warn")]
        charts["latency"] = Chart(f"Time of a commit, {ago}", times, lines, "ms")
    requests = await _requests(recorded, span)
    if requests:
        charts["requests"] = requests
    return charts


async def _requests(recorded: Recorded, span: Range) -> Chart | None:
    lines = []
    times: list[float] = []
    for metric, protocol, tone in (
        ("requests", "resp", "accent"), ("requests", "http", "four"),
        ("errors", "resp", "bad"), ("errors", "http", "warn"),
    ):  # fmt: skip
        found, values = await recorded.series(metric, ["protocol", protocol], span=span)
        if found:
            times = found
            rate = [None if each is None else each / span.step for each in values]
            lines.append(Line(f"{protocol.upper()} {metric}", rate, tone))
    return Chart(f"Requests a second, last {span.label}", times, lines, "/s") if times else None
