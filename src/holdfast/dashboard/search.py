"""Search for jobs: by id, tag, class, or text in their data."""

from holdfast.dashboard import job_filters
from holdfast.dashboard.pages import page
from holdfast.dashboard.visit import Visit
from holdfast.limits import JOBS_PER_PAGE
from holdfast.server.http_exchange import HttpResponse


@page("search", menu="search")
async def search(visit: Visit) -> HttpResponse:
    """Shows the job with an id, and matching jobs: a single word is searched for everywhere."""
    word = visit.parameter("q").strip()
    wanted = job_filters.search_of(
        visit.request.parameters,
        queue=visit.parameter("queue"),
        state=visit.parameter("state"),
    )
    by_id, tagged, found = None, None, None
    if word and not visit.parameter("cursor"):
        by_id = await visit.call("jobs.get", id=word)
        tagged = await visit.call("jobs.search", search={"tag": word}, count=10)
    if word:
        wanted["text"] = word
    if wanted:
        found = await visit.call(
            "jobs.search",
            search=wanted,
            cursor=visit.parameter("cursor") or None,
            count=JOBS_PER_PAGE,
        )
    return await visit.render(
        "search.html", title="Search", word=word, by_id=by_id, tagged=tagged, found=found
    )
