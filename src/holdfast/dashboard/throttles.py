"""Throttles: their maximum, the jobs that hold them, and the jobs that wait."""

from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.limits import JOBS_PER_PAGE, QUEUES_PER_PAGE
from holdfast.server.http_exchange import HttpResponse


@page("throttles", menu="throttles")
async def throttles(request: PageRequest) -> HttpResponse:
    """Shows all throttles by name, or the one that was asked for."""
    name = request.parameter("name").strip()
    if not name:
        return await _list(request)
    throttle = await request.call("jobs.throttle_get", name=name)
    locks = await request.call("jobs.throttle_locks", name=name, count=JOBS_PER_PAGE)
    pending = await request.call("jobs.throttle_pending", name=name, count=JOBS_PER_PAGE)
    return await request.render(
        "throttle.html",
        title=name,
        name=name,
        throttle=throttle,
        locks=locks,
        pending=pending,
    )


async def _list(request: PageRequest) -> HttpResponse:
    after = request.parameter("cursor") or None
    found = await request.call("jobs.throttles", after=after, count=QUEUES_PER_PAGE + 1)
    shown = found[:QUEUES_PER_PAGE]
    rows = [(each.name, each.maximum, each.locks, each.pending) for each in shown]
    return await request.render(
        "throttles.html",
        title="Throttles",
        rows=(("throttle", "maximum", "held", "waiting"), rows),
        throttles=shown,
        cursor=shown[-1].name if len(found) > len(shown) else None,
    )


@action("throttles/set")
async def set_(request: PageRequest) -> HttpResponse:
    """Sets the maximum of a throttle."""
    name, maximum = request.form.get("name", ""), request.form_number("maximum") or 0.0
    await request.call(
        "jobs.throttle_set",
        name=name,
        maximum=int(maximum) if maximum.is_integer() else maximum,
        ttl=request.form_number("ttl"),
    )
    return request.redirect(request.link("throttles", name=name), f"The throttle {name} is set.")


@action("throttles/delete")
async def delete(request: PageRequest) -> HttpResponse:
    """Removes a throttle and releases all jobs that wait for it."""
    name = request.form.get("name", "")
    await request.call("jobs.throttle_delete", name=name)
    return request.redirect(request.link("throttles", name=name), f"Removed the throttle {name}.")
