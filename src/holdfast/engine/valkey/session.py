"""One snapshot of a space, read a part at a time, and the commit of what was written on it.

A server keeps only the newest state, and a log of recent changes with the values before them. Each
answer contains what was changed since the previous answer. Put over what was read, the old values
restore the moment of the first read: however often the space changes meanwhile, a
session sees one state of it.
"""

import random
import threading
import time
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.engine.contract import pack_counter
from holdfast.engine.remote import (
    NOTHING_CHANGED,
    AddRefused,
    Commit,
    Committed,
    Conflicted,
    ConnectionLost,
    RangeRead,
    Refreshed,
    RemoteChanges,
    Row,
    SnapshotLost,
    Unsettled,
    new_row,
)
from holdfast.engine.valkey.connections import Command, ResponseError
from holdfast.engine.valkey.library import SpaceKeyNames, function, pack_list, unpack_list
from holdfast.engine.valkey.servers import NoReply, Servers, slot_of
from holdfast.errors import HoldfastError, OutcomeUnknown, StoreUnusable, ValueTooLarge
from holdfast.limits import (
    CLAIM_SECONDS,
    MAX_CLAIM_WAIT_SECONDS,
    MAX_COUNTER,
    MAX_REMOTE_COMMIT_BYTES,
    MIN_COUNTER,
)

if TYPE_CHECKING:
    from holdfast.engine.valkey.backend import ValkeyBackend

_PAGE_BYTES: Final = 4 * 1024 * 1024  # a server is not kept from others for longer than this takes
_LONG_SESSION_SECONDS: Final = 1.0  # for a session of this age, the log keeps its snapshot
_KEPT_MS: Final = 120_000
_KEEP_AGAIN_SECONDS: Final = 30.0
_CLAIM_MS: Final = int(CLAIM_SECONDS * 1000)
_PROMISE_MS: Final = 50  # a session that waits for its claim polls more often than that
_FIRST_CLAIM_PAUSE: Final = 0.0005
_MAX_CLAIM_PAUSE: Final = 0.001  # with 8 other processes, 8 ms gave 0.6 of the commits, 0.5 ms 0.9
_VERSION: Final = 1  # rows have no version: the log tells what was changed

Pairs = list[tuple[bytes, Row]]


class CommitSequence:
    """Numbers the commits of one session after another.

    A server recognises the last commit of a sequence when it is sent again. So a sequence has one
    commit at a time.
    """

    __slots__ = ("id", "number")

    def __init__(self) -> None:
        self.id = token_hex(8).encode()
        self.number = 0


class SpaceState:
    """The slot of a space, and the sequences that number the commits of this process to it."""

    def __init__(self, store: str, space: bytes) -> None:
        self.space = space
        self.names = SpaceKeyNames(store, space)
        self.slot = slot_of(self.names.tag)
        self.registered_at = -1  # the change of the servers for which the space was registered
        self._sequences: list[CommitSequence] = []
        self._lock = threading.Lock()

    def take_sequence(self) -> CommitSequence:
        with self._lock:
            return self._sequences.pop() if self._sequences else CommitSequence()

    def give_back(self, sequence: CommitSequence) -> None:
        with self._lock:
            self._sequences.append(sequence)


