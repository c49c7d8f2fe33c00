"""Settlements: heartbeat, complete, fail, retry, timeout, and who may."""

import pytest

from holdfast.errors import (
    BadArgument,
    HoldfastError,
    JobLost,
    LockLost,
    UnknownJob,
    WrongState,
)
from holdfast.limits import MAX_JOB_MESSAGE_CHARS
from holdfast.store import Store
from tests.jobs.conftest import Qless


@pytest.fixture
def running(qless: Qless) -> None:
    """A job `jid` that `worker` holds since 0."""
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0)
    qless("pop", 0, "queue", "worker", 1)


STATES = ["waiting", "scheduled", "depends", "failed", "complete"]


def bring_into(qless: Qless, state: str) -> None:
    """A job `jid` in that state."""
    if state == "depends":
        qless("put", 0, "worker", "other", "before", "klass", "{}", 0)
        qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0, "depends", ["before"])
        return
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 10 if state == "scheduled" else 0)
    if state in ("failed", "complete"):
        qless("pop", 0, "queue", "worker", 1)
    if state == "failed":
        qless("fail", 0, "jid", "worker", "group", "message")
    if state == "complete":
        qless("complete", 0, "jid", "worker", "queue", "{}")


# --- refusals -----------------------------------------------------------------------------------

CALLS = {
    "heartbeat": ("jid", "worker"),
    "complete": ("jid", "worker", "queue", "{}"),
    "fail": ("jid", "worker", "group", "message"),
    "retry": ("jid", "queue", "worker"),
}
TEXTS = {
    "heartbeat": "Heartbeat(): Job jid not currently running: {}",
    "complete": "Complete(): Job jid is not currently running: {}",
    "fail": "Fail(): Job jid not currently running: {}",
    "retry": "Retry(): Job jid is not currently running: {}",
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("command", CALLS)
def test_only_a_running_job_can_be_settled(qless: Qless, command: str, state: str) -> None:
    bring_into(qless, state)

    with pytest.raises(WrongState) as refused:
        qless(command, 1, *CALLS[command])

    assert refused.value.message == TEXTS[command].format(state)


@pytest.mark.parametrize("command", CALLS)
def test_a_job_that_is_not_there_cannot_be_settled(qless: Qless, command: str) -> None:
    with pytest.raises(UnknownJob) as refused:
        qless(command, 1, *CALLS[command])

    assert refused.value.message == f"{command.capitalize()}(): Job jid does not exist"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("heartbeat", "Heartbeat(): Job jid given out to another worker: worker"),
        ("complete", "Complete(): Job jid has been handed out to another worker: worker"),
        ("fail", "Fail(): Job jid running with another worker: worker"),
        ("retry", "Retry(): Job jid has been given to another worker: worker"),
    ],
)
@pytest.mark.usefixtures("running")
def test_only_the_holder_can_settle_a_job(qless: Qless, command: str, text: str) -> None:
    args = ["another" if word == "worker" else word for word in CALLS[command]]

    with pytest.raises(JobLost) as refused:
        qless(command, 1, *args)

    assert refused.value.message == text


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(
    ("command", "args"), [("complete", ("worker", "other", "{}")), ("retry", ("other", "worker"))]
)
def test_a_job_is_settled_in_its_own_queue(
    qless: Qless, command: str, args: tuple[str, ...]
) -> None:
    with pytest.raises(JobLost) as refused:
        qless(command, 1, "jid", *args)

    call = command.capitalize()
    assert refused.value.message == f"{call}(): Job jid running in another queue: queue"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["heartbeat"], "Job(): no jid provided"),
        (["heartbeat", "jid"], 'Heartbeat(): Arg "worker" missing'),
        (["heartbeat", "jid", "w", "[}"], 'Heartbeat(): Arg "data" not JSON: [}'),
        (["complete"], "Job(): no jid provided"),
        (["complete", "jid"], 'Complete(): Arg "worker" missing'),
        (["complete", "jid", "w"], 'Complete(): Arg "queue" missing'),
        (["complete", "jid", "w", "q"], 'Complete(): Arg "data" missing or not JSON: nil'),
        (["complete", "jid", "w", "q", "[}"], 'Complete(): Arg "data" missing or not JSON: [}'),
        (["complete", "jid", "w", "q", "{}", "next"], "Odd number of additional args: next"),
        (
            ["complete", "jid", "w", "q", "{}", "next", "n", "delay", "x"],
            'Complete(): Arg "delay" not a number: x',
        ),
        (
            ["complete", "jid", "w", "q", "{}", "next", "n", "depends", "[}"],
            'Complete(): Arg "depends" not JSON: [}',
        ),
        (
            ["complete", "jid", "w", "q", "{}", "delay", "5"],
            'Complete(): "delay" cannot be used without a "next".',
        ),
        (
            ["complete", "jid", "w", "q", "{}", "depends", '["a"]'],
            'Complete(): "depends" cannot be used without a "next".',
        ),
        (["fail", "jid"], 'Fail(): Arg "worker" missing'),
        (["fail", "jid", "w"], 'Fail(): Arg "group" missing'),
        (["fail", "jid", "w", "g"], 'Fail(): Arg "message" missing'),
        (["fail", "jid", "w", "g", "m", "[}"], 'Fail(): Arg "data" not JSON: [}'),
        (["retry", "jid"], 'Retry(): Arg "queue" missing'),
        (["retry", "jid", "q"], 'Retry(): Arg "worker" missing'),
        (["retry", "jid", "q", "w", "x"], 'Retry(): Arg "delay" not a number: x'),
        (["timeout", "jid"], "Timeout(): Job jid does not exist"),
        (["unfail"], "Queue(): no queue name provided"),
        (["unfail", "q"], 'Unfail(): Arg "group" missing'),
        (["unfail", "q", "g", "x"], 'Unfail(): Arg "count" not a number: x'),
    ],
)
def test_malformed_commands_are_refused_on_an_empty_store(
    qless: Qless, words: list[str], text: str
) -> None:
    with pytest.raises(HoldfastError) as refused:
        qless(words[0], 0, *words[1:])

    assert refused.value.message == text


