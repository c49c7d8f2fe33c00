"""Pairs that a writer has read or written stay known when its commits are flushed."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine
from holdfast.engine.lmdb import overlay, write_buffers
from holdfast.engine.lmdb.transaction import LmdbReader


@pytest.fixture(params=["interval", "commit"])
def engine(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Engine]:
    """In commit mode, too, the first commit waits already."""
    monkeypatch.setattr(overlay, "COMMITS_BEFORE_LOG", 0)
    engine = open_engine(tmp_path / "store", durability=request.param, checkpoint_seconds=3600)
    yield engine
    engine.close()


def put(engine: Engine, key: bytes, value: bytes) -> None:
    engine.transact(lambda tx: tx.put(key, value))


def test_a_transaction_reads_from_lmdb_only_what_earlier_ones_did_not(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(engine, b"a", b"1")
    put(engine, b"b", b"1")
    for _ in range(2):
        engine.stats()  # flushes
        engine.transact(lambda tx: tx.get_many([b"a", b"missing"]))
        put(engine, b"b", b"2")
    engine.stats()
    read: list[bytes] = []
    get = LmdbReader.get

    def noted_get(reader: LmdbReader, key: bytes) -> bytes | None:
        read.append(key)
        return get(reader, key)

    monkeypatch.setattr(LmdbReader, "get", noted_get)

    found = engine.transact(lambda tx: tx.get_many([b"a", b"b", b"missing", b"new"]))

    assert found == [b"1", b"2", None, None]
    assert read == [b"new"]


def test_a_transaction_remembers_the_latest_pairs_over_many_flushes(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_buffers, "MAX_OVERLAY_CACHE_PAIRS", 8)
    monkeypatch.setattr(write_buffers, "MAX_OVERLAY_CACHED_VALUE_BYTES", 3)
    model: dict[bytes, bytes] = {}
    chance = random.Random(1)
    for number in range(300):
        keys = [b"%d" % chance.randrange(20) for _ in range(chance.choice([1, 3, 12]))]
        written = {key: b"%d" % number * chance.choice([1, 2]) for key in keys}

        found = engine.transact(lambda tx, keys=keys: tx.get_many(keys))  # type: ignore[misc]
        engine.transact(lambda tx, written=written: tx.put_all(written))  # type: ignore[misc]

        assert found == [model.get(key) for key in keys]
        model |= written
        if number % 3 == 0:
            engine.transact(lambda tx, key=keys[0]: tx.delete(key))  # type: ignore[misc]
            model.pop(keys[0])
        if number % 2:
            engine.stats()  # flushes
