"""Put: merging, statics, automatic versions, partial updates, limits."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from holdfast.errors import (
    InvalidAttributeValue,
    InvalidTableRequest,
    MissingKeyAttribute,
    RowKeyTooLong,
    RowTooLarge,
    TableNotFound,
    UnknownAttribute,
)
from holdfast.store import Store
from holdfast.tables.versions import TICKS_TO_1970, Versions
from holdfast.testing import Clock
from tests.tables.schemas import example, hash_on, range_on, simple, static_on, version


def test_what_is_named_replaces_and_the_rest_stays(store: Store) -> None:
    store.tables.create(example())
    key = {"name": "Tom", "property": "foo", "tid": version(1)}
    store.tables.put("example", {**key, "length": 3, "value": "old"})

    result = store.tables.put("example", {**key, "value": "new"})

    assert (result.applied, result.tid) == (True, version(1))
    assert store.tables.get("example").items == [{**key, "length": 3, "value": "new"}]


def test_null_removes_a_value(store: Store) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {"key": "a", "place": 1, "value": "x"})
    store.tables.put("simple", {"key": "a", "place": 1, "value": None})

    assert store.tables.get("simple").items == [{"key": "a", "place": 1, "value": None}]


def test_key_attributes_alone_make_a_row(store: Store) -> None:
    store.tables.create(simple())
    result = store.tables.put("simple", {"key": "a", "place": 1})

    assert (result.applied, result.tid) == (True, None)
    assert store.tables.get("simple").items == [{"key": "a", "place": 1, "value": None}]


def test_an_overwrite_in_an_unversioned_table_replaces(store: Store) -> None:
    store.tables.create(simple())
    for value in ("one", "two"):
        store.tables.put("simple", {"key": "a", "place": 1, "value": value})

    assert [item["value"] for item in store.tables.get("simple").items] == ["two"]


def test_a_new_revision_inherits_nothing(store: Store) -> None:
    store.tables.create(example())
    store.tables.put("example", {"name": "Tom", "property": "foo", "length": 3})
    store.tables.put("example", {"name": "Tom", "property": "foo", "value": "x"})

    newest, oldest = store.tables.get("example", {"name": "Tom"}).items
    assert (newest["length"], newest["value"]) == (None, "x")
    assert (oldest["length"], oldest["value"]) == (3, None)


def test_statics_are_shared_by_all_rows_of_a_hash_key(store: Store) -> None:
    store.tables.create(simple(index=[hash_on("key"), static_on("value"), range_on("place")]))
    store.tables.put("simple", {"key": "a", "place": 1})
    store.tables.put("simple", {"key": "a", "place": 2, "value": "shared"})
    store.tables.put("simple", {"key": "b", "place": 1})

    assert store.tables.get("simple", {"key": "a"}, proj="value").items == [{"value": "shared"}] * 2
    assert store.tables.get("simple", {"key": "b"}, proj="value").items == [{"value": None}]
    listed = {(i["key"], i["place"]): i["value"] for i in store.tables.get("simple").items}
    assert listed == {("a", 1): "shared", ("a", 2): "shared", ("b", 1): None}


def test_several_hash_attributes_make_one_hash_key(store: Store) -> None:
    attributes = {"a": "string", "b": "string", "n": "int"}
    index = [hash_on("a"), hash_on("b"), range_on("n")]
    store.tables.create({"table": "t", "attributes": attributes, "index": index})
    for a, b in (("x", "yz"), ("xy", "z"), ("", "xyz")):
        store.tables.put("t", {"a": a, "b": b, "n": 1})

    page = store.tables.get("t", {"a": "xy", "b": "z"})
    assert page.items == [{"a": "xy", "b": "z", "n": 1}]
    assert store.tables.get("t").count == 3


# --- what is refused -----------------------------------------------------------------------------


def test_an_unknown_attribute_is_refused(store: Store) -> None:
    store.tables.create(simple())

    with pytest.raises(UnknownAttribute, match="Unknown attribute valeu") as caught:
        store.tables.put("simple", {"key": "a", "place": 1, "valeu": "x"})

    assert (caught.value.type, caught.value.attribute) == ("unknown_attribute", "valeu")
    assert store.tables.get("simple").items == []


@pytest.mark.parametrize("name", ["__proto__", "constructor", "_tid"])
def test_names_that_mean_something_elsewhere_are_unknown_here(store: Store, name: str) -> None:
    store.tables.create(simple())

    with pytest.raises(UnknownAttribute):
        store.tables.put("simple", {"key": "a", "place": 1, name: "x"})


@pytest.mark.parametrize("attributes", [{"place": 1}, {"key": None, "place": 1}, {}])
def test_every_key_attribute_must_be_there(store: Store, attributes: dict[str, Any]) -> None:
    store.tables.create(simple())

    with pytest.raises(MissingKeyAttribute, match="Index attribute") as caught:
        store.tables.put("simple", attributes)

    assert (caught.value.type, caught.value.attribute) == ("missing_key", "key")


def test_the_first_bad_attribute_in_the_order_of_the_schema_is_named(store: Store) -> None:
    store.tables.create(simple())

    with pytest.raises(InvalidAttributeValue) as caught:
        store.tables.put("simple", {"value": 5, "place": "x", "key": "a"})

    assert (caught.value.type, caught.value.attribute) == ("invalid_value", "place")


@pytest.mark.parametrize(
    "attributes",
    [
        {"key": "a", "place": "no place", "extra": 1},
        {"extra": 1, "key": "a", "place": "no place"},
        {"extra": 1, "value": "the key is missing"},
    ],
)
def test_an_unknown_attribute_is_named_before_what_is_wrong_with_the_others(
    store: Store, attributes: dict[str, Any]
) -> None:
    store.tables.create(simple())

    with pytest.raises(UnknownAttribute, match="Unknown attribute extra") as caught:
        store.tables.put("simple", attributes)

    assert caught.value.attribute == "extra"


def test_a_condition_of_a_wrong_shape_is_refused_before_any_attribute(store: Store) -> None:
    store.tables.create(simple())

    with pytest.raises(InvalidTableRequest, match="Only 'not exists'"):
        store.tables.put("simple", {"key": 5, "extra": 1}, if_="exists not")


def test_a_put_to_no_table_is_refused(store: Store) -> None:
    with pytest.raises(TableNotFound, match=r"Invalid query\. No schema") as caught:
        store.tables.put("nowhere", {})
    with pytest.raises(TableNotFound):
        store.tables.put("\ud800", {})

    assert (caught.value.type, caught.value.status) == ("table_not_found", 404)


def test_attributes_are_an_object(store: Store) -> None:
    store.tables.create(simple())

    with pytest.raises(InvalidTableRequest):
        store.tables.put("simple", [("key", "a")])  # type: ignore[arg-type]  # that is the point


# --- automatic versions --------------------------------------------------------------------------


def test_a_missing_version_is_the_time_of_the_write(store: Store, clock: Clock) -> None:
    clock.set(1_500_000_000.25)
    store.tables.create(example())

    for tid in ({}, {"tid": None}):
        made = store.tables.put("example", {"name": "Tom", "property": "foo", **tid}).tid
        assert isinstance(made, UUID)
        assert made.version == 1
        assert 0 <= made.time - TICKS_TO_1970 - 15_000_000_002_500_000 < 10
        assert made.node & 1 << 40  # the multicast bit: no real machine has it


def test_versions_increase_even_if_the_clock_stops_or_jumps_back() -> None:
    versions = Versions()

    times = [versions.make(now).time for now in (5.0, 5.0, 5.0, 4.0, 5.0, 6.0)]

    assert times == sorted(set(times))


def test_a_client_s_version_from_the_future_stays_current(store: Store, clock: Clock) -> None:
    store.tables.create(example())
    future = version(clock() + 1_000)
    store.tables.put("example", {"name": "Tom", "property": "foo", "tid": future})
    store.tables.put("example", {"name": "Tom", "property": "foo"})

    [item] = store.tables.get("example", {"name": "Tom"}, limit=1).items
    assert item["tid"] == future


def test_versions_of_several_transactions_share_one_clock(store: Store) -> None:
    store.tables.create(example())
    key = {"name": "Tom", "property": "foo"}

    def work(tx: Any) -> list[UUID]:
        return [tx.tables.put("example", key).tid for _ in range(3)]

    tids = [*store.transact(work), store.tables.put("example", key).tid]

    assert sorted(tids, key=lambda tid: tid.time) == tids
    assert len(set(tids)) == 4


# --- partial updates -----------------------------------------------------------------------------


def numbers() -> dict[str, Any]:
    kinds = ["int", "long", "varint", "decimal", "float", "double", "set<int>", "set<json>", "json"]
    attributes = {"key": "string", **{kind.strip(">").replace("<", "_"): kind for kind in kinds}}
    return {"table": "numbers", "attributes": attributes, "index": [hash_on("key")]}


@pytest.mark.parametrize(
    ("name", "amounts", "total"),
    [
        ("int", [1, -3, "5"], 3),
        ("long", [2**62, 2**62 - 1], 2**63 - 1),
        ("varint", [10**500, 1], 10**500 + 1),
        ("decimal", ["0.10", "1e-40"], "0.1000000000000000000000000000000000000001"),
        ("double", [0.5, 0.25], 0.75),
    ],
)
def test_a_number_is_increased(store: Store, name: str, amounts: list[Any], total: Any) -> None:
    store.tables.create(numbers())
    for amount in amounts:
        store.tables.put("numbers", {"key": "a", name: {"incr": amount}})

    [item] = store.tables.get("numbers", {"key": "a"}).items
    assert str(item[name]) == str(total)


def test_an_increase_beyond_the_type_is_refused_and_changes_nothing(store: Store) -> None:
    store.tables.create(numbers())
    store.tables.put("numbers", {"key": "a", "int": 2**31 - 1})

    with pytest.raises(InvalidAttributeValue) as caught:
        store.tables.put("numbers", {"key": "a", "int": {"incr": 1}, "long": 5})

    assert caught.value.attribute == "int"
    assert store.tables.get("numbers", proj=["int", "long"]).items == [
        {"int": 2**31 - 1, "long": None}
    ]


def test_members_are_added_to_a_set_and_removed_from_it(store: Store) -> None:
    store.tables.create(numbers())
    store.tables.put("numbers", {"key": "a", "set_int": {"add": [3, 1, 1]}})
    store.tables.put("numbers", {"key": "a", "set_int": {"add": [2], "remove": [3, 9]}})

    assert store.tables.get("numbers", proj="set_int").items == [{"set_int": [1, 2]}]
    store.tables.put("numbers", {"key": "a", "set_int": {"remove": [1, 2]}})
    assert store.tables.get("numbers", proj="set_int").items == [{"set_int": None}]


def test_an_object_is_a_value_for_json(store: Store) -> None:
    store.tables.create(numbers())
    store.tables.put("numbers", {"key": "a", "json": {"incr": 1}})

    assert store.tables.get("numbers", proj="json").items == [{"json": {"incr": 1}}]


@pytest.mark.parametrize(
    "attributes",
    [{"int": {"incr": "x"}}, {"int": {"incr": None}}, {"int": {"add": [1]}}, {"int": {}},
     {"set_int": {"add": "x"}}, {"set_int": {"incr": 1}}, {"int": {"incr": 1, "more": 1}},
     {"key": {"incr": 1}}],
)  # fmt: skip
def test_an_update_that_does_not_fit_is_refused(store: Store, attributes: dict[str, Any]) -> None:
    store.tables.create(numbers())

    with pytest.raises(InvalidAttributeValue):
        store.tables.put("numbers", {"key": "a", **attributes})


def test_a_static_number_is_increased(store: Store) -> None:
    attributes = {"key": "string", "place": "int", "count": "long"}
    index = [hash_on("key"), static_on("count"), range_on("place")]
    store.tables.create({"table": "t", "attributes": attributes, "index": index})
    for place in range(3):
        store.tables.put("t", {"key": "a", "place": place, "count": {"incr": 2}})

    assert store.tables.get("t", {"key": "a"}, proj="count", limit=1).items == [{"count": 6}]


# --- limits --------------------------------------------------------------------------------------


def test_a_hash_value_has_at_most_65535_bytes(store: Store) -> None:
    store.tables.create(simple())
    longest = "é" * 32_767 + "x"
    store.tables.put("simple", {"key": longest, "place": 1, "value": "found"})

    assert store.tables.get("simple", {"key": longest}).items[0]["value"] == "found"
    assert store.tables.get("simple").items[0]["key"] == longest
    with pytest.raises(RowKeyTooLong) as caught:
        store.tables.put("simple", {"key": longest + "x", "place": 1})
    assert (caught.value.type, caught.value.status) == ("key_too_long", 400)
    assert caught.value.attribute == "key"


def test_a_range_value_has_at_most_4096_bytes(store: Store) -> None:
    attributes = {"key": "string", "place": "blob"}
    store.tables.create(simple(attributes=attributes))
    store.tables.put("simple", {"key": "a", "place": b"\0" * 4096})

    assert store.tables.get("simple", {"key": "a"}).count == 1
    with pytest.raises(RowKeyTooLong) as caught:
        store.tables.put("simple", {"key": "a", "place": b"\0" * 4097})
    assert caught.value.attribute == "place"


def test_all_key_values_together_have_at_most_65535_bytes(store: Store) -> None:
    names = [f"r{number}" for number in range(20)]
    attributes = {"key": "string", **dict.fromkeys(names, "blob")}
    index = [hash_on("key"), *(range_on(name) for name in names)]
    store.tables.create({"table": "t", "attributes": attributes, "index": index})

    store.tables.put("t", {"key": "a", **dict.fromkeys(names, b"\0" * 3_000)})
    with pytest.raises(RowKeyTooLong):
        store.tables.put("t", {"key": "a", **dict.fromkeys(names, b"\0" * 3_300)})


def test_long_range_keys_keep_their_exact_order(store: Store) -> None:
    attributes = {"key": "string", "place": "string"}
    store.tables.create(simple(attributes=attributes))
    stem = "x" * 1_500
    places = [stem, stem + "a", stem + "ab", stem + "b", "w" * 3_000, "y"]
    for place in places:
        store.tables.put("simple", {"key": "a", "place": place})

    def found(**query: Any) -> list[str]:
        return [item["place"] for item in store.tables.get("simple", **query).items]

    assert found() == sorted(places)
    assert found(attributes={"key": "a", "place": {"gt": stem, "lt": stem + "b"}}) == [
        stem + "a",
        stem + "ab",
    ]
    assert found(attributes={"key": "a"}, order={"place": "desc"}) == sorted(places)[::-1]


def test_a_value_has_at_most_16_mib(store: Store) -> None:
    store.tables.create(simple(attributes={"key": "string", "place": "int", "value": "blob"}))
    key = {"key": "a", "place": 1}
    store.tables.put("simple", {**key, "value": bytes(16 * 1024 * 1024)})

    with pytest.raises(RowTooLarge) as caught:
        store.tables.put("simple", {**key, "value": bytes(16 * 1024 * 1024 + 1)})
    assert (caught.value.type, caught.value.status) == ("too_large", 413)


def test_values_of_python_and_of_json_are_the_same(store: Store) -> None:
    attributes = {"key": "string", "at": "timestamp", "big": "long", "raw": "blob"}
    store.tables.create({"table": "t", "attributes": attributes, "index": [hash_on("key")]})
    store.tables.put("t", {"key": "json", "at": "2014-11-14", "big": "7", "raw": "AP8="})
    moment = datetime(2014, 11, 14, tzinfo=UTC)
    store.tables.put("t", {"key": "python", "at": moment, "big": 7, "raw": b"\0\xff"})

    [one] = store.tables.get("t", {"key": "json"}, proj=["at", "big", "raw"]).items
    [two] = store.tables.get("t", {"key": "python"}, proj=["at", "big", "raw"]).items
    assert one == two == {"at": moment, "big": 7, "raw": b"\0\xff"}
    [item] = store.tables.get("t", {"key": "python"}, form="json").items
    assert item == {
        "key": "python",
        "at": "2014-11-14T00:00:00.000Z",
        "big": "7",
        "raw": "AP8=",
    }


def test_twenty_puts_at_once_to_one_hash_key_all_succeed(store: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    store.tables.create(example())
    with ThreadPoolExecutor(20) as pool:
        results = list(
            pool.map(
                lambda n: store.tables.put("example", {"name": "Tom", "property": f"p{n}"}),
                range(20),
            )
        )

    assert all(result.applied for result in results)
    assert store.tables.get("example", {"name": "Tom"}).count == 20


@pytest.mark.parametrize("members", [0, "", False, {}, "x"])
def test_what_is_added_to_a_set_is_an_array(store: Store, members: Any) -> None:
    attributes = {"key": "string", "tags": "set<string>"}
    store.tables.create({"table": "t", "attributes": attributes, "index": [hash_on("key")]})

    with pytest.raises(InvalidAttributeValue):
        store.tables.put("t", {"key": "a", "tags": {"add": members}})


def test_a_set_has_a_bounded_number_of_members(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.tables.types.MAX_COLLECTION_ITEMS", 3)
    store.tables.create(numbers())
    store.tables.put("numbers", {"key": "a", "set_int": [1, 2, 3, 3]})

    with pytest.raises(InvalidAttributeValue, match="at most 3 members, these are 4"):
        store.tables.put("numbers", {"key": "a", "set_int": {"add": [4]}})
    store.tables.put("numbers", {"key": "a", "set_int": {"add": [3]}})

    assert store.tables.get("numbers", proj="set_int").items == [{"set_int": [1, 2, 3]}]
