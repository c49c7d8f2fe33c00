"""The backend: sessions that read a snapshot and commit, each in as few round trips as can be."""

import logging
import os
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
    Connection,
    Refused,
    Reply,
    bytea_array,
    connect,
    int8_array,
)
from holdfast.engine.postgres.pool import Pool
from holdfast.engine.remote import (
    AddRefused,
    Commit,
    Conflicted,
    Page,
    Row,
    Unreachable,
    Unsettled,
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
from holdfast.limits import KEPT_NOTICE_BYTES, KEPT_NOTICE_COMMITS, MAX_QUEUED_NOTICES

LONG_KEYS: Final = LongKeys(2_600)  # an entry of a B-tree has at most 2,704 bytes
_STATEMENT_BYTES: Final = 16 * 1024 * 1024  # of pairs in one statement; a message ends at 1 GB
_KNOWN_SPACES: Final = 100_000
_COMMITS_PER_CLEANING: Final = 256
_RETRY_PAUSE_SECONDS: Final = 0.2

_BAD_COUNTER: Final = {"22003", "23514"}  # out of range; neither a value nor a number
_IN_THE_WAY: Final = {"40001", "40P01", "55P03"}  # not serializable, deadlock, lock timeout
_NO_ROOM: Final = {"53100", "53200", "54000"}
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
        self._known_spaces: set[bytes] = set()
        self._pool = Pool(self._connect)
        try:
            self._open()
        except Unreachable as error:
            raise StoreUnreachable(f"{self.name} could not be reached: {error}") from error
        except psycopg.Error as error:
            raise StoreUnusable(f"{self.name}: {error}") from error

    # --- opening ---------------------------------------------------------------------------------

    def _connect(self) -> Connection:
        connection = Connection(self._url, self._settings)
        try:
            connection.prepare()
        except BaseException as error:
            connection.close()
            if isinstance(error, Refused):
                raise self.explain(error) from error
            raise
        return connection

    def _open(self) -> None:
        """Creates what is not there yet, refuses a newer format, and settles what a commit is
        worth."""
        with connect(self._url) as plain:
            self._settle_durability(plain)
            for _ in range(10):
                found = _read_format(plain)
                if found is not None:
                    break
                # Another process may be creating it in the same moment; then one of them fails.
                with suppress(psycopg.errors.IntegrityError, psycopg.errors.DuplicateTable):
                    self._create(plain)
            if found is None or not found.isdigit() or int(found) > sql.FORMAT:
                raise UnsupportedFormat(
                    f"{self.name} has format {found}, this Holdfast knows {sql.FORMAT}"
                )
            plain.execute(sql.FORGET_CLIENTS)

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
            # What was asked for is more than the server does by itself, and a session may ask.
            self._settings.append("SET synchronous_commit = on")
        self._durable = self._waits and fsync == "on"
        if self._waits and not self._durable:
            _log.warning(
                "%s runs with fsync = off: its commits do not survive a crash of its machine",
                self.name,
            )

    # --- sessions --------------------------------------------------------------------------------

    def session(self, space: bytes) -> "PostgresSession":
        return PostgresSession(self, space)

    def exclusive_session(self, space: bytes) -> "PostgresSession":
        return PostgresSession(self, space, exclusive=True)

    def take(self) -> Connection:
        return self._pool.take()

    def give_back(self, connection: Connection) -> None:
        self._pool.give_back(connection)

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        connection = self._pool.take()
        try:
            yield connection
        except Refused as error:
            raise self.explain(error) from error
        except BaseException:
            connection.broken = True
            raise
        finally:
            self._pool.give_back(connection)

    def register(self, space: bytes) -> None:
        """Sees to it that a space has its row, and that none is within another: the row is what
        its commits wait for."""
        if space in self._known_spaces:
            return
        with self.lent() as connection:
            connection.send(sql.FIND_SPACE, space)
            connection.sync()
            [[found]] = connection.exchange()
            if not found.ntuples:
                self._create_space(connection, space)
        if len(self._known_spaces) >= _KNOWN_SPACES:
            self._known_spaces.clear()
        self._known_spaces.add(space)

    def _create_space(self, connection: Connection, space: bytes) -> None:
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
                f"the space {space!r} and the space {other!r} lie one within the other",
                hint="Choose prefixes of which none begins with another.",
            )

    def settle(self, client: int, attempt: int) -> bool:
        """Returns whether a commit was made; if not, it can't be made any more after this."""
        with self.lent() as connection:
            connection.send(sql.GIVE_UP, INT8.pack(client), INT8.pack(attempt))
            connection.sync()
            connection.send(sql.GIVEN_UP, INT8.pack(client), INT8.pack(attempt))
            connection.sync()
            [_, [made]] = connection.exchange()
            return bool(made.ntuples)

    def is_time_to_clean(self, notice_bytes: int = 0) -> bool:
        """By chance, so that processes which make few commits do their share; larger notices are
        cleaned up more often."""
        chances = 1 + notice_bytes * _COMMITS_PER_CLEANING // KEPT_NOTICE_BYTES
        return random.randrange(_COMMITS_PER_CLEANING) < chances

    def explain(self, error: Refused) -> HoldfastError:
        """Returns the error to raise for an error of PostgreSQL."""
        if error.state in _NO_ROOM:
            return StoreFull(f"{self.name}: {error}")
        return StoreUnusable(f"{self.name}: {error} ({error.state})")

    # --- notices ---------------------------------------------------------------------------------

    def newest_notice(self) -> tuple[bytes, int]:
        with self.lent() as connection:
            connection.send(sql.NEWEST_NOTICE)
            connection.sync()
            [[newest]] = connection.exchange()
            return newest.get_value(0, 0), _int(newest.get_value(0, 1))

    def notices_since(self, place: tuple[bytes, int]) -> tuple[Any, int, list[Notice]]:
        snapshot, last = place
        with self.lent() as connection:
            connection.send(sql.NOTICES_SINCE, snapshot, INT8.pack(MAX_QUEUED_NOTICES + 1))
            connection.sync()
            [[found]] = connection.exchange()
        notices: list[Notice] = []
        oldest = found.get_value(0, 1)
        # With 0, there was no notice yet when the subscription began, and no number to compare.
        forgotten = max(0, _int(oldest) - last - 1) if oldest is not None and last else 0
        for number in range(1, found.ntuples):
            last = max(last, _int(found.get_value(number, 1)))
            notices += _NOTICES.decode(found.get_value(number, 2))
        return (found.get_value(0, 0), last), forgotten, notices

    def listen(self, wake: Callable[[], None], stopped: threading.Event) -> None:
        while not stopped.is_set():
            try:
                with connect(self._url) as plain:
                    plain.execute("LISTEN holdfast")
                    wake()  # what came while no one listened
                    while not stopped.is_set():
                        for _ in plain.notifies(timeout=0.1, stop_after=1):
                            wake()
            except (Unreachable, psycopg.Error):
                stopped.wait(_RETRY_PAUSE_SECONDS)

    # --- care ------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """A commit that waits for the disk makes all before it durable too."""
        if self._waits:
            return
        with self.lent() as connection:
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
        with self.lent() as connection:
            connection.send_sql(
                "SELECT count(*) FROM holdfast_data WHERE length(key) = 0 "
                f"OR length(key) > {rule.stored_bytes} "
                f"OR (length(key) >= {rule.whole} AND length(key) <> {rule.stored_bytes}) "
                "OR (value IS NULL) = (number IS NULL) OR length(value) = 8 OR version = 0"
            )
            connection.sync()
            [[bad]] = connection.exchange()
            if count := _int(bad.get_value(0, 0)):
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
        """`durable` is 1 if a commit is on the server's disk when it returns."""
        with self.lent() as connection:
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
            keys, pages = (_int(estimate.get_value(0, column)) for column in range(2))
            if pages < 10_000:  # few enough to be counted
                connection.send_sql("SELECT count(*) FROM holdfast_data")
                connection.sync()
                [[counted]] = connection.exchange()
                keys = _int(counted.get_value(0, 0))
        return {
            "keys": keys,
            "file_bytes": _int(size.get_value(0, 0)),
            "commits": _int(size.get_value(0, 1)),
            "durable": int(self._durable),
        }

    def close(self) -> None:
        self._pool.close()

    def forked(self) -> None:
        self._pool.forked()


