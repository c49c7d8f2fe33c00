"""Every statement that is sent to PostgreSQL, and the tables that they use.

holdfast_data    key -> value, or number if the value has 8 bytes; version: a number that no other
                 commit has, so a row with the same version has not been touched
holdfast_space   space -> commits; a commit in a space changes its row first, and so waits
                 for the one before
holdfast_client  id of a connection -> the last commit that it made or gave up
holdfast_notice  notices, one row for each commit that left any, until some thousand came after it
holdfast_meta    the format number

A commit is one call of a function (functions.py); the rest is plain SQL.
"""

from typing import Final, NamedTuple

from holdfast.engine.postgres.functions import CHANNEL, COMMIT_FUNCTION, REFUSED_SETTING

FORMAT: Final = 1

# Rows are changed in place where a page has space, without touching the index (HOT).
CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS holdfast_meta (name text PRIMARY KEY, value text NOT NULL)",
    "CREATE TABLE IF NOT EXISTS holdfast_data (key bytea PRIMARY KEY, value bytea, number int8, "
    "version int8 NOT NULL, CHECK ((value IS NULL) <> (number IS NULL))) WITH (fillfactor = 85)",
    "CREATE TABLE IF NOT EXISTS holdfast_space (space bytea PRIMARY KEY, commits int8 NOT NULL) "
    "WITH (fillfactor = 40)",
    "CREATE TABLE IF NOT EXISTS holdfast_client (id int8 PRIMARY KEY, last int8 NOT NULL, "
    "given_up bool NOT NULL, since timestamptz NOT NULL) WITH (fillfactor = 40)",
    "CREATE TABLE IF NOT EXISTS holdfast_notice (id int8 PRIMARY KEY GENERATED ALWAYS AS IDENTITY, "
    "xid xid8 NOT NULL DEFAULT pg_current_xact_id(), body bytea NOT NULL)",
    "CREATE INDEX IF NOT EXISTS holdfast_notice_xid ON holdfast_notice (xid)",
    f"INSERT INTO holdfast_meta VALUES ('format', '{FORMAT}') ON CONFLICT DO NOTHING",
)
# Small tables whose rows change with every commit are vacuumed early. Servers that lack these
# settings do without them.
TUNE: Final = tuple(
    f"ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0, "
    "autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0)"
    for table in ("holdfast_space", "holdfast_client", "holdfast_notice")
)
READ_FORMAT: Final = "SELECT value FROM holdfast_meta WHERE name = 'format'"

# Of a session. The planner has no choice to make here: every statement walks one index in order,
# and must not choose another plan because a table was empty at first.
SETTINGS: Final = (
    "SET default_transaction_isolation = 'read committed'",
    "SET lock_timeout = '10s'",
    "SET idle_in_transaction_session_timeout = 0",
    "SET statement_timeout = 0",
    "SET jit = off",
    "SET plan_cache_mode = force_generic_plan",
    "SET enable_seqscan = off",
    "SET enable_bitmapscan = off",
    "SET enable_hashjoin = off",
    "SET enable_mergejoin = off",
)


class Statement(NamedTuple):
    """A prepared statement."""

    name: bytes
    sql: bytes


def _prepared(name: str, sql: str) -> Statement:
    return Statement(f"holdfast_{name}".encode(), sql.encode())


_COMMIT_ARGUMENTS: Final = tuple(
    enumerate(
        (
            *("bytea", "bool", "bool"),  # space, locked, early
            *("int8", "int8", "int8"),  # client, attempt, version
            *("bytea[]", "int8[]"),  # keys that were read
            *("bytea[]", "bytea[]", "int8[]", "int8[]"),  # ranges that were read
            *("bytea[]", "bytea[]", "bytea[]"),  # ranges to clear, keys to delete
            *("bytea[]", "bytea[]", "int8[]"),  # pairs to put
            *("bytea[]", "int8[]", "bytea"),  # counters to add to, notices
            *("bool", "bytea[]"),  # what to return: keys
            *("bytea[]", "bytea[]", "int8[]", "int8[]", "bytea[]"),  # and pages
        ),
        start=1,
    )
)

# --- reading --------------------------------------------------------------------------------------

