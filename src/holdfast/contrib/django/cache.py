"""A cache backend: every change is one transaction, so counters are exact."""

import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache

from holdfast.contrib.django.rows import RowsTx, ValueTable

__all__ = ["HoldfastCache"]


class HoldfastCache(BaseCache):
    """Django's cache in the project's store; `LOCATION` names one of several caches.

    Values other than integers are pickled, as in Django's own caches: a user who can write to the
    store can run code in the processes that read it.
    """

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        self._rows = ValueTable("django-cache", location or "cache")

    def add(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: Any = None
    ) -> bool:
        """Puts a value if there is none; returns whether it did."""
        name, seconds, data = self._key(key, version), self._seconds(timeout), _pack(value)

        def work(rows: RowsTx) -> bool:
            if rows.get(name) is not None:
                return False
            rows.put(name, data, seconds)
            return True

        return self._rows.transact(work)

    def get(self, key: Any, default: Any = None, version: Any = None) -> Any:
        """Returns a value, or `default`."""
        name = self._key(key, version)
        found = self._rows.read([name])
        return _unpack(found[name]) if name in found else default

    def set(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: Any = None
    ) -> None:
        """Puts a value."""
        self.set_many({key: value}, timeout, version)

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: Any = None) -> bool:
        """Changes the time to live of a value; returns whether it exists."""
        name, seconds = self._key(key, version), self._seconds(timeout)

        def work(rows: RowsTx) -> bool:
            value = rows.get(name)
            if value is not None:
                rows.put(name, value, seconds)
            return value is not None

        return self._rows.transact(work)

    def delete(self, key: Any, version: Any = None) -> bool:
        """Removes a value; returns whether it existed."""
        name = self._key(key, version)
        return self._rows.transact(lambda rows: rows.delete(name))

    def get_many(self, keys: Iterable[Any], version: Any = None) -> dict[Any, Any]:
        """Returns the values that exist, from one snapshot."""
        names = {self._key(key, version): key for key in keys}
        found = self._rows.read(names)
        return {names[name]: _unpack(value) for name, value in found.items()}

    def set_many(
        self, data: Mapping[Any, Any], timeout: Any = DEFAULT_TIMEOUT, version: Any = None
    ) -> list[Any]:
        """Puts values, all or none."""
        packed = {self._key(key, version): _pack(value) for key, value in data.items()}
        seconds = self._seconds(timeout)

        def work(rows: RowsTx) -> None:
            for name, value in packed.items():
                rows.put(name, value, seconds)

        self._rows.transact(work)
        return []

    def delete_many(self, keys: Iterable[Any], version: Any = None) -> None:
        """Removes values, all or none."""
        names = [self._key(key, version) for key in keys]
        self._rows.transact(lambda rows: [rows.delete(name) for name in names])

    def incr(self, key: Any, delta: int = 1, version: Any = None) -> Any:
        """Adds to a number in one transaction, and returns the sum."""
        name = self._key(key, version)

        def work(rows: RowsTx) -> Any:
            value = rows.get(name)
            if value is None:
                raise ValueError(f"Key '{key}' not found")
            number = _unpack(value) + delta
            rows.put(name, _pack(number), rows.ends(name))
            return number

        return self._rows.transact(work)

    def get_or_set(
        self,
        key: Any,
        default: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: Any = None,
    ) -> Any:
        """Returns a value; without one, puts `default`, or what it returns if it is a function."""
        missing = object()
        found = self.get(key, missing, version)
        if found is not missing:
            return found
        made = default() if isinstance(default, Callable) else default  # type: ignore[arg-type]  # an ABC
        self.add(key, made, timeout, version)
        return self.get(key, made, version)

    def clear(self) -> None:
        """Empties this cache."""
        self._rows.clear()

    def _key(self, key: Any, version: Any) -> str:
        return str(self.make_and_validate_key(key, version))

    def _seconds(self, timeout: Any) -> float | None:
        chosen = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        return None if chosen is None else float(chosen)


def _pack(value: Any) -> bytes:
    if type(value) is int:
        return b"i" + str(value).encode()
    return b"p" + pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _unpack(data: bytes) -> Any:
    if data[:1] == b"i":
        return int(data[1:])
    return pickle.loads(data[1:])
