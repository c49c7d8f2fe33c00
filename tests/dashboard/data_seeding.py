"""Entities, tables, events and metrics of a small shop, for the tests of their pages."""

import time
from datetime import UTC, datetime

from holdfast.client.client import ClientSpace

HOSTILE_TEXT = '<script>alert(1)</script>"><img src=x onerror=alert(2)> \u202egnp.exe'
SHOP_YAML = """schema: shop
tables:
  Users:
    comment: people who buy
    columns:
      name: {type: Text, required: true}
      country: {type: Text}
      age: {type: Int}
      seen: {type: Timestamp}
      tags: {type: Set, options: {subtype: Text}}
    indexes:
      - {type: compound, columns: [country, age]}
  Orders:
    columns:
      total: {type: Float}
"""
COUNTRIES = ("de", "fr", "jp", "br")


def seed_entities(space: ClientSpace, number: int = 120) -> None:
    """Deploys a schema with two tables, and puts users."""
    space.entities.deploy(SHOP_YAML)
    users = [
        {
            "id": f"user-{each:03}",
            "name": f"Customer {each}",
            "country": COUNTRIES[each % 4],
            "age": 18 + each % 60,
            "seen": datetime(2026, 11, 1 + each % 28, 12, tzinfo=UTC),
            "tags": {"vip"} if each % 9 == 0 else {"new", "web"},
        }
        for each in range(number)
    ]
    space.entities.put_raw("shop.Users", users)


REVISIONS = {
    "table": "revisions",
    "attributes": {
        "title": "string", "rev": "int", "tid": "timeuuid", "body": "string", "author": "string",
    },
    "index": [
        {"attribute": "title", "type": "hash"},
        {"attribute": "rev", "type": "range", "order": "desc"},
    ],
    "secondaryIndexes": {"by_author": [{"attribute": "author", "type": "hash"}]},
    "revisionRetentionPolicy": {"type": "all"},
}  # fmt: skip


def seed_tables(space: ClientSpace, number: int = 70) -> None:
    """Creates a table of revisions, two of each page, and an empty table."""
    space.tables.create(REVISIONS)
    plain = {"attributes": {"id": "int"}, "index": [{"attribute": "id", "type": "hash"}]}
    space.tables.create(plain, table="empty")
    space.tables.batch(
        [
            {
                "op": "put",
                "table": "revisions",
                "attributes": {
                    "title": f"Page_{each:03}",
                    "rev": rev,
                    "body": f"A {('short', 'long')[rev - 1]} text about {each}",
                    "author": ("ann", "ben")[each % 2],
                },
            }
            for each in range(number)
            for rev in (1, 2)
        ]
    )


EVENTS = {
    "shop:view": [
        {"targets": ["['visitors']", "[@day]"], "add": "visitor", "max_stored_values": 100},
        {"targets": ["['popular']"], "count_frequency": "artwork", "max_stored_values": 10},
        {"targets": ["['prices']"], "aggregate": "price"},
    ]
}


def seed_events(space: ClientSpace, number: int = 60) -> None:
    """Puts a schema into force, and sends views of the last days."""
    space.events.deploy(EVENTS)
    now = int(time.time() * 1000)
    space.events.send_many(
        [
            {
                "name": "shop:view",
                "at": now - each % 9 * 86_400_000,
                "attributes": {
                    "visitor": f"visitor-{each}",
                    "artwork": f"artwork-{(each * each) % 7}",
                    "price": 10 + each,
                },
            }
            for each in range(number)
        ]
    )


def seed_metrics(space: ClientSpace) -> None:
    """Defines a metric of each kind, and writes some values."""
    space.metrics.define(
        {
            "visits": {"help": "pages that were read"},
            "load": {"type": "gauge"},
            "seconds": {"type": "distribution"},
        }
    )
    for number in range(1, 9):
        space.metrics.incr("visits", ["user", f"user-{number}"], number)
        space.metrics.incr("visits", None, number)
        space.metrics.set("load", None, number)
        space.metrics.record("seconds", None, number / 10)


def seed_hostile_data(space: ClientSpace) -> None:
    """Puts entities, rows, events and metrics that try to be more than text, or are very large."""
    large = "x" * 1_048_576
    space.entities.deploy(SHOP_YAML)
    hostile = {"id": HOSTILE_TEXT, "name": HOSTILE_TEXT, HOSTILE_TEXT: HOSTILE_TEXT}
    odd = {"id": "odd", "name": large, "tags": {f"tag-{n}" for n in range(10_000)}, "raw": b"\xff"}
    space.entities.put_raw("shop.Users", [hostile, odd])
    space.tables.create(REVISIONS)
    for rev, body in ((1, HOSTILE_TEXT), (2, f"x {HOSTILE_TEXT}"), (3, large)):
        row = {"title": HOSTILE_TEXT, "rev": rev, "body": body, "author": HOSTILE_TEXT}
        space.tables.put("revisions", row)
    handlers = [
        {"targets": ["['seen']"], "add": "who", "max_stored_values": 9},
        {"targets": ["[who]"], "count_frequency": "who", "max_stored_values": 9},
    ]
    space.events.deploy({HOSTILE_TEXT: handlers}, name="hostile")
    space.events.send({"name": HOSTILE_TEXT, "attributes": {"who": HOSTILE_TEXT}})
    space.metrics.define({"visits": {"help": HOSTILE_TEXT}})
    space.metrics.incr("visits", [HOSTILE_TEXT])
