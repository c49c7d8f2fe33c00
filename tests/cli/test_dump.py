"""`holdfast dump` and `holdfast load`: entities to a file and back."""

from pathlib import Path

import pytest

import holdfast
from tests.cli.conftest import Command

SCHEMA = """
schema: shop
tables:
  Users:
    columns: {name: {type: Text}, photo: {type: Binary}}
    indexes: [{type: compound, columns: [name]}]
"""


@pytest.fixture
def users(store: holdfast.Store) -> holdfast.Store:
    store.entities.deploy(SCHEMA)
    people = [{"id": f"u{n:04}", "name": f"Ann {n}", "photo": b"\0\xff"} for n in range(1_200)]
    store.entities.put_raw("shop.Users", people)
    return store


def everyone(store: holdfast.Store) -> list[tuple[str, object]]:
    ids = [f"u{n:04}" for n in range(1_200)]
    return [(each.id, each.properties) for each in store.entities.get_raw("shop.Users", ids)]


@pytest.mark.parametrize("kind", ["jsonl", "bson"])
def test_a_dump_is_loaded_into_an_empty_table(
    command: Command, users: holdfast.Store, tmp_path: Path, kind: str
) -> None:
    before = everyone(users)

    dumped = command("dump", "shop.Users", "--format", kind, "-o", tmp_path / "dump", "--json")
    users.entities.drop("shop.Users")
    users.entities.deploy(SCHEMA)
    loaded = command("load", "shop.Users", tmp_path / "dump", "--json")

    assert (dumped.json["entities"], loaded.json["entities"]) == (1_200, 1_200)
    after = everyone(users)
    assert after == before
    assert command("check").code == 0


def test_a_dump_goes_through_a_pipe(command: Command, users: holdfast.Store) -> None:
    dump = command("dump", "shop.Users")

    assert dump.out.count("\n") == 1_200
    assert dump.err == "1,200 entities\n"
    assert command("load", "shop.Users", input=dump.bytes).out == "loaded 1,200 entities\n"


def test_a_report_and_a_dump_do_not_mix(command: Command, users: holdfast.Store) -> None:
    result = command("dump", "shop.Users", "--json")

    assert result.code == 2
    assert "give -o FILE" in result.err


def test_an_unknown_table_and_a_damaged_dump_are_refused(
    command: Command, users: holdfast.Store, tmp_path: Path
) -> None:
    table = command("dump", "shop.Usres", "-o", tmp_path / "dump", "--json")
    damaged = command("load", "shop.Users", input='{"id": "a", "properties": {}}\n{"id"')
    missing = command("load", "shop.Users", tmp_path / "nowhere")

    assert (table.code, table.error["code"]) == (1, "invalid_table")
    assert (damaged.code, missing.code) == (1, 1)
    assert not (tmp_path / "dump").exists()
    assert users.entities.get_raw("shop.Users", ["a"])
