"""JSON from outside: exact numbers, a bounded depth, no surprises."""

from decimal import Decimal
from typing import Any

import pytest

from holdfast.errors import InvalidTableJson, RowTooLarge
from holdfast.tables.json_parser import parse_json
from holdfast.tables.types import type_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"9007199254740993", 9007199254740993),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b"1.40", Decimal("1.40")),
        (b"0.1000000000000000055511151231257827", Decimal("0.1000000000000000055511151231257827")),
        (b"1e3", Decimal("1E+3")),
        (b"[true, null]", [True, None]),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'"\\u0000"', "\0"),
        (b'"\\ud83d\\ude00"', "😀"),
    ],
)
def test_numbers_are_exact_and_texts_are_whole(text: bytes, value: Any) -> None:
    parsed = parse_json(text)

    assert parsed == value
    assert str(parsed) == str(value)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"nonsense", b"[1,]", b"NaN", b"[Infinity]", b"-Infinity", b'"\xff"', b"1e400",
     b"[1.5e999]", b"1e-99999999999999999999", b"01", b"9" * 100_001, b"\xef\xbb\xbf{"],
)  # fmt: skip
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidTableJson) as caught:
        parse_json(text)

    assert (caught.value.type, caught.value.status) == ("invalid_json", 400)


@pytest.mark.parametrize("kind", ["int", "varint", "decimal", "double", "timestamp", "json"])
def test_an_integer_of_too_many_digits_is_left_for_the_type_to_refuse(kind: str) -> None:
    [number] = parse_json(b"[-%b]" % (b"9" * 5_000))

    with pytest.raises(ValueError, match=r"number|digits"):
        type_of(kind).accept(number)


def test_a_hundred_levels_are_taken_and_a_hundred_and_one_are_not() -> None:
    parse_json(b"[" * 100 + b"]" * 100)
    parse_json(b"[" + b"[]," * 500 + b"[]]")

    for depth in (101, 5_000, 200_000):
        with pytest.raises(InvalidTableJson):
            parse_json(b"[" * depth + b"]" * depth)
        with pytest.raises(InvalidTableJson):
            parse_json(b'{"a":' * depth + b"1" + b"}" * depth)


def test_a_lone_surrogate_is_left_for_the_type_to_refuse() -> None:
    assert parse_json(b'{"a": "\\ud800"}') == {"a": "\ud800"}


def test_a_body_of_33_mib_is_too_large() -> None:
    with pytest.raises(RowTooLarge):
        parse_json(b" " * (33 * 1024 * 1024))
