"""Bulk actions: shows their progress, and stops them. They run in the background."""

from holdfast.dashboard.pages import action, page
from holdfast.dashboard.visit import Visit
from holdfast.errors import NotFound
from holdfast.server.http_exchange import HttpResponse


@page("bulk", menu="bulk")
async def bulks(visit: Visit) -> HttpResponse:
    """Shows all actions that are running or ended within a week."""
    found = await visit.call("jobs.bulks")
    newest = sorted(found, key=lambda each: -each.started)
    return await visit.render("bulks.html", title="Bulk actions", bulks=newest)


@page("bulk/{id}", menu="bulk")
async def bulk(visit: Visit) -> HttpResponse:
    """Shows the progress of one action."""
    found = await visit.call("jobs.bulk", id=visit.names["id"])
    if found is None:
        raise NotFound(f"there is no bulk action {visit.names['id']!r:.100}")
    return await visit.render("bulk.html", title=f"Bulk action: {found.action}", bulk=found)


@action("bulk/{id}/stop")
async def stop(visit: Visit) -> HttpResponse:
    """Stops an action; what it has changed stays changed."""
    await visit.call("jobs.bulk_stop", id=visit.names["id"])
    return visit.leave(visit.link("bulk", visit.names["id"]), "Stopped.")
