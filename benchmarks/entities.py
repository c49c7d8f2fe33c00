"""What do typed objects cost, compared with object mappers on SQLite, and does size matter?

Run: python -m benchmarks.entities [--quick]

The same model with the same two-column index, durable commits everywhere: SQLAlchemy's ORM and
peewee on sqlite3 with a write-ahead log and synchronous = FULL. The larger of Holdfast's two tables
has 1,000,000 entities; with --quick 100,000.
"""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import lmdb
import peewee
import sqlalchemy
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import holdfast
from benchmarks.rounds import Contender, reach, report, run_benchmark, seconds_each
from holdfast.entities import Model, StoreEntities, column
from holdfast.entities.ids import random_id
from holdfast.entities.schema import Index, Schema

SMALL = 10_000
BATCH = 100
MATCHING = 10  # objects that share name and last name
COLUMNS = ("name", "last", "email", "score", "rank")


class User(Model, schema="bench", table="Users", indexes=[Index(columns=("name", "last"))]):
    name: str = column(required=True)
    last: str = column(required=True)
    email: str = column(default="")
    score: int = column(default=0)
    rank: float = column(default=0.0)


class Users(Protocol):
    """The calls that each contender makes."""

    ids: list[str]

    def put(self, *rows: dict[str, Any]) -> None: ...

    def get(self, id: str) -> Any: ...

    def get_many(self, ids: list[str]) -> list[Any]: ...

    def select(self, name: str, last: str) -> list[Any]: ...

    def update(self, id: str) -> None: ...


def main(quick: bool) -> None:
    large = 100_000 if quick else 1_000_000
    rounds = 5 if quick else 15
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as folder:
        path = Path(folder)
        with (
            holdfast_users(path / "small", SMALL) as ours,
            holdfast_users(path / "large", large) as larger,
        ):
            others: dict[str, Users] = {
                "SQLAlchemy": SqlAlchemyUsers(path / "sqlalchemy.db"),
                "peewee": PeeweeUsers(path / "peewee.db"),
            }
            figures = run({"holdfast": ours, **others, f"holdfast, {large:,}": larger}, rounds)
            raw = raw_put(path / "raw", rounds)
    report("raw py-lmdb, one put inside a transaction", {"raw put": raw}, baseline="raw put")
    print("\nReach")
    for work, wanted in {"get": 3, "get 100": 3, "select": 3, "put 100": 1.5}.items():
        best = min(figures[work][name] for name in others)
        reach(
            f"{work}: times faster than the faster mapper",
            best / figures[work]["holdfast"],
            wanted,
            at_most=False,
        )
    for work, own in figures.items():
        reach(
            f"{work}: {large:,} vs {SMALL:,} entities",
            own[f"holdfast, {large:,}"] / own["holdfast"],
            1.5,
            at_most=True,
            reason="the ids of different calls are on different pages, so more pages are copied",
        )


def run(contenders: dict[str, Users], rounds: int) -> dict[str, dict[str, float]]:
    """Returns seconds by work and contender."""
    figures = {}
    for work, repeats in WORKS.items():
        own = {name: repeats(users) for name, users in contenders.items()}
        figures[work] = seconds_each(own, rounds=rounds)
        report(work, figures[work], baseline="holdfast", durability="fsync before each reply")
    return figures


def put_one(users: Users) -> Contender:
    def work() -> int:
        for number in range(20):
            users.put(row(number))
        return 20

    return work


def put_batch(users: Users) -> Contender:
    def work() -> int:
        for _ in range(5):
            users.put(*some_rows(BATCH))
        return 5

    return work


def get_one(users: Users) -> Contender:
    chosen = random.Random(1).choices(users.ids, k=200)

    def work() -> int:
        for id in chosen:
            assert users.get(id).name
        return len(chosen)

    return work


def get_many(users: Users) -> Contender:
    lists = [random.Random(seed).sample(users.ids, BATCH) for seed in range(10)]

    def work() -> int:
        for ids in lists:
            assert len(users.get_many(ids)) == BATCH
        return len(lists)

    return work


def select(users: Users) -> Contender:
    rows = [row(number) for number in random.Random(2).sample(range(len(users.ids)), 100)]

    def work() -> int:
        for each in rows:
            assert len(users.select(each["name"], each["last"])) == MATCHING
        return len(rows)

    return work


def update(users: Users) -> Contender:
    chosen = random.Random(3).choices(users.ids, k=20)

    def work() -> int:
        for id in chosen:
            users.update(id)
        return len(chosen)

    return work


WORKS = {
    "get": get_one,
    "get 100": get_many,
    "select": select,
    "update": update,
    "put": put_one,
    "put 100": put_batch,
}


# --- rows -------------------------------------------------------------------------------------

_fresh = count(10**9)


def row(number: int) -> dict[str, Any]:
    """Returns a row; ten rows share a pair of names, however large the table is."""
    group = number // MATCHING
    return {
        "name": f"Name {group // 10}",
        "last": f"Last {group % 10}",
        "email": f"someone.{number}@example.org",
        "score": number % 1000,
        "rank": number / 7,
    }


def some_rows(number: int) -> list[dict[str, Any]]:
    """Returns rows for a batch, each with names of its own, spread over the whole index."""
    shuffled = (next(_fresh) * 2_654_435_761 % 2**32 for _ in range(number))
    return [{**row(each), "name": f"Name {each}"} for each in shuffled]


# --- contenders -------------------------------------------------------------------------------


