"""Deploys, lists and withdraws schemas, and compiles those that are deployed."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from holdfast.bounded_cache import BoundedDict
from holdfast.engine.contract import Reader, Transaction
from holdfast.errors import BadInput, Conflict, InvalidEventSchema, UnknownSchema
from holdfast.events.flux_dialect import parse_text, read_flux_schema
from holdfast.events.handlers import CompiledSchemas, DeployedSchema
from holdfast.events.layout import keys_of
from holdfast.events.records import Settings
from holdfast.events.schema import read_schema
from holdfast.events.settings import DIGEST_BYTES, NO_SCHEMAS, settings_in
from holdfast.events.times import WEEKDAYS, Calendar, zone
from holdfast.limits import (
    MAX_EVENT_SCHEMA_BYTES,
    MAX_EVENT_SCHEMAS,
    MAX_EVENT_SCHEMAS_BYTES,
    MAX_SCHEMA_NAME_BYTES,
)

__all__ = [
    "Dialect",
    "deploy",
    "deployed",
    "dialects",
    "problems",
    "schema_of",
    "schemas",
    "withdraw",
]

Dialect: TypeAlias = Literal["mql", "flux"]


class StoredSchema(msgspec.Struct, array_like=True, frozen=True):
    """A schema with options. One without any is stored as the plain object."""

    source: Any  # the object; in the flux dialect the text, byte for byte
    dialect: str = "mql"
    order: int = 0  # of the schemas in the flux dialect, by their first deployment
    timezone: str = ""
    first_day: str = ""

    @property
    def calendar(self) -> Calendar | None:
        if self.dialect == "flux":
            return Calendar(style="flux")
        if not self.timezone and not self.first_day:
            return None
        day = WEEKDAYS.index(self.first_day) if self.first_day else 0
        return Calendar(self.timezone, day)

    def plain(self) -> dict[str, Any]:
        """Returns the schema as an object."""
        found: dict[str, Any] = parse_text(self.source) if self.dialect == "flux" else self.source
        return found


_decode_list: Final = msgspec.msgpack.Decoder(StoredSchema).decode


def _decode(stored: bytes) -> StoredSchema:
    if stored[0] >> 4 == 0x9:  # an array; a plain object is a map
        return _decode_list(stored)
    return StoredSchema(msgspec.msgpack.decode(stored))


def deploy(
    tx: Transaction,
    schema: Mapping[str, Any] | str | bytes,
    name: str,
    dialect: str = "mql",
    timezone: str | None = None,
    week_starts_on: str | None = None,
) -> None:
    """Checks a schema and stores it under its name."""
    size = len(name.encode(errors="surrogatepass")) if isinstance(name, str) else 0
    if not 0 < size <= MAX_SCHEMA_NAME_BYTES:
        raise InvalidEventSchema([f"a schema's name must have 1 to {MAX_SCHEMA_NAME_BYTES} bytes"])
    if dialect == "flux":
        if timezone or week_starts_on:
            raise BadInput("the flux dialect takes no time zone and no first day of the week")
        stored = _flux_schema(tx, schema, name)
    elif dialect == "mql":
        stored = _native_schema(schema, timezone, week_starts_on)
    else:
        raise BadInput(f"a dialect must be 'mql' or 'flux', not {dialect!r}")
    if len(stored) > MAX_EVENT_SCHEMA_BYTES:
        raise InvalidEventSchema(
            [f"the schema has {len(stored)} bytes, at most {MAX_EVENT_SCHEMA_BYTES} fit"]
        )
    tx.put(keys_of(tx.space).schema(name), stored)
    sizes = [len(each) for _, each in _stored(tx)]
    if len(sizes) > MAX_EVENT_SCHEMAS:
        raise InvalidEventSchema(
            [
                f"there would be {len(sizes)} schemas, at most {MAX_EVENT_SCHEMAS} fit; "
                "withdraw those that no event uses"
            ]
        )
    size = sum(sizes)
    if size > MAX_EVENT_SCHEMAS_BYTES:
        raise InvalidEventSchema(
            [
                f"all schemas would have {size} bytes, at most {MAX_EVENT_SCHEMAS_BYTES} fit; "
                "withdraw those that no event uses"
            ]
        )
    _store_digest(tx)


def _native_schema(
    schema: Mapping[str, Any] | str | bytes, timezone: str | None, week_starts_on: str | None
) -> bytes:
    plain, _ = read_schema(schema)
    if timezone is not None:
        zone(timezone)
    if week_starts_on is not None and week_starts_on not in WEEKDAYS:
        raise BadInput(f"a week starts on one of {', '.join(WEEKDAYS)}, not {week_starts_on!r}")
    try:
        if timezone is None and week_starts_on is None:
            return msgspec.msgpack.encode(plain)
        return msgspec.msgpack.encode(
            StoredSchema(plain, timezone=timezone or "", first_day=week_starts_on or "")
        )
    except UnicodeEncodeError as error:
        raise InvalidEventSchema([f"the schema holds text that is not Unicode: {error}"]) from None


def _flux_schema(tx: Transaction, schema: Mapping[str, Any] | str | bytes, name: str) -> bytes:
    if isinstance(schema, Mapping):
        text = msgspec.json.encode(schema)
    else:
        text = schema if isinstance(schema, bytes) else schema.encode()
    parse_text(text)
    others = {other: _decode(stored) for other, stored in _stored(tx)}
    if name in others and others[name].dialect == "flux":
        order = others[name].order
    else:
        order = max((other.order for other in others.values()), default=0) + 1
    return msgspec.msgpack.encode(StoredSchema(text, "flux", order))


def withdraw(tx: Transaction, name: str) -> None:
    """Removes the schema of that name."""
    key = keys_of(tx.space).schema(name) if isinstance(name, str) else None
    if key is None or tx.get(key) is None:
        raise UnknownSchema(f"no schema {name!r} is deployed")
    tx.delete(key)
    _store_digest(tx)


def schemas(reader: Reader) -> dict[str, dict[str, Any]]:
    """Returns all deployed schemas by name."""
    return {name: _decode(stored).plain() for name, stored in _stored(reader)}


def dialects(reader: Reader) -> dict[str, Dialect]:
    """Returns the dialect of each schema: native ones by name, then Flux's as they were posted."""
    found = [(name, _decode(stored)) for name, stored in _stored(reader)]
    found.sort(key=lambda pair: pair[1].order)
    return {name: "flux" if stored.dialect == "flux" else "mql" for name, stored in found}


