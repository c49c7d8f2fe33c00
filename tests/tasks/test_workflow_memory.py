"""Remembered steps of a workflow are never forgotten, overwritten or left uncounted."""

import asyncio
from pathlib import Path

import pytest

import holdfast
from holdfast.store import Store
from holdfast.tasks import AsyncRun, Batch, Run, Tasks, Tx
from holdfast.tasks.execution import Runtime
from holdfast.testing import Clock, run_tasks, temporary_server

pytestmark = pytest.mark.every_engine


def test_a_job_that_keeps_little_history_remembers_its_steps(store: Store, clock: Clock) -> None:
    store.jobs.config_set("max-job-history", 2)
    store.metrics.define({"done": {"lifetime": True}})
    tasks = Tasks(queue="q")

    def count(tx: Tx) -> None:
        tx.metrics.incr("done")

    @tasks.workflow
    def flow(run: Run) -> None:
        run.transact(count)
        run.sleep(10)

    job = flow.put(store)
    run_tasks(store, tasks)
    clock.advance(seconds=10)
    run_tasks(store, tasks)

    assert store.jobs.jobs("complete") == [job.id]
    assert store.metrics.lifetime("done") == 1


def test_steps_that_fail_at_the_same_time_are_all_remembered(store: Store, clock: Clock) -> None:
    tasks, ran = Tasks(queue="q"), list[str]()

    async def refuse(name: str) -> None:
        ran.append(name)
        await asyncio.sleep(0)
        raise OSError(name)

    @tasks.workflow
    async def flow(run: AsyncRun) -> list[str]:
        found = await asyncio.gather(
            *[run.step(refuse, name) for name in "abc"], return_exceptions=True
        )
        await run.sleep(10)
        return [str(each) for each in found]

    job = flow.put(store)
    run_tasks(store, tasks)
    clock.advance(seconds=10)
    run_tasks(store, tasks)

    assert job.result(timeout=0) == ["a", "b", "c"]
    assert sorted(ran) == ["a", "b", "c"]


def test_results_of_transactions_count_for_the_bound_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.tasks.workflow_memory.MAX_WORKFLOW_BYTES", 1_000)
    tasks = Tasks(queue="q")

    def large(tx: Tx) -> str:
        return "x" * 400

    @tasks.workflow(retries=0)
    def flow(run: Run) -> None:
        for _ in range(3):
            run.transact(large)

    flow.put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert store.jobs.failed() == {"q-WorkflowTooLarge": 1}


@pytest.mark.only_on("lmdb")
def test_a_workflow_goes_no_further_when_the_store_may_have_forgotten_a_step(
    tmp_path: Path,
) -> None:
    tasks, ran = Tasks(queue="q"), list[str]()
    store = holdfast.open(tmp_path / "data")

    @tasks.workflow
    def flow(run: Run) -> None:
        try:
            run.step(store.close)
        except Exception:
            ran.append("caught")
        run.step(ran.append, "went on")

    flow.put(store)
    [job] = store.jobs.pop("q", "w")
    outcome = Runtime(tasks, store).attempt(job).execute()

    assert ran == ["caught"]
    assert isinstance(outcome.error, holdfast.errors.HoldfastError)


@pytest.mark.only_on("lmdb")
def test_a_batch_that_is_refused_is_a_failure_that_the_workflow_may_catch() -> None:
    tasks = Tasks(queue="q")

    def cancel(batch: Batch) -> None:
        batch.jobs.complete("nobody", "w")

    @tasks.workflow
    def flow(run: Run) -> str:
        try:
            run.transact(cancel)
        except holdfast.errors.UnknownJob:
            return run.step(str, "caught")
        return "done"

    with temporary_server() as url, holdfast.connect(url) as client:
        flow.put(client)
        [job] = client.jobs.pop("q", "w")
        outcome = Runtime(tasks, client).attempt(job).execute()
        kept = [(step.name, step.error_class) for step in client.jobs.steps(job.id)]

    assert outcome.result == "caught"
    assert [name.rpartition(".")[2] for name, _ in kept] == ["cancel", "str"]
    assert kept[0][1] == "holdfast.errors:UnknownJob"
