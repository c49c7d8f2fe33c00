"""Writes into LMDB's file: those of buffers, and those in the log of a stopped process."""

from collections.abc import Callable, Sequence
from typing import Any

import lmdb

from holdfast.engine.contract import Notice
from holdfast.engine.folder import Folder
from holdfast.engine.late_interrupts import Interrupt
from holdfast.engine.lmdb.environment import explain
from holdfast.engine.lmdb.packed_puts import put_packed
from holdfast.engine.lmdb.redo_log import FoundRecords, RedoLog, Writes
from holdfast.engine.lmdb.transaction import LONG_KEYS, LmdbTransaction
from holdfast.engine.write_buffer import WriteBuffer
from holdfast.errors import LogDamaged


def replay(env: Any, data: Any, log: RedoLog, *, accept_loss: bool = False) -> FoundRecords:
    """Writes what a stopped process has left in the log into LMDB's file.

    A damaged log is refused, unless the caller accepts the loss of what follows the damage.
    """
    found = log.read(env.info()["last_txnid"])
    if found.problem and not accept_loss:
        whole = f"{len(found.records)} records before that are whole"
        raise LogDamaged(f"{log.path} is damaged: {found.problem}; {whole}")
    writes: Writes = {}
    for each in found.records:
        writes.update(each)
    if writes:
        with env.begin(db=data, write=True) as txn:
            _apply(txn, data, writes)
    return found


def write_out(txn: Any, data: Any, buffer: WriteBuffer) -> None:
    """Applies all writes of a buffer in an LMDB transaction; `data` is the tree of the pairs."""
    if buffer.cleared:
        tx = LmdbTransaction(txn, b"", 0.0)
        for begin, end in buffer.cleared:
            tx.clear(begin, end)
    _apply(txn, data, buffer.written)


def _apply(txn: Any, data: Any, writes: Writes) -> None:
    tx = LmdbTransaction(txn, b"", 0.0)
    keys = sorted(writes)  # in the order of LMDB's pages
    pairs = [(key, value) for key in keys if (value := writes[key]) is not None]
    if max(map(len, keys), default=0) < LONG_KEYS.whole:
        with txn.cursor() as cursor:
            put_packed(cursor, pairs, lambda: int(txn.stat(data)["leaf_pages"]))
    else:
        for key, value in pairs:
            tx.put(key, value)
    for key in keys:
        if writes[key] is None:
            tx.delete(key)


def is_open(txn: Any) -> bool:
    """Returns whether an LMDB transaction has neither been committed nor aborted."""
    try:
        txn.id()
    except lmdb.Error:
        return False
    return True


class FileWriter:
    """Commits buffers to LMDB's file."""

    def __init__(
        self,
        env: Any,
        data: Any,
        folder: Folder,
        *,
        store_notices: Callable[[Any, list[Notice]], None],
        note_written: Callable[[int], None],
    ) -> None:
        self._env = env
        self._data = data
        self._folder = folder
        self._store_notices = store_notices
        self._note_written = note_written

    def commit(
        self, buffers: Sequence[WriteBuffer], *, touch: bool, done: Callable[[], None]
    ) -> Interrupt:
        """Writes buffers, each on top of the one before, in one LMDB commit, and calls `done` as
        soon as that has succeeded. Returns the exception that came too late to undo it.

        LMDB skips an empty commit; with `touch` there is always something to commit.
        """
        try:
            with self._folder.write_turn:
                txn = self._env.begin(db=self._data, write=True)
        except lmdb.Error as error:
            raise explain(error, self._folder.path) from error
        try:
            for buffer in buffers:
                write_out(txn, self._data, buffer)
            notices = [notice for buffer in buffers for notice in buffer.notices]
            if notices or touch:
                self._store_notices(txn, notices)
            txn.commit()
            done()
            self._note_written(sum([len(buffer.written) for buffer in buffers]))
        except lmdb.Error as error:
            txn.abort()
            raise explain(error, self._folder.path) from error
        except BaseException as error:
            if is_open(txn):
                txn.abort()
                raise
            done()
            return error
        return None