# --- heartbeat ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("running")
def test_a_heartbeat_renews_the_lock_and_shows_whole_seconds(qless: Qless) -> None:
    assert qless("heartbeat", 30.75, "jid", "worker") == 90
    assert qless("get", 31, "jid")["expires"] == 90.75
    assert qless("workers", 31, "worker")["jobs"] == ["jid"]


@pytest.mark.usefixtures("running")
def test_a_heartbeat_may_replace_the_data_byte_for_byte(qless: Qless) -> None:
    qless("heartbeat", 10, "jid", "worker", '{"a":[]}')

    assert qless("get", 10, "jid")["data"] == '{"a":[]}'


@pytest.mark.usefixtures("running")
def test_the_holder_may_heartbeat_after_its_lock_has_ended(qless: Qless) -> None:
    assert qless("heartbeat", 500, "jid", "worker") == 560


@pytest.mark.usefixtures("running")
def test_a_shorter_lock_is_noticed_in_time(qless: Qless) -> None:
    qless("config.set", 1, "heartbeat", 5)
    qless("config.set", 1, "grace-period", 0)
    qless("heartbeat", 1, "jid", "worker")

    assert len(qless("pop", 6, "queue", "another", 1)) == 1


def test_progress_is_kept_with_the_job(store: Store) -> None:
    store.jobs.put("queue", id="jid")
    store.jobs.pop("queue", "worker")

    store.jobs.heartbeat("jid", "worker", progress=0.25, progress_text="a quarter")

    job = store.jobs["jid"].get()
    assert (job.progress, job.progress_text) == (0.25, "a quarter")
    with pytest.raises(BadArgument, match="progress"):
        store.jobs.heartbeat("jid", "worker", progress=2)


# --- complete -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("running")
def test_a_complete_job_is_in_no_queue(qless: Qless) -> None:
    assert qless("complete", 5, "jid", "worker", "queue", '{"a":1}') == "complete"

    job = qless("get", 5, "jid")
    shown = (job["state"], job["queue"], job["worker"], job["expires"], job["data"])
    assert shown == ("complete", "", "", 0, '{"a":1}')
    assert job["history"][-1] == {"what": "done", "when": 5}
    assert qless("jobs", 5, "complete") == ["jid"]
    assert qless("workers", 5, "worker") == {"jobs": {}, "stalled": {}}
    assert qless("queues", 5, "queue")["running"] == 0


@pytest.mark.usefixtures("running")
def test_complete_with_next_moves_the_job_on(qless: Qless) -> None:
    assert qless("complete", 5, "jid", "worker", "queue", "{}", "next", "second") == "waiting"

    job = qless("get", 5, "jid")
    assert (job["queue"], job["state"]) == ("second", "waiting")
    assert [entry["what"] for entry in job["history"]] == ["put", "popped", "done", "put"]
    assert [queue["name"] for queue in qless("queues", 5)] == ["queue", "second"]


