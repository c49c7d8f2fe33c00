"""The protocol of backends: sessions that read a snapshot and commit, and notices.

Keys have the form in which the backend stores them; if its own keys are short, `long_keys` says how
longer ones are folded, and the shared part does that.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, Protocol, cast, runtime_checkable

import msgspec

from holdfast.engine.contract import Notice
from holdfast.engine.late_interrupts import Interrupt
from holdfast.engine.long_keys import LongKeys
from holdfast.limits import MAX_ADDED_BY_REMOTE_DELETE_BYTES


class Row(NamedTuple):
    """A value and its version. No key ever has the same version twice with two values; 0 is never
    one, as it means that the key does not exist."""

    value: bytes
    version: int


# Makes a row of a tuple of its parts, without a call of Python.
new_row: Final = cast(Callable[[tuple[bytes, int]], Row], partial(tuple.__new__, Row))


class RangeRead(NamedTuple):
    """The first `limit` pairs with begin <= key < end, or in reverse the last ones.

    With `follow` it reads other pairs instead, in any order: those whose keys are `follow` followed
    by the value of one of these pairs. Only for a session with `follows = True`.
    """

    begin: bytes
    end: bytes
    limit: int
    reverse: bool = False
    follow: bytes = b""


class WalkedRange(NamedTuple):
    """A range that was read, and the versions of all its rows, in key order."""

    begin: bytes
    end: bytes
    versions: list[int]


class Commit(msgspec.Struct):
    """The checks of a commit, and the writes that it applies if they succeed: first `clears`, then
    `puts` and `deletes`, then `adds`. No key is in two of the last three.
    """

    space: bytes
    keys: dict[bytes, int]  # read one by one, with their versions; 0 if the key did not exist
    ranges: list[WalkedRange]  # disjoint, in order
    clears: list[tuple[bytes, bytes]]
    puts: dict[bytes, bytes]
    deletes: list[bytes]
    adds: dict[bytes, int]
    notices: list[Notice]

    @property
    def writes(self) -> bool:
        return bool(self.puts or self.adds or self.deletes or self.clears or self.notices)

    @property
    def frees_space(self) -> bool:
        """Returns whether it removes something and puts hardly more than the keys it deletes, so
        that a full server should accept it. Counters and notices are small, and usually there."""
        if not (self.deletes or self.clears):
            return False
        put = sum(map(len, self.puts)) + sum(map(len, self.puts.values()))
        return put <= sum(map(len, self.deletes)) + MAX_ADDED_BY_REMOTE_DELETE_BYTES


class RemoteChanges(NamedTuple):
    """The changes of others between two positions of a space: keys, and ranges in place of many."""

    keys: Sequence[bytes] = ()
    ranges: Sequence[tuple[bytes, bytes]] = ()


NOTHING_CHANGED: Final = RemoteChanges()


class Committed(NamedTuple):
    """A commit that was made: the version of what it has put, and the place of the space after it.

    `changed` is what others have changed between the place that was sent with the commit and
    `place`: everything else that was true there is still true here. None if that is not known. It
    is not used if rows have versions of their own.
    """

    version: int
    place: Any = None
    changed: RemoteChanges | None = NOTHING_CHANGED


class Refreshed(NamedTuple):
    """A commit that was refused because its reads were wrong, with the real values of one moment.
    `changed` is as for `Committed`."""

    rows: list[Row | None]
    contents: list[list[tuple[bytes, Row]]]
    place: Any = None
    changed: RemoteChanges | None = NOTHING_CHANGED


class Conflicted(Exception):
    """Something that was read has changed meanwhile. Nothing was applied, and nothing ever will
    be."""


class AddRefused(Exception):
    """An `add` found no counter, or one that would exceed 64 bits. Nothing was applied."""


class ConnectionLost(Exception):
    """The connection was lost. Nothing was applied, and nothing ever will be."""

    def __str__(self) -> str:
        """Returns the message in one line, however many the driver wrote."""
        return " ".join(super().__str__().split())


class SnapshotLost(ConnectionLost):
    """The server answers, but no longer has what is needed to read this snapshot."""


class Unsettled(Exception):
    """The connection was lost after a commit was sent.

    `settle` finds out what happened to it: True if it was applied; after False it never will be. It
    may be called again whenever it raises `ConnectionLost`. `interrupt` is the exception of a
    signal handler, such as Ctrl-C, if that ended the wait for the reply.
    """

    def __init__(self, settle: Callable[[], bool], interrupt: Interrupt = None) -> None:
        super().__init__()
        self.settle = settle
        self.interrupt = interrupt


class BackendSession(Protocol):
    """One snapshot of a space, taken by the first `fetch`, and at the end at most one commit."""

    committed: bool  # whether its commit was applied, as far as this process knows

    @property
    def place(self) -> Any:
        """Its snapshot among the commits of the space; None where each row has its own version."""
        ...

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        """Reads everything in one round trip. A page may be shorter than its limit only at its end.
        Reading nothing also takes the snapshot.

        May raise `ConnectionLost`, or `SnapshotLost` when the snapshot can no longer be read.
        """
        ...

    def commit(self, commit: Commit) -> Committed:
        """Checks and applies the commit, in one atomic step, and ends the session.

        Durable when it returns. May raise any of the four exceptions above. If a signal handler
        raises while it waits for the reply, it raises `Unsettled` with that.
        """
        ...

    def confirm(self) -> None:
        """Returns when everything that was read is durable, for backends on which reads may see
        commits before they are durable. Called before the caller gets a result, unless the session
        has committed: a commit is durable together with all before it. May raise
        `ConnectionLost`."""
        ...

    def close(self) -> None:
        """Releases the snapshot. After a commit, or a second time, it does nothing."""
        ...


@runtime_checkable
class SingleReadSession(Protocol):
    """A session with a cheaper way to read once."""

    def fetch_once(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        """Like `fetch`, for a session that reads nothing else: no snapshot is kept."""
        ...


@runtime_checkable
class ChangesSession(Protocol):
    """A session that knows what has changed since an earlier place of its space."""

    def fetch_since(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead], place: Any
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]], RemoteChanges | None]:
        """Like the first `fetch` of a session, with what others have changed since `place`; None if
        that is not known."""
        ...


@runtime_checkable
class TrialCommitSession(Protocol):
    """A session that can commit a run on guesses."""

    def try_commit(
        self, commit: Commit, keys: Sequence[bytes], pages: Sequence[RangeRead], place: Any
    ) -> Committed | Refreshed:
        """Like `commit`, with reads that are guesses, remembered at `place`. If one of them is
        wrong, nothing is applied, and the answer has the current `keys` and `pages`, read at one
        moment in the same round trip. The session can then be used like a new one."""
        ...


@runtime_checkable
class TurnBackend(Protocol):
    """The methods of a backend that lets transactions wait for each other by what they read."""

    def turn_session(
        self, space: bytes, contended: Sequence[bytes], *, exclusive: bool = False
    ) -> BackendSession:
        """Returns a session whose first `fetch` waits for all sessions that hold one of the
        `contended` keys, and which then holds these keys to its end. Unless it is `exclusive`,
        other sessions do not wait for it: its commit is checked as always, and several fetches may
        read different moments; if it then commits nothing, `confirm` raises `Conflicted`.

        With `exclusive`, no other session can commit in its space from its first `fetch` to its
        end, so that its own commit has no conflict. A backend may limit how long both last; then
        the commit of a session that takes longer can conflict like any other."""
        ...


class Backend(Protocol):
    """One store on a server or a cluster. All of it may be called from any thread."""

    name: str  # for messages: the URL without its password
    long_keys: LongKeys | None

    def session(self, space: bytes) -> BackendSession: ...

    def newest_notice(self) -> Any:
        """Returns the position in the notice log after all commits that have returned so far."""
        ...

    def notices_since(self, place: Any) -> tuple[Any, int, list[Notice]]:
        """Returns the new position, how many commits in between were dropped, and the notices in
        order."""
        ...

    def listen(self, wake: Callable[[], None], stopped: threading.Event) -> None:
        """Calls `wake` whenever there may be new notices, until `stopped` is set; runs in a thread
        of its own, and survives lost connections. Within a second it must see `stopped`."""
        ...

    def problems(self) -> list[str]:
        """Returns a sentence for each inconsistency in the store."""
        ...

    def checkpoint(self) -> None: ...

    def backup(self, target: Path) -> NoReturn: ...

    def stats(self) -> dict[str, int]: ...

    def refuse_full(self, space: bytes) -> None:
        """Raises `StoreFull` if the server of a space is known to refuse commits that grow it."""
        ...

    def close(self) -> None: ...

    def forked(self) -> None:
        """Called in a child process: nothing of the parent's connections may be touched."""
        ...
