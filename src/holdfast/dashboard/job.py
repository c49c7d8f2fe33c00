"""One job: its data, its history, its dependencies, and every action on it."""

from typing import Any

from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.errors import NotFound
from holdfast.limits import JOBS_PER_PAGE, MAX_GRAPH_JOBS
from holdfast.server.http_exchange import HttpResponse


@page("jobs/{id}", menu="queues")
async def job(request: PageRequest) -> HttpResponse:
    """Shows a job, or the recurring job of that id."""
    id = request.names["id"]
    found = await request.call("jobs.get", id=id)
    if found is None:
        if await request.call("jobs.recur_get", id=id) is not None:
            return request.redirect(request.link("schedules", id))
        raise NotFound(f"there is no job {id!r:.100}", hint="It may have expired, or be canceled.")
    near = [*found.dependencies[:MAX_GRAPH_JOBS], *found.dependents[:MAX_GRAPH_JOBS]]
    known = await request.call("jobs.multiget", ids=near) if near else []
    return await request.render(
        "job.html",
        title=id,
        job=found,
        result=await request.call("jobs.result", id=id) if found.state == "complete" else None,
        log=await request.call("jobs.read_log", id=id),
        steps=await request.call("jobs.steps", id=id, count=JOBS_PER_PAGE * 4),
        signals=await request.call("jobs.signals", id=id),
        states={each.id: each.state for each in known},
        most=MAX_GRAPH_JOBS,
    )


def _back_to_job(request: PageRequest, notice: str) -> HttpResponse:
    return request.redirect(request.link("jobs", request.names["id"]), notice)


async def _call(request: PageRequest, operation: str, /, **arguments: Any) -> Any:
    return await request.call(f"jobs.{operation}", id=request.names["id"], **arguments)


@action("jobs/{id}/retry")
async def retry(request: PageRequest) -> HttpResponse:
    """Puts a failed job back into the queue that it failed in."""
    await _call(request, "requeue", queue=None)
    return _back_to_job(request, "The job is back in its queue.")


@action("jobs/{id}/cancel")
async def cancel(request: PageRequest) -> HttpResponse:
    """Cancels a job, and leaves its page, which no longer exists."""
    await request.call("jobs.cancel", ids=[request.names["id"]])
    return request.redirect(request.link("queues"), f"Canceled the job {request.names['id']}.")


@action("jobs/{id}/put")
async def put(request: PageRequest) -> HttpResponse:
    """Puts a job again: into another queue, with other data, at another time."""
    form = request.form
    await _call(
        request,
        "requeue",
        queue=form.get("queue") or None,
        data=request.form_json("data"),
        delay=request.form_number("delay"),
        priority=request.form_number("priority"),
    )
    return _back_to_job(request, "The job was put.")


@action("jobs/{id}/priority")
async def priority(request: PageRequest) -> HttpResponse:
    """Changes the priority."""
    await _call(request, "priority", priority=request.form_number("priority"))
    return _back_to_job(request, "The priority has changed.")


@action("jobs/{id}/tags")
async def tags(request: PageRequest) -> HttpResponse:
    """Adds and removes tags."""
    if request.form.get("remove"):
        await _call(request, "untag", tags=[request.form["remove"]])
    if request.form.get("add", "").split():
        await _call(request, "tag", tags=request.form["add"].split())
    return _back_to_job(request, "The tags have changed.")


@action("jobs/{id}/track")
async def track(request: PageRequest) -> HttpResponse:
    """Starts or stops tracking a job."""
    await _call(request, "untrack" if request.form.get("off") else "track")
    return _back_to_job(
        request, "No longer tracked." if request.form.get("off") else "The job is tracked."
    )


@action("jobs/{id}/release")
async def release(request: PageRequest) -> HttpResponse:
    """Ends the lock of a running job; the job becomes the first of its queue."""
    await request.call("jobs.timeout", ids=[request.names["id"]])
    return _back_to_job(request, "The lock is released; another worker will get the job.")


@action("jobs/{id}/signal")
async def signal(request: PageRequest) -> HttpResponse:
    """Sends a signal to a workflow."""
    await _call(
        request, "signal", name=request.form.get("name", ""), value=request.form_json("value")
    )
    return _back_to_job(request, "The signal was sent.")


@action("jobs/{id}/independent")
async def independent(request: PageRequest) -> HttpResponse:
    """Removes all dependencies of a job."""
    await _call(request, "depends_off", all=True)
    return _back_to_job(request, "The job no longer waits for other jobs.")