BEGIN_SNAPSHOT: Final = _prepared(
    "begin", "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
)
END_SNAPSHOT: Final = _prepared("end", "COMMIT")
GET: Final = _prepared(
    "get",
    "SELECT key, value, number, version FROM holdfast_data WHERE key = ANY($1::bytea[])",
)
# Whether something of what was visible before may not be on the disk yet; then one row, with how
# many commits the space has had. What is visible was in the log before this looks at its end.
_IS_UNSYNCED: Final = "pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn()"
_COMMITS: Final = "coalesce((SELECT commits FROM holdfast_space WHERE space = {}::bytea), -1)"
PENDING: Final = _prepared(
    "pending", f"SELECT NULL, NULL, {_COMMITS.format('$1')}, 0::int8 WHERE {_IS_UNSYNCED}"
)
# Both in one. The row of the second has no key.
GET_PENDING: Final = _prepared(
    "get_pending",
    "SELECT key, value, number, version FROM holdfast_data WHERE key = ANY($1::bytea[]) UNION ALL "
    f"SELECT NULL, NULL, {_COMMITS.format('$2')}, 0::int8 WHERE {_IS_UNSYNCED}",
)
PAGE: Final = _prepared(
    "page",
    "SELECT key, value, number, version FROM holdfast_data "
    "WHERE key >= $1::bytea AND key < $2::bytea ORDER BY key LIMIT $3::int8",
)
# The rows that those of a page name.
NAMED: Final = _prepared(
    "named",
    "SELECT d.key, d.value, d.number, d.version FROM (SELECT value FROM holdfast_data "
    "WHERE key >= $1::bytea AND key < $2::bytea ORDER BY key LIMIT $3::int8) AS named (name) "
    "JOIN holdfast_data AS d ON d.key = $4::bytea || named.name",
)
PAGE_BACK: Final = _prepared(
    "page_back",
    "SELECT key, value, number, version FROM holdfast_data "
    "WHERE key >= $1::bytea AND key < $2::bytea ORDER BY key DESC LIMIT $3::int8",
)

# --- a commit, in the order in which it is sent ---------------------------------------------------

# A commit in the whole store waits for those in any space, and they for it.
BEGIN: Final = _prepared("begin_commit", "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED")
# Waits for those that have one of these numbers, and keeps them to the end of the transaction. They
# are sorted, so that there are no deadlocks. A connection that makes others wait and then falls
# silent is cut off.
TAKE_TURN: Final = _prepared(
    "turn",
    "SELECT set_config('idle_in_transaction_session_timeout', '10s', true), "
    "(SELECT count(pg_advisory_xact_lock(number)) FROM unnest($1::int8[]) AS each (number))",
)
LOCK_ALL: Final = _prepared("lock_all", "LOCK TABLE holdfast_space IN EXCLUSIVE MODE")
LOCK_SPACE: Final = _prepared(
    "lock",
    "INSERT INTO holdfast_space (space, commits) VALUES ($1::bytea, 1) ON CONFLICT (space) "
    "DO UPDATE SET commits = holdfast_space.commits + 1",
)
CALL_COMMIT: Final = _prepared(
    "call_commit",
    f"SELECT {COMMIT_FUNCTION}("
    f"{', '.join(f'${number}::{kind}' for number, kind in _COMMIT_ARGUMENTS)})",
)
# For what is too much for one call: more pairs, in the transaction of the call before.
PUT: Final = _prepared(
    "put",
    "INSERT INTO holdfast_data (key, value, number, version) "
    "SELECT k, v, n, $4::int8 FROM unnest($1::bytea[], $2::bytea[], $3::int8[]) AS new (k, v, n) "
    "ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value, number = EXCLUDED.number, "
    "version = EXCLUDED.version",
)
COMMIT: Final = _prepared("commit", "COMMIT")
ROLLBACK: Final = _prepared("rollback", "ROLLBACK")

# After an early commit: returns when all that was committed before is on the disk. A transaction
# that writes to the log waits for it; one that finds nothing to wait for writes nothing. $1 is the
# number of the commit; if it was refused, there is nothing to do.
_UNLESS_REFUSED: Final = (
    f"WHERE {_IS_UNSYNCED} AND current_setting('{REFUSED_SETTING}', true) IS DISTINCT FROM $1::text"
)
FLUSH: Final = _prepared(
    "flush", f"SELECT pg_logical_emit_message(true, 'holdfast', '') {_UNLESS_REFUSED}"
)
# The same, sent under the same name, for PostgreSQL 17 and later: there the log can be written to
# and waited for without a transaction that gets a number and commits.
_FLUSHES_AT_ONCE_FROM: Final = 170_000
FLUSH_AT_ONCE: Final = _prepared(
    "flush", f"SELECT pg_logical_emit_message(false, 'holdfast', '', true) {_UNLESS_REFUSED}"
)
# After a commit that waits for the disk itself, in its own transaction: PostgreSQL lets those
# that notify commit one at a time, and they would wait for each other's disk.
NOTIFY: Final = _prepared("notify", f"SELECT pg_notify('{CHANNEL}', '')")
_FORGET: Final = (
    "DELETE FROM holdfast_notice WHERE id IN (SELECT id FROM holdfast_notice WHERE id {} "
    "ORDER BY id LIMIT 2000 FOR UPDATE SKIP LOCKED)"
)
FORGET_NOTICES: Final = _prepared(
    "forget", _FORGET.format("<= (SELECT max(id) FROM holdfast_notice) - $1::int8")
)
# Scans all of them, which takes long.
FORGET_LARGE_NOTICES: Final = _prepared(
    "forget_large",
    _FORGET.format(
        "< (SELECT max(id) FROM (SELECT id, sum(octet_length(body)) OVER (ORDER BY id DESC) "
        "AS bytes FROM holdfast_notice) AS each WHERE bytes > $1::int8)"
    ),
)

