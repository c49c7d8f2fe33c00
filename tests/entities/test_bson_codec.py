"""BSON in and out, with the types that Meduza's clients send."""

import struct
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import bson
import pytest
from bson.binary import OLD_BINARY_SUBTYPE, Binary
from bson.datetime_ms import DatetimeMS
from bson.int64 import Int64
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.entities.bson_codec import (
    UnsupportedValue,
    _decode_in_python,
    _document,
    decode,
    encode,
)
from holdfast.errors import BadValue, HoldfastError, Malformed
from holdfast.limits import MAX_BSON_DEPTH


def document(*elements: bytes) -> bytes:
    inner = b"".join(elements)
    return struct.pack("<i", len(inner) + 5) + inner + b"\0"


def test_the_unsigned_type_of_go_is_read_and_written() -> None:
    body = document(b"\x3fn\0" + struct.pack("<Q", 2**64 - 1))

    assert decode(body) == {"n": 2**64 - 1}
    assert encode({"n": 2**64 - 1}) == body
    assert decode(document(b"\x3fn\0" + struct.pack("<Q", 7))) == {"n": 7}


def test_a_text_with_a_question_mark_is_no_unsigned_number() -> None:
    assert decode(bson.encode({"t": "why?"})) == {"t": "why?"}


def test_a_document_that_looks_like_a_reference_stays_a_document() -> None:
    plain = {"m": {"$ref": "a", "$id": "b"}}

    assert decode(bson.encode(plain)) == plain


def test_an_array_keeps_elements_whose_names_are_alike() -> None:
    elements = document(
        *(b"\x02\0" + struct.pack("<i", 2) + letter + b"\0" for letter in (b"x", b"y"))
    )
    body = document(b"\x04a\0" + elements)

    for read in (decode, _decode_in_python):
        assert read(body) == {"a": ["x", "y"]}


def test_old_binaries_come_without_their_second_length() -> None:
    body = bson.encode({"b": Binary(b"xyz", OLD_BINARY_SUBTYPE)})

    for read in (decode, _decode_in_python):
        assert bytes(read(body)["b"]) == b"xyz"
    with pytest.raises(Malformed, match="a binary value has a wrong length inside"):
        decode(body.replace(b"\3\0\0\0xyz", b"\4\0\0\0xyz"))


@pytest.mark.parametrize(
    ("element", "name"),
    [
        (b"\x06n\0", "Undefined"),
        (b"\x0en\0" + struct.pack("<i", 2) + b"x\0", "Symbol"),
        (b"\x07n\0" + bytes(12), "ObjectId"),
        (b"\x0bn\0a\0\0", "Regex"),
        (b"\x13n\0" + bytes(16), "Decimal128"),
        (b"\xffn\0", "MinKey"),
        (b"\x11n\0" + bytes(8), "Timestamp"),
        (b"\x0dn\0" + struct.pack("<i", 2) + b"x\0", "Code"),
    ],
)
def test_other_types_are_named_and_refused(element: bytes, name: str) -> None:
    from holdfast.entities.bson_values import from_wire

    for read in (decode, _decode_in_python):
        with pytest.raises(BadValue, match=f"Type {name} not allowed for entities"):
            from_wire(read(document(element)))


def test_a_field_of_another_type_that_no_one_reads_is_skipped() -> None:
    foreign = b"\x07o\0" + bytes(12) + b"\x0br\0a\0b\0" + b"\x06u\0" + b"\x11t\0" + bytes(8)
    body = document(foreign + b"\x3fn\0" + struct.pack("<Q", 7))

    assert decode(body)["n"] == 7


