"""A clock that jumps forward and is set back: no job waits longer than it should."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.jobs.records import NewJob
from holdfast.limits import CLOCK_AHEAD_SECONDS, JOBS_PER_STEP
from holdfast.store import Store
from holdfast.testing import Clock
from tests.stores import Stores, problems_of

pytestmark = pytest.mark.every_engine

YEARS = 10 * 365 * 86_400.0


def ids(jobs: Any) -> list[str]:
    return [job.id for job in jobs]


@pytest.mark.parametrize(
    "spec", [{"interval": 60, "backlog": 1}, {"cron": "* * * * *", "backlog": 1}]
)
def test_a_recurring_job_goes_on_after_the_clock_was_set_back(
    store: Store, clock: Clock, spec: dict[str, Any]
) -> None:
    store.jobs.recur("q", id="r", **spec)
    clock.advance(seconds=60)
    store.jobs.pop("q", "w")

    clock.advance(seconds=YEARS)
    store.jobs.pop("q", "w", count=5)
    clock.advance(seconds=-YEARS)
    before = store.jobs.recur_get("r")
    store.jobs.pop("q", "w", count=5)
    clock.advance(seconds=60)

    assert before is not None
    assert before.next > clock() + YEARS / 2
    assert len(store.jobs.pop("q", "w", count=5)) == 1


def test_a_recurring_job_that_was_made_by_a_clock_ahead_runs_after_its_offset(
    store: Store, clock: Clock
) -> None:
    clock.advance(seconds=YEARS)
    store.jobs.recur("q", id="r", interval=3_600, offset=30)
    clock.advance(seconds=-YEARS)

    assert store.jobs.peek("q") == []
    clock.advance(seconds=30)

    assert ids(store.jobs.peek("q")) == ["r-1"]


def test_a_first_run_that_is_meant_to_be_far_away_stays_there(store: Store, clock: Clock) -> None:
    store.jobs.recur("q", id="late", interval=60, offset=YEARS / 2)
    store.jobs.recur("q", id="often", interval=60, backlog=1)

    clock.advance(seconds=YEARS / 4)
    store.jobs.pop("q", "w", count=5)
    clock.advance(seconds=-YEARS / 4)
    store.jobs.pop("q", "w", count=5)

    late = store.jobs.recur_get("late")
    assert late is not None
    assert late.next == clock() + YEARS / 2


def test_a_lost_workers_job_is_handed_on_after_the_clock_was_set_back(
    store: Store, clock: Clock
) -> None:
    store.jobs.config_set("grace-period", 0)
    store.jobs.put("q", id="j")
    clock.advance(seconds=YEARS)
    store.jobs.pop("q", "lost", lock_seconds=60)
    clock.advance(seconds=-YEARS)

    assert store.jobs.pop("q", "next") == []
    clock.advance(seconds=61)

    [job] = store.jobs.pop("q", "next")
    assert (job.id, job.worker) == ("j", "next")


def test_a_holder_may_complete_what_it_popped_before_the_clock_was_set_back(
    store: Store, clock: Clock
) -> None:
    store.jobs.put("q", id="j")
    clock.advance(seconds=YEARS)
    [job] = store.jobs.pop("q", "w")
    clock.advance(seconds=-YEARS)
    store.jobs.pop("q", "w")

    assert store.jobs.complete("j", "w", lock=job.lock) == "complete"


def test_a_delay_is_as_long_as_it_was_meant_to_be(store: Store, clock: Clock) -> None:
    store.jobs.put("q", id="before", delay=100)
    clock.advance(seconds=YEARS)
    store.jobs.put("q", id="ahead", delay=50)
    clock.advance(seconds=-YEARS)
    store.jobs.pop("q", "w")

    clock.advance(seconds=50)
    first = ids(store.jobs.pop("q", "w", count=5))
    clock.advance(seconds=50)

    assert (first, ids(store.jobs.pop("q", "w", count=5))) == (["ahead"], ["before"])


def test_a_unique_key_that_was_taken_by_a_clock_ahead_is_free(store: Store, clock: Clock) -> None:
    clock.advance(seconds=YEARS)
    store.jobs.put("q", id="ahead", unique="key", unique_for=60)
    clock.advance(seconds=-YEARS)

    assert store.jobs.put("q", id="now", unique="key", unique_for=60) == "now"
    assert store.jobs.put("q", id="again", unique="key", unique_for=60) == "now"


def test_more_jobs_than_fit_one_step_are_set_right_by_and_by(store: Store, clock: Clock) -> None:
    clock.advance(seconds=YEARS)
    many = [NewJob(queue="q", id=f"{n:04}", delay=50) for n in range(2 * JOBS_PER_STEP + 9)]
    for begin in range(0, len(many), JOBS_PER_STEP):
        store.jobs.put_many(many[begin : begin + JOBS_PER_STEP])
    clock.advance(seconds=-YEARS)

    for _ in range(3):
        store.jobs.pop("q", "w")
    clock.advance(seconds=50)

    popped = [job.id for _ in range(6) for job in store.jobs.pop("q", "w", count=100)]
    assert len(set(popped)) == len(many)


def test_clocks_that_differ_a_little_move_nothing(store: Store, clock: Clock) -> None:
    store.jobs.put("q", id="j", delay=100)
    clock.advance(seconds=-CLOCK_AHEAD_SECONDS)
    store.jobs.pop("q", "w")

    clock.advance(seconds=CLOCK_AHEAD_SECONDS + 99)
    assert store.jobs.pop("q", "w") == []
    clock.advance(seconds=1)
    assert ids(store.jobs.pop("q", "w")) == ["j"]


STEPS = st.lists(
    st.one_of(
        st.sampled_from(["pop", "put", "delay", "complete", "peek"]),
        st.floats(-YEARS, YEARS).map(lambda seconds: ("jump", seconds)),
        st.floats(0, 100).map(lambda seconds: ("jump", seconds)),
    ),
    max_size=25,
)


@pytest.mark.only_on("lmdb")
@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_whatever_the_clock_has_done_all_work_is_handed_out_within_its_own_times(
    stores: Stores, steps: list[Any]
) -> None:
    clock = Clock()
    with stores.open(clock=clock) as store:
        store.jobs.config_set("grace-period", 0)
        store.jobs.recur("q", id="r", interval=60, backlog=1)
        for number, step in enumerate(steps):
            if isinstance(step, tuple):
                clock.set(max(1e6, clock() + step[1]))
            elif step == "pop":
                store.jobs.pop("q", "w", count=2, lock_seconds=60)
            elif step == "peek":
                store.jobs.peek("q", 2)
            elif step == "complete":
                for job in store.jobs.pop("q", "w", lock_seconds=60):
                    store.jobs.complete(job.id, "w")
            else:
                store.jobs.put("q", id=f"{number}", delay=50 if step == "delay" else 0)

        spawned = store.jobs.recur_get("r")
        assert spawned is not None
        store.jobs.pop("q", "other")  # looks at the queue's clocks
        clock.advance(seconds=200)  # longer than any lock, delay or interval, and clocks may differ
        while jobs := store.jobs.pop("q", "other", count=100, lock_seconds=600):
            for job in jobs:
                store.jobs.complete(job.id, "other")

        after = store.jobs.recur_get("r")
        assert after is not None
        assert after.count > spawned.count
        assert store.jobs.length("q") == 0
        assert problems_of(store) == []
