"""A session reads a snapshot and commits, each in as few round trips as possible."""

import os
import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.engine.late_interrupts import Interrupt
from holdfast.engine.postgres import functions
from holdfast.engine.postgres import statements as sql
from holdfast.engine.postgres.connection import (
    INT4,
    INT8,
    NO_KEYS,
    NO_NUMBERS,
    PostgresConnection,
    Reply,
    StatementRefused,
    bytea_array,
    counter_array,
    int8_array,
)
from holdfast.engine.remote import (
    AddRefused,
    Commit,
    Committed,
    Conflicted,
    ConnectionLost,
    RangeRead,
    Refreshed,
    Row,
    Unsettled,
    new_row,
)

if TYPE_CHECKING:
    from holdfast.engine.postgres.backend import PostgresBackend

_STATEMENT_BYTES: Final = 16 * 1024 * 1024  # of pairs in one statement; a message ends at 1 GB
_BAD_COUNTER: Final = {"22003", "23514"}  # out of range; neither a value nor a number
_CONFLICT_STATES: Final = {"40001", "40P01", "55P03", functions.CONFLICT_STATE}
_TRUE, _FALSE = b"\1", b"\0"
_unpack_made: Final = struct.Struct(">xqq").unpack  # the number of commits, and of listeners
_ROW_HEAD: Final = struct.Struct(">iqi")  # part, version, and the length of the key
Parameters = tuple[bytes | None, ...]

_NONE: Final[Parameters] = (None, None)
_NO_PAGES: Final[Parameters] = (None,) * 5
_NOTHING_READ: Final[Parameters] = (None,) * 6
_NOTHING_ASKED: Final[Parameters] = (_FALSE, *(None,) * 6)


