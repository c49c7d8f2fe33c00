"""Export and import of rows as lines."""

import csv
import io
import json
from typing import Any

import pytest

from holdfast.errors import InvalidTableQuery, TableError, TableNotFound
from holdfast.store import Store
from holdfast.tables import transfer
from tests.tables.schemas import hash_on, range_on, simple

ATTRIBUTES = {
    "key": "string",
    "place": "int",
    "value": "string",
    "tags": "set<long>",
    "data": "json",
    "flag": "boolean",
}


def fill(store: Store, count: int = 3) -> None:
    store.tables.create(simple(attributes=ATTRIBUTES))
    for place in range(count):
        row = {"key": "a", "place": place, "tags": [place], "data": {"n": place}, "flag": True}
        store.tables.put("simple", row)


def test_an_export_can_be_imported(store: Store) -> None:
    fill(store)
    lines = list(store.tables.export("simple"))
    other = store.space("other")
    other.tables.create(simple(attributes=ATTRIBUTES))

    report = other.tables.import_rows("simple", lines)

    assert (report.rows, report.refused) == (3, 0)
    assert other.tables.get("simple").items == store.tables.get("simple").items
    assert json.loads(lines[1])["tags"] == ["1"]


def test_a_slice_is_exported_in_order(store: Store) -> None:
    fill(store)
    lines = store.tables.export(
        "simple", {"key": "a", "place": {"ge": 1}}, proj=["place"], order={"place": "desc"}
    )

    assert list(lines) == [b'{"place":2}\n', b'{"place":1}\n']


def test_csv_has_a_line_of_names_and_json_in_its_cells(store: Store) -> None:
    fill(store, 250)
    store.tables.put("simple", {"key": "b", "place": 1, "value": 'quoted "x", y', "_ttl": 9})

    text = b"".join(store.tables.export("simple", format="csv", with_ttl=True)).decode()

    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 251
    assert rows[1] == {
        "key": "a", "place": "1", "value": "", "tags": '["1"]', "data": '{"n":1}', "flag": "true",
        "_ttl": "",
    }  # fmt: skip
    assert (rows[-1]["value"], rows[-1]["_ttl"]) == ('quoted "x", y', "9")


def test_refused_lines_are_named_and_the_others_are_taken(store: Store) -> None:
    store.tables.create(simple())
    lines: list[bytes | str] = [
        '{"key": "a", "place": 1}',
        "",
        '{"key": "a", "place": "x"}',
        b'{"key": "a", "place": 2}\n',
        "[1]",
        "nonsense",
        '{"key": "a", "place": 3, "valeu": 1}',
    ]

    report = store.tables.import_rows("simple", lines)

    assert (report.rows, report.refused) == (2, 4)
    assert [(r.line, r.code) for r in report.refusals] == [
        (3, "invalid_value"),
        (5, "invalid_request"),
        (6, "invalid_json"),
        (7, "unknown_attribute"),
    ]
    assert store.tables.get("simple").count == 2


def test_a_large_import_takes_several_transactions(store: Store) -> None:
    store.tables.create(simple())
    lines = (json.dumps({"key": "a", "place": place}) for place in range(2_500))

    assert store.tables.import_rows("simple", lines).rows == 2_500
    assert store.tables.facts("simple").rows == 2_500


def test_a_refused_row_of_an_import_leaves_nothing_behind(store: Store) -> None:
    store.tables.create(simple(secondaryIndexes={"i": [hash_on("place"), range_on("value")]}))
    lines = [json.dumps({"key": "a", "place": 1, "value": "x" * 5_000})]

    report = store.tables.import_rows("simple", lines)

    assert report.refusals[0].code == "key_too_long"
    assert store.tables.facts("simple").rows == store.tables.get("simple").count == 0


def test_versions_are_made_for_imported_rows(store: Store) -> None:
    schema: dict[str, Any] = {
        "table": "t",
        "attributes": {"key": "string", "tid": "timeuuid"},
        "index": [hash_on("key"), range_on("tid", "desc")],
    }
    store.tables.create(schema)

    store.tables.import_rows("t", ['{"key": "a"}'] * 3)

    assert store.tables.get("t", {"key": "a"}).count == 3


def test_a_line_with_a_lone_surrogate_is_refused_alone(store: Store) -> None:
    store.tables.create(simple())

    report = store.tables.import_rows("simple", ['{"key": "\ud800"}', '{"key": "a", "place": 1}'])

    assert (report.rows, report.refused) == (1, 1)
    assert [(each.line, each.code) for each in report.refusals] == [(1, "invalid_json")]


def test_an_import_of_nothing_needs_a_table_all_the_same(store: Store) -> None:
    with pytest.raises(TableNotFound):
        store.tables.import_rows("missing", [])


def test_another_format_and_another_table_are_refused(store: Store) -> None:
    store.tables.create(simple())

    with pytest.raises(InvalidTableQuery):
        store.tables.export("simple", format="xml")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(TableNotFound):
        store.tables.export("missing")
    with pytest.raises(TableNotFound):
        store.tables.import_rows("missing", ["{}"])


def test_lines_that_are_one_text_are_refused_with_what_to_do(store: Store) -> None:
    store.tables.create(simple())

    with pytest.raises(TableError, match="several lines") as caught:
        store.tables.import_rows("simple", '{"key": "a", "place": 1}\n')

    assert "splitlines" in (caught.value.hint or "")


def test_an_import_into_a_table_with_many_indexes_has_short_transactions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.tables.store.KEYS_PER_IMPORT_STEP", 12)
    store.tables.create(simple(secondaryIndexes={"by_value": [hash_on("value")]}))
    portions = []
    import_lines = transfer.import_lines

    def counted(tx: Any, table: str, lines: Any, make_version: Any) -> Any:
        portions.append(len(lines))
        return import_lines(tx, table, lines, make_version)

    monkeypatch.setattr("holdfast.tables.transfer.import_lines", counted)
    rows = [json.dumps({"key": "a", "place": place, "value": "x"}) for place in range(15)]

    assert store.tables.import_rows("simple", rows).rows == 15
    assert portions == [6, 6, 3]
