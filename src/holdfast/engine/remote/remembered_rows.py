"""The rows of a space as this process last saw or wrote them: the source of guesses.

Nothing here has to be current. A run on guesses is committed on the condition that they are right,
and the server's reply to a wrong guess is the real value.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from holdfast.engine.remote.protocol import (
    NOTHING_CHANGED,
    Commit,
    Committed,
    RangeRead,
    RemoteChanges,
    Row,
    new_row,
)
from holdfast.limits import (
    MAX_REMEMBERED_BYTES,
    MAX_REMEMBERED_KEYS,
    MAX_REMEMBERED_VALUE_BYTES,
)

_MAX_SPACES: Final = 1_000
_CALLS_PER_LOOK: Final = 256  # between two computations of the total size


class Comparison(NamedTuple):
    """Keys, and starts of pages, that differ from what was remembered, and those that do not. One
    that is in neither was not remembered, or has rows besides the remembered ones."""

    changed: list[bytes]
    same: list[bytes]


class RememberedRows:
    """The rows of one space. A key that is not here is guessed not to exist."""

    __slots__ = ("_keys", "follows", "place", "rows", "size")

    def __init__(self) -> None:
        self.rows: dict[bytes, Row] = {}
        self.place: Any = None  # the moment at which all of it was true, where rows have no version
        self.size = 0  # bytes of all keys and values
        self._keys: list[bytes] = []  # of all rows, in order
        # The start of a scan whose first row named another row, and what came before that name in
        # its key: the work list names a job, which is then read.
        self.follows: dict[bytes, bytes] = {}

    def between(self, begin: bytes, end: bytes) -> list[bytes]:
        """Returns the remembered keys of a range, in order."""
        return self._keys[bisect_left(self._keys, begin) : bisect_left(self._keys, end)]

    def learn(
        self,
        keys: Sequence[bytes],
        rows: Sequence[Row | None],
        pages: Sequence[RangeRead],
        contents: Sequence[Sequence[tuple[bytes, Row]]],
        place: Any,
    ) -> None:
        """Adds what was fetched at `place`."""
        if place != self.place:
            self.clear()
            self.place = place
        for key, row in zip(keys, rows, strict=True):
            self._set(key, row)
        for page, content in zip(pages, contents, strict=True):
            if not page.follow:
                begin, end = covered(page, content)
                found = dict(content)
                for key in self.between(begin, end):
                    if key not in found:
                        self._set(key, None)
            for key, row in content:
                self._set(key, row)
        self._bound()

    def compare(
        self,
        keys: Sequence[bytes],
        rows: Sequence[Row | None],
        pages: Sequence[RangeRead],
        contents: Sequence[Sequence[tuple[bytes, Row]]],
    ) -> Comparison:
        """Compares what was fetched with what is remembered."""
        found = Comparison([], [])
        remembered = self.rows
        for key, row in zip(keys, rows, strict=True):
            if remembered.get(key) == row:
                found.same.append(key)
            elif key in remembered:
                found.changed.append(key)
        for page, content in zip(pages, contents, strict=True):
            if page.follow:
                continue
            now = dict(content)
            inside = self.between(*covered(page, content))
            if any(now.get(key) != remembered[key] for key in inside):
                found.changed.append(page.begin)
            elif len(inside) == len(now):
                found.same.append(page.begin)
        return found

    def apply(self, commit: Commit, made: Committed) -> None:
        """Adds what a commit has written. What it has read was true at that moment."""
        if made.changed is None:
            read = {key: self.rows[key] for key in commit.keys if key in self.rows}
            for walked in commit.ranges:
                read |= {key: self.rows[key] for key in self.between(walked.begin, walked.end)}
            self.clear()
            for key, row in read.items():
                self._set(key, row)
            self.place = made.place
        elif made.changed is not NOTHING_CHANGED:
            self.move(made.place, made.changed)
        else:
            self.place = made.place
        for begin, end in commit.clears:
            for key in self.between(begin, end):
                self._set(key, None)
        rows, version = self.rows, made.version
        for key in (*commit.deletes, *commit.adds):  # only the server knows the sum
            if key in rows:
                self._set(key, None)
        for key, value in commit.puts.items():
            row = new_row((value, version))
            old = rows.get(key)
            if old is not None and len(value) <= MAX_REMEMBERED_VALUE_BYTES:
                rows[key] = row  # as `_set` does
                self.size += len(value) - len(old.value)
            else:
                self._set(key, row)
        if len(rows) > MAX_REMEMBERED_KEYS or self.size > MAX_REMEMBERED_BYTES:
            self.clear()

    def move(self, place: Any, changed: RemoteChanges | None) -> None:
        """Forgets what others have changed between its position and a later one."""
        if changed is None:
            self.clear()
        elif changed is not NOTHING_CHANGED:
            for key in changed.keys:
                self._set(key, None)
            for begin, end in changed.ranges:
                for key in self.between(begin, end):
                    self._set(key, None)
        self.place = place

    def clear(self) -> None:
        self.rows, self._keys, self.size, self.place = {}, [], 0, None

    def _set(self, key: bytes, row: Row | None) -> None:
        if row is not None and len(row.value) > MAX_REMEMBERED_VALUE_BYTES:
            row = None
        old = self.rows.get(key)
        if row is not None:
            self.rows[key] = row
            self.size += len(row.value) - (len(old.value) if old is not None else -len(key))
            if old is None:
                insort(self._keys, key)
        elif old is not None:
            del self.rows[key]
            del self._keys[bisect_left(self._keys, key)]
            self.size -= len(key) + len(old.value)

    def _bound(self) -> None:
        if len(self.rows) > MAX_REMEMBERED_KEYS or self.size > MAX_REMEMBERED_BYTES:
            self.clear()


class RememberedSpaces:
    """The remembered rows of each space that this process uses."""

    def __init__(self) -> None:
        self._spaces: dict[bytes, RememberedRows] = {}
        self._calls = 0

    def of(self, space: bytes) -> RememberedRows:
        self._calls += 1
        if self._calls % _CALLS_PER_LOOK == 0:
            self._bound()
        memory = self._spaces.get(space)
        return memory or self._spaces.setdefault(space, RememberedRows())

    def _bound(self) -> None:
        """Forgets everything once it is too much: what is used is soon known again."""
        size = sum(memory.size for memory in list(self._spaces.values()))
        if size > MAX_REMEMBERED_BYTES or len(self._spaces) > _MAX_SPACES:
            self._spaces = {}


def covered(page: RangeRead, content: Sequence[tuple[bytes, Row]]) -> tuple[bytes, bytes]:
    """Returns the range that a page with this content covers completely."""
    if len(content) < page.limit:
        return page.begin, page.end
    last = content[-1][0]
    return (last, page.end) if page.reverse else (page.begin, last + b"\0")
