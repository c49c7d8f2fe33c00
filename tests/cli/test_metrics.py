"""`holdfast metrics` and what `holdfast events` reads."""

import datetime
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import holdfast
from holdfast.cli.metrics import command as metrics_command
from holdfast.metrics.kinds import KINDS
from tests.cli.conftest import Command
from tests.cli.running import holdfast as run
from tests.metrics.test_kinds import FLAG


def test_metrics_are_listed_and_read(command: Command, store: holdfast.Store) -> None:
    store.metrics.define({"orders": {}})
    store.metrics.incr("orders", ["ann"], 3)
    store.metrics.incr("orders", ["bob"], 1)

    ranked = command("metrics", "top", "orders").out
    ann = command("metrics", "rate", "orders", "--entity", "ann", "--json").json
    series = command("metrics", "series", "orders", "--entity", "ann", "--json").json

    listed = command("metrics", "list").out
    assert listed == "metric  type     prefix\norders  counter  WRStats\n"
    assert ranked == "entity  orders\nann          3\nbob          1\n"
    assert (ann["total"], ann["per_hour"]) == (3, 3.0)
    assert sum(value or 0 for value in series["values"]) == 3
    assert command("metrics", "value", "orders", "--entity", "bob").out == "1\n"
    assert command("metrics", "rate", "ordrs", "--json").error["code"] == "unknown_metric"


def test_a_ranking_shows_the_entity_without_components(
    command: Command, store: holdfast.Store
) -> None:
    store.metrics.define({"orders": {}})
    store.metrics.incr("orders")

    assert command("metrics", "top", "orders").out == "entity  orders\n(none)       1\n"


def test_metrics_of_other_types_prefixes_and_scopes_are_read(
    command: Command, store: holdfast.Store
) -> None:
    metrics = store.metrics
    metrics.define({"edits": {}}, prefix="wiki")
    metrics.incr("edits", {"global": True, "components": ["all"]}, 4, prefix="wiki")
    metrics.define({"queue": {"type": "gauge"}, "latency": {"type": "distribution"}})
    metrics.set("queue", None, 7)
    for number in range(1, 101):
        metrics.record("latency", None, number)
    wiki = ("edits", "--prefix", "wiki", "--global")

    lost = command("metrics", "top", "edits", "--json").error
    latency = command("metrics", "value", "latency").out
    queue = command("metrics", "series", "queue", "--json").json
    slowest = command("metrics", "series", "latency", "--value", "max", "--json").json

    assert lost["hint"] == "It is defined under another prefix: --prefix wiki."
    assert command("metrics", "value", *wiki, "--entity", "all").out == "4\n"
    assert command("metrics", "top", *wiki).out == "entity  edits\nall         4\n"
    assert command("metrics", "value", "queue").out == "7\n"
    assert [line.split()[0] for line in latency.splitlines()[1:]] == [
        *("count", "mean", "min", "max", "p50", "p90", "p99")
    ]
    assert [value for value in queue["values"] if value is not None] == [7]
    assert [value for value in slowest["values"] if value is not None] == [100]


def test_an_empty_value_says_that_entities_have_some(
    command: Command, store: holdfast.Store
) -> None:
    store.metrics.define({"orders": {}})
    store.metrics.incr("orders", ["ann"], 3)

    result = command("metrics", "value", "orders")

    assert (result.out, "holdfast metrics top orders" in result.err) == ("0\n", True)


def test_what_events_add_up_to_is_read(command: Command, store: holdfast.Store) -> None:
    store.events.deploy(
        {
            "view": [
                {"targets": ["['pages']"], "count_frequency": "page"},
                {"targets": ["['seen']", "[@day]"], "add": "page"},
                {"targets": ["['off']"], "add": "page", "store_gross_counters": False},
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
    assert command("events", "count", "off").out == (
        "0 in all, 2 different; values were added while the gross counter was off\n"
    )
    assert [point["value"] for point in series["points"]] == [3]
    assert [line.split()[0] for line in members] == ["value", "help", "home"]
    assert members[1].endswith("Z")
    assert "pages" in command("events", "keys").out


def test_a_chart_is_on_a_terminal_alone() -> None:
    from holdfast.cli.charts import bar, sparkline

    assert (sparkline([0, 7]), bar(1, 1)) == ("▁█", "█" * 30)
    assert run("metrics", "top", "--help").code == 0


def test_a_series_shows_the_first_value_that_the_table_of_kinds_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "flag", FLAG)
    with holdfast.open(folder) as store:
        store.metrics.define({"mast": {"type": "flag"}})

    words = ["series", "mast", "--data", str(folder), "--latest", "600", "--json"]
    shown = CliRunner().invoke(metrics_command, words)

    assert set(json.loads(shown.output)["values"]) == {1}
