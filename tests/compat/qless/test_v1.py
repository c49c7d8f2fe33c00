"""The seed's calls, from Python and as words."""

import json
from collections.abc import Callable

import pytest

from holdfast.compat.qless import Reply, call_v1
from holdfast.errors import BadArgument
from holdfast.store import Store
from holdfast.testing import Clock

JobsV1 = Callable[..., Reply]


@pytest.fixture
def seed(store: Store) -> JobsV1:
    """Runs a call as its words: `seed("Get", 0, "id")`."""

    def run(*words: object) -> Reply:
        return store._runner.transact(lambda tx: call_v1(tx, [str(word) for word in words]))

    return run


def texts(reply: Reply) -> list[str]:
    assert isinstance(reply, list)
    return reply


def shown(reply: Reply) -> dict[str, object]:
    assert isinstance(reply, str)
    found: dict[str, object] = json.loads(reply)
    return found


def test_a_job_has_the_structure_of_the_seed(seed: JobsV1) -> None:
    assert (
        seed("Put", 1, "example", "deadbeef", '{"a":1}', 1352075209, -5, '["x"]', 0) == "deadbeef"
    )

    assert shown(seed("Get", 0, "deadbeef")) == {
        "id": "deadbeef",
        "priority": -5,
        "data": '{"a":1}',
        "tags": '["x"]',
        "worker": "",
        "expires": 0,
        "state": "waiting",
        "queue": "example",
        "history": [["example", 1352075209, None, None, None]],
    }
    assert seed("get", 0, "nobody") is None


def test_lower_priorities_run_sooner(seed: JobsV1) -> None:
    for priority in (5, -5, 0):
        seed("Put", 1, "queue", f"p{priority}", "{}", 0, priority)

    popped = seed("Pop", 1, "queue", "worker", 3, 1, 100)

    assert isinstance(popped, list)
    assert [json.loads(job)["id"] for job in popped] == ["p-5", "p0", "p5"]


def test_locks_end_when_the_caller_says_and_are_handed_over_without_grace(seed: JobsV1) -> None:
    seed("Put", 1, "queue", "id", "{}", 0)
    [text] = texts(seed("Pop", 1, "queue", "one", 1, 10, 50))
    job = shown(text)
    assert (job["state"], job["worker"], job["expires"]) == ("pending", "one", 50)
    assert seed("Heartbeat", 0, "id", "one", 80, "[]") == 80
    assert seed("Pop", 1, "queue", "two", 1, 79, 200) == []

    [text] = texts(seed("Pop", 1, "queue", "two", 1, 80, 200))

    assert shown(text)["worker"] == "two"
    assert shown(text)["data"] == "[]"
    assert seed("Heartbeat", 0, "id", "one", 300) is None
    assert shown(seed("Get", 0, "id"))["history"] == [["queue", 0, 80, None, "two"]]


def test_put_during_service_takes_the_job_away(seed: JobsV1) -> None:
    seed("Put", 1, "queue", "id", "{}", 0)
    seed("Pop", 1, "queue", "one", 1, 0, 50)
    seed("Put", 1, "other", "id", "{}", 5)

    assert seed("Heartbeat", 0, "id", "one", 80) is None
    assert seed("Complete", 0, "id") is None


def test_complete_ends_or_moves_a_job_for_its_holder(seed: JobsV1, clock: Clock) -> None:
    clock.set(20)
    seed("Put", 1, "queue", "id", "{}", 0)
    seed("Pop", 1, "queue", "one", 1, 10, 50)
    assert seed("Complete", 0, "id", "[1]", "second", 30) == "scheduled"
    [peeked] = texts(seed("Peek", 1, "second", 5, 50))
    assert shown(peeked)["data"] == "[1]"
    seed("Pop", 1, "second", "two", 1, 60, 100)

    clock.set(70)
    assert seed("Complete", 0, "id") == "complete"

    job = shown(seed("Get", 0, "id"))
    assert (job["state"], job["queue"]) == ("complete", None)
    assert job["history"] == [["queue", 0, 10, 20, "one"], ["second", 20, 60, 70, "two"]]
    assert seed("Complete", 0, "id") is None


