"""`holdfast space`, `holdfast status` and `holdfast inspect`: what is in a store."""

import holdfast
from tests.cli.conftest import Command


def test_spaces_are_listed_and_dropped(command: Command, store: holdfast.Store) -> None:
    store.space("shop").jobs.put("emails")

    before = command("space", "list").out
    dropped = command("space", "drop", "shop", "--yes", "--json")

    assert before == "default\nshop\n"
    assert dropped.json == {"dropped": "shop"}
    assert command("space", "list", "--json").json == {"spaces": ["default"]}
    assert command("jobs", "list", "--json").json == {"queues": []}


def test_a_dropped_space_can_be_used_again_at_once(command: Command, store: holdfast.Store) -> None:
    deploy = ("schema", "apply", "-", "--space", "shop")
    schema = "schema: s\ntables: {T: {columns: {a: {type: Int}}}}"
    command(*deploy, input=schema)
    command("space", "drop", "shop", "--yes")

    again = command(*deploy, input=schema)

    assert (again.code, again.out) == (0, "+ table s.T\n")


def test_dropping_asks_first(command: Command, store: holdfast.Store) -> None:
    store.space("shop")

    refused = command("space", "drop", "shop", input="n\n")
    agreed = command("space", "drop", "shop", input="y\n")

    assert (refused.code, agreed.code) == (1, 0)
    assert store.spaces() == ["default"]


def test_what_can_not_be_dropped_is_refused(command: Command, store: holdfast.Store) -> None:
    default = command("space", "drop", "default", "--yes", "--json")
    unknown = command("space", "drop", "nowhere", "--yes", "--json")

    assert (default.code, default.error["code"]) == (1, "bad_input")
    assert (unknown.code, unknown.error["code"]) == (1, "unknown_space")


def test_an_unknown_space_is_refused_before_anyone_is_asked(
    command: Command, store: holdfast.Store
) -> None:
    unknown = command("space", "drop", "nowhere", input="y\n")

    assert (unknown.code, unknown.err.splitlines()[0]) == (1, "Error: there is no space 'nowhere'")


def test_the_status_tells_what_is_in_a_space(command: Command, store: holdfast.Store) -> None:
    shop = store.space("shop")
    shop.entities.deploy("schema: s\ntables: {T: {columns: {a: {type: Int}}}}")
    shop.entities.put_raw("s.T", [{"a": 1}])
    shop.tables.create(
        {
            "table": "pages",
            "attributes": {"title": "string"},
            "index": [{"type": "hash", "attribute": "title"}],
        }
    )
    shop.jobs.put("emails")
    shop.events.deploy({"view": [{"targets": ["['v']"], "add": "who"}]})
    shop.metrics.define({"orders": {}})

    status = command("status", "--space", "shop", "--json").json

    assert (status["entities"], status["tables"]) == ({"s.T": 1}, {"pages": 0})
    assert (status["events"], status["metrics"]) == (["default"], ["orders"])
    assert (status["spaces"], status["queues"][0]["waiting"]) == (2, 1)
    assert status["store"]["keys"] == store.stats()["keys"]
    assert "1 waiting, 0 running" in command("status", "--space", "shop").out
    assert "is empty" in command("status").out


def test_stored_keys_are_shown_by_prefix_and_page_by_page(
    command: Command, store: holdfast.Store
) -> None:
    for number in range(5):
        store.jobs.put("emails", id=f"job-{number}")

    some = command("inspect", "jobs, 29, 'job-'", "--limit", "3", "--json").json
    rest = command("inspect", "jobs, 29, 'job-'", "--after", some["next"], "--json").json

    assert some["entries"][0]["key"] == "(jobs, job, 'job-0')"
    assert [each["key"] for each in rest["entries"]] == [f"(jobs, job, 'job-{n}')" for n in (3, 4)]
    assert "'queue': 'emails'" in rest["entries"][0]["value"]
    assert "(jobs, job, 'job-0') = {" in command("inspect", "jobs, 29").out


def test_a_prefix_that_makes_no_sense_gets_a_hint(command: Command) -> None:
    unknown = command("inspect", "jbos", "--json")
    torn = command("inspect", "jobs, ((", "--json")

    assert (unknown.code, torn.code) == (1, 1)
    assert unknown.error["hint"] == "Did you mean 'jobs'?"
