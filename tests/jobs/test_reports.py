"""Reports: what became of several jobs and the next ones, in one commit."""

import pytest

from holdfast.errors import BadArgument, JobLost
from holdfast.jobs import Job, LogLine, NewJob, Report, Take
from holdfast.limits import MAX_JOB_LOG_CHARS, MAX_JOB_LOG_LINES
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless

pytestmark = pytest.mark.every_engine

WORKER = "w"


def popped(store: Store, *ids: str, retries: float = 5) -> list[Job]:
    for id in ids:
        store.jobs.put("q", id=id, retries=retries)
    return [store.jobs.pop("q", WORKER)[0] for _ in ids]


def about(job: Job, what: str, **more: object) -> Report:
    return Report(id=job.id, worker=WORKER, what=what, lock=job.lock, **more)  # type: ignore[arg-type]  # tests give what they like


def test_jobs_are_settled_and_the_next_are_taken_in_one_call(store: Store) -> None:
    done, failed = popped(store, "done", "failed")
    store.jobs.put("q", id="next")

    reported = store.jobs.report(
        [
            about(done, "complete", result={"sum": 3}),
            about(failed, "fail", group="g", message="no"),
        ],
        takes=[Take(worker="w2", queues=("empty", "q"), lock_seconds=5)],
    )

    assert reported.refused == ()
    assert [(job.id, job.worker) for job in reported.jobs] == [("next", "w2")]
    assert store.jobs.result("done") == {"sum": 3}
    assert [job.state for job in store.jobs.multiget("done", "failed")] == ["complete", "failed"]


def test_a_job_that_was_lost_is_refused_alone(store: Store) -> None:
    lost, done, gone = popped(store, "lost", "done", "gone")
    store.jobs.timeout("lost")
    store.jobs.pop("q", "other")
    store.jobs.cancel("gone")

    reported = store.jobs.report([about(job, "complete") for job in (lost, done, gone)])

    assert [(each.id, each.code) for each in reported.refused] == [
        ("lost", "job_lost"),
        ("gone", "unknown_job"),
    ]
    assert [job.state for job in store.jobs.multiget("lost", "done")] == ["running", "complete"]


def test_all_or_none_raises_the_refusal_and_settles_nothing(store: Store) -> None:
    done, lost = popped(store, "done", "lost")
    store.jobs.timeout("lost")
    store.jobs.pop("q", "other")

    with pytest.raises(JobLost):
        store.jobs.report([about(done, "complete"), about(lost, "complete")], all_or_none=True)

    assert [job.state for job in store.jobs.multiget("done", "lost")] == ["running", "running"]


def test_the_number_of_an_older_lock_is_refused(store: Store) -> None:
    [before] = popped(store, "a")
    store.jobs.timeout("a")
    store.jobs.pop("q", WORKER)

    reported = store.jobs.report([about(before, "complete")])

    assert [each.code for each in reported.refused] == ["job_lost"]


def test_a_heartbeat_renews_the_lock_and_carries_progress_and_log(
    store: Store, clock: Clock
) -> None:
    [job] = popped(store, "a")

    clock.advance(seconds=10)
    line = LogLine("half way", "warning", clock())
    store.jobs.report(
        [about(job, "heartbeat", lock_seconds=90, progress=0.5, progress_text="on", log=(line,))]
    )

    found = store.jobs.get("a")
    assert found is not None
    assert (found.expires, found.progress, found.progress_text) == (clock() + 90, 0.5, "on")
    assert store.jobs.read_log("a") == (line,)


def test_a_free_retry_uses_up_none_and_comes_back_after_its_delay(
    store: Store, clock: Clock
) -> None:
    [job] = popped(store, "a", retries=0)

    store.jobs.report([about(job, "retry", delay=30, free=True, message="not yet")])

    assert store.jobs.pop("q", WORKER) == []
    clock.advance(seconds=30)
    [again] = store.jobs.pop("q", WORKER)
    assert (again.id, again.remaining) == ("a", 0)
    assert [entry.more["message"] for entry in again.history if entry.what == "retried"] == [
        "not yet"
    ]


def test_a_retry_that_is_not_free_fails_when_none_is_left(store: Store) -> None:
    [job] = popped(store, "a", retries=0)

    store.jobs.report([about(job, "retry", group="g", message="why")])

    assert store.jobs.failed() == {"g": 1}


