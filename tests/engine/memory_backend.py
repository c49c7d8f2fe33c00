"""A backend in memory: the whole protocol of remote engines, and faults when they are asked for."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from holdfast.engine.contract import Notice, pack_counter, read_counter
from holdfast.engine.long_keys import LongKeys
from holdfast.engine.remote import (
    AddRefused,
    Commit,
    Committed,
    Conflicted,
    ConnectionLost,
    RangeRead,
    Refreshed,
    Row,
    Unsettled,
)
from holdfast.limits import MAX_COUNTER, MIN_COUNTER

Rows = dict[bytes, Row]


class MemoryBackend:
    """One store. `fault` is asked before every message to the server, and may name what goes wrong:
    "unreachable", or for a commit "lost before" or "lost after" it was made."""

    def __init__(self, long_keys: LongKeys | None = None) -> None:
        self.name = "memory:"
        self.long_keys = long_keys
        self.lock = threading.Lock()
        self.rows: Rows = {}
        self.log: list[list[Notice]] = []
        self.commits = 0
        self.messages = 0
        self.fault: Callable[[str], str] = lambda message: ""
        self.listening: list[Callable[[], None]] = []

    def session(self, space: bytes) -> "MemorySession":
        return MemorySession(self)

    def ask(self, message: str) -> str:
        self.messages += 1
        fault = self.fault(message)
        if fault == "unreachable":
            raise ConnectionLost("by wish of the test")
        return fault

    def apply(self, commit: Commit) -> int:
        """Makes a commit, and returns its version."""
        with self.lock:
            rows = self.rows
            self._validate(commit)
            changed = {
                key: row
                for key, row in rows.items()
                if not any(begin <= key < end for begin, end in commit.clears)
            }
            version = self.commits + 1
            for key in commit.deletes:
                changed.pop(key, None)
            for key, value in commit.puts.items():
                changed[key] = Row(value, version)
            for key, delta in commit.adds.items():
                changed[key] = Row(_added(changed.get(key), delta), version)
            self.rows = changed
            self.commits = version
            if commit.notices:
                self.log.append(commit.notices)
        for wake in self.listening:
            wake()
        return version

    def _validate(self, commit: Commit) -> None:
        for key, version in commit.keys.items():
            row = self.rows.get(key)
            if (row.version if row else 0) != version:
                raise Conflicted
        for begin, end, versions in commit.ranges:
            inside = sorted((key, row) for key, row in self.rows.items() if begin <= key < end)
            if [row.version for _, row in inside] != versions:
                raise Conflicted

    def newest_notice(self) -> int:
        return len(self.log)

    def notices_since(self, place: int) -> tuple[int, int, list[Notice]]:
        fresh = self.log[place:]
        return place + len(fresh), 0, [notice for notices in fresh for notice in notices]

    def listen(self, wake: Callable[[], None], stopped: threading.Event) -> None:
        self.listening.append(wake)

    def problems(self) -> list[str]:
        return []

    def checkpoint(self) -> None: ...

    def backup(self, target: Path) -> NoReturn:
        raise NotImplementedError

    def stats(self) -> dict[str, int]:
        self.ask("stats")
        return {"keys": len(self.rows)}

    def refuse_full(self, space: bytes) -> None: ...

    def close(self) -> None: ...

    def forked(self) -> None: ...


class MemorySession:
    follows = True

    def __init__(self, backend: MemoryBackend) -> None:
        self._backend = backend
        self._rows: Rows | None = None
        self.committed = False
        self.place = None

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        self._backend.ask("fetch")
        if self._rows is None:
            self._rows = self._backend.rows
        rows = self._rows
        return [rows.get(key) for key in keys], [self._page(rows, page) for page in pages]

    def _page(self, rows: Rows, page: RangeRead) -> list[tuple[bytes, Row]]:
        inside = sorted(
            ((key, row) for key, row in rows.items() if page.begin <= key < page.end),
            reverse=page.reverse,
        )
        if page.follow:
            named = [page.follow + row.value for _, row in inside[: page.limit]]
            return [(key, rows[key]) for key in named if key in rows]
        return inside[: page.limit]

    def commit(self, commit: Commit) -> Committed:
        fault = self._backend.ask("commit")
        if fault == "lost before":
            raise Unsettled(lambda: self._settle(False))
        version = self._backend.apply(commit)
        if fault == "lost after":
            raise Unsettled(lambda: self._settle(True))
        self.committed = True
        return Committed(version)

    def try_commit(
        self, commit: Commit, keys: Sequence[bytes], pages: Sequence[RangeRead], place: Any
    ) -> Committed | Refreshed:
        try:
            return self.commit(commit)
        except Conflicted:
            rows = self._backend.rows
            contents = [self._page(rows, page) for page in pages]
            return Refreshed([rows.get(key) for key in keys], contents)

    def _settle(self, applied: bool) -> bool:
        self._backend.ask("settle")
        return applied

    def confirm(self) -> None: ...

    def close(self) -> None: ...


def _added(row: Row | None, delta: int) -> bytes:
    if row is not None and len(row.value) != 8:
        raise AddRefused
    number = read_counter(row.value if row else None) + delta
    if not MIN_COUNTER <= number <= MAX_COUNTER:
        raise AddRefused
    return pack_counter(number)
