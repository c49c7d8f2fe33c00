"""The transaction that the campaign's clients make: one order, noted in all five layers.

The same function runs on a transaction of the library and in a batch of the client. Each layer has
the order on its own terms, and the row counts how often the order was placed, so that a loss, a
double and layers that disagree all leave a trace.
"""

from typing import Any, Final

import msgspec

from holdfast.entities import Model, column, index, schema_yaml
from holdfast.store import Space, Store
from tests.stores import problems_of

SPACES: Final = 3  # on a cluster they are on different primaries
PAGE: Final = 500


class Order(Model, schema="campaign", table="Orders", primary=("mark",)):
    mark: str = column(required=True)
    client: str = column(default="")


class IndexedOrder(
    Model,
    schema="campaign",
    table="Orders",
    primary=("mark",),
    indexes=[index("client")],
):
    """The table of orders with an index, for actions that build one."""

    mark: str = column(required=True)
    client: str = column(default="")


class Audit(msgspec.Struct, frozen=True):
    """The orders that a store has."""

    marks: frozenset[str]
    doubled: int  # orders that were placed more than once
    problems: list[str]  # layers that disagree, and what the checks find


def space_of(client: int) -> str:
    return f"shop {client % SPACES}"


def prepare(store: Store) -> None:
    """Makes the tables and handlers of every space."""
    for number in range(SPACES):
        space = store.space(space_of(number))
        space.entities.deploy(schema_yaml(Order))
        space.events.deploy({"order": [{"targets": ["['orders']"], "add": "mark"}]})
        space.metrics.define({"orders": {"lifetime": True}})
        space.tables.create(
            {
                "table": "orders",
                "attributes": {"mark": "string", "client": "string", "times": "int"},
                "index": [{"type": "hash", "attribute": "mark"}],
            }
        )


def place(layers: Any, mark: str) -> None:
    """Places an order in a transaction or in a batch, which have the same methods."""
    client = mark.partition("-")[0]
    layers.entities.put_raw("campaign.Orders", [{"mark": mark, "client": client}])
    layers.jobs.put("orders", "Order", {"mark": mark}, id=mark)
    layers.events.send({"name": "order", "attributes": {"mark": mark}})
    layers.metrics.incr("orders")
    layers.tables.put("orders", {"mark": mark, "client": client, "times": {"incr": 1}})


def audit(store: Store) -> Audit:
    """Reads all orders in all layers, and runs the store's own checks."""
    marks: set[str] = set()
    doubled, problems = 0, store.check() + problems_of(store)
    for name in map(space_of, range(SPACES)):
        rows = _rows(store.space(name))
        marks |= rows.keys()
        doubled += sum(times > 1 for times in rows.values())
        problems += _disagreements(store.space(name), rows)
    return Audit(frozenset(marks), doubled, problems)


def _rows(space: Space) -> dict[str, int]:
    rows, page = {}, None
    while page is None or page.next is not None:
        page = space.tables.get("orders", limit=PAGE, next=None if page is None else page.next)
        rows.update({str(item["mark"]): int(item["times"]) for item in page.items})
    return rows


def _disagreements(space: Space, rows: dict[str, int]) -> list[str]:
    marks = sorted(rows)
    jobs = [
        job.id
        for begin in range(0, len(marks), PAGE)
        for job in space.jobs.multiget(*marks[begin : begin + PAGE])
    ]
    placed = sum(rows.values())
    found = {
        "entities": (space.entities.count_raw("campaign.Orders"), len(rows)),
        "jobs": (space.jobs.length("orders"), len(rows)),
        "jobs that rows name": (len(jobs), len(rows)),
        "events": (space.events.gross("orders"), placed),
        "metrics": (int(space.metrics.lifetime("orders")), placed),
    }
    return [
        f"{space.name}: {count} orders in {layer}, {expected} in rows"
        for layer, (count, expected) in found.items()
        if count != expected
    ]
