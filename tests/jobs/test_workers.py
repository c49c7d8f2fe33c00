"""Workers: seen when they pop or heartbeat, forgotten after a while."""

from typing import Any

import pytest

from holdfast.compat.qless import call
from holdfast.limits import JOBS_PER_STEP
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless
from tests.jobs.test_costs import CountingTransaction

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


def test_a_great_many_old_workers_are_forgotten_in_steps_and_hidden_at_once(
    qless: Qless, store: Store
) -> None:
    for n in range(JOBS_PER_STEP + 5):
        qless("pop", 0, "queue", f"old{n}", 1)
    qless("pop", 86_400, "queue", "new", 1)

    kept = []
    for _ in range(2):
        assert [worker["name"] for worker in qless("workers", 86_400)] == ["new"]
        kept.append(len(store.jobs.workers(now=1)))

    assert kept == [6, 1]


def test_the_jobs_of_one_worker_do_not_depend_on_how_many_others_there_are(
    qless: Qless, store: Store
) -> None:
    def reads() -> int:
        def work(tx: Any) -> int:
            counting: Any = CountingTransaction(tx)
            call(counting, ["workers", "1", "worker"])
            return int(counting.touched)

        return store._runner.transact(work)

    put(qless, "a")
    qless("pop", 0, "queue", "worker", 1)
    alone = reads()
    for n in range(50):
        qless("pop", 0, "queue", f"other{n}", 1)

    assert reads() == alone


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
