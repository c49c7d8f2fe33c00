"""The pages about jobs: what they show, and that each action has its effect in the store."""

import json
from html import escape
from urllib.parse import quote

import pytest

from holdfast.client.client import Client, ClientSpace
from holdfast.jobs import NewJob, WorkerProgram, WorkerSlot
from tests.dashboard.conftest import PASSWORD
from tests.dashboard.seeding import HOSTILE
from tests.dashboard.visitor import Visitor
from tests.server.serving import Server

PAGES = [
    "", "queues", "queues/receipts", "queues/receipts?state=failed", "queues/reports?state=depends",
    "queues/receipts?state=recurring", "queues/search-index?state=running&klass=Index",
    "queues/receipts?tag=vip&text=order&since=2020-01-01T00:00", "jobs/receipt-1", "jobs/merge",
    "jobs/order-1042", "failures", "failures/SMTPServerDisconnected", "workers",
    "workers/indexer-2", "schedules", "schedules/nightly", "throttles", "throttles?name=smtp",
    "tracked", "search", "search?q=vip", "search?klass=Index", "bulk",
]  # fmt: skip


@pytest.fixture
def shop(client: Client) -> ClientSpace:
    """The space `shop`, which has jobs of all states."""
    return client.space("shop")


@pytest.mark.parametrize("page", PAGES)
def test_each_page_is_shown_and_is_also_json(
    shop: ClientSpace, visitor: Visitor, page: str
) -> None:
    shown = visitor.get(f"/ui/shop/{page}")
    told = visitor.read(f"/ui/shop/{page}{'&' if '?' in page else '?'}format=json").json

    assert "</html>" in shown
    for call in told["calls"]:
        assert call["operation"].replace(".", "/") in shown  # as it is copied for curl


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("", "17 jobs have failed"),
        ("", "is paused"),
        ("queues", "max-concurrency 20"),
        ("queues/receipts?state=failed", "SMTPServerDisconnected"),
        ("jobs/receipt-1", "raise SMTPServerDisconnected(&#34;Connection unexpectedly closed"),
        ("jobs/merge", "collect-may"),
        ("jobs/order-1042", "courier"),
        ("failures", "Connection unexpectedly closed"),
        ("schedules", "at 02:30 on Monday to Friday, Europe/Berlin"),
        ("schedules", "every 15 min"),
        ("schedules/clean-up", "(due <time"),  # its first run was due at once
        ("queues/imports", "This queue has no jobs in the state waiting."),
        ("queues/imports?klass=Other", "No jobs match."),
        ("queues/imports", "0 jobs · mean \u2013"),  # not 0 ms
        ("throttles", "0 of 2 used"),
        ("throttles?name=smtp", "Held by"),
        ("tracked", '<em class="bad">17</em>'),  # the menu counts failures on every page
        ("tracked", "receipt-59"),
        ("search?q=vip", "Jobs with this tag"),
        ("search?q=receipt-3", "The job with this id"),
    ],
)
def test_a_page_shows_what_was_put(
    shop: ClientSpace, visitor: Visitor, page: str, said: str
) -> None:
    assert said in visitor.get(f"/ui/shop/{page}")


def test_a_list_is_paged_by_cursor(shop: ClientSpace, visitor: Visitor) -> None:
    calls = visitor.read("/ui/shop/queues/receipts?format=json").json["calls"]
    [first] = [call["result"] for call in calls if call["operation"] == "jobs.search"]
    following = f"/ui/shop/queues/receipts?format=json&cursor={quote(first['cursor'])}"
    calls = visitor.read(following).json["calls"]
    [second] = [call["result"] for call in calls if call["operation"] == "jobs.search"]

    assert len(first["jobs"]) == 25
    assert {job["id"] for job in first["jobs"]}.isdisjoint(job["id"] for job in second["jobs"])


