"""A deploy makes tables usable at once and touches no entity."""

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import Filter, PutEntity
from holdfast.entities.schema import Schema
from holdfast.entities.schema_dump import dump_schema
from holdfast.entities.schema_file import parse_schema
from holdfast.errors import InvalidEntitySchema, InvalidTable, TableInUse
from holdfast.store import Store
from holdfast.testing import Clock


def schema(*tables: str) -> str:
    return "schema: s\ntables:\n" + "\n".join(f"  {table}" for table in tables)


def test_a_table_exists_once_its_schema_is_deployed(store: Store) -> None:
    with pytest.raises(InvalidTable):
        store.entities.put_raw("s.T", [{}])

    [plan] = store.entities.deploy(schema("T:"))

    assert plan.lines() == ["+ table s.T"]
    assert store.entities.put_raw("s.T", [{"id": "x"}]) == ["x"]


def test_tables_of_several_files_stay_side_by_side(store: Store) -> None:
    store.entities.deploy(schema("A:"))
    store.entities.deploy(schema("B:"))

    assert store.entities.schemas() == ["s"]
    deployed = store.entities.schema("s")
    assert deployed is not None
    assert [table.name for table in deployed.tables] == ["A", "B"]
    assert store.entities.schema("none") is None


def test_schemas_whose_names_begin_alike_are_kept_apart(store: Store) -> None:
    store.entities.deploy("schema: s\ntables: {A: }", "schema: s2\ntables: {B: }")

    deployed = store.entities.schema("s")
    assert deployed is not None
    assert [table.name for table in deployed.tables] == ["A"]
    assert store.entities.schemas() == ["s", "s2"]


def test_prune_removes_tables_that_are_not_mentioned(store: Store) -> None:
    store.entities.deploy(schema("A:", "B:"))
    store.entities.put_raw("s.B", [{"id": "x"}])

    with pytest.raises(TableInUse):
        store.entities.deploy(schema("A:"), prune=True)
    assert store.entities.count_raw("s.B") == 1

    store.entities.deploy(schema("A:"), prune=True, force=True)
    with pytest.raises(InvalidTable):
        store.entities.count_raw("s.B")
    store.entities.deploy(schema("B:"))
    assert store.entities.count_raw("s.B") == 0


def test_an_invalid_schema_changes_nothing(store: Store) -> None:
    store.entities.deploy(schema("A:"))

    with pytest.raises(InvalidEntitySchema):
        store.entities.deploy(schema("B:", "C: {columns: {id: {type: Text}}}"))

    deployed = store.entities.schema("s")
    assert deployed is not None
    assert [table.name for table in deployed.tables] == ["A"]


def test_the_primary_key_is_fixed_while_there_are_entities(store: Store, clock: Clock) -> None:
    keyed = schema("T: {primary: {columns: [a]}, columns: {a: {type: Text}}}")
    store.entities.deploy(schema("T: {columns: {a: {type: Text}}}"))
    store.entities.put_raw("s.T", [PutEntity({"a": "x"}, ttl=10**9)])

    with pytest.raises(
        TableInUse, match="Primary key of table T cannot change while it holds entities"
    ):
        store.entities.deploy(keyed)

    clock.advance(seconds=1)
    store.entities.deploy(keyed)
    assert store.entities.put_raw("s.T", [{"a": "X"}]) == ["x|"]


def test_a_drop_empties_the_table_at_once_and_keeps_it(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": f"{n}", "age": n} for n in range(10)])

    assert entities.drop("test.Users") == 10

    assert entities.count_raw("test.Users") == 0
    assert entities.count_raw("test.Users", [Filter("age", ">=", [0])]) == 0
    entities.put_raw("test.Users", [{"id": "1", "age": 1}])
    assert entities.get_raw("test.Users", ["1"])[0].version == 1
    entities.build()
    assert entities.count_raw("test.Users", [Filter("age", ">=", [0])]) == 1


def test_a_plan_says_what_a_deploy_would_change(store: Store) -> None:
    from holdfast.entities.schema_file import parse_schema

    parsed = parse_schema(schema("A:"))

    assert store.entities.plan(parsed).lines() == ["+ table s.A"]
    assert store.entities.schemas() == []
    store.entities.deploy(parsed)
    assert store.entities.plan(parsed).is_empty


def test_a_schema_without_tables_can_be_dumped_again(store: Store) -> None:
    store.entities.deploy("schema: bare")

    again = store.entities.schema("bare")

    assert again is not None
    assert parse_schema(dump_schema(again)) == Schema(name="bare")
    assert store.entities.schemas() == ["bare"]
    assert store.entities.schema("other") is None


def test_status_shows_how_far_an_index_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.entities.index_builds.INDEX_STEP_ENTITIES", 50)
    table = "schema: far\ntables: {T: {columns: {a: {type: Int}}%s}}"
    store.entities.deploy(table % "")
    store.entities.put_raw("far.T", [{"properties": {"a": n}} for n in range(700)])

    store.entities.deploy(table % ", indexes: [{type: simple, columns: [a]}]", wait=False)
    store.entities.build(most=1)

    # On a remote engine the sweep behind a write may have gone on with it.
    [(name, (done, of_all))] = store.admin.status().building.items()
    assert (name, of_all) == ("far.T__a_simple", 700)
    assert done in range(50, 700, 50)
    store.entities.build()
    assert store.admin.status().building == {}
