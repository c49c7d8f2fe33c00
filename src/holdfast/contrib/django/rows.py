"""Values by key that expire: the storage of the cache and of sessions.

They are rows of a table in a separate space, so that clearing a cache clears nothing else.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from holdfast.contrib.django.stores import open_store
from holdfast.errors import TableNotFound
from holdfast.store import Tx

T = TypeVar("T")

_NEVER: Final = 253_402_300_800.0  # the year 10000: stored for values that do not expire

_SCHEMA: Final = {
    "attributes": {"key": "string", "value": "blob", "ends": "double"},
    "index": [{"type": "hash", "attribute": "key"}],
}


class ValueTable:
    """A table of values in the project's store; each call is one transaction."""

    def __init__(self, space: str, table: str) -> None:
        self._space = space
        self._table = table

    def transact(self, work: Callable[["RowsTx"], T]) -> T:
        """Runs `work` as one transaction; the table is created when it is first needed."""

        def run(tx: Tx) -> T:
            return work(RowsTx(tx, self._table))

        space = open_store().space(self._space)
        try:
            return space.transact(run)
        except TableNotFound:
            space.tables.create({"table": self._table, **_SCHEMA})
            return space.transact(run)

    def read(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Returns the values of those `keys` that exist. Reads 1 row for each."""
        space = open_store().space(self._space)
        try:
            with space.view() as view:
                found = {key: RowsTx(view, self._table).get(key) for key in keys}
        except TableNotFound:
            return {}
        return {key: value for key, value in found.items() if value is not None}

    def clear(self) -> None:
        """Removes all values at once."""
        open_store().space(self._space).tables.drop(self._table)


class RowsTx:
    """The rows on one transaction or view."""

    def __init__(self, tx: Any, table: str) -> None:
        self._tx = tx
        self._table = table

    def _row(self, key: str) -> Any:
        items = self._tx.tables.get(self._table, {"key": key}, limit=1).items
        return items[0] if items and items[0]["ends"] > self._tx.now else None

    def get(self, key: str) -> bytes | None:
        """Returns the value of a key, unless it has expired."""
        row = self._row(key)
        return None if row is None else bytes(row["value"])

    def ends(self, key: str) -> float | None:
        """Returns the seconds that a value has left; None if it does not expire or does not
        exist."""
        row = self._row(key)
        return None if row is None or row["ends"] == _NEVER else row["ends"] - self._tx.now

    def put(self, key: str, value: bytes, seconds: float | None) -> None:
        """Puts a value that expires after `seconds`; None keeps it, 0 and less removes it."""
        tables = self._tx.tables
        tables.delete(self._table, {"key": key})
        if seconds is None:
            tables.put(self._table, {"key": key, "value": value, "ends": _NEVER})
        elif seconds > 0:
            ends = self._tx.now + seconds
            row = {"key": key, "value": value, "ends": ends, "_ttl": math.ceil(seconds)}
            tables.put(self._table, row)

    def delete(self, key: str) -> bool:
        """Removes a value; returns whether it existed."""
        was_there = self._row(key) is not None
        self._tx.tables.delete(self._table, {"key": key})
        return was_there
