"""Throttles: how many jobs of a name run at once, who holds it and who waits."""

from holdfast.dashboard.pages import action, page
from holdfast.dashboard.visit import Visit
from holdfast.limits import JOBS_PER_PAGE
from holdfast.server.http_exchange import HttpResponse


@page("throttles", menu="throttles")
async def throttles(visit: Visit) -> HttpResponse:
    """Shows the throttle that was asked for; a store has no list of them."""
    name = visit.parameter("name").strip()
    if not name:
        return await visit.render("throttles.html", title="Throttles", name="", throttle=None)
    throttle = await visit.call("jobs.throttle_get", name=name)
    locks = await visit.call("jobs.throttle_locks", name=name, count=JOBS_PER_PAGE)
    pending = await visit.call("jobs.throttle_pending", name=name, count=JOBS_PER_PAGE)
    return await visit.render(
        "throttles.html",
        title="Throttles",
        name=name,
        throttle=throttle,
        locks=locks,
        pending=pending,
    )


@action("throttles/set")
async def set_(visit: Visit) -> HttpResponse:
    """Sets the maximum of a throttle."""
    name = visit.form.get("name", "")
    await visit.call(
        "jobs.throttle_set",
        name=name,
        maximum=int(visit.form_number("maximum") or 0),
        ttl=visit.form_number("ttl"),
    )
    return visit.leave(visit.link("throttles", name=name), f"The throttle {name} is set.")


@action("throttles/delete")
async def delete(visit: Visit) -> HttpResponse:
    """Lifts a throttle and lets all jobs back that wait for it."""
    name = visit.form.get("name", "")
    await visit.call("jobs.throttle_delete", name=name)
    return visit.leave(visit.link("throttles", name=name), f"The throttle {name} is lifted.")
