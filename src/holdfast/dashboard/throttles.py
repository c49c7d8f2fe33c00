"""Throttles: their maximum, the jobs that hold them, and the jobs that wait."""

from holdfast.dashboard.pages import action, page
from holdfast.dashboard.visit import Visit
from holdfast.limits import JOBS_PER_PAGE, QUEUES_PER_PAGE
from holdfast.server.http_exchange import HttpResponse


@page("throttles", menu="throttles")
async def throttles(visit: Visit) -> HttpResponse:
    """Shows all throttles by name, or the one that was asked for."""
    name = visit.parameter("name").strip()
    if not name:
        return await _list(visit)
    throttle = await visit.call("jobs.throttle_get", name=name)
    locks = await visit.call("jobs.throttle_locks", name=name, count=JOBS_PER_PAGE)
    pending = await visit.call("jobs.throttle_pending", name=name, count=JOBS_PER_PAGE)
    return await visit.render(
        "throttle.html",
        title=name,
        name=name,
        throttle=throttle,
        locks=locks,
        pending=pending,
    )


async def _list(visit: Visit) -> HttpResponse:
    after = visit.parameter("cursor") or None
    found = await visit.call("jobs.throttles", after=after, count=QUEUES_PER_PAGE + 1)
    shown = found[:QUEUES_PER_PAGE]
    rows = [(each.name, each.maximum, each.locks, each.pending) for each in shown]
    return await visit.render(
        "throttles.html",
        title="Throttles",
        rows=(("throttle", "maximum", "held", "waiting"), rows),
        throttles=shown,
        cursor=shown[-1].name if len(found) > len(shown) else None,
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
    """Removes a throttle and releases all jobs that wait for it."""
    name = visit.form.get("name", "")
    await visit.call("jobs.throttle_delete", name=name)
    return visit.leave(visit.link("throttles", name=name), f"Removed the throttle {name}.")
