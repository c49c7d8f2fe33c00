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
        """The exceptions that `limits` wraps or passes to a fallback storage."""
        return HoldfastError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Counts a hit in a fixed window, and returns the count."""
        return self._windows.hit(key, expiry, amount)

    def get(self, key: str) -> int:
        """Returns the count of a fixed window."""
        return self._windows.fixed_window(key).count

    def get_expiry(self, key: str) -> float:
        """Returns when a fixed window ends, in seconds since 1970."""
        return self._windows.fixed_window(key).ends

    def check(self) -> bool:
        """Returns whether the store can be read."""
        try:
            self._windows.fixed_window("")
        except HoldfastError:
            return False
        return True

    def reset(self) -> int | None:
        """Deletes all windows."""
        return self._windows.reset()

    def clear(self, key: str) -> None:
        """Deletes the windows of a key."""
        self._windows.clear(key)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Counts a hit in a moving window if the limit allows it; returns whether it did."""
        return self._windows.acquire_moving(key, limit, expiry, amount)

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Returns the beginning of a moving window, and its count."""
        return self._windows.moving_window(key, limit, expiry)

    def acquire_sliding_window_entry(
        self, key: str, limit: int, expiry: int, amount: int = 1
    ) -> bool:
        """Counts a hit in a sliding window if the limit allows it; returns whether it did."""
        return self._windows.acquire_sliding(key, limit, expiry, amount)

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Returns counts and remaining times of the previous and the current window."""
        return self._windows.sliding_window(key, expiry)

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        """Deletes the sliding window of a key."""
        self._windows.clear_sliding(key, expiry)
