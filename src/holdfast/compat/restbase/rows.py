"""RESTBase's requests about rows: get, put, post and delete, and streams of rows in and out."""

from collections.abc import Generator, Iterator
from typing import Any, Final, NamedTuple, Self, cast
from urllib.parse import quote

import msgspec

from holdfast.compat.restbase.bodies import (
    is_query,
    may_be_query,
    page_body,
    put_body,
    read_delete,
    read_put,
    read_query,
    refuse_key_only,
)
from holdfast.compat.restbase.table_call import (
    READS,
    STREAM_TYPES,
    TableCall,
    encode_rows,
    json_response,
    rows_response,
    run_read,
    run_write,
    with_etag,
)
from holdfast.errors import (
    InvalidTableQuery,
    InvalidTableRequest,
    RequestTooLarge,
    UnsupportedContent,
)
from holdfast.limits import MAX_BODY_BYTES
from holdfast.server.http_exchange import JSON, HttpResponse
from holdfast.store import Space, Tx, View
from holdfast.tables import Page, Tables, catalogue, urls
from holdfast.tables.queries import Query
from holdfast.tables.urls import parse_parameters

_LINES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl", JSON)


async def get_rows(call: TableCall) -> HttpResponse:
    await call.allow("read")
    body = await call.body()
    space = await call.row_space()
    target = call.target
    by_url = bool(target.values or target.index is not None or call.query_string)
    format = call.pop_format()
    if body not in (None, {}):
        with call.checking(space, body.get("index") if isinstance(body, dict) else None):
            if by_url and not (format and not call.query_string and not target.values):
                raise InvalidTableRequest("A query is in the body or in the URL, not in both")
            query = read_query(body, call.table)
        if format is not None:
            return await _export(call, space, format, lambda view: query)
        found = await run_read(
            call, space, lambda tables: _FoundPage.of(call, _get(tables, call.table, query))
        )
        return _page(call, found)
    if format is not None:
        return await _export(call, space, format, lambda view: _query_of(call, view))
    found = await run_read(
        call,
        space,
        lambda tables: _FoundPage.of(
            call,
            tables.get_by_url(call.table, target.values, call.query_string, index=target.index),
        ),
    )
    response = _page(call, found)
    if found.page.next is not None:
        response.headers["link"] = f'<{_next_url(call, found.page.next)}>; rel="next"'
    return response


def _get(tables: Tables, table: str, query: Query) -> Page:
    return tables.get(table, form="json", **msgspec.structs.asdict(query))


def _query_of(call: TableCall, view: View) -> Query:
    plan = catalogue.find(view.raw, call.table)
    query_string = call.query_string or "distinct=false"  # without one, `query_of` sets a limit
    return urls.query_of(view.raw, plan, call.target.index, call.target.values, query_string)


class _FoundPage(NamedTuple):
    """A page and its encoded form. Both are made where the page is read: in a thread if it is
    large."""

    page: Page
    body: bytes

    @classmethod
    def of(cls, call: TableCall, page: Page) -> Self:
        return cls(page, encode_rows(call, page_body(page)))


def _page(call: TableCall, found: _FoundPage) -> HttpResponse:
    page, body = found
    call.api.dispatcher.large_reads.answered(READS, len(body))
    response = HttpResponse(body, status=200 if page.count else 404)
    return response if page.etag is None else with_etag(call, response, page.etag)


def _next_url(call: TableCall, token: str) -> str:
    pieces = [
        piece
        for piece in call.query_string.split("&")
        if piece and piece.partition("=")[0] != "next"
    ]
    path = call.request.root + call.request.raw_path.decode("latin-1")
    return f"{path}?{'&'.join([*pieces, f'next={quote(token)}'])}"


async def post_rows(call: TableCall) -> HttpResponse:
    """Answers the body as a query, which never writes, if it can't be a write; else as a write."""
    if any(name == "format" for name, _ in parse_parameters(call.query_string)):
        return await put_row(call)
    await call.allow("read")
    body = await call.body()
    if may_be_query(body):
        space = await call.row_space()
        plan = await call.api.dispatcher.read(
            space, lambda view: catalogue.find(view.raw, call.table)
        )
        if is_query(plan, body):
            return await get_rows(call)
    return await put_row(call)


