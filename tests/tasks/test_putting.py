"""Putting: one verb for transactions, stores, spaces, clients and batches."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.client.client import Client
from holdfast.errors import BadInput, BadTask, TaskFailed, TaskNotFinished
from holdfast.jobs import Job
from holdfast.store import Store, Tx
from holdfast.tasks import Fail, Tasks
from holdfast.testing import Clock, run_tasks, temporary_server

tasks = Tasks(queue="receipts")


@tasks.task(name="send")
def send(order: str, copy_to: str | None = None) -> dict[str, str]:
    if order == "none":
        raise Fail("no-order", "there is no such order")
    return {"sent": order}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with temporary_server() as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with holdfast.connect(url) as client:
        yield client


def data_of(job: Job | None) -> Any:
    assert job is not None
    return job.data


def test_arguments_are_kept_by_name_so_that_people_can_read_them(store: Store) -> None:
    job = send.put(store, "1001").get()

    assert job is not None
    assert (job.klass, job.queue) == ("send", "receipts")
    assert job.data == {"order": "1001", "copy_to": None}


def test_a_job_is_put_with_its_transaction_or_not_at_all(store: Store) -> None:
    with store.transaction() as tx:
        kept = send.put(tx, "1001")

    def put_and_raise(tx: Tx) -> None:
        send.put(tx, "1002")
        raise KeyError

    with pytest.raises(KeyError):
        store.transact(put_and_raise)

    assert store.jobs.length("receipts") == 1
    assert data_of(store.jobs.get(kept.id))["order"] == "1001"


def test_a_job_is_put_into_a_space(store: Store) -> None:
    send.put(store.space("shop"), "1001")

    assert store.jobs.length("receipts") == 0
    assert store.space("shop").jobs.length("receipts") == 1


def test_a_job_is_put_by_a_client(client: Client) -> None:
    job = send.put(client, order="1001")

    assert data_of(job.get()) == {"order": "1001", "copy_to": None}


def test_a_job_is_put_with_a_batch(client: Client) -> None:
    with client.batch() as batch:
        job = send.put(batch, "1001")
        many = send.put_many(batch, [("1",), ("2",)])
        with pytest.raises(BadInput, match="not sent"):
            _ = job.id

    assert data_of(client.jobs.get(job.id))["order"] == "1001"
    assert [data_of(client.jobs.get(each.id))["order"] for each in many] == ["1", "2"]
    with pytest.raises(BadInput, match="can't wait"):
        job.result()


def test_a_job_is_put_and_awaited_by_an_async_client(url: str) -> None:
    async def put() -> dict[str, str]:
        async with holdfast.aio.connect(url) as client:
            space = client.space("asynchronous")
            job = await send.put(space, "1001")
            await send.put_many(space, [{"order": "1002"}])
            with holdfast.connect(url) as sync:
                await asyncio.to_thread(run_tasks, sync.space("asynchronous"), tasks)
            assert data_of(await job.get())["order"] == "1001"
            return await job.result(timeout=5)

    assert asyncio.run(put()) == {"sent": "1001"}


def test_many_jobs_are_one_commit(store: Store) -> None:
    jobs = send.put_many(store, [("1001",), ("1002", "ann"), {"order": "1003"}])

    found = [data_of(job.get()) for job in jobs]
    assert [(each["order"], each["copy_to"]) for each in found] == [
        ("1001", None),
        ("1002", "ann"),
        ("1003", None),
    ]


@pytest.mark.every_engine
def test_options_are_for_one_put(store: Store, clock: Clock) -> None:
    other = send.put(store, "before")
    job = (
        send.options(
            delay=60, priority=5, id="receipt-1001", retries=1, tags=["x"], depends=[other]
        )
        .put(store, "1001")
        .get()
    )

    assert job is not None
    assert (job.id, job.state, job.priority, job.retries) == ("receipt-1001", "depends", 5, 1)
    assert (job.tags, job.dependencies) == (("x",), (other.id,))
    assert len(run_tasks(store, tasks)) == 1
    clock.advance(seconds=60)
    assert [ran.job.id for ran in run_tasks(store, tasks)] == ["receipt-1001"]


def test_a_put_can_name_a_moment_a_deadline_a_timeout_a_rate_key_and_a_batch(
    store: Store, clock: Clock
) -> None:
    batch = store.jobs.batch_open()
    now = clock()
    options = send.options(
        at=now + 60, expires=now + 90, timeout=5, rate_key="ann", batch=batch, queue="other"
    )

    job = options.put(store, "1001").get()
    [many] = options.put_many(store, [("1002",)])

    assert job is not None
    assert (job.state, job.start_by, job.timeout) == ("scheduled", now + 90, 5)
    assert (job.rate_key, job.batch) == ("ann", batch)
    assert store.jobs.batch_close(batch).total == 2
    clock.advance(seconds=90)
    assert (store.jobs.pop("other", "w", 5), many.get()) == ([], None)


def test_several_jobs_can_not_share_an_id(store: Store) -> None:
    with pytest.raises(BadTask, match="one id"):
        send.options(id="a").put_many(store, [("1",)])


def test_a_result_has_the_type_that_the_task_returns(store: Store) -> None:
    job = send.put(store, "1001")
    run_tasks(store, tasks)

    assert job.result(timeout=10) == {"sent": "1001"}
    assert send.job(store, job.id).result() == {"sent": "1001"}


def test_the_result_of_a_failed_job_raises_why(store: Store) -> None:
    job = send.put(store, "none")
    run_tasks(store, tasks, keep_failures=True)

    with pytest.raises(TaskFailed, match="no such order") as failed:
        job.result()

    assert failed.value.group == "no-order"


def test_a_result_that_does_not_come_in_time_raises(store: Store) -> None:
    job = send.put(store, "1001")

    with pytest.raises(TaskNotFinished, match="waiting after 0 seconds"):
        job.result(timeout=0)


# --- unique jobs and throttles --------------------------------------------------------------------


@pytest.mark.every_engine
def test_unique_for_all_arguments(store: Store) -> None:
    own = Tasks(queue="q")

    @own.task(unique=True)
    def sync(account: str, days: set[int]) -> None: ...

    first = sync.put(store, "a", {1, 2, 3})
    again = sync.put(store, account="a", days={3, 2, 1})
    other = sync.put(store, "b", {1, 2, 3})

    assert first.id == again.id != other.id
    assert len(run_tasks(store, own)) == 2
    assert sync.put(store, "a", {1, 2, 3}).id != first.id


def test_unique_by_a_function_of_the_arguments_or_by_a_key(store: Store) -> None:
    own = Tasks(queue="q")

    @own.task(unique=lambda account, days: account, unique_for="queued")
    def sync(account: str, days: int) -> None: ...

    @own.task
    def other(account: str) -> None: ...

    first = sync.put(store, "a", 1)

    assert sync.put(store, "a", 2).id == first.id
    keyed = other.options(unique="a").put(store, "x")
    assert keyed.id != first.id, "keys belong to their tasks"
    assert other.options(unique="a").put(store, "y").id == keyed.id


@pytest.mark.every_engine
def test_max_concurrency_lets_only_so_many_run_at_once(store: Store) -> None:
    own = Tasks(queue="q", throttles=["database"])

    @own.task(name="heavy", max_concurrency=1)
    def heavy(number: int) -> None: ...

    own.deploy(store)
    heavy.put_many(store, [(1,), (2,)])

    [job] = store.jobs.pop("q", "w", 2)
    assert job.throttles == ("database", "task:heavy")
    store.jobs.complete(job.id, "w")
    assert len(store.jobs.pop("q", "w", 2)) == 1
