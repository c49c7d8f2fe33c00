"""The bytes of indexed values sort as the values do."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.entities.order import Instant, entry_part
from holdfast.entities.text import normalise
from holdfast.keys import unpack

ASCENDING: list[Any] = [
    None,
    False,
    True,
    math.nan,
    -math.inf,
    -(2**63),
    -1.5,
    -1,
    -1e-300,
    0,
    1e-300,
    1,
    3,
    3.5,
    2**53,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    1e300,
    math.inf,
    Instant(-(2**62)),
    datetime(1969, 12, 31, tzinfo=UTC),
    datetime(2020, 1, 1, tzinfo=UTC),
    Instant(2**62),
    "",
    "a",
    "A\0",
    "ab",
    "b",
    "z",
    "é z",
    b"",
    b"\0",
    b"a",
    b"\xff",
]


def test_families_and_values_ascend() -> None:
    ordered = [entry_part(value) for value in ASCENDING]

    # "é z" is "e z" when compared.
    ordered.remove(entry_part("é z"))
    assert ordered == sorted(ordered)
    assert len(set(ordered)) == len(ordered)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (3, 3.0),
        (0.0, -0.0),
        (2**53, float(2**53)),
        (math.nan, -math.nan),
        ("JÖHN", "john"),
        (None, ["a list"]),
        (None, {"a": "map"}),
    ],
)
def test_equal_values_have_equal_bytes(one: Any, other: Any) -> None:
    assert entry_part(one) == entry_part(other)


def test_long_texts_that_begin_alike_stay_distinct_and_before_later_ones() -> None:
    long, longer = "a" * 900 + "b", "a" * 900 + "c"

    assert entry_part(long) != entry_part(longer)
    assert entry_part("a" * 256) < entry_part(long) < entry_part("b")
    assert len(entry_part(long)) < 400


def test_long_bytes_stay_distinct() -> None:
    assert entry_part(b"a" * 900 + b"b") != entry_part(b"a" * 900 + b"c")


def test_an_entry_can_be_read_by_people() -> None:
    assert unpack(entry_part("Ann") + entry_part(5)) == (4, "ann", None, 2, 5.0, 0)


numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)


@settings(max_examples=200)
@given(numbers, numbers)
def test_numbers_sort_by_exact_value(one: float, other: float) -> None:
    assert (entry_part(one) < entry_part(other)) == (one < other)
    assert (entry_part(one) == entry_part(other)) == (one == other)


@settings(max_examples=200)
@given(st.text(max_size=20), st.text(max_size=20))
def test_texts_sort_by_the_bytes_of_their_normal_forms(one: str, other: str) -> None:
    before, behind = normalise(one).encode(), normalise(other).encode()

    assert (entry_part(one) < entry_part(other)) == (before < behind)
    assert (entry_part(one) == entry_part(other)) == (before == behind)


@settings(max_examples=200)
@given(st.binary(max_size=20), st.binary(max_size=20), st.text(max_size=3))
def test_no_value_begins_another(one: bytes, other: bytes, text: str) -> None:
    parts = {entry_part(one), entry_part(other), entry_part(text)}

    assert not any(a != b and a.startswith(b) for a in parts for b in parts)
