"""Additions to the originals as commands and options of Qless (section 13 of the spec)."""

from typing import Any

import pytest

from holdfast.compat.qless import batch_commands, call
from holdfast.engine.contract import Transaction
from holdfast.errors import HoldfastError
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless
from tests.server.running import RawClient

NOW = 1_700_000_000  # the clock of the tests: rates and deadlines follow the store's own
SUCCESS = {"queue": "after", "jid": "success", "klass": "k"}
SETTLED = {"queue": "after", "jid": "settled", "klass": "k", "rate-key": "ann"}


def put(qless: Qless, now: float, jid: str, *options: Any, queue: str = "work") -> Any:
    return qless("put", now, "worker", queue, jid, "klass", "{}", 0, *options)


def finish(qless: Qless, now: float, *jids: str) -> None:
    qless("pop", now, "work", "worker", len(jids))
    for jid in jids:
        qless("complete", now, jid, "worker", "work", "{}")


def followers(qless: Qless, now: float) -> set[str]:
    return {job["jid"] for job in qless("peek", now, "after", 9)}


def refused(store: Store, *words: str) -> str:
    with pytest.raises(HoldfastError) as error:
        store._runner.transact(lambda tx: call(tx, list(words)))
    return error.value.message


# --- batches ------------------------------------------------------------------------------------


@pytest.mark.every_engine
def test_a_batch_puts_its_callbacks_and_tells_its_counts(qless: Qless) -> None:
    opened = qless("batch.open", 1, "b", "on-success", SUCCESS, "on-complete", SETTLED)
    put(qless, 1, "a", "batch", "b")
    put(qless, 1, "c", "batch", "b")
    counts = {"total": 2, "complete": 0, "failed": 0, "canceled": 0, "pending": 2}
    shown = {"id": "b", "opened": 1, "closed": 2, **counts, "settled": False}
    assert qless("batch.close", 2, "b") == shown

    finish(qless, 3, "a")
    assert followers(qless, 3) == set()
    finish(qless, 4, "c")

    assert opened == "b"
    assert followers(qless, 4) == {"success", "settled"}
    assert qless("batch.get", 4, "b") == {**shown, "complete": 2, "pending": 0, "settled": True}
    assert qless("batch.jobs", 4, "b") == ["a", "c"]
    assert qless("batch.jobs", 4, "b", "a", 5) == ["c"]
    assert (qless("get", 4, "a")["batch"], qless("get", 4, "settled")["rate_key"]) == ("b", "ann")
    assert (qless("batch.forget", 5, "b"), qless("batch.forget", 5, "b")) == (1, 0)
    assert qless("batch.get", 5, "b") is None


@pytest.mark.every_engine
def test_a_batch_is_canceled_as_a_whole_by_command(qless: Qless) -> None:
    qless("batch.open", 1, "b", "on-success", SUCCESS, "on-complete", SETTLED)
    jobs = [{"queue": "work", "jid": jid, "batch": "b"} for jid in ("a", "c", "d")]
    qless("mput", 1, "worker", jobs)
    finish(qless, 2, "a")

    assert qless("batch.cancel", 3, "b") == 2

    assert followers(qless, 3) == {"settled"}
    found = qless("batch.get", 3, "b")
    assert (found["complete"], found["canceled"], found["settled"]) == (1, 2, True)


