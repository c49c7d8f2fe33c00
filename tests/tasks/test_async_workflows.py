"""Async workflows: the same steps with await."""

import asyncio

import pytest

from holdfast.store import Store
from holdfast.tasks import AsyncRun, Tasks, Tx, fixed
from holdfast.testing import Clock, run_tasks

pytestmark = pytest.mark.every_engine


def test_an_async_workflow_is_the_same_with_await(store: Store, clock: Clock) -> None:
    store.metrics.define({"done": {"lifetime": True}})
    tasks, ran = Tasks(queue="q"), list[str]()

    async def fetch(name: str) -> str:
        await asyncio.sleep(0)
        ran.append(name)
        return name

    def count(tx: Tx) -> None:
        tx.metrics.incr("done")

    @tasks.workflow
    async def flow(run: AsyncRun) -> list[str]:
        found = await asyncio.gather(*[run.step(fetch, name) for name in "abc"])
        await run.transact(count)
        await run.sleep(10)
        found.append(await run.step(str, "d"))
        return [*found, str(await run.wait("go"))]

    job = flow.put(store)
    run_tasks(store, tasks)
    clock.advance(seconds=10)
    run_tasks(store, tasks)
    flow.signal(store, job.id, "go", "now")
    run_tasks(store, tasks)

    assert job.result(timeout=0) == ["a", "b", "c", "d", "now"]
    assert sorted(ran) == ["a", "b", "c"]
    assert store.metrics.lifetime("done") == 1


def test_an_async_step_that_ended_the_run_is_done_again(store: Store) -> None:
    tasks, asked = Tasks(queue="q"), list[str]()

    async def fetch(name: str) -> str:
        asked.append(name)
        if asked == ["flaky", "sure"]:
            await asyncio.sleep(0)  # the other branch goes on first
        if asked.count("flaky") == 1 and name == "flaky":
            raise OSError("connection refused")
        return name

    @tasks.workflow(retries=1, backoff=fixed(0))
    async def flow(run: AsyncRun) -> list[str]:
        async def twice(name: str) -> str:
            await run.step(fetch, name)
            return await run.step(fetch, f"{name} again")

        first = asyncio.ensure_future(run.step(fetch, "flaky"))
        second = asyncio.ensure_future(twice("sure"))
        await asyncio.wait([first, second])
        return [await first, await second]

    job = flow.put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert job.result(timeout=0) == ["flaky", "sure again"]


def test_an_async_step_whose_error_was_caught_is_not_done_again(store: Store, clock: Clock) -> None:
    tasks, asked = Tasks(queue="q"), list[str]()

    async def fetch(name: str) -> str:
        asked.append(name)
        raise OSError(name)

    @tasks.workflow
    async def flow(run: AsyncRun) -> list[str]:
        async def branch(name: str) -> str:
            return await run.step(fetch, name)

        found = await asyncio.gather(branch("a"), run.step(fetch, "b"), return_exceptions=True)
        await run.sleep(10)
        return [repr(each) for each in found]

    job = flow.put(store)
    run_tasks(store, tasks)
    clock.advance(seconds=10)
    run_tasks(store, tasks)

    assert job.result(timeout=0) == ["OSError('a')", "OSError('b')"]
    assert sorted(asked) == ["a", "b"]
