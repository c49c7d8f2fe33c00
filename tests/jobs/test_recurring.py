"""Recurring jobs: intervals, catching up, backlogs, updates."""

import math
from typing import Any

import pytest

from holdfast.errors import BadArgument, HoldfastError, UnknownRecurringJob
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Events, Qless


def jids(jobs: object) -> list[str]:
    return [job["jid"] for job in jobs] if isinstance(jobs, list) else []


def recur(qless: Qless, now: float = 0, offset: float = 0, *options: object) -> None:
    qless("recur", now, "queue", "jid", "klass", "{}", "interval", 60, offset, *options)


def test_a_recurring_job_shows_its_attributes(qless: Qless) -> None:
    options = ["priority", 1, "tags", ["a"], "retries", 3, "backlog", 2]
    assert qless("recur", 0, "queue", "jid", "klass", "{}", "interval", 60, 5, *options) == "jid"

    assert qless("recur.get", 0, "jid") == {
        "jid": "jid",
        "klass": "klass",
        "state": "recur",
        "queue": "queue",
        "priority": 1,
        "interval": 60,
        "retries": 3,
        "count": 0,
        "data": "{}",
        "tags": ["a"],
        "backlog": 2,
    }
    assert qless("recur.get", 0, "nobody") is None
    assert qless("get", 0, "jid") is None
    assert qless("jobs", 0, "recurring", "queue") == ["jid"]
    assert [queue["recurring"] for queue in qless("queues", 0)] == [1]


def test_a_spawned_job_is_made_from_its_template(qless: Qless) -> None:
    recur(qless, 0, 0, "priority", 2, "tags", ["a"], "retries", 7)

    [job] = qless("pop", 0, "queue", "worker", 1)

    assert (job["jid"], job["spawned_from_jid"]) == ("jid-1", "jid")
    shown = (job["priority"], job["tags"], job["retries"], job["remaining"], job["klass"])
    assert shown == (2, ["a"], 7, 7, "klass")
    assert qless("recur.get", 0, "jid")["count"] == 1
    assert qless("pop", 59, "queue", "worker", 1) == {}
    assert jids(qless("pop", 60, "queue", "worker", 1)) == ["jid-2"]


def test_the_first_run_comes_after_the_offset(qless: Qless) -> None:
    recur(qless, 0, 10)

    assert qless("peek", 9, "queue", 5) == {}
    assert jids(qless("peek", 10, "queue", 5)) == ["jid-1"]


def test_a_queue_that_nobody_popped_catches_up_run_by_run(qless: Qless) -> None:
    recur(qless)

    jobs = qless("pop", 540, "queue", "worker", 100)

    assert jids(jobs) == [f"jid-{n}" for n in range(1, 11)]
    assert [job["history"][0]["when"] for job in jobs] == list(range(0, 600, 60))
    assert qless("stats", 540, "queue", 0)["wait"]["mean"] == 270


def test_no_more_are_spawned_than_the_pop_needs(qless: Qless) -> None:
    recur(qless)

    assert jids(qless("pop", 540, "queue", "worker", 3)) == ["jid-1", "jid-2", "jid-3"]
    assert qless("recur.get", 540, "jid")["count"] == 3
    assert jids(qless("pop", 540, "queue", "worker", 3)) == ["jid-4", "jid-5", "jid-6"]


def test_a_backlog_forgets_all_but_the_newest_runs(qless: Qless) -> None:
    recur(qless, 0, 60, "backlog", 1)

    jobs = qless("pop", 600, "queue", "worker", 10)

    assert [(job["jid"], job["history"][0]["when"]) for job in jobs] == [
        ("jid-1", 540),
        ("jid-2", 600),
    ]


def test_runs_are_at_whole_seconds(qless: Qless) -> None:
    recur(qless, 1352375209.75)

    [job] = qless("pop", 1352375210, "queue", "worker", 1)

    assert job["history"][0]["when"] == 1352375209


def test_recurring_again_replaces_all_but_the_count(qless: Qless) -> None:
    recur(qless, 0, 0, "priority", 5, "tags", ["a"])
    qless("pop", 0, "queue", "worker", 1)

    qless("recur", 10, "other", "jid", "other", "[]", "interval", 30, 5)

    found = qless("recur.get", 10, "jid")
    shown = (found["queue"], found["priority"], found["tags"], found["count"], found["klass"])
    assert shown == ("other", 0, {}, 1, "other")
    assert qless("pop", 100, "queue", "worker", 5) == {}
    assert jids(qless("pop", 15, "other", "worker", 1)) == ["jid-2"]


