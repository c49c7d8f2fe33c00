"""What does the engine's contract cost on top of raw py-lmdb, and what does group commit bring?

Run: python -m benchmarks.engine [--quick]
"""

import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb

from benchmarks.rounds import Contender, reach, report, run_benchmark, seconds_each
from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Transaction

KEYS = 100_000
VALUE = b"v" * 100
PUTS = 4  # in one transaction
GROUP = 50  # transactions of one transact_many
THREADS = 16
HOT_KEYS = 100  # those that whole transactions write to

_keys = [random.Random(number).randbytes(16) for number in range(KEYS)]
_hot_keys = sorted(_keys)[:HOT_KEYS]


def main(quick: bool) -> None:
    rounds = 5 if quick else 15
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as folder:
        path = Path(folder)
        raw = open_raw(path / "raw", sync=True)
        raw_unsynced = open_raw(path / "raw-unsynced", sync=False)
        commit = open_engine(path / "commit", durability="commit")
        interval = open_engine(path / "interval", durability="interval")
        fill_raw(raw)
        fill_raw(raw_unsynced)
        for engine in (commit, interval):
            engine.transact(fill)
        single = run_single(raw_unsynced, interval, rounds)
        durable = run_commits(raw, raw_unsynced, commit, interval, rounds)
        print("\nReach")
        reach("get vs raw", single["get: holdfast"] / single["get: raw"], 1.6, at_most=True)
        reach("put vs raw", single["put: holdfast"] / single["put: raw"], 1.6, at_most=True)
        reach(
            f"{THREADS} threads vs one, durable",
            durable["transact, commit"] / durable[f"transact, commit, {THREADS} threads"],
            6,
            at_most=False,
            reason="a sync is short here, so threads gain little by sharing it; "
            "their Python runs in turn",
        )
        reach(
            "transact_many vs raw puts with one fsync",
            durable["transact_many, commit, each"] / durable["raw: the same in one commit, each"],
            1.7,
            at_most=True,
        )
        put_microseconds = single["put: raw"] * 1e6
        reach(
            f"µs of a transaction in interval mode, scaled to a raw put of 2 µs "
            f"(here {put_microseconds:.2f})",
            durable["transact, interval"] * 1e6 * 2 / put_microseconds,
            60,
            at_most=True,
        )
        commit.close()
        interval.close()


def open_raw(path: Path, *, sync: bool) -> Any:
    path.mkdir()
    return lmdb.open(str(path), map_size=2**34, max_dbs=2, sync=sync, meminit=False)


def fill_raw(env: Any) -> None:
    data = env.open_db(b"data")
    with env.begin(db=data, write=True) as txn:
        for key in _keys:
            txn.put(key, VALUE)


def fill(tx: Transaction) -> None:
    for key in _keys:
        tx.put(key, VALUE)


def run_single(raw: Any, engine: Engine, rounds: int) -> dict[str, float]:
    """Measures single operations inside a transaction."""
    data = raw.open_db(b"data")
    sample = random.Random(1).sample(_keys, 5_000)
    begin, end = sorted(_keys)[1_000], sorted(_keys)[6_000]

    def raw_get() -> int:
        with raw.begin(db=data) as txn:
            get = txn.get
            for key in sample:
                get(key)
        return len(sample)

    def get() -> int:
        with engine.view() as view:
            get = view.get
            for key in sample:
                get(key)
        return len(sample)

    def raw_put() -> int:
        txn = raw.begin(db=data, write=True)
        put = txn.put
        for key in sample:
            put(key, VALUE)
        txn.commit()
        return len(sample)

    def put() -> int:
        def work(tx: Transaction) -> None:
            put = tx.put
            for key in sample:
                put(key, VALUE)

        engine.transact(work)
        return len(sample)

    def raw_scan() -> int:
        with raw.begin(db=data) as txn, txn.cursor() as cursor:
            cursor.set_range(begin)
            for key, _ in cursor:
                if key >= end:
                    break
        return 5_000

    def scan() -> int:
        with engine.view() as view:
            for _ in view.scan(begin, end):
                pass
        return 5_000

    def raw_view() -> int:
        for key in sample[:1_000]:
            with raw.begin(db=data) as txn:
                txn.get(key)
        return 1_000

    def view() -> int:
        for key in sample[:1_000]:
            with engine.view() as view:
                view.get(key)
        return 1_000

    pairs: dict[str, tuple[Contender, Contender]] = {
        "get": (raw_get, get),
        "put": (raw_put, put),
        "scan, each pair": (raw_scan, scan),
        "a view with one get": (raw_view, view),
    }
    figures: dict[str, float] = {}
    for name, (theirs, ours) in pairs.items():
        both = seconds_each({f"{name}: raw": theirs, f"{name}: holdfast": ours}, rounds=rounds)
        report(name, both, baseline=f"{name}: raw")
        figures |= both
    return figures


def run_commits(
    raw: Any, raw_unsynced: Any, commit: Engine, interval: Engine, rounds: int
) -> dict[str, float]:
    """Measures whole transactions of PUTS puts; a figure is the cost of one transaction."""
    count = 100
    contenders: dict[str, Contender] = {
        "raw, synced": raw_commits(raw, count),
        "raw, not synced": raw_commits(raw_unsynced, count),
        "transact, commit": commits(commit, count),
        "transact, interval": commits(interval, count),
        f"transact, commit, {THREADS} threads": threaded(commit, count),
        f"transact, interval, {THREADS} threads": threaded(interval, count),
        "raw: the same in one commit, each": raw_group(raw),
        "transact_many, commit, each": group(commit),
        "transact_many, interval, each": group(interval),
    }
    figures = seconds_each(contenders, rounds=rounds)
    report(
        f"a transaction of {PUTS} puts",
        figures,
        baseline="raw, synced",
        durability={
            "not synced": "none",
            "interval": "a checkpoint every second",
            "": "fsync before each reply",
        },
    )
    return figures


def random_puts() -> list[bytes]:
    """Returns puts whose keys share few pages, to measure the engine, not the disk's bandwidth."""
    return random.choices(_hot_keys, k=PUTS)


def put_some(tx: Transaction) -> None:
    for key in random_puts():
        tx.put(key, VALUE)


def raw_commits(env: Any, count: int) -> Contender:
    data = env.open_db(b"data")

    def run() -> int:
        for _ in range(count):
            with env.begin(db=data, write=True) as txn:
                for key in random_puts():
                    txn.put(key, VALUE)
        return count

    return run


def commits(engine: Engine, count: int) -> Contender:
    def run() -> int:
        for _ in range(count):
            engine.transact(put_some)
        return count

    return run


def threaded(engine: Engine, count: int) -> Contender:
    one = commits(engine, count)

    def run() -> int:
        threads = [threading.Thread(target=one) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return count * THREADS

    return run


def raw_group(env: Any) -> Contender:
    data = env.open_db(b"data")

    def run() -> int:
        for _ in range(4):
            with env.begin(db=data, write=True) as txn:
                for _ in range(GROUP):
                    for key in random_puts():
                        txn.put(key, VALUE)
        return 4 * GROUP

    return run


def group(engine: Engine) -> Contender:
    works: list[Callable[[Transaction], None]] = [put_some] * GROUP

    def run() -> int:
        for _ in range(4):
            engine.transact_many(works)
        return 4 * GROUP

    return run


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}, LMDB {lmdb.version()}, {os.cpu_count()} cores")
    run_benchmark(main, file=__file__, doc=__doc__)
