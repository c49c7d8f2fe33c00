"""Prefetched jobs: short ones are taken many at a time, and never kept from others for long."""

import threading
import time
from collections.abc import Iterator

import pytest

from holdfast.errors import BadInput
from holdfast.limits import MAX_PREFETCH_WAIT_SECONDS, PREFETCH_SECONDS
from holdfast.store import Store
from holdfast.tasks import Run, Tasks, Worker
from holdfast.tasks.prefetching import Prefetched
from holdfast.tasks.queue_order import round_robin
from tests.stores import Stores
from tests.tasks.waiting import until

SHORT, LONG = PREFETCH_SECONDS / 500, PREFETCH_SECONDS * 2


@pytest.fixture
def store(stores: Stores) -> Iterator[Store]:
    """A store on the real clock: workers wait for real."""
    with stores.open(clock=time.time) as store:
        store.jobs.config_set("grace-period", 0)
        yield store


class Blocked:
    """Tasks of which one, called `stop`, waits until it may go on."""

    def __init__(self) -> None:
        self.tasks = Tasks(queue="q")
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.ran: list[tuple[int, str]] = []

        @self.tasks.task(name="quick")
        def quick(run: Run, number: int) -> None:
            self.ran.append((number, run.job.worker))

        @self.tasks.task(name="stop")
        def stop() -> None:
            self.begun.set()
            self.go_on.wait(60)

        self.quick, self.stop = quick, stop

    def put(self, store: Store) -> None:
        """Puts jobs that teach a worker to prefetch, one that stops it, and more behind it."""
        self.quick.put_many(store, [(number,) for number in range(100)])
        self.stop.put(store)
        self.quick.put_many(store, [(number,) for number in range(100, 130)])

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.ran]


@pytest.fixture
def blocked() -> Iterator[Blocked]:
    made = Blocked()
    yield made
    made.go_on.set()


@pytest.mark.parametrize(
    ("seconds", "wanted"), [(0.0, 200), (SHORT, 200), (PREFETCH_SECONDS / 5, 5), (LONG, 0)]
)
def test_no_more_is_prefetched_than_will_begin_soon(seconds: float, wanted: int) -> None:
    jobs = Prefetched(200, 1, lock_seconds=60)
    assert jobs.wanted() == 0  # until a run has shown how long it takes

    jobs.note(seconds)

    assert jobs.wanted() == wanted


def test_a_job_whose_lock_may_end_soon_does_not_begin() -> None:
    late, fresh = Prefetched(200, 1, lock_seconds=-1), Prefetched(200, 1, lock_seconds=1000)
    job = object()
    for each in (late, fresh):
        each.add([job])  # type: ignore[list-item]  # it is only passed on

    assert late.next() is None
    assert late.take_late() == [job]
    assert fresh.take_late() == []
    assert fresh.next() is job


@pytest.mark.every_engine
def test_short_jobs_are_held_by_the_worker_and_run_in_order(store: Store, blocked: Blocked) -> None:
    blocked.quick.put_many(store, [(number,) for number in range(300)])

    runs = Worker(store, blocked.tasks, name="w").run_until_empty()

    assert runs == 300
    assert blocked.numbers == list(range(300))
    assert {name for _, name in blocked.ran} == {"w", "w-0"}
    assert len(store.jobs.jobs("complete", count=400)) == 300


def test_without_prefetching_every_job_is_held_by_a_slot(store: Store, blocked: Blocked) -> None:
    blocked.quick.put_many(store, [(number,) for number in range(50)])

    Worker(store, blocked.tasks, name="w", prefetch=0).run_until_empty()

    assert {name for _, name in blocked.ran} == {"w-0"}


def test_the_order_of_queues_holds_for_prefetched_jobs(store: Store) -> None:
    tasks, ran = Tasks(queue="q"), list[str]()
    tasks.task(name="work")(lambda queue: ran.append(queue))
    for queue in ("a", "b"):
        for number in range(60):
            store.jobs.put(queue, "work", {"queue": queue}, id=f"{queue}-{number}")

    Worker(store, tasks, queues=["a", "b"], order=round_robin()).run_until_empty()

    assert ran == ["a", "b"] * 60


@pytest.mark.every_engine
def test_jobs_behind_a_slow_run_go_to_another_worker(store: Store, blocked: Blocked) -> None:
    blocked.put(store)
    with Worker(store, blocked.tasks, name="slow"):
        assert blocked.begun.wait(60)
        with Worker(store, blocked.tasks, name="other"):
            until(lambda: len(blocked.ran) == 130, 60)
        blocked.go_on.set()
        until(lambda: store.jobs.counts("q").running == 0)

    assert sorted(blocked.numbers) == list(range(130))
    assert {name.partition("-")[0] for number, name in blocked.ran if number >= 100} == {"other"}


@pytest.mark.every_engine
@pytest.mark.parametrize("how", ["stop", "pause"])
def test_prefetched_jobs_are_handed_back_at_once_when_none_shall_run(
    store: Store, blocked: Blocked, how: str
) -> None:
    blocked.put(store)
    worker = Worker(store, blocked.tasks, name="w", lock_seconds=60, drain_seconds=0)
    worker.start()
    assert blocked.begun.wait(60)

    if how == "stop":
        worker.stop()
    else:
        worker.pause()
    until(lambda: store.jobs.counts("q").waiting >= 30, MAX_PREFETCH_WAIT_SECONDS * 60)

    counts = store.jobs.counts("q")
    assert (counts.waiting, counts.running) == ((31, 0) if how == "stop" else (30, 1))
    assert blocked.numbers == list(range(100))
    blocked.go_on.set()
    worker.stop()


def test_a_bound_that_no_call_can_hold_is_refused(store: Store, blocked: Blocked) -> None:
    with pytest.raises(BadInput, match="prefetch must be a number from 0 to"):
        Worker(store, blocked.tasks, prefetch=-1)
