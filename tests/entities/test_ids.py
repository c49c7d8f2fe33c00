"""Ids come from chance or from columns."""

import re
from base64 import b64decode
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.ids import compound_id, random_id, random_ids
from holdfast.entities.messages import Change, Filter, PutEntity
from holdfast.errors import BadKey, BadValue

MOMENT = datetime(2020, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "id"),
    [
        (("John", "Doe"), "john|doe|"),
        (("jack", "black"), "jack|black|"),
        (("Me.Everything", "en"), "me.everything|en|"),
        (("a|b", "c"), r"a\|b|c|"),
        (("a", "b|c"), r"a|b\|c|"),
        (("a\\", "b"), r"a\\|b|"),
        (("", ""), "||"),
        ((5,), "0000000000000005|"),
        ((-5,), "-fffffffffffffffb|"),
        ((-1,), "-ffffffffffffffff|"),
        ((2**40,), "0000010000000000|"),
        ((1.5,), "bff8000000000000|"),
        ((-1.5,), "4007ffffffffffff|"),
        ((0.0,), "8000000000000000|"),
        ((-0.0,), "8000000000000000|"),
        ((MOMENT,), "t0000016f6435cf2e|"),
        ((BEFORE_1970,), "t-ffffffffffffffff|"),
        ((True, b"\x00\xff"), "b1|r00ff|"),
        ((False,), "b0|"),
        ((2**64 - 1,), "ffffffffffffffff|"),
    ],
)
def test_a_compound_id_joins_its_columns(values: tuple[Any, ...], id: str) -> None:
    assert compound_id([("c", None, value) for value in values], hashed=False) == id


@pytest.mark.parametrize(
    ("values", "id"),
    [
        (("John", "Doe"), "8686e4d649bdf8b8"),
        (("jack", "black"), "3e0e8cd37d0e5813"),
        (("u2", "x"), "853367db1fc16fa"),
        (("u9076", "x"), "6679cc51bdddc"),
    ],
)
def test_a_hashed_id_has_no_leading_zeros(values: tuple[str, ...], id: str) -> None:
    assert compound_id([("c", "Text", value) for value in values], hashed=True) == id


def test_numbers_take_the_type_of_their_column() -> None:
    assert compound_id([("c", "Int", 5.0)], hashed=False) == "0000000000000005|"
    assert compound_id([("c", "Float", 1)], hashed=False) == "bff0000000000000|"


def test_floats_beyond_64_bits_in_an_int_column_have_ids_of_their_own() -> None:
    numbers = [sign * 2.0**power for sign in (1, -1) for power in (62, 64, 65, 70, 300)]

    ids = [compound_id([("c", "Int", number)], hashed=False) for number in numbers]
    assert len(set(ids)) == len(ids)
    assert {len(id) for id in ids} <= {17, 18}  # 16 digits, a sign, and the bar


def test_a_number_that_no_double_can_hold_is_refused_as_a_value(entities: StoreEntities) -> None:
    entities.deploy(
        "schema: f\ntables: {T: {columns: {n: {type: Float}}, primary: {columns: [n]}}}"
    )

    with pytest.raises(BadValue, match="beyond 64 bits"):
        entities.put_raw("f.T", [{"n": 10**400}])


def test_a_random_id_is_eleven_characters_of_base64() -> None:
    ids = {random_id() for _ in range(100)}

    assert len(ids) == 100
    assert all(re.fullmatch("[A-Za-z0-9_-]{11}", id) for id in ids)


def test_ids_of_one_call_begin_alike_and_differ() -> None:
    ids = list(random_ids(1_000))

    assert len(set(ids)) == 1_000
    assert len({id[:4] for id in ids}) == 1
    assert all(re.fullmatch("[A-Za-z0-9_-]{11}", id) for id in ids)
    assert next(random_ids(2))[:4] != ids[0][:4]


def test_an_id_that_was_drawn_twice_in_a_call_is_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([b"abc", b"123451234567890", b"12345", b"54321"])
    monkeypatch.setattr("holdfast.entities.ids.random_bytes", lambda count: next(answers))

    ids = list(random_ids(3))

    assert [b64decode(id + "=") for id in ids] == [b"abc12345", b"abc67890", b"abc54321"]


