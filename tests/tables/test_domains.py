"""Domain `*`: a table in all domains at once."""

from typing import Any

import pytest

from holdfast.errors import (
    InvalidTableRequest,
    InvalidTableSchema,
    SchemaUpgradeRejected,
    TableNotFound,
)
from holdfast.store import Store
from holdfast.tables import catalogue
from tests.tables.schemas import simple

ROW = {"key": "a", "place": 1, "value": "x"}
MORE = {"key": "string", "place": "int", "value": "string", "more": "int"}


def test_every_domain_has_the_table_with_its_own_rows(store: Store) -> None:
    before = store.space("before")
    store.space("*").tables.create(simple())
    after = store.space("after")

    before.tables.put("simple", ROW)

    assert before.tables.get("simple").items == [ROW]
    assert after.tables.get("simple").items == []
    assert store.tables.schema("simple") == after.tables.schema("simple")
    assert after.tables.names() == ["simple"]
    assert store.space("*").tables.names() == ["simple"]


def test_the_default_schema_is_shown_and_missing_ones_are_not_found(store: Store) -> None:
    everywhere = store.space("*").tables
    with pytest.raises(TableNotFound):
        everywhere.schema("simple")
    result = everywhere.create(simple(), table="simple")

    assert (result.changed, result.version) == (True, 1)
    assert everywhere.schema("simple")["attributes"] == simple()["attributes"]
    assert everywhere.schema_etag("simple").startswith("1-")
    assert not everywhere.create(simple()).changed


def test_a_default_migrates_every_domain_that_has_the_table(store: Store) -> None:
    one, two = store.space("one"), store.space("two")
    one.tables.create(simple())
    one.tables.put("simple", ROW)
    store.space("*").tables.create(simple(version=2, attributes=MORE))

    assert one.tables.get("simple").items == [{**ROW, "more": None}]
    assert two.tables.schema("simple")["version"] == 2


def test_if_one_domain_refuses_nothing_changes(store: Store) -> None:
    one, two = store.space("one"), store.space("two")
    one.tables.create(simple())
    two.tables.create(simple(version=5))

    with pytest.raises(SchemaUpgradeRejected, match="in domain 'two'") as caught:
        store.space("*").tables.create(simple(version=2, attributes=MORE))

    assert caught.value.message.endswith(")")
    assert one.tables.schema("simple")["version"] == 1
    with pytest.raises(TableNotFound):
        store.space("*").tables.schema("simple")


def test_a_domain_that_drops_the_table_is_marked_until_it_is_put_again(store: Store) -> None:
    one = store.space("one")
    store.space("*").tables.create(simple())
    one.tables.put("simple", ROW)

    one.tables.drop("simple")
    with pytest.raises(TableNotFound):
        one.tables.get("simple")
    assert one.tables.names() == []
    assert store.space("one").tables.names() == []
    one.tables.create(simple())
    assert one.tables.get("simple").items == []
    one.tables.drop("simple")
    store.space("*").tables.create(simple())
    assert one.tables.get("simple").items == []


def test_marks_do_not_end_a_listing_early(store: Store) -> None:
    for name in "abcde":
        store.space("*").tables.create(simple(), table=name)
    for name in "abc":
        store.tables.drop(name)

    assert store.tables.names(limit=1) == ["d"]
    assert store.tables.names(after="a", limit=2) == ["d", "e"]


def test_dropping_everywhere_drops_rows_default_and_marks(store: Store) -> None:
    one, two = store.space("one"), store.space("two")
    everywhere = store.space("*").tables
    everywhere.create(simple())
    one.tables.put("simple", ROW)
    two.tables.drop("simple")

    assert everywhere.drop("simple")

    for space in (one, two, store.space("three")):
        with pytest.raises(TableNotFound):
            space.tables.get("simple")
    assert not everywhere.drop("simple")
    everywhere.create(simple())
    assert two.tables.get("simple").items == one.tables.get("simple").items == []


