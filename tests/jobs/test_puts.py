"""Puts: new jobs, jobs that move, bulk put, unique jobs."""

import inspect
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.errors import (
    BadArgument,
    BatchTooLong,
    CircularDependency,
    JobTooLarge,
    UniqueKeyTaken,
    UnknownJob,
)
from holdfast.jobs import Jobs, JsonText, NewJob
from holdfast.limits import (
    MAX_JOB_DATA_BYTES,
    MAX_JOB_DATA_DEPTH,
    MAX_JOB_NAME_BYTES,
    MAX_JOBS_PER_CALL,
)
from holdfast.store import Store, Tx
from holdfast.testing import Clock
from tests.jobs.conftest import Qless


def test_a_new_job_has_the_defaults_of_the_originals(qless: Qless) -> None:
    jid = qless("put", 12345, "worker", "queue", "jid", "klass", "{}", 0)

    assert jid == "jid"
    assert qless("get", 12345, "jid") == {
        "jid": "jid",
        "klass": "klass",
        "state": "waiting",
        "queue": "queue",
        "worker": "",
        "tracked": False,
        "priority": 0,
        "expires": 0,
        "retries": 5,
        "remaining": 5,
        "data": "{}",
        "tags": {},
        "history": [{"what": "put", "when": 12345, "q": "queue"}],
        "failure": {},
        "spawned_from_jid": False,
        "dependents": {},
        "dependencies": {},
    }


@pytest.mark.parametrize(
    "text", ["[]", '{"b":1.50, "a":[ ]}', "false", "12345678901234567890", '"x"']
)
def test_data_is_kept_as_the_very_text_that_came(qless: Qless, text: str) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", text, 0)
    qless("pop", 0, "queue", "worker", 1)
    qless("fail", 0, "jid", "worker", "group", "message", text)

    assert qless("get", 0, "jid")["data"] == text


def test_long_data_survives_all_stations(store: Store) -> None:
    data = {"text": "x" * 5_000}
    store.jobs.put("queue", "klass", data, id="jid")
    [job] = store.jobs.pop("queue", "worker")
    assert job.data == data

    store.jobs.complete("jid", "worker", data={"short": True})
    found = store.jobs.get("jid")

    assert found is not None
    assert found.data == {"short": True}


def test_putting_again_keeps_what_is_not_given(qless: Qless) -> None:
    options = ["priority", 7, "tags", ["a", "b"], "retries", 3]
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0, *options)
    qless("put", 1, "worker", "other", "jid", "klass", "{}", 0)

    job = qless("get", 1, "jid")

    assert (job["priority"], job["tags"], job["retries"], job["queue"]) == (
        7,
        ["a", "b"],
        3,
        "other",
    )
    assert qless("queues", 1, "queue")["waiting"] == 0
    assert qless("queues", 1, "other")["waiting"] == 1


def test_putting_a_running_job_takes_it_from_its_worker(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0)
    qless("pop", 1, "queue", "worker", 1)
    qless("put", 2, "another", "queue", "jid", "klass", "{}", 0)

    job = qless("get", 2, "jid")

    assert (job["state"], job["worker"], job["expires"]) == ("waiting", "", 0)
    assert qless("workers", 2, "worker") == {"jobs": {}, "stalled": {}}


def test_a_complete_job_comes_back_to_life(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0)
    qless("pop", 0, "queue", "worker", 1)
    qless("complete", 0, "jid", "worker", "queue", "{}")

    qless("put", 1, "worker", "queue", "jid", "klass", "{}", 0)

    assert qless("jobs", 1, "complete") == []
    assert qless("get", 1, "jid")["state"] == "waiting"


def test_the_failure_of_a_job_that_is_put_again_stays_visible_until_it_completes(
    qless: Qless,
) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0)
    qless("pop", 0, "queue", "worker", 1)
    qless("fail", 0, "jid", "worker", "group", "message")

    qless("put", 1, "worker", "queue", "jid", "klass", "{}", 0)
    assert qless("failed", 1) == {}
    assert qless("get", 1, "jid")["failure"]["group"] == "group"

    qless("pop", 1, "queue", "worker", 1)
    qless("complete", 1, "jid", "worker", "queue", "{}")
    assert qless("get", 1, "jid")["failure"] == {}


def test_requeue_needs_a_job_that_exists(qless: Qless) -> None:
    with pytest.raises(UnknownJob, match="does not exist"):
        qless("requeue", 0, "worker", "queue", "jid", "klass", "{}", 0)

    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0)
    qless("requeue", 1, "worker", "other", "jid", "klass", "{}", 0)

    assert qless("get", 1, "jid")["queue"] == "other"


