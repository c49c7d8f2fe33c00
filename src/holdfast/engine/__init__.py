"""Engines: ordered, transactional maps of bytes. The scheme of a URL chooses one.

Your own package can add one: its distribution declares an entry point of the group
`holdfast.engines`, named after the URL scheme, that loads an `EngineFactory`. Ours are declared in
the same way in pyproject.toml. docs/why/extending.md shows how.
"""

import importlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from holdfast.engine.contract import Engine, EngineFactory, EngineOptions
from holdfast.engine.urls import scheme_of
from holdfast.errors import BadInput
from holdfast.limits import CHECKPOINT_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["open_engine"]

GROUP: Final = "holdfast.engines"
# Our own entry points. Reading the metadata of every installed package to find them would take
# longer than opening a store, and a source tree that is not installed has no metadata.
OWN_ENGINES: Final = {
    "lmdb": "holdfast.engine.lmdb:open_lmdb",
    "postgres": "holdfast.engine.postgres:open_postgres",
    "postgresql": "holdfast.engine.postgres:open_postgres",
    "redis": "holdfast.engine.valkey:open_valkey",
    "rediss": "holdfast.engine.valkey:open_valkey",
    "valkey": "holdfast.engine.valkey:open_valkey",
    "valkeys": "holdfast.engine.valkey:open_valkey",
}


def open_engine(
    url: "str | Path",
    *,
    durability: str = "commit",
    clock: Callable[[], float] = time.time,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Engine:
    """Opens the engine that `url` names.

    A path or `lmdb:PATH` is a folder of the embedded one, `postgresql://user@host/database` a store
    on PostgreSQL, `valkey://host:port` one on Valkey; other schemes belong to installed packages.
    `checkpoint_seconds` is for the embedded one.
    """
    if not callable(clock):
        raise BadInput(
            f"the clock {clock!r:.100} is not a function",
            hint="A clock returns the seconds since 1970, such as `time.time`.",
        )
    options = EngineOptions(durability, clock, checkpoint_seconds)
    if isinstance(url, os.PathLike):
        from pathlib import Path

        from holdfast.engine.lmdb import open_folder

        return open_folder(Path(url), options)
    return _factory(scheme_of(url) or "lmdb")(url, options)


def _factory(scheme: str) -> EngineFactory:
    """Returns the factory of a URL scheme; packages can't replace ours."""
    target = OWN_ENGINES.get(scheme)
    if target is not None:
        module, _, name = target.partition(":")
        return cast(EngineFactory, getattr(importlib.import_module(module), name))
    from importlib.metadata import entry_points

    found = list(entry_points(group=GROUP, name=scheme))
    if not found:
        raise _unknown(scheme)
    if len({each.value for each in found}) > 1:
        names = " and ".join(sorted(each.value for each in found))
        raise BadInput(
            f"two packages serve the URL scheme {scheme!r}: {names}",
            hint="Uninstall one of them.",
        )
    return cast(EngineFactory, found[0].load())


def _unknown(scheme: str) -> BadInput:
    hint = "Name a folder, as in holdfast.open('data'), or a postgresql:// or valkey:// URL."
    if scheme in ("holdfast", "holdfasts"):
        hint = "That is the URL of a server: `holdfast.connect(url)` connects to it."
    return BadInput(f"no engine serves the URL scheme {scheme!r}", hint=hint)
