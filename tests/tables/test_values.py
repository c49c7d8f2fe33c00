"""Values that each type takes and refuses."""

import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from holdfast.tables.types import type_names, type_of

TIME_ID = UUID("30b68d20-6ba1-11e4-b3d9-550dc866dac4")
RANDOM_ID = UUID("0c4e4d3e-4d8b-4d3e-8d8b-0c4e4d3e4d8b")


def buffer(*data: Any) -> dict[str, Any]:
    return {"type": "Buffer", "data": list(data)}


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]  # year, month, day, ...


@pytest.mark.parametrize(
    ("kind", "given", "stored"),
    [
        ("string", "", ""),
        ("string", "a\0b", "a\0b"),
        ("string", "😀", "😀"),
        ("string", buffer(195, 188), "ü"),
        ("blob", b"\0\xff", b"\0\xff"),
        ("blob", bytearray(b"x"), b"x"),
        ("blob", "", b""),
        ("blob", "AP8=", b"\0\xff"),
        ("blob", "AP8", b"\0\xff"),
        ("blob", "_-8=", b"\xff\xef"),
        ("blob", "/+8=", b"\xff\xef"),
        ("blob", buffer(), b""),
        ("blob", buffer(0, 255), b"\0\xff"),
        ("boolean", True, True),
        ("boolean", False, False),
        ("int", -2147483648, -2147483648),
        ("int", 2147483647, 2147483647),
        ("int", 1.0, 1),
        ("int", Decimal("1.0"), 1),
        ("int", Decimal("1E+3"), 1000),
        ("int", "-12", -12),
        ("long", "9223372036854775807", 2**63 - 1),
        ("long", -(2**63), -(2**63)),
        ("varint", 10**999, 10**999),
        ("varint", "-" + "9" * 1000, -(10**1000 - 1)),
        ("decimal", "1.40", Decimal("1.40")),
        ("decimal", Decimal("1.40"), Decimal("1.40")),
        ("decimal", 3, Decimal(3)),
        ("decimal", 0.1, Decimal("0.1")),
        ("decimal", "1e3", Decimal("1000")),
        ("decimal", "-0", Decimal(0)),
        ("decimal", "1E+6000", Decimal("1E+6000")),
        ("float", -3.434, -3.434000015258789),
        ("float", "0.1", 0.10000000149011612),
        ("float", 3.4028234663852886e38, 3.4028234663852886e38),
        ("double", 1, 1.0),
        ("double", "1.5e300", 1.5e300),
        ("double", Decimal("0.1"), 0.1),
        ("timeuuid", TIME_ID, TIME_ID),
        ("timeuuid", "30B68D20-6BA1-11E4-B3D9-550DC866DAC4", TIME_ID),
        ("uuid", str(RANDOM_ID).upper(), RANDOM_ID),
        ("uuid", TIME_ID, TIME_ID),
        ("timestamp", "2014-11-14", at(2014, 11, 14)),
        ("timestamp", "2014-11-14T12:30", at(2014, 11, 14, 12, 30)),
        ("timestamp", "2014-11-14 12:30:05", at(2014, 11, 14, 12, 30, 5)),
        ("timestamp", "2014-11-14T12:30:05.1Z", at(2014, 11, 14, 12, 30, 5, 100_000)),
        ("timestamp", "2014-11-14T12:30:05.123999Z", at(2014, 11, 14, 12, 30, 5, 123_000)),
        ("timestamp", "2014-11-14T12:30+02", at(2014, 11, 14, 10, 30)),
        ("timestamp", "2014-11-14T12:30-0230", at(2014, 11, 14, 15)),
        ("timestamp", "2014-11-14T12:30+02:00", at(2014, 11, 14, 10, 30)),
        ("timestamp", 1500, at(1970, 1, 1, 0, 0, 1, 500_000)),
        ("timestamp", -1, at(1969, 12, 31, 23, 59, 59, 999_000)),
        (
            "timestamp",
            datetime(2014, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
            at(2014, 1, 1),
        ),
        ("json", {"a": [1, 2.5, None, True, "x"]}, {"a": [1, 2.5, None, True, "x"]}),
        ("json", Decimal("2.50"), 2.5),
        ("json", 10**30, 10**30),
        ("set<int>", [3, "1", 3, 2.0], [1, 2, 3]),
        ("set<string>", ["b", "a", "b"], ["a", "b"]),
        ("set<string>", frozenset("ba"), ["a", "b"]),
        ("set<decimal>", ["1.40", "1.4", "0"], [Decimal(0), Decimal("1.40")]),
        ("set<blob>", ["AA==", b"", b"\0\0"], [b"", b"\0", b"\0\0"]),
        ("set<boolean>", [True, False, True], [False, True]),
        ("set<int>", [], None),
        ("set<int>", set(), None),
    ],
)
def test_a_type_takes_a_value(kind: str, given: Any, stored: Any) -> None:
    accepted = type_of(kind).accept(given)

    assert accepted == stored
    assert type(accepted) is type(stored)
    assert str(accepted) == str(stored)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("string", 5),
        ("string", True),
        ("string", b"bytes"),
        ("string", "\ud800"),
        ("string", buffer(255)),
        ("string", {"type": "Buffer", "data": [1], "more": 1}),
        ("blob", "AP 8="),
        ("blob", "A"),
        ("blob", "AP8=="),
        ("blob", "AP=8"),
        ("blob", "ü"),
        ("blob", 5),
        ("blob", [0]),
        ("blob", buffer(256)),
        ("blob", buffer(True)),
        ("boolean", 1),
        ("boolean", "true"),
        ("int", True),
        ("int", 2147483648),
        ("int", -2147483649),
        ("int", "1e3"),
        ("int", "1.0"),
        ("int", "+1"),
        ("int", " 1"),
        ("int", "\u0661"),
        ("int", 1.5),
        ("int", math.inf),
        ("int", math.nan),
        ("int", Decimal("1E+99999")),
        ("long", 2**63),
        ("long", False),
        ("varint", 10**1000),
        ("varint", "9" * 5000),
        ("decimal", "1" * 1001),
        ("decimal", "1e-99999999999999999999"),
        ("varint", "1e99999999999999999999"),
        ("decimal", "1" * 1000 + "0" * 41),
        ("decimal", "1." + "0" * 1000),
        pytest.param("json", 10**4300, id="json-too-many-digits"),
        pytest.param("json", {"deep": [-(10**5000)]}, id="json-too-many-digits-deep"),
        ("decimal", "1e6001"),
        ("decimal", "1e-6001"),
        ("decimal", "1e999999999999"),
        ("decimal", "NaN"),
        ("decimal", Decimal("Infinity")),
        ("decimal", math.nan),
        ("decimal", True),
        ("decimal", ""),
        ("float", 3.5e38),
        ("float", math.inf),
        ("float", "NaN"),
        ("float", "Infinity"),
        ("float", True),
        ("double", math.nan),
        ("double", "inf"),
        ("double", 10**400),
        ("double", "1e400"),
        ("timeuuid", str(RANDOM_ID)),
        ("timeuuid", RANDOM_ID),
        ("timeuuid", "30b68d206ba111e4b3d9550dc866dac4"),
        ("timeuuid", "{30b68d20-6ba1-11e4-b3d9-550dc866dac4}"),
        ("uuid", "nonsense"),
        ("uuid", 5),
        ("timestamp", "2014-11-14T12:30:60Z"),
        ("timestamp", "2014-13-01"),
        ("timestamp", "2014-W01-1"),
        ("timestamp", "2014-318"),
        ("timestamp", "20141114"),
        ("timestamp", "20141114T123000Z"),
        ("timestamp", "0000-01-01"),
        ("timestamp", "10000-01-01"),
        ("timestamp", "0001-01-01T00:00+01:00"),
        ("timestamp", "2014-11-14T12:30+25"),
        ("timestamp", 10**18),
        ("timestamp", True),
        ("timestamp", datetime(2014, 1, 1)),
        ("json", b"bytes"),
        ("json", {1: 2}),
        ("json", math.nan),
        ("json", "\udfff"),
        ("json", {"\ud800": 1}),
        ("set<int>", [None]),
        ("set<int>", ["x"]),
        ("set<int>", "12"),
        ("set<int>", {"1": 1}),
    ],
)
def test_a_type_refuses_a_value(kind: str, given: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        type_of(kind).accept(given)


def test_json_may_be_a_hundred_levels_deep_and_no_more() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]

    assert type_of("json").accept(value) == value
    with pytest.raises(ValueError, match="100"):
        type_of("json").accept([value])


