"""Which revisions stay: the table's policy, applied in the transaction of every put, to what that
put touched.

Rows that already have an expiry are neither counted nor touched. A record to which the table's
present policy has been applied holds no more rows without expiry than the policy keeps, so the next
put finds the one row too many and can stop there. Only a record that was last written under another
policy is read to its end, once: the newest row of it remembers under which generation of the policy
it was settled.
"""

from holdfast.keys import prefix_range
from holdfast.tables.plan import Values
from holdfast.tables.row_codec import StoredRow
from holdfast.tables.row_writer import RowWriter
from holdfast.tables.versions import bucket_of


def apply_policy(writer: RowWriter, key: bytes, values: Values) -> None:
    """Expires or removes what the policy no longer keeps, after the row `key` was written."""
    policy = writer.plan.policy
    if policy.type == "latest" and writer.plan.version is not None:
        _keep_newest(writer, key, *prefix_range(writer.record_of(key)))
    elif policy.type == "interval":
        record = writer.record_of(key)
        version = writer.plan.primary.ranges[-1]
        component = version.component
        first, last = bucket_of(values[version.attribute.id], policy.interval_ticks)
        # Versions are in descending order, so the last of the interval comes first.
        begin, end = record + component(last), prefix_range(record + component(first))[1]
        _keep_newest(writer, key, begin, end)
    elif policy.type == "latest_hash":
        _keep_first_of_hash(writer, values)


def _keep_newest(writer: RowWriter, written: bytes, begin: bytes, end: bytes) -> None:
    """Of the rows without expiry in a range, newest first, only the first `count` stay."""
    policy, generation = writer.plan.policy, writer.plan.record.policy_generation
    kept = 0
    condemned: list[tuple[bytes, StoredRow]] = []
    settled: bool | None = None  # unknown until a row other than the one just written is seen
    newest: tuple[bytes, StoredRow] | None = None
    for key, row in writer.rows_between(begin, end):
        if row.expires_ms:
            continue
        newest = newest or (key, row)
        if settled is None and key != written:
            settled = row.generation == generation
        if kept < policy.count:
            kept += 1
            continue
        condemned.append((key, row))
        if settled:
            break
    _expire(writer, condemned)
    if generation and not settled and newest is not None and newest[0] != written:
        writer.settle(*newest, generation)


def _expire(writer: RowWriter, rows: list[tuple[bytes, StoredRow]]) -> None:
    if not writer.plan.policy.grace_ms:
        writer.remove(rows)
        return
    expires_ms = writer.now_ms + writer.plan.policy.grace_ms
    for key, row in rows:
        writer.condemn(key, row, expires_ms)


def _keep_first_of_hash(writer: RowWriter, values: Values) -> None:
    begin, end = prefix_range(writer.hash_prefix(values))
    rows = [pair for pair in writer.rows_between(begin, end) if not pair[1].expires_ms]
    writer.remove(rows[1:])
