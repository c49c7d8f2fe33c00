"""Tracked jobs."""

from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import page
from holdfast.server.http_exchange import HttpResponse


@page("tracked", menu="tracked")
async def tracked(request: PageRequest) -> HttpResponse:
    """Shows the tracked jobs."""
    found = await request.call("jobs.tracked")
    return await request.render("tracked.html", title="Tracked jobs", found=found)
