"""Handlers that enqueue jobs, in the transaction of their event."""

from typing import Any

import pytest

from holdfast.errors import InvalidEvent, NoJobQueue
from holdfast.events import Events
from holdfast.store import Store
from tests.events.conftest import keys, values


class Jobs:
    """A queue that remembers what was put, and refuses what it is told to refuse. As work may run
    more than once, each run has one of its own."""

    def __init__(self) -> None:
        self.put: list[tuple[str, str, dict[str, Any]]] = []

    def __call__(self, queue: str, klass: str, data: dict[str, Any]) -> str:
        if queue == "refused":
            raise InvalidEvent("no such queue")
        self.put.append((queue, klass, data))
        return "jid"


DIGEST = {"enqueue": {"queue": "digest", "klass": "SendDigest", "data": {"user": "follower"}}}


def test_a_handler_enqueues_a_job_in_the_transaction_of_the_event(store: Store) -> None:
    store.events.deploy({"e": [DIGEST]})

    def work(tx: Any) -> list[Any]:
        jobs = Jobs()
        events = Events(tx.raw, enqueue=jobs)
        events.send({"name": "e", "attributes": {"follower": "ann"}})
        events.send({"name": "e", "attributes": {"follower": ["bob", "cid"]}})
        events.send({"name": "e"})
        return jobs.put

    assert store.transact(work) == [
        ("digest", "SendDigest", {"user": "ann"}),
        ("digest", "SendDigest", {"user": ["bob", "cid"]}),
    ]


def test_a_store_puts_the_job_into_its_own_queue(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "follower"}, DIGEST]})

    store.events.send({"name": "e", "attributes": {"follower": "ann"}})

    [job] = store.jobs.pop("digest", worker="w")
    assert (job.klass, job.data) == ("SendDigest", {"user": "ann"})
    assert values(store, "s") == ["ann"]


def test_a_duplicate_event_enqueues_nothing(store: Store) -> None:
    store.events.deploy({"e": [DIGEST]})

    def work(tx: Any) -> int:
        jobs = Jobs()
        event = {"name": "e", "attributes": {"follower": "ann"}, "id": "one"}
        Events(tx.raw, enqueue=jobs).send(event)
        return len(jobs.put)

    assert [store.transact(work), store.transact(work)] == [1, 0]


def test_a_job_is_put_once_if_its_targets_expand_to_any_key(store: Store) -> None:
    store.events.deploy(
        {
            "join": [{"targets": ["['club'].members"], "add": "who"}],
            "e": [{"targets": ["[club].members"], **DIGEST}],
        }
    )
    store.events.send({"name": "join", "attributes": {"who": ["ann", "bob"]}})

    def work(tx: Any) -> int:
        jobs = Jobs()
        events = Events(tx.raw, enqueue=jobs)
        events.send({"name": "e", "attributes": {"club": "club", "follower": "ann"}})
        events.send({"name": "e", "attributes": {"club": "empty", "follower": "ann"}})
        return len(jobs.put)

    assert store.transact(work) == 1


def test_an_event_whose_job_is_refused_writes_nothing(store: Store) -> None:
    job = {"enqueue": {"queue": "refused", "klass": "K"}}
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "'v'"}, job]})

    reply = store.transact(lambda tx: Events(tx.raw, enqueue=Jobs()).send_many([{"name": "e"}]))

    assert [error.message for error in reply.errors] == ["no such queue"]
    assert keys(store) == []


def test_of_several_jobs_of_an_event_all_are_put_or_none(store: Store) -> None:
    good = {"enqueue": {"queue": "good", "klass": "K", "data": {"v": "v"}}}
    refused = {"enqueue": {"queue": "q" * 5_000, "klass": "K"}}
    store.events.deploy({"e": [good, refused], "f": [good, good]})

    reply = store.events.send_many(
        [{"name": "e", "attributes": {"v": 1}}, {"name": "f", "attributes": {"v": 2}}]
    )

    assert (reply.accepted, [error.position for error in reply.errors]) == (1, [0])
    jobs = store.jobs.pop("good", worker="w", count=10)
    assert [job.data for job in jobs] == [{"v": "2"}, {"v": "2"}]


def test_without_a_queue_a_handler_that_enqueues_is_an_error(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "'v'"}, DIGEST]})

    with pytest.raises(NoJobQueue):
        store.transact(
            lambda tx: Events(tx.raw).send({"name": "e", "attributes": {"follower": "a"}})
        )

    assert keys(store) == []
