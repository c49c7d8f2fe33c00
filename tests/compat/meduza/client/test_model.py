"""Models and columns of the public client, without a server."""

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.meduza import (
    Binary,
    Bool,
    ColumnValueError,
    Float,
    Int,
    Key,
    List,
    Map,
    MeduzaError,
    Model,
    Ordering,
    Set,
    Text,
    Timestamp,
    Uint,
)
from holdfast.meduza.columns import Column
from holdfast.meduza.queries import Filter
from tests.compat.meduza.client.test_session import User

MOMENT = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
NAIVE = MOMENT.replace(tzinfo=None)


def test_an_encoded_object_decodes_to_its_twin() -> None:
    user = User(
        name="user",
        email="user@domain.com",
        groups={"g0", "g1", "g2"},
        fancySuperLongNameWatWat="watwat",
        mapr={"foo": "bar"},
    )

    entity = user.encode()

    assert entity.properties["wat"] == "watwat"
    assert entity.properties["groups"][0] == "__MDZS__"
    assert User.decode(entity).__dict__ == user.__dict__


def test_a_model_knows_its_columns_and_its_table() -> None:
    class Child(User):
        extra = Text()

    assert list(Child.__columns__) == [
        *("id", "name", "email", "registrationTime", "groups", "wat", "mapr", "score", "extra")
    ]
    assert User.__columns__["wat"].modelName == "fancySuperLongNameWatWat"
    assert (User.primary(), User.tableName()) == ("id", "pytest.Users")
    assert isinstance(User.name, Text)
    assert repr(User.all()) == "Filter(id ALL ())"


def test_columns_that_were_never_set_read_as_zeros() -> None:
    class Every(Model):
        text, int, uint, float, bool = Text(), Int(), Uint(), Float(), Bool()
        moment, binary, set, list, map = Timestamp(), Binary(), Set(), List(), Map()

    empty = Every()

    assert (empty.text, empty.int, empty.uint, empty.float, empty.bool) == ("", 0, 0, 0.0, False)
    assert [empty.moment, empty.binary, empty.set, empty.list, empty.map, empty.id] == [None] * 6


def test_a_model_takes_any_keyword_and_makes_defaults() -> None:
    user: Any = User(name="x", odd=5)

    assert (user.odd, user.email, user.score) == (5, "", 0)
    assert isinstance(user.registrationTime, datetime)
    assert "odd" not in user.encode().properties


def test_a_required_column_must_be_set() -> None:
    with pytest.raises(ColumnValueError, match="Required column name not set in Users"):
        User().encode()


@pytest.mark.parametrize(
    ("column", "value", "wire", "back"),
    [
        (Key("x"), "a", "a", "a"),
        (Text("x"), 5, "5", "5"),
        (Int("x"), "7", 7, 7),
        (Uint("x"), 7, 7, 7),
        (Float("x"), 7, 7.0, 7.0),
        (Bool("x"), 1, True, True),
        (Bool("x"), "true", True, True),
        (Bool("x"), "1", True, True),
        (Bool("x"), "yes", False, False),
        (Timestamp("x"), MOMENT, MOMENT, MOMENT),
        (Timestamp("x"), NAIVE, NAIVE, NAIVE),
        (Timestamp("x"), MOMENT.timestamp(), MOMENT, MOMENT),
        (Binary("x"), bytearray(b"a\0"), b"a\0", b"a\0"),
        (Set("x", type=Int()), {1}, ["__MDZS__", 1], {1}),
        (Set("x", type=Int), {1}, ["__MDZS__", 1], {1}),
        (Set("x"), set(), ["__MDZS__"], set()),
        (List("x", type=Text()), [1, 2], ["__MDZL__", "1", "2"], ["1", "2"]),
        (List("x"), (1, "a"), ["__MDZL__", 1, "a"], [1, "a"]),
        (Map("x", type=Float()), {"a": 1}, {"a": 1.0}, {"a": 1.0}),
        (List("x", Text(), []), [1], ["__MDZL__", "1"], ["1"]),
    ],
)
def test_values_go_to_the_wire_and_come_back(
    column: Column, value: Any, wire: Any, back: Any
) -> None:
    assert column.encode(value) == wire
    assert column.decode(wire) == back
    assert (column.encode(None), column.decode(None)) == (None, None)


def test_what_no_column_describes_comes_back_without_marks() -> None:
    wire = {"a": ["__MDZL__", 1, ["__MDZS__", "x"]], "b": {"c": ["__MDZL__"]}}
    plain = {"a": [1, {"x"}], "b": {"c": []}}

    assert Map("x").decode(wire) == plain
    assert List("x").decode(["__MDZL__", wire]) == [plain]
    assert Column("x").decode(wire["a"]) == plain["a"]


def test_a_key_beside_the_id_is_a_column_like_others() -> None:
    class Child(Model):
        parent = Key("parent")

    child = Child(parent="p")

    assert Child.primary() == "id"
    assert child.encode().properties == {"parent": "p"}
    assert Child.decode(child.encode()).parent == "p"


def test_an_unset_timestamp_becomes_its_default() -> None:
    assert isinstance(Timestamp("x", default=Timestamp.now).encode(None), datetime)


@pytest.mark.parametrize(
    ("column", "value", "error"),
    [
        (Text("x", maxLen=2), "abc", ColumnValueError),
        (Text("x", choices=["a"]), "b", ColumnValueError),
        (Set("x", maxLen=1), {1, 2}, ColumnValueError),
        (List("x", choices=[1]), [1, 2], ColumnValueError),
        (Timestamp("x"), "tomorrow", ColumnValueError),
        (Timestamp("x"), 1e20, ColumnValueError),
        (Binary("x"), 5, ColumnValueError),
        (Binary("x"), "text", ColumnValueError),
        (Set("x"), [1], ValueError),
        (List("x"), {1}, ValueError),
        (Map("x"), [1], ValueError),
        (Int("x"), "a", ValueError),
    ],
)
def test_what_a_column_can_not_hold_is_refused(
    column: Column, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        column.encode(value)


def test_a_reply_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(MeduzaError):
        Set("x").decode("text")
    with pytest.raises(MeduzaError):
        Map("x").decode([1])


def test_increments_take_numbers_only() -> None:
    for bad in ("3", True, None):
        with pytest.raises(ValueError, match="Invalid type for increment"):
            _ = User.score + bad
        with pytest.raises(ValueError, match="Invalid type for increment"):
            _ = User.score - bad
    assert (User.score.increment(2).value, (User.score - 2).value) == (2, -2)


def test_filters_join_with_filters_and_collections_on_either_side() -> None:
    a, b, c = (Filter(name, "=", 1) for name in "abc")

    for joined in (a & b & c, [a, b] & c, a & [b, c], (a, b) & c):
        assert [each.property for each in joined] == ["a", "b", "c"]


def test_an_ordering_takes_a_name_or_a_column() -> None:
    assert Ordering.asc(User.fancySuperLongNameWatWat).document() == {"by": "wat", "asc": True}
    assert Ordering.desc("email").document() == {"by": "email", "asc": False}
