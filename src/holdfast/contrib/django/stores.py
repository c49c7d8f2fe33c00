"""The store of a Django project: that of the setting `HOLDFAST`, opened once in each process."""

import atexit
import os
import threading
from typing import Any, Final

from holdfast.errors import MissingDriver
from holdfast.store import Store
from holdfast.store import open as open_path_or_url

try:
    from django import conf
    from django.core.exceptions import ImproperlyConfigured
except ImportError as error:
    raise MissingDriver(
        "the package `django` is not installed", hint="pip install 'holdfastdb[django]'"
    ) from error

__all__ = ["close_store", "open_store"]

_opened: Final[dict[int, Store]] = {}  # by process: a server forks after the settings were read
_lock: Final = threading.Lock()


def open_store() -> Store:
    """Returns the store of the project, opened when it is first used.

    The setting `HOLDFAST` is its folder or URL; `HOLDFAST_OPTIONS` are options of `holdfast.open`.
    """
    found = _opened.get(os.getpid())
    if found is not None:
        return found
    place: Any = getattr(conf.settings, "HOLDFAST", None)
    if place is None:
        raise ImproperlyConfigured("set HOLDFAST to the folder or URL of your store")
    with _lock:
        if os.getpid() not in _opened:
            options: dict[str, Any] = getattr(conf.settings, "HOLDFAST_OPTIONS", {})
            _opened[os.getpid()] = open_path_or_url(place, **options)
            atexit.register(close_store)
        return _opened[os.getpid()]


def close_store() -> None:
    """Closes the store of this process, if it is open; the next use opens it again."""
    store = _opened.pop(os.getpid(), None)
    if store is not None:
        atexit.unregister(close_store)
        store.close()
