"""Worker programs and workers: what they run, and the jobs of lost workers."""

from holdfast.dashboard.pages import action, page
from holdfast.dashboard.visit import Visit
from holdfast.limits import JOBS_PER_PAGE
from holdfast.server.http_exchange import HttpResponse


@page("workers", menu="workers")
async def workers(visit: Visit) -> HttpResponse:
    """Shows lost workers first, then the programs that are alive."""
    programs = await visit.call("jobs.worker_programs")
    found = await visit.call("jobs.workers")
    known = sorted(found, key=lambda each: (not each.stalled, -each.jobs))
    return await visit.render(
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
async def worker(visit: Visit) -> HttpResponse:
    """Shows the jobs that a worker holds."""
    name = visit.names["worker"]
    held = await visit.call("jobs.worker", worker=name)
    ids = [*held.stalled, *held.jobs][: JOBS_PER_PAGE * 4]
    jobs = await visit.call("jobs.multiget", ids=ids) if ids else []
    return await visit.render("worker.html", title=name, worker=name, held=held, jobs=jobs)


@action("workers/{worker}/hand-back")
async def hand_back(visit: Visit) -> HttpResponse:
    """Hands back the jobs of a lost worker, for others to take."""
    name = visit.names["worker"]
    held = await visit.call("jobs.worker", worker=name)
    ids = list(held.stalled)[:1000]
    if ids:
        await visit.call("jobs.timeout", ids=ids)
    return visit.leave(visit.link("workers"), f"Handed back {len(ids)} jobs of {name}.")


@action("workers/{worker}/forget")
async def forget(visit: Visit) -> HttpResponse:
    """Removes a worker from the list."""
    await visit.call("jobs.worker_deregister", workers=[visit.names["worker"]])
    return visit.leave(visit.link("workers"), f"Forgot the worker {visit.names['worker']}.")
