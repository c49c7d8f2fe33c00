"""Worker programs and workers: what they run, and the jobs of lost workers."""

from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.limits import JOBS_PER_PAGE
from holdfast.server.http_exchange import HttpResponse


@page("workers", menu="workers")
async def workers(request: PageRequest) -> HttpResponse:
    """Shows lost workers first, then the programs that are alive."""
    programs = await request.call("jobs.worker_programs")
    found = await request.call("jobs.workers")
    known = sorted(found, key=lambda each: (not each.stalled, -each.jobs))
    return await request.render(
        "workers.html",
        title="Workers",
        rows=(
            ("worker", "jobs", "stalled", "seen"),
            [(each.name, each.jobs, each.stalled, each.seen) for each in known],
        ),
        programs=programs,
        workers=known[: JOBS_PER_PAGE * 8],
        number=len(known),
        lost=[each for each in known if each.stalled],
    )


@page("workers/{worker}", menu="workers")
async def worker(request: PageRequest) -> HttpResponse:
    """Shows the jobs that a worker holds."""
    name = request.names["worker"]
    held = await request.call("jobs.worker", worker=name)
    ids = [*held.stalled, *held.jobs][: JOBS_PER_PAGE * 4]
    jobs = await request.call("jobs.multiget", ids=ids) if ids else []
    return await request.render("worker.html", title=name, worker=name, held=held, jobs=jobs)


@action("workers/{worker}/hand-back")
async def hand_back(request: PageRequest) -> HttpResponse:
    """Ends the locks of a lost worker's jobs, so that others get them."""
    name = request.names["worker"]
    held = await request.call("jobs.worker", worker=name)
    ids = list(held.stalled)[:1000]
    if ids:
        await request.call("jobs.timeout", ids=ids)
    return request.redirect(request.link("workers"), f"Handed back {len(ids)} jobs of {name}.")


@action("workers/{worker}/forget")
async def forget(request: PageRequest) -> HttpResponse:
    """Removes a worker from the list."""
    await request.call("jobs.worker_deregister", workers=[request.names["worker"]])
    return request.redirect(
        request.link("workers"), f"Forgot the worker {request.names['worker']}."
    )