class PostgresSession:
    """Takes a connection when one is first needed, and gives it back at the end."""

    place: Any = None  # every row has a version of its own
    follows = True

    def __init__(
        self,
        backend: "PostgresBackend",
        space: bytes,
        *,
        exclusive: bool = False,
        contended: Sequence[bytes] = (),
    ) -> None:
        self._backend = backend
        self._space = space
        self._exclusive = exclusive  # reads while it holds the lock of the space
        self._contended = contended  # waits its turn for these, and reads in the same transaction
        self._waits = exclusive or bool(contended)
        self._statements = (
            0  # fetches so far; each reads its own moment if the session waits its turn
        )
        self._connection: PostgresConnection | None = None
        self._reading = False
        self._pending: int | None = None  # commits of the space, if they may not be on the disk yet
        self.committed = False

    # --- reading ---------------------------------------------------------------------------------

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        if self._waits and not self._reading:
            self._backend.register(self._space).note_others()
        return self._fetch(keys, pages, keeps=True)

    def fetch_once(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        return self._fetch(keys, pages, keeps=False)

    def _fetch(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead], *, keeps: bool
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        """Reads everything in one round trip, and keeps the snapshot if `keeps` is true."""
        connection = self._taken()
        # A single statement sees one moment by itself.
        begins = not self._reading and (keeps or len(pages) + bool(keys) > 1)
        begun = int(begins)
        try:
            if begins and self._waits:
                connection.enrol()
                begun = self._send_locks(connection)
            elif begins:
                connection.send(sql.BEGIN_SNAPSHOT)
            looks = self._backend.flushes and not self._reading
            if keys and looks:
                connection.send(sql.GET_PENDING, bytea_array(keys), self._space)
            elif keys:
                connection.send(sql.GET, bytea_array(keys))
            for page in pages:
                bounds = (page.begin, page.end, INT8.pack(page.limit))
                if page.follow:
                    connection.send(sql.NAMED, *bounds, page.follow)
                else:
                    connection.send(sql.PAGE_BACK if page.reverse else sql.PAGE, *bounds)
            if looks and not keys:
                connection.send(sql.PENDING, self._space)
            if begins and not keeps:
                connection.send(sql.END_SNAPSHOT)
            connection.sync()
            self._reading = keeps
            replies = connection.exchange()[-1]
        except StatementRefused as error:
            connection.broken = True  # which loses the snapshot too
            if error.state in _CONFLICT_STATES:
                raise Conflicted from error
            raise self._backend.explain(error) from error
        except BaseException:
            connection.broken = True
            raise
        del replies[:begun]
        self._statements += len(pages) + bool(keys)
        if looks:
            self._pending = _pending(replies[0 if keys else len(pages)])
        found = dict(_rows(replies.pop(0))) if keys else {}
        contents = [_rows(reply) for reply in replies[: len(pages)]]
        return [found.get(key) for key in keys], contents

    def confirm(self) -> None:
        if self._contended and not self._exclusive and self._statements > 1:
            raise Conflicted
        if self._pending is not None:
            self._backend.flush(self._space, self._pending)
            self._pending = None

    def _send_locks(self, connection: PostgresConnection) -> int:
        """Begins a transaction that others wait for; returns how many statements that takes."""
        begun = len(connection.batch)
        connection.send(sql.BEGIN)
        connection.send(sql.TAKE_TURN, int8_array(sorted(map(_turn_of, self._contended))))
        if self._exclusive:
            if not self._space:
                connection.send(sql.LOCK_ALL)
            connection.send(sql.LOCK_SPACE, self._space)
        return len(connection.batch) - begun

    # --- committing ------------------------------------------------------------------------------

    def commit(self, commit: Commit) -> Committed:
        made = self._exchange_commit(commit, _NOTHING_ASKED)
        assert isinstance(made, Committed)  # a refusal was raised
        return made

    def try_commit(
        self, commit: Commit, keys: Sequence[bytes], pages: Sequence[RangeRead], place: Any
    ) -> Committed | Refreshed:
        asked = (
            _TRUE,
            # Usually they are the keys that are checked.
            None if keys == list(commit.keys) else bytea_array(keys) or NO_KEYS,
            *(_page_parameters(pages) if pages else _NO_PAGES),
        )
        answer = self._exchange_commit(commit, asked)
        return answer if isinstance(answer, Committed) else _refreshed(answer, keys, pages)

    def _exchange_commit(self, commit: Commit, asked: Parameters) -> Committed | bytes:
        """Sends a commit; returns what it made, or the answer with the current rows if refused."""
        known = self._backend.register(self._space)
        connection = self._taken()
        connection.attempts += 1
        version = _new_version()
        try:
            if self._reading and not self._waits:
                connection.send(sql.END_SNAPSHOT)
                connection.sync()
                self._reading = False
            connection.enrol()
            early = self._backend.releases_before_sync(known)
            noted = msgspec.msgpack.encode(commit.notices) if commit.notices else None
            answer = self._send_commit(connection, commit, version, noted, asked, early)
            if answer[0] != functions.MADE:
                self._pending = -1 if self._backend.flushes else None
                return answer
            self.committed = True
            commits, listeners = _unpack_made(answer)
            known.note_commit(None if commits < 0 else commits)
            # Each in a transaction that nobody waits for, and only after a commit that was made: in
            # a transaction that was refused, every statement fails but its end.
            if listeners and not early:
                connection.send(sql.NOTIFY)
                connection.sync()
                connection.send_without_waiting()
            if noted is not None:
                self._backend.clean_some(connection, len(noted))
            return Committed(version)
        except StatementRefused as error:
            raise self._refusal(connection, error, commit) from error
        except ConnectionLost as error:
            raise self._unsettled(connection) from error
        except BaseException as error:
            connection.broken = True
            if self.committed:
                raise
            raise self._unsettled(connection, error) from error
        finally:
            self.close()

    def _send_commit(
        self,
        connection: PostgresConnection,
        commit: Commit,
        version: int,
        noted: bytes | None,
        asked: Parameters,
        early: bool,
    ) -> bytes:
        """Sends a commit and what follows it, and returns the answer of the function."""
        send = connection.send
        # A commit on guesses is small.
        portions = _portions(commit.puts) if asked is _NOTHING_ASKED else [commit.puts]
        flushes = early and self._backend.flushes
        begun = self._reading or flushes or len(portions) > 1
        if begun and not self._reading:
            send(sql.BEGIN)
        place = len(connection.batch)
        send(
            sql.CALL_COMMIT,
            commit.space,
            _TRUE if self._reading and self._exclusive else _FALSE,
            _TRUE if early else _FALSE,
            INT8.pack(connection.id),
            INT8.pack(connection.attempts),
            INT8.pack(version),
            *self._checks(commit),
            *_writes(commit, portions[0]),
            noted,
            *asked,
        )
        for pairs in portions[1:]:
            send(sql.PUT, *_pairs(pairs), INT8.pack(version))
        if begun:
            send(sql.COMMIT)
        # In one batch with the commit, so that the server answers both together.
        if flushes:
            send(sql.FLUSH, b"%d" % connection.attempts)
        connection.sync()
        self._reading = False
        answer: bytes = connection.exchange()[-1][place].get_value(0, 0)
        return answer

    def _checks(self, commit: Commit) -> Parameters:
        """Returns what was read, to be checked; nothing if the session holds the lock of the
        space."""
        if self._reading and self._exclusive:
            return _NOTHING_READ
        keys = bytea_array(commit.keys), int8_array(commit.keys.values())
        if not commit.ranges:
            return (*keys, None, None, None, None)
        stops, versions = [0], []
        for walked in commit.ranges:
            versions += walked.versions
            stops.append(len(versions))
        return (
            *keys,
            bytea_array([walked.begin for walked in commit.ranges]),
            bytea_array([walked.end for walked in commit.ranges]),
            int8_array(stops),
            int8_array(versions) or NO_NUMBERS,
        )

    def _refusal(
        self, connection: PostgresConnection, error: StatementRefused, commit: Commit
    ) -> Exception:
        """Returns the error for a refused statement of the commit: nothing was applied, unless it
        was the wait for the disk."""
        if error.statement is sql.FLUSH:
            return self._unsettled(connection)
        if connection.has_failed:
            connection.send(sql.ROLLBACK)
            connection.sync()
            connection.send_without_waiting()
        if error.statement is sql.ENROL or error.state == functions.FORGOTTEN_STATE:
            connection.broken = True  # it was forgotten: a new one gets a new number
            return ConnectionLost(str(error))
        if error.state in _CONFLICT_STATES:
            return Conflicted()
        if commit.adds and error.state in _BAD_COUNTER:
            return AddRefused()
        return self._backend.explain(error)

    def _unsettled(self, connection: PostgresConnection, interrupt: Interrupt = None) -> Unsettled:
        client, attempt = connection.id, connection.attempts
        return Unsettled(lambda: self._backend.settle(client, attempt), interrupt)

    def _taken(self) -> PostgresConnection:
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
                connection.send(sql.ROLLBACK if self._waits else sql.END_SNAPSHOT)
                connection.sync()
                connection.send_without_waiting()
        finally:
            self._reading = False
            self._backend.give_back(connection)


def _rows(reply: Reply) -> list[tuple[bytes, Row]]:
    """Returns the rows of a reply."""
    value = reply.get_value
    unpack = INT8.unpack
    rows = []
    for number in range(reply.ntuples):
        key = value(number, 0)
        if key is None:  # it holds other information
            continue
        content = value(number, 1)
        if content is None:
            content = value(number, 2)  # a number, in the bytes of a counter
        rows.append((key, new_row((content, unpack(value(number, 3))[0]))))
    return rows


def _pending(reply: Reply) -> int | None:
    """Returns the number in the row which says that some commits may not be on the disk yet."""
    last = reply.ntuples - 1
    if last < 0 or reply.get_value(last, 0) is not None:
        return None
    return int(INT8.unpack(reply.get_value(last, 2))[0])


def _refreshed(answer: bytes, keys: Sequence[bytes], pages: Sequence[RangeRead]) -> Refreshed:
    """Returns the rows in the answer to a refused commit, each with the read that it answers."""
    found: dict[bytes, Row] = {}
    contents: list[list[tuple[bytes, Row]]] = [[] for _ in pages]
    at = 1
    while at < len(answer):
        part, version, length = _ROW_HEAD.unpack_from(answer, at)
        at += _ROW_HEAD.size
        key = answer[at : at + length]
        at += length
        [length] = INT4.unpack_from(answer, at)
        at += INT4.size
        length = length if length >= 0 else INT8.size  # a number, in the bytes of a counter
        row = new_row((answer[at : at + length], version))
        at += length
        if part == functions.KEYS_PART:
            found[key] = row
        else:
            contents[part - 1].append((key, row))
    for page, content in zip(pages, contents, strict=True):
        content.sort(reverse=page.reverse)
    return Refreshed([found.get(key) for key in keys], contents)


def _page_parameters(pages: Sequence[RangeRead]) -> Parameters:
    return (
        bytea_array([page.begin for page in pages]),
        bytea_array([page.end for page in pages]),
        int8_array([page.limit for page in pages]),
        int8_array([page.reverse for page in pages]),
        bytea_array([page.follow or None for page in pages])
        if any(page.follow for page in pages)
        else None,
    )


def _writes(commit: Commit, puts: dict[bytes, bytes]) -> Parameters:
    clears = commit.clears
    return (
        bytea_array([begin for begin, _ in clears]) if clears else None,
        bytea_array([end for _, end in clears]) if clears else None,
        bytea_array(commit.deletes),
        *_pairs(puts),
        *((bytea_array(commit.adds), int8_array(commit.adds.values())) if commit.adds else _NONE),
    )


def _pairs(puts: dict[bytes, bytes]) -> Parameters:
    """Returns keys, and for each a value or a number."""
    values = list(puts.values())
    if 8 not in map(len, values):
        return bytea_array(puts), bytea_array(values), None
    return (
        bytea_array(puts),
        bytea_array([None if len(value) == 8 else value for value in values]),
        counter_array([value if len(value) == 8 else None for value in values]),
    )


def _portions(puts: dict[bytes, bytes]) -> list[dict[bytes, bytes]]:
    """Returns the pairs in parts that fit a statement."""
    if sum(map(len, puts.values())) + sum(map(len, puts)) <= _STATEMENT_BYTES:
        return [puts]
    portions: list[dict[bytes, bytes]] = [{}]
    size = 0
    for key, value in puts.items():
        if portions[-1] and size + len(value) > _STATEMENT_BYTES:
            portions.append({})
            size = 0
        portions[-1][key] = value
        size += len(value) + len(key)
    return portions


def _turn_of(key: bytes) -> int:
    """Returns the number of the advisory lock for a contended key. Two keys that share one wait for
    each other, and nothing else."""
    digest = blake2b(key, digest_size=8, person=b"holdfast").digest()
    return int(INT8.unpack(digest)[0])


def _new_version() -> int:
    """Returns a number that no other commit has: 63 random bits, and never 0."""
    return (int.from_bytes(os.urandom(8)) >> 1) or 1
