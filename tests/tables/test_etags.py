"""Entity tags and preconditions."""

import pytest

from holdfast.errors import PreconditionFailed
from holdfast.store import Store
from tests.tables.schemas import hash_on, range_on, simple, static_on

pytestmark = pytest.mark.every_engine

KEY = {"key": "a", "place": 1}


@pytest.fixture
def rows(store: Store) -> Store:
    store.tables.create(
        simple(
            attributes={"key": "string", "place": "int", "value": "string", "note": "string"},
            index=[hash_on("key"), static_on("note"), range_on("place")],
        )
    )
    return store


def etag(store: Store) -> str | None:
    return store.tables.get("simple", KEY).etag


def test_a_row_has_an_etag_if_its_whole_key_is_given(rows: Store) -> None:
    rows.tables.put("simple", {**KEY, "value": "x"})

    assert etag(rows) is not None
    assert etag(rows) == rows.tables.get("simple", KEY, proj="value").etag
    assert rows.tables.get("simple", {"key": "a"}).etag is None
    assert rows.tables.get("simple", {"key": "a", "place": {"ge": 1, "le": 1}}).etag is None
    assert rows.tables.get("simple", {**KEY, "place": 9}).etag is None


def test_an_etag_changes_with_the_row_its_statics_and_its_schema(rows: Store) -> None:
    seen = set()
    rows.tables.put("simple", {**KEY, "value": "x"})
    seen.add(etag(rows))
    rows.tables.put("simple", {**KEY, "value": "y"})
    seen.add(etag(rows))
    rows.tables.put("simple", {"key": "a", "place": 2, "note": "n"})
    seen.add(etag(rows))
    schema = rows.tables.schema("simple")
    rows.tables.create(
        {**schema, "version": 2, "attributes": {**schema["attributes"], "more": "int"}}
    )
    seen.add(etag(rows))

    assert len(seen) == 4
    rows.tables.put("simple", {**KEY, "value": "y"})
    assert etag(rows) in seen


def test_a_put_may_ask_for_the_row_it_knows(rows: Store) -> None:
    rows.tables.put("simple", {**KEY, "value": "x"})
    known = etag(rows)

    rows.tables.put("simple", {**KEY, "value": "y"}, if_match=f'"{known}"')
    with pytest.raises(PreconditionFailed) as caught:
        rows.tables.put("simple", {**KEY, "value": "z"}, if_match=known)
    rows.tables.put("simple", {**KEY, "value": "w"}, if_match="*")

    assert (caught.value.type, caught.value.status) == ("precondition_failed", 412)
    assert rows.tables.get("simple", KEY).items[0]["value"] == "w"


def test_a_put_may_ask_for_no_row(rows: Store) -> None:
    rows.tables.put("simple", KEY, if_none_match="*")

    with pytest.raises(PreconditionFailed):
        rows.tables.put("simple", KEY, if_none_match="*")
    with pytest.raises(PreconditionFailed):
        rows.tables.put("simple", {**KEY, "place": 5}, if_match="*")
    with pytest.raises(PreconditionFailed):
        rows.tables.put("simple", KEY, if_none_match=etag(rows))
    rows.tables.put("simple", KEY, if_none_match='"another"')


def test_a_delete_may_ask_for_the_row_it_knows(rows: Store) -> None:
    rows.tables.put("simple", {**KEY, "note": "n"})

    with pytest.raises(PreconditionFailed):
        rows.tables.delete("simple", KEY, if_match="old")
    rows.tables.delete("simple", KEY, if_match=etag(rows))
    with pytest.raises(PreconditionFailed):
        rows.tables.delete("simple", KEY, if_match="*")
