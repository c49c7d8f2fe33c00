"""Deadlines: jobs that must start by a time, start at a time, or end within a time."""

import pytest

from holdfast.errors import BadArgument
from holdfast.jobs import NewJob
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine


def test_a_job_that_has_not_started_in_time_is_dropped_and_counted(
    store: Store, clock: Clock
) -> None:
    store.jobs.put("emails", id="late", expires=clock() + 60)
    store.jobs.put("emails", id="other")

    clock.advance(seconds=60)

    assert [job.id for job in store.jobs.pop("emails", "worker", 5)] == ["other"]
    assert store.jobs.get("late") is None
    assert store.jobs.stats("emails").expired == 1
    assert store.jobs.length("emails") == 1


def test_it_is_removed_though_nobody_pops(store: Store, clock: Clock) -> None:
    store.jobs.put("emails", id="late", delay=30, expires=clock() + 60)

    clock.advance(seconds=61)
    store.sweep()

    assert store.jobs.get("late") is None
    assert store.jobs.stats("emails").expired == 1


def test_a_job_that_has_started_in_time_is_kept(store: Store, clock: Clock) -> None:
    store.jobs.put("emails", id="timely", expires=clock() + 60)
    store.jobs.pop("emails", "worker")
    store.jobs.retry("timely", "worker")

    clock.advance(seconds=61)
    store.sweep()

    assert [job.id for job in store.jobs.pop("emails", "worker")] == ["timely"]


def test_a_late_job_that_others_wait_for_fails(store: Store, clock: Clock) -> None:
    store.jobs.put("emails", id="late", expires=clock() + 60)
    store.jobs.put("emails", id="next", depends=["late"])

    clock.advance(seconds=61)
    store.jobs.pop("emails", "worker")

    assert store.jobs.failed() == {"expired": 1}


def test_a_job_can_not_expire_before_it_is_put(store: Store, clock: Clock) -> None:
    with pytest.raises(BadArgument, match="expires must be later than now"):
        store.jobs.put("emails", expires=clock())


def test_a_job_starts_at_its_moment(store: Store, clock: Clock) -> None:
    store.jobs.put("emails", id="later", at=clock() + 30)
    store.jobs.put("emails", id="past", at=clock() - 30)

    assert [job.id for job in store.jobs.pop("emails", "worker", 5)] == ["past"]
    clock.advance(seconds=30)
    assert [job.id for job in store.jobs.pop("emails", "worker", 5)] == ["later"]


def test_a_delay_and_a_moment_contradict_each_other(store: Store, clock: Clock) -> None:
    with pytest.raises(BadArgument, match="either `delay` or `at`"):
        store.jobs.put("emails", at=clock(), delay=1)


def test_a_run_that_takes_longer_than_its_timeout_loses_its_lock(
    store: Store, clock: Clock
) -> None:
    store.jobs.config_set("grace-period", 0)
    store.jobs.put("emails", id="slow", timeout=20)
    store.jobs.put("emails", id="plain")
    slow, plain = store.jobs.pop("emails", "worker", 2)

    assert (slow.expires, plain.expires) == (clock() + 20, clock() + 60)
    clock.advance(seconds=15)
    assert store.jobs.heartbeat("slow", "worker") == slow.expires
    clock.advance(seconds=6)

    assert [job.id for job in store.jobs.pop("emails", "other")] == ["slow"]


def test_a_workflow_goes_on_when_a_child_of_it_started_too_late(store: Store, clock: Clock) -> None:
    child = NewJob(queue="children", id="child", parent="flow", expires=clock() + 1)
    store.jobs.put_many([child, NewJob(queue="flows", id="flow", depends=("child",))])

    clock.advance(seconds=2)
    store.jobs.pop("children", "worker")

    assert store.jobs.failed() == {"expired": 1}
    assert [job.id for job in store.jobs.pop("flows", "worker")] == ["flow"]
