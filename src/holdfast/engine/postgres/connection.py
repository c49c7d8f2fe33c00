"""A connection that sends several statements at once and reads all replies together.

It uses libpq's pipeline mode itself: psycopg's cursors would cost more than the statements.
Parameters and results are binary, and all parameters are bytes.
"""

import os
import select
import struct
import time
from collections.abc import Collection, Sequence
from typing import Any, Final

import psycopg
from psycopg import pq

from holdfast.engine.postgres import statements
from holdfast.engine.postgres.statements import Statement
from holdfast.engine.remote import ConnectionLost
from holdfast.errors import BadInput
from holdfast.limits import POSTGRES_PROBE_SECONDS, POSTGRES_SILENT_SECONDS

_BYTEA: Final = 17
_INT8: Final = 20
_ARRAY: Final = struct.Struct(">iiIii")
_LENGTH: Final = struct.Struct(">i")
_NULL: Final = _LENGTH.pack(-1)
_EIGHT: Final = _LENGTH.pack(8)
_pack_item: Final = struct.Struct(">iq").pack  # of an int8[]: its length and value
_MAX_SHORT: Final = 256
_LENGTHS: Final = [_LENGTH.pack(length) for length in range(_MAX_SHORT)]
NO_KEYS: Final = struct.pack(">iiI", 0, 0, _BYTEA)  # arrays
NO_NUMBERS: Final = struct.pack(">iiI", 0, 0, _INT8)
INT8: Final = struct.Struct(">q")
INT4: Final = struct.Struct(">i")

Reply = Any  # a pq.PGresult: rows, or the count of what was changed

# As plain numbers, which are faster to compare than the members of an enum.
_BINARY: Final = int(pq.Format.BINARY)
_ALL_BINARY: Final = [(_BINARY,) * count for count in range(32)]  # for so many parameters
_SYNC: Final = int(pq.ExecStatus.PIPELINE_SYNC)
_FATAL: Final = int(pq.ExecStatus.FATAL_ERROR)
_CONNECTED: Final = int(pq.ConnStatus.OK)

# A host that vanishes is noticed after some seconds, not hours.
_CONNECTION_OPTIONS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "5",
    "tcp_user_timeout": "15000",
    "target_session_attrs": "read-write",
    "application_name": "holdfast",
}

_SILENT_MS: Final = int(POSTGRES_SILENT_SECONDS * 1_000)

# The server or its connection is gone, or the server has become read-only.
_CONNECTION_LOST: Final = ("08", "57P", "25006")


class StatementRefused(Exception):
    """The server has refused a statement of a batch: nothing of the batch is kept."""

    def __init__(self, statement: Statement | None, state: str, message: str) -> None:
        super().__init__(message)
        self.statement = statement
        self.state = state  # the five characters of SQLSTATE


def connect(url: str, *, autocommit: bool = True) -> psycopg.Connection[Any]:
    """Returns a plain connection of psycopg, or raises `ConnectionLost`."""
    unreadable = BadInput(
        "the URL of PostgreSQL can't be read",
        hint="Write postgresql://user:password@host:port/database?option=value, and in a password "
        "%2F for / and %40 for @.",
    )
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise unreadable from None  # the error may repeat the URL, and with it a password
    # The rest of a password with an `@` or a `/`, which errors of connecting would repeat.
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    if "@" in path or "@" in str(given.get("host", "")):
        raise unreadable
    options = {name: value for name, value in _CONNECTION_OPTIONS.items() if name not in given}
    try:
        return psycopg.connect(url, autocommit=autocommit, **options)  # type: ignore[arg-type]
    except psycopg.Error as error:
        raise ConnectionLost(str(error).strip()) from error


