"""`holdfast call`: every operation from a shell."""

from pathlib import Path

import pytest

import holdfast
from holdfast.operations import OPERATIONS
from tests.cli.conftest import Command
from tests.cli.running import holdfast as run


def test_any_operation_is_called_by_its_name(command: Command, store: holdfast.Store) -> None:
    store.jobs.put("emails", id="welcome")

    paused = command("call", "jobs.pause", '{"queue": "emails"}')

    assert (paused.code, paused.out) == (0, "null\n")
    assert store.jobs.counts("emails").paused is True


def test_the_result_is_printed_as_json(command: Command, store: holdfast.Store) -> None:
    store.jobs.put("emails", "shop.Receipt", {"order": 7}, id="welcome")

    job = command("call", "jobs.get", '{"id": "welcome"}').json

    assert (job["id"], job["data"], job["state"]) == ("welcome", {"order": 7}, "waiting")


def test_arguments_come_from_standard_input_too(command: Command, store: holdfast.Store) -> None:
    put = command("call", "jobs.put", "-", input='{"queue": "emails", "id": "welcome"}')

    assert put.json == "welcome"
    assert store.jobs.counts("emails").waiting == 1


def test_values_of_entities_travel_as_over_the_network(
    command: Command, store: holdfast.Store
) -> None:
    store.entities.deploy("schema: s\ntables: {T: {columns: {at: {type: Timestamp}}}}")
    entity = '{"id": "a", "properties": {"at": {"$date": "2026-11-16T12:00:00Z"}}}'

    put = command("call", "entities.put", f'{{"table": "s.T", "entities": [{entity}]}}')
    got = command("call", "entities.get", '{"table": "s.T", "ids": ["a"]}')

    assert put.json == ["a"]
    assert "$date" in got.json[0]["properties"]["at"]


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["jobs.paus"], "unknown_operation", "Did you mean jobs.pause?"),
        (["paus"], "unknown_operation", "The layers are"),
        (["jobs.put", '{"queu": "emails"}'], "bad_input", "Did you mean `queue`?"),
        (["jobs.put", "[]"], "bad_input", "jobs.put takes queue"),
        (["jobs.put", "{"], "bad_input", "Send one object: jobs.put takes queue"),
    ],
)
def test_a_mistake_is_explained(
    command: Command, store: holdfast.Store, words: list[str], code: str, hint: str
) -> None:
    refused = command("call", *words, "--json")

    assert (refused.code, refused.error["code"]) == (1, code)
    assert hint in refused.error["hint"]


def test_a_read_makes_neither_a_store_nor_a_space(folder: Path, tmp_path: Path) -> None:
    no_store = run("call", "jobs.get", '{"id": "a"}', "--data", tmp_path / "none", "--json")
    no_space = run("call", "jobs.get", '{"id": "a"}', "--data", folder, "--space", "none", "--json")

    assert (no_store.error["code"], no_space.error["code"]) == ("no_store", "unknown_space")
    assert not (tmp_path / "none").exists()


def test_without_a_name_all_operations_are_listed() -> None:
    listed = run("call", "--json").json["operations"]

    assert [each["name"] for each in listed] == list(OPERATIONS)
    assert "jobs.put" in run("call").out


def test_a_shell_completes_the_names_of_operations() -> None:
    completed = run(
        _HOLDFAST_COMPLETE="bash_complete", COMP_WORDS="holdfast call jobs.p", COMP_CWORD="2"
    )

    names = [line.removeprefix("plain,") for line in completed.out.splitlines()]
    assert names == [name for name in OPERATIONS if name.startswith("jobs.p")]
