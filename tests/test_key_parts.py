"""The parts of a key: what was decided where a type left it open, and what is refused."""

import copy
import enum
import math
import pickle
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from typing import Any, NamedTuple
from uuid import UUID, uuid1

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import UnsupportedPart
from holdfast.keys import TimeUUID, desc, pack, unpack
from holdfast.keys.encoding import pack_str
from holdfast.limits import MAX_TUPLE_DEPTH


@given(number=st.decimals(allow_nan=False, allow_infinity=False), zeros=st.integers(0, 5))
def test_decimals_that_are_equal_have_one_key(number: Decimal, zeros: int) -> None:
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    longer = Decimal((sign, digits + (0,) * zeros, exponent - zeros))

    assert pack(longer) == pack(number)
    assert unpack(pack(longer)) == (number,)


def test_a_decimal_keeps_every_digit_whatever_the_context() -> None:
    number = Decimal("1." + "0123456789" * 100)

    with localcontext() as context:
        context.prec = 3
        [back] = unpack(pack(number))

    assert str(back) == str(number)


@pytest.mark.parametrize("number", ["9.99E+999999999999999999", "-1E-1999999999999999997"])
def test_a_decimal_keeps_the_largest_exponents(number: str) -> None:
    assert unpack(pack(Decimal(number))) == (Decimal(number),)


def test_zero_has_no_sign() -> None:
    assert pack(-0.0, Decimal("-0.0")) == pack(0.0, Decimal(0))
    assert math.copysign(1, unpack(pack(-0.0))[0]) == 1


def test_numbers_of_different_types_sort_by_type() -> None:
    assert pack(True) < pack(10**30) < pack(1.0) < pack(Decimal(-1))


def test_a_datetime_is_a_moment_and_comes_back_in_utc() -> None:
    noon_in_tokyo = datetime(2026, 11, 15, 12, tzinfo=timezone(timedelta(hours=9)))

    [moment] = unpack(pack(noon_in_tokyo))

    assert moment == noon_in_tokyo
    assert moment.isoformat() == "2026-11-15T03:00:00+00:00"


def test_the_first_and_the_last_moment_fit() -> None:
    for moment in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert unpack(pack(moment)) == (moment,)


def test_time_uuids_sort_by_timestamp_then_by_clock_and_node() -> None:
    early_other_node = TimeUUID("ffffffff-ffff-1000-8000-000000000001")
    late = TimeUUID("00000000-0000-1001-8000-000000000000")
    early = TimeUUID("ffffffff-ffff-1000-8000-000000000000")

    assert early < early_other_node < late
    assert late > early_other_node >= early <= early
    assert sorted([late, early_other_node, early], key=pack) == [early, early_other_node, late]


def test_a_time_uuid_is_a_uuid_in_all_but_order() -> None:
    made = uuid1()
    [uuid] = unpack(pack(TimeUUID(made)))

    assert isinstance(uuid, TimeUUID)
    assert (uuid, hash(uuid), uuid.time, str(uuid)) == (made, hash(made), made.time, str(made))
    assert pickle.loads(pickle.dumps(uuid)) == copy.deepcopy(uuid) == uuid
    assert type(pickle.loads(pickle.dumps(uuid))) is TimeUUID


def test_a_uuid_from_a_key_is_as_good_as_a_new_one() -> None:
    made = uuid1()
    [uuid] = unpack(pack(UUID(int=made.int)))

    assert (repr(uuid), uuid.is_safe) == (repr(made), UUID(int=made.int).is_safe)
    assert pickle.loads(pickle.dumps(uuid)) == made


class Colour(enum.IntEnum):
    RED = 2_000


class Word(str, enum.Enum):  # noqa: UP042 - as written before StrEnum, with a format of its own
    HELLO = "hello"


class Point(NamedTuple):
    x: int
    y: int


class Blob(bytes):
    pass


def test_a_subclass_is_packed_as_its_base() -> None:
    parts = unpack(pack(Colour.RED, Word.HELLO, Point(1, 2), Blob(b"\0")))

    assert parts == (2_000, "hello", (1, 2), b"\0")
    assert [type(part) for part in parts] == [int, str, tuple, bytes]


def test_the_fast_path_for_texts_packs_the_value_of_an_enumeration_too() -> None:
    assert pack_str(Word.HELLO) == pack("hello")


def test_tuples_nest_as_deep_as_the_limit() -> None:
    part = nested(MAX_TUPLE_DEPTH)

    assert unpack(pack(part)) == unpack(pack(desc(part))) == (part,)


def test_descending_twice_is_ascending() -> None:
    assert pack(desc(desc("a"))) == pack("a")
    assert unpack(pack(desc((1, desc(2))))) == ((1, 2),)
    assert desc(1) == desc(1) != desc(2)
    assert len({desc(1), desc(1)}) == 1


@pytest.mark.parametrize(("number", "size"), [(0, 1), (23, 1), (-255, 2), (255, 2), (65_535, 3)])
def test_small_ints_take_one_to_three_bytes(number: int, size: int) -> None:
    assert len(pack(number)) == size


def test_an_int_of_any_size_fits() -> None:
    numbers = [sign * 256**size for size in (8, 9, 255, 256, 65_536) for sign in (-1, 1)]

    assert [unpack(pack(number))[0] for number in numbers] == numbers
    assert sorted(numbers) == sorted(numbers, key=pack)


# --- what is refused --------------------------------------------------------------------------


class Unheard:
    def __repr__(self) -> str:
        return "<unheard>"


NAIVE = datetime(2026, 11, 15)
OUTSIDE = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))


def nested(depth: int) -> Any:
    return (nested(depth - 1),) if depth > 1 else ()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Unheard(), "a key can't hold <unheard> of type Unheard. A key part is None, bool, int"),
        ([1], "a key can't hold [1] of type list"),
        (bytearray(b"a"), "of type bytearray"),
        (NAIVE.date(), "of type date"),
        (float("nan"), "NaN has no place in an order"),
        (Decimal("NaN"), "Decimal NaN has no place in an order"),
        (Decimal("sNaN"), "Decimal NaN has no place in an order"),
        ("a\ud800b", r"the str 'a\ud800b' holds a lone surrogate, '\ud800'"),
        (NAIVE, "the datetime 2026-11-15T00:00:00 is naive"),
        (OUTSIDE, "the datetime 0001-01-01T00:00:00+14:00 is outside the years 1-9999 UTC"),
        (nested(MAX_TUPLE_DEPTH + 1), "tuples at most 32 deep"),
        (("a", ("b", {})), "a key can't hold {} of type dict"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_part_that_keys_cannot_hold_is_refused_with_the_reason(part: Any, message: str) -> None:
    with pytest.raises(UnsupportedPart) as plain:
        pack("first", part)
    with pytest.raises(UnsupportedPart) as descending:
        pack("first", desc(part))

    assert message in str(plain.value)
    assert message in str(descending.value)


@pytest.mark.parametrize("uuid", [UUID(int=1), UUID(int=1, version=4), "not a uuid", 7])
def test_a_time_uuid_is_made_from_version_1_only(uuid: Any) -> None:
    with pytest.raises(UnsupportedPart):
        TimeUUID(uuid)
