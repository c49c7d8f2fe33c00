"""Tracked jobs."""

from holdfast.dashboard.pages import page
from holdfast.dashboard.visit import Visit
from holdfast.server.http_exchange import HttpResponse


@page("tracked", menu="tracked")
async def tracked(visit: Visit) -> HttpResponse:
    """Shows the tracked jobs."""
    found = await visit.call("jobs.tracked")
    return await visit.render("tracked.html", title="Tracked jobs", found=found)