def test_a_given_id_is_kept_as_it_is_and_an_empty_one_is_none(entities: StoreEntities) -> None:
    ids = entities.put_raw("test.Plain", [{"id": "Jö::hn \0\1"}, {"id": ""}, {"id": None}])

    assert ids[0] == "Jö::hn \0\1"
    assert [len(id) for id in ids[1:]] == [11, 11]
    assert [entity.id for entity in entities.get_raw("test.Plain", ids)] == ids


def test_a_sent_id_is_ignored_under_a_compound_primary(entities: StoreEntities) -> None:
    sent = PutEntity({"name": "John", "lastName": "Doe"}, id="mine")

    assert entities.put_raw("test.Keyed", [sent]) == ["john|doe|"]
    assert entities.put_raw("test.Hashed", [sent]) == ["8686e4d649bdf8b8"]


@pytest.mark.parametrize("properties", [{"name": "John"}, {"name": "John", "lastName": None}])
def test_a_missing_key_column_refuses_the_whole_put(
    entities: StoreEntities, properties: dict[str, Any]
) -> None:
    good = {"name": "Jack", "lastName": "Black"}

    with pytest.raises(BadKey, match="Cannot index entity with missing/nil value for lastName"):
        entities.put_raw("test.Keyed", [good, properties])

    assert entities.count_raw("test.Keyed") == 0


def test_a_container_in_a_key_column_is_refused(entities: StoreEntities) -> None:
    with pytest.raises(BadKey):
        entities.put_raw("test.Keyed", [{"name": ["a"], "lastName": "b"}])


def test_ids_up_to_1024_bytes_are_kept_apart_and_longer_ones_refused(
    entities: StoreEntities,
) -> None:
    long = ["x" * 1000 + str(n) for n in range(3)]

    entities.put_raw("test.Users", [{"id": id, "age": n} for n, id in enumerate(long)])

    assert [e.properties["age"] for e in entities.get_raw("test.Users", long)] == [0, 1, 2]
    assert [e.id for e in entities.select_raw("test.Users", [Filter("age", "=", [1])])] == [long[1]]
    for too_long in ("ü" * 513, "\N{GRINNING FACE}" * 257):
        with pytest.raises(BadKey, match="at most 1024 fit"):
            entities.put_raw("test.Users", [{"id": too_long}])


def test_an_id_that_is_no_text_is_refused(entities: StoreEntities) -> None:
    with pytest.raises(BadKey, match="an id must be text"):
        entities.get_raw("test.Plain", [5])  # type: ignore[list-item]  # that is the point
    with pytest.raises(BadKey, match="an id must be text"):
        entities.put_raw("test.Plain", [{"id": 5}])


class Colour(str, Enum):  # noqa: UP042  # the str() of this kind is "Colour.RED"
    """A text with a name."""

    RED = "red"


def test_an_enumeration_is_stored_as_its_text(entities: StoreEntities) -> None:
    assert entities.put_raw("test.Users", [{"id": Colour.RED, "name": Colour.RED}]) == ["red"]

    [found] = entities.get_raw("test.Users", [Colour.RED])
    assert (found.id, found.properties) == ("red", {"name": "red"})
    assert [e.id for e in entities.select_raw("test.Users", [Filter("id", "=", [Colour.RED])])] == [
        "red"
    ]


def test_an_entity_keeps_its_id_when_its_key_columns_change(entities: StoreEntities) -> None:
    [id] = entities.put_raw("test.Keyed", [{"name": "John", "lastName": "Doe", "score": 1}])

    entities.update_raw("test.Keyed", [Filter("id", "=", [id])], [Change("SET", "name", "Jim")])

    def by(name: str) -> list[Filter]:
        return [Filter("name", "=", [name]), Filter("lastName", "=", ["Doe"])]

    assert entities.get_raw("test.Keyed", [id])[0].properties["name"] == "Jim"
    assert entities.select_raw("test.Keyed", by("John")).total == 0
    assert entities.select_raw("test.Keyed", by("Jim")).total == 0
    assert entities.select_raw("test.Keyed", [Filter("score", "=", [1])]).total == 1
    assert entities.put_raw("test.Keyed", [{"name": "Jim", "lastName": "Doe"}]) == ["jim|doe|"]
    assert entities.count_raw("test.Keyed") == 2
