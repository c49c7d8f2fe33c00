"""The notices of commits, stored in LMDB's file by the commit itself.

Notices of unflushed commits are read from the overlay; later they are the first notices of the LMDB
commit that flushes them.

0                 -> commit     the last one whose notices were forgotten
number of commit  -> notices
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.engine.contract import Notice
from holdfast.limits import KEPT_NOTICE_BYTES, KEPT_NOTICE_COMMITS

_FORGOTTEN: Final = bytes(8)  # no commit has the number 0
_FORGOTTEN_PER_COMMIT: Final = 16  # more than one, so that a backlog shrinks
_DECODE: Final = msgspec.msgpack.Decoder(list[Notice]).decode


class NoticePosition(NamedTuple):
    """A position after an LMDB commit and after some of the unflushed notices that follow it."""

    commit: int
    waiting: int


class NoticeLog:
    """Notices by the number of their commit: of at most the last `KEPT_NOTICE_COMMITS` commits, and
    `KEPT_NOTICE_BYTES`. If every possible subscriber is known, only what they have not read yet."""

    def __init__(
        self,
        env: Any,
        db: Any,
        *,
        begin_snapshot: Callable[[], Any],
        waiting: Callable[[], tuple[int, list[Notice]]],
        read_by_all: Callable[[], int | None],
    ) -> None:
        self._env = env
        self._db = db
        self._begin_snapshot = begin_snapshot
        self._waiting = waiting
        self._read_by_all = read_by_all  # the last commit that all have read; None: nobody listens
        self._page_bytes = int(env.stat()["psize"])

    def store(self, txn: Any, notices: list[Notice]) -> None:
        """Writes the notices of a group under the number of its commit, and drops old ones."""
        commit = txn.id()
        txn.put(_number(commit), msgspec.msgpack.encode(notices), db=self._db, append=True)
        self._forget_some(txn, commit)

    def _forget_some(self, txn: Any, commit: int) -> None:
        """Drops old notices, a few for each commit, and whatever exceeds the limits."""
        read = self._read_by_all()
        bound = max(commit - KEPT_NOTICE_COMMITS - 1, commit - 1 if read is None else read)
        forgotten, left = 0, _FORGOTTEN_PER_COMMIT
        with txn.cursor(db=self._db) as cursor:
            while cursor.set_range(_number(1)):
                oldest = int.from_bytes(cursor.key())
                if oldest >= commit:
                    break
                if (oldest > bound or not left) and self._bytes(txn) <= KEPT_NOTICE_BYTES:
                    break
                cursor.delete()
                forgotten = oldest
                left = max(0, left - 1)
        if forgotten:
            txn.put(_FORGOTTEN, _number(forgotten), db=self._db)

    def _bytes(self, txn: Any) -> int:
        stat = txn.stat(self._db)
        return self._page_bytes * int(stat["leaf_pages"] + stat["overflow_pages"])

    def forget_all(self) -> None:
        """Drops all notices: a process that opens a store alone has no subscribers yet."""
        with self._env.begin(write=True) as txn:
            if txn.stat(self._db)["entries"]:
                txn.drop(self._db, delete=False)

    def newest_commit(self) -> int:
        return int(self._env.info()["last_txnid"])

    def newest_notice(self) -> NoticePosition:
        place, _, _ = self.notices_since(NoticePosition(self.newest_commit(), 0))
        return place

    def notices_since(self, place: NoticePosition) -> tuple[NoticePosition, int, list[Notice]]:
        forgotten, notices = 0, list[Notice]()
        while True:
            above, waiting = self._waiting()
            following, lost, stored = self._stored_since(place)
            if following == place.commit:
                break
            notices += stored
            forgotten += lost
            place = NoticePosition(following, 0)
        if above == place.commit:
            waiting = waiting[place.waiting :]
            notices += waiting
            place = NoticePosition(above, place.waiting + len(waiting))
        return place, forgotten, notices

    def _stored_since(self, place: NoticePosition) -> tuple[int, int, list[Notice]]:
        """Returns LMDB's last commit after a position, how many commits since then were dropped,
        and the notices of the others.

        While a commit waits for the disk, its number is known, but its records can't be read yet.
        """
        notices: list[Notice] = []
        if self.newest_commit() == place.commit:
            return place.commit, 0, notices
        with self._begin_snapshot() as txn:
            first = _number(place.commit + 1)
            cursor = txn.cursor(db=self._db)
            if cursor.set_range(first):
                for key, value in cursor.iternext():
                    notices += _DECODE(value)[place.waiting if key == first else 0 :]
            lost = int.from_bytes(txn.get(_FORGOTTEN, db=self._db) or b"") - place.commit
            return txn.id(), max(0, lost), notices


def _number(commit: int) -> bytes:
    return commit.to_bytes(8, "big")