def test_a_job_in_any_state_but_complete_can_fail(seed: JobsV1, store: Store) -> None:
    seed("Put", 1, "queue", "waiting", "{}", 0)
    seed("Put", 1, "queue", "later", "{}", 0, 0, "[]", 100)
    for jid in ("waiting", "later"):
        assert seed("Fail", 0, jid, "type", "message", 5) == jid
        assert shown(seed("Get", 0, jid))["state"] == "failed"
    assert seed("Fail", 0, "nobody", "type", "message", 5) is None

    assert store.jobs.failed() == {"type": 2}
    assert store.jobs.length("queue") == 0


def test_a_blocked_job_that_failed_stays_so_when_its_dependency_completes(
    seed: JobsV1, store: Store
) -> None:
    store.jobs.put("queue", id="first")
    store.jobs.put("queue", id="blocked", depends=["first"])
    seed("Fail", 0, "blocked", "type", "message", 5)
    store.jobs.pop("queue", "worker")

    store.jobs.complete("first", "worker")

    assert store.jobs["blocked"].get().state == "failed"
    assert store.jobs["blocked"].get().dependencies == ()
    assert store.jobs.failed() == {"type": 1}


def test_a_blocked_job_that_failed_and_came_back_waits_for_nobody(
    seed: JobsV1, store: Store
) -> None:
    store.jobs.put("queue", id="first")
    store.jobs.put("queue", id="blocked", depends=["first"])
    seed("Fail", 0, "blocked", "type", "message", 5)
    store.jobs.unfail("queue", "type")
    store.jobs.pop("queue", "worker", 2)

    store.jobs.complete("first", "worker")

    assert store.jobs["blocked"].get().state == "running"


def test_a_worker_is_told_once_that_its_lock_has_ended(seed: JobsV1, store: Store) -> None:
    seed("Put", 1, "queue", "id", "{}", 0)
    seed("Pop", 1, "queue", "one", 1, 0, 10)
    store.jobs.pop("queue", "later", now=20)  # a notice, and a grace period

    seed("Pop", 1, "queue", "two", 1, 40, 50)

    told = [entry.when for entry in store.jobs["id"].get().history if entry.what == "timed-out"]
    assert told == [20]
    assert store.jobs.stats("queue", 0).retries == 1


def test_jobs_history_is_in_days(seed: JobsV1, store: Store) -> None:
    assert seed("GetConfig", 0, "jobs-history") == "7"
    assert seed("GetConfig", 0, "application") == "qless"
    assert seed("GetConfig", 0, "nothing") is None

    seed("SetConfig", 0, "jobs-history", 2)
    assert store.jobs.config_get("jobs-history") == "172800"
    assert seed("GetConfig", 0, "jobs-history") == "2"
    assert shown(seed("GetConfig", 0))["jobs-history"] == 2
    seed("SetConfig", 0, "jobs-history")
    assert shown(seed("GetConfig", 0))["jobs-history"] == 7


def test_statistics_are_the_seeds(seed: JobsV1, clock: Clock) -> None:
    for n, moment in enumerate((10, 40)):
        seed("Put", 1, "queue", f"j{n}", "{}", 0)
        seed("Pop", 1, "queue", "one", 1, moment, 500)
        clock.set(moment + 4000)
        seed("Complete", 0, f"j{n}")

    stats = shown(seed("Stats", 0, "queue", "1970-01-01"))

    assert (stats["total"], stats["mean"], stats["variance"]) == (2, 4000, 0)
    assert stats == shown(seed("Stats", 0, "queue", 5000))
    wait = stats["wait"]
    assert isinstance(wait, dict)
    assert (wait["total"], wait["mean"], wait["variance"]) == (2, 25, 450)
    assert len(wait["histogram"]) == 286
    assert stats["run"] == {
        name: stats[name] for name in ("total", "mean", "variance", "histogram")
    }


