"""The contract of every engine: the rest of Holdfast knows engines only by this module.

An engine is an ordered map from bytes to bytes with serializable, durable transactions. It sees
bytes and knows no layer. A *space* is a key prefix: a transaction names the space that it runs in
and writes only below it, so that an engine on several machines can keep a space together. The empty
prefix is the whole store.
"""

import os
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec

if TYPE_CHECKING:  # a program that only imports Holdfast pays for neither paths nor digests
    from pathlib import Path

__all__ = [
    "Engine",
    "Guard",
    "Notice",
    "Outcome",
    "Reader",
    "RepeatableRandom",
    "Subscription",
    "Transaction",
    "pack_counter",
    "random_bytes",
    "read_counter",
    "read_counters",
    "topics_overlap",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

COUNTER: Final = struct.Struct(">q")


class Notice(msgspec.Struct, frozen=True, array_like=True):
    """A message that a transaction publishes if, and only if, it commits."""

    topic: str
    payload: bytes = b""
    space: bytes = b""  # filled in by the engine: the space of the transaction that left it


class Reader(Protocol):
    """A consistent snapshot."""

    space: bytes  # the prefix of all keys that the reader is meant for
    now: float  # one clock reading, in seconds since the epoch

    def get(self, key: bytes) -> bytes | None:
        """Returns the value of a key, or None."""

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the values of the keys, in their order; None for a missing one."""

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields the pairs with begin <= key < end in the order of the keys' bytes, or in reverse.

        Writes of the same transaction inside the range are seen if they come after the pair that
        was yielded last.
        """
        ...


class Transaction(Reader, Protocol):
    """A reader that sees its own writes, all of which become durable together or not at all."""

    def put(self, key: bytes, value: bytes) -> None:
        """Sets the value of a key."""

    def put_all(self, pairs: dict[bytes, bytes], *, checked: bool = False) -> None:
        """Puts every pair, faster than one `put` for each.

        With `checked` the caller guarantees what `put` would check: keys and values are bytes, of
        a few kilobytes at most, and every key begins with the space.
        """
        ...

    def delete(self, key: bytes) -> None:
        """Deletes a key, which need not exist."""

    def clear(self, begin: bytes, end: bytes) -> None:
        """Deletes every key with begin <= key < end."""
        ...

    def add(self, key: bytes, delta: int) -> None:
        """Adds to the counter at `key`, which begins at 0; never causes a conflict.

        The stored value is read with `read_counter`.
        """
        ...

    def after_commit(self, notice: Notice) -> None:
        """Publishes `notice` after the commit, if that succeeds."""
        ...

    def after_commit_many(self, topic_prefix: str, make: Callable[[], list[Notice]]) -> None:
        """Publishes the notices that `make` returns, as `after_commit` would each of them.

        All of their topics begin with `topic_prefix`. If nobody subscribes to such a topic,
        `make` is not called; otherwise it is called when the transaction commits, or now.
        """
        ...


class Outcome(msgspec.Struct, Generic[T], frozen=True):
    """The outcome of one transaction of a group: its result, or the exception that undid it."""

    result: T | None = None
    error: BaseException | None = None

    def unwrap(self) -> T:
        """Returns the result, or raises the exception."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                del self  # the error holds this frame, which must not hold the error
        return self.result  # type: ignore[return-value]  # without an error it is a T, which may itself be None


class NotBegun(Exception):
    """Raised by a transaction, also as a subclass, before it has read or written anything."""


class TooLong(BaseException):
    """A read or a transaction takes longer than the calling thread may be blocked; it runs again in
    another one. No layer catches it."""


class Subscription(Protocol):
    """Notices in commit order, from every process on the store, beginning when it was opened."""

    def get(self, timeout: float | None = None) -> Notice | None:
        """Returns the next notice, or None after `timeout` seconds (None waits for ever) or when
        closed."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until there is something to `get`; False after `timeout` seconds or when closed."""
        ...

    def poll(self) -> list[Notice]:
        """Returns at once all notices that were not returned yet, of all commits that have
        returned, in any process."""
        ...

    @property
    def missed(self) -> int:
        """The number of commits whose notices were dropped because this subscriber was too slow.
        Read again what you follow."""
        ...

    def close(self) -> None:
        """Ends the subscription. A waiting `get` returns None."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


class WriteWatch(Protocol):
    """Tells an event loop of the writes of other processes."""

    def fileno(self) -> int:
        """Returns the descriptor that is readable after a write; then call `forget`."""
        ...

    def forget(self) -> None:
        """Forgets the writes up to now."""
        ...

    def close(self) -> None: ...


class EngineSubscription(Subscription, Protocol):
    """A subscription to an engine of this process."""

    def watch(self) -> WriteWatch | None:
        """Returns a watch on the file that every commit of another process writes to; None if
        there can be none. The caller closes it."""
        ...

    def poll_own(self) -> list[Notice]:
        """Like `poll`, but it may leave out commits of other processes, and costs nothing if this
        process has committed nothing of interest."""
        ...


class Guard:
    """A key that blocks views: if it exists, `refuse` is called with the reader."""

    __slots__ = ("absent_from", "key", "refuse")

    def __init__(self, key: bytes, refuse: Callable[[Any], None]) -> None:
        self.key: Final = key
        self.refuse: Final = refuse
        self.absent_from = -1  # the last snapshot that was checked, for engines that number them


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a backup."""

    keys: int
    digest: str  # of all pairs, in hex


class Engine(Protocol):
    """An ordered, transactional map of bytes. `transact` may run `work` more than once, so work
    touches its transaction and nothing else."""

    @property
    def is_remote(self) -> bool:
        """Returns whether a read is a round trip over a network."""
        ...

    def view(
        self, *, space: bytes = b"", guard: Guard | None = None
    ) -> AbstractContextManager[Reader]:
        """Opens a consistent snapshot that blocks no one and is not blocked. Close it soon: it
        keeps old pages from being reused. `guard` may refuse before anything is read or, where
        reading is a round trip, along with the first read."""
        ...

    def short_view(
        self, *, space: bytes = b"", guard: Guard | None = None
    ) -> AbstractContextManager[Reader]:
        """Like `view`, for a thread that must not be blocked: it may raise `TooLong` when much was
        read. If so, the view has the attributes `left`, the bytes that may be read until then, and
        `spent`, a function that raises it and can be replaced by one that returns how many bytes
        more may be read; and the method `spend`, by which a layer counts what a value was expanded
        to."""
        ...

    def read(
        self,
        work: Callable[[Reader], T],
        *,
        space: bytes = b"",
        guard: Guard | None = None,
        kind: str = "",
    ) -> T:
        """Runs `work` on a view and returns its result. If reads are round trips, `work` may run
        more than once, first on remembered values. `kind` names the operation. Calls of one kind
        read similar keys, so an engine may prefetch what the last one read."""
        ...

    def transact(
        self, work: Callable[[Transaction], T], *, space: bytes = b"", kind: str = ""
    ) -> T:
        """Runs `work` and returns its result once all its writes are durable; if it raises,
        nothing was written. `kind` names the operation, as for `read`."""
        ...

    def transact_many(
        self,
        works: Sequence[Callable[[Transaction], Any]],
        *,
        spaces: Sequence[bytes] | None = None,
    ) -> list[Outcome[Any]]:
        """Runs each of `works` as its own transaction, in order, with one wait for the disk
        for all of them.

        Each sees its predecessors' writes, and succeeds or fails alone. `spaces` names the space of
        each.
        """
        ...

    def transaction(self, *, space: bytes = b"") -> AbstractContextManager[Transaction]:
        """Opens a transaction for a `with` block, which can't be run again: engines that conflict
        raise `Conflict`."""
        ...

    def try_transact_many(
        self, works: Sequence[Callable[[Transaction], Any]], *, spaces: Sequence[bytes]
    ) -> list[Outcome[Any]] | None:
        """Like `transact_many`, for a thread that must not be blocked. Returns None, and has
        written nothing, if it would wait for another thread or take more than a few milliseconds
        besides the sync of a log. An engine may always decline."""
        ...

    def subscribe(
        self,
        *,
        topic_prefix: str = "",
        space: bytes | None = None,
        wanted: Callable[[Notice], bool] | None = None,
        may_want: Callable[[str], bool] | None = None,
    ) -> EngineSubscription:
        """Subscribes to notices whose topic begins with `topic_prefix`, of one space or (None) of
        all; and of these to the ones that `wanted` accepts when they are committed.

        `may_want` is called, from any thread, to find out whether topics that begin with a text are
        wanted at this moment. If not, notices of `after_commit_many` are not made, and if no other
        process listens either, such notices are not kept.
        """
        ...

    def read_clock(self) -> float:
        """Returns the time that a transaction would have as its `now` if it began at this
        moment."""
        ...

    def checkpoint(self) -> None:
        """Returns when everything committed so far would survive a power failure, whatever the
        durability."""
        ...

    def backup(self, target: "Path") -> Backup:
        """Writes a consistent copy that opens as a store, verifies it, and returns its content."""
        ...

    def check(self) -> list[str]:
        """Reads everything and returns a sentence for each problem; an empty list is a clean
        store."""
        ...

    def refuse_full(self, *, space: bytes = b"") -> None:
        """Raises `StoreFull` if there is too little disk space or memory for the next commits of
        `space`, as far as this process can tell."""
        ...

    def refuse_unreadable(self) -> None:
        """Raises `StoreDamaged` if reading everything could end the process."""
        ...

    def stats(self) -> dict[str, int]:
        """Returns figures about the store, by name."""

    def shorten_waits(self) -> None:
        """Called when the process is about to end: calls soon stop waiting for a server that does
        not answer."""
        ...

    def close(self) -> None:
        """Waits for running writers and releases everything; a second call does nothing."""


class EngineOptions(NamedTuple):
    """Options for opening a store. An engine may ignore those that do not apply to it."""

    durability: str  # "commit" or "interval"
    clock: Callable[[], float]  # seconds since 1970, the `now` of every transaction
    checkpoint_seconds: float


class EngineFactory(Protocol):
    """Opens an engine: what an entry point of the group `holdfast.engines` names."""

    def __call__(self, url: str, options: EngineOptions, /) -> Engine: ...


def topics_overlap(one: str, other: str) -> bool:
    """Returns whether a topic may begin with both texts.

    >>> topics_overlap("events:a", "events:"), topics_overlap("events:", "jobs.")
    (True, False)
    """
    return one.startswith(other) or other.startswith(one)


def read_counter(value: bytes | None) -> int:
    """Reads the number in a counter's value; a counter that was never added to is 0.

    >>> read_counter(None), read_counter(pack_counter(-3))
    (0, -3)
    """
    return 0 if value is None else int(COUNTER.unpack(value)[0])


def read_counters(values: Iterable[bytes | None]) -> list[int]:
    """Reads many counters, faster than one by one.

    >>> read_counters([pack_counter(2), None, pack_counter(-3)])
    [2, 0, -3]
    """
    unpack = COUNTER.unpack
    return [0 if value is None else unpack(value)[0] for value in values]


def pack_counter(number: int) -> bytes:
    """Packs the value that `add` stores: 8 bytes, big-endian, two's complement."""
    return COUNTER.pack(number)


class RepeatableRandom:
    """Random bytes that a transaction gets again each time it is run."""

    __slots__ = ("_count", "_seed")

    def __init__(self) -> None:
        self._seed = b""
        self._count = 0

    def next(self, count: int) -> bytes:
        """Returns the next `count` bytes."""
        if not self._seed:
            self._seed = os.urandom(16)
        self._count += 1
        from hashlib import shake_128

        return shake_128(self._seed + self._count.to_bytes(8)).digest(count)

    def __enter__(self) -> Self:
        """Makes `random_bytes` in this thread start again with the first bytes."""
        self._count = 0
        _this_thread.pool.repeatable = self
        return self

    def __exit__(self, *exc: object) -> None:
        _this_thread.pool.repeatable = None


class _RandomPool:
    """The source of a thread's random bytes."""

    __slots__ = ("random_bytes", "repeatable", "used")

    def __init__(self) -> None:
        self.repeatable: RepeatableRandom | None = None
        self.random_bytes = b""  # random bytes; the first `used` of them are gone
        self.used = 0


class _ThisThread(threading.local):
    def __init__(self) -> None:
        self.pool = _RandomPool()  # one attribute, as each costs as much here as a call


_this_thread: Final = _ThisThread()
_POOL_BYTES: Final = 4_096


def _discard_random_bytes() -> None:
    """Discards the pool in a child process, which would otherwise return the same bytes as its
    parent."""
    _this_thread.pool.random_bytes = b""


os.register_at_fork(after_in_child=_discard_random_bytes)


def random_bytes(count: int) -> bytes:
    """Returns random bytes for names that a transaction chooses: ids, and positions in the key
    order.

    Like the time, they belong to the transaction: work that runs again gets the same bytes. So it
    reads the same keys again, which a remote engine has fetched by then.
    """
    pool = _this_thread.pool
    if pool.repeatable is not None:
        return pool.repeatable.next(count)
    begin = pool.used
    end = begin + count
    if end > len(pool.random_bytes):
        # Many at once: the system call releases Python's lock, and another thread may keep it.
        pool.random_bytes = os.urandom(max(count, _POOL_BYTES))
        begin, end = 0, count
    pool.used = end
    return pool.random_bytes[begin:end]


# Former names, which engines of other packages may import.
Draws = RepeatableRandom
draw = random_bytes
