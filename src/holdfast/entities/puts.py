"""PUT: inserts entities, or merges them into the stored ones."""

from collections.abc import Sequence
from typing import Any, Final, get_args

from holdfast.engine.contract import Transaction
from holdfast.entities.entity_writer import EntityWriter
from holdfast.entities.ids import check_id, compound_id, plain_id, random_ids
from holdfast.entities.messages import PutEntity, PutMode
from holdfast.entities.records import Stored
from holdfast.entities.strict_tables import check_entity
from holdfast.entities.table_access import TableAccess
from holdfast.entities.values import keep_properties
from holdfast.error_text import shown
from holdfast.errors import BadQuery, BadValue, DuplicateKey, VersionMismatch
from holdfast.keys import pack_str

_MODES: Final = frozenset(get_args(PutMode))
_NANOSECONDS_PER_MS: Final = 1_000_000
_MAX_EXPIRES: Final = 2**63 - 1


def put(
    tx: Transaction, access: TableAccess, entities: Sequence[PutEntity], mode: PutMode
) -> list[str]:
    """Writes `entities` and returns their ids in order; if one is refused, none is written."""
    if mode not in _MODES:
        raise BadQuery(f"the mode of a PUT must be merge, replace or insert, not {shown(mode)}")
    writer = EntityWriter(tx, access)
    ids = []
    drawn = random_ids(len(entities))
    for entity in entities:
        properties = keep_properties(entity.properties)
        given = entity.id
        id = _id_of(access, given, properties) if given or access.key_columns else None
        if id is None:
            id = next(drawn)
            id_part = pack_str(id)
            old = None  # a new id out of 2^64 does not exist yet
        else:
            id_part = pack_str(id)
            old = live_after_expiry(writer, id, id_part)
        _write(writer, entity, id, id_part, old, properties, mode)
        ids.append(id)
    writer.finish()
    return ids


def live_after_expiry(writer: EntityWriter, id: str, id_part: bytes) -> Stored | None:
    """Returns the live entity with that id; an expired one is removed first. Reads 1 key."""
    stored = writer.tx.get(writer.access.entities + id_part)
    if stored is None:
        return None
    old: Stored = writer.access.read_kept(stored)
    if old.expires and old.expires <= writer.now_ms:
        writer.remove(id, id_part, old, op="expire")
        return None
    return old


def expiry_of(ttl: int, old_expires: int, now_ms: int) -> int:
    """Returns when an entity put with `ttl` expires: 0 keeps its expiry, below 0 is never."""
    if type(ttl) is not int:
        raise BadValue(f"Invalid value for TTL: {ttl!r}", hint="Give whole nanoseconds.")
    if ttl == 0:
        return old_expires
    if ttl < 0:
        return 0
    expires = now_ms - (-ttl // _NANOSECONDS_PER_MS)
    if expires > _MAX_EXPIRES:
        raise BadValue(f"an entity can't expire after {ttl} nanoseconds: the number is too large")
    return expires


def _id_of(access: TableAccess, given: str | None, properties: dict[str, Any]) -> str | None:
    if access.key_columns:
        get = properties.get
        parts = [(column, kind, get(column)) for column, kind in access.key_columns]
        return check_id(compound_id(parts, hashed=access.hashed))
    if not given:
        return None
    return check_id(plain_id(given))


def _write(
    writer: EntityWriter,
    entity: PutEntity,
    id: str,
    id_part: bytes,
    old: Stored | None,
    properties: dict[str, Any],
    mode: PutMode,
) -> None:
    access = writer.access
    if entity.if_version is not None:
        check_version(access, id, old, entity.if_version)
    names = tuple(properties)
    if old is None and not entity.ttl and access.strict is None:
        writer.put_new(id, id_part, properties, names)
        return
    expires = 0
    if old is not None:
        if mode == "insert":
            raise DuplicateKey(
                "Duplicate Key", hint=f"{access.name} holds {id!r} already. {DuplicateKey.hint}"
            )
        if mode == "merge":
            properties = {**old.properties, **properties}
            expires = old.expires
    if entity.ttl:
        expires = expiry_of(entity.ttl, expires, writer.now_ms)
    if access.strict is not None:
        check_entity(access, id, properties, names=names, is_whole=old is None or mode == "replace")
    writer.put(id, id_part, old, properties, expires, names)


def check_version(access: TableAccess, id: str, old: Stored | None, if_version: int | None) -> None:
    """Raises unless the stored version is the one that the writer expects; 0 means that the entity
    does not exist."""
    version = 0 if old is None else old.version
    if if_version is not None and if_version != version:
        raise VersionMismatch(
            f"{access.name} holds {id!r} at version {version}, not {if_version}"
            if version
            else f"{access.name} holds no {id!r}, but version {if_version} was expected"
        )