@contextmanager
def holdfast_users(path: Path, number: int) -> Iterator[Users]:
    """Yields a table of `number` users, filled without waiting for the disk."""
    with holdfast.open(path, durability="interval") as store:
        store.entities.deploy(Schema(name="bench", tables=(User.__shape__.table,)))
        ids: list[str] = []
        for first in range(0, number, 1000):
            ids += store.entities.put(*(User(**row(n)) for n in range(first, first + 1000)))
    with holdfast.open(path) as store:
        yield HoldfastUsers(store.entities, ids)


class HoldfastUsers:
    def __init__(self, entities: StoreEntities, ids: list[str]) -> None:
        self._entities = entities
        self.ids = ids

    def put(self, *rows: dict[str, Any]) -> None:
        self._entities.put(*[User(**each) for each in rows])

    def get(self, id: str) -> Any:
        return self._entities.get_one(User, id)

    def get_many(self, ids: list[str]) -> list[Any]:
        return self._entities.get(User, *ids)

    def select(self, name: str, last: str) -> list[Any]:
        return self._entities.select(
            User, User.name == name, User.last == last, limit=MATCHING
        ).items

    def update(self, id: str) -> None:
        assert self._entities.update(User, User.id == id, score=User.score + 1) == 1


class _Base(DeclarativeBase):
    pass


class SqlUser(_Base):
    __tablename__ = "users"
    __table_args__ = (sqlalchemy.Index("by_names", "name", "last"),)

    id: Mapped[str] = mapped_column(primary_key=True, default=random_id)
    name: Mapped[str]
    last: Mapped[str]
    email: Mapped[str]
    score: Mapped[int]
    rank: Mapped[float]


class SqlAlchemyUsers:
    def __init__(self, path: Path) -> None:
        self._engine = sqlalchemy.create_engine(f"sqlite:///{path}")
        sqlalchemy.event.listen(self._engine, "connect", _durable)
        _Base.metadata.create_all(self._engine)
        with Session(self._engine) as session:
            users = [SqlUser(id=random_id(), **row(number)) for number in range(SMALL)]
            session.add_all(users)
            session.flush()
            self.ids = [user.id for user in users]
            session.commit()

    def put(self, *rows: dict[str, Any]) -> None:
        with Session(self._engine) as session:
            session.add_all([SqlUser(**each) for each in rows])
            session.commit()

    def get(self, id: str) -> Any:
        with Session(self._engine) as session:
            return session.get(SqlUser, id)

    def get_many(self, ids: list[str]) -> list[Any]:
        with Session(self._engine) as session:
            chosen = sqlalchemy.select(SqlUser).where(SqlUser.id.in_(ids))
            return list(session.scalars(chosen).all())

    def select(self, name: str, last: str) -> list[Any]:
        with Session(self._engine) as session:
            named = sqlalchemy.select(SqlUser).where(SqlUser.name == name, SqlUser.last == last)
            return list(session.scalars(named.limit(MATCHING)).all())

    def update(self, id: str) -> None:
        with Session(self._engine) as session:
            session.execute(
                sqlalchemy.update(SqlUser)
                .where(SqlUser.id == id)
                .values(score=SqlUser.score + 1)
                .execution_options(synchronize_session=False)
            )
            session.commit()


def _durable(connection: Any, record: Any) -> None:
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")


_database = peewee.SqliteDatabase(None, pragmas={"journal_mode": "wal", "synchronous": "full"})


class PeeweeUser(peewee.Model):
    id = peewee.CharField(primary_key=True, default=random_id)
    name = peewee.CharField()
    last = peewee.CharField()
    email = peewee.CharField()
    score = peewee.IntegerField()
    rank = peewee.FloatField()

    class Meta:
        database = _database
        indexes = ((("name", "last"), False),)


class PeeweeUsers:
    def __init__(self, path: Path) -> None:
        _database.init(str(path))
        _database.create_tables([PeeweeUser])
        users = [PeeweeUser(**row(number)) for number in range(SMALL)]
        with _database.atomic():
            PeeweeUser.bulk_create(users, batch_size=BATCH)
        self.ids = [user.id for user in users]

    def put(self, *rows: dict[str, Any]) -> None:
        with _database.atomic():
            if len(rows) == 1:
                PeeweeUser.create(**rows[0])
            else:
                PeeweeUser.bulk_create([PeeweeUser(**each) for each in rows])

    def get(self, id: str) -> Any:
        return PeeweeUser.get_by_id(id)

    def get_many(self, ids: list[str]) -> list[Any]:
        return list(PeeweeUser.select().where(PeeweeUser.id.in_(ids)))

    def select(self, name: str, last: str) -> list[Any]:
        chosen = (PeeweeUser.name == name) & (PeeweeUser.last == last)
        return list(PeeweeUser.select().where(chosen).limit(MATCHING))

    def update(self, id: str) -> None:
        changed = PeeweeUser.update(score=PeeweeUser.score + 1).where(PeeweeUser.id == id)
        assert changed.execute() == 1


def raw_put(path: Path, rounds: int) -> float:
    path.mkdir()
    environment = lmdb.open(str(path), map_size=2**30)
    keys = [random.Random(number).randbytes(16) for number in range(5_000)]

    def work() -> int:
        with environment.begin(write=True) as txn:
            for key in keys:
                txn.put(key, b"v" * 100)
        return len(keys)

    return seconds_each({"raw": work}, rounds=rounds)["raw"]


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
