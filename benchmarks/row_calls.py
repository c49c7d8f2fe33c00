"""How do single calls of entities and tables compare with bare sqlite3, in time and bytes?

Run: python -m benchmarks.row_calls [--quick]

sqlite3 returns bare tuples. It runs with a write-ahead log and synchronous = FULL, or NORMAL when
the store is in interval mode. Both have the same columns and the same index. `instructions` counts
the same calls.
"""

import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import holdfast
from benchmarks.rounds import Contender, fact, reach, report, run_benchmark, seconds_each
from benchmarks.tables import PLAIN, row, sortable
from holdfast.entities import Model, column
from holdfast.entities.ids import random_id
from holdfast.entities.messages import Change, Filter
from holdfast.entities.schema import Index, Schema

ENTITIES: Final = 2_000
TABLE_ROWS: Final = 2_000
FIVE: Final = 5  # entities that share name and last name
REASON: Final = (
    "sqlite3 does it in C; here a call has 1,700 bytecodes, half of a write's in the commit"
)
USERS: Final = "bench.Users"
Call = Callable[[], object]
Prepare = Callable[[holdfast.Store], Call]


class User(Model, schema="bench", table="Users", indexes=[Index(columns=("name", "last"))]):
    name: str = column(required=True)
    last: str = column(required=True)
    email: str = column(default="")
    score: int = column(default=0)
    rank: float = column(default=0.0)


def user(number: int) -> dict[str, Any]:
    group = number // FIVE
    return {
        "name": f"Name {group // 10}",
        "last": f"Last {group % 10}",
        "email": f"someone.{number}@example.org",
        "score": number % 1000,
        "rank": number / 7,
    }


def users(opened: holdfast.Store) -> list[str]:
    """Returns the ids of a filled table."""
    opened.entities.deploy(Schema(name="bench", tables=(User.__shape__.table,)))
    ids = opened.entities.put_raw(USERS, [user(number) for number in range(ENTITIES)])
    with opened.view():  # writes waiting commits to LMDB
        return ids


def numbers(most: int) -> Iterator[int]:
    """Returns random numbers, the same ones in every run."""
    source = random.Random(1)
    while True:
        yield source.randrange(most)


# --- entities ---------------------------------------------------------------------------------


def select_five(opened: holdfast.Store) -> Call:
    users(opened)
    chosen, select = numbers(ENTITIES), opened.entities.select_raw

    def call() -> None:
        wanted = user(next(chosen))
        filters = (Filter("name", "=", [wanted["name"]]), Filter("last", "=", [wanted["last"]]))
        assert len(select(USERS, filters, limit=FIVE, count=False).entities) == FIVE

    return call


def select_five_objects(opened: holdfast.Store) -> Call:
    users(opened)
    chosen, select = numbers(ENTITIES), opened.entities.select

    def call() -> None:
        wanted = user(next(chosen))
        named = (User.name == wanted["name"]) & (User.last == wanted["last"])
        assert len(select(User, named, limit=FIVE).items) == FIVE

    return call


def get_entity(opened: holdfast.Store) -> Call:
    ids = users(opened)
    chosen, get = numbers(ENTITIES), opened.entities.get_raw
    return lambda: get(USERS, [ids[next(chosen)]])


def update_entity(opened: holdfast.Store) -> Call:
    ids = users(opened)
    chosen, update = numbers(ENTITIES), opened.entities.update_raw
    return lambda: update(
        USERS, [Filter("id", "=", [ids[next(chosen)]])], [Change("INCR", "score", 1)]
    )


def put_entity(opened: holdfast.Store) -> Call:
    users(opened)
    chosen, put = numbers(ENTITIES), opened.entities.put_raw
    return lambda: put(USERS, [user(next(chosen))])


# --- tables -----------------------------------------------------------------------------------


def rows(opened: holdfast.Store) -> Any:
    """Returns the tables of a store that has one filled."""
    tables = opened.tables
    tables.create(PLAIN)
    puts = [
        {"op": "put", "table": "example", "attributes": row(each)} for each in range(TABLE_ROWS)
    ]
    tables.batch(puts[:1000])
    tables.batch(puts[1000:])
    with opened.view():
        return tables


