"""Recurring jobs: when they run, in words, and what can be changed."""

from typing import Any

from holdfast.dashboard.cron_words import in_words
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.templates import duration
from holdfast.dashboard.visit import Visit
from holdfast.errors import NotFound
from holdfast.limits import QUEUES_PER_PAGE
from holdfast.server.http_exchange import HttpResponse


@page("schedules", menu="schedules")
async def schedules(visit: Visit) -> HttpResponse:
    """Shows the recurring jobs by id, a page at a time."""
    after = visit.parameter("cursor") or None
    found = await visit.call("jobs.recurring", after=after, count=QUEUES_PER_PAGE + 1)
    shown = found[:QUEUES_PER_PAGE]
    rows = [(each.id, each.klass, each.queue, words_of(each), each.paused) for each in shown]
    return await visit.render(
        "schedules.html",
        title="Schedules",
        rows=(("id", "class", "queue", "runs", "paused"), rows),
        schedules=shown,
        words=words_of,
        cursor=shown[-1].id if len(found) > len(shown) else None,
    )


@page("schedules/{id}", menu="schedules")
async def schedule(visit: Visit) -> HttpResponse:
    """Shows one recurring job."""
    found = await _found(visit)
    return await visit.render(
        "schedule.html", title=found.id, schedule=found, words=words_of(found)
    )


def words_of(schedule: Any) -> str:
    """Returns when a recurring job runs, in words."""
    if schedule.spec == "cron":
        return in_words(schedule.cron, schedule.tz)
    return f"every {duration(schedule.interval)}"


async def _found(visit: Visit) -> Any:
    found = await visit.call("jobs.recur_get", id=visit.names["id"])
    if found is None:
        raise NotFound(f"there is no recurring job {visit.names['id']!r:.100}")
    return found


@action("schedules/{id}/run")
async def run(visit: Visit) -> HttpResponse:
    """Puts a job now, as the schedule would; its next run does not change."""
    found = await _found(visit)
    id = await visit.call(
        "jobs.put",
        queue=found.queue,
        klass=found.klass,
        data=found.data,
        priority=found.priority,
        tags=list(found.tags) or None,
        retries=found.retries,
    )
    return visit.leave(visit.link("jobs", id), "A job was put as the schedule would.")


@action("schedules/{id}/pause")
async def pause(visit: Visit) -> HttpResponse:
    """Pauses a schedule: it puts no jobs until it is resumed."""
    id = visit.names["id"]
    await visit.call("jobs.recur_pause", id=id)
    return visit.leave(visit.form.get("to") or visit.link("schedules", id), f"Paused {id}.")


@action("schedules/{id}/resume")
async def resume(visit: Visit) -> HttpResponse:
    """Ends the pause of a schedule."""
    id = visit.names["id"]
    await visit.call("jobs.recur_resume", id=id)
    return visit.leave(visit.form.get("to") or visit.link("schedules", id), f"Resumed {id}.")


@action("schedules/{id}/edit")
async def edit(visit: Visit) -> HttpResponse:
    """Changes what is given."""
    form = visit.form
    await visit.call(
        "jobs.recur_update",
        id=visit.names["id"],
        queue=form.get("queue") or None,
        klass=form.get("klass") or None,
        interval=visit.form_number("interval"),
        priority=visit.form_number("priority"),
        retries=visit.form_number("retries"),
        data=visit.form_json("data"),
    )
    return visit.leave(visit.link("schedules", visit.names["id"]), "The schedule has changed.")


@action("schedules/{id}/end")
async def end(visit: Visit) -> HttpResponse:
    """Ends a recurring job; jobs that it has put stay."""
    await visit.call("jobs.unrecur", id=visit.names["id"])
    return visit.leave(visit.link("schedules"), f"Ended the schedule {visit.names['id']}.")
