"""Settings of a space, the same for every process.

They are stored after the digest of the schemas, which ingestion reads anyway, so they cost no read.
"""

import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.bounded_cache import BoundedCache
from holdfast.engine.contract import Reader, Transaction
from holdfast.error_text import shown
from holdfast.errors import BadInput
from holdfast.events.layout import keys_of
from holdfast.events.records import Settings
from holdfast.events.times import zone
from holdfast.limits import MAX_EVENT_WRITES, MAX_EXPIRE_AFTER_SECONDS

__all__ = ["DIGEST_BYTES", "NO_SCHEMAS", "configure", "settings_in", "settings_of"]

DIGEST_BYTES: Final = 16  # of the schemas; what follows are the settings
NO_SCHEMAS: Final = bytes(DIGEST_BYTES)

_decode: Final = msgspec.msgpack.Decoder(Settings).decode


def configure(tx: Transaction, changes: dict[str, Any]) -> Settings:
    """Stores those of the changes that are not None."""
    key = keys_of(tx.space).schemas_digest
    stored = tx.get(key) or NO_SCHEMAS
    given = {name: value for name, value in changes.items() if value is not None}
    settings = msgspec.structs.replace(settings_in(stored), **given)
    _check(settings)
    settings = msgspec.structs.replace(settings, dedup_seconds=float(settings.dedup_seconds))
    tx.put(key, stored[:DIGEST_BYTES] + msgspec.msgpack.encode(settings))
    return settings


def settings_of(reader: Reader) -> Settings:
    """Returns the settings of a space. Reads 1 key."""
    return settings_in(reader.get(keys_of(reader.space).schemas_digest))


def settings_in(stored: bytes | None) -> Settings:
    """Returns the settings that follow the digest, or the defaults."""
    return _settings(b"" if stored is None else stored[DIGEST_BYTES:])


def _read(packed: bytes) -> Settings:
    return _decode(packed) if packed else Settings()


# Every event reads one of a few.
_settings: Final[Callable[[bytes], Settings]] = BoundedCache(_read, entries=256).__getitem__


def _check(settings: Settings) -> None:
    if not isinstance(settings.timezone, str):
        raise BadInput(
            f"`timezone` must be a name such as 'Europe/Berlin', not {shown(settings.timezone)}"
        )
    zone(settings.timezone)
    for name in ("looked_up_members", "fan_out_keys"):
        number = getattr(settings, name)
        if type(number) is not int or not 0 < number <= MAX_EVENT_WRITES:
            raise BadInput(
                f"`{name}` must be an integer from 1 to {MAX_EVENT_WRITES}, not {shown(number)}"
            )
    seconds = settings.dedup_seconds
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 < seconds <= MAX_EXPIRE_AFTER_SECONDS
        or math.isnan(seconds)
    ):
        raise BadInput(
            f"`dedup_seconds` must be a number above 0, at most {MAX_EXPIRE_AFTER_SECONDS}, "
            f"not {shown(seconds)}"
        )
