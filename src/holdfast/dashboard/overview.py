"""The overview: what needs someone, then numbers, then lists."""

from holdfast.dashboard.pages import page
from holdfast.dashboard.visit import Visit
from holdfast.server.http_exchange import HttpResponse


@page("")
async def overview(visit: Visit) -> HttpResponse:
    """Shows a space at a glance."""
    queues = await visit.call("jobs.queues")
    return await visit.render("overview.html", title="Overview", queues=queues)
