"""Drawn values can be deployed and put, and are read again as they were."""

import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.entities.messages import DumpFormat, Entity, Filter
from holdfast.entities.schema import Schema
from holdfast.entities.schema_dump import dump_schema
from holdfast.entities.schema_file import parse_schema
from holdfast.errors import MissingDriver
from holdfast.store import Store
from holdfast.testing import strategies
from tests.stores import Stores
from tests.testing.test_factories import Everything

FORMATS: list[DumpFormat] = ["bson", "jsonl"]

few = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@few
@given(data=st.data(), schema=strategies.schemas(), format=st.sampled_from(FORMATS))
def test_a_table_is_the_same_after_it_was_dumped_and_loaded(
    stores: Stores, data: st.DataObject, schema: Schema, format: DumpFormat
) -> None:
    with stores.open() as store:
        store.entities.deploy(schema)
        for table in schema.tables:
            drawn = data.draw(st.lists(strategies.entities(table), min_size=1, max_size=4))
            store.entities.put_raw(table.full_name, drawn)
            before = everything_in(store, table.full_name)
            dump = list(store.entities.dump(table.full_name, format=format))

            store.entities.drop(table.full_name)
            store.entities.load(table.full_name, dump)

            after = everything_in(store, table.full_name)
            assert [(e.id, e.properties) for e in after] == [(e.id, e.properties) for e in before]
            if not table.primary.columns:  # else two that were drawn can be one entity
                assert len(after) == len(drawn)
                assert all(entity.properties in drawn for entity in after)
            assert store.entities.check(table.full_name).added == 0


@few
@given(schema=strategies.schemas(max_tables=2))
def test_a_drawn_schema_can_be_written_as_a_file(schema: Schema) -> None:
    assert parse_schema(dump_schema(schema)) == schema


@few
@given(drawn=strategies.objects(Everything))
def test_a_drawn_object_is_found_as_it_was_put(stores: Stores, drawn: Everything) -> None:
    with stores.open() as store:
        store.entities.deploy(Everything.schema_yaml())

        [id] = store.entities.put(drawn)

        assert store.entities.get(Everything, id) == [drawn]


@few
@given(data=st.data())
def test_drawn_texts_match_the_pattern_of_a_strict_table(
    stores: Stores, data: st.DataObject
) -> None:
    options = r"{required: true, max_len: 6, must_match: '[a-z]+-\d*'}"
    columns = f"{{code: {{type: Text, options: {options}}}}}"
    schema = parse_schema(f"schema: s\ntables: {{T: {{strict: true, columns: {columns}}}}}")
    with stores.open() as store:
        store.entities.deploy(schema)

        [id] = store.entities.put_raw("s.T", [data.draw(strategies.entities(schema.tables[0]))])

        assert id


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:  # hypothesis itself looks for its module after a test
        patch.setitem(sys.modules, "hypothesis", None)
        patch.delitem(sys.modules, "holdfast.testing.strategies")
        with pytest.raises(MissingDriver, match=r"holdfastdb\[testing\]"):
            __import__("holdfast.testing.strategies")


def everything_in(store: Store, table: str) -> list[Entity]:
    return store.entities.select_raw(table, [Filter("id", "ALL")], limit=-1).entities
