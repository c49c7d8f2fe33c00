"""All queues of a space, and the actions on one of them."""

from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.recorded_history import Recorded
from holdfast.limits import QUEUES_PER_PAGE
from holdfast.server.http_exchange import HttpResponse

_STATES = ("waiting", "running", "stalled", "scheduled", "depends", "throttled", "recurring")
LIMITS = ("max-concurrency", "rate", "rate-per-key", "heartbeat", "dead-letter")


@page("queues", menu="queues")
async def queues(request: PageRequest) -> HttpResponse:
    """Shows the queues by name, a page at a time."""
    found = await request.call(
        "jobs.figures", after=request.parameter("after"), count=QUEUES_PER_PAGE
    )
    options = await request.call("jobs.config")
    recorded = await Recorded.of(request)
    names = [each.counts.name for each in found]
    rows = [
        [each.counts.name, *(getattr(each.counts, state) for state in _STATES), each.oldest_age]
        for each in found
    ]
    return await request.render(
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
async def pause(request: PageRequest) -> HttpResponse:
    """Pauses a queue, and with `stop_running` takes back its running jobs."""
    queue = request.names["queue"]
    stop = True if request.form.get("stop_running") else None
    await request.call("jobs.pause", queues=[queue], stop_running=stop)
    return request.redirect(request.origin(request.link("queues")), f"Paused {queue}.")


@action("queues/{queue}/resume")
async def resume(request: PageRequest) -> HttpResponse:
    """Ends a pause."""
    queue = request.names["queue"]
    await request.call("jobs.unpause", queues=[queue])
    return request.redirect(request.link("queues", queue), f"Resumed {queue}.")


@action("queues/{queue}/drain")
async def drain(request: PageRequest) -> HttpResponse:
    """Cancels all waiting jobs of a queue, as a bulk action."""
    search = {"queue": request.names["queue"], "state": "waiting"}
    started = await request.call("jobs.bulk_start", action="cancel", search=search)
    return request.redirect(request.link("bulk", started.id))


@action("queues/{queue}/limits")
async def limits(request: PageRequest) -> HttpResponse:
    """Sets the limits of a queue; an empty field removes a limit."""
    queue = request.names["queue"]
    before = limits_of(await request.call("jobs.config"), queue)
    for limit in LIMITS:
        given = request.form.get(limit, "").strip()
        if given and given != str(before.get(limit, "")):
            await request.call("jobs.config_set", option=f"{queue}-{limit}", value=given)
        elif not given and limit in before:
            await request.call("jobs.config_unset", option=f"{queue}-{limit}")
    return request.redirect(request.link("queues", queue), f"The limits of {queue} are set.")


@action("queues/{queue}/put")
async def put(request: PageRequest) -> HttpResponse:
    """Puts a job that was written by hand."""
    form, queue = request.form, request.names["queue"]
    id = await request.call(
        "jobs.put",
        queue=queue,
        klass=form.get("klass") or None,
        data=request.form_json("data"),
        delay=request.form_number("delay"),
        priority=request.form_number("priority"),
        tags=form.get("tags", "").split() or None,
    )
    return request.redirect(request.link("jobs", id), f"Put a job into {queue}.")