def test_requeue_from_python_keeps_class_and_data(store: Store) -> None:
    store.jobs.put("queue", "klass", {"a": 1}, id="jid")

    store.jobs.requeue("other", "jid")
    job = store.jobs["jid"].get()

    assert (job.queue, job.klass, job.data) == ("other", "klass", {"a": 1})


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], 'Put(): Arg "worker" missing'),
        (["w"], "Queue(): no queue name provided"),
        (["w", "q"], 'Put(): Arg "jid" missing'),
        (["w", "q", ""], 'Put(): Arg "jid" missing'),
        (["w", "q", "j"], 'Put(): Arg "klass" missing'),
        (["w", "q", "j", "k"], 'Put(): Arg "data" missing or not JSON: nil'),
        (["w", "q", "j", "k", "[}"], 'Put(): Arg "data" missing or not JSON: [}'),
        (["w", "q", "j", "k", "{}"], 'Put(): Arg "delay" not a number: nil'),
        (["w", "q", "j", "k", "{}", "foo"], 'Put(): Arg "delay" not a number: foo'),
        (["w", "q", "j", "k", "{}", "0", "retries"], "Odd number of additional args: retries"),
        (["w", "q", "j", "k", "{}", "0", "retries", "x"], 'Put(): Arg "retries" not a number: x'),
        (["w", "q", "j", "k", "{}", "0", "tags", "x"], 'Put(): Arg "tags" not JSON x'),
        (["w", "q", "j", "k", "{}", "0", "priority", "x"], 'Put(): Arg "priority" not a number x'),
        (["w", "q", "j", "k", "{}", "0", "depends", "x"], 'Put(): Arg "depends" not JSON: x'),
        (
            ["w", "q", "j", "k", "{}", "0", "depends", '["j"]'],
            "Put(): Job j would depend on itself",
        ),
    ],
)
def test_malformed_puts_are_refused_with_the_texts_of_the_originals(
    qless: Qless, args: list[str], text: str
) -> None:
    with pytest.raises(BadArgument) as refused:
        qless("put", 0, *args)

    assert refused.value.message == text
    assert qless("queues", 0) == {}


def test_unknown_options_are_ignored_on_the_wire(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0, "colour", "blue")

    assert qless("length", 0, "queue") == 1


@pytest.mark.parametrize("name", ["nul\0", "x" * (MAX_JOB_NAME_BYTES + 1), "ü" * 600, "\ud800"])
def test_names_that_no_one_could_have_meant_are_refused(store: Store, name: str) -> None:
    with pytest.raises(BadArgument):
        store.jobs.put(name)
    with pytest.raises(BadArgument):
        store.jobs.put("queue", id=name)


def test_data_that_a_worker_could_not_read_is_refused(store: Store) -> None:
    def nested(depth: int) -> list[Any]:
        value: list[Any] = []
        for _ in range(depth - 1):
            value = [value]
        return value

    store.jobs.put("queue", data=nested(MAX_JOB_DATA_DEPTH))
    store.jobs.put("queue", data=[{"a": "[["}] * MAX_JOB_DATA_DEPTH)
    for value in (nested(MAX_JOB_DATA_DEPTH + 1), {"a": nested(MAX_JOB_DATA_DEPTH)}):
        with pytest.raises(JobTooLarge, match="nested 513 levels deep, at most 512 fit"):
            store.jobs.put("queue", data=value)

    assert len(store.jobs.pop("queue", "worker", count=3)) == 2


def test_data_that_is_too_large_is_refused(store: Store) -> None:
    with pytest.raises(JobTooLarge):
        store.jobs.put("queue", data="x" * MAX_JOB_DATA_BYTES)


def test_what_json_cannot_hold_is_refused(store: Store) -> None:
    with pytest.raises(BadArgument, match="data is an object, which JSON can't represent"):
        store.jobs.put("queue", data=object())
    with pytest.raises(BadArgument, match="data is not JSON"):
        store.jobs.put("queue", data=JsonText("{"))


@pytest.mark.parametrize("now", [-1, 10**11 + 1])
def test_a_time_that_is_none_is_refused(store: Store, now: float) -> None:
    with pytest.raises(BadArgument):
        store.jobs.put("queue", now=now)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_finite_number_is_refused(store: Store, number: float) -> None:
    store.jobs.put("queue", id="jid")
    with pytest.raises(BadArgument, match="must be a"):
        store.jobs.put("queue", delay=number)
    with pytest.raises(BadArgument, match="must be a"):
        store.jobs.put("queue", priority=number)
    with pytest.raises(BadArgument, match="must be a"):
        store.jobs.priority("jid", number)
    with pytest.raises(BadArgument, match="must be a"):
        store.jobs.recur("queue", interval=number)
    with pytest.raises(BadArgument):
        store.jobs.put("queue", now=number)


