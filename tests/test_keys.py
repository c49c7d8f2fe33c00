"""Keys: random tuples sort as their bytes do, and fixed vectors pin the bytes."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast import keys
from holdfast.engine.contract import Engine, Transaction
from holdfast.errors import BadInput
from holdfast.keys import Subspace, TimeUUID, after, desc, describe, pack, prefix_range, unpack
from holdfast.limits import MAX_KEY_BYTES

# The stored format. A line may be added; a line that changes loses every store there is.
VECTORS: list[tuple[keys.Part, str]] = [
    (None, "01"),
    (False, "02"),
    (True, "03"),
    (-(2**64), "17 d6 fe ffffffffffffffff"),
    (-(2**64 - 1), "18 0000000000000000"),
    (-(2**56), "18 feffffffffffffff"),
    (-(2**48), "19 feffffffffffff"),
    (-(2**40), "1a feffffffffff"),
    (-(2**32), "1b feffffffff"),
    (-(2**24), "1c feffffff"),
    (-(2**16), "1d feffff"),
    (-65_535, "1e 0000"),
    (-1_024, "1e fbff"),
    (-1_023, "1e fc00"),
    (-256, "1e feff"),
    (-255, "1f 00"),
    (-1, "1f fe"),
    (0, "20"),
    (1, "21"),
    (23, "37"),
    (24, "38 18"),
    (255, "38 ff"),
    (256, "39 0100"),
    (1_023, "39 03ff"),
    (1_024, "39 0400"),
    (65_535, "39 ffff"),
    (2**16, "3a 010000"),
    (2**24, "3b 01000000"),
    (2**32, "3c 0100000000"),
    (1_700_000_000_000, "3d 018bcfe56800"),
    (2**48, "3e 01000000000000"),
    (2**64 - 1, "3f ffffffffffffffff"),
    (2**64, "40 29 010000000000000000"),
    (2**2048, "40 39 0101 01" + "00" * 256),
    (float("-inf"), "44 000fffffffffffff"),
    (-1.5, "44 4007ffffffffffff"),
    (-5e-324, "44 7ffffffffffffffe"),
    (0.0, "44 8000000000000000"),
    (-0.0, "44 8000000000000000"),
    (1.5, "44 bff8000000000000"),
    (float("inf"), "44 fff0000000000000"),
    (Decimal("-Infinity"), "48"),
    (Decimal("-123.45"), "49 dc f2 dc cc ff"),
    (Decimal("-0.00"), "4a"),
    (Decimal("0.00123"), "4b 1ffd 0d 1f 00"),
    (Decimal("1.00"), "4b 21 0b 00"),
    (Decimal("123.45"), "4b 23 0d 23 33 00"),
    (Decimal("9900"), "4b 24 64 00"),
    (Decimal("Infinity"), "4c"),
    (b"", "50 00"),
    (b"\x00\x01\x02\xff", "50 0101 0102 02 ff 00"),
    ("", "54 00"),
    ("a\x00\x01z", "54 61 0101 0102 7a 00"),
    ("é€😀", "54 c3a9 e282ac f09f9880 00"),
    (UUID(int=1), "58 00000000000000000000000000000001"),
    (TimeUUID("01234567-89ab-1def-8123-456789abcdef"), "5c 1def 89ab 01234567 8123456789abcdef"),
    (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "60 7fffffffffffffff"),
    (datetime(2026, 11, 15, tzinfo=UTC), "60 8006604557a98000"),
    ((), "64 00"),
    (("a", (1, None)), "64 54 61 00 64 21 01 00 00"),
    (desc(None), "fe"),
    (desc(0), "df"),
    (desc("a"), "ab 9e ff"),
    (desc((1, desc(2))), "9b de 22 ff"),
]


@pytest.mark.parametrize(("part", "code"), VECTORS, ids=lambda value: repr(value)[:40])
def test_the_bytes_of_every_kind_of_part_never_change(part: keys.Part, code: str) -> None:
    packed = pack(part)

    assert packed.hex() == code.replace(" ", "")


# --- order and round trip ---------------------------------------------------------------------


def as_time_uuid(uuid: UUID) -> TimeUUID:
    return TimeUUID(UUID(int=uuid.int, version=1))


big_ints = st.integers(0, 20).flatmap(lambda size: st.integers(-(256**size), 256**size))
moments = st.datetimes(
    min_value=datetime(2, 1, 1),
    max_value=datetime(9998, 12, 31),
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m))),
)
LEAVES: list[st.SearchStrategy[Any]] = [
    st.none(),
    st.booleans(),
    st.one_of(st.integers(), st.integers(-1_100, 1_100), big_ints),
    st.floats(allow_nan=False),
    st.one_of(
        st.decimals(allow_nan=False), st.decimals(places=2, allow_nan=False, allow_infinity=False)
    ),
    st.one_of(
        st.binary(max_size=12), st.text("\0\1\2\xff", max_size=6).map(lambda s: s.encode("latin1"))
    ),
    st.one_of(st.text(max_size=12), st.text("\0\1\2a", max_size=6)),
    st.uuids(),
    st.uuids().map(as_time_uuid),
    moments,
]
RANKS = [type(None), bool, int, float, Decimal, bytes, str, UUID, TimeUUID, datetime, tuple]
parts = st.recursive(
    st.one_of(*LEAVES), lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6
)


class Model:
    """A part, ordered by plain Python comparison, and by type where Python compares no further."""

    def __init__(self, part: Any, *, down: bool = False) -> None:
        self.rank = RANKS.index(type(part))
        self.part = tuple(map(Model, part)) if isinstance(part, tuple) else part
        self.down = down

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Model)
        return self.rank == other.rank and bool(self.part == other.part)

    def __lt__(self, other: "Model") -> bool:
        if self == other:
            return False
        if self.rank != other.rank:
            return (self.rank < other.rank) != self.down
        return (self.part < other.part) != self.down


@pytest.mark.parametrize("leaves", LEAVES, ids=[kind.__name__ for kind in RANKS[:-1]])
@given(data=st.data())
@settings(max_examples=60)
def test_parts_of_one_type_sort_as_their_bytes_do(
    leaves: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    one, two = data.draw(leaves), data.draw(leaves)
    model_one, model_two = Model(one), Model(two)

    assert (pack(one) < pack(two)) == (model_one < model_two)
    assert (pack(one) == pack(two)) == (model_one == model_two)
    assert unpack(pack(one)) == (one,)


@given(
    one=st.lists(parts, max_size=3),
    two=st.lists(parts, max_size=3),
    down=st.lists(st.booleans(), min_size=3, max_size=3),
)
@example(one=["a"], two=["a\0b"], down=[True, False, False])
@example(one=["a"], two=["a", 1], down=[True, True, True])
@example(one=[()], two=[(None,)], down=[True, False, False])
@example(one=[-1], two=[-256], down=[False, False, False])
def test_random_tuples_sort_as_their_bytes_do_with_ascending_and_descending_parts(
    one: list[Any], two: list[Any], down: list[bool]
) -> None:
    packed = [
        pack(*[desc(part) if turned else part for part, turned in zip(key, down, strict=False)])
        for key in (one, two)
    ]
    models = [
        [Model(part, down=turned) for part, turned in zip(key, down, strict=False)]
        for key in (one, two)
    ]

    assert (packed[0] < packed[1]) == (models[0] < models[1])
    assert unpack(packed[0]) == tuple(one)


@given(one=st.lists(parts, max_size=3), two=st.lists(parts, max_size=3))
def test_packed_parts_concatenate(one: list[Any], two: list[Any]) -> None:
    assert pack(*one) + pack(*two) == pack(*one, *two)


@given(part=parts)
def test_a_part_comes_back_as_the_type_that_it_was(part: Any) -> None:
    [back] = unpack(pack(part))
    [back_from_desc] = unpack(pack(desc(part)))

    assert type(back) is type(part)
    assert back_from_desc == back == part


@given(one=parts, two=parts)
def test_no_part_is_the_beginning_of_another(one: Any, two: Any) -> None:
    for first, second in ((pack(one), pack(two)), (pack(desc(one)), pack(desc(two)))):
        assert first == second or not second.startswith(first)


@given(
    text=st.text("\0\1ab\xff", max_size=5),
    number=st.one_of(st.integers(), st.integers(-1_100, 1_100)),
    real=st.floats(allow_nan=False),
    uuid=st.uuids(version=1),
)
def test_the_fast_ways_pack_the_same(text: str, number: int, real: float, uuid: UUID) -> None:
    data = text.encode()

    assert keys.pack_str(text) == pack(text)
    assert keys.pack_bytes(data) == pack(data)
    assert keys.pack_int(number) == pack(number)
    assert keys.pack_float(real) == pack(real)
    assert keys.pack_str_desc(text) == pack(desc(text))
    assert keys.pack_bytes_desc(data) == pack(desc(data))
    assert keys.pack_int_desc(number) == pack(desc(number))
    assert keys.pack_float_desc(real) == pack(desc(real))
    assert keys.pack_time_uuid_desc(uuid) == pack(desc(TimeUUID(uuid)))


# --- bytes that pack did not make ---------------------------------------------------------------


@given(data=st.binary(max_size=24))
@settings(max_examples=400)
@example(data=b"\x40" * 2_000)
@example(data=b"\x4b" * 2_000)
@example(data=b"\x49\xb4" * 1_000)
@example(data=b"\x64" * 2_000)
@example(data=b"\x64\x9b" * 1_000)
def test_unpack_of_random_bytes_gives_parts_or_bad_input(data: bytes) -> None:
    assert_whole_or_refused(data)


@given(
    parts=st.lists(st.one_of(parts, parts.map(desc)), min_size=1, max_size=3),
    at=st.integers(0, 1_000),
    byte=st.integers(0, 255),
    cut=st.booleans(),
)
@settings(max_examples=400)
def test_unpack_of_a_damaged_key_gives_other_parts_or_bad_input(
    parts: list[Any], at: int, byte: int, cut: bool
) -> None:
    key = pack(*parts)
    at %= len(key)

    assert_whole_or_refused(key[:at] if cut else key[:at] + bytes((byte,)) + key[at + 1 :])


def assert_whole_or_refused(data: bytes) -> None:
    assert describe(data).startswith("(")
    try:
        unpacked = unpack(data)
    except BadInput:
        return
    repacked = pack(*unpacked)
    assert unpack(repacked) == unpacked
    if not any(byte >= 0x80 for byte in data):  # otherwise a part may have been descending
        assert repacked == data


@pytest.mark.parametrize(
    "key",
    [
        "00",
        "04",
        "ff",
        "38",
        "38 17",  # 23 has a code of its own
        "39 00ff",
        "1e ff00",
        "1f ff",
        "18 00",
        "40 28 ffffffffffffffff",  # 8 bytes have a code of their own
        "40 29 00ffffffffffffffff",
        "40 29 01",
        "40 01",
        "17 d6 ff",
        "44 00",
        "44 7fffffffffffffff",  # -0.0
        "44 fff8000000000000",  # NaN
        "4b 21 00",
        "4b 21 01 0b 00",  # 00 10
        "4b 21 0b 01 00",  # 10 00
        "4b 21 65 00",
        "4b 21 0b",
        "4b 01 0b 00",
        "4b 3f ffffffffffffffff 0b 00",  # an exponent that no Decimal has
        "4b 18 0000000000000000 0b 00",
        "50",
        "50 01 00",
        "50 0103 00",
        "54 ff 00",
        "54 eda080 00",  # a surrogate
        "54 c080 00",
        "58 00",
        "5c 4def 89ab 01234567 8123456789abcdef",  # version 4
        "5c 1def 89ab 01234567 c123456789abcdef",
        "5c 1def",
        "60 00",
        "60 0000000000000000",
        "60 ffffffffffffffff",
        "64",
        "64 21",
        "9b de 00",
    ],
)
def test_what_pack_never_makes_is_refused(key: str) -> None:
    with pytest.raises(BadInput, match="Only what `pack` made can be unpacked"):
        unpack(bytes.fromhex("21" + key))


# --- ranges, subspaces, describe --------------------------------------------------------------


@given(prefix=st.binary(max_size=4), key=st.binary(max_size=6))
@example(prefix=b"", key=b"")
@example(prefix=b"a\xff\xff", key=b"b")
@example(prefix=b"\xff", key=b"\xff\xff")
@example(prefix=b"\xff", key=b"\xff" * MAX_KEY_BYTES)
def test_a_prefix_range_holds_exactly_the_keys_that_begin_with_the_prefix(
    prefix: bytes, key: bytes
) -> None:
    begin, end = prefix_range(prefix)

    assert (begin <= key < end) == key.startswith(prefix)


@pytest.mark.parametrize("prefix", [b"", b"\xff", b"\xfe\xff", b"a"])
@pytest.mark.parametrize("reverse", [False, True])
def test_every_engine_scans_every_prefix_range(
    engine: Engine, prefix: bytes, reverse: bool
) -> None:
    present = sorted([b"a", b"ab", b"\xfe", b"\xfe\xff", b"\xff", b"\xff" * 600, b"\xff\xff"])

    def fill(tx: Transaction) -> None:
        for key in present:
            tx.put(key, b"")

    engine.transact(fill)
    with engine.view() as view:
        found = [key for key, _ in view.scan(*prefix_range(prefix), reverse=reverse)]

    assert found == [key for key in present[:: -1 if reverse else 1] if key.startswith(prefix)]


@given(key=st.binary(max_size=4), other=st.binary(max_size=5))
def test_no_key_is_between_a_key_and_the_one_after(key: bytes, other: bytes) -> None:
    assert key < after(key)
    assert not key < other < after(key)


def test_a_subspace_packs_and_unpacks_below_its_prefix() -> None:
    jobs = Subspace(pack(7)).sub("jobs", desc(1))

    assert jobs.pack("emails", 3) == pack(7, "jobs", desc(1), "emails", 3)
    assert jobs.unpack(jobs.pack("emails", 3)) == ("emails", 3)
    assert jobs.range("emails") == prefix_range(jobs.pack("emails"))
    assert jobs.range() == prefix_range(jobs.prefix)
    assert jobs.pack("emails") in jobs
    assert pack(8) not in jobs
    assert repr(jobs) == "<Subspace (7, 'jobs', desc(1))>"


def test_equal_subspaces_are_one_key_of_a_dict() -> None:
    assert {Subspace(b"a"), Subspace(b"a"), Subspace()} == {Subspace(b""), Subspace(b"a")}
    assert Subspace(b"a") != b"a"


def test_a_subspace_refuses_the_key_of_another() -> None:
    with pytest.raises(BadInput, match="the key 0x28 does not begin with 0x27"):
        Subspace(pack(7)).unpack(pack(8))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"", "()"),
        (pack(7, "jobs", desc(3), None, ("a", 1.5)), "(7, 'jobs', desc(3), None, ('a', 1.5))"),
        (pack("a") + b"\x54bc", "('a', 0x546263)"),
        (pack("a" * 100), "('" + "a" * 78 + "…)"),
        (pack(1 << 20_000), "(0x1" + "0" * 76 + "…)"),
        (pack((1 << 20_000,)), "((a tuple with a huge int))"),
        (
            pack(TimeUUID("01234567-89ab-1def-8123-456789abcdef")),
            "(TimeUUID('01234567-89ab-1def-8123-456789abcdef'))",
        ),
    ],
    ids=str,
)
def test_describe_shows_a_key_to_people(key: bytes, text: str) -> None:
    assert describe(key) == text
