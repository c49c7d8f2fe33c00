"""Calls of tasks, right and wrong ones: `test_typing.py` compares what type checkers say of them.

A line that must be refused ends with `# refused`.
"""

from datetime import date
from typing import assert_type

import holdfast
from holdfast.client.async_client import AsyncClient
from holdfast.client.client import Client
from holdfast.tasks import AsyncRun, AsyncTaskJob, Batch, Run, TaskJob, Tasks, Tx, provided

tasks = Tasks(queue="receipts", retries=3)


class Mailer:
    def send(self, to: str) -> None: ...


@tasks.task
def plain(order: str, copies: int = 1) -> dict[str, int]:
    return {order: copies}


@tasks.task(retries=5, timeout=30, name="mark")
def mark(tx: Tx, order: str, *, on: date) -> None:
    tx.jobs.length(order)


@tasks.task
def told(run: Run, tx: Tx, order: str) -> int:
    return run.job.attempt


@tasks.task
async def resize(run: Run, width: int) -> float:
    return float(width)


@tasks.task
async def fetch(url: str) -> bytes:
    return url.encode()


@tasks.task
def over_the_network(batch: Batch, order: str) -> str:
    return order


@tasks.task
def mail(order: str, mailer: Mailer = provided) -> None:
    mailer.send(order)


@tasks.workflow(retries=10)
def fulfil(run: Run, order: str) -> int:
    assert_type(run.step(len, order), int)
    assert_type(run.gather([plain.call(order)]), list[dict[str, int]])
    return run.step(len, order)


@tasks.workflow
async def fulfil_async(run: AsyncRun, order: str) -> int:
    await run.sleep(days=1)
    return await run.step(len, order)


def right(store: holdfast.Store, client: Client, tx: Tx, batch: Batch) -> None:
    assert_type(plain.put(store, "1001"), TaskJob[dict[str, int]])
    plain.put(store.space("shop"), "1001", copies=2)
    plain.put(tx, order="1001")
    plain.put(client, "1001", 2)
    plain.put(batch, "1001")
    assert_type(plain.put(store, "1001").result(timeout=10), dict[str, int])
    assert_type(plain("1001"), dict[str, int])
    mark.put(tx, "1001", on=date(2026, 1, 2))
    mark(tx, "1001", on=date(2026, 1, 2))
    assert_type(told.put(store, "1001").result(), int)
    assert_type(resize.put(store, 10).result(), float)
    assert_type(fetch.put(client, "http://example.org").result(), bytes)
    over_the_network.put(client, "1001")
    mail.put(store, "1001")
    assert_type(fulfil.put(store, "1001").result(), int)
    assert_type(fulfil_async.put(store, "1001").result(), int)
    plain.options(delay=60, id="receipt-1001", depends=[plain.put(store, "1000")]).put(tx, "1001")


async def right_async(client: AsyncClient) -> None:
    job = await plain.put(client, "1001", copies=3)
    assert_type(job, AsyncTaskJob[dict[str, int]])
    assert_type(await job.result(), dict[str, int])
    assert_type(await fetch("http://example.org"), bytes)


def continued(run: Run) -> None:
    run.put_next(plain, "1001", copies=2)


def wrong(store: holdfast.Store, tx: Tx) -> None:
    plain.put(store)  # refused
    fulfil.put(store, 7)  # refused
    fulfil_async.put(store)  # refused
    plain.put(store, 1001)  # refused
    plain.put(store, "1001", copies="two")  # refused
    plain.put(store, "1001", copy=2)  # refused
    plain.put("1001")  # refused
    mark.put(store, tx, "1001", on=date(2026, 1, 2))  # refused
    mark.put(store, "1001")  # refused
    mark("1001", on=date(2026, 1, 2))  # refused
    told.put(store, 7)  # refused
    resize.put(store, "wide")  # refused
    _: int = plain.put(store, "1001").result()  # refused
    plain.options(delay=1).put(store, 1001)  # refused
    plain.options(dely=1).put(store, "1001")  # refused


async def wrong_async(client: AsyncClient) -> None:
    plain.put(client, 1001)  # refused
    (await plain.put(client, "1001")).id = 3  # refused


def wrongly_continued(run: Run) -> None:
    run.put_next(plain, 1001)  # refused


@tasks.task(retrys=5)  # refused
def misspelt(order: str) -> None: ...