def test_ids_are_made_in_the_order_of_their_times(store: Store, clock: Clock) -> None:
    first = store.jobs.put("queue")
    clock.advance(seconds=0.001)
    second = store.jobs.put("queue")

    assert len(first) == 32
    assert first < second


# --- many at once -------------------------------------------------------------------------------


def test_bulk_put_gives_the_ids_in_order(store: Store) -> None:
    ids = store.jobs.put_many([NewJob(queue="queue", id=f"job-{n}") for n in range(100)])

    assert ids == [f"job-{n}" for n in range(100)]
    assert [job.id for job in store.jobs.pop("queue", "worker", 100)] == ids


def test_bulk_put_is_all_or_nothing(store: Store) -> None:
    jobs = [NewJob(queue="queue", id="good"), NewJob(queue="queue", id="bad", depends=("bad",))]

    with pytest.raises(CircularDependency):
        store.jobs.put_many(jobs)

    assert store.jobs.get("good") is None
    assert store.jobs.queues() == []


def test_bulk_put_has_a_bound_that_put_all_steps_over(store: Store) -> None:
    with pytest.raises(BadArgument, match="at most"):
        store.jobs.put_many([NewJob(queue="queue")] * (MAX_JOBS_PER_CALL + 1))

    assert len(list(store.jobs.put_all([NewJob(queue="queue")] * 30))) == 30


def test_bulk_put_works_as_a_command(qless: Qless) -> None:
    jobs: list[dict[str, Any]] = [
        {"queue": "q", "jid": "a", "klass": "k", "data": {"x": []}, "priority": 1},
        {"queue": "q", "jid": "b", "klass": "k", "data": 2},
    ]

    assert qless("mput", 0, "worker", jobs) == ["a", "b"]
    assert [job["jid"] for job in qless("peek", 0, "q", 5)] == ["a", "b"]
    with pytest.raises(BadArgument):
        qless("mput", 0, "worker", [{"jid": 7}])


# --- unique jobs --------------------------------------------------------------------------------


def test_a_unique_key_keeps_the_job_that_owns_it(store: Store) -> None:
    first = store.jobs.put("queue", unique="daily")

    assert store.jobs.put("queue", unique="daily") == first
    assert store.jobs.length("queue") == 1


def test_a_unique_key_can_refuse_or_replace(store: Store) -> None:
    first = store.jobs.put("queue", unique="daily")

    with pytest.raises(UniqueKeyTaken, match=first):
        store.jobs.put("queue", unique="daily", unique_mode="error")
    second = store.jobs.put("queue", unique="daily", unique_mode="replace")

    assert store.jobs.get(first) is None
    assert store.jobs.put("queue", unique="daily") == second


@pytest.mark.parametrize(
    ("unique_for", "free_when"), [("queued", "running"), ("running", "complete"), ("complete", "")]
)
def test_a_unique_key_is_free_when_its_owner_has_left_the_named_states(
    store: Store, unique_for: str, free_when: str
) -> None:
    first = store.jobs.put("queue", unique="key", unique_for=unique_for)
    store.jobs.pop("queue", "worker")
    popped = store.jobs.put("other", unique="key", unique_for=unique_for)
    assert (popped != first) == (free_when == "running")
    if free_when == "running":
        return

    store.jobs.complete(first, "worker")
    completed = store.jobs.put("other", unique="key", unique_for=unique_for)

    assert (completed != first) == (free_when == "complete")


def test_a_unique_key_can_be_owned_for_a_time(store: Store, clock: Clock) -> None:
    first = store.jobs.put("queue", unique="key", unique_for=60)
    store.jobs.pop("queue", "worker")
    store.jobs.complete(first, "worker")

    clock.advance(seconds=59)
    assert store.jobs.put("queue", unique="key", unique_for=60) == first
    clock.advance(seconds=1)
    assert store.jobs.put("queue", unique="key", unique_for=60) != first


