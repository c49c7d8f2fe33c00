"""The function that commits inside PostgreSQL, in one statement and one round trip.

It waits for the commits of its space, checks what was read, and applies what was written. A check
that fails is an error, which undoes everything; or, if `asked` is true, an answer: the rows that
the caller has requested, as they are while no one else can commit to the space.

An answer is one string of bytes, because PostgreSQL fills a table and reads it back even for one
row. It begins with MADE or REFUSED.

With `early` the commit does not wait for the disk itself, so that the next one of the space need
not wait for it either: the statement after it does (statements.FLUSH), before the caller returns.

Its arrays are NULL where they would be empty: PL/pgSQL expands each array that it is given, which
for a dozen empty ones takes as long as a write.

Its name ends with a number that changes with it: processes of two versions of Holdfast may use one
store, each its own function, and both wait for the same row of holdfast_space.
"""

from typing import Final

COMMIT_FUNCTION: Final = "holdfast_commit_5"

# The SQLSTATEs of its own errors.
CONFLICT_STATE: Final = "HF001"  # something that was read has changed
FORGOTTEN_STATE: Final = "HF002"  # the row of the connection is gone, or says that it was given up

CHANNEL: Final = "holdfast"  # wakes those who listen for notices
REFUSED_SETTING: Final = "holdfast.refused"  # of a session: the number of its last refused commit

# Listeners hold this advisory lock in shared mode: a commit that could take it exclusively has
# nobody to wake.
LISTENERS_LOCK: Final = int.from_bytes(b"holdfast") >> 1

# After MADE: how many commits the space has had, or -1 if the caller had locked it; and 1 if
# someone listens, or 0. Both are int8.
MADE: Final = 1
# After REFUSED: rows, in no particular order. Each has its part (int4: KEYS_PART, or the number of
# the scan, from 1 on), its version (int8), the length of its key (int4), the key, the length of its
# value (int4), and the value; for a number the length is -1, and 8 bytes follow.
REFUSED: Final = 0
KEYS_PART: Final = 0
# A longer answer is refused as if nothing had been requested: a bytea has at most 1 GB.
MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024

_REFUSE: Final = (
    f"RAISE EXCEPTION USING ERRCODE = '{CONFLICT_STATE}', MESSAGE = 'what was read has changed'"
)


def _add_rows(part: str, source: str) -> str:
    """Returns the statements that add the rows of `source` to the answer."""
    row = (
        f"int4send({part}) || int8send(d.version) || int4send(length(d.key)) || d.key || "
        "coalesce(int4send(length(d.value)) || d.value, int4send(-1) || int8send(d.number))"
    )
    return f"""value_bytes := value_bytes +
        (SELECT coalesce(sum(octet_length(d.value)), 0) FROM {source});
      IF value_bytes > {MAX_ANSWER_BYTES} THEN
        {_REFUSE};
      END IF;
      answer := answer || coalesce((SELECT string_agg({row}, '') FROM {source}), '');"""


_ASKED_KEYS: Final = "holdfast_data AS d WHERE d.key = ANY(coalesce(ask_keys, read_keys))"
_PAGE: Final = (
    "(SELECT e.* FROM holdfast_data AS e WHERE e.key >= ask_begins[i] AND e.key < ask_ends[i] "
    "ORDER BY e.key {} LIMIT ask_limits[i])"
)
_NAMED: Final = (
    f"{_PAGE.format('')} AS named JOIN holdfast_data AS d ON d.key = ask_follow[i] || named.value"
)