class PostgresSession:
    """Takes a connection when it is first needed, and gives it back at its end."""

    def __init__(self, backend: PostgresBackend, space: bytes, *, exclusive: bool = False) -> None:
        self._backend = backend
        self._space = space
        self._exclusive = exclusive  # reads with the lock of the space in its hands
        self._connection: Connection | None = None
        self._reading = False
        self.committed = False

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[Page]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        if self._exclusive and not self._reading:
            self._backend.register(self._space)
        connection = self._taken()
        begun = 0 if self._reading else 1
        try:
            if not self._reading and self._exclusive:
                connection.enrol()
                begun = self._send_locks(connection)
            elif not self._reading:
                connection.send(sql.BEGIN_SNAPSHOT)
            if keys:
                connection.send(sql.GET, bytea_array(keys))
            for page in pages:
                connection.send(
                    sql.PAGE_BACK if page.reverse else sql.PAGE,
                    page.begin,
                    page.end,
                    INT8.pack(page.limit),
                )
            connection.sync()
            self._reading = True
            replies = connection.exchange()[-1]
        except Refused as error:
            connection.broken = True  # and with it the snapshot
            if error.state in _IN_THE_WAY:
                raise Conflicted from error
            raise self._backend.explain(error) from error
        except BaseException:
            connection.broken = True
            raise
        del replies[:begun]
        found = dict(_rows(replies.pop(0))) if keys else {}
        return [found.get(key) for key in keys], [_rows(reply) for reply in replies]

    def commit(self, commit: Commit) -> None:
        self._backend.register(self._space)
        connection = self._taken()
        connection.attempts += 1
        try:
            if self._reading and not self._exclusive:
                connection.send(sql.END_SNAPSHOT)
                connection.sync()
                self._reading = False
            if not self._reading:
                connection.enrol()
            self._send_commit(connection, commit)
            connection.exchange()
            self.committed = True
        except Refused as error:
            raise self._refusal(connection, error) from error
        except Unreachable as error:
            raise self._unsettled(connection) from error
        except BaseException as error:
            connection.broken = True
            if self.committed or not isinstance(error, KeyboardInterrupt):
                raise
            raise self._unsettled(connection) from error
        finally:
            self.close()

    def _send_commit(self, connection: Connection, commit: Commit) -> None:
        send = connection.send
        version = INT8.pack(_new_version())
        begun = self._reading or not commit.space  # the whole store has a BEGIN of its own
        if not self._reading and not commit.space:
            self._send_locks(connection)
        elif not self._reading:
            send(sql.LOCK_SPACE, commit.space)
        send(sql.MARK, INT8.pack(connection.id), INT8.pack(connection.attempts))
        if commit.keys:
            versions = [INT8.pack(version) for version in commit.keys.values()]
            send(sql.CHECK_KEYS, bytea_array(list(commit.keys)), int8_array(versions))
        for begin, end, seen in commit.ranges:
            versions = [INT8.pack(version) for version in seen]
            send(sql.CHECK_RANGE, begin, end, int8_array(versions), INT8.pack(len(seen) + 1))
        for begin, end in commit.clears:
            send(sql.CLEAR, begin, end)
        if commit.deletes:
            send(sql.DELETE, bytea_array(commit.deletes))
        for keys, values, numbers in _portions(commit.puts):
            send(sql.PUT, bytea_array(keys), bytea_array(values), int8_array(numbers), version)
        if commit.adds:
            deltas = [INT8.pack(delta) for delta in commit.adds.values()]
            send(sql.ADD, bytea_array(list(commit.adds)), int8_array(deltas), version)
        if commit.notices:
            noted = msgspec.msgpack.encode(commit.notices)
            send(sql.NOTICE, noted)
        if begun:
            send(sql.COMMIT)
        connection.sync()
        self._reading = False
        if begun:
            send(sql.ROLLBACK)  # where an error has left it open
            connection.sync()
        if commit.notices:
            send(sql.NOTIFY)
            connection.sync()
            if self._backend.is_time_to_clean(len(noted)):
                send(
                    sql.FORGET_NOTICES,
                    INT8.pack(KEPT_NOTICE_COMMITS),
                    INT8.pack(KEPT_NOTICE_BYTES),
                )
                connection.sync()

    def _send_locks(self, connection: Connection) -> int:
        """Begins a transaction that others wait for; returns how many statements that takes."""
        connection.send(sql.BEGIN)
        connection.send(sql.HURRY)
        if not self._space:
            connection.send(sql.LOCK_ALL)
        connection.send(sql.LOCK_SPACE, self._space)
        return 3 if self._space else 4

    def _refusal(self, connection: Connection, error: Refused) -> Exception:
        """Returns the error for a refused statement of the commit: nothing was applied."""
        if error.statement in (sql.ENROL, sql.MARK):
            connection.broken = True  # it was forgotten: a new one gets a new number
            return Unreachable(str(error))
        if error.statement in (sql.CHECK_KEYS, sql.CHECK_RANGE) or error.state in _IN_THE_WAY:
            return Conflicted()
        if error.statement is sql.ADD and error.state in _BAD_COUNTER:
            return AddRefused()
        return self._backend.explain(error)

    def _unsettled(self, connection: Connection) -> Unsettled:
        client, attempt = connection.id, connection.attempts
        return Unsettled(lambda: self._backend.settle(client, attempt))

    def _taken(self) -> Connection:
        if self._connection is None:
            self._connection = self._backend.take()
        return self._connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            if self._reading and not connection.broken:
                # The reply is read when the connection is used next.
                connection.send(sql.ROLLBACK if self._exclusive else sql.END_SNAPSHOT)
                connection.sync()
                connection.leave_behind()
        finally:
            self._reading = False
            self._backend.give_back(connection)


