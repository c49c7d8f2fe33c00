"""Retention: complete jobs go by age and by number, a great many of them in steps."""

from holdfast.jobs import NewJob
from holdfast.limits import JOBS_PER_STEP
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless


def complete(qless: Qless, jid: str, now: float) -> None:
    qless("put", now, "worker", "queue", jid, "klass", "{}", 0)
    qless("pop", now, "queue", "worker", 1)
    qless("complete", now, jid, "worker", "queue", "{}")


def test_complete_jobs_are_listed_newest_first(qless: Qless) -> None:
    for now in range(5):
        complete(qless, f"j{now}", now)

    assert qless("jobs", 5, "complete") == ["j4", "j3", "j2", "j1", "j0"]
    assert qless("jobs", 5, "complete", 1, 2) == ["j3", "j2"]
    assert len(qless("jobs", 5, "complete", 0, -1)) == 5


def test_jobs_go_when_they_are_too_old(qless: Qless) -> None:
    qless("config.set", 0, "jobs-history", 10)
    for now in (0, 5, 10):
        complete(qless, f"j{now}", now)

    assert qless("jobs", 10, "complete") == ["j10", "j5"]
    assert qless("get", 10, "j0") is None


def test_by_default_jobs_are_kept_for_seven_days(qless: Qless) -> None:
    complete(qless, "old", 0)
    complete(qless, "new", 604_799)
    assert qless("jobs", 0, "complete") == ["new", "old"]

    complete(qless, "newest", 604_800)

    assert qless("jobs", 0, "complete") == ["newest", "new"]


def test_a_negative_age_keeps_no_complete_job_at_all(qless: Qless) -> None:
    qless("config.set", 0, "jobs-history", -1)
    complete(qless, "jid", 5)

    assert qless("get", 5, "jid") is None
    assert qless("jobs", 5, "complete") == []


def test_the_oldest_go_when_there_are_too_many(qless: Qless) -> None:
    qless("config.set", 0, "jobs-history-count", 3)
    for now in range(6):
        complete(qless, f"j{now}", now)

    assert qless("jobs", 6, "complete") == ["j5", "j4", "j3"]
    assert qless("get", 6, "j2") is None


def test_a_job_of_a_clock_that_runs_behind_goes_in_its_turn(qless: Qless) -> None:
    qless("config.set", 0, "jobs-history", 10)
    for now in (20, 5, 21):  # at 21, what was complete by 11 goes
        complete(qless, f"j{now}", now)

    assert qless("jobs", 21, "complete") == ["j21", "j20"]


def test_jobs_that_came_back_to_life_are_not_counted(qless: Qless) -> None:
    qless("config.set", 0, "jobs-history-count", 2)
    for now in (1, 2):
        complete(qless, f"j{now}", now)
    qless("put", 3, "worker", "other", "j1", "klass", "{}", 0)

    complete(qless, "j3", 3)

    assert qless("jobs", 3, "complete") == ["j3", "j2"]
    complete(qless, "j4", 4)
    assert qless("jobs", 4, "complete") == ["j4", "j3"]


def test_a_shorter_age_is_applied_by_the_next_completion(qless: Qless) -> None:
    for now in (1, 2, 3):
        complete(qless, f"j{now}", now)
    qless("config.set", 4, "jobs-history", 2)

    complete(qless, "j4", 4)

    assert qless("jobs", 4, "complete") == ["j4", "j3"]


def test_canceling_leaves_complete_jobs_alone(qless: Qless) -> None:
    complete(qless, "jid", 0)

    assert qless("cancel", 1, "jid", "nobody") == ["jid", "nobody"]
    assert qless("get", 1, "jid")["state"] == "complete"


def test_a_great_many_old_jobs_go_in_steps(store: Store, clock: Clock) -> None:
    total = JOBS_PER_STEP * 2 + 10
    store.jobs.put_many([NewJob(queue="queue", id=f"j{n:04}") for n in range(total)])
    for job in store.jobs.pop("queue", "worker", total):
        store.jobs.complete(job.id, "worker")
    store.jobs.config_set("jobs-history", 1)
    clock.advance(seconds=2)

    store.jobs.put("queue", id="last")
    store.jobs.pop("queue", "worker")
    store.jobs.complete("last", "worker")
    left = len(store.jobs.jobs("complete", count=-1))
    assert total - 2 * JOBS_PER_STEP < left <= total + 1 - JOBS_PER_STEP

    for _ in range(5):
        clock.advance(seconds=1)
        store.sweep()
    assert store.jobs.jobs("complete", count=-1) == ["last"]


def test_too_many_jobs_go_in_steps_as_well(store: Store, clock: Clock) -> None:
    total = JOBS_PER_STEP * 2
    store.jobs.put_many([NewJob(queue="queue", id=f"j{n:04}") for n in range(total)])
    jobs = store.jobs.pop("queue", "worker", total)
    for job in jobs[:-1]:
        store.jobs.complete(job.id, "worker")
    store.jobs.config_set("jobs-history-count", 1)

    store.jobs.complete(jobs[-1].id, "worker")
    for _ in range(5):
        clock.advance(seconds=1)
        store.sweep()

    assert store.jobs.jobs("complete", count=-1) == [jobs[-1].id]
