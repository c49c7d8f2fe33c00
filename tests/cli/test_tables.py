"""`holdfast tables`: rows to files and back."""

import json
from pathlib import Path

import pytest

import holdfast
from tests.cli.conftest import Command

PAGES = {
    "table": "pages",
    "attributes": {"title": "string", "length": "int", "body": "blob"},
    "index": [{"type": "hash", "attribute": "title"}],
}


@pytest.fixture
def pages(store: holdfast.Store) -> holdfast.Store:
    store.tables.create(PAGES)
    for number in range(3):
        store.tables.put("pages", {"title": f"p{number}", "length": number, "body": b"\0"})
    return store


def test_rows_are_exported_and_imported(
    command: Command, pages: holdfast.Store, tmp_path: Path
) -> None:
    before = list(pages.tables.scan("pages"))

    exported = command("tables", "export", "pages", "-o", tmp_path / "rows", "--json")
    pages.tables.drop("pages")
    pages.tables.create(PAGES)
    imported = command("tables", "import", "pages", tmp_path / "rows", "--json")

    assert exported.json == {"table": "pages", "rows": 3}
    assert imported.json == {"table": "pages", "rows": 3, "refusals": []}
    assert list(pages.tables.scan("pages")) == before


def test_lines_of_json_and_of_csv_go_to_standard_output(
    command: Command, pages: holdfast.Store
) -> None:
    lines = command("tables", "export", "pages").out.splitlines()
    csv = command("tables", "export", "pages", "--format", "csv").out.splitlines()

    assert {json.loads(line)["title"] for line in lines} == {"p0", "p1", "p2"}
    assert (csv[0], len(csv)) == ("title,length,body", 4)


def test_refused_lines_are_named_and_the_others_count(
    command: Command, pages: holdfast.Store
) -> None:
    text = '{"title": "a"}\n' * 1_500 + "nonsense\n" + '{"title": "b", "cake": 1}\n{"title": "c"}\n'

    result = command("tables", "import", "pages", "--json", input=text)

    assert result.code == 3
    assert result.json["rows"] == 1_501
    assert [each["line"] for each in result.json["refusals"]] == [1_501, 1_502]


def test_an_unknown_table_is_refused(command: Command, store: holdfast.Store) -> None:
    result = command("tables", "export", "pags", "--json", "-o", "/dev/null")

    assert (result.code, result.error["code"]) == (1, "table_not_found")
