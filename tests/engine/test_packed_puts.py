"""Pairs put together fill LMDB's pages."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from holdfast.engine.lmdb.packed_puts import put_packed

PAGE_BYTES = 4080
Pairs = dict[bytes, bytes]


@pytest.fixture
def env(tmp_path: Path) -> Iterator[Any]:
    with lmdb.open(str(tmp_path), map_size=1 << 28, sync=False) as env:
        yield env


def put(env: Any, pairs: Pairs) -> None:
    tree = env.open_db(None)
    with env.begin(write=True) as txn, txn.cursor() as cursor:
        put_packed(cursor, sorted(pairs.items()), lambda: int(txn.stat(tree)["leaf_pages"]))


def stored(env: Any) -> Pairs:
    with env.begin() as txn:
        return dict(txn.cursor())


def filled(env: Any) -> float:
    """Returns which part of the leaf pages is in use."""
    with env.begin() as txn:
        used = sum(len(key) + len(value) + 10 for key, value in txn.cursor())
        return used / (PAGE_BYTES * int(txn.stat()["leaf_pages"]))


def run(begin: bytes, count: int, size: int = 20) -> Pairs:
    return {begin + b"%06d" % number: bytes(size) for number in range(count)}


@pytest.mark.parametrize("seed", range(20))
def test_every_pair_is_there_afterwards_with_its_newest_value(env: Any, seed: int) -> None:
    chance = random.Random(seed)
    expected: Pairs = {}

    for _ in range(20):
        pairs: Pairs = {}
        for _ in range(chance.randrange(4)):
            begin = b"%04d" % chance.randrange(50)
            sizes = chance.choice([(0, 30), (0, 900), (900, 5000)])
            for number in range(chance.choice([1, 40, 200])):
                key = begin + b"%06d" % (chance.randrange(1000) if number % 7 else number)
                pairs[key] = bytes([chance.randrange(256)]) * chance.randint(*sizes)
        put(env, pairs)
        expected |= pairs

        assert stored(env) == expected


def test_runs_of_keys_between_others_fill_their_pages(env: Any) -> None:
    put(env, run(b"", 5_000))
    chance = random.Random(1)

    for place in chance.sample(range(5_000), 20):
        put(env, run(b"%06d-" % place, 1_000))

    assert filled(env) > 0.85  # LMDB alone fills 0.52


def test_pages_that_are_half_empty_are_filled_as_well(env: Any) -> None:
    chance = random.Random(2)
    with env.begin(write=True) as txn:
        for key in chance.sample(range(100_000), 5_000):
            txn.put(b"%06d" % key, bytes(20))

    for place in chance.sample(range(100_000), 20):
        put(env, run(b"%06d-" % place, 1_000))

    assert filled(env) > 0.75


@pytest.mark.parametrize("size", [1_500, 10_000])
def test_long_values_may_be_anywhere_around(env: Any, size: int) -> None:
    long, short = run(b"a", 100, size), run(b"a000050-", 100)

    put(env, long)
    put(env, short)
    put(env, run(b"a000050-000050-", 40, size))

    assert stored(env) == long | short | run(b"a000050-000050-", 40, size)
