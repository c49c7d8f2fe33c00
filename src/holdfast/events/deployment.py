"""Deploying, listing and withdrawing schemas, and the compiled form of those that are deployed."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from holdfast.engine.contract import Reader, Transaction
from holdfast.errors import Conflict, InvalidEventSchema, UnknownSchema
from holdfast.events.handlers import CompiledSchemas
from holdfast.events.layout import keys_of
from holdfast.events.records import Settings
from holdfast.events.schema import read_schema
from holdfast.events.settings import DIGEST_BYTES, NO_SCHEMAS, settings_in
from holdfast.limits import MAX_EVENT_SCHEMA_BYTES, MAX_SCHEMA_NAME_BYTES

__all__ = ["deploy", "deployed", "schemas", "withdraw"]


def deploy(tx: Transaction, schema: Mapping[str, Any] | str | bytes, name: str) -> None:
    """Checks a schema and stores it under its name."""
    size = len(name.encode(errors="surrogatepass")) if isinstance(name, str) else 0
    if not 0 < size <= MAX_SCHEMA_NAME_BYTES:
        raise InvalidEventSchema([f"a schema's name has 1 to {MAX_SCHEMA_NAME_BYTES} bytes"])
    plain, _ = read_schema(schema)
    try:
        stored = msgspec.msgpack.encode(plain)
    except UnicodeEncodeError as error:
        raise InvalidEventSchema([f"the schema holds text that is no Unicode: {error}"]) from None
    if len(stored) > MAX_EVENT_SCHEMA_BYTES:
        raise InvalidEventSchema(
            [f"the schema has {len(stored)} bytes, at most {MAX_EVENT_SCHEMA_BYTES} fit"]
        )
    tx.put(keys_of(tx.space).schema(name), stored)
    _store_digest(tx)


def withdraw(tx: Transaction, name: str) -> None:
    """Removes the schema of that name."""
    key = keys_of(tx.space).schema(name) if isinstance(name, str) else None
    if key is None or tx.get(key) is None:
        raise UnknownSchema(f"no schema {name!r} is deployed")
    tx.delete(key)
    _store_digest(tx)


def schemas(reader: Reader) -> dict[str, dict[str, Any]]:
    """All deployed schemas by name."""
    return {name: msgspec.msgpack.decode(stored) for name, stored in _stored(reader)}


def deployed(reader: Reader) -> tuple[CompiledSchemas, Settings]:
    """The handlers of all deployed schemas, and the settings of the space.

    Reads 1 key, and all schemas if they changed.
    """
    stored = reader.get(keys_of(reader.space).schemas_digest)
    settings = settings_in(stored)
    if stored is None:
        return _no_schemas(), settings
    return _compile(_DeployedSchemas(stored[:DIGEST_BYTES], reader)), settings


class _DeployedSchemas:
    """What is deployed, known by its digest: whoever has compiled it need not read it again."""

    def __init__(self, digest: bytes, reader: Reader) -> None:
        self._digest = digest
        self._reader: Reader | None = reader

    def take(self) -> list[tuple[str, bytes]]:
        """The schemas. Once: the cache keeps this object, and must not keep its reader."""
        reader, self._reader = self._reader, None
        assert reader is not None
        stored = _stored(reader)
        # An engine may run work on guesses, to learn what it reads: they must not stay in a cache.
        if self._digest not in (NO_SCHEMAS, _digest(stored)):
            raise Conflict("the schemas of the space are not those of its digest")
        return stored

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DeployedSchemas) and self._digest == other._digest


@lru_cache(maxsize=256)
def _compile(deployed: _DeployedSchemas) -> CompiledSchemas:
    return CompiledSchemas(
        (name, read_schema(msgspec.msgpack.decode(stored))[1]) for name, stored in deployed.take()
    )


@lru_cache(maxsize=1)
def _no_schemas() -> CompiledSchemas:
    return CompiledSchemas(())


def _stored(reader: Reader) -> list[tuple[str, bytes]]:
    keys = keys_of(reader.space)
    return [(keys.schema_name(key), stored) for key, stored in reader.scan(*keys.schemas)]


def _store_digest(tx: Transaction) -> None:
    """Renews the digest by which every process notices that the schemas have changed."""
    key = keys_of(tx.space).schemas_digest
    settings = (tx.get(key) or NO_SCHEMAS)[DIGEST_BYTES:]
    tx.put(key, _digest(_stored(tx)) + settings)


def _digest(schemas: list[tuple[str, bytes]]) -> bytes:
    digest = blake2b(digest_size=DIGEST_BYTES)
    for name, stored in schemas:
        digest.update(b"%d %d " % (len(name.encode()), len(stored)))
        digest.update(name.encode())
        digest.update(stored)
    return digest.digest()
