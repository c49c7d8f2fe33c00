"""The notices of commits, as records in LMDB's file: what becomes of a commit becomes of them.

Those of commits that still wait for LMDB are read where they wait; then they are the first ones of
the LMDB commit that follows.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.engine.contract import Notice
from holdfast.limits import KEPT_NOTICE_COMMITS

_DECODE: Final = msgspec.msgpack.Decoder(list[Notice]).decode


class Place(NamedTuple):
    """Behind an LMDB commit, and some of the notices that wait above it."""

    commit: int
    waiting: int


class NoticeLog:
    """Notices by the number of their commit, the last `KEPT_NOTICE_COMMITS` of them."""

    def __init__(
        self,
        env: Any,
        db: Any,
        *,
        begin_snapshot: Callable[[], Any],
        waiting: Callable[[], tuple[int, list[Notice]]],
    ) -> None:
        self._env = env
        self._db = db
        self._begin_snapshot = begin_snapshot
        self._waiting = waiting

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

    def newest_commit(self) -> int:
        return int(self._env.info()["last_txnid"])

    def newest_notice(self) -> Place:
        place, _, _ = self.notices_since(Place(self.newest_commit(), 0))
        return place

    def notices_since(self, place: Place) -> tuple[Place, int, list[Notice]]:
        forgotten, notices = 0, list[Notice]()
        while True:
            above, waiting = self._waiting()
            following, stored = self._stored_since(place)
            if following == place.commit:
                break
            notices += stored
            forgotten += max(0, following - KEPT_NOTICE_COMMITS - place.commit)
            place = Place(following, 0)
        if above == place.commit:
            waiting = waiting[place.waiting :]
            notices += waiting
            place = Place(above, place.waiting + len(waiting))
        return place, forgotten, notices

    def _stored_since(self, place: Place) -> tuple[int, list[Notice]]:
        """The notices of LMDB's commits behind a place, and the last of those commits.

        While a commit waits for the disk, its number is known already, and its records are not.
        """
        notices: list[Notice] = []
        if self.newest_commit() == place.commit:
            return place.commit, notices
        with self._begin_snapshot() as txn:
            first = _number(place.commit + 1)
            cursor = txn.cursor(db=self._db)
            if cursor.set_range(first):
                for key, value in cursor.iternext():
                    notices += _DECODE(value)[place.waiting if key == first else 0 :]
            return txn.id(), notices


def _number(commit: int) -> bytes:
    return commit.to_bytes(8, "big")
