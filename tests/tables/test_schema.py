"""Schemas: what is stored of what was submitted, and what is refused."""

from typing import Any

import pytest

from holdfast.errors import InvalidTableSchema
from holdfast.store import Store
from holdfast.tables.schema import normalise
from holdfast.tables.versions import version_attribute
from tests.tables.schemas import example, hash_on, proj_of, range_on, simple, static_on


def test_defaults_are_filled_in_and_nothing_else_is_added(store: Store) -> None:
    store.tables.create(
        {
            "attributes": {"name": "string", "at": "timestamp"},
            "index": [{"type": "range", "attribute": "at"}, hash_on("name")],
        },
        table="events",
    )

    assert store.tables.schema("events") == {
        "table": "events",
        "version": 1,
        "attributes": {"name": "string", "at": "timestamp"},
        "index": [hash_on("name"), range_on("at", "asc")],
        "options": {},
    }


def test_the_name_of_the_path_replaces_the_name_in_the_schema() -> None:
    schema, _ = normalise("right", example(table="wrong"))

    assert schema["table"] == "right"


def test_elements_are_sorted_by_type_and_keep_their_order_within_it() -> None:
    schema, _ = normalise(
        "t",
        {
            "attributes": dict.fromkeys("abcdef", "string"),
            "index": [
                range_on("a", "desc"), proj_of("f"), static_on("b"), hash_on("c"),
                range_on("d"), hash_on("e"),
            ],
            "secondaryIndexes": {"i": [proj_of("a"), hash_on("d")]},
        },
    )  # fmt: skip

    assert [element["attribute"] for element in schema["index"]] == list("cebadf")
    assert schema["secondaryIndexes"]["i"] == [hash_on("d"), proj_of("a")]


@pytest.mark.parametrize("version", [None, 0])
def test_no_version_is_version_one(version: Any) -> None:
    assert normalise("t", simple(version=version))[0]["version"] == 1


def test_unknown_members_are_kept_and_warned_about_but_domain_is_not(store: Store) -> None:
    result = store.tables.create(simple(domain="en", colour="blue"))

    assert store.tables.schema("simple")["colour"] == "blue"
    assert store.tables.schema("simple")["domain"] == "en"
    [warning] = result.warnings
    assert "colour" in warning


def test_the_originals_own_versions_are_dropped() -> None:
    schema, warnings = normalise("t", simple(_config_version=1, _backend_version=2))

    assert "_config_version" not in schema
    assert "_backend_version" not in schema
    assert warnings == []


def test_a_declared_default_comes_back_as_it_was_declared() -> None:
    options = {"updates": {"pattern": "random-update"}, "durability": "low"}
    schema, _ = normalise("t", simple(options=options, secondaryIndexes={}))

    assert schema["options"] == options
    assert schema["secondaryIndexes"] == {}


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ({"attributes": None}, "Attributes are required"),
        ({"attributes": []}, "Attributes are required"),
        ({"attributes": {}}, "Attributes are required"),
        ({"attributes": {"key": "text", "place": "int"}}, "Invalid type of attribute"),
        ({"attributes": {"key": "string", "place": "int", "x": 3}}, "Invalid type of attribute"),
        ({"attributes": {"key": "string", "place": "int", "x": "set<set<int>>"}}, "Invalid type"),
        ({"attributes": {"key": "string", "place": "int", "x": "Set<int>"}}, "Invalid type"),
        ({"attributes": {"key": "string", "place": "int", "x": "set< int>"}}, "Invalid type"),
        ({"index": None}, "Must have at least one entry"),
        ({"index": {}}, "Must have at least one entry"),
        ({"index": []}, "Must have at least one entry"),
        ({"secondaryIndexes": {"i": []}}, "Must have at least one entry"),
        ({"secondaryIndexes": {"i": hash_on("value")}}, "Must have at least one entry"),
        ({"index": [hash_on("key"), range_on("key")]}, "Duplicate index entries"),
        (
            {"index": [hash_on("key"), static_on("key"), range_on("place")]},
            "Duplicate index entries",
        ),
        ({"index": [hash_on("missing")]}, "is not in attributes"),
        ({"index": [{"type": "hash"}]}, "is not in attributes"),
        ({"secondaryIndexes": {"i": [hash_on("missing")]}}, "is not in attributes"),
        ({"index": [{"type": "primary", "attribute": "key"}]}, "Invalid index element"),
        ({"index": ["key"]}, "Invalid index element"),
        ({"index": [range_on("place")]}, "without hash"),
        ({"secondaryIndexes": {"i": [range_on("value")]}}, "without hash"),
        ({"index": [hash_on("key"), range_on("place", "up")]}, "Invalid order"),
        ({"index": [hash_on("key"), static_on("value")]}, "Cannot create static column"),
        ({"secondaryIndexes": {"i": [hash_on("key"), static_on("value")]}}, "static"),
        ({"version": -1}, "version"),
        ({"version": "2"}, "version"),
        ({"version": True}, "version"),
        ({"version": 1.5}, "version"),
        ({"options": {"compression": "lz4"}}, "Invalid option value for compression"),
        ({"options": {"compression": ["lz4"]}}, "Invalid option value for compression"),
        ({"options": {"updates": {"pattern": "never"}}}, "Invalid update pattern"),
        ({"options": {"updates": "timeseries"}}, "Invalid update pattern"),
        ({"options": {"default_time_to_live": 0}}, "default_time_to_live"),
        ({"options": {"default_time_to_live": "1"}}, "default_time_to_live"),
        ({"options": []}, "Invalid option"),
    ],
)
def test_a_schema_is_refused_with_its_reason(change: dict[str, Any], fragment: str) -> None:
    with pytest.raises(InvalidTableSchema, match=fragment) as caught:
        normalise("simple", simple(**change))

    assert (caught.value.type, caught.value.status) == ("invalid_schema", 400)


