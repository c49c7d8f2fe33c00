"""Entity tags and preconditions."""

from typing import Any

import pytest

from holdfast.errors import InvalidTableRequest, PreconditionFailed
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


def test_a_delete_may_ask_for_no_row(rows: Store) -> None:
    rows.tables.delete("simple", KEY, if_none_match="*")
    rows.tables.put("simple", KEY)

    with pytest.raises(PreconditionFailed, match="The row has the etag"):
        rows.tables.delete("simple", KEY, if_none_match="*")

    assert rows.tables.get("simple", KEY).count == 1


def test_who_asks_for_a_row_that_is_not_there_is_told_so(rows: Store) -> None:
    for write in (rows.tables.put, rows.tables.delete):
        with pytest.raises(PreconditionFailed, match="There is no such row"):
            write("simple", KEY, if_match="*")


def test_a_weak_tag_is_good_enough_for_no_match_and_never_for_a_match(rows: Store) -> None:
    rows.tables.put("simple", KEY)
    weak = f'W/"{etag(rows)}"'

    with pytest.raises(PreconditionFailed):
        rows.tables.put("simple", KEY, if_none_match=f'"other", {weak}')
    with pytest.raises(PreconditionFailed):
        rows.tables.put("simple", KEY, if_match=weak)


def test_a_tag_that_is_no_text_is_refused(rows: Store) -> None:
    tag: Any = 5

    with pytest.raises(InvalidTableRequest, match="if_match must be a text"):
        rows.tables.put("simple", KEY, if_match=tag)
    with pytest.raises(InvalidTableRequest, match="if_none_match must be a text"):
        rows.tables.delete("simple", KEY, if_none_match=tag)
