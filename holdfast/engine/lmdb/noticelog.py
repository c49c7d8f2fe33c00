"""The notices of commits, as records in LMDB's file: what becomes of a commit becomes of them."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.engine.contract import Notice
from holdfast.limits import KEPT_NOTICE_COMMITS

_DECODE: Final = msgspec.msgpack.Decoder(list[Notice]).decode


class NoticeLog:
    """Notices by the number of their commit, the last `KEPT_NOTICE_COMMITS` of them."""

    def __init__(self, env: Any, db: Any, begin_snapshot: Callable[[], Any]) -> None:
        self._env = env
        self._db = db
        self._begin_snapshot = begin_snapshot

    def store(self, txn: Any, notices: list[Notice]) -> None:
        """Writes the notices of a group under the number of its commit, and forgets old ones."""
        commit = txn.id()
        txn.put(_number(commit), msgspec.msgpack.encode(notices), db=self._db, append=True)
        bound = _number(max(0, commit - KEPT_NOTICE_COMMITS))
        with txn.cursor(db=self._db) as cursor:
            for _ in range(2):  # two for each one that is added: it shrinks after a long pause
                if cursor.first() and cursor.key() < bound:
                    cursor.delete()

    def forget_all(self) -> None:
        """Whoever opens a store alone finds no one who could still want the old ones."""
        with self._env.begin(write=True) as txn:
            if txn.stat(self._db)["entries"]:
                txn.drop(self._db, delete=False)

    def newest_notice(self) -> int:
        return int(self._env.info()["last_txnid"])

    def notices_since(self, commit: int) -> tuple[int, int, list[Notice]]:
        notices: list[Notice] = []
        if self.newest_notice() == commit:
            return commit, 0, notices
        with self._begin_snapshot() as txn:
            last = txn.id()
            cursor = txn.cursor(db=self._db)
            if cursor.set_range(_number(commit + 1)):
                for _, value in cursor.iternext():
                    notices += _DECODE(value)
        return last, max(0, last - KEPT_NOTICE_COMMITS - commit), notices


def _number(commit: int) -> bytes:
    return commit.to_bytes(8, "big")