# --- what became of a commit ----------------------------------------------------------------------

ENROL: Final = _prepared(
    "enrol", "INSERT INTO holdfast_client VALUES ($1::int8, 0, false, current_timestamp)"
)
# Also for a connection that is not enrolled yet: that message may still be on its way, with the
# commit behind it. It then fails, and so does the commit.
GIVE_UP: Final = _prepared(
    "give_up",
    "INSERT INTO holdfast_client VALUES ($1::int8, $2::int8, true, current_timestamp) "
    "ON CONFLICT (id) DO UPDATE SET last = EXCLUDED.last, given_up = true "
    "WHERE holdfast_client.last < EXCLUDED.last",
)
WAS_APPLIED: Final = _prepared(
    "given_up",
    "SELECT 1 FROM holdfast_client WHERE id = $1::int8 AND last = $2::int8 AND NOT given_up",
)
# A connection enrols again, under a new number, long before that: otherwise its row could be
# removed between a commit and the question about it.
ENROLLED_SECONDS: Final = 86_400.0
FORGET_CLIENTS: Final = (
    "DELETE FROM holdfast_client WHERE since < current_timestamp - interval '7 days'"
)

# --- spaces ---------------------------------------------------------------------------------------

FIND_SPACE: Final = _prepared("find", "SELECT 1 FROM holdfast_space WHERE space = $1::bytea")
CHECK_SPACE: Final = _prepared(
    "check_space",
    "SELECT space FROM holdfast_space WHERE space = ANY($1::bytea[]) "
    "OR (space > $2::bytea AND space < $3::bytea) LIMIT 1",
)

# --- notices --------------------------------------------------------------------------------------

NEWEST_NOTICE: Final = _prepared(
    "newest",
    "SELECT pg_current_snapshot()::text, coalesce((SELECT max(id) FROM holdfast_notice), 0)",
)
# One statement, hence one snapshot: the one that it returns is the one that it reads.
NOTICES_SINCE: Final = _prepared(
    "since",
    "SELECT pg_current_snapshot()::text, (SELECT min(id) FROM holdfast_notice), NULL::bytea "
    "UNION ALL (SELECT NULL, id, body FROM holdfast_notice "
    "WHERE xid >= pg_snapshot_xmin($1::text::pg_snapshot) "
    "AND NOT pg_visible_in_snapshot(xid, $1::text::pg_snapshot) ORDER BY id LIMIT $2::int8)",
)

# --- maintenance ----------------------------------------------------------------------------------

LONG_KEYS: Final = (
    "SELECT key, value FROM holdfast_data WHERE length(key) >= {whole} AND key > $1::bytea "
    "ORDER BY key LIMIT 500"
)
# Fails on servers that hide their log, such as those that only resemble PostgreSQL.
CAN_FLUSH: Final = (
    f"SELECT {_IS_UNSYNCED}, pg_logical_emit_message(true, 'holdfast', ''), "
    "current_setting('synchronous_standby_names') = ''"
)
TOUCH: Final = "UPDATE holdfast_meta SET value = value WHERE name = 'format'"

# Prepared only where CAN_FLUSH is true.
_FLUSHING: Final = (PENDING, GET_PENDING, FLUSH, FLUSH_AT_ONCE)
_PREPARED: Final = tuple(
    statement
    for statement in list(globals().values())
    if isinstance(statement, Statement) and statement not in _FLUSHING
)


def prepared_for(server_version: int, *, flushes: bool) -> tuple[Statement, ...]:
    """Returns the statements to prepare on a server, by its version as libpq gives it."""
    if not flushes:
        return _PREPARED
    flush = FLUSH_AT_ONCE if server_version >= _FLUSHES_AT_ONCE_FROM else FLUSH
    return (*_PREPARED, PENDING, GET_PENDING, flush)