def test_a_batch_too_large_for_one_command_is_not_canceled(
    qless: Qless, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_commands, "MAX_JOBS_PER_CALL", 1)
    qless("batch.open", 1, "b")
    put(qless, 1, "a", "batch", "b")
    put(qless, 1, "c", "batch", "b")

    text = "Batch(): b has 2 jobs, at most 1 fit one command"
    assert refused(store, "batch.cancel", "2", "b") == text
    assert qless("batch.get", 2, "b")["closed"] is None


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("batch.open 1", 'Batch(): Arg "id" missing'),
        ("batch.open 1 open", "batch 'open' exists already"),
        ("batch.open 1 b on-success", "Odd number of additional args: on-success"),
        ("batch.open 1 b on-succes {}", 'Batch(): Unrecognized option "on-succes"'),
        ("batch.open 1 b on-success {", 'Batch(): Arg "on-success" not JSON: {'),
        (
            "batch.open 1 b on-success {}",
            'Batch(): Arg "on-success" not as expected: it needs the field `queue`',
        ),
        (
            "batch.open 1 b on-complete []",
            'Batch(): Arg "on-complete" not as expected: it must be an object',
        ),
        ('batch.open 1 b on-complete {"queue":""}', 'Batch(): Arg "queue" missing'),
        ('batch.open 1 b on-complete {"queue":"q","tags":[""]}', 'Batch(): Arg "tag" missing'),
        ("batch.close 1 nothing", "there is no batch 'nothing'"),
        ("batch.cancel 1 nothing", "there is no batch 'nothing'"),
        ("batch.jobs 1 b a x", 'Batch(): Arg "count" not a number: x'),
        ("put 1 w q j k {} 0 batch nothing", "there is no batch 'nothing'"),
        ("put 1 w q j k {} 0 batch closed", "batch 'closed' is closed: no more jobs"),
        ("batch.forget 1 open", "batch 'open' has jobs that are not settled"),
    ],
)
def test_batch_commands_say_what_is_wrong(
    store: Store, qless: Qless, words: str, text: str
) -> None:
    qless("batch.open", 1, "open")
    qless("batch.open", 1, "closed")
    qless("batch.close", 1, "closed")

    assert refused(store, *words.split()).startswith(text)


# --- options of put, and what is shown of them ----------------------------------------------------


def test_a_rate_limits_a_queue_and_queues_tell_for_how_long(qless: Qless) -> None:
    qless("config.set", NOW, "work-rate", "1/60")
    put(qless, NOW, "a")
    put(qless, NOW, "b")
    assert qless("queues", NOW, "work")["limited"] == 0

    assert [job["jid"] for job in qless("pop", NOW, "work", "w", 5)] == ["a"]

    seconds = qless("queues", NOW, "work")["limited"]
    assert 60 <= seconds < 65
    assert qless("queues", NOW + 30)[0]["limited"] == seconds - 30
    qless("config.set", NOW, "grace-period", 600)
    assert [job["jid"] for job in qless("pop", NOW + seconds, "work", "w", 5)] == ["b"]


@pytest.mark.every_engine
def test_a_rate_key_limits_the_jobs_of_one_customer(qless: Qless) -> None:
    qless("config.set", NOW, "work-rate-per-key", "1/60")
    for jid, key in (("a", "ann"), ("b", "ann"), ("c", "ben")):
        put(qless, NOW, jid, "rate-key", key)

    assert [job["jid"] for job in qless("pop", NOW, "work", "w", 5)] == ["a", "c"]
    assert qless("get", NOW, "b")["rate_key"] == "ann"
    qless("config.set", NOW, "grace-period", 600)
    assert [job["jid"] for job in qless("pop", NOW + 65, "work", "w", 5)] == ["b"]


def test_a_job_that_has_not_started_in_time_is_dropped_and_counted(qless: Qless) -> None:
    put(qless, NOW, "late", "expires", NOW + 10)
    put(qless, NOW, "b", "timeout", 2.5)
    assert qless("get", NOW, "late")["start_by"] == NOW + 10

    [popped] = qless("pop", NOW + 11, "work", "w", 5)

    assert (popped["jid"], popped["timeout"]) == ("b", 2.5)
    assert qless("get", NOW + 11, "late") is None
    assert qless("stats", NOW + 11, "work", NOW)["expired"] == 1


def test_a_job_can_be_put_for_a_moment(qless: Qless) -> None:
    put(qless, 1, "a", "at", 50)

    assert qless("get", 1, "a")["state"] == "scheduled"
    assert [job["jid"] for job in qless("pop", 50, "work", "w", 1)] == ["a"]


