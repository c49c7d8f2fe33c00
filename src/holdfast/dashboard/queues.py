"""All queues of a space, and the actions on one of them."""

from holdfast.dashboard.pages import action, page
from holdfast.dashboard.recorded_history import Recorded
from holdfast.dashboard.visit import Visit
from holdfast.limits import QUEUES_PER_PAGE
from holdfast.server.http_exchange import HttpResponse

_STATES = ("waiting", "running", "stalled", "scheduled", "depends", "throttled", "recurring")
LIMITS = ("max-concurrency", "rate", "rate-per-key", "heartbeat", "dead-letter")


@page("queues", menu="queues")
async def queues(visit: Visit) -> HttpResponse:
    """Shows the queues by name, a page at a time."""
    found = await visit.call("jobs.figures", after=visit.parameter("after"), count=QUEUES_PER_PAGE)
    options = await visit.call("jobs.config")
    recorded = await Recorded.of(visit)
    names = [each.counts.name for each in found]
    rows = [
        [each.counts.name, *(getattr(each.counts, state) for state in _STATES), each.oldest_age]
        for each in found
    ]
    return await visit.render(
        "queues.html",
        title="Queues",
        rows=(["queue", *_STATES, "oldest_seconds"], rows),
        queues=found,
        limits={name: limits_of(options, name) for name in names},
        throughput=await recorded.by_queue("completed", names),
        cursor=names[-1] if len(found) == QUEUES_PER_PAGE else None,
    )


def limits_of(options: dict[str, object], queue: str) -> dict[str, object]:
    """Returns the options that were set for a queue."""
    return {limit: options[f"{queue}-{limit}"] for limit in LIMITS if f"{queue}-{limit}" in options}


@action("queues/{queue}/pause")
async def pause(visit: Visit) -> HttpResponse:
    """Pauses a queue, and with `stop_running` takes back its running jobs."""
    queue = visit.names["queue"]
    stop = True if visit.form.get("stop_running") else None
    await visit.call("jobs.pause", queues=[queue], stop_running=stop)
    return visit.leave(visit.form.get("to") or visit.link("queues"), f"Paused {queue}.")


@action("queues/{queue}/resume")
async def resume(visit: Visit) -> HttpResponse:
    """Ends a pause."""
    queue = visit.names["queue"]
    await visit.call("jobs.unpause", queues=[queue])
    return visit.leave(visit.link("queues", queue), f"Resumed {queue}.")


@action("queues/{queue}/drain")
async def drain(visit: Visit) -> HttpResponse:
    """Cancels all waiting jobs of a queue, as a bulk action."""
    search = {"queue": visit.names["queue"], "state": "waiting"}
    started = await visit.call("jobs.bulk_start", action="cancel", search=search)
    return visit.leave(visit.link("bulk", started.id))


@action("queues/{queue}/limits")
async def limits(visit: Visit) -> HttpResponse:
    """Sets the limits of a queue; an empty field removes a limit."""
    queue = visit.names["queue"]
    before = limits_of(await visit.call("jobs.config"), queue)
    for limit in LIMITS:
        given = visit.form.get(limit, "").strip()
        if given and given != str(before.get(limit, "")):
            await visit.call("jobs.config_set", option=f"{queue}-{limit}", value=given)
        elif not given and limit in before:
            await visit.call("jobs.config_unset", option=f"{queue}-{limit}")
    return visit.leave(visit.link("queues", queue), f"The limits of {queue} are set.")


@action("queues/{queue}/put")
async def put(visit: Visit) -> HttpResponse:
    """Puts a job that was written by hand."""
    form, queue = visit.form, visit.names["queue"]
    id = await visit.call(
        "jobs.put",
        queue=queue,
        klass=form.get("klass") or None,
        data=visit.form_json("data"),
        delay=visit.form_number("delay"),
        priority=visit.form_number("priority"),
        tags=form.get("tags", "").split() or None,
    )
    return visit.leave(visit.link("jobs", id), f"Put a job into {queue}.")
