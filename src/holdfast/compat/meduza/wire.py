"""Meduza's messages: decodes BSON bodies into queries, and encodes results as replies.

A server calls these for a message, and knows nothing about BSON:

    query = wire.read_query("GET", body)               # or it raises, before any transaction
    result = wire.execute(tx, query)                   # on a view if wire.is_read(query)
    wire.reply_type("GET"), wire.write_reply(query, result, time_ns=...)
    wire.reply_type("GET"), wire.write_error("GET", error, time_ns=...)   # if one of them raised
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.call_time import CallTimer
from holdfast.compat.meduza.wire_queries import (
    documents,
    read_del,
    read_get,
    read_put,
    read_update,
    text,
)
from holdfast.engine.contract import Transaction
from holdfast.entities import bson_codec
from holdfast.entities.answer_meters import AnswerMeter
from holdfast.entities.bson_types import Int64
from holdfast.entities.bson_values import properties_to_wire
from holdfast.entities.layer import Entities, positions, project
from holdfast.entities.messages import Del, Get, Ping, Put, Query, Update
from holdfast.entities.query_checks import check_queries
from holdfast.entities.selections import FoundEntities
from holdfast.error_text import shown
from holdfast.errors import BadQuery, HoldfastError, Malformed, VersionMismatch
from holdfast.limits import MAX_BATCH_SECONDS, SECONDS_PER_ITEM

REPLY_TYPES: Final = {
    "PUT": "RPUT",
    "GET": "RGET",
    "UPDATE": "RUPDATE",
    "DEL": "RDEL",
    "PING": "PONG",
    "TX": "RTX",
}


class TxMessage(msgspec.Struct, frozen=True):
    """Several queries, on any tables, all or none."""

    queries: Sequence[Query]


WireQuery: TypeAlias = Query | TxMessage


def reply_type(kind: str) -> str:
    """Returns the reply type of a request; the case of `kind` does not matter."""
    return REPLY_TYPES[kind.upper()]


def is_read(query: WireQuery) -> bool:
    """Returns whether the query writes nothing, so that a view can answer it."""
    return isinstance(query, (Get, Ping))


def read_query(kind: str, body: bytes) -> WireQuery:
    """Returns the query in the body of a message of type PUT, GET, UPDATE, DEL, PING or TX.

    Raises `Malformed` if it can't be decoded, and other errors if the query is invalid.
    """
    kind = kind.upper()
    if kind == "PING":
        return Ping()
    document = bson_codec.decode(body)
    if kind == "TX":
        queries = documents(document, "queries")
        check_queries(len(queries))
        return TxMessage([_inner_query(inner) for inner in queries])
    return _READERS[kind](document)


def execute(tx: Transaction, query: WireQuery) -> Any:
    """Runs the query on a transaction or, if it is a read, on a view. The result is for
    `write_reply`."""
    entities = Entities(tx, AnswerMeter())
    if isinstance(query, TxMessage):
        seconds = MAX_BATCH_SECONDS + len(query.queries) * SECONDS_PER_ITEM
        timer = CallTimer("the queries of TX", "Split it: fewer queries in one TX.", seconds)
        replies: list[Any] = []
        for inner in query.queries:
            if replies:
                timer.check()
            replies.append(_execute(entities, inner))
        return replies
    return _execute(entities, query)


def _execute(entities: Entities, query: Query) -> Any:
    if isinstance(query, Get):
        return entities.fetch_page(
            query.table,
            query.filters,
            order=query.order,
            offset=query.paging.offset,
            limit=query.paging.limit,
            count=query.count,
            partial=True,
            kept=True,
        )
    return entities.execute([query])[0]


def write_reply(query: WireQuery, result: Any, *, time_ns: int = 0) -> bytes:
    """Returns the body of the reply to a query that succeeded."""
    return bson_codec.encode(_reply(query, result, _response(time_ns)))


def write_error(kind: str, error: HoldfastError, *, time_ns: int = 0) -> bytes:
    """Returns the body of the reply to a failed query of this type, of which nothing was
    applied."""
    code = "conflict" if isinstance(error, VersionMismatch) else error.code
    response = {"time": Int64(time_ns), "error": error.message, "code": code}
    return bson_codec.encode({"Response": response, **_NOTHING[kind.upper()]})


def _response(time_ns: int) -> dict[str, Any]:
    return {"time": Int64(time_ns), "error": None}


def _reply(query: WireQuery, result: Any, response: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {"Response": response}
    match query:
        case Put():
            document["ids"] = result
        case Get():
            document.update(_page(query, result))
        case Update():
            document["num"] = Int64(result.num)
            if result.skipped:
                document["skipped"] = Int64(result.skipped)
        case Del():
            document["num"] = Int64(result)
        case TxMessage(queries):
            pairs = zip(queries, result, strict=True)
            document["replies"] = [_reply(inner, part, _response(0)) for inner, part in pairs]
    return document


def _page(query: Get, found: FoundEntities) -> dict[str, Any]:
    entities = []
    names = positions(query.properties)
    for id, stored in found.pairs():
        properties = stored.properties
        if names:
            properties = project(properties, names)
        entity = {"id": id, "properties": properties_to_wire(properties), "ttl": _ZERO}
        if query.versions:
            entity["version"] = Int64(stored.version)
        entities.append(entity)
    page: dict[str, Any] = {"entities": entities, "total": Int64(found.total)}
    if found.partial:
        page["partial"] = True
    return page


def _inner_query(document: dict[str, Any]) -> Query:
    if not isinstance(document.get("body"), dict):
        raise Malformed("Malformed message: a query of TX needs a type and a body")
    kind = text(document, "type").upper()
    reader = _READERS.get(kind)
    if reader is None:
        raise BadQuery(f"TX takes PUT, GET, UPDATE and DEL, not {shown(kind)}")
    return reader(document["body"])


_ZERO: Final = Int64(0)
_READERS: Final[dict[str, Callable[[dict[str, Any]], Query]]] = {
    "PUT": read_put,
    "GET": read_get,
    "UPDATE": read_update,
    "DEL": read_del,
}
_NOTHING: Final[dict[str, dict[str, Any]]] = {
    "PUT": {"ids": []},
    "GET": {"entities": [], "total": _ZERO},
    "UPDATE": {"num": _ZERO},
    "DEL": {"num": _ZERO},
    "PING": {},
    "TX": {"replies": []},
}
