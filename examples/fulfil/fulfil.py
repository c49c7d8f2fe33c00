"""A workflow that charges a card, waits for an approval and ships: a crash repeats no step."""

from pathlib import Path

import holdfast
from holdfast.tasks import Run, Tasks, Tx, Worker

tasks = Tasks("fulfil", queue="orders")


def charge_card(order: str) -> str:
    """Imitates a payment service, which knows a payment by its key."""
    with Path("payments.txt").open("a") as payments:
        payments.write(f"{order}\n")
    return f"payment of {order}"


def mark_paid(tx: Tx, order: str) -> None:
    """Counts the payment, in one commit with the result of the step: exactly once."""
    tx.metrics.incr("paid")


def ship(order: str) -> str:
    return f"parcel of {order}"


@tasks.workflow(name="fulfil", retries=10)
def fulfil(run: Run, order: str) -> str:
    payment = run.step(charge_card, order)
    run.transact(mark_paid, order)
    answer = run.wait(
        "approved", timeout=7 * 86_400, default="nobody"
    )  # the slot is free meanwhile
    if answer == "nobody":
        return f"{payment}, to be given back"
    parcel = run.step(ship, order)
    return f"{payment}, approved by {answer}, {parcel}"


def prepare(store: holdfast.Store) -> None:
    """Defines the metrics; repeating it changes nothing."""
    store.metrics.define({"paid": {"lifetime": True}})


def main() -> None:
    with holdfast.open("fulfil-data") as store:
        prepare(store)
        job = fulfil.put(store, "1001")
        Worker(store, tasks).run_until_empty()
        for step in fulfil.status(store, job.id).steps:
            print(f"{step.name}: {'done' if step.ended else 'waits'}")

        fulfil.signal(store, job.id, "approved", "ann")
        Worker(store, tasks).run_until_empty()
        print(job.result())
        print(f"paid: {store.metrics.lifetime('paid')}")


if __name__ == "__main__":
    main()