async def put_row(call: TableCall) -> HttpResponse:
    call.refuse_index()
    format = call.pop_format()
    if format is not None:
        return await _import(call, format)
    await call.allow("write")
    body = await call.body()
    space = await call.row_space()
    if body is None and call.target.values:
        body = {}  # the path may name all attributes
    with call.checking(space):
        call.refuse_parameters()
        given = read_put(body, call.table)
    given["if_match"] = call.request.headers.get("if-match")
    given["if_none_match"] = call.request.headers.get("if-none-match")
    values, attributes = call.target.values, given.pop("attributes")
    may_be_meant_as_query = call.method == "POST" and not values and not any(given.values())

    def work(tx: Tx) -> Any:
        if values:
            return tx.tables.put_by_url(call.table, values, attributes, **given)
        if may_be_meant_as_query:
            refuse_key_only(catalogue.find(tx.raw, call.table), attributes)
        return tx.tables.put(call.table, attributes, form="json", **given)

    result = await call.api.dispatcher.write(space, work)
    return rows_response(call, put_body(result, return_old=given["return_old"]), 201)


async def delete_rows(call: TableCall) -> HttpResponse:
    call.refuse_index()
    await call.allow("write")
    body = await call.body()
    space = await call.row_space()
    values = call.target.values
    by_url = bool(values or call.query_string)
    with call.checking(space):
        given = read_delete(body, call.table)
        if by_url and given["attributes"]:
            raise InvalidTableRequest("A delete is in the body or in the URL, not in both")
    given["if_match"] = call.request.headers.get("if-match")
    given["if_none_match"] = call.request.headers.get("if-none-match")
    attributes = given.pop("attributes")

    def work(tables: Tables) -> Any:
        if by_url:
            return tables.delete_by_url(call.table, values, call.query_string, **given)
        return tables.delete(call.table, attributes, **given)

    result = await run_write(call, space, work)
    return HttpResponse(status=204) if result.applied else json_response({"applied": False}, 200)


# --- streams -------------------------------------------------------------------------------------


async def _export(call: TableCall, space: Space, format: str, query_in: Any) -> HttpResponse:
    """Streams a whole slice from one snapshot, in constant memory."""
    query = await call.api.dispatcher.read(space, query_in)
    if query.limit is not None or query.next is not None or query.count_only or query.distinct:
        raise InvalidTableQuery("An export takes no limit, next, count and distinct")
    lines = await call.api.dispatcher.reading(
        lambda: space.tables.export(
            call.table,
            query.attributes,
            format="csv" if format == "csv" else "ndjson",
            proj=query.proj,
            order=query.order,
            index=query.index,
            with_ttl=query.with_ttl,
        )
    )
    stream = await call.api.download(cast(Generator[bytes, None, None], lines))
    return HttpResponse(stream, content_type=STREAM_TYPES[format])


async def _import(call: TableCall, format: str) -> HttpResponse:
    """Puts the rows of a stream of lines, 1,000 in a transaction."""
    call.refuse_parameters()
    if format != "ndjson" or call.target.values:
        raise InvalidTableRequest("An import is NDJSON, for the table as a whole")
    if call.request.content_type not in _LINES:
        raise UnsupportedContent(
            f"An import must be NDJSON, not {call.request.content_type}",
            hint="Send it with the header `Content-Type: application/x-ndjson`.",
        )
    recheck = await call.allow("write")
    space = await call.row_space()
    report = await call.api.upload(
        call.request, lambda pieces: space.tables.import_rows(call.table, _lines(pieces)), recheck
    )
    return json_response(msgspec.to_builtins(report), 200)


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > MAX_BODY_BYTES:
            raise RequestTooLarge(
                f"A line has more than {MAX_BODY_BYTES} bytes",
                hint="Send each row on a line of its own.",
            )
    yield rest
