"""The examples by which tasks and workflows were specified, word for word."""

# ruff: noqa: E501, F841 - they are kept as they were written

import asyncio

import msgspec
import pytest

import holdfast
from holdfast.store import Store
from holdfast.tasks import Run, Tasks, Tx, days, exponential, fixed
from holdfast.testing import Clock, run_tasks, temporary_server

tasks = Tasks(queue="receipts")  # a registry: importing it opens nothing


class Picture(msgspec.Struct):
    width: int
    height: int


class Charge(msgspec.Struct):
    id: str


@tasks.task(retries=5, backoff=exponential(first=1, most=300), timeout=30)
def send_receipt(order: str, copy_to: str | None = None) -> dict[str, str]:
    return {"sent": order}


@tasks.task
async def resize(picture: Picture) -> int:  # runs on the worker's event loop
    return picture.width // 2


charged: list[str] = []
pictures = [Picture(width=20, height=10), Picture(width=40, height=10)]


def charge_card(order: str) -> Charge:
    charged.append(order)
    return Charge(id=f"payment-{order}")


def reserve(order: str) -> None: ...


def mark_paid(tx: Tx, order: str) -> None:
    tx.metrics.incr("paid")


# fmt: off
@tasks.workflow(retries=10)
def fulfil(run: Run, order: str) -> str:
    charge = run.step(charge_card, order)                 # runs once; its result is kept
    run.step(reserve, order, retries=3, backoff=fixed(5)) # a step may have retries of its own
    run.transact(mark_paid, order)                        # a step whose effects and memory are one commit: exactly once
    sizes = run.gather([resize.call(p) for p in pictures])# child jobs on any worker; the slot is free meanwhile
    run.sleep(days=3)                                     # so is it here
    answer = run.wait("approved", timeout=days(7))        # a signal: fulfil.signal(store, id, "approved", value)
    return charge.id
# fmt: on


@pytest.mark.every_engine
def test_the_workflow_charges_once_sleeps_three_days_and_waits_seven_for_approval(
    store: Store, clock: Clock
) -> None:
    charged.clear()
    store.metrics.define({"paid": {"lifetime": True}})
    approved, forgotten = fulfil.put(store, "1001"), fulfil.put(store, "1002")

    run_tasks(store, tasks)
    clock.advance(seconds=days(3))
    run_tasks(store, tasks)
    fulfil.signal(store, approved.id, "approved", "ann")
    run_tasks(store, tasks)
    assert approved.result() == "payment-1001"
    clock.advance(seconds=days(7) - 1)
    assert run_tasks(store, tasks) == []
    clock.advance(seconds=2)
    run_tasks(store, tasks)

    assert forgotten.result() == "payment-1002"
    assert charged == ["1001", "1002"]
    assert store.metrics.lifetime("paid") == 2
    steps = {
        step.name.rpartition(".")[2]: step for step in fulfil.status(store, forgotten.id).steps
    }
    assert list(steps) == [
        "charge_card",
        "reserve",
        "mark_paid",
        "gather",
        "sleep",
        "wait approved",
    ]
    assert steps["gather"].result == [{"result": 10}, {"result": 20}]


def test_a_job_is_put_with_one_verb_wherever_the_caller_is(store: Store) -> None:
    other = send_receipt.put(store, "1000").id

    def work(tx: Tx) -> None:
        send_receipt.put(tx, "1001")
        send_receipt.options(
            delay=60, priority=5, id="receipt-1001", depends=[other], unique="1001"
        ).put(tx, "1001")
        send_receipt.put_many(tx, [("1001",), ("1002",)])

    store.transact(work)
    send_receipt.put(store, order="1001")
    send_receipt.put(store.space("other"), order="1001")
    with temporary_server() as url:
        with holdfast.connect(url) as client, client.batch() as batch:
            send_receipt.put(batch, "1001")
        asyncio.run(_put_async(url))
        with holdfast.connect(url) as client:
            assert [job.data["order"] for job in client.jobs.peek("receipts", count=9)] == [
                "1001",
                "1004",
            ]

    found = store.jobs.get("receipt-1001")
    assert found is not None
    assert found.data == {"order": "1001", "copy_to": None}
    assert send_receipt("1001") == {"sent": "1001"}
    job = send_receipt.put(store, "1003")
    run_tasks(store, tasks)
    assert job.result(timeout=10) == {"sent": "1003"}


async def _put_async(url: str) -> None:
    async with holdfast.aio.connect(url) as aio_client:
        await send_receipt.put(aio_client, "1004")
