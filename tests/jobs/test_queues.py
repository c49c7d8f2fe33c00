"""Queues: counts, lists, what makes them known, pausing and forgetting."""

import os
import socket

import pytest

from holdfast.errors import BadArgument, HoldfastError
from holdfast.jobs import NewJob
from holdfast.limits import JOBS_PER_STEP
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless

EMPTY = {
    "name": "queue",
    "waiting": 0,
    "running": 0,
    "stalled": 0,
    "scheduled": 0,
    "depends": 0,
    "recurring": 0,
    "paused": False,
}


def put(qless: Qless, jid: str, now: float = 0, delay: float = 0, *options: object) -> None:
    qless("put", now, "worker", "queue", jid, "klass", "{}", delay, *options)


def test_an_unknown_queue_has_zeros(qless: Qless) -> None:
    assert qless("queues", 0, "queue") == EMPTY
    assert qless("queues", 0) == {}


def test_every_list_is_counted(qless: Qless) -> None:
    for n in range(6):
        put(qless, f"j{n}", n)
    put(qless, "later", 0, 100)
    put(qless, "blocked", 0, 0, "depends", ["j5"])
    qless("recur", 0, "queue", "r", "klass", "{}", "interval", 60, 50)
    qless("pop", 0, "queue", "worker", 1)
    qless("pop", 5, "queue", "worker", 2)

    expected = EMPTY | {"waiting": 3, "running": 3, "scheduled": 1, "depends": 1, "recurring": 1}
    assert qless("queues", 5, "queue") == expected
    assert qless("queues", 60, "queue") == expected | {"running": 2, "stalled": 1}
    assert qless("queues", 65) == [expected | {"running": 0, "stalled": 3}]
    assert qless("length", 5, "queue") == 7


def test_running_and_stalled_are_listed_by_the_end_of_their_locks(qless: Qless) -> None:
    for n in range(4):
        put(qless, f"j{n}", n)
    for n in range(4):
        qless("pop", n, "queue", "worker", 1)

    assert qless("jobs", 61, "stalled", "queue") == ["j0", "j1"]
    assert qless("jobs", 61, "running", "queue") == ["j1", "j2", "j3"]  # one ends right now
    assert qless("jobs", 0, "running", "queue", 1, 2) == ["j1", "j2"]
    assert qless("jobs", 0, "running", "queue", 1, -1) == ["j1", "j2", "j3"]


def test_scheduled_depends_and_recurring_are_listed_by_their_times(qless: Qless) -> None:
    put(qless, "base")
    for n in (3, 1, 2):
        put(qless, f"s{n}", 0, 100 + n)
        put(qless, f"d{n}", n, 0, "depends", ["base"])
        qless("recur", 0, "queue", f"r{n}", "klass", "{}", "interval", 60, n)

    assert qless("jobs", 0, "scheduled", "queue") == ["s1", "s2", "s3"]
    assert qless("jobs", 0, "depends", "queue") == ["d1", "d2", "d3"]
    assert qless("jobs", 0, "recurring", "queue") == ["r1", "r2", "r3"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], 'Jobs(): Arg "state" missing'),
        (["running"], 'Jobs(): Arg "queue" missing'),
        (["complete", "x"], 'Jobs(): Arg "offset" not a number: x'),
        (["complete", "0", "x"], 'Jobs(): Arg "count" not a number: x'),
        (["running", "queue", "x"], 'Jobs(): Arg "offset" not a number: x'),
        (["running", "queue", "0", "1.5"], 'Jobs(): Arg "count" not a number: 1.5'),
        (["foo", "queue"], 'Jobs(): Unknown type "foo"'),
    ],
)
def test_malformed_lists_are_refused(qless: Qless, words: list[str], text: str) -> None:
    with pytest.raises(BadArgument) as refused:
        qless("jobs", 0, *words)

    assert refused.value.message == text


@pytest.mark.parametrize("words", [["length"], ["peek"], ["peek", "q"], ["peek", "q", "x"]])
def test_other_malformed_looks_are_refused(qless: Qless, words: list[str]) -> None:
    with pytest.raises(HoldfastError):
        qless(words[0], 0, *words[1:])


