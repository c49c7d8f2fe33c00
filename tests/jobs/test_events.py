"""Events: the very texts, channels and sequences that Qless clients compare."""

import pytest

from holdfast.errors import HoldfastError
from holdfast.store import Store
from tests.jobs.conftest import Events, Qless


def put(qless: Qless, jid: str = "jid", now: float = 0, *options: object) -> None:
    qless("put", now, "worker", "queue", jid, "klass", "{}", 0, *options)


def test_put_is_logged(qless: Qless, events: Events) -> None:
    put(qless)

    assert events.new() == [("ql:log", '{"jid":"jid","event":"put","queue":"queue"}')]


def test_a_tracked_job_publishes_its_put(qless: Qless, events: Events) -> None:
    put(qless)
    qless("track", 0, "track", "jid")
    events.new()

    put(qless)

    assert [name for name, _ in events.new()] == ["ql:log", "ql:put"]


def test_a_holder_that_loses_its_job_by_a_put_is_told(qless: Qless, events: Events) -> None:
    put(qless)
    qless("pop", 0, "queue", "holder", 1)
    events.new()

    put(qless)

    lost = '{"jid":"jid","event":"lock_lost","worker":"holder"}'
    assert events.new()[1:] == [("ql:w:holder", lost), ("ql:log", lost)]


def test_a_holder_that_puts_its_own_job_is_not_told(qless: Qless, events: Events) -> None:
    put(qless)
    qless("pop", 0, "queue", "worker", 1)
    events.new()

    put(qless)

    assert [name for name, _ in events.new()] == ["ql:log"]


def test_the_older_dialect_names_no_caller_so_every_holder_is_told(
    qless: Qless, events: Events
) -> None:
    qless("put", 0, "queue", "jid", "klass", "{}", 0, dialect="G2")
    qless("pop", 0, "queue", "worker", 1, dialect="G2")
    events.new()

    qless("put", 0, "queue", "jid", "klass", "{}", 0, "priority", 1, dialect="G2")

    assert [name for name, _ in events.new()] == ["ql:log", "ql:w:worker", "ql:log"]


def test_an_expired_lock_is_announced(qless: Qless, events: Events) -> None:
    put(qless)
    qless("track", 0, "track", "jid")
    qless("pop", 0, "queue", "holder", 1)
    events.new()

    qless("pop", 60, "queue", "worker", 1)

    lost = '{"jid":"jid","event":"lock_lost","worker":"holder"}'
    assert events.new() == [("ql:stalled", "jid"), ("ql:w:holder", lost), ("ql:log", lost)]


def test_exhausted_retries_are_announced(qless: Qless, events: Events) -> None:
    qless("config.set", 0, "grace-period", 0)
    put(qless, "jid", 0, "retries", 0)
    qless("track", 0, "track", "jid")
    qless("pop", 0, "queue", "holder", 1)
    events.new()

    qless("pop", 60, "queue", "worker", 1)

    found = events.new()
    assert [name for name, _ in found] == [
        "ql:stalled",
        "ql:w:holder",
        "ql:log",
        "ql:failed",
        "ql:log",
    ]
    assert found[-1][1] == (
        '{"message":"Job exhausted retries in queue \\"queue\\"","jid":"jid",'
        '"group":"failed-retries-queue","event":"failed","worker":"holder"}'
    )


def test_complete_is_announced(qless: Qless, events: Events) -> None:
    put(qless)
    qless("track", 0, "track", "jid")
    qless("pop", 0, "queue", "worker", 1)
    events.new()

    qless("complete", 0, "jid", "worker", "queue", "{}", "next", "second")
    qless("pop", 0, "second", "worker", 1)
    qless("complete", 0, "jid", "worker", "second", "{}")

    assert events.new() == [
        ("ql:completed", "jid"),
        ("ql:log", '{"jid":"jid","to":"second","event":"advanced","queue":"queue"}'),
        ("ql:popped", "jid"),
        ("ql:completed", "jid"),
        ("ql:log", '{"jid":"jid","event":"completed","queue":"second"}'),
    ]


