"""Runs a transaction in a space that does not exist, to see whether it would write anything.

A space is created by its first write. Some commands that read are transactions, because they
may move something, and some writes are refused or have nothing to do: none of them is a
reason to create a space.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from holdfast.engine.contract import Notice, Outcome, Reader, Transaction

T = TypeVar("T")


class _Writes(Exception):
    """Ends a dry run: the rest needs a real space."""


class EmptySpaceDryRun:
    """A transaction on an empty space: it reads what exists there, and ends with the first
    write."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.now = reader.now
        self.space = reader.space
        self.writes = False  # even if the work catches the exception

    def __getattr__(self, name: str) -> Any:
        return self._needs_space()  # methods of an engine beyond the contract

    def get(self, key: bytes) -> bytes | None:
        return self._reader.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._reader.get_many(keys)

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        return self._reader.scan(begin, end, limit=limit, reverse=reverse)

    def put(self, key: bytes, value: bytes) -> None:
        self._needs_space()

    def put_all(self, pairs: dict[bytes, bytes], *, checked: bool = False) -> None:
        if pairs:
            self._needs_space()

    def delete(self, key: bytes) -> None:
        if self._reader.get(key) is not None:  # a table that all spaces have
            self._needs_space()

    def clear(self, begin: bytes, end: bytes) -> None:
        if next(self._reader.scan(begin, end, limit=1), None) is not None:
            self._needs_space()

    def add(self, key: bytes, delta: int) -> None:
        self._needs_space()

    def after_commit(self, notice: Notice) -> None:
        self._needs_space()

    def after_commit_many(self, topic_prefix: str, make: Callable[[], list[Notice]]) -> None:
        self._needs_space()

    def _needs_space(self) -> None:
        self.writes = True
        raise _Writes


def dry_run(work: Callable[[Transaction], T], reader: Reader) -> Outcome[T] | None:
    """Returns the outcome of `work` in an empty space; None if it would write."""
    run = EmptySpaceDryRun(reader)
    try:
        outcome = Outcome(result=work(run))
    except Exception as error:
        outcome = Outcome(error=error)
    return None if run.writes else outcome
