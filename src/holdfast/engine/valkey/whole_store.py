"""Reads the whole store as one map: the space with the empty prefix.

Each space is read at one moment, but not all of them at the same one: they live on different
servers. That is enough to look through a store or to copy it. To write, a transaction needs one
space: the empty one has keys of its own, outside of all others.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.engine.remote import Commit, Committed, RangeRead, Row
from holdfast.engine.valkey.session import Pairs, SpaceSession
from holdfast.engine.write_buffer import after_prefix
from holdfast.errors import OutsideSpace

if TYPE_CHECKING:
    from holdfast.engine.valkey.backend import ValkeyBackend


class WholeSession:
    """A session on all spaces."""

    def __init__(self, backend: "ValkeyBackend") -> None:
        self._backend = backend
        # The list of all spaces is part of the first answer.
        self._root = SpaceSession(
            backend, backend.state_of(b""), ("SMEMBERS", backend.names.spaces)
        )
        self._spaces: list[bytes] | None = None  # in order
        self._sessions: dict[bytes, SpaceSession] = {}
        self.committed = False
        self.place: Any = None

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[Pairs]]:
        rows, contents = self._root.fetch(keys, pages)
        inside: dict[bytes, list[int]] = {}  # space -> places in `keys`
        for number, key in enumerate(keys):
            if (space := self._space_of(key)) is not None:
                inside.setdefault(space, []).append(number)
        for space, numbers in inside.items():
            found, _ = self._session(space).fetch([keys[number] for number in numbers], [])
            for number, row in zip(numbers, found, strict=True):
                rows[number] = row
        joined = [self._join(page, pairs) for page, pairs in zip(pages, contents, strict=True)]
        return rows, joined

    def commit(self, commit: Commit) -> Committed:
        written = [*commit.puts, *commit.deletes, *commit.adds]
        self._refuse_others([*written, *commit.keys], [*commit.clears, *_bounds(commit)])
        made = self._root.commit(commit)
        self.committed = True
        return Committed(made.version)

    def confirm(self) -> None:
        self._root.confirm()

    def close(self) -> None:
        self._root.close()

    def _join(self, page: RangeRead, pairs: Pairs) -> Pairs:
        """Returns the pairs of a page, merged with those of the spaces."""
        inside: Pairs = []
        spaces = self._within(page.begin, page.end)
        for space in reversed(spaces) if page.reverse else spaces:
            if len(inside) >= page.limit:
                break
            part = page._replace(
                begin=max(page.begin, space),
                end=min(page.end, after_prefix(space)),
                limit=page.limit - len(inside),
            )
            _, [found] = self._session(space).fetch([], [part])
            inside += found
        if not inside:
            return pairs
        return sorted([*pairs, *inside], reverse=page.reverse)[: page.limit]

    def _within(self, begin: bytes, end: bytes) -> list[bytes]:
        """Returns the spaces that a range touches."""
        return [s for s in self._others() if s < end and begin < after_prefix(s)]

    def _space_of(self, key: bytes) -> bytes | None:
        """Finds the space of a key: only the one before it can contain it, because no space begins
        with another."""
        spaces = self._others()
        place = bisect_right(spaces, key)
        return spaces[place - 1] if place and key.startswith(spaces[place - 1]) else None

    def _others(self) -> list[bytes]:
        if self._spaces is None:
            listed = self._root.extra_reply
            spaces = self._backend.spaces() if listed is None else sorted(listed)
            self._spaces = [space for space in spaces if space]
        return self._spaces

    def _session(self, space: bytes) -> SpaceSession:
        if space not in self._sessions:
            self._sessions[space] = SpaceSession(self._backend, self._backend.state_of(space))
        return self._sessions[space]

    def _refuse_others(self, keys: Iterable[bytes], ranges: Iterable[tuple[bytes, bytes]]) -> None:
        touched = [space for key in keys if (space := self._space_of(key)) is not None]
        touched += [space for begin, end in ranges for space in self._within(begin, end)]
        if touched:
            raise OutsideSpace(
                f"a transaction of the whole store touched the space {touched[0]!r}",
                hint="On Valkey a transaction stays within one space: run it in that space.",
            )


def _bounds(commit: Commit) -> list[tuple[bytes, bytes]]:
    return [(walked.begin, walked.end) for walked in commit.ranges]