def test_a_put_in_a_domain_starts_from_the_default(store: Store) -> None:
    one = store.space("one")
    store.space("*").tables.create(simple(version=3))

    with pytest.raises(SchemaUpgradeRejected, match="version must be higher"):
        one.tables.create(simple(version=2, attributes=MORE))
    assert not one.tables.create(simple(version=3)).changed
    assert one.tables.create(simple(version=4, attributes=MORE)).changed
    assert store.tables.schema("simple")["version"] == 3


def test_rows_have_no_domain_everywhere(store: Store) -> None:
    everywhere = store.space("*").tables
    everywhere.create(simple())

    with pytest.raises(InvalidTableRequest) as caught:
        everywhere.put("simple", ROW)
    with pytest.raises(InvalidTableRequest):
        everywhere.get("simple")
    with pytest.raises(InvalidTableRequest):
        everywhere.delete("simple", {"key": "a"})
    with pytest.raises(InvalidTableRequest):
        list(everywhere.scan("simple"))
    with pytest.raises(TableNotFound):
        store.space("*").transact(lambda tx: tx.tables.put("simple", ROW))

    assert caught.value.type == "invalid_request"


def test_what_a_crash_has_interrupted_is_resumed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = store.space("one"), store.space("two")
    everywhere = store.space("*").tables
    adopt = catalogue.adopt_default
    calls = 0

    def crash_at_the_second(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyError("crash")
        adopt(*args)

    monkeypatch.setattr(catalogue, "adopt_default", crash_at_the_second)
    with pytest.raises(KeyError):
        everywhere.create(simple())
    monkeypatch.setattr(catalogue, "adopt_default", adopt)
    everywhere.resume()  # type: ignore[attr-defined]  # of EveryDomainTables

    assert [space.tables.names() for space in (one, two, store)] == [["simple"]] * 3


def test_a_drop_that_a_crash_has_interrupted_counts_and_is_resumed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.space("one")
    everywhere = store.space("*").tables
    everywhere.create(simple())

    def crash(*args: Any) -> None:
        raise KeyError("crash")

    for _ in range(2):  # the second drop finds no default any more
        with monkeypatch.context() as patch:
            patch.setattr(catalogue, "forget_default", crash)
            with pytest.raises(KeyError):
                everywhere.drop("simple")
        assert everywhere.names() == []
        assert store.space("new").tables.names() == []
        everywhere.resume()  # type: ignore[attr-defined]  # of EveryDomainTables

    assert store.space("one").tables.names() == []


def test_a_domain_that_refused_a_default_late_can_still_be_opened(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = store.space("one")
    one.tables.create(simple(version=5))
    everywhere = store.space("*").tables

    with monkeypatch.context() as patch:
        patch.setattr(catalogue, "check_default", lambda *args: None)
        with pytest.raises(SchemaUpgradeRejected, match="in domain 'one'"):
            everywhere.create(simple(version=2, attributes=MORE))

    assert store.space("one").tables.schema("simple")["version"] == 5
    assert store.space("two").tables.schema("simple")["version"] == 2


def test_a_default_is_warned_of_like_any_schema(store: Store) -> None:
    options = {"compression": [{"algorithm": "zip"}, {"algorithm": "lz4"}]}

    result = store.space("*").tables.create(simple(options=options))

    [warning] = result.warnings
    assert "skipped: the algorithm 'zip' is not known" in warning


def test_a_dropped_space_comes_back_with_the_defaults(store: Store) -> None:
    store.space("*").tables.create(simple())
    store.space("one").tables.put("simple", ROW)
    store.drop_space("one")

    assert store.space("one").tables.get("simple").items == []


def test_a_default_that_is_no_object_is_refused(store: Store) -> None:
    schema: Any = []

    with pytest.raises(InvalidTableSchema):
        store.space("*").tables.create(schema)
