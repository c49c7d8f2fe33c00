"""`store.aio`: the embedded store for programs that `await`."""

import asyncio
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest

import holdfast
from holdfast.async_store import AsyncStoreSpace
from holdfast.async_store.read_times import ReadTimes
from holdfast.engine.contract import Notice
from holdfast.errors import BadInput, StoreClosed, UnknownJob
from holdfast.limits import ASYNC_READ_SECONDS, REMEMBERED_LARGE_READ_SECONDS
from holdfast.store import Store, Tx
from holdfast.tasks import Tasks
from holdfast.testing import Clock, run_tasks, temporary_store
from tests.client.both_clients import Awaiting
from tests.server.examples import EXAMPLES
from tests.server.test_same_answers import in_python, told
from tests.stores import Stores

DEADLINE = 60.0


@pytest.fixture
def real_time_store(stores: Stores) -> Iterator[Store]:
    with holdfast.open(stores.url(), durability="interval") as store:
        yield store


# --- calls ----------------------------------------------------------------------------------------


def test_every_operation_gives_the_very_objects_that_the_store_gives(
    real_time_store: Store,
) -> None:
    with asyncio.Runner() as runner:
        for layer, calls in EXAMPLES.items():
            plain = real_time_store.space(f"plain-{layer}")
            awaited = Awaiting(real_time_store.aio.space(f"awaited-{layer}"), runner)
            for number, call in enumerate(calls):
                expected = told(in_python(plain, call), call.apart_from)

                answer = told(in_python(awaited, call), call.apart_from)

                if layer != "admin":  # which speaks of its space, by name and number
                    assert answer == expected, (number, call)


def test_calls_of_many_tasks_succeed_and_fail_each_for_itself(store: Store) -> None:
    async def put_all() -> list[Any]:
        puts = [store.aio.jobs.put("emails", id=f"job-{n}") for n in range(20)]
        wrong = store.aio.jobs.complete("nobody", "worker")
        return await asyncio.gather(*puts, wrong, return_exceptions=True)

    *ids, error = asyncio.run(put_all())

    assert ids == [f"job-{n}" for n in range(20)]
    assert isinstance(error, UnknownJob)
    assert store.jobs.length("emails") == 20


def test_writes_that_begin_together_share_a_commit(store: Store) -> None:
    async def put_all() -> None:
        await asyncio.gather(*(store.aio.jobs.put("emails") for _ in range(50)))

    before = store.stats()["groups"]
    asyncio.run(put_all())

    assert store.stats()["groups"] - before <= 3  # 50 without groups


@pytest.mark.every_engine
def test_a_transaction_runs_in_a_thread_and_is_undone_if_it_raises(store: Store) -> None:
    user: ContextVar[str] = ContextVar("user")
    threads = []

    def order(tx: Tx) -> str:
        threads.append(threading.current_thread())
        tx.jobs.put("emails", id=f"receipt-{user.get()}")
        return user.get()

    def fail(tx: Tx) -> None:
        tx.jobs.put("emails", id="never")
        raise LookupError("no stock")

    async def run() -> str:
        user.set("ann")
        with pytest.raises(LookupError, match="no stock"):
            await store.aio.transact(fail)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await store.aio.transact(lambda tx: next(iter(())))
        return await store.aio.transact(order)

    assert asyncio.run(run()) == "ann"
    assert threading.main_thread() not in threads
    assert _waiting(store) == ["receipt-ann"]


def test_a_view_is_one_snapshot(store: Store) -> None:
    store.jobs.put("emails", id="one")

    async def look() -> tuple[int, int]:
        return await store.aio.view(
            lambda view: (view.jobs.length("emails"), view.jobs.length("other"))
        )

    assert asyncio.run(look()) == (1, 0)


