"""Schedules: recurring jobs are made equal to what is declared."""

import pytest

from holdfast.errors import BadTask
from holdfast.store import Store
from holdfast.tasks import Tasks
from holdfast.testing import Clock, run_tasks

pytestmark = pytest.mark.every_engine


def declared(*, interval: float = 60, name: str = "app", factor: int = 2) -> Tasks:
    tasks = Tasks(name, queue="q")

    @tasks.cron("30 7 * * mon-fri", tz="Europe/Berlin")
    @tasks.every(interval, args={"number": 21, "factor": factor})
    @tasks.task(name="double")
    def double(number: int = 1, factor: int = 2) -> int:
        return number * factor

    return tasks


def recurring(store: Store) -> dict[str, tuple[float, str, object]]:
    ids = store.jobs.jobs("recurring", "q", count=-1)
    found = [store.jobs.recur_get(id) for id in ids]
    return {each.id: (each.interval, each.cron, each.data) for each in found if each is not None}


def test_what_is_declared_is_deployed(store: Store) -> None:
    declared().deploy(store)

    assert sorted(recurring(store).values()) == [
        (0.0, "30 7 * * mon-fri", {"number": 1, "factor": 2}),
        (60.0, "", {"number": 21, "factor": 2}),
    ]


def test_deploying_again_changes_nothing(store: Store, clock: Clock) -> None:
    declared().deploy(store)
    [every] = [id for id, (interval, _, _) in recurring(store).items() if interval]
    before = store.jobs.recur_get(every)

    clock.advance(seconds=30)
    declared().deploy(store)

    assert store.jobs.recur_get(every) == before


def test_what_changed_is_replaced_and_what_is_gone_is_removed(store: Store) -> None:
    declared().deploy(store)

    declared(interval=30, factor=3).deploy(store)
    assert [each for each in recurring(store).values() if each[0]] == [
        (30.0, "", {"number": 21, "factor": 3})
    ]

    Tasks("app", queue="q").deploy(store)
    assert recurring(store) == {}


def test_recurring_jobs_of_others_stay(store: Store) -> None:
    store.jobs.recur("q", "by-hand", interval=5, id="by-hand")
    declared(name="billing").deploy(store)

    declared(name="app").deploy(store)
    Tasks("app", queue="q").deploy(store)

    assert len(recurring(store)) == 3
    assert "by-hand" in recurring(store)


def test_each_due_moment_spawns_one_job(store: Store, clock: Clock) -> None:
    tasks = declared()
    for _ in range(3):
        tasks.deploy(store)

    clock.advance(seconds=59)
    assert run_tasks(store, tasks) == []
    clock.advance(seconds=1)
    [ran] = run_tasks(store, tasks)

    assert ran.outcome.result == 42


def test_arguments_of_a_schedule_must_fit(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.every(5, args={"unknown": 1})
    @tasks.task
    def work() -> None: ...

    with pytest.raises(Exception, match="don't fit"):
        tasks.deploy(store)


def test_a_schedule_is_declared_above_a_task() -> None:
    tasks = Tasks()

    with pytest.raises(BadTask, match="for a task"):
        tasks.every(5)(print)  # type: ignore[type-var]  # it is not a task


def test_jobs_of_a_schedule_obey_the_throttles_of_their_task(store: Store, clock: Clock) -> None:
    tasks = Tasks("app", queue="q")
    tasks.every(60)(tasks.task(name="work", max_concurrency=1, throttles=["api"])(lambda: None))
    tasks.deploy(store)

    clock.advance(seconds=65)
    [job] = store.jobs.pop("q", "worker", lock_seconds=1000)
    clock.advance(seconds=60)

    assert store.jobs.pop("q", "other") == []
    assert job.throttles == ("api", "task:work")
    assert store.jobs.counts("q").throttled == 1


def test_a_throttle_that_is_declared_later_reaches_the_recurring_job(store: Store) -> None:
    for throttles in ([], ["api"]):
        tasks = Tasks("app", queue="q")
        tasks.every(60)(tasks.task(name="work", throttles=throttles)(lambda: None))
        tasks.deploy(store)

    [id] = recurring(store)
    found = store.jobs.recur_get(id)
    assert found is not None
    assert found.throttles == ("api",)


def test_jobs_of_a_schedule_own_the_unique_key_of_their_task(store: Store, clock: Clock) -> None:
    for unique in (False, True):  # the option reaches a recurring job that is there already
        tasks = Tasks("app", queue="q")

        @tasks.every(60, args={"kind": "hourly"})
        @tasks.task(name="work", unique=unique)
        def work(kind: str) -> None: ...

        tasks.deploy(store)

    clock.advance(seconds=60)
    [job] = store.jobs.pop("q", "worker", lock_seconds=1000)
    clock.advance(seconds=60)

    assert store.jobs.pop("q", "other") == []
    assert work.put(store, "hourly").id == job.id
    assert work.put(store, "daily").id != job.id