def test_a_new_interval_moves_the_next_run_by_the_difference(qless: Qless) -> None:
    recur(qless)
    qless("pop", 0, "queue", "worker", 1)

    assert qless("recur.update", 1, "jid", "interval", 10) == 1

    assert qless("pop", 9, "queue", "worker", 1) == {}
    assert jids(qless("pop", 10, "queue", "worker", 1)) == ["jid-2"]


def test_a_new_queue_keeps_the_next_run_and_becomes_known(qless: Qless) -> None:
    recur(qless, 0, 5)

    qless("recur.update", 1, "jid", "queue", "other", "klass", "k2", "data", "[1]", "backlog", 3)

    assert [queue["name"] for queue in qless("queues", 2)] == ["queue", "other"]
    assert qless("pop", 5, "queue", "worker", 1) == {}
    [job] = qless("pop", 5, "other", "worker", 1)
    assert (job["klass"], job["data"]) == ("k2", "[1]")


def test_other_updates_make_no_queue_known(qless: Qless) -> None:
    recur(qless)
    qless("queue.forget", 1, "queue")

    qless("recur.update", 2, "jid", "priority", 3, "interval", 30)

    assert qless("queues", 3) == {}
    assert jids(qless("pop", 60, "queue", "worker", 1)) == ["jid-1"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["jid", "priority"], "No value provided for priority"),
        (["jid", "priority", "x"], 'Recur(): Arg "priority" must be a number: x'),
        (["jid", "interval", "x"], 'Recur(): Arg "interval" must be a number: x'),
        (["jid", "retries", "x"], 'Recur(): Arg "retries" must be a number: x'),
        (["jid", "data", "[}"], 'Recur(): Arg "data" is not JSON-encoded: [}'),
        (["jid", "backlog", "x"], 'Recur(): Arg "backlog" not a number: x'),
        (["jid", "colour", "x"], 'Recur(): Unrecognized option "colour"'),
        (["nobody", "priority", "1"], "Recur(): No recurring job nobody"),
        ([], "Recurring(): no jid provided"),
    ],
)
def test_malformed_updates_are_refused(qless: Qless, words: list[str], text: str) -> None:
    recur(qless)

    with pytest.raises(HoldfastError) as refused:
        qless("recur.update", 1, *words)

    assert refused.value.message == text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Queue(): no queue name provided"),
        (["q"], 'RecurringJob On(): Arg "jid" missing'),
        (["q", "j"], 'RecurringJob On(): Arg "klass" missing'),
        (["q", "j", "k"], 'RecurringJob On(): Arg "spec" missing'),
        (["q", "j", "k", "[}"], 'RecurringJob On(): Arg "spec" missing'),
        (["q", "j", "k", "[}", "foo"], 'RecurringJob On(): Arg "data" not JSON: [}'),
        (["q", "j", "k", "{}", "foo"], 'Recur(): schedule type "foo" unknown'),
        (["q", "j", "k", "{}", "interval", "x"], 'Recur(): Arg "interval" not a number: x'),
        (["q", "j", "k", "{}", "interval", "1", "x"], 'Recur(): Arg "offset" not a number: x'),
        (
            ["q", "j", "k", "{}", "interval", "0", "0"],
            'Recur(): Arg "interval" must be greater than 0',
        ),
        (
            ["q", "j", "k", "{}", "interval", "1", "0", "tags"],
            "Odd number of additional args: tags",
        ),
        (
            ["q", "j", "k", "{}", "interval", "1", "0", "tags", "x"],
            'Recur(): Arg "tags" must be JSON string array: x',
        ),
        (
            ["q", "j", "k", "{}", "interval", "1", "0", "priority", "x"],
            'Recur(): Arg "priority" not a number: x',
        ),
        (
            ["q", "j", "k", "{}", "interval", "1", "0", "retries", "x"],
            'Recur(): Arg "retries" not a number: x',
        ),
        (
            ["q", "j", "k", "{}", "interval", "1", "0", "backlog", "x"],
            'Recur(): Arg "backlog" not a number: x',
        ),
    ],
)
def test_malformed_recurs_are_refused(qless: Qless, words: list[str], text: str) -> None:
    with pytest.raises(BadArgument) as refused:
        qless("recur", 0, *words)

    assert refused.value.message == text


def test_unrecur_ends_future_runs_only(qless: Qless) -> None:
    recur(qless)
    qless("peek", 0, "queue", 1)

    assert qless("unrecur", 1, "jid") == 1
    assert qless("unrecur", 1, "nobody") == 1

    assert qless("recur.get", 1, "jid") is None
    assert jids(qless("pop", 600, "queue", "worker", 9)) == ["jid-1"]
    assert qless("queues", 600, "queue")["recurring"] == 0


