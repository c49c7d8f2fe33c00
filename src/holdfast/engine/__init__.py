"""The ground: an ordered, transactional map of bytes, on the engine that a URL names."""

import time
from collections.abc import Callable
from pathlib import Path

from holdfast.engine.contract import Engine
from holdfast.engine.durability import check_durability
from holdfast.engine.urls import scheme_of
from holdfast.errors import BadInput
from holdfast.limits import CHECKPOINT_SECONDS

__all__ = ["open_engine"]


def open_engine(
    url: str | Path,
    *,
    durability: str = "commit",
    clock: Callable[[], float] = time.time,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Engine:
    """Opens the engine that `url` names.

    A path or `lmdb:PATH` is a folder of the embedded one, `postgresql://user@host/database` a store
    on PostgreSQL, `valkey://host:port` one on Valkey. `checkpoint_seconds` is for the embedded one.
    """
    scheme = "" if isinstance(url, Path) else scheme_of(url)
    if scheme in ("", "lmdb"):
        from holdfast.engine.lmdb import LmdbEngine

        return LmdbEngine(
            url if isinstance(url, Path) else _folder(url),
            clock=clock,
            durability=durability,
            checkpoint_seconds=checkpoint_seconds,
        )
    if scheme in ("postgres", "postgresql"):
        from holdfast.engine.postgres import PostgresBackend
        from holdfast.engine.remote import RemoteEngine

        check_durability(durability)
        return RemoteEngine(PostgresBackend(str(url), durability=durability), clock=clock)
    if scheme in ("valkey", "valkeys", "redis", "rediss"):
        from holdfast.engine.valkey import open_valkey

        check_durability(durability)
        return open_valkey(str(url), durability=durability, clock=clock)
    hint = "Name a folder, as in holdfast.open('data'), or a postgresql:// or valkey:// URL."
    if scheme in ("holdfast", "holdfasts"):
        hint = "That is the URL of a server: `holdfast.connect(url)` connects to it."
    raise BadInput(f"no engine serves the URL scheme {scheme!r}", hint=hint)


def _folder(url: str) -> Path:
    path = url.removeprefix("lmdb:")
    # "" would be the current folder, and "//data" the folder /data: hardly what was meant.
    if not path or (path.startswith("//") and not path.startswith("///")):
        raise BadInput(
            f"{url!r} names no folder", hint="Write 'data', '/var/data', or 'lmdb:/var/data'."
        )
    return Path(path)