class PostgresConnection:
    """One session on the server. `send` and `sync` queue statements, and `exchange` runs them."""

    def __init__(self, url: str, settings: Sequence[str]) -> None:
        self.id = _new_id()  # names this connection in its commits
        self.attempts = 0  # the number of the last commit
        self.generation = 0  # for the pool
        self.broken = False
        self.enrolled_until = 0.0  # 0: it is not enrolled
        self._url = url
        self._psycopg = connect(url)
        self._pq = self._psycopg.pgconn
        self._poll = select.poll()
        self._socket = self._pq.socket
        self._sent: list[list[Statement | None]] = [[]]  # in each batch, up to its sync
        self._unread_batches = 0  # batches whose replies no one waits for
        try:
            self._pq.enter_pipeline_mode()
            for setting in settings:
                self._pq.send_query_params(setting.encode(), None)
                self._sent[-1].append(None)
                self.sync()
            self.exchange(strict=False)  # a server that is not PostgreSQL may not know them all
        except BaseException:
            self.close()
            raise

    def prepare(self, prepared: Sequence[Statement]) -> None:
        """Prepares statements. Costs 1 round trip."""
        for statement in prepared:
            self._pq.send_prepare(statement.name, statement.sql)
            self._sent[-1].append(statement)
        self.sync()
        self.exchange()

    def enrol(self) -> None:
        """Registers this connection, so that the outcome of its commits can be asked for later;
        sent together with the next statements. For a day, further calls do nothing."""
        now = time.monotonic()
        if now < self.enrolled_until:
            return
        if self.enrolled_until:
            self.id = _new_id()
        self.send(statements.ENROL, INT8.pack(self.id))
        self.sync()
        self.enrolled_until = now + statements.ENROLLED_SECONDS

    def send(self, statement: Statement, *parameters: bytes | None) -> None:
        try:
            self._pq.send_query_prepared(
                statement.name, parameters, _ALL_BINARY[len(parameters)], _BINARY
            )
        except psycopg.Error as error:
            raise self._lost(error) from error
        self._sent[-1].append(statement)

    def send_sql(self, sql: str, *parameters: bytes) -> None:
        """Sends a rarely used statement without preparing it."""
        try:
            self._pq.send_query_params(
                sql.encode(),
                parameters,
                None,
                _ALL_BINARY[len(parameters)],
                _BINARY,
            )
        except psycopg.Error as error:
            raise self._lost(error) from error
        self._sent[-1].append(None)

    def sync(self) -> None:
        """Ends a batch, which is a transaction unless it has a BEGIN or COMMIT of its own."""
        try:
            self._pq.pipeline_sync()
        except psycopg.Error as error:
            raise self._lost(error) from error
        self._sent.append([])

    @property
    def batch(self) -> list[Statement | None]:
        """Returns the statements that were sent since the last sync."""
        return self._sent[-1]

    @property
    def has_failed(self) -> bool:
        """Returns whether an error has left a transaction open, which has to be ended. Known once
        all replies are read."""
        return bool(self._pq.transaction_status == pq.TransactionStatus.INERROR)

    def send_without_waiting(self) -> None:
        """Sends what was synced, and does not wait for the reply."""
        try:
            self._pq.flush()
        except psycopg.Error as error:
            raise self._lost(error) from error
        self._unread_batches = len(self._sent) - 1

    def exchange(self, *, strict: bool = True) -> list[list[Reply]]:
        """Sends all that was synced, and returns the replies of each batch. The first error is
        raised, once all replies are read; those in batches that were left behind are ignored.
        Costs 1 round trip."""
        unread = self._unread_batches
        batches, self._sent = self._sent[:-1], self._sent[-1:]
        self._unread_batches = 0
        replies: list[list[Reply]] = []
        refused: StatementRefused | None = None
        try:
            self._flush()
            for number, batch in enumerate(batches):
                results, has_failed = self._read_batch()
                replies.append(results)
                if has_failed and refused is None and strict and number >= unread:
                    refused = _first_refusal(batch, results)
        except psycopg.Error as error:
            raise self._lost(error) from error
        except BaseException:
            self.broken = True  # interrupted: the next bytes may belong to any reply
            raise
        if refused is not None:
            if refused.state.startswith(_CONNECTION_LOST):
                self.broken = True
                raise ConnectionLost(str(refused)) from refused
            raise refused
        return replies[unread:]

    def _flush(self) -> None:
        flush = self._pq.flush
        while flush():
            # The server may have to send its replies before it reads on.
            self._wait(select.POLLIN | select.POLLOUT)

    def _read_batch(self) -> tuple[list[Reply], bool]:
        """Returns the replies up to a sync, and whether one of them is an error."""
        connection = self._pq
        is_busy, get_result = connection.is_busy, connection.get_result
        results: list[Reply] = []
        has_failed = False
        while True:
            while is_busy():
                self._wait(select.POLLIN)
            result = get_result()
            if result is None:
                if connection.status != _CONNECTED:
                    raise psycopg.OperationalError(connection.get_error_message())
                continue
            status = result.status
            if status == _SYNC:
                return results, has_failed
            results.append(result)
            if status == _FATAL:
                has_failed = True
                if connection.status != _CONNECTED:
                    raise psycopg.OperationalError(result.get_error_message())

    def _wait(self, what: int) -> None:
        self._poll.register(self._socket, what)
        while not (events := self._poll.poll(_SILENT_MS)):
            self._refuse_dead_server()
        if events[0][1] & ~select.POLLOUT:
            self._pq.consume_input()

    def _refuse_dead_server(self) -> None:
        """Raises if the server does not answer a new connection either. One that is stopped keeps
        its connections, and its kernel confirms what they send. A long statement is no failure."""
        at = self._psycopg.info
        place: dict[str, Any] = {"host": at.host, "port": at.port}
        if at.hostaddr:
            place["hostaddr"] = at.hostaddr
        try:
            psycopg.connect(self._url, connect_timeout=POSTGRES_PROBE_SECONDS, **place).close()
        except psycopg.errors.ConnectionTimeout as error:
            silent = POSTGRES_SILENT_SECONDS + POSTGRES_PROBE_SECONDS
            raise psycopg.OperationalError(f"no answer for {silent:g} seconds") from error
        except psycopg.Error:
            return  # it was answered: there may be too many connections

    def _lost(self, error: Exception) -> ConnectionLost:
        self.broken = True
        return ConnectionLost(str(error).strip() or "the connection was lost")

    @property
    def server_version(self) -> int:
        """Returns the version as libpq gives it: 170002 for 17.2."""
        return int(self._pq.server_version)

    def close(self) -> None:
        self.broken = True
        self._psycopg.close()


