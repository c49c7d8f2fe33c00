"""Schema versions and migration."""

from typing import Any

import msgspec
import pytest

from holdfast.errors import (
    IndexNotFound,
    InvalidTableSchema,
    SchemaUpgradeRejected,
    TableUnavailable,
)  # fmt: skip
from holdfast.store import Store
from holdfast.tables import catalogue
from holdfast.tables.layout import keys_of
from holdfast.tables.plan import encode_record
from tests.tables.schemas import (
    Schema,
    example,
    hash_on,
    proj_of,
    range_on,
    simple,
    static_on,
    version,
)  # fmt: skip


def attributes(**more: str) -> dict[str, str]:
    return {"key": "string", "place": "int", "value": "string", **more}


def test_the_same_schema_again_changes_nothing(store: Store) -> None:
    assert store.tables.create(simple()).changed
    assert not store.tables.create(simple()).changed


@pytest.mark.parametrize(
    "again",
    [
        simple(version=1, options={}),
        simple(secondaryIndexes={}),
        simple(revisionRetentionPolicy={"type": "all"}),
        simple(options={"updates": {"pattern": "random-update"}}),
        simple(options=None),
        simple(colour="blue"),
        dict(reversed(simple().items())),
        simple(attributes={"value": "string", "place": "int", "key": "string"}),
        simple(index=[range_on("place"), hash_on("key")]),
    ],
)
def test_spelled_out_defaults_and_the_order_of_members_do_not_count(
    store: Store, again: Schema
) -> None:
    store.tables.create(simple())
    before = store.tables.schema("simple")

    assert not store.tables.create(again).changed
    assert store.tables.schema("simple") == before


def test_a_difference_needs_a_higher_version(store: Store) -> None:
    store.tables.create(simple(version=3))

    for number in (1, 3):
        with pytest.raises(SchemaUpgradeRejected, match="version must be higher") as caught:
            store.tables.create(simple(version=number, attributes=attributes(more="int")))
        title = caught.value.message
        assert title.startswith("The table already exists, and its schema cannot be upgraded")
        assert title.endswith(")")
        assert (caught.value.type, caught.value.status) == ("schema_upgrade_rejected", 400)
    with pytest.raises(SchemaUpgradeRejected, match="version must be higher"):
        store.tables.create(simple(version=2))
    assert store.tables.create(simple(version=4)).changed
    assert store.tables.schema("simple")["version"] == 4


def test_an_invalid_schema_is_refused_as_such_first(store: Store) -> None:
    store.tables.create(simple(version=3))

    with pytest.raises(InvalidTableSchema):
        store.tables.create(simple(version=1, attributes={}))


def test_attributes_are_added_and_old_rows_read_null(store: Store) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {"key": "a", "place": 1, "value": "x"})
    store.tables.create(simple(version=2, attributes=attributes(more="set<int>")))

    row = {"key": "a", "place": 1, "value": "x"}
    assert store.tables.get("simple").items == [{**row, "more": None}]
    store.tables.put("simple", {"key": "a", "place": 1, "more": [1]})
    assert store.tables.get("simple").items == [{**row, "more": [1]}]


def test_a_removed_attribute_starts_again_from_null_also_with_another_type(store: Store) -> None:
    store.tables.create(simple(attributes=attributes(more="int")))
    store.tables.put("simple", {"key": "a", "place": 1, "value": "x", "more": 5})
    store.tables.create(simple(version=2))
    assert "more" not in store.tables.get("simple").items[0]
    store.tables.create(simple(version=3, attributes=attributes(more="string")))

    row = {"key": "a", "place": 1, "value": "x", "more": None}
    assert store.tables.get("simple").items == [row]
    store.tables.put("simple", {"key": "a", "place": 1, "more": "now"})
    assert store.tables.get("simple").items == [{**row, "more": "now"}]


def test_an_attribute_in_an_index_can_not_be_removed(store: Store) -> None:
    store.tables.create(simple())

    with pytest.raises(InvalidTableSchema, match="is not in attributes"):
        store.tables.create(simple(version=2, attributes={"key": "string"}))


def test_a_static_comes_and_goes_with_its_attribute(store: Store) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {"key": "a", "place": 1})
    index = [hash_on("key"), static_on("note"), range_on("place")]
    with_note = simple(version=2, attributes=attributes(note="string"), index=index)
    store.tables.create(with_note)
    store.tables.put("simple", {"key": "a", "place": 2, "note": "n"})

    assert [item["note"] for item in store.tables.get("simple").items] == ["n", "n"]
    store.tables.create(simple(version=3))
    assert store.tables.get("simple").count == 2