def test_a_released_job_comes_first_and_keeps_its_retries(store: Store) -> None:
    [job] = popped(store, "a")
    store.jobs.put("q", id="urgent", priority=9)

    store.jobs.report([about(job, "release")])

    [first] = store.jobs.pop("q", WORKER)
    assert (first.id, first.remaining) == ("a", 5)


def test_jobs_are_put_in_the_commit_that_completes(store: Store) -> None:
    [job] = popped(store, "a")

    store.jobs.report([about(job, "complete", puts=(NewJob(queue="next", id="b", data=[1]),))])

    [following] = store.jobs.pop("next", WORKER)
    assert (following.id, following.data) == ("b", [1])


def test_nothing_is_put_for_a_job_that_was_lost(store: Store) -> None:
    [job] = popped(store, "a")
    store.jobs.cancel("a")

    store.jobs.report([about(job, "complete", puts=(NewJob(queue="next"),))])

    assert store.jobs.length("next") == 0


def test_the_answer_says_when_a_queue_can_have_a_job(store: Store) -> None:
    store.jobs.put("q", delay=40)
    take = [Take(worker=WORKER, queues=("q", "empty"))]

    assert store.jobs.report([], takes=take).wake == 40
    assert store.jobs.report([], takes=[Take(worker=WORKER, queues=("empty",))]).wake is None


def test_each_slot_takes_a_job_under_its_own_name(store: Store) -> None:
    for id in "abc":
        store.jobs.put("q", id=id)

    taken = store.jobs.report(
        [], takes=[Take(worker=f"w{number}", queues=("q",)) for number in range(5)]
    ).jobs

    assert [(job.id, job.worker) for job in taken] == [("a", "w0"), ("b", "w1"), ("c", "w2")]


def test_large_jobs_are_taken_as_many_as_fit_one_answer(store: Store) -> None:
    for _ in range(5):
        store.jobs.put("q", data="x" * 15_000_000)

    takes = [Take(worker=f"w{number}", queues=("q",)) for number in range(5)]
    first = store.jobs.report([], takes=takes)
    second = store.jobs.report([], takes=takes)

    assert 0 < len(first.jobs) < 5
    assert first.wake == 0, "there are more"
    assert len(first.jobs) + len(second.jobs) == 5
    assert second.wake != 0


def test_an_unknown_word_is_refused(store: Store) -> None:
    [job] = popped(store, "a")

    with pytest.raises(BadArgument, match="explode"):
        store.jobs.report([about(job, "explode")])


# --- logs and results ---------------------------------------------------------------------------


def test_a_log_keeps_its_newest_lines(store: Store) -> None:
    [job] = popped(store, "a")

    lines = tuple(LogLine(str(number)) for number in range(MAX_JOB_LOG_LINES + 5))
    store.jobs.report([about(job, "heartbeat", log=lines)])
    store.jobs.report([about(job, "heartbeat", log=(LogLine("last"),))])

    kept = store.jobs.read_log("a")
    assert len(kept) == MAX_JOB_LOG_LINES
    assert (kept[0].text, kept[-1].text) == ("6", "last")


def test_fewer_long_lines_are_kept(store: Store) -> None:
    [job] = popped(store, "a")

    line = LogLine("x" * (MAX_JOB_LOG_CHARS // 2))
    store.jobs.report([about(job, "heartbeat", log=(line, line, LogLine("end")))])

    assert [len(each.text) for each in store.jobs.read_log("a")] == [MAX_JOB_LOG_CHARS // 2, 3]


def test_a_log_goes_with_its_job(store: Store) -> None:
    [job] = popped(store, "a")
    store.jobs.report([about(job, "release", log=(LogLine("hello"),))])

    store.jobs.cancel("a")

    assert store.jobs.read_log("a") == ()


def test_qless_clients_see_no_log(store: Store, qless: Qless) -> None:
    [job] = popped(store, "a")

    store.jobs.report([about(job, "complete", log=(LogLine("hello"),))])

    assert [entry["what"] for entry in qless("get", 0, "a")["history"]] == ["put", "popped", "done"]


def test_a_result_may_have_an_end_that_the_worker_names(store: Store, clock: Clock) -> None:
    [job] = popped(store, "a")
    store.jobs.report([about(job, "complete", result=1, result_ttl=10)])

    clock.advance(seconds=9)
    assert store.jobs.result("a") == 1
    clock.advance(seconds=1)
    assert store.jobs.result("a") is None
