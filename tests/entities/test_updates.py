"""UPDATE applies its changes in order, to every entity that it selects."""

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import Change, Filter, PutEntity
from holdfast.errors import BadChange, BadValue, VersionMismatch
from holdfast.testing import Clock

U = [Filter("id", "=", ["u"])]


def updated(entities: StoreEntities, before: dict[str, Any], *changes: Change) -> dict[str, Any]:
    """Returns the entity after the changes; each must count it and skip nothing."""
    entities.put_raw("test.Users", [{"id": "u", **before}], mode="replace")
    result = entities.update_raw("test.Users", U, changes)
    assert (result.num, result.skipped) == (1, 0)
    return entities.get_raw("test.Users", ["u"])[0].properties


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ({}, Change("SET", "a", 1), {"a": 1}),
        ({"a": "x"}, Change("SET", "a", None), {"a": None}),
        ({}, Change("INCR", "a", 3), {"a": 3}),
        ({"a": None}, Change("INCR", "a", 3), {"a": 3}),
        ({"a": 2}, Change("INCR", "a", -3), {"a": -1}),
        ({"a": 2}, Change("INCR", "a", 0.5), {"a": 2.5}),
        ({"a": 2.5}, Change("INCR", "a", 1), {"a": 3.5}),
        ({"a": 2**63}, Change("INCR", "a", 1), {"a": 2**63 + 1}),
        ({"a": 3}, Change("MUL", "a", 4), {"a": 12}),
        ({"a": 1}, Change("PDEL", "a"), {}),
        ({}, Change("PDEL", "a"), {}),
        ({}, Change("SADD", "a", "x"), {"a": {"x"}}),
        ({"a": None}, Change("SADD", "a", ["x", "y"]), {"a": {"x", "y"}}),
        ({"a": {1}}, Change("SADD", "a", {1.0, 2}), {"a": {1, 2}}),
        ({"a": {1, 2}}, Change("SDEL", "a", [2.0, 7]), {"a": {1}}),
        ({"a": {1}}, Change("SDEL", "a", 1), {"a": set()}),
        ({}, Change("SDEL", "a", 1), {}),
        ({}, Change("MSET", "a", {"k": 1}), {"a": {"k": 1}}),
        ({"a": {"k": 1, "l": 2}}, Change("MSET", "a", {"k": 3}), {"a": {"k": 3, "l": 2}}),
        ({"a": {"k": 1, "l": 2}}, Change("MDEL", "a", "k"), {"a": {"l": 2}}),
        ({"a": {"k": 1, "l": 2}}, Change("MDEL", "a", ["k", "l"]), {"a": {}}),
        ({}, Change("MDEL", "a", "k"), {}),
        ({"a": [1]}, Change("LADD", "a", 2), {"a": [1, 2]}),
        ({}, Change("LADD", "a", [1, 2]), {"a": [1, 2]}),
        ({}, Change("LADD", "a", {1, 2}), {"a": [1, 2]}),
        ({}, Change("LADD", "a", [[1], {2}]), {"a": [[1], {2}]}),
    ],
)
def test_what_a_change_does(
    entities: StoreEntities, before: dict[str, Any], change: Change, after: dict[str, Any]
) -> None:
    assert updated(entities, before, change) == after


def test_changes_are_applied_in_the_order_of_the_list(entities: StoreEntities) -> None:
    changes = [Change("INCR", "a", 1), Change("SET", "b", 5), Change("SET", "a", 10)]

    assert updated(entities, {"a": 1}, *changes, Change("INCR", "a", 2)) == {"a": 12, "b": 5}


@pytest.mark.parametrize(
    "change",
    [
        Change("INCR", "a", 1),
        Change("MUL", "a", 2),
        Change("SADD", "a", 1),
        Change("SDEL", "a", 1),
        Change("MSET", "a", {"k": 1}),
        Change("MDEL", "a", "k"),
        Change("LADD", "a", 1),
    ],
)
def test_a_value_of_another_type_is_left_alone_without_error(
    entities: StoreEntities, change: Change
) -> None:
    entities.put_raw("test.Users", [{"id": "u", "a": "text"}])

    result = entities.update_raw("test.Users", U, [change, Change("SET", "b", 1)])

    assert (result.num, result.skipped) == (1, 1)
    assert entities.get_raw("test.Users", ["u"])[0].properties == {"a": "text", "b": 1}


@pytest.mark.parametrize(("start", "by"), [(2**63 - 1, 1), (-(2**63), -1), (2**64 - 1, 1)])
def test_a_sum_beyond_64_bits_refuses_the_whole_update(
    entities: StoreEntities, start: int, by: int
) -> None:
    entities.put_raw(
        "test.Users", [{"id": "u", "age": 1, "n": 1}, {"id": "v", "age": 1, "n": start}]
    )

    with pytest.raises(BadChange, match="64 bits"):
        entities.update_raw("test.Users", [Filter("age", "=", [1])], [Change("INCR", "n", by)])

    assert entities.get_raw("test.Users", ["u"])[0].properties["n"] == 1