def test_a_static_attribute_can_not_be_in_a_secondary_index() -> None:
    with pytest.raises(InvalidTableSchema, match="static"):
        normalise(
            "t",
            simple(
                index=[hash_on("key"), static_on("value"), range_on("place")],
                secondaryIndexes={"i": [hash_on("place"), proj_of("value")]},
            ),
        )


@pytest.mark.parametrize("kind", ["json", "set<string>", "set<int>"])
def test_types_without_order_can_not_be_indexed(kind: str) -> None:
    attributes = {"key": "string", "place": kind, "value": "string"}

    with pytest.raises(InvalidTableSchema, match="cannot be indexed"):
        normalise("t", simple(attributes=attributes))
    normalise("t", simple(attributes=attributes, index=[hash_on("key"), proj_of("place")]))


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", "a\x00b", "\x7f", "é" * 128, 5, None])
def test_a_name_that_no_table_or_index_may_have(name: Any) -> None:
    with pytest.raises(InvalidTableSchema, match="Invalid name"):
        normalise(name, simple())
    with pytest.raises(InvalidTableSchema, match=r"Invalid name|Invalid value"):
        normalise("t", simple(secondaryIndexes={name: [hash_on("value")]}))


@pytest.mark.parametrize("name", ["", "_tid", "_ttl", "a\nb", "x" * 256, "\ud800"])
def test_a_name_that_no_attribute_may_have(name: str) -> None:
    attributes = {"key": "string", "place": "int", name: "string"}

    with pytest.raises(InvalidTableSchema, match=r"Invalid name|Invalid value"):
        normalise("t", simple(attributes=attributes))


@pytest.mark.parametrize("name", ["content-type", "größe", "a.b", "constructor", "a/b", "x" * 255])
def test_a_name_that_an_attribute_may_have(store: Store, name: str) -> None:
    attributes = {"key": "string", "place": "int", name: "string"}
    store.tables.create(simple(attributes=attributes))
    store.tables.put("simple", {"key": "a", "place": 1, name: "x"})

    assert store.tables.get("simple").items == [{"key": "a", "place": 1, name: "x"}]


def test_a_thousand_attributes_are_enough(store: Store) -> None:
    attributes = {f"a{number}": "string" for number in range(1_000)}
    schema = {"table": "wide", "attributes": attributes, "index": [hash_on("a0")]}
    store.tables.create(schema)
    store.tables.put("wide", {"a0": "key", "a999": "last"})

    assert store.tables.get("wide", {"a0": "key"}, proj="a999").items == [{"a999": "last"}]
    with pytest.raises(InvalidTableSchema, match="Attributes"):
        normalise("wide", {**schema, "attributes": {**attributes, "more": "int"}})


@pytest.mark.parametrize(
    ("index", "found"),
    [
        ([hash_on("key"), range_on("tid", "desc")], "tid"),
        ([hash_on("key"), range_on("place"), range_on("tid", "desc")], "tid"),
        ([hash_on("key"), range_on("tid", "desc"), range_on("place")], None),
        ([hash_on("key"), range_on("tid", "asc")], None),
        ([hash_on("tid")], None),
    ],
)
def test_the_version_attribute_is_the_last_range_if_it_is_a_descending_timeuuid(
    index: list[Any], found: str | None
) -> None:
    attributes = {"key": "string", "place": "int", "tid": "timeuuid"}
    schema, _ = normalise("t", {"attributes": attributes, "index": index})

    assert version_attribute(schema) == found


def test_the_etag_of_a_schema_is_its_version_and_a_digest(store: Store) -> None:
    store.tables.create(simple(version=7))

    number, _, digest = store.tables.schema_etag("simple").partition("-")

    assert number == "7"
    assert len(digest) == 16


def test_a_policy_and_numbers_with_a_fraction_survive(store: Store) -> None:
    policy = {"type": "latest", "count": 1, "grace_ttl": 0.5}
    store.tables.create(simple(revisionRetentionPolicy=policy))

    assert store.tables.schema("simple")["revisionRetentionPolicy"] == policy


def test_a_schema_that_was_read_may_be_changed_by_its_reader(store: Store) -> None:
    store.tables.create(simple())
    schema = store.tables.schema("simple")
    schema["attributes"]["more"] = "int"

    assert "more" not in store.tables.schema("simple")["attributes"]


@pytest.mark.parametrize("seconds", [0, -1, "5", 1.5, True, 630_720_001, 10**30])
def test_a_default_ttl_is_as_long_as_a_ttl_may_be(seconds: Any) -> None:
    with pytest.raises(InvalidTableSchema, match="default_time_to_live"):
        normalise("simple", simple(options={"default_time_to_live": seconds}))


@pytest.mark.parametrize("absent", [0, 0.0, None])
def test_a_version_of_zero_counts_as_absent(absent: Any) -> None:
    schema, _ = normalise("simple", simple(version=absent))

    assert schema["version"] == 1


def test_a_hundred_secondary_indexes_are_enough() -> None:
    indexes = {f"by_{number}": [hash_on("value")] for number in range(100)}
    normalise("simple", simple(secondaryIndexes=indexes))

    with pytest.raises(InvalidTableSchema, match="at most 100 secondary indexes, these are 101"):
        normalise("simple", simple(secondaryIndexes={**indexes, "more": [hash_on("value")]}))