def test_a_batch_is_one_transaction_and_says_which_step_has_failed(store: Store) -> None:
    async def run() -> tuple[str, int]:
        async with store.aio.batch() as batch:
            put = batch.jobs.put("emails", id="one")
            length = batch.jobs.length("emails")
        with pytest.raises(UnknownJob) as caught:
            async with store.aio.batch() as batch:
                batch.jobs.put("emails", id="two")
                batch.jobs.complete("nobody", "worker")
        assert vars(caught.value)["position"] == 1
        async with store.aio.pipeline() as pipeline:
            wrong = pipeline.jobs.complete("nobody", "worker")
            pipeline.jobs.put("emails", id="three")
        with pytest.raises(UnknownJob):
            wrong.result()
        with pytest.raises(BadInput, match="already run"):
            batch.jobs.put("emails", id="late")
        return put.result(), length.result()

    assert asyncio.run(run()) == ("one", 1)
    assert _waiting(store) == ["one", "three"]


def test_limits_and_rates_go_by_the_clock_of_the_store(store: Store, clock: Clock) -> None:
    async def run() -> tuple[bool, bool, bool]:
        limiter = store.aio.metrics.limiter({"orders": "1/minute"}, algorithm="strict")
        first = await limiter.try_incr("orders", ["ann"])
        second = await limiter.try_incr("orders", ["ann"])
        clock.advance(seconds=120)
        return first.allowed, second.allowed, (await limiter.try_incr("orders", ["ann"])).allowed

    assert asyncio.run(run()) == (True, False, True)


def test_a_space_is_created_by_its_first_write(store: Store) -> None:
    async def run() -> tuple[int, bool]:
        shop = store.aio.space("shop")
        length = await shop.jobs.length("emails")
        is_there = store.has_space("shop")
        await shop.jobs.put("emails")
        return length, is_there

    assert asyncio.run(run()) == (0, False)
    assert store.space("shop").jobs.length("emails") == 1
    assert isinstance(store.space("shop").aio, AsyncStoreSpace)


def test_tasks_are_put_with_await(store: Store) -> None:
    tasks = Tasks(queue="emails")

    @tasks.task(name="double")
    def double(number: int) -> int:
        return 2 * number

    async def run() -> int:
        job = await double.put(store.aio, 21)
        await asyncio.to_thread(run_tasks, store, tasks)
        return await job.result()

    assert asyncio.run(run()) == 42


# --- waits ----------------------------------------------------------------------------------------


@pytest.mark.every_engine
def test_many_tasks_wait_for_jobs_without_a_thread_each(real_time_store: Store) -> None:
    jobs = real_time_store.aio.jobs

    async def run() -> set[str]:
        waiting = [
            asyncio.create_task(jobs.pop_wait(["a", "b"], f"w{n}", timeout=DEADLINE))
            for n in range(40)
        ]
        while len(real_time_store.aio.runs.lines.lines.get(_key(real_time_store, "a"), ())) < 40:
            await asyncio.sleep(0)
        before = threading.active_count()
        await asyncio.gather(*(jobs.put("ab"[n % 2], id=f"job-{n}") for n in range(40)))
        popped = await asyncio.gather(*waiting)
        assert threading.active_count() - before < 30  # those of the reads and of the driver
        return {job.id for found in popped for job in found}

    assert asyncio.run(run()) == {f"job-{n}" for n in range(40)}
    assert real_time_store.aio.runs.lines.lines == {}


def test_a_wait_ends_without_jobs_when_its_time_is_over(store: Store) -> None:
    assert asyncio.run(store.aio.jobs.pop_wait("emails", "worker", timeout=0.01)) == []


def test_a_wait_hears_of_a_job_that_another_process_could_have_put(real_time_store: Store) -> None:
    async def run() -> list[str]:
        waiting = asyncio.create_task(real_time_store.aio.jobs.pop_wait("emails", "worker"))
        await asyncio.to_thread(real_time_store.jobs.put, "emails", id="plain")
        return [job.id for job in await asyncio.wait_for(waiting, DEADLINE)]

    assert asyncio.run(run()) == ["plain"]


def test_a_cancelled_wait_leaves_its_job_to_the_next(real_time_store: Store) -> None:
    aio = real_time_store.aio

    async def run() -> list[str]:
        real_time_store.jobs.put("emails", id="welcome")
        first = asyncio.create_task(aio.jobs.pop_wait("emails", "first"))
        await asyncio.sleep(0)  # its pop is on its way
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        found = await aio.jobs.pop_wait("emails", "second", timeout=DEADLINE)
        return [job.worker for job in found]

    assert asyncio.run(run()) == ["second"]