def test_a_list_is_also_csv_without_formulas(visitor: Visitor, server: Server) -> None:
    server.call("jobs.put", space="sheet", queue="q", id="=cmd()", klass="A")

    written = visitor.read("/ui/sheet/queues/q?format=csv")

    assert written.headers["content-type"].startswith("text/csv")
    assert b"'=cmd(),A,waiting,q" in written.body


# --- actions -------------------------------------------------------------------------------------


@pytest.fixture
def fresh(client: Client, request: pytest.FixtureRequest) -> ClientSpace:
    """A space of its own, with one job."""
    space = client.space(request.node.name[-60:])
    space.jobs.put("q", "Task", {"n": 1}, id="one", tags=["a"])
    return space


def act(visitor: Visitor, space: ClientSpace, path: str, /, **fields: object) -> str:
    """Reads a page, as a form needs its token, and sends a form."""
    visitor.get(f"/ui/{space.name}/queues")
    return visitor.do(f"/ui/{space.name}/{path}", **fields)


def test_a_queue_whose_rate_is_used_up_is_limited_until_it_has_something_left(
    fresh: ClientSpace, visitor: Visitor
) -> None:
    fresh.jobs.config_set("q-rate", "1/3600")
    fresh.jobs.put("q", id="two")
    popped = fresh.jobs.pop("q", "worker", 2)

    assert len(popped) == 1
    assert "limited, next in" in visitor.get(f"/ui/{fresh.name}/queues")
    assert "limited by its rate: the next job may start in" in visitor.get(
        f"/ui/{fresh.name}/queues/q"
    )


def test_a_queue_shows_runs_that_were_retried_after_an_error(
    fresh: ClientSpace, visitor: Visitor
) -> None:
    fresh.jobs.put("emails", "Send", id="mail")
    fresh.jobs.pop("emails", "worker-1")
    fresh.jobs.retry("mail", "worker-1", group="ValueError", message="no address")

    shown = visitor.get(f"/ui/{fresh.name}/queues/emails")

    assert "0 failures and 1 retries on that day; 0 of the retries because a lock ended." in shown


def test_a_queue_is_paused_and_goes_on(fresh: ClientSpace, visitor: Visitor) -> None:
    shown = act(visitor, fresh, "queues/q/pause")
    paused = fresh.jobs.counts("q").paused
    act(visitor, fresh, "queues/q/resume")

    assert "Paused q." in shown
    assert (paused, fresh.jobs.counts("q").paused) == (True, False)


def test_limits_of_a_queue_are_set_and_taken_back(fresh: ClientSpace, visitor: Visitor) -> None:
    act(visitor, fresh, "queues/q/limits", **{"max-concurrency": "3", "rate": "5/60"})
    first = fresh.jobs.config()
    act(visitor, fresh, "queues/q/limits", rate="5/60")

    assert (first["q-max-concurrency"], first["q-rate"]) == ("3", "5/60")
    assert "q-max-concurrency" not in fresh.jobs.config()


def test_a_job_is_put_by_hand(fresh: ClientSpace, visitor: Visitor) -> None:
    act(visitor, fresh, "queues/q/put", klass="Hand", data='{"x": [1]}', priority="7", tags="b c")

    [job] = fresh.jobs.pop("q", "w")
    assert (job.klass, job.data, job.priority, job.tags) == ("Hand", {"x": [1]}, 7, ("b", "c"))


def test_a_failed_job_is_retried(fresh: ClientSpace, visitor: Visitor) -> None:
    fresh.jobs.pop("q", "w")
    fresh.jobs.fail("one", "w", "Error", "it broke")

    act(visitor, fresh, "jobs/one/retry")

    found = fresh.jobs.get("one")
    assert found is not None
    assert found.state == "waiting"


def test_a_job_is_moved_edited_tagged_and_tracked(fresh: ClientSpace, visitor: Visitor) -> None:
    act(visitor, fresh, "jobs/one/put", queue="other", data='"new"', priority="2")
    act(visitor, fresh, "jobs/one/priority", priority="9")
    act(visitor, fresh, "jobs/one/tags", remove="a", add="b")
    act(visitor, fresh, "jobs/one/track")

    found = fresh.jobs.get("one")
    assert found is not None
    assert (found.queue, found.data, found.priority) == ("other", "new", 9)
    assert (found.tags, found.tracked) == (("b",), True)


