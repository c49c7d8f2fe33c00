"""Records of worker programs: there while the program is alive, gone soon after it is not."""

import pytest

from holdfast.errors import BadArgument
from holdfast.jobs import WorkerProgram, WorkerSlot
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine


def names(store: Store) -> list[str]:
    return [program.name for program in store.jobs.worker_programs()]


def test_a_program_says_where_it_is_and_what_it_runs(store: Store) -> None:
    slot = WorkerSlot(name="web-1-0", job="welcome", task="shop.send", since=5.0)
    program = WorkerProgram(name="web-1", host="web", pid=7, queues=("emails",), slots=(slot,))

    store.jobs.announce_worker(program, now=100.0)

    [found] = store.jobs.worker_programs(now=100.0)
    assert (found.host, found.pid, found.queues, found.seen) == ("web", 7, ("emails",), 100.0)
    assert found.slots == (slot,)


def test_a_program_that_falls_silent_disappears_and_one_that_goes_on_stays(
    store: Store, clock: Clock
) -> None:
    for name in ("dead", "alive"):
        store.jobs.announce_worker(WorkerProgram(name=name))
    clock.advance(seconds=20)
    store.jobs.announce_worker(WorkerProgram(name="alive"))

    clock.advance(seconds=11)

    assert names(store) == ["alive"]


def test_the_record_of_a_silent_program_is_removed(store: Store, clock: Clock) -> None:
    store.jobs.announce_worker(WorkerProgram(name="dead"))
    before = store.stats()["keys"]

    clock.advance(seconds=31)
    store.sweep()

    assert store.stats()["keys"] < before


def test_a_program_that_ends_in_order_withdraws(store: Store) -> None:
    store.jobs.announce_worker(WorkerProgram(name="web-1"))

    store.jobs.withdraw_worker("web-1")
    store.jobs.withdraw_worker("nobody")

    assert names(store) == []


def test_a_record_without_a_name_and_one_that_is_too_long_are_refused(store: Store) -> None:
    with pytest.raises(BadArgument, match="name"):
        store.jobs.announce_worker(WorkerProgram(name=""))
    with pytest.raises(BadArgument, match="name fewer tasks"):
        store.jobs.announce_worker(WorkerProgram(name="web", tasks=("x" * 70_000,)))
    assert names(store) == []
