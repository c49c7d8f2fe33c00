"""The names that the original's document has for operators and keys."""

from typing import Any

import pytest

from holdfast.entities.messages import Filter
from holdfast.errors import BadFilter
from holdfast.store import Store

SCHEMA = """\
schema: test
tables:
  Users:
    primary: {type: Random}
    columns: {name: {type: Text}, age: {type: Int}}
    indexes: [{type: Compound, columns: [age]}]
"""


@pytest.fixture
def users(store: Store) -> Any:
    store.entities.deploy(SCHEMA)
    people = [{"name": f"user{age}", "age": age} for age in range(10, 60, 10)]
    store.entities.put_raw("test.Users", people)
    return store.entities


@pytest.mark.parametrize(
    ("op", "sign", "values"),
    [
        ("EQ", "=", (20,)),
        ("BETWEEN", "><", (20, 40)),
        ("GT", ">", (20,)),
        ("LT", "<", (20,)),
        ("GE", ">=", (20,)),
        ("LE", "<=", (20,)),
    ],
)
def test_an_operator_has_a_name_beside_its_sign(
    users: Any, op: str, sign: str, values: tuple[int, ...]
) -> None:
    named = users.select_raw("test.Users", [Filter("age", op, values)])
    signed = users.select_raw("test.Users", [Filter("age", sign, values)])

    assert named == signed
    assert named.total > 0


def test_an_unknown_operator_is_refused_and_the_error_lists_all_operators(users: Any) -> None:
    with pytest.raises(BadFilter, match=r"= \(EQ\), IN, >< \(BETWEEN\)"):
        users.select_raw("test.Users", [Filter("age", "NEAR", (20,))])


def test_a_primary_key_may_be_called_random_as_in_the_document(users: Any) -> None:
    [table] = users.schema("test").tables

    assert (table.primary.type, table.indexes[0].type) == ("random", "compound")
