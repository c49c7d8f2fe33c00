"""Commands in general: names, times, numbers, dialects."""

from functools import partial

import pytest

from holdfast.compat.qless import COMMANDS, call, channel
from holdfast.errors import BadArgument, HoldfastError
from holdfast.limits import MAX_JOB_DATA_BYTES, MAX_JOBS_PER_CALL
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless
from tests.plain_keys import keys_below


def refused(store: Store, *words: str) -> str:
    with pytest.raises(HoldfastError) as error:
        store._runner.transact(lambda tx: call(tx, list(words)))
    return error.value.message


def test_a_command_and_its_time_must_be_there(store: Store) -> None:
    assert refused(store) == "Must provide a command"
    assert refused(store, "foo") == "Unknown command foo"
    assert refused(store, "get") == 'Arg "now" missing or not a number: nil'
    assert refused(store, "get", "foo", "jid") == 'Arg "now" missing or not a number: foo'


@pytest.mark.parametrize("now", ["", "nan", "inf", "-inf", "0x10", "1_000", "-1", "1e12", "1e999"])
def test_what_is_no_time_is_refused(store: Store, now: str) -> None:
    assert refused(store, "get", now, "jid").startswith('Arg "now" missing or not a number')


@pytest.mark.parametrize("now", ["0", " 1 ", "+1.5", ".5", "1e3", "1.", "1352075209.123456"])
def test_times_are_decimal_numbers(store: Store, now: str) -> None:
    assert store._runner.transact(lambda tx: call(tx, ["get", now, "jid"])) is None


def test_a_star_is_the_time_of_the_store(qless: Qless, store: Store, clock: Clock) -> None:
    store._runner.transact(lambda tx: call(tx, ["put", "*", "w", "queue", "jid", "k", "{}", "0"]))

    assert qless("get", 0, "jid")["history"][0]["when"] == int(clock())


@pytest.mark.parametrize(
    "command", ["get", "heartbeat", "complete", "fail", "retry", "priority", "depends"]
)
def test_a_command_on_a_job_needs_its_id(store: Store, command: str) -> None:
    assert refused(store, command, "0") == "Job(): no jid provided"
    assert refused(store, command, "0", "") == "Job(): no jid provided"


@pytest.mark.parametrize(
    "command", ["recur.get", "recur.update", "recur.tag", "recur.untag", "unrecur"]
)
def test_a_command_on_a_recurring_job_needs_its_id(store: Store, command: str) -> None:
    assert refused(store, command, "0") == "Recurring(): no jid provided"


@pytest.mark.parametrize(
    "command", ["stats", "length", "peek", "pop", "unfail", "recur", "pause", "unpause"]
)
def test_a_command_on_a_queue_needs_its_name(store: Store, command: str) -> None:
    assert refused(store, command, "0") == "Queue(): no queue name provided"


def test_empty_lists_are_written_as_lua_writes_them(store: Store) -> None:
    for words in (
        ["pop", "0", "queue", "worker", "1"],
        ["peek", "0", "queue", "1"],
        ["multiget", "0"],
        ["queues", "0"],
        ["tag", "0", "top"],
        ["failed", "0"],
    ):
        assert store._runner.transact(partial(call, words=words)) == "{}"


def test_several_jobs_are_got_at_once(qless: Qless) -> None:
    for jid in ("a", "b"):
        qless("put", 0, "worker", "queue", jid, "klass", "{}", 0)

    assert [job["jid"] for job in qless("multiget", 0, "b", "nobody", "a")] == ["b", "a"]


def test_the_older_dialect_puts_without_a_caller(qless: Qless) -> None:
    assert qless("put", 0, "queue", "jid", "klass", "{}", 0, "priority", 3, dialect="G2") == "jid"
    assert qless("get", 0, "jid", dialect="G2")["priority"] == 3


def test_every_command_refuses_nonsense_and_stores_nothing(store: Store) -> None:
    reading = {"bulk.list", "config.get", "failed", "queues", "workers", "track", "multiget"}
    harmless = {"cancel", "timeout", *reading}
    for command in COMMANDS:
        if command not in harmless:
            refused(store, command, "0")
    keys = keys_below(store, store)
    for command in harmless:
        store._runner.transact(partial(call, words=[command, "0"]))

    assert keys_below(store, store) == keys


def test_names_that_are_not_text_are_refused(store: Store) -> None:
    with pytest.raises(BadArgument, match="UTF-8"):
        store.jobs.put("que\ud800ue")


def test_topics_and_channels() -> None:
    assert channel("jobs.worker.a.b") == "ql:w:a.b"
    assert channel("tables.x") is None


# --- what a client may send --------------------------------------------------------------------


@pytest.mark.parametrize("count", ["1e300", "99999999999999999999"])
@pytest.mark.parametrize("list_", ["jobs complete", "jobs running q", "failed g", "tag get t"])
def test_a_page_may_be_longer_than_any_list(store: Store, list_: str, count: str) -> None:
    command, *words = list_.split()

    for page in (["0", count], [count, "1"]):
        reply = store._runner.transact(partial(call, words=[command, "0", *words, *page]))
        assert reply in ([], '{"total":0,"jobs":{}}')


BROKEN = b"caf\xe9".decode("utf-8", "surrogateescape")  # as the server passes it on


@pytest.mark.parametrize(
    "words",
    [
        ["put", "0", BROKEN, "queue", "jid", "klass", "{}", "0"],
        ["put", "0", "worker", BROKEN, "jid", "klass", "{}", "0"],
        ["put", "0", "worker", "queue", "jid", "klass", f'"{BROKEN}"', "0"],
        ["put", "0", "worker", "queue", "jid", "klass", "{}", "0", "unique", BROKEN],
        ["config.set", "0", "application", BROKEN],
        ["cancel", "0", "jid", BROKEN],
        ["queue.forget", "0", BROKEN],
    ],
)
def test_text_that_is_not_utf8_is_refused(store: Store, words: list[str]) -> None:
    assert refused(store, *words).endswith("is not valid UTF-8")


def test_a_job_fails_even_with_a_message_that_is_not_utf8(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0)
    qless("pop", 0, "queue", "worker", 1)

    qless("log", 1, "jid", BROKEN)
    qless("fail", 1, "jid", "worker", "group", BROKEN)

    job = qless("get", 1, "jid")
    assert (job["failure"]["message"], job["history"][2]["what"]) == ("caf?", "caf?")


def test_what_is_refused_is_shown_shortened(store: Store) -> None:
    words = ["put", "0", "worker", "queue", "jid", "klass", "[" + "1," * 10_000, "0"]

    assert len(refused(store, *words)) < 300


@pytest.mark.parametrize(
    "words",
    [
        ["heartbeat", "1", "jid", "worker"],
        ["complete", "1", "jid", "worker", "queue"],
        ["fail", "1", "jid", "worker", "group", "message"],
    ],
)
def test_data_that_is_too_large_is_refused_wherever_it_comes(
    qless: Qless, store: Store, words: list[str]
) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0)
    qless("pop", 0, "queue", "worker", 1)

    assert "at most" in refused(store, *words, f'"{"x" * MAX_JOB_DATA_BYTES}"')
    assert qless("get", 1, "jid")["state"] == "running"


@pytest.mark.parametrize("command", ["multiget", "cancel", "timeout"])
def test_a_command_takes_a_bounded_number_of_jobs(store: Store, command: str) -> None:
    assert "at most" in refused(store, command, "0", *["jid"] * (MAX_JOBS_PER_CALL + 1))