OPTIONS: dict[str, Any] = {
    "id": "named",
    "delay": 60,
    "priority": 5,
    "tags": ("red",),
    "retries": 2,
    "depends": ("first",),
    "throttles": ("narrow",),
    "unique": "key",
    "at": 2_000_000_000,
    "expires": 2_000_000_000,
    "timeout": 30,
    "rate_key": "customer",
    "batch": "night",
}
NOT_KEPT = {"unique_for", "unique_mode", "worker", "now"}  # a job does not show them


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_means_the_same_in_put_and_in_bulk_put(store: Store, option: str) -> None:
    store.jobs.put("others", id="first")
    store.jobs.batch_open("night")
    given = {option: OPTIONS[option]}

    one = store.jobs.get(store.jobs.put("queue", "Class", **given))
    assert one is not None
    store.jobs.cancel(one.id)
    [id] = store.jobs.put_many([NewJob(queue="queue", klass="Class", **given)])
    many = store.jobs.get(id)

    plain = store.jobs.get(store.jobs.put("queue", "Class"))
    assert many is not None
    assert plain is not None
    assert replace(one, id="", history=()) == replace(many, id="", history=())
    assert replace(one, id="", history=()) != replace(plain, id="", history=()) or option == "id"


def test_every_option_of_put_is_among_those() -> None:
    arguments = set(inspect.signature(Jobs.put).parameters) - {"self", "queue", "klass", "data"}

    assert arguments - NOT_KEPT == set(OPTIONS)


def test_a_canceled_job_releases_its_unique_key(store: Store) -> None:
    first = store.jobs.put("queue", unique="key")
    store.jobs.cancel(first)

    assert store.jobs.put("queue", unique="key") != first


def test_unknown_words_about_uniqueness_are_refused(qless: Qless) -> None:
    put = ["put", 0, "worker", "queue", "jid", "klass", "{}", 0, "unique", "key"]

    with pytest.raises(BadArgument, match="unique-for"):
        qless(*put, "unique-for", "ever")
    with pytest.raises(BadArgument, match="unique-mode"):
        qless(*put, "unique-mode", "maybe")
    qless(*put, "unique-for", "30", "unique-mode", "error")
    with pytest.raises(UniqueKeyTaken):
        qless(
            "put",
            29,
            "worker",
            "queue",
            "x",
            "klass",
            "{}",
            0,
            "unique",
            "key",
            "unique-mode",
            "error",
        )


# --- arrival --------------------------------------------------------------------------------------


def test_jobs_of_one_time_are_popped_in_the_order_of_their_arrival_after_any_departure(
    store: Store,
) -> None:
    left: list[str] = []
    for number in range(4):
        store.jobs.put("queue", id=f"{number}-z", now=5)
        store.jobs.put("queue", id=f"{number}-a", now=5)
        left += [job.id for job in store.jobs.pop("queue", "worker", now=5)]

    left += [job.id for job in store.jobs.pop("queue", "worker", 9, now=5)]

    assert left == [f"{number}-{name}" for number in range(4) for name in "za"]


def test_jobs_of_one_time_keep_their_order_through_two_layers_of_one_transaction(
    store: Store,
) -> None:
    def work(tx: Tx) -> None:
        first, second = tx.jobs, Jobs(tx.raw)
        for number in range(9):
            (first, second)[number % 2].put("queue", id=f"job-{number}")

    store.transact(work)

    popped = [job.id for job in store.jobs.pop("queue", "worker", 9)]
    assert popped == [f"job-{number}" for number in range(9)]


def test_a_time_that_came_back_is_looked_at_again(store: Store) -> None:
    for jid, now in (("c", 7), ("d", 7), ("a", 3), ("b", 3), ("e", 9)):
        store.jobs.put("queue", id=jid, now=now)

    assert [job.id for job in store.jobs.pop("queue", "worker", 5, now=9)] == list("abcde")


def test_the_tags_and_dependencies_of_one_call_are_limited(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.jobs.arguments.MAX_JOB_PARTS_PER_CALL", 5)
    store.jobs.put("q", id="first")
    job = NewJob(queue="q", tags=("a", "b"), depends=("first",))

    store.jobs.put_many([job])
    with pytest.raises(BadArgument, match="6 tags and dependencies, at most 5 fit one call"):
        store.jobs.put_many([job, job])


def test_a_call_looks_for_cycles_of_dependencies_for_a_limited_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.jobs.put("q", id="first")
    store.jobs.put("q", id="middle")
    store.jobs.put("q", id="last", depends=["middle"])
    job = NewJob(queue="q", id="middle", depends=("first",))
    monkeypatch.setattr("holdfast.call_time.thread_time", count(0, 1_000).__next__)

    with pytest.raises(BatchTooLong, match="looking for cycles of dependencies took more than"):
        store.jobs.put_many([job])
    assert store.jobs.put("q", id="middle", depends=["first"]) == "middle"