def test_a_lock_is_released(fresh: ClientSpace, visitor: Visitor) -> None:
    fresh.jobs.pop("q", "lost")

    act(visitor, fresh, "jobs/one/release")

    assert fresh.jobs.pop("q", "other")[0].worker == "other"


def test_a_job_is_canceled(fresh: ClientSpace, visitor: Visitor) -> None:
    shown = act(visitor, fresh, "jobs/one/cancel")

    assert "Canceled the job one." in shown
    assert fresh.jobs.get("one") is None


def test_selected_jobs_are_changed_at_once(fresh: ClientSpace, visitor: Visitor) -> None:
    for name in ("two", "three"):
        fresh.jobs.put("q", "Task", id=name)

    act(visitor, fresh, "queues/q/jobs", action="tag", value="x", which="selected",
        id=["one", "two"], state="waiting")  # fmt: skip

    found = {job.id: job.tags for job in fresh.jobs.multiget("one", "two", "three")}
    assert found == {"one": ("a", "x"), "two": ("x",), "three": ()}


def test_all_that_match_are_changed_on_the_server_with_progress(
    fresh: ClientSpace, visitor: Visitor
) -> None:
    fresh.jobs.put_many([NewJob(queue="q", klass="Other") for _ in range(40)])

    shown = act(visitor, fresh, "queues/q/jobs", action="move", value="far", which="all",
                klass="Other", state="waiting")  # fmt: skip
    [action] = fresh.jobs.bulks()
    while fresh.jobs.bulk_step(action.id).state == "running":
        pass

    assert "<progress" in shown
    assert fresh.jobs.counts("far").waiting == 40
    assert fresh.jobs.counts("q").waiting == 1


def test_a_bulk_action_is_stopped(fresh: ClientSpace, visitor: Visitor) -> None:
    act(visitor, fresh, "queues/q/jobs", action="priority", value="3", which="all", state="waiting")
    [action] = fresh.jobs.bulks()

    act(visitor, fresh, f"bulk/{action.id}/stop")

    found = fresh.jobs.bulk(action.id)
    assert found is not None
    assert found.state in ("stopped", "done")


def test_a_schedule_is_paused_run_edited_and_ended(fresh: ClientSpace, visitor: Visitor) -> None:
    fresh.jobs.recur("q", "Tick", {"a": 1}, interval=3600, offset=3600, id="tick")

    act(visitor, fresh, "schedules/tick/pause")
    paused = fresh.jobs.recur_get("tick")
    shown = visitor.get(f"/ui/{fresh.name}/schedules")
    act(visitor, fresh, "schedules/tick/resume")
    act(visitor, fresh, "schedules/tick/run")
    act(visitor, fresh, "schedules/tick/edit", interval="60", data='{"a": 2}', klass="Tock")
    edited = fresh.jobs.recur_get("tick")
    act(visitor, fresh, "schedules/tick/end")

    assert paused is not None
    assert paused.paused
    assert ">paused</span>" in shown
    assert edited is not None
    assert not edited.paused
    assert (edited.interval, edited.data, edited.klass) == (60, {"a": 2}, "Tock")
    assert [job.klass for job in fresh.jobs.search().jobs].count("Tick") == 1
    assert fresh.jobs.recur_get("tick") is None


def test_a_throttle_is_set_and_lifted(fresh: ClientSpace, visitor: Visitor) -> None:
    act(visitor, fresh, "throttles/set", name="t", maximum="4")
    maximum = fresh.jobs.throttle_get("t").maximum
    act(visitor, fresh, "throttles/delete", name="t")

    assert (maximum, fresh.jobs.throttle_get("t").maximum) == (4, 0)


