"""A shop: an order, its e-mail, an event and a limit, all of them in one transaction."""

import holdfast
from holdfast.entities import Model, column, schema_yaml
from holdfast.errors import LimitExceeded

QUEUE = "emails"
ORDERS_OF = {"orders_of": "2/minute"}  # how many orders a customer may place


class Order(Model, schema="shop", table="Orders", primary=("number",)):
    number: str = column(required=True)
    customer: str = column(required=True)
    item: str = column(default="")


def prepare(store: holdfast.Store) -> None:
    """Tables and event handlers; to do it again changes nothing."""
    store.entities.deploy(schema_yaml(Order))
    store.events.deploy({"order": [{"targets": ["['bestsellers']"], "count_frequency": "item"}]})


def place(tx: holdfast.Tx, order: Order) -> None:
    """All that an order is. If any line of this raises, none of them ever happened."""
    tx.metrics.limiter(ORDERS_OF).require("orders_of", [order.customer])
    [id] = tx.entities.put(order)
    tx.jobs.put(QUEUE, "SendReceipt", {"order": id}, id=f"receipt-{order.number}")
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


def send_receipts(store: holdfast.Store) -> None:
    """What a worker does, in this process or in any other."""
    while jobs := store.jobs.pop(QUEUE, worker="mailer"):
        for job in jobs:
            order = store.entities.get_one(Order, job.data["order"])
            assert order is not None  # it was put together with its job
            print(f"mail to {order.customer}: thank you for order {order.number}")
            store.jobs.complete(job.id, "mailer")


def main() -> None:
    with holdfast.open("shop-data") as store:
        prepare(store)
        try_to_place(store, Order(number="1", customer="ann", item="tea"))
        try_to_place(store, Order(number="2", customer="bob", item="moon"))
        try_to_place(store, Order(number="3", customer="bob", item="tea"))
        try_to_place(store, Order(number="4", customer="bob", item="cups"))
        try_to_place(store, Order(number="5", customer="bob", item="tea"))
        send_receipts(store)
        for entry in store.events.top("bestsellers"):
            print(f"sold {entry.count}: {entry.value}")


if __name__ == "__main__":
    main()