def test_there_are_exactly_26_types() -> None:
    assert len(type_names()) == 26


@pytest.mark.parametrize(
    ("kind", "value", "out"),
    [
        ("blob", b"\0\xff", "AP8="),
        ("long", 2**63 - 1, "9223372036854775807"),
        ("varint", 2**53 - 1, 2**53 - 1),
        ("varint", -(2**53 - 1), -(2**53 - 1)),
        ("varint", 2**53, "9007199254740992"),
        ("decimal", Decimal("1.40"), "1.40"),
        ("decimal", Decimal("1E-7"), "0.0000001"),
        ("decimal", Decimal("1E+41"), "1E+41"),
        ("decimal", Decimal("1E-60"), "1E-60"),
        ("timeuuid", TIME_ID, "30b68d20-6ba1-11e4-b3d9-550dc866dac4"),
        ("timestamp", at(1, 1, 1), "0001-01-01T00:00:00.000Z"),
        ("timestamp", at(2014, 11, 14, 1, 2, 3, 45_000), "2014-11-14T01:02:03.045Z"),
        ("set<long>", [1, 2], ["1", "2"]),
    ],
)
def test_the_json_form_of_a_value(kind: str, value: Any, out: Any) -> None:
    found = type_of(kind)

    assert found.to_json is not None
    assert found.to_json(value) == out
    assert found.accept(out) == value