def test_indexes_follow_the_result_of_an_increment(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": "u", "age": 1.5}])

    entities.update_raw("test.Users", U, [Change("INCR", "age", 2)])

    assert entities.count_raw("test.Users", [Filter("age", "=", [3.5])]) == 1
    assert entities.count_raw("test.Users", [Filter("age", "<", [3])]) == 0


def test_del_removes_the_entity_and_later_changes_do_not_apply(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": "u", "age": 1}])

    result = entities.update_raw("test.Users", U, [Change("DEL"), Change("SET", "age", 2)])

    assert result.num == 1
    assert entities.count_raw("test.Users") == 0


@pytest.mark.parametrize(
    "filters",
    [
        [Filter("id", "=", ["u"])],
        (Filter("id", "=", ["u"]),),
        [Filter("id", "=", ("u",))],
        [Filter("id", "IN", ["u", "nobody"])],
        [Filter("id", "><", ["u", "u"])],
        [Filter("name", "=", ["Ünal"])],
    ],
)
def test_an_entity_is_found_however_the_filter_is_written(
    entities: StoreEntities, filters: Sequence[Filter]
) -> None:
    entities.put_raw("test.Users", [{"id": "u", "name": "Ünal"}, {"id": "ü", "name": "ann"}])

    result = entities.update_raw("test.Users", filters, [Change("INCR", "a", 1)])

    assert (result.num, result.skipped) == (1, 0)
    assert entities.get_raw("test.Users", ["u"])[0].properties["a"] == 1
    assert entities.get_raw("test.Users", ["u"])[0].version == 2
    assert "a" not in entities.get_raw("test.Users", ["ü"])[0].properties


@pytest.mark.parametrize("id", ["", "ü", "nobody", None, 5])
def test_an_unusual_id_finds_nothing_that_has_another(entities: StoreEntities, id: Any) -> None:
    entities.put_raw("test.Users", [{"id": "u"}])

    result = entities.update_raw("test.Users", [Filter("id", "=", [id])], [Change("DEL", "")])

    assert result.num == 0
    assert len(entities.get_raw("test.Users", ["u"])) == 1


def test_an_expired_entity_is_not_updated(entities: StoreEntities, clock: Clock) -> None:
    entities.put_raw("test.Users", [PutEntity({"a": 1}, id="u", ttl=10**9)])

    clock.advance(seconds=2)

    assert entities.update_raw("test.Users", U, [Change("INCR", "a", 1)]).num == 0


def test_an_update_creates_nothing(entities: StoreEntities) -> None:
    assert entities.update_raw("test.Users", U, [Change("SET", "a", 1)]).num == 0
    assert entities.count_raw("test.Users") == 0


def test_deleting_the_last_property_leaves_the_entity(entities: StoreEntities) -> None:
    assert updated(entities, {"city": "x"}, Change("PDEL", "city")) == {}
    assert entities.count_raw("test.Users", [Filter("city", "=", [""])]) == 1


def test_an_id_mentioned_twice_is_updated_once(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": "u", "a": 1}])

    result = entities.update_raw(
        "test.Users", [Filter("id", "IN", ["u", "u"])], [Change("INCR", "a", 1)]
    )

    assert result.num == 1
    assert entities.get_raw("test.Users", ["u"])[0].properties == {"a": 2}


def test_an_update_of_another_version_is_refused(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": "u", "a": 1}])

    with pytest.raises(VersionMismatch):
        entities.update_raw("test.Users", U, [Change("SET", "a", 2)], if_version=2)
    with pytest.raises(VersionMismatch):
        entities.delete_raw("test.Users", U, if_version=2)

    assert entities.update_raw("test.Users", U, [Change("SET", "a", 2)], if_version=1).num == 1
    assert entities.delete_raw("test.Users", U, if_version=2) == 1


@pytest.mark.parametrize("name", ["a\0b", 5])
@pytest.mark.parametrize("op", ["SET", "INCR", "SADD", "LADD"])
def test_a_change_needs_a_valid_name_of_a_property(
    entities: StoreEntities, op: str, name: Any
) -> None:
    entities.put_raw("test.Users", [{"id": "u"}])

    with pytest.raises(BadValue, match="is not a name for a property"):
        entities.update_raw("test.Users", U, [Change(op, name, 1)])
    assert entities.get_raw("test.Users", ["u"])[0].properties == {}


def test_what_is_appended_counts_the_list_around_it(entities: StoreEntities) -> None:
    deep: Any = 1
    for _ in range(100):
        deep = {"a": deep}
    entities.put_raw("test.Users", [{"id": "u"}])

    with pytest.raises(BadValue, match="nested deeper than 100"):
        entities.update_raw("test.Users", U, [Change("LADD", "a", deep)])
    assert entities.update_raw("test.Users", U, [Change("LADD", "a", deep["a"])]).num == 1


def test_a_container_can_not_be_added_to_a_set(entities: StoreEntities) -> None:
    with pytest.raises(BadValue):
        entities.update_raw("test.Users", U, [Change("SADD", "a", [[1]])])


def test_delete_counts_each_entity_once(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": id, "age": 1} for id in "abcd"])

    assert entities.delete_raw("test.Users", [Filter("id", "IN", ["a", "a", "x"])]) == 1
    assert entities.delete_raw("test.Users", [Filter("age", "=", [1])]) == 3
    assert entities.delete_raw("test.Users", [Filter("id", "ALL")]) == 0


@pytest.mark.parametrize("number", [300, 1500])
def test_all_deletes_everything(entities: StoreEntities, number: int) -> None:
    entities.put_raw("test.Users", [{"age": n} for n in range(number)])

    assert entities.delete_raw("test.Users", [Filter("id", "ALL")]) == number
    assert entities.count_raw("test.Users") == 0
    assert entities.count_raw("test.Users", [Filter("age", ">=", [0])]) == 0
