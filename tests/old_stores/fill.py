"""Fills a store with something of every layer, by the Holdfast that is installed.

Run with the code of the version to keep, in its own folder:

    PYTHONPATH=CLONE/src python tests/old_stores/fill.py FOLDER [--kill]
    tar -cJf tests/old_stores/VERSION-closed.tar.xz -C FOLDER .

With `--kill` the process ends without closing the store, so that its last commits are in the log.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any, Final, Literal

import holdfast
from holdfast.entities.messages import PutEntity
from holdfast.testing import Clock

NOW: Final = 1_700_000_000.0

ORDERS: Final = """
schema: shop
tables:
  Orders:
    primary: {type: random}
    columns:
      customer: {type: Text}
      total: {type: Float}
    indexes:
      - {type: simple, columns: [customer]}
      - {type: compound, columns: [customer, total]}
"""

PAGES: Final[Mapping[str, Any]] = {
    "table": "pages",
    "attributes": {"title": "string", "rev": "int", "tid": "timeuuid", "html": "string"},
    "index": [
        {"attribute": "title", "type": "hash"},
        {"attribute": "rev", "type": "range", "order": "desc"},
    ],
    "revisionRetentionPolicy": {"type": "latest", "count": 2, "grace_ttl": 0},
}

VIEWS: Final[Mapping[str, Any]] = {
    "shop": [{"targets": ["['visitors']", "[@day]"], "add": "visitor", "max_stored_values": 100}],
    "shop:view": [
        {
            "targets": ["['popular']", "[artist]"],
            "count_frequency": "artwork",
            "max_stored_values": 10,
        }
    ],
}


def fill(store: holdfast.Store) -> None:
    store.entities.deploy(ORDERS)
    store.entities.put_raw(
        "shop.Orders",
        [
            PutEntity({"customer": f"c{n % 7}", "total": float(n)}, id=f"order-{n}")
            for n in range(70)
        ],
    )
    store.entities.put_raw(
        "shop.Orders", [PutEntity({"customer": "brief"}, id="brief", ttl=60 * 10**9)]
    )

    store.tables.create(dict(PAGES))
    for number in range(30):
        page = {"title": f"t{number % 3}", "rev": number // 3, "html": f"<p>{number}"}
        store.tables.put("pages", page)

    store.events.deploy(dict(VIEWS))
    for number in range(40):
        view = {"visitor": f"v{number % 9}", "artist": "leonardo", "artwork": f"w{number % 5}"}
        store.events.send({"name": "shop:view", "attributes": view, "at": "2023-11-14T12:00:00Z"})

    for number in range(20):
        store.jobs.put("emails", "app.Send", {"n": number}, id=f"job-{number:02}", priority=number)
    store.jobs.put("emails", "app.Later", id="later", delay=3600)
    store.jobs.put("emails", "app.After", id="after", depends=["job-00"])
    store.jobs.recur("reports", "app.Report", id="hourly", interval=3600)
    for number in range(3):
        [job] = store.jobs.pop("emails", worker="old")
        if number:  # the first stays with its worker
            store.jobs.complete(job.id, worker="old", lock=job.lock)

    store.metrics.define({"orders": {}, "points": {"lifetime": True}})
    for _ in range(25):
        store.metrics.incr("orders")
        store.metrics.incr("points", ["ann"], 2)
    limiter = store.metrics.limiter({"logins": "3/hour"}, prefix="app", algorithm="strict")
    for _ in range(3):
        limiter.try_incr("logins", ["ann"])

    store.space("other").entities.deploy(ORDERS)
    store.space("other").entities.put_raw("shop.Orders", [{"customer": "elsewhere"}])


def main(folder: str, *options: str) -> None:
    is_killed = "--kill" in options
    durability: Literal["commit", "interval"] = "interval" if is_killed else "commit"
    store = holdfast.open(folder, durability=durability, clock=Clock(NOW))
    fill(store)
    if is_killed:
        os._exit(0)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
