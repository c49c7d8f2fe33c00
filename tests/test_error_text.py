"""Values in error messages look as the caller wrote them."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from holdfast.error_text import shown
from holdfast.errors import HoldfastError
from holdfast.limits import MAX_SHOWN_VALUE
from holdfast.store import Store
from holdfast.tables.json_parser import parse_json
from tests.tables.schemas import example, simple

PYTHON_ONLY = ("Decimal(", "UUID(", "datetime", "b'", "frozenset", "None", "True")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1.50"), "1.50"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ("it's", '"it\'s"'),
        (b"\xff\x00", '"/wA="'),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime(2026, 11, 16, 12, tzinfo=UTC), "2026-11-16T12:00:00+00:00"),
        ({1, 2}, "[1, 2]"),
        ({"gt": Decimal("1.5"), "in": [None, "a"]}, '{"gt": 1.5, "in": [null, "a"]}'),
    ],
)
def test_a_value_is_shown_as_it_was_written(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_long_value_is_cut() -> None:
    assert len(shown("x" * 100_000)) < MAX_SHOWN_VALUE + 40
    assert shown(10**10_000) == "a value of type int"


@pytest.mark.parametrize(
    "query",
    [b'{"limit": 1.5}', b'{"proj": [1.5]}', b'{"order": {"place": 1.5}}', b'{"index": 1.5}'],
)
def test_the_error_of_a_query_shows_the_number_that_was_sent(store: Store, query: bytes) -> None:
    store.tables.create(simple())

    with pytest.raises(HoldfastError) as caught:
        store.tables.get("simple", **parse_json(query))

    assert "1.5" in str(caught.value)
    assert not any(word in str(caught.value) for word in PYTHON_ONLY)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("version", Decimal("1.5")),
        ("version", True),
        ("attributes", {"key": Decimal("1.5")}),
        ("revisionRetentionPolicy", {"type": "ttl", "ttl": None}),
        ("revisionRetentionPolicy", {"type": "latest", "count": Decimal("1.5"), "grace_ttl": 0}),
        ("options", {"updates": {"pattern": Decimal("1.5")}}),
        ("options", {"default_time_to_live": Decimal("1.5")}),
    ],
)
def test_the_error_of_a_schema_shows_what_was_sent(store: Store, member: str, value: Any) -> None:
    with pytest.raises(HoldfastError) as caught:
        store.tables.create(example(**{member: value}))

    assert not any(word in str(caught.value) for word in PYTHON_ONLY)


def test_other_layers_show_values_alike(store: Store) -> None:
    with pytest.raises(HoldfastError, match=r"not 1\.5"):
        store.metrics.define({"hits": {"sequences": Decimal("1.5")}})


def test_a_ttl_shows_the_number_that_was_sent(store: Store) -> None:
    store.tables.create(simple())

    with pytest.raises(HoldfastError, match=r"1\.5 is not an integer"):
        store.tables.put("simple", {"key": "a", "place": 1, "_ttl": Decimal("1.5")})


@pytest.mark.parametrize("value", [Decimal("1.5"), "many", True, [1]])
def test_the_error_of_a_value_shows_it(store: Store, value: Any) -> None:
    store.tables.create(simple())

    with pytest.raises(HoldfastError) as caught:
        store.tables.put("simple", {"key": "a", "place": value})

    assert f"an integer is expected; it is {shown(value)}" in str(caught.value)
