"""Results: what a job returned, for how long, and waiting for it."""

import threading
import time

import pytest

from holdfast.compat.qless import channel
from holdfast.errors import UnknownJob
from holdfast.jobs.ledger import event_marker
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless
from tests.plain_keys import keys_below

pytestmark = pytest.mark.every_engine


def run(store: Store, result: object) -> None:
    store.jobs.put("queue", id="jid")
    store.jobs.pop("queue", "worker")
    store.jobs.complete("jid", "worker", result=result)


def test_a_result_is_kept_with_the_job(store: Store) -> None:
    run(store, {"sum": 3})

    assert store.jobs.result("jid") == {"sum": 3}
    assert store.jobs.result("nobody") is None
    store.jobs.put("queue", id="jid")
    assert store.jobs.result("jid") is None


def test_a_result_goes_with_its_job(store: Store) -> None:
    store.jobs.config_set("jobs-history", -1)
    run(store, 1)

    assert store.jobs.result("jid") is None


def test_a_result_may_have_an_end_of_its_own(store: Store, clock: Clock) -> None:
    store.jobs.config_set("result-ttl", 10)
    run(store, "text")

    clock.advance(seconds=9.999)
    assert store.jobs.result("jid") == "text"
    clock.advance(seconds=0.001)
    assert store.jobs.result("jid") is None
    keys = keys_below(store, store)
    store.sweep()
    assert keys_below(store, store) < keys - 1
    assert store.jobs["jid"].get().state == "complete"


def test_a_newer_result_outlives_the_end_of_an_older_one(store: Store, clock: Clock) -> None:
    store.jobs.config_set("result-ttl", 10)
    run(store, 1)
    clock.advance(seconds=5)
    run(store, 2)

    clock.advance(seconds=5)
    store.sweep()

    assert store.jobs.result("jid") == 2


def test_results_as_a_command(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0)
    qless("pop", 0, "queue", "worker", 1)
    qless("heartbeat", 0, "jid", "worker", "{}", "progress", "0.5", "text", "half")
    qless("complete", 0, "jid", "worker", "queue", "{}", "result", "[1, 2]")

    assert qless("result", 0, "jid") == [1, 2]
    assert qless("result", 0, "nobody") is None


@pytest.mark.parametrize("jid", ["jid", 'a "b" \\ \n'])
def test_somebody_may_wait_for_a_result(store: Store, jid: str) -> None:
    begin = time.monotonic()
    store.jobs.put("queue", id=jid)
    store.jobs.pop("queue", "worker")
    assert store.jobs.result_wait(jid, timeout=0).state == "running"

    def finish() -> None:
        store.jobs.put("queue", id="other")
        store.jobs.complete(jid, "worker", result=7)

    thread = threading.Timer(0.01, finish)
    thread.start()
    job = store.jobs.result_wait(jid, timeout=30)
    thread.join()

    assert time.monotonic() - begin < 15
    assert (job.state, store.jobs.result(jid)) == ("complete", 7)
    with pytest.raises(UnknownJob):
        store.jobs.result_wait("nobody", timeout=1)


def test_who_waits_for_a_result_hears_that_the_retries_are_used_up(store: Store) -> None:
    id = 'a "quoted"\\name\n'
    store.jobs.put("queue", id=id, retries=0)
    store.jobs.pop("queue", "worker")

    with store.subscribe("jobs.log") as log:
        assert store.jobs.retry(id, "worker") == -1

        [notice] = log.poll()
    assert event_marker(id) in notice.payload
    assert channel(notice.topic) is None  # Qless says nothing of it on `ql:log`