def _new_id() -> int:
    return int.from_bytes(os.urandom(8)) >> 1


def _first_refusal(batch: list[Statement | None], results: list[Reply]) -> StatementRefused | None:
    """Returns the first error among the replies of a batch."""
    for statement, result in zip(batch, results, strict=False):
        if result.status == _FATAL:
            state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
            return StatementRefused(statement, state.decode(), result.get_error_message().strip())
    return None


def bytea_array(values: Collection[bytes | None]) -> bytes | None:
    """Returns a parameter of the type bytea[], which is NULL if there are no values."""
    if not values:
        return None
    parts = [_ARRAY.pack(1, None in values, _BYTEA, len(values), 1)]
    append = parts.append
    for value in values:
        if value is None:
            append(_NULL)
        else:
            length = len(value)
            append(_LENGTHS[length] if length < _MAX_SHORT else _LENGTH.pack(length))
            append(value)
    return b"".join(parts)


def int8_array(values: Collection[int]) -> bytes | None:
    """Returns a parameter of the type int8[], which is NULL if there are no values."""
    if not values:
        return None
    head = _ARRAY.pack(1, 0, _INT8, len(values), 1)
    return head + b"".join([_pack_item(8, value) for value in values])


def counter_array(values: Sequence[bytes | None]) -> bytes:
    """Returns a parameter of the type int8[], of numbers as 8 bytes each."""
    parts = [_ARRAY.pack(1, None in values, _INT8, len(values), 1)]
    parts += [_NULL if value is None else _EIGHT + value for value in values]
    return b"".join(parts)
