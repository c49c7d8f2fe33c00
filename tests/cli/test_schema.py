"""`holdfast schema`: from files into a store."""

from pathlib import Path

import holdfast
from tests.cli.conftest import Command
from tests.cli.running import holdfast as run

USERS = "schema: shop\ntables:\n  Users:\n    columns: {name: {type: Text}}\n"
INDEXED = f"{USERS}    indexes: [{{type: compound, columns: [name]}}]\n"
BAD = "schema: s\ntables:\n  T:\n    columns:\n      a: {type: Txt}\n      b: {type: Int, x: 1}\n"


def test_a_plan_changes_nothing_and_apply_does_what_it_said(
    command: Command, store: holdfast.Store
) -> None:
    first = command("schema", "plan", "-", "--json", input=USERS)
    assert store.entities.schemas() == []

    command("schema", "apply", "-", input=USERS)
    second = command("schema", "plan", "-", input=INDEXED)
    applied = command("schema", "apply", "-", input=INDEXED)

    assert first.json["plans"][0]["tables"][0]["action"] == "create"
    assert second.out == applied.out
    assert "+ index shop.Users__name_compound" in applied.out
    assert command("schema", "plan", "-", input=INDEXED).out == "nothing would change\n"


def test_tables_that_hold_something_go_by_force_only(
    command: Command, store: holdfast.Store
) -> None:
    command("schema", "apply", "-", input=USERS)
    store.entities.put_raw("shop.Users", [{"name": "Ann"}])
    empty = "schema: shop\ntables: {}\n"

    refused = command("schema", "apply", "-", "--prune", "--json", input=empty)
    forced = command("schema", "apply", "-", "--prune", "--force", input=empty)

    assert (refused.code, refused.error["code"]) == (1, "table_in_use")
    assert forced.out == "- table shop.Users\n"


def test_files_are_checked_without_a_store(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(USERS)
    (tmp_path / "bad.yaml").write_text(BAD)

    good = run("schema", "check", "good.yaml", cwd=tmp_path)
    bad = run("schema", "check", "good.yaml", "bad.yaml", cwd=tmp_path)
    listed = run("schema", "check", "bad.yaml", "--json", cwd=tmp_path)

    assert (good.code, good.out) == (0, "1 table in 1 schema, no errors\n")
    assert bad.code == listed.code == 3
    assert "bad.yaml:5: Invalid type in schema: 'Txt'" in bad.out
    assert (len(listed.json["errors"]), len(listed.json["warnings"])) == (1, 1)


def test_a_bad_file_is_not_applied(command: Command, store: holdfast.Store) -> None:
    result = command("schema", "apply", "-", "--json", input=BAD)

    assert (result.code, result.error["code"]) == (1, "bad_schema")
    assert len(result.error["problems"]) == 1
    assert store.entities.schemas() == []


def test_a_file_that_is_not_there_is_named(command: Command) -> None:
    assert "nowhere.yaml: No such file" in command("schema", "plan", "nowhere.yaml").err
