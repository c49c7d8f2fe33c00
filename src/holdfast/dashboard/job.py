"""One job: its data, its history, its dependencies, and every action on it."""

from typing import Any

from holdfast.dashboard.pages import action, page
from holdfast.dashboard.visit import Visit
from holdfast.errors import NotFound
from holdfast.limits import JOBS_PER_PAGE, MAX_GRAPH_JOBS
from holdfast.server.http_exchange import HttpResponse


@page("jobs/{id}", menu="queues")
async def job(visit: Visit) -> HttpResponse:
    """Shows a job, or the recurring job of that id."""
    id = visit.names["id"]
    found = await visit.call("jobs.get", id=id)
    if found is None:
        if await visit.call("jobs.recur_get", id=id) is not None:
            return visit.leave(visit.link("schedules", id))
        raise NotFound(f"there is no job {id!r:.100}", hint="It may have expired, or be canceled.")
    near = [*found.dependencies[:MAX_GRAPH_JOBS], *found.dependents[:MAX_GRAPH_JOBS]]
    known = await visit.call("jobs.multiget", ids=near) if near else []
    return await visit.render(
        "job.html",
        title=id,
        job=found,
        result=await visit.call("jobs.result", id=id) if found.state == "complete" else None,
        log=await visit.call("jobs.read_log", id=id),
        steps=await visit.call("jobs.steps", id=id, count=JOBS_PER_PAGE * 4),
        signals=await visit.call("jobs.signals", id=id),
        states={each.id: each.state for each in known},
        most=MAX_GRAPH_JOBS,
    )


def _done(visit: Visit, said: str) -> HttpResponse:
    return visit.leave(visit.link("jobs", visit.names["id"]), said)


async def _call(visit: Visit, operation: str, /, **arguments: Any) -> Any:
    return await visit.call(f"jobs.{operation}", id=visit.names["id"], **arguments)


@action("jobs/{id}/retry")
async def retry(visit: Visit) -> HttpResponse:
    """Puts a failed job back into the queue that it failed in."""
    await _call(visit, "requeue", queue=None)
    return _done(visit, "The job is back in its queue.")


@action("jobs/{id}/cancel")
async def cancel(visit: Visit) -> HttpResponse:
    """Cancels a job, and leaves its page, which no longer exists."""
    await visit.call("jobs.cancel", ids=[visit.names["id"]])
    return visit.leave(visit.link("queues"), f"Canceled the job {visit.names['id']}.")


@action("jobs/{id}/put")
async def put(visit: Visit) -> HttpResponse:
    """Puts a job again: into another queue, with other data, at another time."""
    form = visit.form
    await _call(
        visit,
        "requeue",
        queue=form.get("queue") or None,
        data=visit.form_json("data"),
        delay=visit.form_number("delay"),
        priority=visit.form_number("priority"),
    )
    return _done(visit, "The job was put.")


@action("jobs/{id}/priority")
async def priority(visit: Visit) -> HttpResponse:
    """Changes the priority."""
    await _call(visit, "priority", priority=visit.form_number("priority"))
    return _done(visit, "The priority has changed.")


@action("jobs/{id}/tags")
async def tags(visit: Visit) -> HttpResponse:
    """Adds and removes tags."""
    if visit.form.get("remove"):
        await _call(visit, "untag", tags=[visit.form["remove"]])
    if visit.form.get("add", "").split():
        await _call(visit, "tag", tags=visit.form["add"].split())
    return _done(visit, "The tags have changed.")


@action("jobs/{id}/track")
async def track(visit: Visit) -> HttpResponse:
    """Starts or stops tracking a job."""
    await _call(visit, "untrack" if visit.form.get("off") else "track")
    return _done(visit, "No longer tracked." if visit.form.get("off") else "The job is tracked.")


@action("jobs/{id}/release")
async def release(visit: Visit) -> HttpResponse:
    """Takes a running job from its worker; it comes first in its queue."""
    await visit.call("jobs.timeout", ids=[visit.names["id"]])
    return _done(visit, "The lock is released; another worker takes the job.")


@action("jobs/{id}/signal")
async def signal(visit: Visit) -> HttpResponse:
    """Sends a signal to a workflow."""
    await _call(visit, "signal", name=visit.form.get("name", ""), value=visit.form_json("value"))
    return _done(visit, "The signal was sent.")


@action("jobs/{id}/independent")
async def independent(visit: Visit) -> HttpResponse:
    """Removes all dependencies of a job."""
    await _call(visit, "depends_off", all=True)
    return _done(visit, "The job no longer waits for other jobs.")
