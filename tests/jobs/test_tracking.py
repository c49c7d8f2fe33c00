"""Tracking, the log in a job's history, and priorities from outside."""

import pytest

from holdfast.errors import BadArgument, HoldfastError, UnknownJob
from holdfast.store import Store
from tests.jobs.conftest import Events, Qless


def put(qless: Qless, jid: str, now: float = 0) -> None:
    qless("put", now, "worker", "queue", jid, "klass", "{}", 0)


def test_tracked_jobs_are_listed_in_the_order_in_which_tracking_began(qless: Qless) -> None:
    for jid in ("a", "b", "c"):
        put(qless, jid)

    assert qless("track", 2, "track", "a") == "1"
    assert qless("track", 1, "TRACK", "b") == "1"
    assert qless("track", 3, "track", "a") == "0"

    found = qless("track", 3)
    assert [job["jid"] for job in found["jobs"]] == ["b", "a"]
    assert found["expired"] == {}
    assert qless("get", 3, "a")["tracked"] is True
    assert qless("get", 3, "c")["tracked"] is False


def test_jobs_that_are_gone_stay_on_the_list_until_they_are_untracked(qless: Qless) -> None:
    put(qless, "a")
    qless("track", 0, "track", "a")
    qless("cancel", 0, "a")

    assert qless("track", 0) == {"jobs": {}, "expired": ["a"]}
    put(qless, "a")
    assert qless("get", 0, "a")["tracked"] is True
    qless("cancel", 0, "a")
    assert qless("track", 0, "untrack", "a") == "1"
    assert qless("track", 0, "untrack", "a") == "0"
    assert qless("track", 0) == {"jobs": {}, "expired": {}}


def test_track_and_untrack_are_published_even_if_nothing_changes(
    qless: Qless, events: Events
) -> None:
    put(qless, "a")
    events.new()

    for action in ("track", "track", "untrack", "untrack"):
        qless("track", 0, action, "a")

    assert events.new() == [
        ("ql:track", "a"),
        ("ql:track", "a"),
        ("ql:untrack", "a"),
        ("ql:untrack", "a"),
    ]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["track"], 'Track(): Arg "jid" missing'),
        (["track", "nobody"], "Track(): Job does not exist"),
        (["foo", "nobody"], "Track(): Job does not exist"),
        (["foo", "jid"], 'Track(): Unknown action "foo"'),
    ],
)
def test_malformed_track_commands_are_refused(qless: Qless, words: list[str], text: str) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0)

    with pytest.raises(HoldfastError) as refused:
        qless("track", 0, *words)

    assert refused.value.message == text


# --- log ----------------------------------------------------------------------------------------


def test_anybody_may_write_into_the_history(qless: Qless) -> None:
    put(qless, "jid")

    assert qless("log", 5.5, "jid", "hello", {"a": 1, "what": "no", "when": "no"}) is None
    qless("log", 6, "jid", "world")

    history = qless("get", 6, "jid")["history"]
    assert history[1:] == [{"a": 1, "what": "hello", "when": 5}, {"what": "world", "when": 6}]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Log(): Argument 'jid' missing"),
        (["jid"], "Log(): Argument 'message' missing"),
        (["jid", "m", "[]"], "Log(): Argument 'data' not a JSON object: []"),
        (["jid", "m", "x"], "Log(): Argument 'data' not a JSON object: x"),
        (["jid", "m", "{}"], "Log(): Job jid does not exist"),
    ],
)
def test_malformed_logs_are_refused(qless: Qless, words: list[str], text: str) -> None:
    with pytest.raises(HoldfastError) as refused:
        qless("log", 0, *words)

    assert refused.value.message == text


@pytest.mark.parametrize("value", [10**30, object(), "\ud800"])
def test_what_a_history_cannot_hold_is_refused(store: Store, value: object) -> None:
    store.jobs.put("queue", id="jid")

    with pytest.raises(BadArgument, match="data"):
        store.jobs.log("jid", "message", {"x": [value]})

    assert len(store.jobs["jid"].get().history) == 1


def test_the_history_keeps_its_first_entry_and_the_newest(qless: Qless) -> None:
    qless("config.set", 0, "max-job-history", 5)
    for now in range(100):
        put(qless, "jid", now)

    history = qless("get", 100, "jid")["history"]

    assert [entry["when"] for entry in history] == [0, 96, 97, 98, 99]


@pytest.mark.parametrize(("limit", "length"), [(None, 100), ("0", 150), ("-1", 150), ("1", 1)])
def test_the_length_of_histories_is_configured(
    qless: Qless, limit: str | None, length: int
) -> None:
    if limit is not None:
        qless("config.set", 0, "max-job-history", limit)
    put(qless, "jid")
    for now in range(1, 150):
        qless("log", now, "jid", "again")

    assert len(qless("get", 0, "jid")["history"]) == length


# --- priority -----------------------------------------------------------------------------------


def test_a_priority_is_shown_and_answered(qless: Qless) -> None:
    put(qless, "jid")

    assert qless("priority", 0, "jid", "2.75") == 2
    assert qless("get", 0, "jid")["priority"] == 2.75
    assert qless("priority", 0, "jid", "-3") == -3


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Job(): no jid provided"),
        (["jid"], 'Priority(): Arg "priority" missing or not a number: nil'),
        (["jid", "x"], 'Priority(): Arg "priority" missing or not a number: x'),
        (["jid", "1"], "Priority(): Job jid does not exist"),
    ],
)
def test_malformed_priorities_are_refused(qless: Qless, words: list[str], text: str) -> None:
    with pytest.raises(HoldfastError) as refused:
        qless("priority", 0, *words)

    assert refused.value.message == text


def test_a_running_job_keeps_its_lock_when_its_priority_changes(qless: Qless) -> None:
    put(qless, "jid")
    qless("pop", 0, "queue", "worker", 1)

    qless("priority", 1, "jid", 9)

    job = qless("get", 1, "jid")
    assert (job["state"], job["priority"]) == ("running", 9)


def test_tracking_and_logs_from_python(store: Store) -> None:
    store.jobs.put("queue", id="jid")

    assert store.jobs.track("jid") is True
    store.jobs.log("jid", "hello", {"a": 1})
    store.jobs.priority("jid", 3)

    [job] = store.jobs.tracked().jobs
    assert (job.priority, job.history[-1].more) == (3, {"a": 1})
    assert store.jobs.untrack("jid") is True
    with pytest.raises(UnknownJob):
        store.jobs.track("nobody")
    with pytest.raises(BadArgument):
        store.jobs.log("jid", "")


def test_a_job_that_was_timed_out_stays_stalled_when_its_priority_changes(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0)
    qless("pop", 0, "queue", "worker", 1)
    qless("timeout", 1, "jid")

    qless("priority", 2, "jid", 9)

    assert qless("get", 2, "jid")["state"] == "stalled"