def _rows(reply: Reply) -> list[tuple[bytes, Row]]:
    value = reply.get_value
    unpack = INT8.unpack
    rows = []
    for number in range(reply.ntuples):
        content = value(number, 1)
        if content is None:
            content = value(number, 2)  # a number, in the very bytes of a counter
        rows.append((value(number, 0), Row(content, unpack(value(number, 3))[0])))
    return rows


def _portions(
    puts: dict[bytes, bytes],
) -> Iterator[tuple[list[bytes], list[bytes | None], list[bytes | None]]]:
    """The pairs in parts that fit a statement: keys, and for each a value or a number."""
    keys: list[bytes] = []
    values: list[bytes | None] = []
    numbers: list[bytes | None] = []
    size = 0
    for key, value in puts.items():
        if keys and size + len(value) > _STATEMENT_BYTES:
            yield keys, values, numbers
            keys, values, numbers, size = [], [], [], 0
        keys.append(key)
        is_number = len(value) == 8
        values.append(None if is_number else value)
        numbers.append(value if is_number else None)
        size += len(value) + len(key)
    if keys:
        yield keys, values, numbers


def _read_format(plain: psycopg.Connection[Any]) -> str | None:
    try:
        found = plain.execute(sql.READ_FORMAT).fetchone()
    except psycopg.Error as error:
        if error.sqlstate in _NOT_CREATED:
            return None
        raise StoreUnusable(str(error)) from error
    return None if found is None else str(found[0])


def _new_version() -> int:
    """A number that no other commit has: 63 random bits, and never 0."""
    return (int.from_bytes(os.urandom(8)) >> 1) or 1


def _int(value: Any) -> int:
    return int(INT8.unpack(value)[0])
