"""Empty stores on every engine, as fast as a test needs one: servers start once and are emptied.

A process of tests has servers of its own, so that workers of pytest-xdist can't disturb one
another, and starts none that no test asks for.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Final, Protocol

import psycopg
from psycopg import sql

from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyCluster, ValkeyServer

ENGINES: Final = ("lmdb", "postgres", "valkey", "cluster")

# Of processes that a test has killed or forgotten.
_END_CONNECTIONS: Final = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class _Place(Protocol):
    """Where a store can be, which is emptied after each use."""

    @property
    def url(self) -> str: ...

    def empty(self) -> None: ...


class Servers:
    """Lends the URLs of empty stores."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._postgres: PostgresServer | None = None
        self._free: dict[str, list[_Place]] = {engine: [] for engine in ENGINES}
        self._lent: dict[str, tuple[str, _Place]] = {}  # URL -> engine, place
        self._databases = count()

    def lend(self, engine: str) -> str:
        """The URL of an empty store that no one else uses until it is given back."""
        free = self._free[engine]
        place = free.pop() if free else _MAKERS[engine](self)
        self._lent[place.url] = engine, place
        return place.url

    def give_back(self, url: str) -> None:
        """Empties it for the next one."""
        engine, place = self._lent.pop(url)
        place.empty()  # one that can't be emptied is lent no more
        self._free[engine].append(place)

    @contextmanager
    def lending(self, engine: str) -> Iterator[str]:
        """The URL of an empty store for a block: a property borrows one for each example."""
        url = self.lend(engine)
        try:
            yield url
        finally:
            self.give_back(url)

    def lent(self) -> frozenset[str]:
        """The URLs of all stores that were not given back yet."""
        return frozenset(self._lent)

    def take_back(self, *, keep: frozenset[str]) -> None:
        """Empties all that are still lent, apart from those to keep.

        A server that many tests share keeps its store: it goes on sweeping there, by the clock of
        the machine, and would find all expired that another test puts in.
        """
        for url in self.lent() - keep:
            self.give_back(url)

    @property
    def postgres(self) -> PostgresServer:
        """The one server that holds all PostgreSQL stores."""
        if self._postgres is None:
            self._postgres = self._stack.enter_context(PostgresServer())
        return self._postgres

    def close(self) -> None:
        self._stack.close()

    def make_folder(self) -> _Place:
        folder = Path(tempfile.mkdtemp(prefix="holdfast-lmdb-"))
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return _Folder(folder / "store")

    def make_database(self) -> _Place:
        return _Database(self.postgres, f"store_{next(self._databases)}")

    def make_valkey(self) -> _Place:
        return self._stack.enter_context(ValkeyServer.started())

    def make_cluster(self) -> _Place:
        return self._stack.enter_context(ValkeyCluster())


_MAKERS: Final[dict[str, Callable[[Servers], _Place]]] = {
    "lmdb": Servers.make_folder,
    "postgres": Servers.make_database,
    "valkey": Servers.make_valkey,
    "cluster": Servers.make_cluster,
}


class _Folder:
    """A folder for the embedded engine, which creates it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.url = f"lmdb:{path}"

    def empty(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


class _Database:
    """A database of its own for each PostgreSQL store: notices and advisory locks reach no
    further."""

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.url = server.url(name)
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def empty(self) -> None:
        """Takes a new schema: a new database or TRUNCATE would take several times as long, and to
        delete the rows would leave what a test has done to the tables."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(_END_CONNECTIONS)
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
