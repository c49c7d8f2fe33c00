"""Which instance of a metric is meant."""

import enum
import pickle
from typing import Any

import pytest

from holdfast.errors import BadMetricKey, EmptyPrefix
from holdfast.metrics.entity import (
    GlobalEntityKey,
    LocalEntityKey,
    as_entity,
    as_namespace,
    as_prefix,
    entity_object,
    readable,
    suffix_of,
)


def test_a_map_of_components_is_flattened_in_the_order_given() -> None:
    assert LocalEntityKey({"user_id": 1}) == LocalEntityKey(["user_id", 1])
    assert LocalEntityKey({"b": 1, "a": 2}).components == ("b", "1", "a", "2")


def test_an_integer_and_its_decimal_digits_are_the_same_component() -> None:
    assert hash(LocalEntityKey(["user_id", 1])) == hash(LocalEntityKey(["user_id", "1"]))
    assert LocalEntityKey([-7]) == LocalEntityKey(["-7"])


def test_a_member_of_an_enumeration_is_the_component_that_is_its_value() -> None:
    class Kind(str, enum.Enum):  # noqa: UP042 - as written before StrEnum
        USER = "user"

    class Number(int, enum.Enum):
        ONE = 1

    assert LocalEntityKey([Kind.USER, Number.ONE]) == LocalEntityKey(["user", "1"])


def test_local_and_global_entities_differ_and_so_do_namespaces() -> None:
    keys = {
        suffix_of(LocalEntityKey(["a"]), "one"),
        suffix_of(LocalEntityKey(["a"]), "two"),
        suffix_of(LocalEntityKey(["a"]), "global"),
        suffix_of(GlobalEntityKey(["a"]), "one"),
        suffix_of(LocalEntityKey(["a", ""]), "one"),
        suffix_of(LocalEntityKey([]), "one"),
    }

    assert len(keys) == 6
    assert suffix_of(GlobalEntityKey(["a"]), "one") == suffix_of(GlobalEntityKey(["a"]), "two")


def test_an_entity_is_read_from_the_form_of_every_protocol() -> None:
    assert as_entity(None) == LocalEntityKey()
    assert as_entity(["user_id", 1]) == LocalEntityKey(["user_id", "1"])
    assert as_entity({"user_id": 1}) == LocalEntityKey(["user_id", "1"])
    assert as_entity({"global": True, "components": ["x"]}) == GlobalEntityKey(["x"])
    assert as_entity({"global": False, "components": {"x": 2}}) == LocalEntityKey(["x", 2])
    assert as_entity({"components": []}) == LocalEntityKey()


def test_an_entity_goes_out_as_it_came_in() -> None:
    for entity in (LocalEntityKey(["a", "1"]), GlobalEntityKey([]), LocalEntityKey()):
        assert as_entity(entity_object(entity)) == entity
        assert pickle.loads(pickle.dumps(entity)) == entity


@pytest.mark.parametrize(
    "entity",
    [
        [True],
        [1.5],
        [None],
        [["a"]],
        ["a"] * 33,
        "user",
        b"user",
        7,
        {"global": 1, "components": []},
        {"global": True, "components": [], "x": 1},
    ],
)
def test_what_is_no_component_is_refused(entity: Any) -> None:
    with pytest.raises(BadMetricKey):
        as_entity(entity)


def test_thirty_two_components_are_possible() -> None:
    assert len(LocalEntityKey(["a"] * 32).components) == 32


def test_a_prefix_is_a_string_or_a_list_of_them() -> None:
    assert as_prefix("WRStats") == ("WRStats",)
    assert as_prefix(["limiter", "edit"]) == ("limiter", "edit")
    with pytest.raises(EmptyPrefix):
        as_prefix([])
    for bad in (None, 3, [1], ["a", None], b"a"):
        with pytest.raises(BadMetricKey):
            as_prefix(bad)


def test_a_namespace_is_not_empty() -> None:
    for bad in ("", None, 3):
        with pytest.raises(BadMetricKey):
            as_namespace(bad)


def test_readable_keys_escape_percent_and_colon_and_nothing_else() -> None:
    assert readable("local", "WRStats", "a", "", 100, "user_id", 1) == (
        "local:WRStats:a::100:user_id:1"
    )
    assert readable("50%", "a:b", "ä b") == "50%25:a%3Ab:ä b"
