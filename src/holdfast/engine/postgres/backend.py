"""The backend: opening a store, its connections and spaces, notices, and maintenance."""

import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec
import psycopg

from holdfast.engine.contract import Notice
from holdfast.engine.long_keys import LongKeys
from holdfast.engine.postgres import statements as sql
from holdfast.engine.postgres.connection import (
    INT8,
    PostgresConnection,
    Reply,
    StatementRefused,
    bytea_array,
    connect,
)
from holdfast.engine.postgres.functions import (
    CHANNEL,
    COMMIT_FUNCTION,
    CREATE_COMMIT,
    FIND_COMMIT,
    LISTENERS_LOCK,
    LOCK_CREATION,
)
from holdfast.engine.postgres.pool import ConnectionPool
from holdfast.engine.postgres.session import PostgresSession
from holdfast.engine.remote import (
    ConnectionLost,
)
from holdfast.engine.urls import without_password
from holdfast.engine.write_buffer import after_prefix
from holdfast.errors import (
    BadInput,
    HoldfastError,
    StoreFull,
    StoreUnreachable,
    StoreUnusable,
    UnsupportedFormat,
)
from holdfast.limits import (
    KEPT_NOTICE_BYTES,
    KEPT_NOTICE_COMMITS,
    MAX_QUEUED_NOTICES,
)

LONG_KEYS: Final = LongKeys(2_600)  # an entry of a B-tree has at most 2,704 bytes
_MAX_KNOWN_SPACES: Final = 100_000
_COMMITS_PER_CLEANING: Final = 256
_ALONE_COMMITS: Final = 8  # in a row, after which a process is taken to be alone in a space
# As many of these as are kept are no more bytes than are kept.
_USUAL_NOTICE_BYTES: Final = KEPT_NOTICE_BYTES // KEPT_NOTICE_COMMITS
_RETRY_PAUSE_SECONDS: Final = 0.2
_NO_COMMIT: Final = b"none"  # in place of the number of a commit

_OUT_OF_SPACE: Final = {"53100", "53200", "54000"}
_NOT_CREATED: Final = {"42P01", "3F000"}

_NOTICES: Final = msgspec.msgpack.Decoder(list[Notice])
_log = logging.getLogger("holdfast.postgres")


