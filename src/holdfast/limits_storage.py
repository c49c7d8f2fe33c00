"""A storage of the package `limits` (extra `limits`), for code that already uses it.

    storage = HoldfastStorage(store=store)                        # a store that is open
    storage = storage_from_string("holdfast:///var/lib/app")      # or a folder
    limiter = MovingWindowRateLimiter(storage)

All strategies of `limits` work. A hit is a transaction, so limits survive a restart, are shared by
all processes on the folder, and never race.
"""

from typing import Any
from urllib.parse import unquote, urlparse

from holdfast.errors import HoldfastError, MissingDriver
from holdfast.metrics import foreign_windows
from holdfast.store import Space, Store, open

try:
    from limits.storage import MovingWindowSupport, SlidingWindowCounterSupport, Storage
except ImportError as error:
    raise MissingDriver(
        "the package `limits` is not installed", hint="pip install 'holdfastdb[limits]'"
    ) from error

__all__ = ["HoldfastStorage"]


class HoldfastStorage(Storage, MovingWindowSupport, SlidingWindowCounterSupport):
    """Keeps the windows of `limits` in a store, under the prefix `limits`."""

    STORAGE_SCHEME = ["holdfast"]  # noqa: RUF012  # the base class declares it so

    def __init__(
        self,
        uri: str | None = None,
        wrap_exceptions: bool = False,
        *,
        store: Space | None = None,
        **options: Any,
    ) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        self._opened: Store | None = None
        if store is None:
            store = self._opened = open(unquote(urlparse(uri or "").path), **options)
        self.store = store
        self._windows = foreign_windows(store.metrics)

    def close(self) -> None:
        """Closes the store, if this storage has opened it."""
        if self._opened is not None:
            self._opened.close()

    @property
    def base_exceptions(self) -> type[Exception]:
        return HoldfastError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        return self._windows.hit(key, expiry, amount)

    def get(self, key: str) -> int:
        return self._windows.fixed_window(key).count

    def get_expiry(self, key: str) -> float:
        return self._windows.fixed_window(key).ends

    def check(self) -> bool:
        try:
            self._windows.fixed_window("")
        except HoldfastError:
            return False
        return True

    def reset(self) -> int | None:
        return self._windows.reset()

    def clear(self, key: str) -> None:
        self._windows.clear(key)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self._windows.acquire_moving(key, limit, expiry, amount)

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        return self._windows.moving_window(key, limit, expiry)

    def acquire_sliding_window_entry(
        self, key: str, limit: int, expiry: int, amount: int = 1
    ) -> bool:
        return self._windows.acquire_sliding(key, limit, expiry, amount)

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        return self._windows.sliding_window(key, expiry)

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        self._windows.clear_sliding(key, expiry)
