"""Locks of popped jobs: grace periods, retries, and fencing numbers."""

import pytest

from holdfast.errors import JobLost
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless
from tests.jobs.popping import jids, put


def test_a_popped_job_is_locked_for_the_heartbeat(qless: Qless) -> None:
    put(qless, "jid")

    [job] = qless("pop", 1.5, "queue", "worker", 1)

    assert (job["state"], job["worker"], job["expires"]) == ("running", "worker", 61.5)
    assert job["history"][-1] == {"what": "popped", "when": 1, "worker": "worker"}
    assert qless("pop", 2, "queue", "worker", 1) == {}


def test_a_lost_lock_gets_a_notice_then_a_grace_period_then_the_job_is_handed_over(
    qless: Qless,
) -> None:
    put(qless, "jid")
    qless("pop", 0, "queue", "one", 1)

    assert qless("pop", 60, "queue", "two", 1) == {}
    noticed = qless("get", 60, "jid")
    assert (noticed["state"], noticed["worker"], noticed["remaining"]) == ("running", "one", 5)
    assert noticed["expires"] == 60  # as it was promised: the grace period is a courtesy
    assert noticed["history"][-1] == {"what": "timed-out", "when": 60}
    assert qless("jobs", 69, "running", "queue") == ["jid"]
    assert qless("workers", 60, "one") == {"jobs": {}, "stalled": {}}
    assert qless("stats", 60, "queue", 60)["retries"] == 1

    assert qless("pop", 69, "queue", "two", 1) == {}
    [job] = qless("pop", 70, "queue", "two", 1)
    assert (job["worker"], job["remaining"]) == ("two", 4)


def test_the_worker_may_finish_during_its_grace_period(qless: Qless) -> None:
    put(qless, "jid")
    qless("pop", 0, "queue", "one", 1)
    qless("pop", 60, "queue", "two", 1)

    assert qless("complete", 65, "jid", "one", "queue", "{}") == "complete"


def test_a_lock_that_is_renewed_for_less_than_its_grace_period_ends_when_it_says(
    qless: Qless,
) -> None:
    put(qless, "jid")
    qless("config.set", 0, "grace-period", 100)
    qless("pop", 0, "queue", "one", 1)
    assert qless("pop", 60, "queue", "two", 1) == {}
    assert qless("heartbeat", 61, "jid", "one") == 121

    assert qless("pop", 121, "queue", "two", 1) == {}
    assert [entry["when"] for entry in qless("get", 121, "jid")["history"][2:]] == [60, 121]


def test_every_new_lock_earns_a_new_notice(qless: Qless) -> None:
    put(qless, "jid")
    qless("pop", 0, "queue", "one", 1)
    qless("pop", 60, "queue", "two", 1)
    qless("heartbeat", 65, "jid", "one")

    assert qless("pop", 125, "queue", "two", 1) == {}
    assert qless("stats", 125, "queue", 125)["retries"] == 2
    assert jids(qless("pop", 135, "queue", "two", 1)) == ["jid"]
    assert qless("pop", 195, "queue", "three", 1) == {}
    assert jids(qless("pop", 205, "queue", "three", 1)) == ["jid"]


@pytest.mark.parametrize("grace", [0, -5])
def test_without_a_grace_period_the_same_pop_hands_the_job_over(qless: Qless, grace: int) -> None:
    qless("config.set", 0, "grace-period", grace)
    put(qless, "jid")
    put(qless, "fresh", 0, "priority", 9)
    qless("pop", 0, "queue", "one", 1)
    qless("pop", 0, "queue", "one", 1)

    found = qless("pop", 60, "queue", "two", 5)

    assert jids(found) == ["fresh", "jid"]
    assert [job["remaining"] for job in found] == [4, 4]


def test_a_grace_period_that_is_taken_back_gives_its_notice_with_the_job(qless: Qless) -> None:
    put(qless, "jid")
    qless("pop", 0, "queue", "one", 1)
    qless("pop", 60, "queue", "two", 1)
    qless("config.set", 61, "grace-period", 0)

    [job] = qless("pop", 80, "queue", "two", 1)

    assert [entry["what"] for entry in job["history"]] == [
        *("put", "popped", "timed-out", "timed-out", "popped")
    ]
    assert qless("stats", 80, "queue", 0)["retries"] == 2