class SpaceSession:
    """A session on one space."""

    follows = True

    def __init__(
        self,
        backend: "ValkeyBackend",
        state: SpaceState,
        extra_command: Command | None = None,
        *,
        exclusive: bool = False,
        contended: Sequence[bytes] = (),
    ) -> None:
        self._extra_command = extra_command  # for the same slot, sent with the first read
        self.extra_reply: Any = None  # the reply to it
        self._backend = backend
        self._servers: Servers = backend.servers
        self._state = state
        self._first: tuple[bytes, bytes] | None = None  # version and id of the snapshot
        self._seen: tuple[bytes, bytes] = (b"", b"")  # the same of the newest answer
        self._old: dict[bytes, bytes | None] = {}  # what has been changed since, as it was
        self._old_keys: list[bytes] = []
        self._keep_at = 0.0
        self._since: Any = None  # what the first read is to be compared with
        self._changed: RemoteChanges | None = None  # by others, from there to the snapshot
        self._exclusive = exclusive  # whether it claims its space before it reads
        # The leases and tokens of the turns that it waits for before it reads.
        self._turns = [name for key in sorted(contended) for name in state.names.turn(key)]
        self._sequence: CommitSequence | None = None  # that has its turns and its claim
        self.committed = False

    @property
    def place(self) -> Any:
        """The version and id of the snapshot, once something was read."""
        return self._first

    # --- reading ---------------------------------------------------------------------------------

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[Pairs]]:
        values, found = self._read(keys, pages)
        rows = [self._row_at_snapshot(key, value) for key, value in zip(keys, values, strict=True)]
        return rows, [self._fill(page, *part) for page, part in zip(pages, found, strict=True)]

    def fetch_once(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[Pairs]]:
        if pages or not keys or self._extra_command is not None:
            return self.fetch(keys, pages)
        # One command sees one moment by itself, for half of the processor time of a function.
        try:
            [values] = self._servers.ask(
                self._state.slot, [("HMGET", self._state.names.values, *keys)]
            )
        except NoReply as problem:
            raise ConnectionLost(str(problem)) from problem
        return [None if value is None else new_row((value, _VERSION)) for value in values], []

    def fetch_since(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead], place: Any
    ) -> tuple[list[Row | None], list[Pairs], RemoteChanges | None]:
        if self._first is not None:
            return *self.fetch(keys, pages), NOTHING_CHANGED if place == self._first else None
        self._since = place
        rows, contents = self.fetch(keys, pages)
        return rows, contents, self._changed

    def _read(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Any], list[Any]]:
        names = self._state.names
        since, self._since = self._since, None
        moment = (*self._seen, b"1") if since is None else (*since, b"0")
        arguments = (*moment, *_questions(keys, pages))
        command: Command = ("FCALL_RO", function("read"), 4, *names.read, *arguments)
        try:
            reply, *more = self._ask([command, *self._snapshot_command()])
        except NoReply as problem:
            self._sequence = None  # a claim ends by itself: `close` need not look for a lost server
            raise ConnectionLost(str(problem)) from problem
        version, id, changes, *rest = reply
        if changes is None:
            raise SnapshotLost("it is older than what the server remembers")
        if since is not None:
            self._changed = _changed(*changes)
        else:
            for changed, _, old in changes:
                self._note_old_values(changed, old)
        self._seen = (version, id)
        if self._first is None:
            self._first = self._seen
            self._keep_at = time.monotonic() + _LONG_SESSION_SECONDS
            self.extra_reply = more[0] if more else None
        return rest[0], rest[1]

    def _ask(self, commands: Sequence[Command]) -> list[Any]:
        """Returns the replies; the first time, it waits for others before it asks."""
        if self._first is not None or not (self._exclusive or self._turns):
            return self._servers.ask(self._state.slot, commands)
        self._sequence = self._state.take_sequence()
        replies = self._ask_in_turn(commands) if self._turns else []
        return self._claim_and_ask(commands) if self._exclusive else replies

    def _ask_in_turn(self, commands: Sequence[Command]) -> list[Any]:
        """Waits for its turn, and returns the replies. It does not wait for ever: its commit is
        checked in any case."""
        assert self._sequence is not None  # just taken
        turns, lease = self._turns, (self._sequence.id, _CLAIM_MS)
        take: Command = ("FCALL", function("turn"), len(turns), *turns, *lease)
        end = time.monotonic() + MAX_CLAIM_WAIT_SECONDS
        waiting = 1  # the number of the turn that is waited for
        while True:
            lease_and_token = turns[2 * waiting - 2 : 2 * waiting]
            offer: Command = ("FCALL", function("offer"), 2, *lease_and_token, _PROMISE_MS)
            wait: Command = ("BLPOP", lease_and_token[1], str(CLAIM_SECONDS))
            asked = [offer, wait, take, *commands]
            _, token, waiting, *replies = self._servers.ask(self._state.slot, asked)
            for reply in (token, waiting, replies[0]):
                if isinstance(reply, ResponseError):
                    raise ConnectionLost(str(reply))
            if not waiting or time.monotonic() > end:
                return replies

    def _claim_and_ask(self, commands: Sequence[Command]) -> list[Any]:
        """Claims the space, so that no one else can commit to it, and returns the replies. It does
        not wait for ever for the claim: without it, its commit may conflict like any other."""
        sequence = self._sequence
        assert sequence is not None  # just taken
        names, times = self._state.names, (_CLAIM_MS, _PROMISE_MS)
        claim: Command = ("FCALL", function("claim"), 1, names.state, sequence.id, *times)
        pauses = _pauses(MAX_CLAIM_WAIT_SECONDS)
        while True:
            left, *replies = self._servers.ask(self._state.slot, [claim, *commands])
            if isinstance(replies[0], ResponseError):
                raise ConnectionLost(str(replies[0]))
            if not left or not next(pauses, False):
                return replies

    def _release(self) -> None:
        """Lets others commit again. If no server can be told, they wait until the claim ends."""
        if self._sequence is None:
            return
        sequence, self._sequence = self._sequence, None
        commands = self._pass_turns_command(sequence)
        if self._exclusive:
            names = self._state.names
            commands.append(("FCALL", function("release"), 1, names.state, sequence.id))
        with suppress(NoReply, HoldfastError):
            self._servers.ask(self._state.slot, commands)
        self._state.give_back(sequence)

    def _pass_turns_command(self, sequence: CommitSequence) -> list[Command]:
        """Returns the command that passes its turns on, if it has any."""
        turns = self._turns
        if not turns:
            return []
        return [("FCALL", function("pass"), len(turns), *turns, sequence.id, _PROMISE_MS)]

    def _snapshot_command(self) -> list[Command]:
        """Returns the command to send along with a read. The server keeps the
        snapshot of a long session."""
        if self._first is None:
            return [] if self._extra_command is None else [self._extra_command]
        if time.monotonic() < self._keep_at:
            return []
        self._keep_at = time.monotonic() + _KEEP_AGAIN_SECONDS
        names = self._state.names
        return [("FCALL", function("keep"), 2, names.state, names.views, _KEPT_MS, self._first[0])]

    def _note_old_values(self, changed: bytes, old: bytes | None) -> None:
        """Notes what a commit has changed, as it was before."""
        if old is None:
            raise SnapshotLost("so much was changed at once that the server did not keep it")
        for key, value in zip(unpack_list(changed), unpack_list(old), strict=True):
            if key not in self._old:
                self._old[key] = value[1:] if value else None
                insort(self._old_keys, key)

    def _row_at_snapshot(self, key: bytes, value: bytes | None) -> Row | None:
        value = self._old.get(key, value) if self._old else value
        return None if value is None else Row(value, _VERSION)

    def _fill(self, page: RangeRead, is_whole: int, flat: list[bytes]) -> Pairs:
        """Returns the pairs of a page as they were; fetches the rest if large values have cut it
        short."""
        if page.follow:
            named = [(key, self._row_at_snapshot(key, value)) for key, value in _pairs(flat)]
            return [(key, row) for key, row in named if row is not None]
        pairs = self._restore(page, is_whole, flat)
        rest = page
        while not is_whole and len(pairs) < page.limit:
            rest = _page_after(rest, flat)._replace(limit=page.limit - len(pairs))
            _, [[is_whole, flat]] = self._read((), (rest,))
            pairs += self._restore(rest, is_whole, flat)
        return pairs[: page.limit]

    def _restore(self, page: RangeRead, is_whole: int, flat: list[bytes]) -> Pairs:
        pairs = [(key, Row(value, _VERSION)) for key, value in _pairs(flat)]
        begin, end = page.begin, page.end
        if not is_whole:
            begin, end = (flat[-2], end) if page.reverse else (begin, flat[-2] + b"\0")
        first, last = bisect_left(self._old_keys, begin), bisect_left(self._old_keys, end)
        if first == last:
            return pairs
        restored = dict(pairs)
        for key in self._old_keys[first:last]:
            value = self._old[key]
            if value is None:
                restored.pop(key, None)
            else:
                restored[key] = Row(value, _VERSION)
        return sorted(restored.items(), reverse=page.reverse)

    # --- committing ------------------------------------------------------------------------------

    def commit(self, commit: Commit) -> Committed:
        reads = bool(commit.keys or commit.ranges)
        assert not reads or self._first is not None  # it was read here
        reply = self._exchange_commit(commit, self._first if reads else None, ())
        if reply[0] == b"conflict":
            raise Conflicted
        return self._committed(reply)

    def try_commit(
        self, commit: Commit, keys: Sequence[bytes], pages: Sequence[RangeRead], place: Any
    ) -> Committed | Refreshed:
        asked = (
            b"".join([b"1" if version else b"0" for version in commit.keys.values()]),
            pack_list([b"%d" % len(walked.versions) for walked in commit.ranges]),
            *_questions(keys, pages),
        )
        reply = self._exchange_commit(commit, place, asked)
        if reply[0] != b"conflict":
            return self._committed(reply)
        if len(reply) == 1:  # it was sent again, and refused the first time
            raise Conflicted
        _, version, id, values, found, changed, gone = reply
        self._first = self._seen = (version, id)
        self._old, self._old_keys = {}, []  # of the snapshot before
        rows = [None if value is None else Row(value, _VERSION) for value in values]
        contents = [self._fill(page, *part) for page, part in zip(pages, found, strict=True)]
        self._first, self._seen, self._old, self._old_keys = None, (b"", b""), {}, []
        return Refreshed(rows, contents, (version, id), _changed(changed, gone))

    def _committed(self, reply: list[Any]) -> Committed:
        self.committed = True
        _, version, id, changed, gone = reply
        return Committed(_VERSION, (version, id), _changed(changed, gone))

    def _exchange_commit(self, commit: Commit, place: Any, asked: Sequence[Any]) -> list[Any]:
        """Sends a commit of what was read at `place`, and returns the reply to it."""
        for delta in commit.adds.values():
            if not MIN_COUNTER <= delta <= MAX_COUNTER:
                raise AddRefused
        size = sum(map(len, commit.puts)) + sum(map(len, commit.puts.values()))
        if size > MAX_REMOTE_COMMIT_BYTES:
            raise ValueTooLarge(
                f"the writes of one commit have {size} bytes, at most {MAX_REMOTE_COMMIT_BYTES} "
                "fit into a message",
                hint="Write them in several transactions.",
            )
        self._backend.register(self._state)
        sequence, self._sequence = self._sequence or self._state.take_sequence(), None
        sequence.number += 1
        try:
            message = (*self._message(commit, sequence, place), *asked)
            reply = self._send(message, self._pass_turns_command(sequence))
        except NoReply as problem:
            if (
                problem.sent
            ):  # the sequence is not used again: the outcome of its last number is unknown
                raise Unsettled(lambda: self._settle(sequence)) from problem
            self._state.give_back(sequence)
            raise ConnectionLost(str(problem)) from problem
        except HoldfastError:  # the server has refused it, or its outcome is known to be unknown
            raise
        except BaseException as interrupt:
            raise Unsettled(lambda: self._settle(sequence), interrupt) from interrupt
        self._state.give_back(sequence)
        _check_confirmed(reply)
        return reply

    def confirm(self) -> None:
        """Does nothing: a server with `appendfsync always` syncs before it answers reads too."""

    def close(self) -> None:
        """Ends a claim without a commit. A server keeps nothing else for a session but a few
        versions in a log, for a while."""
        self._release()

    def _message(self, commit: Commit, sequence: CommitSequence, place: Any) -> Command:
        names = self._state.names
        ranges = [bound for walked in commit.ranges for bound in (walked.begin, walked.end)]
        return (
            "FCALL",
            function("commit_less" if commit.frees_space else "commit"),
            6,
            *names.commit(sequence.id),
            sequence.id,
            sequence.number,
            *(place or (b"", b"")),
            pack_list(commit.keys),
            pack_list(ranges),
            msgspec.msgpack.encode(commit.notices) if commit.notices else b"",
            self._backend.names.channel,
            len(commit.clears),
            len(commit.deletes),
            len(commit.puts),
            len(commit.adds),
            *(bound for cleared in commit.clears for bound in cleared),
            *commit.deletes,
            *(part for pair in commit.puts.items() for part in pair),
            *(part for key, delta in commit.adds.items() for part in (key, pack_counter(delta))),
        )

    def _send(self, command: Command, then: list[Command]) -> list[Any]:
        """Sends a commit with the waits that follow it in one round trip, or in more while another
        session has claimed the space."""
        waits = self._backend.waits
        end, is_made = time.monotonic() + self._backend.patience, False
        pauses = _pauses(CLAIM_SECONDS)
        while True:
            try:
                replies = self._servers.ask(self._state.slot, [command, *then, *waits.commands])
            except (NoReply, HoldfastError) as problem:
                if is_made:  # whatever a server answers now, `settle` finds out what is left of it
                    raise NoReply(str(problem), sent=True) from problem
                raise
            reply, waited = replies[0], replies[1 + len(then) :]
            if reply[0] == b"claimed":
                if next(pauses, False):
                    continue
                return [b"conflict"]  # it will claim the space itself
            is_made = reply[0] == b"ok"
            if not is_made or waits.are_met(waited):
                return list(reply)
            if time.monotonic() > end:
                raise OutcomeUnknown(
                    f"a commit was made, but {waits.shortfall(waited)}, and its server may be lost",
                    hint="Check that all replicas are running; read before you write it again.",
                )

    def _settle(self, sequence: CommitSequence) -> bool:
        names = self._state.names.commit(sequence.id)
        command: Command = ("FCALL", function("settle"), 6, *names, sequence.id, sequence.number)
        waits = self._backend.waits
        try:
            reply, *waited = self._servers.ask(self._state.slot, [command, *waits.commands])
        except NoReply as problem:
            raise ConnectionLost(str(problem)) from problem
        if reply and not waits.are_met(waited):
            raise ConnectionLost(f"a commit was made, but {waits.shortfall(waited)}")
        return bool(reply)


