"""`holdfast metrics` and what `holdfast events` reads."""

import datetime

import holdfast
from tests.cli.conftest import Command
from tests.cli.running import holdfast as run


def test_metrics_are_listed_and_read(command: Command, store: holdfast.Store) -> None:
    store.metrics.define({"orders": {}})
    store.metrics.incr("orders", ["ann"], 3)
    store.metrics.incr("orders", ["bob"], 1)

    ranked = command("metrics", "top", "orders").out
    ann = command("metrics", "rate", "orders", "--entity", "ann", "--json").json
    series = command("metrics", "series", "orders", "--entity", "ann", "--json").json

    assert command("metrics", "list").out == "orders\n"
    assert ranked == "entity  orders\nann          3\nbob          1\n"
    assert (ann["total"], ann["per_hour"]) == (3, 3.0)
    assert sum(value or 0 for value in series["values"]) == 3
    assert command("metrics", "value", "orders", "--entity", "bob").out == "1\n"
    assert command("metrics", "rate", "ordrs", "--json").error["code"] == "unknown_metric"


def test_what_events_add_up_to_is_read(command: Command, store: holdfast.Store) -> None:
    store.events.deploy(
        {
            "view": [
                {"targets": ["['pages']"], "count_frequency": "page"},
                {"targets": ["['seen']", "[@day]"], "add": "page"},
            ]
        }
    )
    for page in ("home", "home", "help"):
        store.events.send({"name": "view", "attributes": {"page": page}})
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    [key] = [each.key for each in store.events.keys("seen").keys]

    series = command(
        *("events", "series", key.replace(today, "{day}"), "--from", today, "--to", today),
        "--json",
    ).json
    members = command("events", "members", key).out.splitlines()

    assert command("events", "top", "pages").out == "value  count\nhome       2\nhelp       1\n"
    assert command("events", "count", key).out == "3 in all, 2 different\n"
    assert [point["value"] for point in series["points"]] == [3]
    assert [line.split()[0] for line in members] == ["value", "help", "home"]
    assert members[1].endswith("Z")
    assert "pages" in command("events", "keys").out


def test_a_chart_is_on_a_terminal_alone() -> None:
    from holdfast.cli.charts import bar, sparkline

    assert (sparkline([0, 7]), bar(1, 1)) == ("▁█", "█" * 30)
    assert run("metrics", "top", "--help").code == 0
