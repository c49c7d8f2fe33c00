"""Blocking pop: woken by notices, asleep while nothing happens."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.engine.contract import Subscription
from holdfast.jobs import Job
from holdfast.store import Store
from holdfast.testing import Clock
from tests.stores import Stores

pytestmark = pytest.mark.every_engine


def pop_while(store: Store, queues: list[str], action: Callable[[], object]) -> list[Job]:
    """Returns what a waiting pop gets when `action` happens after it has begun to listen."""
    found: list[Job] = []
    listens = threading.Event()
    subscribe = store.engine.subscribe

    def subscribe_and_tell(**options: Any) -> Subscription:
        subscription = subscribe(**options)
        listens.set()
        return subscription

    waiter = threading.Thread(
        target=lambda: found.extend(store.jobs.pop_wait(queues, "waiter", timeout=30))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.engine, "subscribe", subscribe_and_tell)
        waiter.start()
        assert listens.wait(30)
    action()
    waiter.join(30)
    return found


@pytest.fixture
def real_store(stores: Stores) -> Store:
    """A store whose clock runs."""
    return holdfast.open(stores.url(), durability="interval")


def test_a_waiting_pop_gets_what_is_put(store: Store) -> None:
    found = pop_while(store, ["one", "two"], lambda: store.jobs.put("two", id="jid"))

    assert [(job.id, job.worker) for job in found] == [("jid", "waiter")]


def test_the_first_queue_that_has_a_job_is_taken(store: Store) -> None:
    store.jobs.put("two", id="second")
    store.jobs.put("one", id="first")

    assert [job.id for job in store.jobs.pop_wait(["one", "two"], "worker")] == ["first"]
    assert [job.id for job in store.jobs.pop_wait(["one", "two"], "worker")] == ["second"]
    assert store.jobs.pop_wait("one", "worker", timeout=0.01) == []


@pytest.mark.parametrize(
    "event", ["unpause", "timeout", "retry", "unfail", "release", "concurrency"]
)
def test_a_waiting_pop_wakes_for_all_that_makes_a_job_available(store: Store, event: str) -> None:
    jobs = store.jobs
    jobs.put("queue", id="jid")
    if event == "unpause":
        jobs.pause("queue")
    else:
        jobs.pop("queue", "worker")
    if event == "unfail":
        jobs.fail("jid", "worker", "group", "message")
    if event == "release":
        jobs.put("queue", id="after", depends=["jid"])
    if event == "concurrency":
        jobs.config_set("queue-max-concurrency", 1)
        jobs.put("queue", id="after")
    actions: dict[str, Callable[[], object]] = {
        "unpause": lambda: jobs.unpause("queue"),
        "timeout": lambda: jobs.timeout("jid"),
        "retry": lambda: jobs.retry("jid", "worker"),
        "unfail": lambda: jobs.unfail("queue", "group"),
        "release": lambda: jobs.complete("jid", "worker"),
        "concurrency": lambda: jobs.complete("jid", "worker"),
    }

    found = pop_while(store, ["queue"], actions[event])

    assert [job.id for job in found] == ["after" if event in ("release", "concurrency") else "jid"]


def test_a_waiting_pop_wakes_when_a_job_starts_or_recurs_or_loses_its_lock(
    real_store: Store,
) -> None:
    with real_store as store:
        store.jobs.put("scheduled", id="scheduled", delay=0.05)
        store.jobs.recur("recurring", id="recurring", interval=1000, offset=0.05)
        store.jobs.config_set("grace-period", 0)
        store.jobs.put("lost", id="lost")
        store.jobs.pop("lost", "worker", lock_seconds=0.05)

        found = [
            job.id
            for queue in ("scheduled", "recurring", "lost")
            for job in store.jobs.pop_wait(queue, "waiter", timeout=30)
        ]

    assert found == ["scheduled", "recurring-1", "lost"]


def test_nothing_is_asked_of_the_store_while_nothing_happens(store: Store) -> None:
    def count() -> int:
        return store.stats()["transactions"]

    before = count()
    assert store.jobs.pop_wait("queue", "worker", timeout=0.2) == []

    assert count() - before == 1


@pytest.mark.parametrize("reason", ["paused", "full"])
def test_a_queue_that_gives_nothing_is_not_asked_again_and_again(
    store: Store, clock: Clock, reason: str
) -> None:
    store.jobs.put("queue", id="running")
    store.jobs.pop("queue", "worker", lock_seconds=1000)
    store.jobs.put("queue", id="due", delay=10)
    clock.advance(seconds=10)
    if reason == "paused":
        store.jobs.pause("queue")
    else:
        store.jobs.config_set("queue-max-concurrency", 1)
    before = store.stats()["transactions"]

    assert store.jobs.pop_wait("queue", "waiter", timeout=0.1) == []

    assert store.stats()["transactions"] - before == 1
    assert store.jobs.next_wake("queue") == (None if reason == "paused" else clock() + 990)
