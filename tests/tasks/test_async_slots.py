"""Slots on the event loop: many at once, canceled when they must be."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from holdfast.store import Store
from holdfast.tasks import Run, Tasks, Worker, fixed
from tests.stores import Stores
from tests.tasks.waiting import failure_of, found, state, until


@pytest.fixture
def store(stores: Stores) -> Iterator[Store]:
    with stores.open(clock=time.time) as store:
        yield store


def test_many_async_tasks_run_at_the_same_time_in_one_thread(store: Store) -> None:
    tasks, threads = Tasks(queue="q"), set[int]()
    waiting, all_there = list[int](), asyncio.Event()

    @tasks.task
    async def meet(number: int) -> int:
        threads.add(threading.get_ident())
        waiting.append(number)
        if len(waiting) == 50:
            all_there.set()
        await all_there.wait()
        return number

    jobs = meet.put_many(store, [(number,) for number in range(50)])
    Worker(store, tasks, async_slots=50).run_until_empty()

    assert [job.result() for job in jobs] == list(range(50))
    assert len(threads) == 1


def test_a_plain_function_gets_a_thread_and_does_not_block_the_loop(store: Store) -> None:
    tasks, reached = Tasks(queue="q"), threading.Event()

    @tasks.task
    def block() -> bool:
        return reached.wait(20)

    @tasks.task
    async def reach() -> None:
        reached.set()

    blocking = block.put(store)
    reach.put(store)
    Worker(store, tasks, async_slots=2).run_until_empty()

    assert blocking.result() is True


def test_an_async_task_beyond_its_timeout_is_canceled(store: Store) -> None:
    tasks, canceled = Tasks(queue="q"), threading.Event()

    @tasks.task(timeout=0.05, retries=0)
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            canceled.set()
            raise

    job = hang.put(store)
    with Worker(store, tasks, async_slots=1):
        until(lambda: state(store, job.id) == "failed")

    failure = failure_of(store, job.id)
    assert failure.group == "timeout"
    assert canceled.is_set()


def test_so_is_one_that_a_thread_waits_for(store: Store) -> None:
    tasks, canceled = Tasks(queue="q"), threading.Event()

    @tasks.task(timeout=0.05, retries=0)
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            canceled.set()

    job = hang.put(store)
    with Worker(store, tasks, threads=1) as worker:
        until(lambda: state(store, job.id) == "failed")
        assert worker.stuck == 0

    assert failure_of(store, job.id).group == "timeout"
    assert canceled.is_set()


def test_a_timeout_counts_after_a_pause_without_runs_too(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.task
    async def short() -> None:
        pass

    @tasks.task(timeout=0.05, retries=0)
    async def hang() -> None:
        await asyncio.Event().wait()

    with Worker(store, tasks, async_slots=1) as worker:
        short.put(store).result(timeout=30)
        until(lambda: worker._heartbeats._is_asleep)
        job = hang.put(store)
        until(lambda: state(store, job.id) == "failed")


@pytest.mark.parametrize(("threads", "async_slots"), [(2, 0), (0, 2)])
@pytest.mark.parametrize("end", [SystemExit(3), KeyboardInterrupt()])
def test_an_async_task_that_exits_leaves_the_runs_of_others_alone(
    store: Store, threads: int, async_slots: int, end: BaseException
) -> None:
    tasks, go_on = Tasks(queue="q"), threading.Event()

    @tasks.task
    async def other() -> str:
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        return "ended"

    @tasks.task(retries=0)
    async def leave() -> None:
        await asyncio.gather(asyncio.create_task(_raise(end)))

    with Worker(store, tasks, threads=threads, async_slots=async_slots):
        beside, leaving = other.put(store), leave.put(store)
        until(lambda: state(store, leaving.id) == "failed")
        go_on.set()
        assert beside.result(timeout=30) == "ended"
        assert other.put(store).result(timeout=30) == "ended"

    assert failure_of(store, leaving.id).group == f"q-{type(end).__name__}"


async def _raise(error: BaseException) -> None:
    raise error


def test_a_task_that_awaits_something_canceled_is_retried_as_after_any_error(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.task(retries=1, backoff=fixed(0))
    async def await_canceled() -> None:
        inner = asyncio.create_task(asyncio.sleep(60))
        inner.cancel()
        await inner

    job = await_canceled.put(store)
    Worker(store, tasks, async_slots=1).run_until_empty()

    assert failure_of(store, job.id).group == "q-CancelledError"
    assert [entry.what for entry in found(store, job.id).history].count("popped") == 2


def test_an_async_task_whose_job_is_canceled_is_told(store: Store) -> None:
    tasks, begun, ended = Tasks(queue="q"), threading.Event(), threading.Event()

    @tasks.task(lock_seconds=1)
    async def hang(run: Run) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    job = hang.put(store)
    with Worker(store, tasks, async_slots=1):
        assert begun.wait(20)
        store.jobs.cancel(job.id)
        assert ended.wait(20)


def test_a_thread_that_ignores_its_timeout_is_given_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.tasks.heartbeats.ABANDON_RUN_SECONDS", 0.05)
    tasks, go_on = Tasks(queue="q"), threading.Event()

    @tasks.task(timeout=0.05, retries=0)
    def hang() -> None:
        go_on.wait(60)

    @tasks.task
    def fine() -> str:
        return "ran"

    stuck, after = hang.put(store), fine.put(store)
    with Worker(store, tasks, threads=1) as worker:
        assert after.result(timeout=30) == "ran"
        assert worker.stuck == 1
        go_on.set()
        until(lambda: worker.stuck == 0)

    failure = failure_of(store, stuck.id)
    assert failure.group == "timeout"
