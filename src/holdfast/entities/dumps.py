"""Dumps of tables: a sequence of BSON documents, or lines of JSON, one for each entity.

JSON is MongoDB's Extended JSON in its canonical form, with `{"$set": [...]}` for a Set, `{"$uint":
"..."}` for an integer above 2^63 - 1, and `{"$map": {...}}` around a Map that has keys beginning
with `$`."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.engine.contract import Reader, Transaction
from holdfast.entities import bson_codec, extended_json
from holdfast.entities.bson_types import Int64
from holdfast.entities.bson_values import from_wire, properties_to_wire
from holdfast.entities.entity_writer import EntityWriter
from holdfast.entities.ids import check_id
from holdfast.entities.messages import ID, DumpFormat, DumpPage, PutEntity
from holdfast.entities.puts import expiry_of, live_after_expiry
from holdfast.entities.strict_tables import check_entity
from holdfast.entities.table_access import TableAccess
from holdfast.entities.values import keep_properties
from holdfast.error_text import shown
from holdfast.errors import BadDump, BadValue, DuplicateKey, HoldfastError, ValueTooLarge
from holdfast.expiry import to_ms
from holdfast.keys import after as key_after
from holdfast.keys import pack_str, prefix_range, unpack
from holdfast.limits import (
    DUMPED_BYTES_PER_PAGE,
    DUMPED_PER_PAGE,
    LOAD_STEP_ENTITIES,
    MAX_ATOMIC_LOAD_BYTES,
    MAX_VALUE_BYTES,
)

_NANOSECONDS_PER_MS: Final = 1_000_000
_BLANKS: Final = b" \t\r\n"
_GZIP: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"  # some editors write it before the text


def dump(reader: Reader, access: TableAccess, format: DumpFormat) -> Iterator[bytes]:
    """Returns the live entities in ascending order of their ids, one document or line each."""
    return (document for _, document in _documents_of(reader, access, format, b""))


def _documents_of(
    reader: Reader, access: TableAccess, format: DumpFormat, begin: bytes
) -> Iterator[tuple[str, bytes]]:
    """Yields the live entities with their ids, beginning with the packed id `begin`."""
    if format not in ("bson", "jsonl"):
        raise BadDump(f"a dump must be bson or jsonl, not {shown(format)}")
    write = _bson_document if format == "bson" else _json_line
    now_ms = to_ms(reader.now)
    end = prefix_range(access.entities)[1]
    for key, value in reader.scan(access.entities + begin, end):
        entity = access.read_kept(value)
        if entity.expires and entity.expires <= now_ms:
            continue
        left = (entity.expires - now_ms) * _NANOSECONDS_PER_MS if entity.expires else 0
        id = str(unpack(key, len(access.entities))[0])
        yield id, write(id, entity.properties, left)


def dump_page(
    reader: Reader, access: TableAccess, format: DumpFormat, after: str | None
) -> DumpPage:
    """Returns the documents of the next entities after the id `after`."""
    begin = b"" if after is None else key_after(pack_str(after))
    documents: list[bytes] = []
    last, size = None, 0
    for id, document in _documents_of(reader, access, format, begin):
        if len(documents) == DUMPED_PER_PAGE or size > DUMPED_BYTES_PER_PAGE:
            return DumpPage(dump=b"".join(documents), entities=len(documents), next=last)
        documents.append(document)
        size += len(document)
        last = id
    return DumpPage(dump=b"".join(documents), entities=len(documents))


def load(tx: Transaction, access: TableAccess, entities: "list[NumberedEntity]") -> int:
    """Writes entities with their ids and expiries, replacing stored ones; returns how many."""
    for begin in range(0, len(entities), LOAD_STEP_ENTITIES):
        writer = EntityWriter(tx, access)
        for number, entity in entities[begin : begin + LOAD_STEP_ENTITIES]:
            try:
                _load(writer, access, entity)
            except (BadValue, DuplicateKey) as error:
                reason = f"{entity.id!r} is refused: {error.message}"
                raise BadDump(reason, number=number) from None
        writer.finish()
    return len(entities)


def _load(writer: EntityWriter, access: TableAccess, entity: PutEntity) -> None:
    id = entity.id or ""
    id_part = pack_str(id)
    old = live_after_expiry(writer, id, id_part)
    names = tuple(entity.properties)
    if access.strict is not None:
        check_entity(access, id, entity.properties, names=names, is_whole=True)
    expires = expiry_of(entity.ttl, 0, writer.now_ms)
    writer.put(id, id_part, old, entity.properties, expires, names)


def bounded(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the pieces of a dump, and raises when they are too large for one transaction."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_ATOMIC_LOAD_BYTES:
            raise ValueTooLarge(
                f"a dump of more than {MAX_ATOMIC_LOAD_BYTES:,} bytes can't be loaded in one "
                "transaction",
                hint="Load it without `atomic`, or split it into several dumps.",
            )
        yield piece


class NumberedEntity(NamedTuple):
    """An entity of a dump, and the number of its line or document, from 1."""

    number: int
    entity: PutEntity


class DumpRecords:
    """Splits a dump into its records: lines of JSON, or BSON documents, whichever it holds."""

    def __init__(self, dump: Iterable[bytes]) -> None:
        self._pieces = iter(dump)
        buffer = b""
        while len(buffer) < 4 and (piece := next(self._pieces, None)) is not None:
            buffer += piece
        if buffer.startswith(_GZIP):
            raise BadDump("it is compressed with gzip", hint="Decompress it first: gunzip FILE.")
        self._buffer = buffer.removeprefix(_BYTE_ORDER_MARK)
        # A BSON document begins with its length, little-endian. The first four bytes of a text,
        # read as a length, would mean 150 MB or more, which no document has.
        self.is_json = len(buffer) < 4 or buffer[3:4] >= b"\t"
        self.unit = "line" if self.is_json else "document"

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yields each record that is not blank, with its number."""
        split = _lines if self.is_json else _documents
        number = 0
        try:
            for number, record in enumerate(split(self._buffer, self._pieces), 1):
                if record.strip(_BLANKS):
                    yield number, record
        except BadDump as error:
            raise BadDump(error.message, unit=self.unit, number=number + 1) from None