def range_of_15(opened: holdfast.Store) -> Call:
    get = rows(opened).get
    chosen = numbers(TABLE_ROWS // 200)

    def call() -> None:
        wanted = {"name": f"name{next(chosen)}", "property": {"ge": "p0100"}}
        assert len(get("example", wanted, limit=15).items) == 15

    return call


def latest_row(opened: holdfast.Store) -> Call:
    get = rows(opened).get
    chosen = numbers(TABLE_ROWS)

    def call() -> None:
        wanted = row(next(chosen))
        found = get("example", {"name": wanted["name"], "property": wanted["property"]}, limit=1)
        assert found.count == 1

    return call


# --- the same on sqlite3 ----------------------------------------------------------------------

_USER_COLUMNS: Final = "id, name, last, email, score, rank"
_ROW_COLUMNS: Final = "name, property, tid, length, value"


def database(opened: holdfast.Store) -> sqlite3.Connection:
    engine: Any = opened.engine
    synchronous = "full" if engine.stats()["durable"] else "normal"
    return open_database(Path(engine.path) / "sqlite.db", synchronous)


def open_database(path: Path, synchronous: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute(f"pragma synchronous = {synchronous}")
    return db


def fill_users(db: sqlite3.Connection, many: int = ENTITIES) -> list[str]:
    db.execute(
        "create table users (id text primary key, name text, last text, email text, score integer,"
        " rank real) without rowid"
    )
    db.execute("create index by_names on users (name, last)")
    ids = [random_id() for _ in range(many)]
    db.execute("begin")
    insert = "insert into users values (?, ?, ?, ?, ?, ?)"
    db.executemany(insert, [(id, *user(at).values()) for at, id in enumerate(ids)])
    db.execute("commit")
    return ids


def sqlite_select_five(opened: holdfast.Store) -> Call:
    db = database(opened)
    fill_users(db)
    chosen = numbers(ENTITIES)
    sql = f"select {_USER_COLUMNS} from users where name = ? and last = ? limit {FIVE}"

    def call() -> None:
        wanted = user(next(chosen))
        found = db.execute(sql, (wanted["name"], wanted["last"])).fetchall()
        assert len(found) == FIVE

    return call


def sqlite_get(opened: holdfast.Store) -> Call:
    db = database(opened)
    ids = fill_users(db)
    chosen = numbers(ENTITIES)
    sql = f"select {_USER_COLUMNS} from users where id = ?"
    return lambda: db.execute(sql, (ids[next(chosen)],)).fetchall()


def sqlite_update(opened: holdfast.Store) -> Call:
    db = database(opened)
    ids = fill_users(db)
    chosen = numbers(ENTITIES)
    sql = "update users set score = score + 1 where id = ?"
    return lambda: db.execute(sql, (ids[next(chosen)],))


def sqlite_put(opened: holdfast.Store) -> Call:
    db = database(opened)
    fill_users(db)
    chosen = numbers(ENTITIES)
    sql = "insert into users values (?, ?, ?, ?, ?, ?)"
    return lambda: db.execute(sql, (random_id(), *user(next(chosen)).values()))


def fill_rows(db: sqlite3.Connection) -> None:
    db.execute(
        "create table example (name text, property text, tid blob, length integer, value text,"
        " primary key (name, property, tid desc)) without rowid"
    )
    db.execute("begin")
    for each in map(row, range(TABLE_ROWS)):
        values = {**each, "tid": sortable(each["tid"])}
        db.execute("insert into example values (?, ?, ?, ?, ?)", tuple(values.values()))
    db.execute("commit")


def sqlite_range_of_15(opened: holdfast.Store) -> Call:
    db = database(opened)
    fill_rows(db)
    chosen = numbers(TABLE_ROWS // 200)
    sql = (
        f"select {_ROW_COLUMNS} from example where name = ? and property >= ?"
        " order by property, tid desc limit 15"
    )

    def call() -> None:
        assert len(db.execute(sql, (f"name{next(chosen)}", "p0100")).fetchall()) == 15

    return call


def sqlite_latest_row(opened: holdfast.Store) -> Call:
    db = database(opened)
    fill_rows(db)
    chosen = numbers(TABLE_ROWS)
    sql = (
        f"select {_ROW_COLUMNS} from example where name = ? and property = ?"
        " order by tid desc limit 1"
    )

    def call() -> None:
        wanted = row(next(chosen))
        assert db.execute(sql, (wanted["name"], wanted["property"])).fetchone()

    return call


CONTENDERS: Final[dict[str, Prepare]] = {
    "select_five": select_five,
    "select_five_objects": select_five_objects,
    "sqlite_select_five": sqlite_select_five,
    "get_entity": get_entity,
    "sqlite_get": sqlite_get,
    "update_entity": update_entity,
    "sqlite_update": sqlite_update,
    "put_entity": put_entity,
    "sqlite_put": sqlite_put,
    "range_of_15": range_of_15,
    "sqlite_range_of_15": sqlite_range_of_15,
    "latest_row": latest_row,
    "sqlite_latest_row": sqlite_latest_row,
}
# By durability: the calls, what each is compared with, and the ratio that is wanted.
READS: Final = {
    "select_five": ("sqlite_select_five", 0.7),
    "select_five_objects": ("sqlite_select_five", 0.7),
    "get_entity": ("sqlite_get", 0.7),
    "range_of_15": ("sqlite_range_of_15", 0.7),
    "latest_row": ("sqlite_latest_row", 0.6),
}
WANTED: Final = {
    "commit": {"update_entity": ("sqlite_update", 0.9), "put_entity": ("sqlite_put", 0.9)},
    "interval": {
        **READS,
        "update_entity": ("sqlite_update", 0.6),
        "put_entity": ("sqlite_put", 0.6),
    },
}
STORED: Final = 100_000  # entities, whose bytes are counted


def main(quick: bool) -> None:
    rounds = 7 if quick else 25
    for durability, wanted in WANTED.items():
        for name, (baseline, ratio) in wanted.items():
            seconds = measure(durability, [name, baseline], rounds)
            report(f"{name}, {durability}", seconds, baseline=baseline)
            what = f"{name}, {durability}: as fast as sqlite3"
            reach(what, seconds[baseline] / seconds[name], ratio, at_most=False, reason=REASON)
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as folder:
        count_bytes(Path(folder), STORED // 5 if quick else STORED)


def measure(durability: Any, names: list[str], rounds: int) -> dict[str, float]:
    with ExitStack() as stack:
        contenders = {}
        for name in names:
            temporary = tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".")
            folder = stack.enter_context(temporary)
            opened = stack.enter_context(holdfast.open(folder, durability=durability))
            contenders[name] = repeated(CONTENDERS[name](opened))
        return seconds_each(contenders, rounds=rounds)


def repeated(call: Call) -> Contender:
    def work() -> int:
        for _ in range(100):
            call()
        return 100

    return work


def count_bytes(folder: Path, many: int) -> None:
    with holdfast.open(folder / "holdfast", durability="interval") as opened:
        opened.entities.deploy(Schema(name="bench", tables=(User.__shape__.table,)))
        for first in range(0, many, 1000):
            opened.entities.put_raw(USERS, [user(each) for each in range(first, first + 1000)])
        engine: Any = opened.engine
        with engine.begin_view() as txn:
            stat = txn.stat(engine._data)
            stored = sum(len(key) + len(value) for key, value in txn.cursor(engine._data))
    pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
    db = open_database(folder / "sqlite.db", "normal")
    fill_users(db, many)
    db.execute("pragma wal_checkpoint(truncate)")
    db.close()
    print("\nBytes")
    fact("keys and values of an entity, bytes", f"{stored / many:.0f}")
    fact(
        "sqlite3, bytes of the file for an entity",
        f"{(folder / 'sqlite.db').stat().st_size / many:.0f}",
    )
    reach("bytes of pages in use for an entity", pages * stat["psize"] / many, 160, at_most=True)


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