@pytest.mark.usefixtures("running")
def test_complete_with_next_and_delay_schedules(qless: Qless) -> None:
    args = ["jid", "worker", "queue", "{}", "next", "second", "delay", 10]

    assert qless("complete", 5, *args) == "scheduled"
    assert qless("get", 5, "jid")["state"] == "scheduled"
    assert len(qless("pop", 15, "second", "worker", 1)) == 1


@pytest.mark.usefixtures("running")
def test_complete_with_next_may_depend_on_others(qless: Qless) -> None:
    qless("put", 1, "worker", "other", "first", "klass", "{}", 0)
    args = ["jid", "worker", "queue", "{}", "next", "second", "depends", ["first"]]

    assert qless("complete", 5, *args) == "depends"
    assert qless("get", 5, "jid")["dependencies"] == ["first"]
    qless("pop", 6, "other", "worker", 1)
    qless("complete", 6, "first", "worker", "other", "{}")
    assert qless("get", 6, "jid")["state"] == "waiting"


def test_complete_gives_the_retries_back(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0, "retries", 2)
    qless("pop", 0, "queue", "worker", 1)
    assert qless("retry", 0, "jid", "queue", "worker") == 1
    qless("pop", 0, "queue", "worker", 1)

    qless("complete", 0, "jid", "worker", "queue", "{}", "next", "second")

    assert qless("get", 0, "jid")["remaining"] == 2


# --- fail ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("running")
def test_a_failed_job_is_in_its_group_and_keeps_the_name_of_its_queue(qless: Qless) -> None:
    assert qless("fail", 5.9, "jid", "worker", "group", "message") == "jid"

    job = qless("get", 6, "jid")
    assert (job["state"], job["queue"], job["worker"], job["expires"]) == ("failed", "queue", "", 0)
    expected = {"group": "group", "message": "message", "when": 5, "worker": "worker"}
    assert job["failure"] == expected
    failed = {"what": "failed", "when": 5, "group": "group", "worker": "worker"}
    assert job["history"][-1] == failed
    assert qless("failed", 6) == {"group": 1}
    assert qless("failed", 6, "group") == {"total": 1, "jobs": ["jid"]}
    assert qless("queues", 6, "queue")["running"] == 0


def test_a_long_message_is_cut_with_a_mark(store: Store) -> None:
    store.jobs.put("queue", id="jid")
    store.jobs.pop("queue", "worker")
    store.jobs.fail("jid", "worker", "group", "x" * (MAX_JOB_MESSAGE_CHARS + 1))

    failure = store.jobs["jid"].get().failure

    assert failure is not None
    assert len(failure.message) == MAX_JOB_MESSAGE_CHARS
    assert failure.message.endswith("[cut]")


# --- retry --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("running")
def test_retry_puts_the_job_back_and_counts(qless: Qless) -> None:
    assert qless("retry", 5, "jid", "queue", "worker") == 4

    job = qless("get", 5, "jid")
    assert (job["state"], job["worker"], job["expires"], job["remaining"]) == ("waiting", "", 0, 4)
    assert [entry["what"] for entry in job["history"]] == ["put", "popped"]
    assert qless("workers", 5, "worker")["jobs"] == {}


@pytest.mark.usefixtures("running")
def test_retry_with_a_delay_schedules(qless: Qless) -> None:
    qless("retry", 5, "jid", "queue", "worker", 10)

    assert qless("get", 5, "jid")["state"] == "scheduled"
    assert qless("pop", 14, "queue", "worker", 1) == {}
    assert len(qless("pop", 15, "queue", "worker", 1)) == 1


def test_retry_without_any_left_fails_the_job(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0, "retries", 0)
    qless("pop", 0, "queue", "worker", 1)

    assert qless("retry", 5, "jid", "queue", "worker") == -1

    job = qless("get", 5, "jid")
    assert (job["state"], job["remaining"]) == ("failed", -1)
    assert job["failure"] == {
        "group": "failed-retries-queue",
        "message": 'Job exhausted retries in queue "queue"',
        "when": 5,
        "worker": "",
    }
    failed = {"what": "failed", "when": 5, "group": "failed-retries-queue"}
    assert job["history"][-1] == failed
    assert qless("stats", 5, "queue", 5)["failures"] == 1