@pytest.mark.every_engine
def test_a_dead_letter_tells_where_it_came_from_and_goes_back(qless: Qless) -> None:
    qless("config.set", 1, "work-dead-letter", "dead")
    put(qless, 1, "a")
    qless("pop", 1, "work", "w", 1)
    qless("fail", 2, "a", "w", "broken", "it broke")

    letter = qless("get", 2, "a")
    assert (letter["queue"], letter["state"], letter["from"]) == ("dead", "waiting", "work")
    assert letter["failure"]["group"] == "broken"
    qless("bulk.start", 3, "retry", {"queue": "dead"}, "id", "back")
    assert qless("bulk.step", 3, "back")["changed"] == 1

    assert qless("get", 3, "a")["queue"] == "work"
    assert "from" not in qless("get", 3, "a")


def test_a_result_is_kept_for_its_own_time(qless: Qless, store: Store, clock: Clock) -> None:
    put(qless, 1, "a")
    qless("pop", 1, "work", "w", 1)
    qless("complete", 2, "a", "w", "work", "{}", "result", [7], "result-ttl", 60)
    assert qless("result", 2, "a") == [7]

    clock.advance(seconds=61)

    assert qless("result", 2, "a") is None


def test_progress_is_shown_with_the_job(qless: Qless) -> None:
    put(qless, 1, "a", "throttles", ["api"])
    qless("pop", 1, "work", "w", 1)
    qless("heartbeat", 2, "a", "w", "{}", "progress", 0.5, "text", "half")

    job = qless("get", 2, "a")
    assert (job["progress"], job["progress_text"]) == (0.5, "half")
    assert job["throttles"] == ["api"]


def test_a_job_without_additions_has_the_keys_that_clients_know(qless: Qless) -> None:
    put(qless, 1, "a")
    finish(qless, 2, "a")

    assert set(qless("get", 2, "a")) == {
        *("jid", "klass", "state", "queue", "worker", "tracked", "priority", "expires", "retries"),
        *("remaining", "data", "tags", "history", "failure", "spawned_from_jid"),
        *("dependents", "dependencies"),
    }
    assert len(qless("queues", 2, "work")) == 8
    assert len(qless("stats", 2, "work", 2)) == 5


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("rate-key", "Odd number of additional args: rate-key"),
        ("expires soon", 'Put(): Arg "expires" not a number: soon'),
        ("expires 1", 'Put(): Arg "expires" must be later than now'),
        ("timeout x", 'Put(): Arg "timeout" not a number: x'),
        ("timeout -1", 'Put(): Arg "timeout" must not be below 0'),
        ("at x", 'Put(): Arg "at" not a number: x'),
    ],
)
def test_options_of_put_are_checked(store: Store, options: str, text: str) -> None:
    words = ["put", "5", "w", "q", "j", "k", "{}", "0", *options.split()]
    assert refused(store, *words).startswith(text)


def test_an_empty_rate_key_is_refused_and_an_unknown_option_ignored(
    store: Store, qless: Qless
) -> None:
    words = ["put", "5", "w", "q", "j", "k", "{}", "0"]
    assert refused(store, *words, "rate-key", "") == 'Put(): Arg "rate-key" missing'

    assert put(qless, 5, "j", "rate_key", "", "shade", "red") == "j"


# --- search and bulk actions ----------------------------------------------------------------------


@pytest.mark.every_engine
def test_jobs_are_found_a_page_at_a_time(qless: Qless) -> None:
    for number in range(5):
        put(qless, number, f"job-{number}", "tags", ["even" if number % 2 == 0 else "odd"])

    page = qless("search", 9, {"queue": "work", "tag": "even"}, "count", 2)
    assert [job["jid"] for job in page["jobs"]] == ["job-0", "job-2"]
    assert (page["searched"], page["of"]) == (2, 3)
    page = qless("search", 9, {"queue": "work", "tag": "even"}, "cursor", page["cursor"])

    assert [job["jid"] for job in page["jobs"]] == ["job-4"]
    assert page["cursor"] is None
    assert qless("search", 9, {"state": "failed"}) == {
        **{"jobs": {}, "cursor": None, "searched": 0, "of": 0},
    }
    found = qless("search", 9, {"since": 3, "klass": "klass", "text": "{"})["jobs"]
    assert [job["jid"] for job in found] == ["job-3", "job-4"]


