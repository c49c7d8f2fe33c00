"""Search for jobs: by id, tag, class, or text in their data."""

from holdfast.dashboard import job_filters
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import page
from holdfast.limits import JOBS_PER_PAGE
from holdfast.server.http_exchange import HttpResponse


@page("search", menu="search")
async def search(request: PageRequest) -> HttpResponse:
    """Shows the job with an id, and matching jobs: a single word is searched for everywhere."""
    word = request.parameter("q").strip()
    wanted = job_filters.search_of(
        request.http.parameters,
        queue=request.parameter("queue"),
        state=request.parameter("state"),
    )
    by_id, tagged, found = None, None, None
    if word and not request.parameter("cursor"):
        by_id = await request.call("jobs.get", id=word)
        tagged = await request.call("jobs.search", search={"tag": word}, count=10)
    if word:
        wanted["text"] = word
    if wanted:
        found = await request.call(
            "jobs.search",
            search=wanted,
            cursor=request.parameter("cursor") or None,
            count=JOBS_PER_PAGE,
        )
    return await request.render(
        "search.html", title="Search", word=word, by_id=by_id, tagged=tagged, found=found
    )