def test_retry_may_say_why(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0, "retries", 1)
    why = {"group": "group", "message": "message", "when": 5, "worker": "worker"}
    for state in ("waiting", "failed"):
        qless("pop", 0, "queue", "worker", 1)

        qless("retry", 5.5, "jid", "queue", "worker", 0, "group", "message")

        job = qless("get", 6, "jid")
        assert (job["state"], job["failure"]) == (state, why)
    assert qless("failed", 6) == {"group": 1}


def test_a_group_without_a_message_names_the_group_only(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0, "retries", 0)
    qless("pop", 0, "queue", "worker", 1)

    qless("retry", 5, "jid", "queue", "worker", 0, "group")

    failure = qless("get", 5, "jid")["failure"]
    assert (failure["group"], failure["worker"]) == ("group", "")
    assert failure["message"] == 'Job exhausted retries in queue "queue"'


# --- complete and pop -----------------------------------------------------------------------------


def test_a_worker_completes_its_job_and_gets_the_next_one_of_the_same_queue(store: Store) -> None:
    for id in ("first", "second", "third"):
        store.jobs.put("queue", id=id)
    store.jobs.put("other", id="elsewhere", priority=9)
    [first] = store.jobs.pop("queue", "worker")

    found = store.jobs.complete_and_pop("first", "worker", 5, lock=first.lock, result="done")

    assert [(job.id, job.state, job.worker) for job in found] == [
        ("second", "running", "worker"),
        ("third", "running", "worker"),
    ]
    assert store.jobs["first"].get().state == "complete"
    assert store.jobs.result("first") == "done"


def test_the_next_job_may_come_from_another_queue_and_the_old_one_go_on(store: Store) -> None:
    store.jobs.put("queue", id="first", now=0)
    store.jobs.put("other", id="second", now=0)
    store.jobs.pop("queue", "worker", now=1)

    [second] = store.jobs.complete_and_pop(
        "first", "worker", pop_from="other", next="queue", data=[1], lock_seconds=5, now=2
    )

    assert (second.id, second.queue, second.expires) == ("second", "other", 7)
    moved = store.jobs["first"].get()
    assert (moved.state, moved.queue, moved.data) == ("waiting", "queue", [1])


def test_who_may_not_complete_gets_no_other_job_either(store: Store) -> None:
    for id in ("first", "second"):
        store.jobs.put("queue", id=id)
    [first] = store.jobs.pop("queue", "worker")

    with pytest.raises(JobLost):
        store.jobs.complete_and_pop("first", "worker", lock=first.lock + 1)
    with pytest.raises(BadArgument):
        store.jobs.complete_and_pop("first", "worker", pop_from="")

    assert store.jobs["first"].get().state == "running"
    assert store.jobs["second"].get().state == "waiting"


def test_a_job_that_ends_lets_the_next_start_in_a_full_queue(store: Store) -> None:
    store.jobs.config_set("queue-max-concurrency", 1)
    for id in ("first", "second"):
        store.jobs.put("queue", id=id)
    store.jobs.pop("queue", "worker", 2)

    [second] = store.jobs.complete_and_pop("first", "worker")

    assert second.id == "second"


# --- timeout ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("running")
def test_timeout_takes_a_job_at_once_without_using_up_a_retry(qless: Qless) -> None:
    assert qless("timeout", 5, "jid") is None

    job = qless("get", 5, "jid")
    assert (job["state"], job["worker"], job["remaining"]) == ("stalled", "", 5)
    assert job["history"][-1] == {"what": "timed-out", "when": 5}
    assert qless("workers", 5, "worker") == {"jobs": {}, "stalled": {}}
    assert qless("queues", 5, "queue")["waiting"] == 1
    with pytest.raises(WrongState, match="not currently running"):
        qless("heartbeat", 6, "jid", "worker")


@pytest.mark.usefixtures("running")
def test_timeout_of_several_is_all_or_nothing(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "idle", "klass", "{}", 0)

    with pytest.raises(WrongState, match=r"Timeout\(\): Job idle not running"):
        qless("timeout", 5, "jid", "idle")

    assert qless("get", 5, "jid")["state"] == "running"
    assert qless("timeout", 5) is None


def test_the_errors_of_the_queue_have_the_statuses_of_http() -> None:
    statuses = {
        error.__name__: error.status for error in (UnknownJob, LockLost, WrongState, BadArgument)
    }

    assert statuses == {"UnknownJob": 404, "JobLost": 409, "WrongState": 409, "BadArgument": 400}
