"""Every value that an entity can hold comes back as it was."""

import math
import struct
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum
from typing import Any

import msgspec
import pytest
from msgspec.msgpack import Ext

from holdfast.entities import StoreEntities
from holdfast.entities.values import Instant, to_kept
from holdfast.errors import BadQuery, BadValue


class Level(IntEnum):
    HIGH = 3


def back(entities: StoreEntities, value: Any) -> Any:
    [id] = entities.put_raw("test.Plain", [{"value": value}])
    return entities.get_raw("test.Plain", [id])[0].properties["value"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -(2**63),
        2**64 - 1,
        1e-8,
        math.inf,
        -math.inf,
        "text with \0 and {NIL}",
        "",
        b"\x00\xff",
        b"",
        datetime(2020, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        Instant(2**62),
        {"a", 1, b"x", None},
        {1, Instant(2**62), Instant(-(2**63))},
        set(),
        [],
        [1, [2, {"a": [None]}], "__MDZS__"],
        {},
        {"nested": {"set": {1, 2}, "": [True]}},
    ],
)
def test_a_value_comes_back_exactly(entities: StoreEntities, value: Any) -> None:
    kept = back(entities, value)

    assert kept == value
    assert type(kept) is type(value)


def test_the_bits_of_a_float_are_kept(entities: StoreEntities) -> None:
    assert math.isnan(back(entities, math.nan))
    assert struct.pack("<d", back(entities, -0.0)) == struct.pack("<d", -0.0)


def test_timestamps_are_cut_to_milliseconds_in_utc(entities: StoreEntities) -> None:
    moment = datetime(2020, 1, 1, 12, 0, 0, 123_999, tzinfo=timezone(timedelta(hours=2)))

    assert back(entities, moment) == datetime(2020, 1, 1, 10, 0, 0, 123_000, tzinfo=UTC)
    naive = datetime(2020, 1, 1)
    assert back(entities, naive) == datetime(2020, 1, 1, tzinfo=UTC)


def test_int_and_float_elements_of_equal_value_are_one(entities: StoreEntities) -> None:
    assert back(entities, {1.0, 2}) == {1, 2}


def test_subclasses_are_kept_as_what_they_stand_for(entities: StoreEntities) -> None:
    assert back(entities, Level.HIGH) == 3
    assert back(entities, (1, 2)) == [1, 2]
    assert back(entities, bytearray(b"x")) == b"x"


@pytest.mark.parametrize(
    "value",
    [
        object(),
        1j,
        2**64,
        -(2**63) - 1,
        2**5000,
        "\ud800",
        {1: "key"},
        {"a\0": 1},
        [2**64],
        {2**64},
        {2**5000},
        {"\ud800"},
    ],
)
def test_other_values_are_refused(entities: StoreEntities, value: Any) -> None:
    with pytest.raises(BadValue):
        back(entities, value)

    assert entities.count_raw("test.Plain") == 0


@pytest.mark.parametrize("element", [(1, 2), frozenset({1})])
def test_a_set_holds_no_containers(entities: StoreEntities, element: Any) -> None:
    with pytest.raises(BadValue):
        back(entities, {element})


def test_values_nest_a_hundred_deep_and_no_deeper(entities: StoreEntities) -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]

    assert back(entities, value) == value
    with pytest.raises(BadValue, match="nested"):
        back(entities, {"a": value})


def test_a_property_needs_a_name_and_it_cannot_be_id(entities: StoreEntities) -> None:
    with pytest.raises(BadQuery, match="Empty properties not allowed in entities"):
        entities.put_raw("test.Plain", [{"": 1}])

    [id] = entities.put_raw("test.Plain", [{"id": "x", "a": 1}])
    assert entities.get_raw("test.Plain", [id])[0].properties == {"a": 1}


@pytest.mark.parametrize(
    "extension",
    [
        Ext(5, b"of nobody"),
        Ext(1, b""),
        Ext(1, b"\x91\xa2\xff\xfe"),
        Ext(1, msgspec.msgpack.encode([[1]])),
        Ext(1, msgspec.msgpack.encode([Ext(9, b"")])),
        Ext(2, b"too short"),
    ],
)
def test_a_damaged_extension_from_outside_is_refused(extension: Ext) -> None:
    with pytest.raises(BadValue, match="not allowed for entities"):
        to_kept({"a": [extension]})


def test_a_set_in_its_stored_form_is_set_right() -> None:
    assert to_kept(Ext(1, msgspec.msgpack.encode(["b", "a", "b"]))) == to_kept({"a", "b"})