@pytest.mark.every_engine
def test_a_bulk_action_changes_what_a_search_finds(qless: Qless) -> None:
    for jid in ("a", "b"):
        put(qless, NOW, jid)

    started = qless("bulk.start", NOW, "priority", {"queue": "work"}, "priority", 7, "id", "x")
    assert (started["action"], started["of"], started["priority"]) == ("priority", 2, 7)
    done = qless("bulk.step", NOW, "x")

    assert (done["state"], done["changed"], done["passed_over"]) == ("done", 2, 0)
    assert qless("bulk.get", NOW, "x") == done == qless("bulk.stop", NOW, "x")
    assert qless("bulk.list", NOW) == [done]
    assert qless("get", NOW, "a")["priority"] == 7
    assert qless("bulk.get", NOW, "y") is None


def test_a_bulk_action_can_be_stopped(qless: Qless, store: Store) -> None:
    put(qless, NOW, "a")

    def start_and_stop(tx: Transaction) -> Any:
        words = [str(NOW), "move", '{"queue":"work"}', "queue", "other", "id", "y"]
        call(tx, ["bulk.start", *words])
        return call(tx, ["bulk.stop", str(NOW), "y"])

    assert '"state":"stopped"' in store._runner.transact(start_and_stop)
    assert qless("get", NOW, "a")["queue"] == "work"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("search 1", 'Search(): Arg "search" missing or not JSON: nil'),
        ("search 1 {", 'Search(): Arg "search" missing or not JSON: {'),
        ('search 1 {"que":1}', 'Search(): Arg "search" not as expected: it has no field `que`'),
        ('search 1 {"state":"x"}', 'Search(): Arg "search" not as expected: `state` can\'t be'),
        ("search 1 {} count x", 'Search(): Arg "count" not a number: x'),
        ("search 1 {} count -1", 'Search(): Arg "count" must not be negative'),
        ("search 1 {} count 10001", "10001 jobs, at most 10000 fit one call"),
        ("search 1 {} cursor x", 'Search(): Arg "cursor" is not one that a search has returned'),
        ("search 1 {} page 2", 'Search(): Unrecognized option "page"'),
        ("bulk.start 1", 'Bulk(): Arg "action" missing'),
        ("bulk.start 1 cancel", 'Bulk(): Arg "search" missing or not JSON: nil'),
        ("bulk.start 1 cancle {}", "unknown action 'cancle', did you mean 'cancel'?"),
        ("bulk.start 1 move {}", "the action move needs queue"),
        ("bulk.start 1 cancel {} tag x", "the action cancel takes no tag"),
        ("bulk.start 1 priority {} priority x", 'Bulk(): Arg "priority" not a number: x'),
        ("bulk.step 1 nothing", "there is no bulk action 'nothing'"),
    ],
)
def test_searches_and_bulk_actions_say_what_is_wrong(store: Store, words: str, text: str) -> None:
    assert refused(store, *words.split()).startswith(text)


# --- over the wire ------------------------------------------------------------------------------


def test_additions_are_commands_with_and_without_a_script(client: RawClient) -> None:
    script = "function QlessAPI.put(now, me, queue, jid, klass) end -- with additions"
    evalsha = ("EVALSHA", client.ask("SCRIPT", "LOAD", script), "0")

    assert client.ask(*evalsha, "batch.open", "1", "b") == b"b"
    put = ("w", "q", "a", "k", "{}", "0", "batch", "b", "rate-key", "ann")
    assert client.ask("QLESS", "put", "1", *put) == b"a"
    assert b'"total":1' in client.ask(*evalsha, "batch.close", "2", "b")
    assert b'"jid":"a"' in client.ask(*evalsha, "search", "2", '{"queue":"q"}')
    client.ask(*evalsha, "bulk.start", "3", "cancel", '{"queue":"q"}', "id", "x")
    assert b'"changed":1' in client.ask("QLESS", "bulk.step", "3", "x")
    assert client.ask("QLESS", "batch.cancel", "4", "b") == 0
    error = str(client.ask(*evalsha, "batch.close", "5", "c"))
    assert error.endswith("user_script:1: there is no batch 'c'")
