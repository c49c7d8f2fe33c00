"""The bytes that tables store. What is stored must be readable for ever, so they are pinned."""

from typing import Any

import pytest

from holdfast.keys import describe, prefix_range
from holdfast.store import Store
from holdfast.tables import row_codec
from holdfast.tables.layout import hash_key, keys_of
from tests.tables.schemas import example, hash_on, version


def pairs(store: Store, kind: str) -> list[tuple[str, str]]:
    with store._runner.view() as reader:
        prefix = getattr(keys_of(reader.space), kind)
        found = reader.scan(*prefix_range(prefix))
        return [(key[len(reader.space) :].hex(), value.hex()) for key, value in found]


@pytest.fixture
def row(store: Store) -> Store:
    store.tables.create(example(secondaryIndexes={"by_value": [hash_on("value")]}))
    store.tables.put(
        "example", {"name": "Tom", "property": "a\0", "tid": version(1), "value": "x", "length": -1}
    )
    return store


def test_a_row_and_its_entry_lie_where_they_always_lay(row: Store) -> None:
    tid = version(1).bytes.hex()
    flipped = "a3ee4de22debe6297f7ffffeffffffffff"  # time, clock sequence, node: complemented

    assert pairs(row, "rows") == [
        ("212221" "54546f6d00" "546101" "0100" + flipped,
         "00" "95" "a3546f6d" "a26100" "c410" + tid + "ff" "a178"),
    ]  # fmt: skip
    assert pairs(row, "entries") == [
        ("212421" "20" "547800" "abab9092ff" "ab9efefeff",
         "00" "94" "a178" "a3546f6d" "a26100" "c410" + tid),
    ]  # fmt: skip


def test_keys_can_be_read_by_people(row: Store) -> None:
    [(key, _)] = pairs(row, "rows")

    assert describe(bytes.fromhex(key)).startswith("(1, 2, 1, 'Tom', 'a\\x00', desc(")


def test_a_long_hash_key_is_a_digest() -> None:
    assert hash_key(b"x" * 128) == b"x" * 128
    assert hash_key(b"x" * 129).hex().startswith("0150")
    assert len(hash_key(b"x" * 129)) < 50
    assert hash_key(b"x" * 129) != hash_key(b"y" * 129)


@pytest.mark.parametrize(
    ("numbers", "head"),
    [
        ({}, "00"),
        ({"expires_ms": 5}, "100000000000000005"),
        ({"generation": 2}, "2000000002"),
        ({"expires_ms": 5, "generation": 2}, "30000000000000000500000002"),
        ({"uncertain": True}, "80"),
        ({"expires_ms": 5, "uncertain": True}, "900000000000000005"),
    ],
)
def test_a_stored_value_begins_with_its_header(numbers: dict[str, Any], head: str) -> None:
    value = row_codec.encode(b"body", **numbers)

    assert value.value == bytes.fromhex(head) + b"body"
    assert row_codec.decode(value.value) == value
    assert row_codec.decode(value.value).body == b"body"


def test_the_newest_row_of_a_record_keeps_the_list_of_its_fallbacks() -> None:
    row = row_codec.encode(b"body", expires_ms=5, generation=2).with_fallbacks(b"list")

    assert row.value.hex() == "70000000000000000500000002" + "00000004" + b"listbody".hex()
    assert row_codec.decode(row.value) == row
    assert row.with_generation(3).fallbacks == b"list"
    assert (
        row.with_fallbacks(b"").value == row_codec.encode(b"body", expires_ms=5, generation=2).value
    )
