"""Deploying, listing and withdrawing schemas, and the compiled form of those that are deployed."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from holdfast.engine.contract import Reader, Transaction
from holdfast.errors import InvalidSchema, UnknownSchema
from holdfast.events.configuration import DIGEST_BYTES, NO_SCHEMAS, settings_in
from holdfast.events.handlers import CompiledSchemas
from holdfast.events.layout import keys_of
from holdfast.events.records import Settings
from holdfast.events.schema import read_schema
from holdfast.limits import MAX_EVENT_SCHEMA_BYTES, MAX_SCHEMA_NAME_BYTES

__all__ = ["deploy", "deployed", "schemas", "withdraw"]


def deploy(tx: Transaction, schema: Mapping[str, Any] | str | bytes, name: str) -> None:
    """Checks a schema and stores it under its name."""
    size = len(name.encode(errors="surrogatepass")) if isinstance(name, str) else 0
    if not 0 < size <= MAX_SCHEMA_NAME_BYTES:
        raise InvalidSchema([f"a schema's name has 1 to {MAX_SCHEMA_NAME_BYTES} bytes"])
    plain, _ = read_schema(schema)
    try:
        stored = msgspec.msgpack.encode(plain)
    except UnicodeEncodeError as error:
        raise InvalidSchema([f"the schema holds text that is no Unicode: {error}"]) from None
    if len(stored) > MAX_EVENT_SCHEMA_BYTES:
        raise InvalidSchema(
            [f"the schema has {len(stored)} bytes, at most {MAX_EVENT_SCHEMA_BYTES} fit"]
        )
    tx.put(keys_of(tx.space).schema(name), stored)
    _sign(tx)


def withdraw(tx: Transaction, name: str) -> None:
    """Removes the schema of that name."""
    key = keys_of(tx.space).schema(name) if isinstance(name, str) else None
    if key is None or tx.get(key) is None:
        raise UnknownSchema(f"no schema {name!r} is deployed")
    tx.delete(key)
    _sign(tx)


def schemas(reader: Reader) -> dict[str, dict[str, Any]]:
    """All deployed schemas by name."""
    return {name: msgspec.msgpack.decode(stored) for name, stored in _stored(reader)}


def deployed(reader: Reader) -> tuple[CompiledSchemas, Settings]:
    """The handlers of all deployed schemas, and the settings of the space.

    Reads 1 key, and all schemas if they changed.
    """
    stored = reader.get(keys_of(reader.space).schemas_digest)
    settings = settings_in(stored)
    if stored is None or stored.startswith(NO_SCHEMAS):
        return _nothing(), settings
    try:
        return _compile(_Deployed(stored[:DIGEST_BYTES], reader)), settings
    except _NotOfThisDigest as found:
        return _compiled(found.schemas), settings


class _NotOfThisDigest(Exception):
    """The digest and the schemas do not belong together."""

    def __init__(self, schemas: list[tuple[str, bytes]]) -> None:
        super().__init__()
        self.schemas = schemas


class _Deployed:
    """What is deployed, known by its digest: whoever has compiled it need not read it again."""

    def __init__(self, digest: bytes, reader: Reader) -> None:
        self._digest = digest
        self._reader: Reader | None = reader

    def take(self) -> list[tuple[str, bytes]]:
        """The schemas. Once: the cache keeps this object, and must not keep its reader."""
        reader, self._reader = self._reader, None
        assert reader is not None
        found = _stored(reader)
        # A run that an engine will throw away may see the one and not the other. The cache, which
        # outlives it, must not.
        if _digest_of(found) != self._digest:
            raise _NotOfThisDigest(found)
        return found

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Deployed) and self._digest == other._digest


@lru_cache(maxsize=256)
def _compile(deployed: _Deployed) -> CompiledSchemas:
    return _compiled(deployed.take())


def _compiled(schemas: list[tuple[str, bytes]]) -> CompiledSchemas:
    return CompiledSchemas(
        (name, read_schema(msgspec.msgpack.decode(stored))[1]) for name, stored in schemas
    )


@lru_cache(maxsize=1)
def _nothing() -> CompiledSchemas:
    return CompiledSchemas(())


def _stored(reader: Reader) -> list[tuple[str, bytes]]:
    keys = keys_of(reader.space)
    return [(keys.schema_name(key), stored) for key, stored in reader.scan(*keys.schemas)]


def _sign(tx: Transaction) -> None:
    """Renews the digest by which every process notices that the schemas have changed."""
    key = keys_of(tx.space).schemas_digest
    settings = (tx.get(key) or NO_SCHEMAS)[DIGEST_BYTES:]
    tx.put(key, _digest_of(_stored(tx)) + settings)


def _digest_of(schemas: list[tuple[str, bytes]]) -> bytes:
    digest = blake2b(digest_size=DIGEST_BYTES)
    for name, stored in schemas:
        digest.update(b"%d %d " % (len(name.encode()), len(stored)))
        digest.update(name.encode())
        digest.update(stored)
    return digest.digest()
