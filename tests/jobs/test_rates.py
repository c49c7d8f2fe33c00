"""Rates: how many jobs of a queue, and of each key, may start in a time."""

import pytest

from holdfast.errors import BadArgument
from holdfast.jobs import NewJob
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine


def put(store: Store, *ids: str, rate_key: str | None = None) -> None:
    store.jobs.put_many([NewJob(queue="calls", id=id, rate_key=rate_key) for id in ids])


def pop(store: Store, count: int = 10) -> list[str]:
    ids = [job.id for job in store.jobs.pop("calls", "worker", count)]
    for id in ids:
        store.jobs.complete(id, "worker")
    return ids


def test_a_pop_hands_out_what_the_rate_has_left(store: Store, clock: Clock) -> None:
    store.jobs.config_set("calls-rate", "3/60")
    put(store, "a", "b", "c", "d")

    assert pop(store, 2) == ["a", "b"]
    assert pop(store) == ["c"]
    assert pop(store) == []

    clock.advance(seconds=63)
    assert pop(store) == ["d"]


def test_no_interval_of_the_rates_length_holds_more_starts_than_it_allows(
    store: Store, clock: Clock
) -> None:
    store.jobs.config_set("calls-rate", "5/60")
    put(store, *[f"job{number:03}" for number in range(60)])
    starts: list[float] = []

    for _ in range(60):
        starts += [clock()] * len(pop(store))
        clock.advance(seconds=7)

    assert len(starts) > 20
    assert all(sum(at <= each < at + 60 for each in starts) <= 5 for at in starts)


def test_a_limited_queue_says_when_its_next_job_may_start(store: Store, clock: Clock) -> None:
    store.jobs.config_set("calls-rate", "1/60")
    put(store, "a", "b")

    assert store.jobs.counts("calls").limited == 0
    pop(store)
    limited = store.jobs.counts("calls").limited

    assert 55 < limited <= 62
    clock.advance(seconds=limited)
    assert pop(store) == ["b"]


def test_a_worker_that_waits_wakes_when_the_rate_has_something_left(
    store: Store, clock: Clock
) -> None:
    store.jobs.config_set("calls-rate", "1/60")
    put(store, "a", "b")
    pop(store)

    with store.view() as view:
        wake = view.jobs.next_wake("calls")

    assert wake is not None
    assert wake == pytest.approx(clock() + store.jobs.counts("calls").limited)


def test_a_rate_may_get_other_seconds(store: Store) -> None:
    store.jobs.config_set("calls-rate", "3/60")
    put(store, "a", "b", "c")
    assert pop(store, 1) == ["a"]

    store.jobs.config_set("calls-rate", "1/10")

    assert pop(store) == ["b"]
    assert store.jobs.counts("calls").limited > 0


def test_rates_of_queues_and_of_keys_may_have_different_seconds(store: Store) -> None:
    store.jobs.config_set("calls-rate", "10/60")
    store.jobs.config_set("calls-rate-per-key", "1/10")
    store.jobs.config_set("letters-rate", "1/3600")
    put(store, "a", "b", rate_key="ann")
    store.jobs.put_many([NewJob(queue="letters", id=id) for id in ("c", "d")])

    assert pop(store) == ["a"]
    assert [job.id for job in store.jobs.pop("letters", "worker", 10)] == ["c"]


def test_a_peek_ignores_the_rate(store: Store) -> None:
    store.jobs.config_set("calls-rate", "1/60")
    put(store, "a", "b")
    pop(store)

    assert [job.id for job in store.jobs.peek("calls", 5)] == ["b"]


def test_each_key_has_its_own_rate_and_blocks_no_other(store: Store, clock: Clock) -> None:
    store.jobs.config_set("calls-rate-per-key", "2/60")
    put(store, "a1", "a2", "a3", "a4", rate_key="ann")
    put(store, "b1", rate_key="bob")
    put(store, "c1")

    assert pop(store) == ["a1", "a2", "b1", "c1"]
    assert store.jobs.counts("calls").scheduled == 2

    clock.advance(seconds=63)
    assert pop(store) == ["a3", "a4"]


def test_many_jobs_of_one_key_take_turns(store: Store, clock: Clock) -> None:
    store.jobs.config_set("calls-rate-per-key", "2/60")
    ids = [f"job{number}" for number in range(7)]
    put(store, *ids, rate_key="ann")
    started: list[str] = []

    for _ in range(6):
        taken = pop(store)
        assert len(taken) <= 2
        started += taken
        clock.advance(seconds=63)

    assert sorted(started) == ids


def test_a_canceled_job_gives_its_turn_back(store: Store, clock: Clock) -> None:
    store.jobs.config_set("calls-rate-per-key", "1/60")
    put(store, "a1", "a2", "a3", rate_key="ann")
    pop(store)

    store.jobs.cancel("a2", "a3")
    put(store, "a4", rate_key="ann")
    pop(store)
    clock.advance(seconds=63)

    assert pop(store) == ["a4"]


@pytest.mark.parametrize("value", ["", "fast", "0/60", "1/0", "1.5/60", "-1/60", "5", "1/-1"])
def test_what_is_not_a_rate_is_refused(store: Store, value: str) -> None:
    for option in ("calls-rate", "calls-rate-per-key"):
        with pytest.raises(BadArgument, match="as in 100/60"):
            store.jobs.config_set(option, value)


def test_a_job_that_was_lost_waits_for_the_rate_of_its_key_again(
    store: Store, clock: Clock
) -> None:
    store.jobs.config_set("grace-period", 0)
    store.jobs.config_set("calls-heartbeat", 10)
    store.jobs.config_set("calls-rate-per-key", "1/60")
    put(store, "a1", rate_key="ann")
    store.jobs.pop("calls", "lost")

    clock.advance(seconds=11)

    assert pop(store) == []
    clock.advance(seconds=63)
    assert pop(store) == ["a1"]
