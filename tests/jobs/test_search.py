"""Search: which jobs are found, in pages that say how far they are."""

import base64
import random
from typing import Any

import msgspec
import pytest

from holdfast.errors import BadArgument
from holdfast.jobs import Job, JobSearch, NewJob
from holdfast.limits import JOBS_SEARCHED_PER_PAGE
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine


def found(store: Store, search: JobSearch, count: int = 25) -> set[str]:
    """The ids of all pages."""
    ids: list[str] = []
    cursor = None
    while True:
        page = store.jobs.search(search, cursor=cursor, count=count)
        ids += [job.id for job in page.jobs]
        assert page.searched <= page.of
        cursor = page.cursor
        if cursor is None:
            break
    assert len(ids) == len(set(ids))
    return set(ids)


def fill(store: Store, clock: Clock) -> None:
    """Makes jobs in all states."""
    jobs = store.jobs
    jobs.put("emails", "Send", {"to": "ann"}, id="done", tags=["vip"])
    jobs.pop("emails", "worker")
    jobs.complete("done", "worker")
    jobs.put("emails", "Send", {"to": "bob"}, id="failed")
    jobs.pop("emails", "worker")
    jobs.fail("failed", "worker", "smtp", "no route")
    jobs.put("emails", "Send", {"to": "cy"}, id="running")
    jobs.pop("emails", "worker")
    clock.advance(seconds=5)
    jobs.put("emails", "Send", {"to": "dee"}, id="waiting", tags=["vip"])
    jobs.put("emails", "Print", {"to": "eve"}, id="scheduled", delay=60)
    jobs.put("emails", "Print", {"to": "fay"}, id="depends", depends=["waiting"])
    jobs.put("letters", "Print", {"to": "gus"}, id="other")
    jobs.throttle_set("press", 1)
    jobs.put_many(
        [NewJob(queue="press", id=id, throttles=("press",)) for id in ("first", "throttled")]
    )
    jobs.pop("press", "printer", 2)


def all_jobs(store: Store) -> list[Job]:
    names = (
        *("done", "failed", "running", "waiting", "scheduled", "depends", "other"),
        *("first", "throttled"),
    )
    return [job for job in map(store.jobs.get, names) if job is not None]


@pytest.mark.parametrize("count", [1, 2, 25])
def test_a_search_finds_what_a_look_at_every_job_finds(
    store: Store, clock: Clock, count: int
) -> None:
    fill(store, clock)
    jobs = all_jobs(store)
    chance = random.Random(count)
    values: dict[str, list[Any]] = {
        "queue": ["emails", "letters", "press", "nothing"],
        "state": [*{job.state for job in jobs}, "stalled"],
        "klass": ["Send", "Print"],
        "tag": ["vip", "none"],
        "worker": ["worker", "printer"],
        "text": ["ann", '"to"'],
    }

    for _ in range(60):
        wanted = {name: chance.choice(values[name]) for name in chance.sample([*values], 2)}
        expected = {
            job.id
            for job in jobs
            if job.queue == wanted.get("queue", job.queue)
            and job.state == wanted.get("state", job.state)
            and job.klass == wanted.get("klass", job.klass)
            and job.worker == wanted.get("worker", job.worker)
            and wanted.get("tag", "vip" if job.tags else None) in (*job.tags, None)
            and wanted.get("text", "") in f'{{"to":"{(job.data or {}).get("to")}"}}'
            and ("text" not in wanted or job.data)
        }
        assert found(store, JobSearch(**wanted), count) == expected, wanted


def test_failed_jobs_are_found_by_group_and_time(store: Store, clock: Clock) -> None:
    fill(store, clock)

    assert found(store, JobSearch(group="smtp", state="failed")) == {"failed"}
    assert found(store, JobSearch(group="other", state="failed")) == set()
    assert found(store, JobSearch(state="failed", since=clock() - 1)) == set()
    assert found(store, JobSearch(state="failed", before=clock())) == {"failed"}


def test_everything_is_found_without_a_wish(store: Store, clock: Clock) -> None:
    fill(store, clock)

    assert found(store, JobSearch()) == {job.id for job in all_jobs(store)}


def test_a_page_looks_at_a_bounded_number_of_jobs_and_says_so(store: Store) -> None:
    more = JOBS_SEARCHED_PER_PAGE + 50
    list(store.jobs.put_all([NewJob(queue="emails", id=f"{n:05}") for n in range(more)]))

    first = store.jobs.search(JobSearch(queue="emails", klass="none"))
    second = store.jobs.search(JobSearch(queue="emails", klass="none"), cursor=first.cursor)

    assert (first.searched, first.of, first.jobs) == (JOBS_SEARCHED_PER_PAGE, more, ())
    assert (second.searched, second.of, second.cursor) == (more, more, None)


def cursor_of(*parts: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(parts)).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        *("x", "AAAA", "!", "gA=="),
        *(cursor_of(-9, b"", 0, 0), cursor_of(0, b"", -1, 0), cursor_of(0, b"", 0, 2**63)),
    ],
)
def test_a_cursor_that_no_search_has_returned_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(BadArgument, match="cursor is not one"):
        store.jobs.search(cursor=cursor)
