"""Dumps of tables: a plain sequence of BSON documents, or lines of JSON, that can be cut and joined
between entities.

JSON is MongoDB's Extended JSON in its canonical form, with `{"$set": [...]}` for a Set, `{"$uint":
"..."}` for an integer above 2^63 - 1, and `{"$map": {...}}` around a Map that has keys beginning
with `$`."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from bson.int64 import Int64

from holdfast.engine.contract import Reader, Transaction
from holdfast.entities import bson_codec, extended_json
from holdfast.entities.access import TableAccess
from holdfast.entities.ids import check_id
from holdfast.entities.messages import ID, DumpFormat, DumpPage, PutEntity
from holdfast.entities.putting import expiry_of, live_or_cleared
from holdfast.entities.records import read_entity
from holdfast.entities.strict import check_entity
from holdfast.entities.values import keep_properties
from holdfast.entities.wire_values import from_wire, properties_to_wire
from holdfast.entities.writing import Writer
from holdfast.errors import BadDump, HoldfastError
from holdfast.expiry import to_ms
from holdfast.keys import after as behind
from holdfast.keys import pack_str, prefix_range, unpack
from holdfast.limits import DUMPED_PER_PAGE, MAX_VALUE_BYTES
from holdfast.shown import shown

_NANOSECONDS_PER_MS: Final = 1_000_000
_BLANKS: Final = b" \t\r\n"


def dump(reader: Reader, access: TableAccess, format: DumpFormat) -> Iterator[bytes]:
    """The live entities in ascending order of their ids, one document or line each."""
    return (document for _, document in _documents_of(reader, access, format, b""))


def _documents_of(
    reader: Reader, access: TableAccess, format: DumpFormat, begin: bytes
) -> Iterator[tuple[str, bytes]]:
    """The live entities from the packed id `begin` on, with their ids."""
    if format not in ("bson", "jsonl"):
        raise BadDump(f"a dump is bson or jsonl, not {shown(format)}")
    write = _bson_document if format == "bson" else _json_line
    now_ms = to_ms(reader.now)
    end = prefix_range(access.entities)[1]
    for key, value in reader.scan(access.entities + begin, end):
        entity = read_entity(value)
        if entity.expires and entity.expires <= now_ms:
            continue
        left = (entity.expires - now_ms) * _NANOSECONDS_PER_MS if entity.expires else 0
        id = str(unpack(key, len(access.entities))[0])
        yield id, write(id, entity.properties, left)


def dump_page(
    reader: Reader, access: TableAccess, format: DumpFormat, after: str | None
) -> DumpPage:
    """The documents of the entities behind the id `after`."""
    begin = b"" if after is None else behind(pack_str(after))
    documents: list[bytes] = []
    last = None
    for id, document in _documents_of(reader, access, format, begin):
        if len(documents) == DUMPED_PER_PAGE:
            return DumpPage(dump=b"".join(documents), entities=len(documents), next=last)
        documents.append(document)
        last = id
    return DumpPage(dump=b"".join(documents), entities=len(documents))


def load(tx: Transaction, access: TableAccess, entities: list[PutEntity]) -> int:
    """Writes entities under their ids, in place of what is there, with their expiries."""
    writer = Writer(tx, access)
    for entity in entities:
        id = entity.id or ""
        id_part = pack_str(id)
        old = live_or_cleared(writer, id, id_part)
        names = tuple(entity.properties)
        if access.strict is not None:
            check_entity(access, id, entity.properties, names=names, is_whole=True)
        expires = expiry_of(entity.ttl, 0, writer.now_ms)
        writer.put(id, id_part, old, entity.properties, expires, op="put", names=names)
    writer.finish()
    return len(entities)


def batches(dump: Iterable[bytes], size: int) -> Iterator[list[PutEntity]]:
    """The entities of a dump, `size` at a time; `BadDump` at the first that is damaged."""
    batch: list[PutEntity] = []
    try:
        for entity in _read(dump):
            batch.append(entity)
            if len(batch) == size:
                yield batch
                batch = []
    except HoldfastError as error:
        # Whole documents before the damage stay loaded, also those of this batch.
        if batch:
            yield batch
        raise BadDump(error.message) from None
    if batch:
        yield batch


def _read(dump: Iterable[bytes]) -> Iterator[PutEntity]:
    pieces = iter(dump)
    buffer = b""
    while len(buffer) < 4:
        piece = next(pieces, None)
        if piece is None:
            break
        buffer += piece
    # A BSON document begins with its length, whose fourth byte is small; that of a line is not.
    is_json = buffer[:1] in (b"{", b" ", b"\n") and buffer[3:4] >= b"\t"
    split = _lines if is_json or not buffer.strip(_BLANKS) else _documents
    read = extended_json.read if split is _lines else bson_codec.decode
    for document in split(buffer, pieces):
        yield _entity(read(document), is_json=is_json)


def _lines(buffer: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    begun = [buffer]  # joined when a line ends: a long one would be copied with each of its pieces
    for piece in pieces:
        begun.append(piece)
        if b"\n" in piece:
            *lines, rest = b"".join(begun).split(b"\n")
            begun = [rest]
            yield from (line for line in lines if line.strip(_BLANKS))
    yield from (line for line in b"".join(begun).split(b"\n") if line.strip(_BLANKS))


def _documents(buffer: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    while True:
        begin, wanted = 0, 4
        while len(buffer) - begin >= 4:
            length = int.from_bytes(buffer[begin : begin + 4], "little")
            if not 5 <= length <= 2 * MAX_VALUE_BYTES:
                raise BadDump(f"a document says that it has {length} bytes")
            if len(buffer) - begin < length:
                wanted = length
                break
            yield buffer[begin : begin + length]
            begin += length
        buffer = _grown(buffer[begin:], pieces, wanted)
        if not buffer:
            return
        if len(buffer) < wanted:
            raise BadDump("the last document is cut short")


def _grown(buffer: bytes, pieces: Iterator[bytes], wanted: int) -> bytes:
    """The buffer with as many pieces as it takes to hold `wanted` bytes, or with all that come."""
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
        raise BadDump(f"the ttl of {id!r} is no integer")
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
