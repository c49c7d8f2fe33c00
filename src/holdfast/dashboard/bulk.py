"""Bulk actions: shows their progress, and stops them. They run in the background."""

from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.errors import NotFound
from holdfast.server.http_exchange import HttpResponse


@page("bulk", menu="bulk")
async def bulks(request: PageRequest) -> HttpResponse:
    """Shows all actions that are running or ended within a week."""
    found = await request.call("jobs.bulks")
    newest = sorted(found, key=lambda each: -each.started)
    return await request.render("bulks.html", title="Bulk actions", bulks=newest)


@page("bulk/{id}", menu="bulk")
async def bulk(request: PageRequest) -> HttpResponse:
    """Shows the progress of one action."""
    found = await request.call("jobs.bulk", id=request.names["id"])
    if found is None:
        raise NotFound(f"there is no bulk action {request.names['id']!r:.100}")
    return await request.render("bulk.html", title=f"Bulk action: {found.action}", bulk=found)


@action("bulk/{id}/stop")
async def stop(request: PageRequest) -> HttpResponse:
    """Stops an action; what it has changed stays changed."""
    await request.call("jobs.bulk_stop", id=request.names["id"])
    return request.redirect(request.link("bulk", request.names["id"]), "Stopped.")