@pytest.mark.parametrize(
    "body",
    [
        document(b"\x07o\0" + bytes(5) + b"\x3fn\0"),
        document(b"\x0fo\0" + struct.pack("<i", -9)),
        b"",
        b"\x05",
        b"\x05\0\0\0",
        b"\x05\0\0\0\x01",
        b"\x06\0\0\0\0\0",
        b"\x05\0\0\0\0\0",
        b"\x04\0\0\0",
        b"\xff\xff\xff\xff\0",
        document(b"\x02n\0" + struct.pack("<i", 3) + b"\xff\xfe\0"),
        document(b"\x02n\0" + struct.pack("<i", 99) + b"x\0"),
        document(b"\x02n\0" + struct.pack("<i", 0)),
        document(b"\x02n"),
        document(b"\x08n\0\x02"),
        document(b"\x77n\0"),
        document(b"\x05n\0" + struct.pack("<i", -1) + b"\0"),
        document(b"\x03n\0" + struct.pack("<i", 50) + b"\0"),
        document(b"\x10n\0\x01"),
        b"hello world, this is not BSON",
    ],
)
def test_what_is_no_document_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed, match="Malformed message: "):
        decode(body)


@pytest.mark.parametrize("type", [b"\x03", b"\x04"], ids=["documents", "arrays"])
@pytest.mark.parametrize("depth", [MAX_BSON_DEPTH + 1, 5_000, 20_000])
def test_nesting_without_end_is_refused(depth: int, type: bytes) -> None:
    for read in (decode, _decode_in_python):
        with pytest.raises(BadValue, match="nested deeper than 128 lists and maps"):
            read(nested(depth, type))


def test_nesting_up_to_its_limit_is_read() -> None:
    for read in (decode, _decode_in_python):
        value, depth = read(nested(MAX_BSON_DEPTH)), 1
        while value:
            value, depth = value["0"], depth + 1
        assert depth == MAX_BSON_DEPTH


def nested(depth: int, type: bytes = b"\x03") -> bytes:
    """Returns so many documents or arrays, each inside the one before."""
    sizes = [5 + 8 * inner for inner in range(depth)]
    heads = [struct.pack("<i", size) + type + b"0\0" for size in reversed(sizes[1:])]
    return b"".join(heads) + document() + b"\0" * (depth - 1)


def test_moments_beyond_the_calendar_keep_their_milliseconds() -> None:
    for milliseconds in (2**62, -(2**62), 253402300800000):
        body = document(b"\x09n\0" + struct.pack("<q", milliseconds))
        for read in (decode, _decode_in_python):
            assert int(read(body)["n"]) == milliseconds
        assert encode({"n": DatetimeMS(milliseconds)}) == body


values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1).map(Int64)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.datetimes(
        min_value=datetime(1, 1, 2),
        timezones=st.just(UTC),
    ).map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=3),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), values, max_size=3))
def test_the_plain_codec_agrees_with_the_fast_one(content: dict[str, Any]) -> None:
    body = bson.encode(content)

    assert _document(content) == body
    assert _decode_in_python(body) == decode(body) == content


_NAMES = st.sampled_from([b"a\0", b"\0", b"\x06\0", b"\x0e\0"])
_PLAIN_ELEMENTS = st.sampled_from(
    [b"\x06%b", b"\x0e%b\2\0\0\0q\0", b"\x0a%b", b"\x10%b\6\0\0\0", b"\x12%b\6\6\0\0\0\0\0\0"]
)
_ELEMENTS = st.recursive(
    st.tuples(_PLAIN_ELEMENTS, _NAMES).map(lambda pair: pair[0] % pair[1]),
    lambda inner: st.tuples(
        st.sampled_from([b"\x03", b"\x04"]), _NAMES, st.lists(inner, max_size=3)
    ).map(lambda parts: parts[0] + parts[1] + document(*parts[2])),
    max_leaves=8,
)


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    return value.name if isinstance(value, UnsupportedValue) else value


@settings(max_examples=300, deadline=None)
@given(st.lists(_ELEMENTS, max_size=4))
def test_undefined_and_symbols_are_never_read_as_null_and_text(elements: list[bytes]) -> None:
    body = document(*elements)

    assert _shown(decode(body)) == _shown(_decode_in_python(body))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_do_harm(noise: bytes) -> None:
    body = document(noise)
    for read in (decode, _decode_in_python):
        with suppress(HoldfastError):
            assert isinstance(read(body), dict)


@pytest.mark.parametrize("large", [{}, {"large": 2**63}])  # which takes the plain codec
@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, object(), "\ud800"])
def test_what_bson_can_not_hold_is_a_bad_value(value: Any, large: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        encode({**large, "value": value})


def test_the_codec_in_c_is_there() -> None:
    assert bson.has_c()