def test_fail_is_announced(qless: Qless, events: Events) -> None:
    put(qless)
    qless("track", 0, "track", "jid")
    qless("pop", 0, "queue", "worker", 1)
    events.new()

    qless("fail", 0, "jid", "worker", "group", "message")

    text = '{"message":"message","jid":"jid","group":"group","event":"failed","worker":"worker"}'
    assert events.new() == [("ql:log", text), ("ql:failed", "jid")]


def test_an_exhausted_retry_is_announced_to_trackers_only(qless: Qless, events: Events) -> None:
    put(qless, "jid", 0, "retries", 0)
    qless("track", 0, "track", "jid")
    qless("pop", 0, "queue", "worker", 1)
    events.new()

    qless("retry", 0, "jid", "queue", "worker")

    assert events.new() == [("ql:failed", "jid")]


def test_cancel_is_announced(qless: Qless, events: Events) -> None:
    put(qless, "held")
    put(qless, "free")
    qless("pop", 0, "queue", "worker", 1)
    qless("track", 0, "track", "held")
    events.new()

    qless("cancel", 0, "held", "free", "nobody")

    held = '{"jid":"held","queue":"queue","event":"canceled","worker":"worker"}'
    free = '{"jid":"free","queue":"queue","event":"canceled","worker":""}'
    assert events.new() == [
        ("ql:log", held),
        ("ql:w:worker", held),
        ("ql:canceled", "held"),
        ("ql:log", free),
    ]


def test_timeout_is_announced(qless: Qless, events: Events) -> None:
    put(qless)
    qless("pop", 0, "queue", "worker", 1)
    events.new()

    qless("timeout", 0, "jid")

    lost = '{"jid":"jid","event":"lock_lost","worker":"worker"}'
    assert events.new() == [("ql:w:worker", lost), ("ql:log", lost)]


def test_changes_of_the_configuration_are_announced(qless: Qless, events: Events) -> None:
    qless("config.set", 0, "heartbeat", 30)
    qless("config.unset", 0, "heartbeat")

    assert events.new() == [
        ("ql:log", '{"option":"heartbeat","event":"config_set","value":"30"}'),
        ("ql:log", '{"event":"config_unset","option":"heartbeat"}'),
    ]


def test_nothing_else_is_announced(qless: Qless, events: Events) -> None:
    put(qless)
    put(qless, "after", 0, "depends", ["jid"])
    qless("pop", 0, "queue", "worker", 1)
    events.new()

    qless("heartbeat", 0, "jid", "worker")
    qless("tag", 0, "add", "jid", "tag")
    qless("priority", 0, "jid", 1)
    qless("log", 0, "jid", "message")
    qless("pause", 0, "queue")
    qless("unpause", 0, "queue")
    qless("recur", 0, "queue", "r", "klass", "{}", "interval", 60, 0)
    qless("depends", 0, "after", "off", "all")
    qless("retry", 0, "jid", "queue", "worker")

    assert events.new() == []


def test_a_refused_command_publishes_nothing(qless: Qless, events: Events) -> None:
    put(qless)
    events.new()

    with pytest.raises(HoldfastError):
        put(qless, "jid", 0, "depends", ["jid"])

    assert events.new() == []


def test_texts_are_plain_utf_8(qless: Qless, events: Events) -> None:
    put(qless, "jöb/1")

    assert events.new() == [("ql:log", '{"jid":"jöb/1","event":"put","queue":"queue"}')]


def test_progress_of_a_tracked_job_is_announced(store: Store, events: Events) -> None:
    store.jobs.put("queue", id="jid")
    store.jobs.track("jid")
    store.jobs.pop("queue", "worker")
    events.new()

    store.jobs.heartbeat("jid", "worker", progress=0.5, progress_text="half")

    text = '{"jid":"jid","event":"progress","progress":0.5,"text":"half"}'
    assert events.new() == [("ql:progress", text)]