def batches(records: DumpRecords, size: int | None) -> Iterator[list[NumberedEntity]]:
    """Yields the entities of a dump, `size` at a time; `BadDump` at the first that is damaged.

    Without a `size` they come all together, or not at all.
    """
    batch: list[NumberedEntity] = []
    try:
        for number, record in records:
            batch.append(NumberedEntity(number, _read(record, number, is_json=records.is_json)))
            if len(batch) == size:
                yield batch
                batch = []
    except BadDump:
        # Whole documents before the damage stay loaded, those of this batch included.
        if batch and size is not None:
            yield batch
        raise
    if batch:
        yield batch


def _read(record: bytes, number: int, *, is_json: bool) -> PutEntity:
    try:
        document = extended_json.read(record) if is_json else bson_codec.decode(record)
        return _entity(document, is_json=is_json)
    except HoldfastError as error:
        raise BadDump(error.message, number=number) from None


def _lines(buffer: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    begun = [buffer]  # joined when a line ends: else each piece would copy the whole line again
    for piece in pieces:
        begun.append(piece)
        if b"\n" in piece:
            *lines, rest = b"".join(begun).split(b"\n")
            begun = [rest]
            yield from lines
    yield from b"".join(begun).split(b"\n")


def _documents(buffer: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    while True:
        begin, wanted = 0, 4
        while len(buffer) - begin >= 4:
            length = int.from_bytes(buffer[begin : begin + 4], "little")
            if not 5 <= length <= 2 * MAX_VALUE_BYTES:
                raise BadDump(f"a document gives its length as {length} bytes, which none has")
            if len(buffer) - begin < length:
                wanted = length
                break
            yield buffer[begin : begin + length]
            begin += length
        buffer = _filled(buffer[begin:], pieces, wanted)
        if not buffer:
            return
        if len(buffer) < wanted:
            raise BadDump("the last document is cut short")


def _filled(buffer: bytes, pieces: Iterator[bytes], wanted: int) -> bytes:
    """Returns the buffer, extended to at least `wanted` bytes unless the dump ends first."""
    parts, size = [buffer], len(buffer)
    while size < wanted and (piece := next(pieces, None)) is not None:
        parts.append(piece)
        size += len(piece)
    return b"".join(parts)


def _entity(document: dict[str, Any], *, is_json: bool) -> PutEntity:
    id, properties, ttl = document.get(ID), document.get("properties"), document.get("ttl") or 0
    if not isinstance(id, str) or not id:
        raise BadDump("a document has no id")
    if not isinstance(properties, dict) or "" in properties:
        raise BadDump(f"the document of {id!r} has no properties, or one without a name")
    if isinstance(ttl, float) and ttl.is_integer():
        ttl = int(ttl)
    if not isinstance(ttl, int):
        raise BadDump(f"the ttl of {id!r} is not an integer")
    if not is_json:
        properties = {name: from_wire(value) for name, value in properties.items()}
    return PutEntity(keep_properties(properties), check_id(id), int(ttl))


def _bson_document(id: str, properties: dict[str, Any], ttl: int) -> bytes:
    document = {ID: id, "properties": properties_to_wire(properties), "ttl": Int64(ttl)}
    return bson_codec.encode(document)


def _json_line(id: str, properties: dict[str, Any], ttl: int) -> bytes:
    written = {name: extended_json.write(value) for name, value in properties.items()}
    document = {ID: id, "properties": written, "ttl": extended_json.write(ttl)}
    return msgspec.json.encode(document) + b"\n"