def test_queues_come_in_the_order_in_which_they_were_first_seen(qless: Qless) -> None:
    for now, name in ((3, "c"), (1, "z"), (1, "a"), (9, "z")):
        qless("put", now, "worker", name, f"{name}-{now}", "klass", "{}", 0)

    assert [queue["name"] for queue in qless("queues", 9)] == ["a", "z", "c"]


def test_put_recur_next_and_unfail_make_a_queue_known(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b")
    qless("pop", 0, "queue", "worker", 2)
    qless("complete", 1, "a", "worker", "queue", "{}", "next", "by-next")
    qless("fail", 1, "b", "worker", "group", "message")
    qless("unfail", 2, "by-unfail", "group")
    qless("recur", 3, "by-recur", "r", "klass", "{}", "interval", 60, 0)
    qless("recur.update", 4, "r", "queue", "by-update")

    names = [queue["name"] for queue in qless("queues", 4)]
    assert names == ["queue", "by-next", "by-unfail", "by-recur", "by-update"]


def test_popping_and_peeking_make_no_queue_known(qless: Qless) -> None:
    qless("pop", 0, "queue", "worker", 1)
    qless("peek", 0, "queue", 1)

    assert qless("queues", 0) == {}


def test_a_forgotten_queue_keeps_its_jobs_and_comes_back(qless: Qless) -> None:
    put(qless, "a")

    assert qless("queue.forget", 0, "queue", "nobody") is None
    assert qless("queues", 0) == {}
    assert qless("length", 0, "queue") == 1
    put(qless, "b")
    assert qless("queues", 0)[0]["waiting"] == 2


# --- from Python --------------------------------------------------------------------------------


def test_handles_spare_the_name(store: Store) -> None:
    queue = store.jobs.queue("emails")
    jid = queue.put("app.Send", {"to": "ann"}, priority=2)
    assert [job.id for job in queue.peek()] == [jid]
    assert len(queue) == 1
    queue.pause()
    assert queue.pop("worker") == []
    queue.unpause()
    [job] = queue.pop_wait("worker", timeout=0)

    handle = store.jobs[job.id]
    handle.heartbeat("worker")
    handle.log("hello")
    handle.priority(3)
    handle.timeout()
    handle.move("letters")
    store.jobs.pop("letters", "worker")
    assert handle.retry("worker") == 4
    store.jobs.pop("letters", "worker")
    handle.fail("worker", "group", "message")
    handle.move("emails")
    queue.pop("worker")
    assert handle.complete("worker", result=[1]) == "complete"

    assert handle.result() == [1]
    assert handle.get().state == "complete"
    assert queue.counts().waiting == 0
    assert queue.stats().wait.count == 2
    handle.cancel()
    store.jobs.queue_forget("emails")
    assert [queue.name for queue in store.jobs.queues()] == ["letters"]


def test_handles_need_no_worker_s_name(store: Store) -> None:
    queue = store.jobs.queue("emails")
    for _ in range(3):
        queue.put()

    jobs = [*queue.pop(2), *queue.pop_wait(timeout=0)]

    assert {job.worker for job in jobs} == {f"{socket.gethostname()}-{os.getpid()}"}
    first, second, third = (store.jobs[job.id] for job in jobs)
    first.heartbeat()
    assert first.complete() == "complete"
    assert second.retry() == 4
    third.fail("", "group", "message")
    assert store.jobs.failed() == {"group": 1}


def test_a_pause_can_stop_what_runs_in_steps(store: Store, clock: Clock) -> None:
    total = JOBS_PER_STEP + 20
    store.jobs.put_many([NewJob(queue="queue") for _ in range(total)])
    store.jobs.pop("queue", "worker", 20, lock_seconds=1)
    clock.advance(seconds=2)
    store.jobs.pop("queue", "worker", total)

    store.jobs.pause("queue", stop_running=True)

    counts = store.jobs.counts("queue")
    assert (counts.running, counts.stalled, counts.paused) == (0, 0, True)
    assert counts.waiting == total