WITH_STATIC = simple(
    attributes=attributes(note="string"),
    index=[hash_on("key"), static_on("note"), range_on("place")],
)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (simple(), simple(attributes=attributes(value="int")), "type"),
        (
            simple(attributes=attributes(note="string")),
            WITH_STATIC,
            "Changing index on existing column",
        ),
        (
            WITH_STATIC,
            simple(attributes=attributes(note="string")),
            "Changing index on existing column",
        ),
        (simple(), simple(index=[hash_on("key")]), "Only static index additions and removals"),
        (
            simple(),
            simple(index=[hash_on("key"), range_on("place", "desc")]),
            "Only static index additions and removals",
        ),
        (
            simple(),
            simple(index=[hash_on("place"), range_on("key")]),
            "Only static index additions and removals",
        ),
        (
            simple(),
            simple(index=[hash_on("key"), range_on("place"), range_on("value")]),
            "Only static index additions and removals",
        ),
        (simple(), simple(secondaryIndexes={"i": [hash_on("value")]}), "secondary ind"),
        (
            simple(secondaryIndexes={"i": [hash_on("value")]}),
            simple(secondaryIndexes={"i": [hash_on("value"), proj_of("place")]}),
            "secondary ind",
        ),
    ],
)
def test_what_would_change_stored_rows_is_rejected(
    store: Store, before: Schema, after: Schema, reason: str
) -> None:
    store.tables.create(before)
    stored = store.tables.schema("simple")

    with pytest.raises(SchemaUpgradeRejected, match=reason):
        store.tables.create({**after, "version": 2})

    assert store.tables.schema("simple") == stored


def test_a_secondary_index_is_removed_and_its_entries_with_it(store: Store) -> None:
    store.tables.create(simple(secondaryIndexes={"i": [hash_on("value")]}))
    for place in range(20):
        store.tables.put("simple", {"key": "a", "place": place, "value": "x"})
    store.tables.create(simple(version=2))

    with pytest.raises(IndexNotFound):
        store.tables.get("simple", {"value": "x"}, index="i")
    store.tables.put("simple", {"key": "a", "place": 1, "value": "y"})
    while store.sweep():
        pass
    assert store.tables.facts("simple").entries == 0


def test_options_and_policy_may_change(store: Store) -> None:
    store.tables.create(example())
    store.tables.create(
        example(
            version=2,
            options={"compression": [{"algorithm": "deflate"}]},
            revisionRetentionPolicy={"type": "latest", "count": 1, "grace_ttl": 0},
        )
    )
    for second in (1, 2):
        store.tables.put("example", {"name": "a", "property": "p", "tid": version(second)})

    assert store.tables.get("example").count == 1


def test_two_identical_creations_at_once_both_succeed(store: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: store.tables.create(simple()), range(4)))

    assert sorted(result.changed for result in results) == [False, False, False, True]


@pytest.mark.damages
def test_a_table_of_a_newer_layout_is_refused(store: Store) -> None:
    store.tables.create(simple())

    def work(tx: Any) -> None:
        record = catalogue.find(tx._tx, "simple").record
        newer = encode_record(msgspec.structs.replace(record, layout=7))
        tx._tx.put(keys_of(tx._tx.space).table("simple"), newer)

    store.transact(work)

    with pytest.raises(TableUnavailable, match=r"7.*1") as caught:
        store.tables.get("simple")
    assert (caught.value.type, caught.value.status) == ("unavailable", 503)


def test_members_come_back_in_the_order_they_were_sent(store: Store) -> None:
    store.tables.create(simple(zebra=1, apple=2))

    assert list(store.tables.schema("simple"))[-4:] == ["zebra", "apple", "version", "options"]


def test_attributes_in_another_order_read_the_same(store: Store) -> None:
    store.tables.create(simple())
    row = {"key": "a", "place": 1, "value": "x"}
    store.tables.put("simple", row)
    turned = {"value": "string", "more": "int", "place": "int", "key": "string"}
    store.tables.create(simple(version=2, attributes=turned))

    assert store.tables.get("simple").items == [{**row, "more": None}]
    assert store.tables.get("simple", {"key": "a"}, limit=1).items == [{**row, "more": None}]
    assert store.tables.get("simple", {"key": "a", "place": 1}).items == [{**row, "more": None}]


def test_a_spelled_out_default_of_compression_changes_nothing(store: Store) -> None:
    store.tables.create(simple(options={"compression": [{"algorithm": "lz4"}]}))
    spelled = {"algorithm": "lz4", "block_size": 256}

    result = store.tables.create(simple(options={"compression": [spelled]}))

    assert not result.changed
    assert not store.tables.create(simple()).changed  # lz4 is what no option means
    assert store.tables.create(simple(version=2, options={"compression": []})).changed
