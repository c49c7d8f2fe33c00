"""Recurring jobs: when they run, in words, and what can be changed."""

from typing import Any

from holdfast.dashboard.cron_words import in_words
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.templates import duration
from holdfast.errors import NotFound
from holdfast.limits import QUEUES_PER_PAGE
from holdfast.server.http_exchange import HttpResponse


@page("schedules", menu="schedules")
async def schedules(request: PageRequest) -> HttpResponse:
    """Shows the recurring jobs by id, a page at a time."""
    after = request.parameter("cursor") or None
    found = await request.call("jobs.recurring", after=after, count=QUEUES_PER_PAGE + 1)
    shown = found[:QUEUES_PER_PAGE]
    rows = [(each.id, each.klass, each.queue, words_of(each), each.paused) for each in shown]
    return await request.render(
        "schedules.html",
        title="Schedules",
        rows=(("id", "class", "queue", "runs", "paused"), rows),
        schedules=shown,
        words=words_of,
        cursor=shown[-1].id if len(found) > len(shown) else None,
    )


@page("schedules/{id}", menu="schedules")
async def schedule(request: PageRequest) -> HttpResponse:
    """Shows one recurring job."""
    found = await _found(request)
    return await request.render(
        "schedule.html", title=found.id, schedule=found, words=words_of(found)
    )


def words_of(schedule: Any) -> str:
    """Returns when a recurring job runs, in words."""
    if schedule.spec == "cron":
        return in_words(schedule.cron, schedule.tz)
    return f"every {duration(schedule.interval)}"


async def _found(request: PageRequest) -> Any:
    found = await request.call("jobs.recur_get", id=request.names["id"])
    if found is None:
        raise NotFound(f"there is no recurring job {request.names['id']!r:.100}")
    return found


@action("schedules/{id}/run")
async def run(request: PageRequest) -> HttpResponse:
    """Puts a job now, as the schedule would; its next run does not change."""
    found = await _found(request)
    id = await request.call(
        "jobs.put",
        queue=found.queue,
        klass=found.klass,
        data=found.data,
        priority=found.priority,
        tags=list(found.tags) or None,
        retries=found.retries,
    )
    return request.redirect(request.link("jobs", id), "A job was put as the schedule would.")


@action("schedules/{id}/pause")
async def pause(request: PageRequest) -> HttpResponse:
    """Pauses a schedule: it puts no jobs until it is resumed."""
    id = request.names["id"]
    await request.call("jobs.recur_pause", id=id)
    return request.redirect(request.origin(request.link("schedules", id)), f"Paused {id}.")


@action("schedules/{id}/resume")
async def resume(request: PageRequest) -> HttpResponse:
    """Ends the pause of a schedule."""
    id = request.names["id"]
    await request.call("jobs.recur_resume", id=id)
    return request.redirect(request.origin(request.link("schedules", id)), f"Resumed {id}.")


@action("schedules/{id}/edit")
async def edit(request: PageRequest) -> HttpResponse:
    """Changes what is given."""
    form = request.form
    await request.call(
        "jobs.recur_update",
        id=request.names["id"],
        queue=form.get("queue") or None,
        klass=form.get("klass") or None,
        interval=request.form_number("interval"),
        priority=request.form_number("priority"),
        retries=request.form_number("retries"),
        data=request.form_json("data"),
    )
    return request.redirect(
        request.link("schedules", request.names["id"]), "The schedule has changed."
    )


@action("schedules/{id}/end")
async def end(request: PageRequest) -> HttpResponse:
    """Ends a recurring job; jobs that it has put stay."""
    await request.call("jobs.unrecur", id=request.names["id"])
    return request.redirect(request.link("schedules"), f"Ended the schedule {request.names['id']}.")