CREATE_COMMIT: Final = f"""
CREATE OR REPLACE FUNCTION {COMMIT_FUNCTION}(
  the_space bytea, is_locked bool, early bool, client int8, attempt int8, new_version int8,
  read_keys bytea[], read_versions int8[],
  range_begins bytea[], range_ends bytea[], range_stops int8[], range_versions int8[],
  clear_begins bytea[], clear_ends bytea[], gone bytea[],
  put_keys bytea[], put_values bytea[], put_numbers int8[],
  add_keys bytea[], add_numbers int8[], noted bytea,
  asked bool, ask_keys bytea[],
  ask_begins bytea[], ask_ends bytea[], ask_limits int8[], ask_reverse int8[], ask_follow bytea[]
) RETURNS bytea
LANGUAGE plpgsql AS $body$
DECLARE
  is_right bool := true;
  answer bytea := '\\x{REFUSED:02x}';
  value_bytes int8 := 0;  -- in the answer
  commits_now int8 := -1;
  listeners int8 := 0;  -- 1 if there are any
BEGIN
  -- Where replicas are waited for, what they have not confirmed stays invisible.
  IF early AND current_setting('synchronous_standby_names') = '' THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  IF NOT is_locked THEN
    IF length(the_space) = 0 THEN
      LOCK TABLE holdfast_space IN EXCLUSIVE MODE;
    END IF;
    UPDATE holdfast_space SET commits = commits + 1 WHERE space = the_space
      RETURNING commits INTO commits_now;
    IF NOT FOUND THEN
      INSERT INTO holdfast_space (space, commits) VALUES (the_space, 1)
        ON CONFLICT (space) DO UPDATE SET commits = holdfast_space.commits + 1
        RETURNING commits INTO commits_now;
    END IF;
  END IF;

  -- Each statement sees what was committed before it began, hence all before the lock was had.
  IF read_keys IS NOT NULL THEN
    is_right := NOT EXISTS (
      SELECT FROM unnest(read_keys, read_versions) AS seen (k, v)
      WHERE coalesce((SELECT d.version FROM holdfast_data AS d WHERE d.key = k), 0) <> v);
  END IF;
  IF is_right AND range_begins IS NOT NULL THEN
    is_right := NOT EXISTS (
      SELECT FROM generate_subscripts(range_begins, 1) AS i
      WHERE ARRAY(
        SELECT d.version FROM holdfast_data AS d
        WHERE d.key >= range_begins[i] AND d.key < range_ends[i] ORDER BY d.key
        LIMIT range_stops[i + 1] - range_stops[i] + 1
      ) <> range_versions[range_stops[i] + 1 : range_stops[i + 1]]);
  END IF;
  IF NOT is_right THEN
    IF NOT asked THEN
      {_REFUSE};
    END IF;
    -- Nothing is written that would be worth a wait for the disk, here or in the statement after.
    PERFORM set_config('synchronous_commit', 'off', true);
    IF early THEN
      PERFORM set_config('{REFUSED_SETTING}', attempt::text, false);
    END IF;
    UPDATE holdfast_space SET commits = commits - 1 WHERE space = the_space;
    {_add_rows(str(KEYS_PART), _ASKED_KEYS)}
    FOR i IN 1 .. coalesce(cardinality(ask_begins), 0) LOOP
      IF ask_follow[i] IS NOT NULL THEN
        {_add_rows("i", _NAMED)}
      ELSIF ask_reverse[i] = 1 THEN
        {_add_rows("i", _PAGE.format("DESC") + " AS d")}
      ELSE
        {_add_rows("i", _PAGE.format("") + " AS d")}
      END IF;
    END LOOP;
    RETURN answer;
  END IF;

  -- A later question about this commit makes sure that it can no longer be applied.
  UPDATE holdfast_client SET last = attempt, given_up = false WHERE id = client AND last < attempt;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '{FORGOTTEN_STATE}', MESSAGE = 'the connection was given up';
  END IF;

  IF clear_begins IS NOT NULL THEN
    FOR i IN 1 .. cardinality(clear_begins) LOOP
      DELETE FROM holdfast_data AS d WHERE d.key >= clear_begins[i] AND d.key < clear_ends[i];
    END LOOP;
  END IF;
  IF gone IS NOT NULL THEN
    DELETE FROM holdfast_data AS d WHERE d.key = ANY(gone);
  END IF;
  IF put_keys IS NOT NULL THEN
    INSERT INTO holdfast_data (key, value, number, version)
      SELECT k, v, n, new_version FROM unnest(put_keys, put_values, put_numbers) AS new (k, v, n)
      ON CONFLICT ON CONSTRAINT holdfast_data_pkey DO UPDATE SET
        value = EXCLUDED.value, number = EXCLUDED.number, version = EXCLUDED.version;
  END IF;
  -- What is no counter is left with neither a value nor a number, which the table refuses.
  IF add_keys IS NOT NULL THEN
    INSERT INTO holdfast_data (key, number, version)
      SELECT k, n, new_version FROM unnest(add_keys, add_numbers) AS new (k, n)
      ON CONFLICT ON CONSTRAINT holdfast_data_pkey DO UPDATE SET
        value = NULL, number = holdfast_data.number + EXCLUDED.number,
        version = EXCLUDED.version;
  END IF;
  IF noted IS NOT NULL THEN
    INSERT INTO holdfast_notice (body) VALUES (noted);
    IF pg_try_advisory_lock({LISTENERS_LOCK}) THEN
      PERFORM pg_advisory_unlock({LISTENERS_LOCK});
    ELSE
      listeners := 1;
      -- Transactions that notify commit one at a time, hence not while one waits for a disk.
      IF early THEN
        PERFORM pg_notify('{CHANNEL}', '');
      END IF;
    END IF;
  END IF;
  RETURN '\\x{MADE:02x}'::bytea || int8send(commits_now) || int8send(listeners);
END
$body$
"""

FIND_COMMIT: Final = (
    f"SELECT 1 FROM pg_proc WHERE proname = '{COMMIT_FUNCTION}' AND pg_function_is_visible(oid)"
)
# Two processes that create it at once would conflict.
LOCK_CREATION: Final = "LOCK TABLE holdfast_meta IN SHARE ROW EXCLUSIVE MODE"