def test_numbers_that_start_over_skip_children_that_exist(qless: Qless) -> None:
    recur(qless)
    qless("peek", 60, "queue", 2)
    qless("unrecur", 60, "jid")

    recur(qless, 61)

    assert jids(qless("pop", 61, "queue", "worker", 9)) == ["jid-1", "jid-2", "jid-3"]


def test_a_paused_queue_spawns_on_peek_only(qless: Qless) -> None:
    recur(qless)
    qless("pause", 0, "queue")

    qless("pop", 0, "queue", "worker", 1)
    assert qless("recur.get", 0, "jid")["count"] == 0
    qless("peek", 0, "queue", 1)
    assert qless("recur.get", 0, "jid")["count"] == 1


def test_spawned_jobs_publish_no_put(qless: Qless, events: Events) -> None:
    recur(qless)
    qless("pop", 0, "queue", "worker", 1)

    assert events.new() == []


def test_tags_of_recurring_jobs_have_no_duplicates(qless: Qless) -> None:
    recur(qless, 0, 0, "tags", ["a"])

    assert qless("recur.tag", 0, "jid", "b", "a", "c") == ["a", "b", "c"]
    assert qless("recur.untag", 0, "jid", "a", "x") == ["b", "c"]
    assert qless("recur.untag", 0, "jid", "b", "c") == {}
    with pytest.raises(UnknownRecurringJob, match=r"Tag\(\): Job nobody does not exist"):
        qless("recur.tag", 0, "nobody", "a")
    with pytest.raises(UnknownRecurringJob, match=r"Untag\(\): Job nobody does not exist"):
        qless("recur.untag", 0, "nobody", "a")


# --- from Python, and cron ----------------------------------------------------------------------


def test_a_recurring_job_from_python(store: Store, clock: Clock) -> None:
    store.jobs.recur("queue", "klass", {"a": 1}, id="jid", interval=60, offset=10)
    found = store.jobs.recur_get("jid")
    assert found is not None
    assert (found.next, found.spec, found.data) == (clock() + 10, "interval", {"a": 1})

    store.jobs.recur_update("jid", priority=3, data={"b": 2})
    store.jobs.recur_tag("jid", "x")
    clock.advance(seconds=10)
    [job] = store.jobs.pop("queue", "worker")

    assert (job.id, job.priority, job.data, job.tags) == ("jid-1", 3, {"b": 2}, ("x",))
    assert store.jobs.recur_untag("jid", "x") == ()
    store.jobs.unrecur("jid")
    assert store.jobs.recur_get("jid") is None


def test_a_cron_schedule_runs_in_its_time_zone(store: Store, clock: Clock) -> None:
    clock.set(1_700_000_000)  # 2023-11-14 22:13:20 UTC
    store.jobs.recur("queue", "klass", id="jid", cron="30 7 * * *", tz="Europe/Berlin")
    found = store.jobs.recur_get("jid")
    assert found is not None
    assert found.next == 1_700_029_800  # 06:30 UTC, winter time

    clock.set(found.next)
    assert [job.id for job in store.jobs.pop("queue", "worker", 5)] == ["jid-1"]
    assert store.jobs.pop("queue", "worker", 5) == []


def test_a_cron_schedule_has_a_backlog_too(qless: Qless) -> None:
    args = ["queue", "jid", "klass", "{}", "cron", "0 * * * *", "UTC", "backlog", 2]
    qless("recur", 0, *args)

    jobs = qless("pop", 36_000, "queue", "worker", 99)

    assert [job["history"][0]["when"] for job in jobs] == [28_800, 32_400, 36_000]
    assert qless("recur.get", 0, "jid")["spec"] == "cron"
    assert qless("recur.get", 0, "jid")["next"] == 39_600


def test_a_recurring_job_has_either_an_interval_or_a_cron(store: Store) -> None:
    with pytest.raises(BadArgument, match="either"):
        store.jobs.recur("queue")
    with pytest.raises(BadArgument, match="either"):
        store.jobs.recur("queue", interval=1, cron="* * * * *")


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        ({"interval": 1e-9}, "interval must be at least 0.001 seconds"),
        ({"interval": 5e-324, "backlog": 1}, "interval must be at least 0.001 seconds"),
        ({"cron": "* * * * *", "backlog": 1_001}, "backlog must be at most 1000 for a cron"),
    ],
)
def test_runs_that_no_pop_could_count_are_refused(
    store: Store, schedule: dict[str, Any], text: str
) -> None:
    with pytest.raises(BadArgument, match=text):
        store.jobs.recur("queue", **schedule)


