"""Background work in bounded steps: expired rows, dropped tables and indexes, indexes being
built.

Each is an entry of `expiry` whose remover runs one step and returns whether it was the last.
"""

from typing import Final

from holdfast.engine.contract import Reader, Transaction
from holdfast.expiry import Remover
from holdfast.keys import after, pack, prefix_range, unpack, unpack_first
from holdfast.limits import KEYS_PER_DROP_STEP
from holdfast.tables.index_build import BUILD, build_step
from holdfast.tables.layout import ENTRIES, keys_of
from holdfast.tables.plan import TablePlan, plan_of
from holdfast.tables.row_writer import EXPIRED_ROW, RowWriter

DROPPED_TABLE: Final = "tables.dropped"  # the subject is the table's number
DROPPED_INDEX: Final = "tables.dropped_index"  # number and index id


def find_by_number(reader: Reader, number: int) -> TablePlan | None:
    """Returns the plan of the table with that number; None if it has been dropped."""
    keys = keys_of(reader.space)
    name = reader.get(keys.number(number))
    value = None if name is None else reader.get(keys.table(name.decode()))
    return None if value is None else plan_of(value)


def _remove_row(tx: Transaction, subject: bytes) -> bool:
    """Removes an expired row; its record's next live revision becomes current."""
    key = tx.space + subject
    plan = find_by_number(tx, unpack_first(key, len(keys_of(tx.space).rows))[0])
    if plan is None:
        return True
    writer = RowWriter(tx, plan)
    row = writer.row(key)
    if row is None or writer.is_live(row):
        return True
    is_removed = writer.remove_expired(key, row)
    writer.finish()
    return is_removed


def _empty_table(tx: Transaction, subject: bytes) -> bool:
    """Removes some keys of a dropped table."""
    [number] = unpack(subject)
    keys = keys_of(tx.space)
    left = KEYS_PER_DROP_STEP
    for prefix in (keys.rows, keys.statics, keys.entries, keys.counts, keys.builds):
        left -= _clear_some(tx, prefix + pack(number), left)
        if left <= 0:
            return False
    return True


def _empty_index(tx: Transaction, subject: bytes) -> bool:
    number, index = unpack(subject)
    removed = _clear_some(tx, keys_of(tx.space).entries_of(number, index), KEYS_PER_DROP_STEP)
    if find_by_number(tx, number) is not None and removed:
        tx.add(keys_of(tx.space).count(number, ENTRIES), -removed)
    return removed < KEYS_PER_DROP_STEP


def _clear_some(tx: Transaction, prefix: bytes, limit: int) -> int:
    begin, end = prefix_range(prefix)
    keys = [key for key, _ in tx.scan(begin, end, limit=limit)]
    if keys:
        tx.clear(begin, after(keys[-1]))
    return len(keys)


def _build_some(tx: Transaction, subject: bytes) -> bool:
    number, index = unpack(subject)
    plan = find_by_number(tx, number)
    return plan is None or build_step(tx, plan, index)


REMOVERS: Final[dict[str, Remover]] = {
    EXPIRED_ROW: _remove_row,
    DROPPED_TABLE: _empty_table,
    DROPPED_INDEX: _empty_index,
    BUILD: _build_some,
}
