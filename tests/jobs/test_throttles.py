"""Throttles: named limits over several queues."""

from collections.abc import Callable

import pytest

from holdfast.errors import BadArgument
from holdfast.jobs import NewJob
from holdfast.limits import JOBS_PER_STEP
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless


def test_no_more_jobs_run_than_a_throttle_allows_over_all_queues(store: Store) -> None:
    store.jobs.throttle_set("api", 2)
    for n in range(2):
        store.jobs.put("one", id=f"a{n}", throttles=["api"])
        store.jobs.put("two", id=f"b{n}", throttles=["api"])
    store.jobs.put("two", id="free")

    assert [job.id for job in store.jobs.pop("one", "worker", 5)] == ["a0", "a1"]
    assert [job.id for job in store.jobs.pop("two", "worker", 5)] == ["free"]

    throttle = store.jobs.throttle_get("api")
    assert (throttle.maximum, throttle.locks, throttle.pending) == (2, 2, 2)
    assert store.jobs.throttle_locks("api").jobs == ("a0", "a1")
    assert store.jobs.throttle_pending("api").jobs == ("b0", "b1")
    assert store.jobs["b0"].get().state == "throttled"
    counts = store.jobs.counts("two")
    assert (counts.waiting, counts.throttled, counts.running) == (0, 2, 1)


@pytest.mark.parametrize("end", ["complete", "fail", "retry", "timeout", "cancel", "put"])
def test_a_holder_that_ends_in_any_way_lets_the_oldest_one_come_back(
    store: Store, clock: Clock, end: str
) -> None:
    store.jobs.throttle_set("api", 1)
    for jid in ("holder", "next", "last"):
        store.jobs.put("queue", id=jid, throttles=["api"])
        clock.advance(seconds=1)
    store.jobs.pop("queue", "worker", 5)

    ends: dict[str, Callable[[], object]] = {
        "complete": lambda: store.jobs.complete("holder", "worker"),
        "fail": lambda: store.jobs.fail("holder", "worker", "group", "message"),
        "retry": lambda: store.jobs.retry("holder", "worker", delay=100),
        "timeout": lambda: store.jobs.timeout("holder"),
        "cancel": lambda: store.jobs.cancel("holder"),
        "put": lambda: store.jobs.put("elsewhere", id="holder"),
    }
    ends[end]()

    assert store.jobs["next"].get().state == "waiting"
    assert store.jobs["last"].get().state == "throttled"
    popped = store.jobs.pop("queue", "another", 1)
    assert [job.id for job in popped] == ["holder" if end == "timeout" else "next"]


def test_a_job_handed_over_keeps_its_slot(store: Store, clock: Clock) -> None:
    store.jobs.config_set("grace-period", 0)
    store.jobs.throttle_set("api", 1)
    store.jobs.put("queue", id="jid", throttles=["api"])
    store.jobs.pop("queue", "one")

    clock.advance(seconds=60)
    assert len(store.jobs.pop("queue", "two")) == 1

    assert store.jobs.throttle_get("api").locks == 1
    store.jobs.complete("jid", "two")
    assert store.jobs.throttle_get("api").locks == 0


def test_a_job_needs_a_slot_of_each_of_its_throttles(store: Store) -> None:
    store.jobs.throttle_set("a", 1)
    store.jobs.throttle_set("b", 1)
    store.jobs.put("queue", id="holds-b", throttles=["b"])
    store.jobs.put("queue", id="both", throttles=["a", "b"])

    store.jobs.pop("queue", "worker", 2)

    assert store.jobs.throttle_get("a").locks == 0
    assert store.jobs.throttle_pending("b").jobs == ("both",)
    store.jobs.complete("holds-b", "worker")
    assert [job.id for job in store.jobs.pop("queue", "worker", 2)] == ["both"]
    assert store.jobs.throttle_locks("a").jobs == ("both",)


def test_a_job_that_was_set_aside_can_be_canceled_or_moved(store: Store) -> None:
    store.jobs.throttle_set("api", 1)
    for jid in ("holder", "a", "b"):
        store.jobs.put("queue", id=jid, throttles=["api"])
    store.jobs.pop("queue", "worker", 3)

    store.jobs.cancel("a")
    store.jobs.put("other", id="b", throttles=[])

    assert store.jobs.throttle_get("api").pending == 0
    assert store.jobs.counts("queue").throttled == 0
    assert [job.id for job in store.jobs.pop("other", "worker")] == ["b"]


def test_raising_or_lifting_the_limit_lets_jobs_come_back(store: Store) -> None:
    store.jobs.throttle_set("api", 1)
    total = JOBS_PER_STEP + 50
    store.jobs.put_many([NewJob(queue="queue", throttles=("api",)) for _ in range(total)])
    while store.jobs.counts("queue").waiting:
        store.jobs.pop("queue", "worker")
    assert store.jobs.throttle_get("api").pending == total - 1

    store.jobs.throttle_set("api", 11)
    assert store.jobs.counts("queue").waiting == 10
    assert store.jobs.throttle_delete("api") == 0
    assert store.jobs.counts("queue").waiting == total - 1


def test_a_throttle_without_a_maximum_limits_nothing(store: Store, clock: Clock) -> None:
    store.jobs.throttle_set("soon", 1, ttl=10)
    for name in ("never-set", "soon"):
        for _ in range(3):
            store.jobs.put(name, throttles=[name])

    assert len(store.jobs.pop("never-set", "worker", 3)) == 3
    clock.advance(seconds=10)
    assert len(store.jobs.pop("soon", "worker", 3)) == 3
    assert store.jobs.throttle_get("soon").maximum == 0


def test_throttles_as_commands(qless: Qless) -> None:
    assert qless("throttle.set", 0, "api", 1, 60) is None
    for jid in ("a", "b"):
        qless("put", 0, "worker", "queue", jid, "klass", "{}", 0, "throttles", ["api"])
    qless("pop", 0, "queue", "worker", 2)

    found = qless("throttle.get", 0, "api")
    assert found == {"id": "api", "maximum": 1, "expires": 60, "locks": 1, "pending": 1}
    assert qless("throttle.locks", 0, "api") == ["a"]
    assert qless("throttle.pending", 0, "api") == ["b"]
    assert qless("throttle.delete", 0, "api") is None
    assert qless("get", 0, "b")["state"] == "waiting"
    with pytest.raises(BadArgument):
        qless("throttle.set", 0, "api", -1)


def test_canceling_a_queue_takes_along_what_waits_for_a_throttle(store: Store) -> None:
    store.jobs.throttle_set("mail", 1)
    for queue in ("queue", "other"):
        for n in range(3):
            store.jobs.put(queue, id=f"{queue}-{n}", throttles=["mail"])
        store.jobs.pop(queue, "worker", 3)

    assert store.jobs.cancel_queue("queue") == 3

    assert store.jobs.multiget("queue-0", "queue-1", "queue-2") == []
    assert store.jobs.counts("other").waiting + store.jobs.counts("other").throttled == 3


@pytest.mark.every_engine
def test_throttles_are_listed_page_by_page(store: Store) -> None:
    for name in ("c", "a", "b"):
        store.jobs.throttle_set(name, 2)
    store.jobs.put("q", id="one", throttles=["a"])
    store.jobs.pop("q", "w")
    store.jobs.throttle_delete("c")

    first = store.jobs.throttles(count=1)

    assert [(each.name, each.maximum, each.locks) for each in first] == [("a", 2, 1)]
    assert [each.name for each in store.jobs.throttles(after="a")] == ["b"]
