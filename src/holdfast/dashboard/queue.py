"""One queue: its jobs by state, its wait and run times, and actions on many jobs at once."""

from holdfast.dashboard import histograms, job_filters
from holdfast.dashboard.charts import Chart, Line
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.queues import LIMITS, limits_of
from holdfast.dashboard.recorded_history import RANGES, Recorded
from holdfast.errors import BadInput
from holdfast.limits import JOBS_PER_PAGE
from holdfast.server.http_exchange import HttpResponse

STATES = (
    "waiting", "running", "stalled", "scheduled", "depends", "throttled", "recurring", "failed",
    "complete",
)  # fmt: skip
_DAY = 86400
_COLUMNS = ("id", "klass", "state", "queue", "worker", "priority", "tags")


@page("queues/{queue}", menu="queues")
async def queue(request: PageRequest) -> HttpResponse:
    """Shows a queue: the jobs of one state, and its wait and run times of a day."""
    name, state = request.names["queue"], request.parameter("state", "waiting")
    if state not in STATES:
        raise BadInput(f"there is no state {state!r:.40}", hint=f"There are {', '.join(STATES)}.")
    counts = await request.call("jobs.counts", queue=name)
    found, recurring = None, []
    if state == "recurring":
        recurring = await _recurring(request, name)
    else:
        search = job_filters.search_of(request.http.parameters, queue=name, state=state)
        found = await request.call(
            "jobs.search", search=search, cursor=request.parameter("cursor") or None,
            count=JOBS_PER_PAGE,
        )  # fmt: skip
    days_ago = request.count("day")
    date = request.now - min(days_ago, 90) * _DAY
    stats = await request.call("jobs.stats", queue=name, date=date)
    outcomes = await request.call("jobs.stats_by", queue=name, by="all", since=date, until=date)
    jobs = found.jobs if found else ()
    return await request.render(
        "queue.html",
        title=name,
        rows=(_COLUMNS, [[getattr(job, column) for column in _COLUMNS] for job in jobs]),
        queue=name,
        state=state,
        states=STATES,
        counts=counts,
        found=found,
        recurring=recurring,
        stats=stats,
        retries=sum(row.retries for row in outcomes.rows),
        days_ago=days_ago,
        histograms=histograms,
        actions=job_filters.ACTIONS,
        limit_names=LIMITS,
        limits=limits_of(await request.call("jobs.config"), name),
        chart=await _chart(request, name),
    )


async def _recurring(request: PageRequest, queue: str) -> list[object]:
    ids = await request.call("jobs.jobs", state="recurring", queue=queue, count=JOBS_PER_PAGE)
    return [await request.call("jobs.recur_get", id=id) for id in ids]


async def _chart(request: PageRequest, queue: str) -> Chart | None:
    recorded = await Recorded.of(request)
    lines = []
    times: list[float] = []
    for what, tone in (("completed", "accent"), ("failed", "bad"), ("put", "dim")):
        times, values = await recorded.jobs(what, queue, span=RANGES["hour"])
        lines.append(Line(what, values, tone))
    return Chart(f"Jobs of {queue}, last hour", times, lines, "/min") if times else None


@action("queues/{queue}/jobs")
async def change(request: PageRequest) -> HttpResponse:
    """Applies an action to the selected jobs, or to all that match the filters of the page."""
    name, state = request.names["queue"], request.form.get("state", "")
    search = job_filters.search_of(request.form, queue=name, state=state)
    kept = {key: request.form.get(key, "") for key in job_filters.FILTERS}
    return await job_filters.apply(
        request, search, request.link("queues", name, state=state, **kept)
    )