def schema_of(reader: Reader, name: str) -> StoredSchema:
    """Returns one schema as it is stored. Reads 1 key."""
    stored = reader.get(keys_of(reader.space).schema(name)) if isinstance(name, str) else None
    if stored is None:
        raise UnknownSchema(f"no schema {name!r} is deployed")
    return _decode(stored)


def problems(reader: Reader, name: str) -> list[str]:
    """Returns a sentence for each invalid handler of a schema, which is skipped."""
    schema = schema_of(reader, name)
    return read_flux_schema(schema.plain())[1] if schema.dialect == "flux" else []


def deployed(reader: Reader) -> tuple[CompiledSchemas, Settings]:
    """Returns the handlers of all deployed schemas, and the settings of the space.

    Reads 1 key, and all schemas if they changed.
    """
    stored = reader.get(keys_of(reader.space).schemas_digest)
    if stored is None:
        return _no_schemas(), settings_in(None)
    known = _known.get(stored)
    if known is None:
        schemas = _stored(reader)
        # An engine may run work on guessed values to learn what it reads; those must not be cached.
        if stored[:DIGEST_BYTES] not in (NO_SCHEMAS, _digest(schemas)):
            raise Conflict("the schemas of the space do not match their digest")
        compiled = CompiledSchemas([_deployed(name, schema) for name, schema in schemas])
        known = compiled, settings_in(stored)
        _known.keep(stored, known, sum(len(schema) for _, schema in schemas))
    return known


# Compiled schemas and settings, by the stored digest and settings.
_known: Final[BoundedDict[bytes, tuple[CompiledSchemas, Settings]]] = BoundedDict(
    entries=256, most_bytes=MAX_EVENT_SCHEMAS_BYTES
)


# The schemas among them. When one changes, the others are not parsed again.
_read: Final[WeakValueDictionary[tuple[str, bytes], DeployedSchema]] = WeakValueDictionary()


def _deployed(name: str, stored: bytes) -> DeployedSchema:
    found = _read.get((name, stored))
    if found is None:
        found = _read[name, stored] = _parsed(name, stored)
    return found


def _parsed(name: str, stored: bytes) -> DeployedSchema:
    schema = _decode(stored)
    if schema.dialect == "flux":
        handlers = read_flux_schema(schema.plain())[0]
        return DeployedSchema(name, handlers, schema.calendar, is_flux=True)
    native = read_schema(schema.source)[1]
    return DeployedSchema(name, [("", handler) for handler in native], schema.calendar)


@lru_cache(maxsize=1)
def _no_schemas() -> CompiledSchemas:
    return CompiledSchemas([])


def _stored(reader: Reader) -> list[tuple[str, bytes]]:
    keys = keys_of(reader.space)
    return [(keys.schema_name(key), stored) for key, stored in reader.scan(*keys.schemas)]


def _store_digest(tx: Transaction) -> None:
    """Updates the digest by which every process notices that the schemas have changed."""
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
