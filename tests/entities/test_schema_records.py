"""Schemas that come as records are checked as schema files are."""

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.entities.schema import Column, Index, Primary, Schema, Table
from holdfast.errors import InvalidEntitySchema
from holdfast.limits import MAX_SCHEMA_BYTES
from holdfast.store import Store

A = Column(name="a", type="Text")


def schema(**table: Any) -> Schema:
    return Schema(name="s", tables=(Table(**{"schema": "s", "name": "T", **table}),))


def unknown_type() -> Schema:
    return schema(columns=(Column(name="a", type="Txt"),))  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (schema(name="T.X"), "Invalid name 'T.X' for a table"),
        (schema(name="T" * 300), "has 300 characters, at most 255 are allowed"),
        (schema(schema="other"), "The table other.T is not of the schema s"),
        (schema(columns=(A, A)), "The table T has two columns of one name"),
        (schema(columns=(Column(name="id", type="Text"),)), "is called 'id'"),
        (schema(columns=(Column(name="a", type="Int", default="x"),)), "Default 'x' does not fit"),
        (unknown_type(), "Invalid enum value 'Txt'"),
        (schema(indexes=(Index(columns=("b",)),)), "does not contain column b"),
        (schema(columns=(A,), indexes=(Index(columns=("a",)),) * 2), "have the same columns: a"),
        (schema(primary=Primary(type="compound")), "T primary has no columns"),
        (schema(comment="x" * MAX_SCHEMA_BYTES), f"at most {MAX_SCHEMA_BYTES} fit"),
        (schema(options={"x": object()}), "Encoding objects of type object is unsupported"),
    ],
)
def test_records_that_no_file_could_describe_are_not_deployed(
    store: Store, given: Schema, problem: str
) -> None:
    for deploy in (store.entities.deploy, store.entities.apply):
        with pytest.raises(InvalidEntitySchema, match=problem):
            deploy(given)

    assert store.entities.schemas() == []


def test_a_schema_with_two_tables_of_one_name_is_not_deployed(store: Store) -> None:
    twice = Schema(name="s", tables=schema().tables * 2)

    with pytest.raises(InvalidEntitySchema, match="two tables of one name"):
        store.entities.apply(twice)


def test_records_are_deployed_as_they_are(store: Store) -> None:
    columns = (
        A,
        Column(name="b", type="Binary", default=b"\0x"),
        Column(name="t", type="Timestamp", default=datetime(2020, 1, 1, tzinfo=UTC)),
        Column(name="m", type="Map", default={"k": [1, None]}, client_name="class"),
    )
    given = schema(columns=columns, indexes=(Index(columns=("a", "b"), unique=True),), strict=True)

    store.entities.apply(given)

    assert store.entities.schema("s") == given