@pytest.mark.parametrize(
    "words",
    [[], ["Nothing", 0], ["Get"], ["Get", 1, "id"], ["Put", 0, "queue"], ["Put", 1, "queue", "id"],
     ["Stats", 0, "queue", "yesterday"], ["Fail", 0, "id"], ["Put", 1, "q", "id", "[}", 0]],
)  # fmt: skip
def test_malformed_calls_are_refused(seed: JobsV1, words: list[object]) -> None:
    with pytest.raises(BadArgument):
        seed(*words)


def test_the_seed_from_python(store: Store, clock: Clock) -> None:
    v1 = store.jobs.v1
    clock.set(10)
    v1.put("queue", "id", {"a": 1}, 0, -5, ["x"], 0)

    [job] = v1.peek("queue", 1, 5)
    assert (job.id, job.priority, job.data, job.state) == ("id", -5, '{"a":1}', "waiting")
    [job] = v1.pop("queue", "worker", 1, 5, 65.5)
    assert job.expires == 65.5
    assert v1.heartbeat("id", "worker", 99.5) == 99.5
    assert v1.heartbeat("id", "another", 99.5) is None
    assert v1.complete("id", '{"b":2}') == "complete"
    found = v1.get("id")
    assert found is not None
    assert found.history == (("queue", 0, 5, 10, "worker"),)
    assert v1.stats("queue", 0).total == 1
    v1.set_config("heartbeat", 30)
    assert v1.get_config("heartbeat") == "30"
    assert v1.configuration()["heartbeat"] == "30"
    v1.set_config("heartbeat")
    with pytest.raises(BadArgument):
        v1.fail("id", "", "message", 0)


def test_a_put_keeps_what_it_is_not_given(seed: JobsV1, store: Store) -> None:
    store.jobs.put("queue", "SendMail", id="id", priority=7, tags=["vip"], retries=2)

    seed("Put", 1, "other", "id", "{}", 5)

    job = store.jobs.get("id")
    assert job is not None
    assert (job.queue, job.klass, job.priority) == ("other", "SendMail", 7)
    assert (job.tags, job.retries) == (("vip",), 2)


def test_a_stale_completion_is_refused_with_and_without_a_name(seed: JobsV1, store: Store) -> None:
    seed("Put", 1, "queue", "id", "{}", 0)
    seed("Pop", 1, "queue", "one", 1, 0, 50)
    seed("Put", 1, "queue", "id", "{}", 5)
    seed("Pop", 1, "queue", "two", 1, 6, 50)

    assert seed("Complete", 0, "id") is None
    assert seed("Complete", 0, "id", "{}", "", 0, "one") is None
    assert store.jobs.v1.complete("id", worker="one") is None

    assert seed("Complete", 0, "id", "{}", "", 0, "two") == "complete"


def test_a_completion_without_a_name_is_the_holders(seed: JobsV1) -> None:
    seed("Put", 1, "queue", "id", "{}", 0)
    seed("Pop", 1, "queue", "one", 1, 0, 50)
    seed("Pop", 1, "queue", "two", 1, 60, 90)  # the first lock has ended

    assert seed("Complete", 0, "id") == "complete"


@pytest.mark.every_engine
def test_the_seeds_calls_work_in_a_transaction(store: Store) -> None:
    with store.transaction() as tx:
        tx.jobs.v1.put("queue", "id", "{}", 0)
        [job] = tx.jobs.v1.pop("queue", "worker", 1, 1, 60)

    assert (job.id, job.state) == ("id", "pending")


def test_the_seeds_calls_have_names_for_clients(store: Store) -> None:
    assert store.jobs.v1_call("put", ["queue", "id", "{}", 0]) == "id"
    assert store.jobs.v1_call("get", ["id"])["state"] == "waiting"
    with pytest.raises(BadArgument, match="name is unknown: explode"):
        store.jobs.v1_call("explode")
    with pytest.raises(BadArgument, match="arguments don't fit get"):
        store.jobs.v1_call("get", ["id", 2, 3])
