"""A shop: an order, its tasks, an event and a limit, all of them in one transaction."""

import holdfast
from holdfast.entities import Model, column, schema_yaml
from holdfast.errors import LimitExceeded
from holdfast.tasks import Run, Tasks, Tx, Worker

tasks = Tasks("shop", queue="shop")
ORDERS_OF = {"orders_of": "2/minute"}  # how many orders a customer may place


class Order(Model, schema="shop", table="Orders", primary=("number",)):
    number: str = column(required=True)
    customer: str = column(required=True)
    item: str = column(default="")


@tasks.task
def send_receipt(run: Run, number: str) -> None:
    """Sends an e-mail. It may be sent again if the worker dies right after it."""
    order = run.store.entities.get_one(Order, f"{number}|")
    print(f"mail to {order.customer}: thank you for order {order.number}")
    run.put_next(give_points, number)


@tasks.task
def give_points(tx: Tx, number: str) -> None:
    """Gives a point, in one commit with the completion of its job: exactly once."""
    order = tx.entities.get_one(Order, f"{number}|")
    assert order is not None  # it was put together with its job
    tx.metrics.incr("points", [order.customer])


def prepare(store: holdfast.Store) -> None:
    """Deploys tables and event handlers; repeating it changes nothing."""
    store.entities.deploy(schema_yaml(Order))
    store.events.deploy({"order": [{"targets": ["['bestsellers']"], "count_frequency": "item"}]})
    store.metrics.define({"points": {"lifetime": True}})


def place(tx: holdfast.Tx, order: Order) -> None:
    """Places an order. If any line of this raises, nothing of it is stored."""
    tx.metrics.limiter(ORDERS_OF).require("orders_of", [order.customer])
    tx.entities.put(order)
    send_receipt.options(id=f"receipt-{order.number}").put(tx, order.number)
    tx.events.send({"name": "order", "attributes": {"item": order.item}})
    if order.item == "moon":
        raise ValueError("we are out of moons")


def try_to_place(store: holdfast.Store, order: Order) -> None:
    try:
        store.transact(lambda tx: place(tx, order))
        print(f"order {order.number}: {order.customer} gets {order.item}")
    except LimitExceeded:
        print(f"order {order.number}: {order.customer} must wait a minute")
    except ValueError as error:
        print(f"order {order.number}: {error}")


def main() -> None:
    with holdfast.open("shop-data") as store:
        prepare(store)
        try_to_place(store, Order(number="1", customer="ann", item="tea"))
        try_to_place(store, Order(number="2", customer="bob", item="moon"))
        try_to_place(store, Order(number="3", customer="bob", item="tea"))
        try_to_place(store, Order(number="4", customer="bob", item="cups"))
        try_to_place(store, Order(number="5", customer="bob", item="tea"))
        Worker(store, tasks).run_until_empty()
        for entry in store.events.top("bestsellers"):
            print(f"sold {entry.count}: {entry.value}")
        print(f"points of bob: {store.metrics.lifetime('points', ['bob'])}")


if __name__ == "__main__":
    main()
