"""Writes into LMDB's file: those of a buffer, and those in the log of a stopped process."""

from typing import Any

import lmdb

from holdfast.engine.lmdb.redo_log import Found, RedoLog, Writes
from holdfast.engine.lmdb.transaction import LmdbTransaction
from holdfast.engine.write_buffer import WriteBuffer
from holdfast.errors import LogDamaged


def replay(env: Any, data: Any, log: RedoLog, *, accept_loss: bool = False) -> Found:
    """Writes what a process that was stopped has left in the log into LMDB's file.

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
            _apply(LmdbTransaction(txn, b"", 0.0), writes)
    return found


def write_out(txn: Any, buffer: WriteBuffer) -> None:
    """Makes all writes of a buffer in an LMDB transaction."""
    tx = LmdbTransaction(txn, b"", 0.0)
    for begin, end in buffer.cleared:
        tx.clear(begin, end)
    _apply(tx, buffer.written)


def _apply(tx: LmdbTransaction, writes: Writes) -> None:
    keys = sorted(writes)  # in the order of LMDB's pages
    tx.put_many([(key, value) for key in keys if (value := writes[key]) is not None])
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