def test_a_worker_program_is_shown_with_what_it_runs(fresh: ClientSpace, visitor: Visitor) -> None:
    slot = WorkerSlot(name="0", job="one", task="Task", since=1.0)
    fresh.jobs.announce_worker(WorkerProgram(name="p", host="web-2", queues=("q",), slots=(slot,)))

    shown = visitor.get(f"/ui/{fresh.name}/workers")

    assert "web-2" in shown
    assert "1 of 1 slots" in shown


@pytest.mark.parametrize("count", [1, 2])
def test_the_overview_tells_how_many_jobs_have_lost_their_worker(
    fresh: ClientSpace, visitor: Visitor, count: int
) -> None:
    fresh.jobs.put_many([NewJob(queue="q")] * count)
    fresh.jobs.pop("q", "lost", count, lock_seconds=0.001)

    shown = visitor.get_until(f"/ui/{quote(fresh.name)}/", lambda page: "lost" in page)

    said = {1: "1 job has lost its worker", 2: "2 jobs have lost their worker"}
    assert said[count] in shown


def test_the_jobs_of_a_lost_worker_are_handed_back(fresh: ClientSpace, visitor: Visitor) -> None:
    fresh.jobs.config_set("grace-period", 0)
    fresh.jobs.pop("q", "lost", lock_seconds=0.001)

    shown = act(visitor, fresh, "workers/lost/hand-back")

    assert "jobs of lost." in shown
    assert fresh.jobs.pop("q", "other")[0].id == "one"


# --- roles ---------------------------------------------------------------------------------------


def test_a_reader_sees_no_buttons_and_can_do_nothing_by_hand(guarded: Server) -> None:
    clerk, guest = Visitor(guarded), Visitor(guarded)
    clerk.log_in("clerk", PASSWORD)
    guest.log_in("guest", PASSWORD)
    clerk.get("/ui/default/queues")
    clerk.do("/ui/default/queues/q/put", klass="A", data="1")

    for page in ("queues", "queues/q", "failures", "workers", "schedules", "throttles"):
        shown = guest.get(f"/ui/default/{page}")
        posts = [form for form in shown.split("<form")[1:] if 'method="post"' in form]
        assert len(posts) == 2, page  # light or dark, and logging out
    for path in ("queues/q/pause", "queues/q/put", "queues/q/drain", "throttles/set"):
        assert guest.post(f"/ui/default/{path}", name="x", maximum="1").status == 403
    assert guest.read("/ui/elsewhere/queues").status == 403


# --- hostile data --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [
        "", "queues", f"queues/{quote(HOSTILE, safe='')}", f"jobs/{quote(HOSTILE, safe='')}",
        f"queues/{quote(HOSTILE, safe='')}?state=failed", "jobs/long", "jobs/fails", "failures",
        f"failures/{quote(HOSTILE, safe='')}", "workers", f"workers/{quote(HOSTILE, safe='')}",
        "schedules", f"search?q={quote(HOSTILE)}", f"throttles?name={quote(HOSTILE)}",
    ],
)  # fmt: skip
def test_hostile_names_and_data_stay_text(client: Client, visitor: Visitor, page: str) -> None:
    shown = visitor.get(f"/ui/hostile/{page}")

    assert "<script>alert" not in shown
    assert "<img src=x" not in shown
    assert len(shown) < 400_000
    if page not in ("jobs/long",):
        assert escape(HOSTILE[:25]) in shown.replace("&#34;", "&quot;")


def test_bytes_that_are_not_utf_8_are_shown_as_something(visitor: Visitor) -> None:
    assert visitor.read("/ui/hostile/jobs/%ff%fe").status in (400, 404)
    assert visitor.read("/ui/hostile/queues/%ff").status in (200, 400)


def test_the_calls_of_a_page_can_be_copied_and_run(shop: ClientSpace, visitor: Visitor) -> None:
    calls = visitor.read("/ui/shop/queues?format=json").json["calls"]

    for call in calls:
        path = f"/shop/{call['operation'].replace('.', '/')}"
        again = visitor.server.request("POST", path, json.dumps(call["arguments"]))
        assert again.status == 200
