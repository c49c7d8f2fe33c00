"""Bulk actions: one thing is done to all jobs of a search, step by step."""

from typing import Any

import pytest

from holdfast.errors import BadArgument, UnknownBulkAction
from holdfast.jobs import JobSearch, NewJob
from holdfast.limits import BULK_ACTION_KEPT_SECONDS, JOBS_PER_STEP
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine

EMAILS = JobSearch(queue="emails")


def put(store: Store, count: int, **options: Any) -> None:
    list(
        store.jobs.put_all([NewJob(queue="emails", id=f"{n:04}", **options) for n in range(count)])
    )


def test_all_jobs_of_a_search_are_canceled_in_steps(store: Store) -> None:
    many = 4 * JOBS_PER_STEP + 10
    put(store, many)
    store.jobs.put("letters", id="other")

    action = store.jobs.bulk_start("cancel", EMAILS)
    first = store.jobs.bulk_step(action.id)

    assert (action.of, action.changed) == (many, 0)
    # With remote engines the expiry of the store may have taken a step of its own.
    assert (first.state, first.searched % JOBS_PER_STEP) == ("running", 0)
    assert 0 < first.changed == first.searched < many
    while first.state == "running":
        first = store.jobs.bulk_step(action.id)
    assert (first.changed, first.passed_over) == (many, 0)
    assert store.jobs.length("emails") == 0
    assert store.jobs.length("letters") == 1


def test_an_action_goes_on_by_itself_until_it_is_stopped(store: Store, clock: Clock) -> None:
    put(store, 3 * JOBS_PER_STEP)
    action = store.jobs.bulk_start("cancel", EMAILS)

    for _ in range(20):
        store.sweep()
        clock.advance(seconds=60)

    done = store.jobs.bulk(action.id)
    assert done is not None
    assert (done.state, done.changed) == ("done", 3 * JOBS_PER_STEP)


def test_a_stopped_action_changes_nothing_more(store: Store) -> None:
    put(store, 4 * JOBS_PER_STEP)
    action = store.jobs.bulk_start("cancel", EMAILS)
    store.jobs.bulk_step(action.id)

    stopped = store.jobs.bulk_stop(action.id)
    left = store.jobs.length("emails")

    assert 0 < left == 4 * JOBS_PER_STEP - stopped.changed
    assert store.jobs.bulk_step(action.id) == stopped
    assert store.jobs.length("emails") == left
    assert [each.id for each in store.jobs.bulks()] == [action.id]


def test_failed_jobs_and_dead_letters_are_retried(store: Store) -> None:
    for id in ("ann", "bob"):
        store.jobs.put("emails", id=id)
        store.jobs.pop("emails", "worker")
        store.jobs.fail(id, "worker", "smtp", "no route")
        store.jobs.config_set("emails-dead-letter", "dead")

    assert store.jobs.bulk_run("retry", JobSearch(state="failed")).changed == 1
    assert store.jobs.bulk_run("retry", JobSearch(queue="dead")).changed == 1
    assert store.jobs.counts("emails").waiting == 2


def test_jobs_are_moved_tagged_and_given_a_priority(store: Store) -> None:
    put(store, 5)

    assert store.jobs.bulk_run("tag", EMAILS, tag="vip").changed == 5
    assert store.jobs.bulk_run("priority", JobSearch(tag="vip"), priority=7).changed == 5
    assert store.jobs.bulk_run("priority", EMAILS, priority=7).passed_over == 5
    assert store.jobs.bulk_run("move", JobSearch(tag="vip"), queue="fast").changed == 5
    assert store.jobs.bulk_run("untag", JobSearch(queue="fast"), tag="vip").changed == 5

    job = store.jobs.get("0003")
    assert job is not None
    assert (job.queue, job.priority, job.tags) == ("fast", 7, ())


def test_scheduled_jobs_are_run_now(store: Store) -> None:
    put(store, 3, delay=600)

    assert store.jobs.bulk_run("run", JobSearch(queue="emails", state="scheduled")).changed == 3

    assert len(store.jobs.pop("emails", "worker", 5)) == 3


def test_a_job_that_others_depend_on_is_canceled_with_them_or_passed_over(store: Store) -> None:
    store.jobs.put("emails", "a", id="first")
    store.jobs.put("emails", "a", id="second", depends=["first"])
    store.jobs.put("emails", "b", id="third", depends=["second"])

    passed = store.jobs.bulk_run("cancel", JobSearch(klass="a"))
    assert (passed.changed, passed.passed_over) == (0, 2)
    assert store.jobs.bulk_run("cancel", EMAILS).changed == 3


def test_the_record_of_an_action_goes_after_a_week(store: Store, clock: Clock) -> None:
    action = store.jobs.bulk_run("cancel", EMAILS)

    clock.advance(seconds=BULK_ACTION_KEPT_SECONDS + 60)
    store.sweep()

    assert store.jobs.bulk(action.id) is None
    with pytest.raises(UnknownBulkAction):
        store.jobs.bulk_stop(action.id)


@pytest.mark.parametrize(
    ("action", "options", "words"),
    [
        ("explode", {}, "unknown action 'explode'"),
        ("cancle", {}, "did you mean 'cancel'"),
        ("move", {}, "the action move needs queue"),
        ("cancel", {"queue": "x"}, "the action cancel takes no queue"),
        ("tag", {"tag": ""}, "tag must not be empty"),
    ],
)
def test_an_action_with_wrong_arguments_is_refused(
    store: Store, action: Any, options: Any, words: str
) -> None:
    with pytest.raises(BadArgument, match=words):
        store.jobs.bulk_start(action, EMAILS, **options)