def test_jobs_whose_lock_has_ended_come_before_the_work_list(qless: Qless) -> None:
    qless("config.set", 0, "grace-period", 0)
    put(qless, "lost")
    qless("pop", 0, "queue", "one", 1)
    put(qless, "fresh", 1, "priority", 100)

    assert jids(qless("pop", 60, "queue", "two", 2)) == ["lost", "fresh"]


def test_a_job_that_was_lost_too_often_fails(qless: Qless) -> None:
    qless("config.set", 0, "grace-period", 0)
    put(qless, "jid", 0, "retries", 1)
    qless("pop", 0, "queue", "one", 1)
    assert jids(qless("pop", 60, "queue", "two", 1)) == ["jid"]

    assert qless("pop", 120.5, "queue", "three", 1) == {}

    job = qless("get", 121, "jid")
    assert (job["state"], job["remaining"], job["worker"]) == ("failed", -1, "")
    assert job["failure"] == {
        "group": "failed-retries-queue",
        "message": 'Job exhausted retries in queue "queue"',
        "when": 120.5,
        "worker": "",
    }
    assert job["history"][-1] == {"what": "failed", "when": 120, "group": "failed-retries-queue"}
    assert qless("failed", 121) == {"failed-retries-queue": 1}
    stats = qless("stats", 121, "queue", 121)
    assert (stats["failed"], stats["failures"], stats["retries"]) == (1, 1, 2)


def test_pop_looks_at_no_more_ended_locks_than_it_was_asked_for(qless: Qless) -> None:
    for n in range(4):
        put(qless, f"j{n}")
    qless("pop", 0, "queue", "one", 4)

    qless("pop", 60, "queue", "two", 2)

    assert qless("stats", 60, "queue", 60)["retries"] == 2
    assert qless("jobs", 61, "stalled", "queue") == ["j2", "j3"]
    assert qless("jobs", 61, "running", "queue") == ["j0", "j1"]


def test_locks_may_be_born_expired(qless: Qless) -> None:
    qless("config.set", 0, "heartbeat", -10)
    put(qless, "jid")

    [job] = qless("pop", 0, "queue", "one", 1)

    assert job["expires"] == -10
    assert qless("queues", 0, "queue")["stalled"] == 1
    assert qless("pop", 0, "queue", "two", 1) == {}
    assert jids(qless("pop", 10, "queue", "two", 1)) == ["jid"]


def test_a_queue_may_have_its_own_heartbeat(qless: Qless) -> None:
    qless("config.set", 0, "queue-heartbeat", 5)
    put(qless, "jid")

    [job] = qless("pop", 0, "queue", "one", 1)

    assert job["expires"] == 5


def test_a_job_whose_worker_died_is_handed_to_the_next_worker(store: Store, clock: Clock) -> None:
    store.jobs.put("emails", id="welcome", data={"to": "ann"})
    store.jobs.pop("emails", "one", lock_seconds=60)

    clock.advance(seconds=61)
    assert store.jobs.pop("emails", "two") == []
    clock.advance(seconds=10)
    [job] = store.jobs.pop("emails", "two")

    assert (job.id, job.worker) == ("welcome", "two")


def test_every_lock_has_a_greater_number_than_the_one_before(store: Store, clock: Clock) -> None:
    numbers = []
    for _ in range(3):
        store.jobs.put("queue", id="jid")
        [job] = store.jobs.pop("queue", "worker")
        numbers.append(job.lock)
    store.jobs.cancel("jid")
    clock.advance(seconds=0.001)
    store.jobs.put("queue", id="jid")
    [job] = store.jobs.pop("queue", "worker")
    numbers.append(job.lock)

    assert numbers == sorted(set(numbers))


def test_a_lock_that_was_given_away_is_refused_even_under_the_same_name(store: Store) -> None:
    store.jobs.put("queue", id="jid")
    [old] = store.jobs.pop("queue", "worker")
    store.jobs.timeout("jid")
    [new] = store.jobs.pop("queue", "worker")

    with pytest.raises(JobLost):
        store.jobs.heartbeat("jid", "worker", lock=old.lock)
    with pytest.raises(JobLost):
        store.jobs.complete("jid", "worker", lock=old.lock)
    with pytest.raises(JobLost):
        store.jobs.fail("jid", "worker", "group", "message", lock=old.lock)
    with pytest.raises(JobLost):
        store.jobs.retry("jid", "worker", lock=old.lock)
    store.jobs.heartbeat("jid", "worker", lock=new.lock)
    assert store.jobs.complete("jid", "worker", lock=new.lock) == "complete"
