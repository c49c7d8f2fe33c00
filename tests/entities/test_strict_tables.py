"""A strict table refuses what does not fit its columns."""

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import Change, Filter
from holdfast.errors import BadValue
from holdfast.store import Store

SCHEMA = """
schema: s
tables:
  T:
    strict: true
    columns:
      name: {type: Text, options: {required: true, max_len: 5}}
      kind: {type: Text, options: {choices: [usd, nis]}}
      code: {type: Text, options: {must_match: "[a-z]+"}}
      rank: {type: Int, options: {choices: [1, 2]}}
      count: {type: Uint}
      size: {type: Float}
      when: {type: Timestamp}
      data: {type: Binary, options: {max_len: 2}}
      flag: {type: Bool, options: {not_null: true}}
      tags: {type: Set, options: {subtype: Text, max_len: 2}}
      list: {type: List}
      map: {type: Map, options: {subtype: Int}}
"""
GOOD: dict[str, Any] = {
    "id": "x",
    "name": "héllo",
    "kind": "usd",
    "code": "abc",
    "rank": 1,
    "count": 2**64 - 1,
    "size": 1,
    "when": datetime(2020, 1, 1, tzinfo=UTC),
    "data": b"ab",
    "flag": False,
    "tags": {"a", "b"},
    "list": [1, "x"],
    "map": {"a": 1},
}


@pytest.fixture
def strict(store: Store) -> StoreEntities:
    store.entities.deploy(SCHEMA)
    return store.entities


def test_what_fits_is_taken(strict: StoreEntities) -> None:
    assert strict.put_raw("s.T", [GOOD]) == ["x"]
    assert strict.put_raw("s.T", [{"id": "x", "kind": None}]) == ["x"]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("other", 1, "the table has no such column"),
        ("name", "toolong", "its length is 7, at most 5 is allowed"),
        ("name", 5, "5 is not of type Text"),
        ("name", None, "it is required"),
        ("flag", None, "it is required"),
        ("kind", "eur", "'eur' is not one of 'usd', 'nis'"),
        ("code", "ab1", "does not match"),
        ("rank", 3, "3 is not one of 1, 2"),
        ("rank", True, "True is not of type Int"),
        ("count", -1, "-1 is not of type Uint"),
        ("data", b"abc", "its length is 3"),
        ("tags", {"a", "b", "c"}, "its length is 3"),
        ("tags", {1}, "1 in it is not of type Text"),
        ("map", {"a": "b"}, "'b' in it is not of type Int"),
        ("list", {"a": "b"}, "is not of type List"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    strict: StoreEntities, column: str, value: Any, reason: str
) -> None:
    with pytest.raises(BadValue) as caught:
        strict.put_raw("s.T", [{**GOOD, column: value}])

    assert caught.value.message.startswith(f"s.T, id 'x', column {column}: ")
    assert reason in caught.value.message
    assert strict.count_raw("s.T") == 0


def test_required_columns_are_asked_for_when_an_entity_is_new_or_replaced(
    strict: StoreEntities,
) -> None:
    with pytest.raises(BadValue, match="column name: it is required"):
        strict.put_raw("s.T", [{"flag": True}])
    strict.put_raw("s.T", [GOOD])

    strict.put_raw("s.T", [{"id": "x", "rank": 2}])
    with pytest.raises(BadValue, match="it is required"):
        strict.put_raw("s.T", [{"id": "x", "rank": 2}], mode="replace")


def test_updates_are_checked_too(strict: StoreEntities) -> None:
    strict.put_raw("s.T", [GOOD])

    with pytest.raises(BadValue, match="3 is not one of"):
        strict.update_raw("s.T", [Filter("id", "=", ["x"])], [Change("INCR", "rank", 2)])

    assert strict.get_raw("s.T", ["x"])[0].properties["rank"] == 1


CHOICES = """
schema: c
tables:
  T:
    strict: true
    columns:
      tags: {type: Set, options: {subtype: Text, choices: [x, y]}}
      list: {type: List, options: {subtype: Int, choices: [1, 2]}}
      map: {type: Map, options: {subtype: Int, choices: [1, 2]}}
"""


@pytest.mark.parametrize(
    ("fits", "unfit", "reason"),
    [
        ({"tags": {"x"}}, {"tags": {"z"}}, "'z' is not one of 'x', 'y'"),
        ({"list": [2, 1, 2]}, {"list": [1, 3]}, "3 is not one of 1, 2"),
        ({"map": {"a": 1}}, {"map": {"a": 5}}, "5 is not one of 1, 2"),
    ],
)
def test_the_choices_of_a_container_are_those_of_its_elements(
    store: Store, fits: dict[str, Any], unfit: dict[str, Any], reason: str
) -> None:
    store.entities.deploy(CHOICES)

    store.entities.put_raw("c.T", [{"id": "a", **fits}])
    with pytest.raises(BadValue, match=f"id 'a', column .*: {reason}"):
        store.entities.put_raw("c.T", [{"id": "a", **unfit}])


def test_a_set_is_shown_as_one_in_an_error(strict: StoreEntities) -> None:
    with pytest.raises(BadValue, match=r"column kind: \{1\} is not of type Text"):
        strict.put_raw("s.T", [{**GOOD, "kind": {1}}])