@pytest.mark.parametrize("exponent", [0, 1, 40, 41, 6_000])
def test_a_decimal_of_a_thousand_digits_is_taken_again_as_it_was_read(exponent: int) -> None:
    decimal = type_of("decimal")
    value = decimal.accept("9" * 1_000 + f"E{exponent}")

    assert decimal.to_json is not None
    again = decimal.accept(decimal.to_json(value))

    assert (again, str(again)) == (value, str(value))


def test_sets_of_json_are_ordered_by_their_compact_text() -> None:
    given = [{"test": [{"a": "b"}, 3]}, {"two": "two", "one": 1}, {"foo": "bar"}]

    members = type_of("set<json>").accept([*given, {"one": 1, "two": "two"}])

    assert members == [{"foo": "bar"}, {"one": 1, "two": "two"}, {"test": [{"a": "b"}, 3]}]
    assert list(members[1]) == ["two", "one"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "5", "5"),
        ("blob", "AP8", b"\0\xff"),
        ("boolean", "1", True),
        ("boolean", "false", False),
        ("int", "-3", -3),
        ("decimal", "1.40", Decimal("1.40")),
        ("double", "1e3", 1000.0),
        ("timestamp", "1500", at(1970, 1, 1, 0, 0, 1, 500_000)),
        ("timestamp", "2014-11-14", at(2014, 11, 14)),
    ],
)
def test_a_value_from_the_text_of_a_url(kind: str, text: str, value: Any) -> None:
    assert type_of(kind).from_text(text) == value


@pytest.mark.parametrize(
    ("kind", "text"), [("boolean", "yes"), ("int", "1.0"), ("int", ""), ("set<int>", "1")]
)
def test_a_text_that_does_not_fit_its_type(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        type_of(kind).from_text(text)
