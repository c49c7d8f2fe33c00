"""How do tables compare with hand-written SQL on sqlite3, and with RESTBase's own SQLite module?

Run: python -m benchmarks.tables [--quick]

sqlite3 (WAL, synchronous FULL) is measured twice: with bare tuples, to which the targets refer, and
with the same dicts with UUIDs that a table returns. The module from npm runs in a Node process of
its own and is timed there; it has neither batches nor (since its version 1) secondary indexes, so a
batch there is 100 puts at once. It is installed into a temporary folder; HOLDFAST_BENCH_RESTBASE
names another folder that has it.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import lmdb

import holdfast
from benchmarks.rounds import Contender, reach, report, run_benchmark
from holdfast.store import Store
from holdfast.tables.versions import version_at

ROWS = 10_000
MANY_ROWS = 1_000_000
BATCH = 100
READS = 100  # of one contender in one round

PLAIN = {
    "table": "example",
    "attributes": {
        "name": "string", "property": "string", "tid": "timeuuid", "length": "int",
        "value": "string",
    },
    "index": [
        {"type": "hash", "attribute": "name"},
        {"type": "range", "attribute": "property", "order": "asc"},
        {"type": "range", "attribute": "tid", "order": "desc"},
    ],
}  # fmt: skip
INDEXED = {
    **PLAIN,
    "table": "indexed",
    "secondaryIndexes": {"by_value": [{"type": "hash", "attribute": "value"},
                                      {"type": "proj", "attribute": "length"}]},
}  # fmt: skip
REASON = "sqlite3 does it in C; here some 700 bytecodes decode the row and check its expiry"
NAMES = ("name", "property", "tid", "length", "value")
Make = Callable[[tuple[Any, ...]], Any] | None  # makes the result of a row; None: the bare tuple
SELECT = f"select {', '.join(NAMES)} from"


def main(quick: bool) -> None:
    rounds = 15 if quick else 40
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as folder:
        path = Path(folder)
        small = measure(path / "small", ROWS, rounds)
        restbase, reason = measure_restbase(path, 300 if quick else 1_500, quick)
        large = {} if quick else measure(path / "large", MANY_ROWS, rounds)
        print_reach(small, restbase, reason, large)


def measure(path: Path, rows: int, rounds: int) -> dict[str, float]:
    """Returns the seconds of each line, for holdfast and sqlite3, in a store of `rows` rows."""
    path.mkdir()
    with holdfast.open(path / "holdfast") as store, lmdb.open(str(path / "raw")) as raw:
        db = open_sqlite(path / "sqlite.db")
        fill(store, db, rows)
        figures: dict[str, float] = {}
        for line, contenders in lines(store, db, raw, rows).items():
            found = least_seconds_each(contenders, rounds=rounds)
            baseline = "sqlite3" if "sqlite3" in found else "holdfast"
            report(
                f"{line}, {rows:,} rows",
                found,
                baseline=baseline,
                durability="fsync before each reply",
            )
            figures |= {f"{line}: {name}": seconds for name, seconds in found.items()}
        db.close()
    return figures


def lines(
    store: Store, db: sqlite3.Connection, raw: Any, rows: int
) -> dict[str, dict[str, Contender]]:
    fresh = iter(range(rows, 10**9))
    return {
        "put": {
            "holdfast": repeat(5, lambda: put(store, next(fresh))),
            "sqlite3": repeat(5, lambda: insert(db, "example", [row(next(fresh))])),
            "raw py-lmdb, one put": repeat(5, lambda: raw_put(raw, next(fresh))),
        },
        "put from 16 threads, each": {
            "holdfast": lambda: put_from_threads(store, fresh),
        },
        "put in batches of 100, each": {
            "holdfast": per_row(lambda: batch(store, "example", fresh)),
            "sqlite3": per_row(lambda: insert(db, "example", take(fresh))),
        },
        "put in batches of 100 with an index, each": {
            "holdfast": per_row(lambda: batch(store, "indexed", fresh)),
            "sqlite3": per_row(lambda: insert(db, "indexed", take(fresh))),
        },
        "latest revision": reads(
            rows, lambda key: latest(store, key), lambda key, make: select_latest(db, key, make)
        ),
        "range of 20 rows": reads(
            rows, lambda key: twenty(store, key), lambda key, make: select_twenty(db, key, make)
        ),
        "by secondary index": reads(
            rows, lambda key: by_value(store, key), lambda key, make: select_by_value(db, key, make)
        ),
    }  # fmt: skip


# --- the rows ------------------------------------------------------------------------------------


def row(number: int) -> dict[str, Any]:
    return {
        "name": f"name{number // 200}",
        "property": f"p{number % 200:04}",
        "tid": version_at(0x1E4_6BA1_0000_0000 + number, 0x93D9_550D_C866_DAC4),
        "length": number & 0xFFFF,
        "value": f"value number {number}",
    }


def take(fresh: Iterator[int]) -> list[dict[str, Any]]:
    return [row(next(fresh)) for _ in range(BATCH)]


def fill(store: Store, db: sqlite3.Connection, rows: int) -> None:
    for schema in (PLAIN, INDEXED):
        store.tables.create(schema)
        table = str(schema["table"])
        for begin in range(0, rows, 1_000):
            portion = [row(number) for number in range(begin, min(rows, begin + 1_000))]
            store.tables.batch(
                [{"op": "put", "table": table, "attributes": each} for each in portion]
            )
            insert(db, table, portion)


# --- holdfast ------------------------------------------------------------------------------------


def put(store: Store, number: int) -> None:
    store.tables.put("example", row(number))


def put_from_threads(store: Store, fresh: Iterator[int]) -> int:
    numbers = [next(fresh) for _ in range(16 * 20)]
    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(lambda number: put(store, number), numbers):
            pass
    return len(numbers)


def batch(store: Store, table: str, fresh: Iterator[int]) -> None:
    rows = take(fresh)
    store.tables.batch([{"op": "put", "table": table, "attributes": each} for each in rows])


def latest(store: Store, key: dict[str, Any]) -> Any:
    attributes = {"name": key["name"], "property": key["property"]}
    return store.tables.get("example", attributes, limit=1).items[0]


def twenty(store: Store, key: dict[str, Any]) -> Any:
    attributes = {"name": key["name"], "property": {"ge": "p0100"}}
    return store.tables.get("example", attributes, limit=20).items


def by_value(store: Store, key: dict[str, Any]) -> Any:
    return store.tables.get("indexed", {"value": key["value"]}, index="by_value").items[0]


# --- sqlite3 -------------------------------------------------------------------------------------


def open_sqlite(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = full")
    for table in ("example", "indexed"):
        db.execute(
            f"create table {table} (name text, property text, tid blob, length integer, value text,"
            " primary key (name, property, tid desc)) without rowid"
        )
    db.execute("create index by_value on indexed (value, length)")
    return db


def insert(db: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    db.execute("begin immediate")
    db.executemany(
        f"insert or replace into {table} values (?, ?, ?, ?, ?)",
        [(r["name"], r["property"], sortable(r["tid"]), r["length"], r["value"]) for r in rows],
    )
    db.execute("commit")


def sortable(tid: UUID) -> bytes:
    raw = tid.bytes
    return raw[6:8] + raw[4:6] + raw[:4] + raw[8:]


def item(found: tuple[Any, ...]) -> dict[str, Any]:
    name, prop, tid, length, value = found
    version = UUID(bytes=tid[4:8] + tid[2:4] + tid[:2] + tid[8:])
    return {"name": name, "property": prop, "tid": version, "length": length, "value": value}


def select_latest(db: sqlite3.Connection, key: dict[str, Any], make: Make) -> Any:
    sql = f"{SELECT} example where name = ? and property = ? order by tid desc limit 1"
    found = db.execute(sql, (key["name"], key["property"])).fetchone()
    return found if make is None else make(found)


def select_twenty(db: sqlite3.Connection, key: dict[str, Any], make: Make) -> Any:
    sql = f"{SELECT} example where name = ? and property >= ? order by property, tid desc limit 20"
    rows = db.execute(sql, (key["name"], "p0100")).fetchall()
    return rows if make is None else [make(found) for found in rows]


def select_by_value(db: sqlite3.Connection, key: dict[str, Any], make: Make) -> Any:
    sql = f"{SELECT} indexed where value = ?"
    rows = db.execute(sql, (key["value"],)).fetchall()
    return rows if make is None else [make(found) for found in rows]


# --- raw, and rounds -----------------------------------------------------------------------------


def raw_put(env: Any, number: int) -> None:
    with env.begin(write=True) as txn:
        txn.put(number.to_bytes(8), b"v" * 60)


def least_seconds_each(contenders: dict[str, Contender], *, rounds: int) -> dict[str, float]:
    """Returns the least of all rounds, because other programs can only add to it."""
    figures = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, contender in contenders.items():
            begin = time.perf_counter()
            count = contender()
            figures[name] = min(figures[name], (time.perf_counter() - begin) / count)
    return figures


def repeat(count: int, work: Callable[[], None]) -> Contender:
    def contender() -> int:
        for _ in range(count):
            work()
        return count

    return contender


def per_row(work: Callable[[], None]) -> Contender:
    def contender() -> int:
        for _ in range(2):
            work()
        return 2 * BATCH

    return contender


def reads(
    rows: int,
    ours: Callable[[dict[str, Any]], Any],
    theirs: Callable[[dict[str, Any], Make], Any],
) -> dict[str, Contender]:
    keys = [row(number * 7919 % rows) for number in range(READS)]

    def contender(read: Callable[[dict[str, Any]], Any]) -> Contender:
        def run() -> int:
            for key in keys:
                read(key)
            return READS

        return run

    return {
        "holdfast": contender(ours),
        "sqlite3": contender(lambda key: theirs(key, None)),
        "sqlite3, made into the same dicts": contender(lambda key: theirs(key, item)),
    }


# --- restbase-mod-table-sqlite -------------------------------------------------------------------


def measure_restbase(path: Path, budget_ms: int, quick: bool) -> tuple[dict[str, float], str]:
    """Returns the seconds of each line, or the reason why there are none."""
    folder, reason = restbase_folder(quick)
    if folder is None:
        return {}, reason
    script = folder / "tables_restbase.js"
    shutil.copy(Path(__file__).with_name("tables_restbase.js"), script)
    command = ["node", str(script), str(path / "restbase.db"), str(ROWS), str(budget_ms)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        return {}, f"it failed: {done.stderr.strip().splitlines()[-1:]}"
    figures = {name: us / 1e6 for name, us in json.loads(done.stdout).items()}
    report("restbase-mod-table-sqlite 1.2.1", figures, baseline="latest")
    return figures, ""


def restbase_folder(quick: bool) -> tuple[Path | None, str]:
    if shutil.which("node") is None or shutil.which("npm") is None:
        return None, "Node is not installed"
    default = Path(tempfile.gettempdir()) / "holdfast-bench-restbase"
    folder = Path(os.environ.get("HOLDFAST_BENCH_RESTBASE", default))
    if (folder / "node_modules" / "restbase-mod-table-sqlite").exists():
        return folder, ""
    if quick:
        return None, "the module is not installed yet: run once without --quick"
    folder.mkdir(parents=True, exist_ok=True)
    package = {
        "name": "bench",
        "version": "1.0.0",
        "dependencies": {"restbase-mod-table-sqlite": "1.2.1"},
        "overrides": {"sqlite3": "5.1.7"},  # what it requires does not build on today's Node
        "allowScripts": {"sqlite3": True},
    }
    (folder / "package.json").write_text(json.dumps(package))
    begin = time.monotonic()
    done = subprocess.run(["npm", "install"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(folder)
        return None, f"npm install failed after {time.monotonic() - begin:.0f} s"
    return folder, ""


# --- reach ---------------------------------------------------------------------------------------

READ_LINES = ("latest revision", "range of 20 rows", "by secondary index")
BATCH_LINE = "put in batches of 100, each"


def print_reach(
    small: dict[str, float], restbase: dict[str, float], reason: str, large: dict[str, float]
) -> None:
    print("\nReach")
    for line in (*READ_LINES, BATCH_LINE):
        ratio = small[f"{line}: sqlite3"] / small[f"{line}: holdfast"]
        reach(f"{line}, as fast as sqlite3", ratio, 0.6, at_most=False, reason=REASON)
    baseline = {
        "put": "put",
        "put from 16 threads, each": "batch",
        BATCH_LINE: "batch",
        READ_LINES[0]: "latest",
        READ_LINES[1]: "range",
    }
    for line, theirs in baseline.items():
        if restbase:
            ratio = restbase[theirs] / small[f"{line}: holdfast"]
            reach(f"{line}, as fast as restbase-mod-table-sqlite", ratio, 5, at_most=False)
    if not restbase:
        print(f"  skipped restbase-mod-table-sqlite: {reason}")
    for line in (*READ_LINES, "put", BATCH_LINE):
        if large:
            ratio = large[f"{line}: holdfast"] / small[f"{line}: holdfast"]
            reach(f"{line}, {MANY_ROWS:,} rows vs {ROWS:,}", ratio, 1.5, at_most=True)


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
