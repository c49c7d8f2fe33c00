"""Failed jobs by group: how many, since when, and the newest message."""

from typing import Any, NamedTuple

from holdfast.dashboard import job_filters
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.limits import GROUPS_PER_PAGE, JOBS_PER_PAGE, MAX_GROUP_SAMPLE
from holdfast.server.http_exchange import HttpResponse

_HOURS = 24


class FailureGroup(NamedTuple):
    """A failure group; `by_hour` counts its newest jobs in each hour of the last day."""

    name: str
    number: int
    newest: Any
    first: float | None
    by_hour: list[int]


@page("failures", menu="failures")
async def failures(request: PageRequest) -> HttpResponse:
    """Shows the groups with most failed jobs first, a page at a time."""
    groups = await request.call("jobs.failed")
    offset = request.count("offset")
    ordered = sorted(groups.items(), key=lambda each: (-each[1], each[0]))
    shown = [
        await _group(request, name, number)
        for name, number in ordered[offset : offset + GROUPS_PER_PAGE]
    ]
    more = offset + GROUPS_PER_PAGE
    return await request.render(
        "failures.html",
        title="Failures",
        rows=(("group", "failed"), ordered),
        groups=shown,
        total=sum(groups.values()),
        number=len(groups),
        cursor=str(more) if more < len(ordered) else None,
    )


async def _group(request: PageRequest, name: str, number: int) -> FailureGroup:
    page = await request.call("jobs.failed_in", group=name, count=MAX_GROUP_SAMPLE)
    jobs = await request.call("jobs.multiget", ids=list(page.jobs)) if page.jobs else []
    oldest = await request.call("jobs.dead_letters", match={"group": name}, count=1)
    by_hour = [0] * _HOURS
    for job in jobs:
        hours = int((request.now - job.failure.when) // 3600) if job.failure else _HOURS
        if 0 <= hours < _HOURS:
            by_hour[_HOURS - 1 - hours] += 1
    first = oldest.jobs[0].failure.when if oldest.jobs and oldest.jobs[0].failure else None
    return FailureGroup(name, number, jobs[0] if jobs else None, first, by_hour)


@page("failures/{group}", menu="failures")
async def group(request: PageRequest) -> HttpResponse:
    """Shows the failed jobs of a group."""
    name = request.names["group"]
    search = job_filters.search_of(request.http.parameters, group=name, state="failed")
    found = await request.call(
        "jobs.search",
        search=search,
        cursor=request.parameter("cursor") or None,
        count=JOBS_PER_PAGE,
    )
    return await request.render(
        "group.html", title=name, group=name, found=found, actions=job_filters.ACTIONS
    )


@action("failures/{group}/jobs")
async def change(request: PageRequest) -> HttpResponse:
    """Retries or cancels a group, or some of its jobs."""
    name = request.names["group"]
    search = job_filters.search_of(request.form, group=name, state="failed")
    kept = {key: request.form.get(key, "") for key in job_filters.FILTERS}
    return await job_filters.apply(request, search, request.link("failures", name, **kept))