def _pauses(seconds: float) -> Iterator[bool]:
    """Pauses before each item that it yields, longer each time, until `seconds` have passed."""
    end, pause = time.monotonic() + seconds, _FIRST_CLAIM_PAUSE
    while time.monotonic() < end:
        time.sleep(pause * random.uniform(0.5, 1))
        pause = min(2 * pause, _MAX_CLAIM_PAUSE)
        yield True


def _pairs(flat: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Returns the pairs of a list of keys and values in turn."""
    return zip(flat[::2], flat[1::2], strict=True)


def _questions(keys: Sequence[bytes], pages: Sequence[RangeRead]) -> list[Any]:
    """Returns the arguments that request these keys and pages."""
    arguments: list[Any] = [_PAGE_BYTES, len(keys), *keys]
    for page in pages:
        how: bytes | int = b"@" + page.follow if page.follow else int(page.reverse)
        arguments += (page.begin, page.end, page.limit, how)
    return arguments


def _changed(keys: bytes | None, gone: bytes | None) -> RemoteChanges | None:
    if keys is None or gone is None:
        return None
    if not keys and not gone:
        return NOTHING_CHANGED
    bounds = unpack_list(gone)
    return RemoteChanges(unpack_list(keys), list(zip(bounds[::2], bounds[1::2], strict=True)))


def _check_confirmed(reply: list[Any]) -> None:
    """Raises an error if a reply is neither a commit nor a refusal."""
    if reply[0] == b"counter":
        raise AddRefused
    if reply[0] not in (b"ok", b"conflict"):
        raise StoreUnusable(f"a commit was answered with {reply!r}")


def _page_after(page: RangeRead, flat: list[bytes]) -> RangeRead:
    """Returns the part of a page after the pairs that were read."""
    if page.reverse:
        return page._replace(end=flat[-2])
    return page._replace(begin=flat[-2] + b"\0")