class PostgresBackend:
    """One store in the first schema of the search path of a database."""

    long_keys: LongKeys | None = LONG_KEYS

    def __init__(self, url: str, *, durability: str) -> None:
        self.name = without_password(url)
        self._url = url
        self._waits = durability == "commit"
        self._settings = list(sql.SETTINGS)
        self._durable = False
        # Whether commits wait for the disk after they have released their space (FLUSH).
        self.flushes = False
        self.early = not self._waits  # whether a commit itself waits for no disk
        self._known_spaces: dict[bytes, KnownSpace] = {}
        self._flushed: dict[bytes, int] = {}  # how many commits of a space are known to be on disk
        self._pool = ConnectionPool(self._connect)
        try:
            self._open()
        except ConnectionLost as error:
            raise StoreUnreachable(f"{self.name} could not be reached: {error}") from error
        except psycopg.Error as error:
            raise StoreUnusable(f"{self.name}: {error}") from error

    # --- opening ---------------------------------------------------------------------------------

    def _connect(self) -> PostgresConnection:
        self._flushed = {}  # this may be another server
        connection = PostgresConnection(self._url, self._settings)
        try:
            version = connection.server_version
            connection.prepare(sql.prepared_for(version, flushes=self.flushes))
        except BaseException as error:
            connection.close()
            if isinstance(error, StatementRefused):
                raise self.explain(error) from error
            raise
        return connection

    def _open(self) -> None:
        """Creates what is missing, refuses a newer format, and decides how durable a commit
        is."""
        with connect(self._url) as plain:
            self._settle_durability(plain)
            for _ in range(10):
                found = _read_format(plain)
                if found is not None:
                    break
                # Another process may be creating it at the same moment; then one of them fails.
                with suppress(psycopg.errors.IntegrityError, psycopg.errors.DuplicateTable):
                    self._create(plain)
            if found is None or not found.isdigit() or int(found) > sql.FORMAT:
                raise UnsupportedFormat(
                    f"{self.name} has format {found}, this Holdfast knows {sql.FORMAT}"
                )
            self._create_function(plain)
            plain.execute(sql.FORGET_CLIENTS)

    def _create_function(self, plain: psycopg.Connection[Any]) -> None:
        """Creates the function of this version of Holdfast; those of others stay."""
        if plain.execute(FIND_COMMIT).fetchone() is not None:
            return
        try:
            with plain.transaction():
                plain.execute(LOCK_CREATION)
                plain.execute(CREATE_COMMIT)
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreUnusable(
                f"{self.name} lacks the function {COMMIT_FUNCTION}, and it can't be created: "
                f"{error}",
                hint="Open the store once as the owner of its tables: that creates the function.",
            ) from error

    def _create(self, plain: psycopg.Connection[Any]) -> None:
        try:
            with plain.transaction():
                for statement in sql.CREATE:
                    plain.execute(statement)
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreUnusable(
                f"{self.name} has no tables of Holdfast, and they can't be created: {error}",
                hint="Give the user the right to create tables, or let another one do it once.",
            ) from error
        for statement in sql.TUNE:
            with suppress(psycopg.Error):
                plain.execute(statement)

    def _settle_durability(self, plain: psycopg.Connection[Any]) -> None:
        [[waits]] = plain.execute("SHOW synchronous_commit").fetchall()
        fsync = "on"
        with suppress(psycopg.Error):
            [[fsync]] = plain.execute("SHOW fsync").fetchall()
        if not self._waits:
            self._settings.append("SET synchronous_commit = off")
        elif waits == "off":
            # The store needs more than the server's default, and a session may request it.
            self._settings.append("SET synchronous_commit = on")
        self._durable = self._waits and fsync == "on"
        if self._waits:
            with suppress(psycopg.Error):
                [[_, _, waits_for_disk_only]] = plain.execute(sql.CAN_FLUSH).fetchall()
                self.flushes = self.early = waits_for_disk_only
        if self._waits and not self._durable:
            _log.warning(
                "%s runs with fsync = off: its commits do not survive a crash of its machine",
                self.name,
            )

    # --- sessions --------------------------------------------------------------------------------

    def session(self, space: bytes) -> PostgresSession:
        return PostgresSession(self, space)

    def turn_session(
        self, space: bytes, contended: Sequence[bytes], *, exclusive: bool = False
    ) -> PostgresSession:
        return PostgresSession(self, space, exclusive=exclusive, contended=contended)

    def take(self) -> PostgresConnection:
        return self._pool.take()

    def give_back(self, connection: PostgresConnection) -> None:
        self._pool.give_back(connection)

    @contextmanager
    def borrowed(self, *, more: bool = False) -> Iterator[PostgresConnection]:
        connection = self._pool.take(more=more)
        try:
            yield connection
        except StatementRefused as error:
            connection.broken = True  # a transaction may still be open, in which everything fails
            raise self.explain(error) from error
        except BaseException:
            connection.broken = True
            raise
        finally:
            self._pool.give_back(connection)

    def register(self, space: bytes) -> "KnownSpace":
        """Makes sure that a space has its row, which its commits lock, and that no space is inside
        another."""
        if (known := self._known_spaces.get(space)) is not None:
            return known
        with self.borrowed() as connection:
            connection.send(sql.FIND_SPACE, space)
            connection.sync()
            [[found]] = connection.exchange()
            if not found.ntuples:
                self._create_space(connection, space)
        if len(self._known_spaces) >= _MAX_KNOWN_SPACES:
            self._known_spaces.clear()
        return self._known_spaces.setdefault(space, KnownSpace())

    def _create_space(self, connection: PostgresConnection, space: bytes) -> None:
        prefixes = [space[:length] for length in range(1, len(space))]
        connection.send(sql.BEGIN)
        connection.send(sql.LOCK_ALL)
        connection.send(sql.CHECK_SPACE, bytea_array(prefixes), space, after_prefix(space))
        connection.sync()
        try:
            [[_, _, overlapping]] = connection.exchange()
            other = overlapping.get_value(0, 0) if space and overlapping.ntuples else None
            if other is None:
                connection.send(sql.LOCK_SPACE, space)
        finally:
            if not connection.broken:
                connection.send(sql.COMMIT)
                connection.sync()
                connection.exchange()
        if other is not None:
            raise BadInput(
                f"of the spaces {space!r} and {other!r}, one is inside the other",
                hint="Choose prefixes of which none begins with another.",
            )

    def releases_before_sync(self, space: "KnownSpace") -> bool:
        """Returns whether the next commit should release its space before it is on the disk. Where
        nobody else writes, that would not help, and the second wait costs a sixth of a commit."""
        return space.is_shared if self.flushes else self.early

    def settle(self, client: int, attempt: int) -> bool:
        """Returns whether a commit was applied; if not, it never will be."""
        with self.borrowed() as connection:
            connection.send(sql.GIVE_UP, INT8.pack(client), INT8.pack(attempt))
            connection.sync()
            connection.send(sql.WAS_APPLIED, INT8.pack(client), INT8.pack(attempt))
            connection.sync()
            if self.flushes:
                connection.send(sql.FLUSH, _NO_COMMIT)
                connection.sync()
            _, [made], *_ = connection.exchange()
            return bool(made.ntuples)

    def flush(self, space: bytes, commits: int) -> None:
        """Returns when what is visible is on the disk: the first `commits` of a space, or all if
        that is -1. Costs 1 round trip, or none if they are known to be on the disk."""
        if 0 <= commits <= self._flushed.get(space, -1):
            return
        with self.borrowed(more=True) as connection:
            connection.send(sql.FLUSH, _NO_COMMIT)
            connection.sync()
            connection.exchange()
        if len(self._flushed) >= _MAX_KNOWN_SPACES:
            self._flushed.clear()
        self._flushed[space] = max(commits, self._flushed.get(space, -1))

    def clean_some(self, connection: PostgresConnection, notice_bytes: int) -> None:
        """Removes old notices now and then, with a statement that nobody waits for. Chance decides
        when, so that processes with few commits do their share; the larger the notices, the more
        often."""
        chances = 1 + notice_bytes * _COMMITS_PER_CLEANING // KEPT_NOTICE_BYTES
        if random.random() * _COMMITS_PER_CLEANING < chances:
            connection.send(sql.FORGET_NOTICES, INT8.pack(KEPT_NOTICE_COMMITS))
            if notice_bytes > _USUAL_NOTICE_BYTES:
                connection.send(sql.FORGET_LARGE_NOTICES, INT8.pack(KEPT_NOTICE_BYTES))
            connection.sync()
            connection.send_without_waiting()

    def explain(self, error: StatementRefused) -> HoldfastError:
        """Returns the error to raise for an error of PostgreSQL."""
        if error.state in _OUT_OF_SPACE:
            return StoreFull(f"{self.name}: {error}")
        return StoreUnusable(f"{self.name}: {error} ({error.state})")

    # --- notices ---------------------------------------------------------------------------------

    def newest_notice(self) -> tuple[bytes, int]:
        with self.borrowed() as connection:
            connection.send(sql.NEWEST_NOTICE)
            connection.sync()
            [newest] = self._flushed_reply(connection)
            return newest.get_value(0, 0), _read_int(newest.get_value(0, 1))

    def _flushed_reply(self, connection: PostgresConnection) -> list[Reply]:
        """Returns the replies to the first batch once everything in them is on disk: a notice that
        a crash could undo must not be announced, because its number would be used again."""
        if self.flushes:
            connection.send(sql.FLUSH, _NO_COMMIT)
            connection.sync()
        replies = connection.exchange()
        return replies[0]

    def notices_since(self, place: tuple[bytes, int]) -> tuple[Any, int, list[Notice]]:
        snapshot, last = place
        with self.borrowed() as connection:
            connection.send(sql.NOTICES_SINCE, snapshot, INT8.pack(MAX_QUEUED_NOTICES + 1))
            connection.sync()
            [found] = self._flushed_reply(connection)
        notices: list[Notice] = []
        oldest = found.get_value(0, 1)
        # With 0, there was no notice yet when the subscription began, and no number to compare.
        forgotten = max(0, _read_int(oldest) - last - 1) if oldest is not None and last else 0
        for number in range(1, found.ntuples):
            last = max(last, _read_int(found.get_value(number, 1)))
            notices += _NOTICES.decode(found.get_value(number, 2))
        return (found.get_value(0, 0), last), forgotten, notices

    def listen(self, wake: Callable[[], None], stopped: threading.Event) -> None:
        while not stopped.is_set():
            try:
                with connect(self._url) as plain:
                    plain.execute(f"LISTEN {CHANNEL}")
                    # Commits hold the lock for microseconds; even if one of them hangs, this thread
                    # must notice that it has to stop.
                    plain.execute("SET lock_timeout = '500ms'")
                    plain.execute(f"SELECT pg_advisory_lock_shared({LISTENERS_LOCK})")
                    wake()  # what was published while no one listened
                    while not stopped.is_set():
                        for _ in plain.notifies(timeout=0.1, stop_after=1):
                            wake()
            except (ConnectionLost, psycopg.Error):
                stopped.wait(_RETRY_PAUSE_SECONDS)

    # --- maintenance -----------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Makes one commit that waits for the disk, which makes all earlier ones durable too."""
        if self._waits:
            return
        with self.borrowed() as connection:
            connection.send(sql.BEGIN)
            connection.send_sql("SET LOCAL synchronous_commit = on")
            connection.send_sql(sql.TOUCH)
            connection.send(sql.COMMIT)
            connection.sync()
            connection.send(sql.ROLLBACK)
            connection.sync()
            connection.exchange()

    def backup(self, target: Path) -> NoReturn:
        raise BadInput(
            f"a store on PostgreSQL can't be copied into the folder {target}",
            hint="Copy it into a folder with `holdfast copy URL FOLDER`, or use pg_dump.",
        )

    def problems(self) -> list[str]:
        rule = LONG_KEYS
        found: list[str] = []
        last = b""
        with self.borrowed() as connection:
            connection.send_sql(
                "SELECT count(*) FROM holdfast_data WHERE length(key) = 0 "
                f"OR length(key) > {rule.stored_bytes} "
                f"OR (length(key) >= {rule.whole} AND length(key) <> {rule.stored_bytes}) "
                "OR (value IS NULL) = (number IS NULL) OR length(value) = 8 OR version = 0"
            )
            connection.sync()
            [[bad]] = connection.exchange()
            if count := _read_int(bad.get_value(0, 0)):
                found.append(f"{count} rows of holdfast_data have a form that is never written")
            while True:
                connection.send_sql(sql.LONG_KEYS.format(whole=rule.whole), last)
                connection.sync()
                [[page]] = connection.exchange()
                for number in range(page.ntuples):
                    last, value = page.get_value(number, 0), page.get_value(number, 1)
                    if value is None or not rule.matches(last, value):
                        found.append(f"the long key {last.hex()} does not match its digest")
                if page.ntuples == 0:
                    return found

    def stats(self) -> dict[str, int]:
        """Returns figures; `durable` is 1 if a commit is on the server's disk when it returns."""
        with self.borrowed() as connection:
            connection.send_sql(
                "SELECT coalesce(max(reltuples), 0)::int8, coalesce(max(relpages), 0)::int8 "
                "FROM pg_class WHERE oid = 'holdfast_data'::regclass"
            )
            connection.send_sql(
                "SELECT pg_total_relation_size('holdfast_data'::regclass)::int8, "
                "(SELECT coalesce(sum(commits), 0) FROM holdfast_space)::int8"
            )
            connection.sync()
            [[estimate, size]] = connection.exchange()
            keys, pages = (_read_int(estimate.get_value(0, column)) for column in range(2))
            if pages < 10_000:  # few enough to be counted
                connection.send_sql("SELECT count(*) FROM holdfast_data")
                connection.sync()
                [[counted]] = connection.exchange()
                keys = _read_int(counted.get_value(0, 0))
        return {
            "keys": keys,
            "file_bytes": _read_int(size.get_value(0, 0)),
            "commits": _read_int(size.get_value(0, 1)),
            "durable": int(self._durable),
        }

    def refuse_full(self, space: bytes) -> None:
        """Does nothing: PostgreSQL tells of a full disk only when it refuses a commit."""

    def close(self) -> None:
        self._pool.close()

    def forked(self) -> None:
        self._pool.forked()


class KnownSpace:
    """A space as this process knows it: how many commits it has had, and whether others are
    expected to write to it too."""

    __slots__ = ("_commits", "_own")

    def __init__(self) -> None:
        self._commits: int | None = None
        self._own = _ALONE_COMMITS  # commits in a row without one of another process between them

    @property
    def is_shared(self) -> bool:
        return self._own < _ALONE_COMMITS

    def note_commit(self, commits: int | None) -> None:
        """Notes the number of commits after one of our own, if it is known."""
        before, self._commits = self._commits, commits
        if before is not None and commits is not None:
            self._own = self._own + 1 if commits == before + 1 else 0

    def note_others(self) -> None:
        """Notes that others write here: the next few commits expect them."""
        self._own = 0


def _read_format(plain: psycopg.Connection[Any]) -> str | None:
    try:
        found = plain.execute(sql.READ_FORMAT).fetchone()
    except psycopg.Error as error:
        if error.sqlstate in _NOT_CREATED:
            return None
        raise StoreUnusable(str(error)) from error
    return None if found is None else str(found[0])


def _read_int(value: Any) -> int:
    return int(INT8.unpack(value)[0])