def test_a_refused_update_changes_nothing_even_if_its_transaction_goes_on(store: Store) -> None:
    store.jobs.recur("queue", id="jid", interval=60)

    with store.transaction() as tx, pytest.raises(BadArgument):
        tx.jobs.recur_update("jid", interval=1e-9)

    assert store.jobs.jobs("recurring", "queue") == ["jid"]
    assert list(store.admin.check().problems) == []


def test_a_cron_schedule_has_no_interval_to_change(store: Store) -> None:
    store.jobs.recur("queue", id="jid", cron="*/5 * * * *")
    before = store.jobs.recur_get("jid")

    with pytest.raises(BadArgument, match="cron"):
        store.jobs.recur_update("jid", interval=5)

    assert store.jobs.recur_get("jid") == before


@pytest.mark.every_engine
def test_a_paused_recurring_job_spawns_nothing_and_makes_up_for_nothing(
    store: Store, clock: Clock
) -> None:
    begin = clock()
    store.jobs.recur("polls", "Poll", interval=60, offset=60, id="poll")
    store.jobs.recur("polls", "Poll", interval=60, offset=60, id="replaced")
    for id in ("poll", "replaced"):
        store.jobs.recur_pause(id)
    store.jobs.recur("polls", "Poll", interval=90, offset=90, id="replaced")

    clock.advance(seconds=200)
    meanwhile = store.jobs.pop("polls", "w", 9)
    listed = store.jobs.recurring()
    store.jobs.recur_resume("poll")
    clock.advance(seconds=40)

    assert meanwhile == []
    assert [(each.id, each.paused, each.next - begin) for each in listed] == [
        ("poll", True, 60),
        ("replaced", True, 90),
    ]
    assert [job.id for job in store.jobs.pop("polls", "w", 9)] == ["poll-1"]
    assert store.jobs.recurring(after="poll", count=5) == [store.jobs.recur_get("replaced")]
    assert list(store.admin.check().problems) == []


def test_a_paused_cron_schedule_goes_on_with_its_next_run(store: Store, clock: Clock) -> None:
    store.jobs.recur("reports", "Hourly", cron="0 * * * *", id="hourly")
    before = store.jobs.recur_get("hourly")
    store.jobs.recur_pause("hourly")

    clock.advance(seconds=3 * 3600)
    store.jobs.recur_resume("hourly")

    after = store.jobs.recur_get("hourly")
    assert before is not None
    assert after is not None
    assert (after.paused, after.next - before.next) == (False, 3 * 3600)


@pytest.mark.every_engine
@pytest.mark.parametrize("when", [{"interval": 60, "offset": 60}, {"cron": "* * * * *"}])
def test_a_run_is_left_out_while_another_job_owns_the_unique_key(
    store: Store, clock: Clock, when: dict[str, Any]
) -> None:
    store.jobs.recur("polls", "Poll", id="poll", unique="poll", **when)

    clock.advance(seconds=200)
    [first] = store.jobs.pop("polls", "w", 9, lock_seconds=10_000)
    clock.advance(seconds=200)
    meanwhile = store.jobs.pop("polls", "w", 9)
    by_hand = store.jobs.put("polls", "Poll", unique="poll")
    store.jobs.complete(first.id, "w")
    at_once = store.jobs.pop("polls", "w", 9)
    clock.advance(seconds=60)
    [second] = store.jobs.pop("polls", "w", 9)

    assert (first.id, first.unique, by_hand) == ("poll-1", "poll", "poll-1")
    assert meanwhile == at_once == []
    assert second.id == "poll-2"
    assert list(store.admin.check().problems) == []


def test_a_recurring_job_may_own_its_key_for_a_time(store: Store, clock: Clock) -> None:
    store.jobs.recur("polls", id="poll", interval=60, offset=60, unique="poll", unique_for=150)

    clock.advance(seconds=60)
    [first] = store.jobs.pop("polls", "w")
    store.jobs.complete(first.id, "w")
    clock.advance(seconds=120)
    assert store.jobs.pop("polls", "w", 9) == []
    clock.advance(seconds=60)
    assert [job.id for job in store.jobs.pop("polls", "w", 9)] == ["poll-2"]


@pytest.mark.parametrize("unique_for", ["always", math.inf])
def test_a_recurring_job_is_refused_if_nobody_knows_how_long_it_owns_its_key(
    store: Store, unique_for: str | float
) -> None:
    with pytest.raises(BadArgument, match="unique_for"):
        store.jobs.recur("polls", interval=60, unique="poll", unique_for=unique_for)
