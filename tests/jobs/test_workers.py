"""Workers: seen when they pop or heartbeat, forgotten after a while."""

import pytest

from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless

pytestmark = pytest.mark.every_engine


def put(qless: Qless, jid: str) -> None:
    qless("put", 0, "worker", "queue", jid, "klass", "{}", 0)


def test_a_worker_is_seen_when_it_pops(qless: Qless) -> None:
    assert qless("workers", 0) == {}

    qless("pop", 0, "queue", "idle", 1)

    assert qless("workers", 0) == [{"name": "idle", "jobs": 0, "stalled": 0}]


def test_workers_seen_last_come_first(qless: Qless) -> None:
    for now, worker in ((1, "a"), (3, "b"), (2, "c")):
        qless("pop", now, "queue", worker, 1)

    assert [worker["name"] for worker in qless("workers", 3)] == ["b", "c", "a"]


def test_jobs_and_stalled_are_told_apart_by_the_end_of_the_lock(qless: Qless) -> None:
    for jid in ("a", "b", "c"):
        put(qless, jid)
    for now in (0, 10, 20):
        qless("pop", now, "queue", "worker", 1)

    assert qless("workers", 70, "worker") == {"jobs": ["c", "b"], "stalled": ["b", "a"]}
    assert qless("workers", 70) == [{"name": "worker", "jobs": 2, "stalled": 2}]
    assert qless("workers", 70, "nobody") == {"jobs": {}, "stalled": {}}


def test_workers_that_were_not_seen_for_a_day_are_forgotten_with_their_jobs(qless: Qless) -> None:
    put(qless, "a")
    qless("pop", 0, "queue", "old", 1)
    qless("pop", 1, "queue", "new", 1)

    assert [worker["name"] for worker in qless("workers", 86_400)] == ["new"]
    assert qless("workers", 86_400, "old") == {"jobs": {}, "stalled": {}}


def test_the_age_of_workers_is_configured(qless: Qless) -> None:
    qless("config.set", 0, "max-worker-age", 10)
    qless("pop", 0, "queue", "worker", 1)

    assert len(qless("workers", 9)) == 1
    assert qless("workers", 10) == {}


def test_a_deregistered_worker_comes_back_when_it_is_seen(qless: Qless) -> None:
    put(qless, "a")
    qless("pop", 0, "queue", "worker", 1)

    assert qless("worker.deregister", 0, "worker", "nobody") is None
    assert qless("workers", 0) == {}
    qless("heartbeat", 1, "a", "worker")
    assert qless("workers", 1) == [{"name": "worker", "jobs": 1, "stalled": 0}]


def test_a_cancelled_or_moved_job_leaves_its_workers_list(qless: Qless) -> None:
    for jid in ("a", "b"):
        put(qless, jid)
    qless("pop", 0, "queue", "worker", 2)

    qless("cancel", 1, "a")
    qless("put", 1, "worker", "other", "b", "klass", "{}", 0)

    assert qless("workers", 1, "worker") == {"jobs": {}, "stalled": {}}


def test_workers_from_python(store: Store, clock: Clock) -> None:
    store.jobs.put("queue", id="jid")
    store.jobs.pop("queue", "worker")

    [worker] = store.jobs.workers()
    assert (worker.name, worker.jobs, worker.seen) == ("worker", 1, clock())
    assert store.jobs.worker("worker").jobs == ("jid",)
    clock.advance(seconds=86_400)
    assert store.jobs.workers() == []
    store.jobs.worker_deregister("worker")


def test_a_worker_is_seen_also_when_it_asks_for_no_job(qless: Qless) -> None:
    assert qless("pop", 1, "queue", "worker", 0) == {}

    assert [worker["name"] for worker in qless("workers", 1)] == ["worker"]
