"""Compression: rows become smaller where it helps, and stay readable."""

import os
import sys
from typing import Any

import pytest

from holdfast.errors import InvalidTableSchema, TableUnavailable
from holdfast.store import Store
from holdfast.tables import compression
from tests.tables.schemas import hash_on, simple

TEXT = "the same words again and again, " * 100


def with_compression(*algorithms: str, **members: Any) -> dict[str, Any]:
    compression = [{"algorithm": name, "block_size": 256} for name in algorithms]
    return simple(options={"compression": compression}, **members)


@pytest.mark.parametrize("algorithm", ["deflate", "lz4", "snappy"])
def test_a_row_is_smaller_and_reads_the_same(store: Store, algorithm: str) -> None:
    store.tables.create(with_compression(algorithm))
    store.tables.put("simple", {"key": "a", "place": 1, "value": TEXT})

    assert store.tables.facts("simple").bytes < 500
    assert store.tables.get("simple").items == [{"key": "a", "place": 1, "value": TEXT}]


def test_little_is_stored_plain() -> None:
    assert compression.compress(compression.DEFLATE, b"x" * 255) == (compression.PLAIN, b"x" * 255)
    noise = bytes(range(256)) * 1
    assert compression.compress(compression.DEFLATE, noise) == (compression.PLAIN, noise)


def test_rows_of_different_codecs_coexist(store: Store) -> None:
    store.tables.create(simple())
    for number, algorithm in enumerate(["deflate", "lz4", "snappy"], 2):
        place = {"key": "a", "place": number}
        store.tables.create(with_compression(algorithm, version=number))
        store.tables.put("simple", {**place, "value": TEXT})
    store.tables.create(simple(version=9))
    store.tables.put("simple", {"key": "a", "place": 9, "value": TEXT})

    assert [item["value"] for item in store.tables.get("simple").items] == [TEXT] * 4
    store.tables.put("simple", {"key": "a", "place": 2, "value": "short"})
    assert store.tables.get("simple", {"key": "a", "place": 2}).items[0]["value"] == "short"


def test_the_first_preference_that_can_be_met_is_taken() -> None:
    options = {
        "compression": [
            {"algorithm": "zstd"},
            {"algorithm": "lz4", "block_size": 100},
            {"algorithm": "deflate", "block_size": 64},
            {"algorithm": "snappy"},
        ]
    }

    code, warnings = compression.choose(options)

    assert code == compression.DEFLATE
    assert ["zstd" in warnings[0], "block_size" in warnings[1]] == [True, True]
    assert (
        compression.choose({}) == compression.choose({"compression": [{}]}) == (compression.LZ4, [])
    )
    assert compression.choose({"compression": []}) == (compression.PLAIN, [])


def test_warnings_come_with_the_answer_to_a_schema(store: Store) -> None:
    result = store.tables.create(with_compression("zstd", "lz4"))

    assert "zstd" in result.warnings[0]
    assert store.tables.schema("simple")["options"]["compression"][0]["algorithm"] == "zstd"


@pytest.mark.parametrize(
    ("compression", "expected"),
    [
        ([{"algorithm": "zstd"}], "'zstd' is not known"),
        ([{"algorithm": "lzf4"}], "did you mean 'lz4'"),
        ([{"algorithm": "lz4", "block_size": 100}], "block_size"),
        ([{"algorithm": []}], "not known"),
        ([{"algorithm": 5}], "not known"),
        ([{"block_size": {}}], "block_size"),
        ([{"block_size": True}], "block_size"),
        ([{"algoritm": "deflate"}], "did you mean 'algorithm'"),
        ([{"algorithm": "lz4", "level": 3}], "unknown member 'level'"),
    ],
)
def test_a_table_whose_codec_is_not_there_is_refused(
    store: Store, compression: list[Any], expected: str
) -> None:
    with pytest.raises(InvalidTableSchema, match=expected) as caught:
        store.tables.create(simple(options={"compression": compression}))

    assert "Invalid option value for compression" in caught.value.message


def test_a_table_that_names_no_codec_compresses_what_is_worth_it(store: Store) -> None:
    store.tables.create(simple())
    store.tables.create(simple(table="plain", options={"compression": []}))
    for table in ("simple", "plain"):
        for place, value in enumerate([TEXT * 9, "short", os.urandom(2_000).hex()]):
            store.tables.put(table, {"key": "a", "place": place, "value": value})

    assert store.tables.facts("simple").bytes < store.tables.facts("plain").bytes - 1_000
    for item in store.tables.get("simple").items:
        assert store.tables.get("simple", {"key": "a", "place": item["place"]}).items == [item]


def test_rows_of_a_table_that_was_stored_plain_stay_readable(store: Store) -> None:
    store.tables.create(simple(options={"compression": []}))
    store.tables.put("simple", {"key": "a", "place": 1, "value": TEXT * 9})
    store.tables.create(simple(version=2))
    store.tables.put("simple", {"key": "a", "place": 2, "value": TEXT * 9})

    assert [item["value"] for item in store.tables.get("simple").items] == [TEXT * 9] * 2


def test_a_missing_codec_is_unavailable_and_not_a_crash(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.tables.create(with_compression("lz4"))
    row = {"key": "a", "place": 1, "value": TEXT}
    store.tables.put("simple", row)
    monkeypatch.setitem(sys.modules, "cramjam", None)
    compression._find.cache_clear()

    try:
        for use in (
            lambda: store.tables.get("simple"),
            lambda: store.tables.put("simple", {**row, "place": 2}),
            lambda: store.tables.create(with_compression("snappy", table="other")),
        ):
            with pytest.raises(TableUnavailable, match="cramjam") as caught:
                use()
            assert (caught.value.type, caught.value.status) == ("unavailable", 503)
    finally:
        compression._find.cache_clear()


def test_keys_and_index_entries_stay_plain(store: Store) -> None:
    schema = with_compression("deflate", secondaryIndexes={"i": [hash_on("value")]})
    store.tables.create(schema)
    store.tables.put("simple", {"key": "a", "place": 1, "value": TEXT})

    assert store.tables.get("simple", {"value": TEXT}, index="i").count == 1
    store.tables.put("simple", {"key": "a", "place": 1, "value": "other"})
    assert store.tables.get("simple", {"value": TEXT}, index="i").count == 0