def test_the_result_of_a_job_is_awaited(real_time_store: Store) -> None:
    aio = real_time_store.aio

    async def run() -> str:
        await aio.jobs.put("emails", id="welcome")
        waiting = asyncio.create_task(aio.jobs.result_wait("welcome", timeout=DEADLINE))
        await aio.jobs.pop("emails", "worker")
        await aio.jobs.complete("welcome", "worker")
        return (await waiting).state

    assert asyncio.run(run()) == "complete"
    with pytest.raises(UnknownJob):
        asyncio.run(aio.jobs.result_wait("nobody", timeout=1))


def test_notices_are_heard_in_the_order_of_their_commits(real_time_store: Store) -> None:
    def publish(number: int) -> Any:
        notice = Notice("news", str(number).encode())
        return lambda tx: tx.publish(notice)

    async def run() -> list[bytes]:
        async with real_time_store.aio.subscribe("news") as notices:
            for number in range(3):
                await real_time_store.aio.transact(publish(number))
            heard = [(await notices.get(DEADLINE)).payload for _ in range(2)]
            rest = [notice.payload for notice in await notices.poll()]
            assert await notices.get(0.01) is None
            return heard + rest

    assert asyncio.run(run()) == [b"0", b"1", b"2"]


# --- cancellation, closing, event loops -----------------------------------------------------------


def test_a_write_that_is_cancelled_before_its_turn_is_not_made(store: Store) -> None:
    async def run() -> None:
        put = asyncio.create_task(store.aio.jobs.put("emails", id="never"))
        await asyncio.sleep(0)  # it waits for the end of this round
        put.cancel()
        with pytest.raises(asyncio.CancelledError):
            await put

    asyncio.run(run())

    assert store.jobs.length("emails") == 0


def test_closing_commits_what_has_begun_and_refuses_what_comes_later() -> None:
    async def run(store: Store) -> None:
        waiting = asyncio.create_task(store.aio.jobs.pop_wait("other", "worker"))
        puts = [asyncio.create_task(store.aio.jobs.put("emails")) for _ in range(10)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await store.aio.close()
        assert len(await asyncio.gather(*puts)) == 10
        for late in (waiting, store.aio.jobs.put("emails"), store.aio.jobs.length("emails")):
            with pytest.raises(StoreClosed):
                await late
        with pytest.raises(StoreClosed):
            await store.aio.checkpoint()

    with temporary_store() as store:
        asyncio.run(run(store))


def test_several_event_loops_share_a_store(store: Store) -> None:
    async def put_some(begin: int) -> None:
        await asyncio.gather(*(store.aio.jobs.put("emails", id=f"{begin + n}") for n in range(25)))

    threads = [threading.Thread(target=asyncio.run, args=(put_some(n * 25),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)

    assert store.jobs.length("emails") == 100


def test_what_needs_a_thread_of_its_own_is_refused_with_advice(store: Store) -> None:
    with pytest.raises(AttributeError, match=r"await store\.aio\.transact"):
        store.aio.transaction()  # type: ignore[attr-defined]  # that is the point


def test_a_kind_of_read_that_was_slow_runs_in_a_thread_for_a_while(clock: Clock) -> None:
    times = ReadTimes(clock)
    assert not times.expects_long("entities.select", 10)

    with times.timed("entities.select"):
        clock.advance(seconds=2 * ASYNC_READ_SECONDS)

    assert times.expects_long("entities.select", 10)
    assert not times.expects_long("jobs.get", 10)
    assert times.expects_long("jobs.get", 100_000)
    clock.advance(seconds=REMEMBERED_LARGE_READ_SECONDS + 1)
    assert not times.expects_long("entities.select", 10)


def _key(store: Store, queue: str) -> tuple[bytes, str]:
    return store.prefix, queue


def _waiting(store: Store) -> list[str]:
    return [job.id for job in store.jobs.peek("emails", 10)]
