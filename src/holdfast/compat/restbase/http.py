"""RESTBase's paths over HTTP: `/{domain}/sys/table/{table}/...`, on the raw request target.

A domain is a space. What a URL or a body means is read by `holdfast.tables`; this file knows
methods, status codes, entity tags and streams. Errors have RESTBase's own form.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec

from holdfast.compat.restbase.paths import Target, parse_path
from holdfast.compat.restbase.requests import (
    created_body,
    error_body,
    is_query,
    may_be_query,
    page_body,
    put_body,
    read_delete,
    read_put,
    read_query,
    refuse_bare_key,
)
from holdfast.declarations import Role
from holdfast.errors import (
    BadInput,
    HoldfastError,
    InvalidTablePath,
    InvalidTableQuery,
    InvalidTableRequest,
    InvalidTableSchema,
    MethodNotAllowed,
    RequestTooLarge,
    StoreUnusable,
    TableError,
    TableMismatch,
    UnsupportedContent,
)
from holdfast.limits import DEFAULT_PAGE_ROWS, MAX_BODY_BYTES, MAX_PAGE_ROWS
from holdfast.server import bigints
from holdfast.server.http import ANY_METHOD, HttpApi, route
from holdfast.server.http_exchange import JSON, HttpRequest, HttpResponse, error_headers
from holdfast.store import Space, Tx, View
from holdfast.tables import EVERY_DOMAIN, Page, StoreTables, Tables, catalogue, etags, urls
from holdfast.tables.domains import no_rows
from holdfast.tables.json_parser import parse_json
from holdfast.tables.queries import Query, index_of
from holdfast.tables.schema import normalise
from holdfast.tables.urls import parse_parameters

_READING: Final = ("GET", "HEAD", "QUERY")
_SCHEMA_METHODS: Final = (*_READING, "PUT", "DELETE")
_ROW_METHODS: Final = (*_READING, "PUT", "POST", "DELETE")
_ROWS_HINT: Final = "Rows are at /{domain}/sys/table/{table}/, with a slash behind the table."
_STREAM_TYPES: Final = {"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
_LINES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl", JSON)


class _Call:
    """One request on its way through this door."""

    def __init__(self, api: HttpApi, request: HttpRequest, target: Target, method: str) -> None:
        self.api = api
        self.request = request
        self.target = target
        self.method = method
        self.query_string = request.query.decode("latin-1")
        self._body: Any = None
        self._has_body = False

    @property
    def table(self) -> str:
        assert self.target.table is not None
        return self.target.table

    async def allow(self, role: Role) -> None:
        """Raises unless whoever asks has the role in the domain."""
        identity = await self.api.who(self.request)
        identity.require(role, space=self.target.domain, layer="tables")

    async def has_domain(self) -> bool:
        """Whether there is such a domain. If there are tables in all domains, every one is."""
        dispatcher, domain = self.api.dispatcher, self.target.domain
        if domain == EVERY_DOMAIN and self.method != "GET":
            return True
        return await dispatcher.has_space(domain) or await dispatcher.has_space(EVERY_DOMAIN)

    async def space(self) -> Space:
        """The space of the domain; what asks for a table does not make its domain."""
        if not await self.has_domain():
            raise catalogue.not_found(self.table)
        return await self.new_space()

    async def row_space(self) -> Space:
        """The same for requests about rows, which no table of all domains has."""
        if self.target.domain == EVERY_DOMAIN:
            raise no_rows()
        return await self.space()

    async def new_space(self) -> Space:
        return await self.api.dispatcher.space(self.target.domain)

    @contextmanager
    def reading(self, space: Space, index: Any = None) -> Iterator[None]:
        """While the form of a request is read. What is wrong with it is said after a table or index
        that is missing, which is looked for only then: most requests are right."""
        try:
            yield
        except TableMismatch:
            raise  # it is about the table, whether or not there is one
        except TableError:
            if self.target.domain != EVERY_DOMAIN:
                with space.view() as view:
                    plan = catalogue.find(view.raw, self.table)
                    index_of(view.raw, plan, index if isinstance(index, str) else None)
            raise

    async def body(self) -> Any:
        """The JSON of the body, or None if it is empty."""
        if not self._has_body:
            self._body, self._has_body = await self._read_body(), True
        return self._body

    async def _read_body(self) -> Any:
        try:
            body = await self.request.body(MAX_BODY_BYTES)
        except RequestTooLarge as error:
            error.message = error.message.capitalize()
            raise
        if not body.strip():
            return None
        if self.request.content_type != JSON:
            raise UnsupportedContent(f"The body is {self.request.content_type}")
        return parse_json(body)

    def flag(self, name: str) -> bool:
        """Whether a parameter, the only one that is known here, says true."""
        given = parse_parameters(self.query_string)
        for each, value in given:
            if each != name or value not in ("true", "1", "false", "0") or len(given) > 1:
                raise InvalidTableQuery(f"Unknown parameter {each!r}")
        return any(value in ("true", "1") for _, value in given)

    def refuse_parameters(self) -> None:
        for name, _ in parse_parameters(self.query_string):
            raise InvalidTableQuery(f"Unknown parameter {name!r}")

    def refuse_index(self) -> None:
        if self.target.index is not None:
            raise InvalidTablePath("Rows are not written through a secondary index")

    def take_format(self) -> str | None:
        """Takes the parameter `format` out of the query string."""
        kept, format = [], None
        for piece in self.query_string.split("&"):
            if piece.partition("=")[0] == "format":
                if format is not None:
                    raise InvalidTableQuery("The parameter format is given twice")
                format = piece.partition("=")[2]
                if format not in _STREAM_TYPES:
                    raise InvalidTableQuery(f"The format is ndjson or csv, not {format!r}")
            else:
                kept.append(piece)
        self.query_string = "&".join(kept)
        return format


# --- paths ---------------------------------------------------------------------------------------


@route(ANY_METHOD, "/{domain}/sys/table")
@route(ANY_METHOD, "/{domain}/sys/table/{rest...}")
async def tables(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    """Everything below `/{domain}/sys/table`."""
    try:
        target = parse_path(request.raw_path)
        call = _Call(api, request, target, _method(request))
        if target.table is None:
            _require_method(call, _READING)
            return await _list(call)
        if target.is_rows:
            _require_method(call, _ROW_METHODS)
            return await _ROWS[call.method](call)
        _require_method(call, _SCHEMA_METHODS)
        return await _SCHEMAS[call.method](call)
    except Exception as error:
        return _failure(api, error)


@route(ANY_METHOD, "/{domain}/sys/batch")
async def batch(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    """Puts and deletes on any tables of a domain as one transaction."""
    try:
        target = parse_path(request.raw_path.replace(b"/sys/batch", b"/sys/table"))
        call = _Call(api, request, target, _method(request))
        _require_method(call, ("POST",))
        await call.allow("write")
        body = await call.body()
        if not isinstance(body, dict) or body.keys() - {"operations"}:
            raise InvalidTableRequest("The body is an object with `operations` and nothing else")
        operations = body.get("operations")
        if not isinstance(operations, list):
            raise InvalidTableRequest("The body is an object with `operations`, an array")
        if target.domain == EVERY_DOMAIN:
            raise no_rows()
        space = await call.new_space()
        result = await _write(call, space, lambda tables: tables.batch(operations))
        return _json(msgspec.to_builtins(result), 200)
    except Exception as error:
        return _failure(api, error)


def _method(request: HttpRequest) -> str:
    """What is to be done; `QUERY`, or a header, asks for what a client can't send as GET."""
    override = request.headers.get("x-http-method-override", "").upper()
    if request.method in ("QUERY", "HEAD") or (request.method == "POST" and override == "GET"):
        return "GET"
    return request.method


def _require_method(call: _Call, allowed: tuple[str, ...]) -> None:
    if call.method not in allowed:
        message = f"This path takes {', '.join(allowed)}, not {call.request.method}"
        hint = _ROWS_HINT if allowed is _SCHEMA_METHODS else None
        raise MethodNotAllowed(message, allowed=allowed, hint=hint)


async def _refuse_rows(call: _Call) -> None:
    """Raises for a request about rows that lacks the slash behind the table: its query would be
    ignored, and instead of some rows the whole table deleted."""
    if await call.body() not in (None, {}):
        raise InvalidTableRequest(
            "This path is the schema of the table, and takes no body", hint=_ROWS_HINT
        )


# --- schemas -------------------------------------------------------------------------------------


async def _list(call: _Call) -> HttpResponse:
    """The names of the tables of a domain, a page at a time."""
    limit, after = DEFAULT_PAGE_ROWS, None
    for name, raw in parse_parameters(call.query_string):
        if name == "limit" and raw.isdecimal() and 0 < len(raw) < 9 and int(raw):
            limit = min(int(raw), MAX_PAGE_ROWS)
        elif name == "next":
            after = call.request.parameter("next")
        else:
            raise InvalidTableQuery(f"Unknown parameter {name!r}, or a value that it can't have")
    await call.allow("read")
    names: list[str] = []
    if await call.has_domain():
        space = await call.space()
        names = await _read(call, space, lambda tables: tables.names(after=after, limit=limit))
    body: dict[str, Any] = {"items": names, "count": len(names)}
    if len(names) == limit:
        body["next"] = names[-1]
    return _json(body, 200)


async def _get_schema(call: _Call) -> HttpResponse:
    await call.allow("read")
    await _refuse_rows(call)
    space = await call.space()
    with call.reading(space):
        with_stats = call.flag("stats")

    def work(tables: Tables) -> tuple[dict[str, Any], str]:
        schema = dict(tables.schema(call.table))
        if with_stats:
            schema["stats"] = msgspec.to_builtins(tables.facts(call.table))
        return schema, tables.schema_etag(call.table)

    schema, etag = await _read(call, space, work)
    return _with_etag(call, _json(schema, 200), etag)


async def _put_schema(call: _Call) -> HttpResponse:
    await call.allow("admin")
    schema = await call.body()
    call.refuse_parameters()
    if not isinstance(schema, dict):
        raise InvalidTableRequest("The body is a schema, an object")
    try:
        if not await call.has_domain():
            normalise(call.table, schema)  # or it is refused, and the domain not made
        space = await call.new_space()
        result = await _write(call, space, lambda tables: tables.create(schema, table=call.table))
    except InvalidTableSchema as error:
        if "index" not in schema:  # a row, by the looks of it
            error.hint = error.hint or _ROWS_HINT
        raise
    return _json(created_body(call.target.domain, result), 201)


async def _delete_schema(call: _Call) -> HttpResponse:
    await call.allow("admin")
    await _refuse_rows(call)
    call.refuse_parameters()
    if await call.has_domain():
        space = await call.space()
        await _write(call, space, lambda tables: tables.drop(call.table))
    return HttpResponse(status=204)


# --- rows ----------------------------------------------------------------------------------------


async def _get_rows(call: _Call) -> HttpResponse:
    await call.allow("read")
    body = await call.body()
    space = await call.row_space()
    target = call.target
    by_url = bool(target.values or target.index is not None or call.query_string)
    format = call.take_format()
    if body not in (None, {}):
        with call.reading(space, body.get("index") if isinstance(body, dict) else None):
            if by_url and not (format and not call.query_string and not target.values):
                raise InvalidTableRequest("A query is in the body or in the URL, not in both")
            query = read_query(body, call.table)
        if format is not None:
            return await _export(call, space, format, lambda view: query)
        page = await _read(call, space, lambda tables: _get(tables, call.table, query))
        return _page(call, page)
    if format is not None:
        return await _export(call, space, format, lambda view: _query_of(call, view))
    page = await _read(
        call,
        space,
        lambda tables: tables.get_by_url(
            call.table, target.values, call.query_string, index=target.index
        ),
    )
    response = _page(call, page)
    if page.next is not None:
        response.headers["link"] = f'<{_next_url(call, page.next)}>; rel="next"'
    return response


def _get(tables: Tables, table: str, query: Query) -> Page:
    return tables.get(table, form="json", **msgspec.structs.asdict(query))


def _query_of(call: _Call, view: View) -> Query:
    plan = catalogue.find(view.raw, call.table)
    query_string = call.query_string or "distinct=false"  # or it would be the short listing
    return urls.query_of(view.raw, plan, call.target.index, call.target.values, query_string)


def _page(call: _Call, page: Page) -> HttpResponse:
    response = _json_of_rows(call, page_body(page), 200 if page.count else 404)
    return response if page.etag is None else _with_etag(call, response, page.etag)


def _next_url(call: _Call, token: str) -> str:
    pieces = [
        piece
        for piece in call.query_string.split("&")
        if piece and piece.partition("=")[0] != "next"
    ]
    path = call.request.root + call.request.raw_path.decode("latin-1")
    return f"{path}?{'&'.join([*pieces, f'next={quote(token)}'])}"


async def _post_rows(call: _Call) -> HttpResponse:
    """A query, if its body can be nothing else; it never writes. All else is a write."""
    if any(name == "format" for name, _ in parse_parameters(call.query_string)):
        return await _put_row(call)
    await call.allow("read")
    body = await call.body()
    if may_be_query(body):
        space = await call.row_space()
        plan = await call.api.dispatcher.look(
            space, lambda view: catalogue.find(view.raw, call.table)
        )
        if is_query(plan, body):
            return await _get_rows(call)
    return await _put_row(call)


async def _put_row(call: _Call) -> HttpResponse:
    call.refuse_index()
    format = call.take_format()
    if format is not None:
        return await _import(call, format)
    await call.allow("write")
    body = await call.body()
    space = await call.row_space()
    if body is None and call.target.values:
        body = {}  # the path may say all that there is to say
    with call.reading(space):
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
            refuse_bare_key(catalogue.find(tx.raw, call.table), attributes)
        return tx.tables.put(call.table, attributes, form="json", **given)

    result = await call.api.dispatcher.write(space, work)
    return _json_of_rows(call, put_body(result, return_old=given["return_old"]), 201)


async def _delete_rows(call: _Call) -> HttpResponse:
    call.refuse_index()
    await call.allow("write")
    body = await call.body()
    space = await call.row_space()
    values = call.target.values
    by_url = bool(values or call.query_string)
    with call.reading(space):
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

    result = await _write(call, space, work)
    return HttpResponse(status=204) if result.applied else _json({"applied": False}, 200)


# --- streams -------------------------------------------------------------------------------------


async def _export(call: _Call, space: Space, format: str, query_in: Any) -> HttpResponse:
    """The whole slice on one snapshot, in constant memory."""
    query = await call.api.dispatcher.look(space, query_in)
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
    return HttpResponse(stream, content_type=_STREAM_TYPES[format])


async def _import(call: _Call, format: str) -> HttpResponse:
    """The rows of a stream of lines, 1,000 in a transaction."""
    call.refuse_parameters()
    if format != "ndjson" or call.target.values:
        raise InvalidTableRequest("An import is NDJSON, for the table as a whole")
    if call.request.content_type not in _LINES:
        raise UnsupportedContent(f"The body is {call.request.content_type}")
    await call.allow("write")
    space = await call.row_space()
    report = await call.api.upload(
        call.request, lambda pieces: space.tables.import_rows(call.table, _lines(pieces))
    )
    return _json(msgspec.to_builtins(report), 200)


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > MAX_BODY_BYTES:
            raise RequestTooLarge(f"A line has more than {MAX_BODY_BYTES} bytes")
    yield rest


# --- running and answering -----------------------------------------------------------------------


async def _read(call: _Call, space: Space, work: Any) -> Any:
    if call.target.domain == EVERY_DOMAIN:
        return await _in_every_domain(call, space.tables, work)
    return await call.api.dispatcher.look(space, lambda view: work(view.tables), "restbase")


async def _write(call: _Call, space: Space, work: Any) -> Any:
    if call.target.domain == EVERY_DOMAIN:
        return await _in_every_domain(call, space.tables, work)

    def on_transaction(tx: Tx) -> Any:
        return work(tx.tables)

    return await call.api.dispatcher.write(space, on_transaction)


async def _in_every_domain(call: _Call, tables: StoreTables, work: Any) -> Any:
    """`*` is all domains, each with a transaction of its own."""
    return await call.api.dispatcher.in_thread(lambda: work(tables))


def _json(content: Any, status: int) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(content), status=status)


def _json_of_rows(call: _Call, content: Any, status: int) -> HttpResponse:
    """The same for rows, in which an attribute of type `json` may hold integers of any size."""
    if call.request.integers_as_text:
        return HttpResponse(bigints.encode(content), status=status)
    return _json(content, status)


def _with_etag(call: _Call, response: HttpResponse, etag: str) -> HttpResponse:
    given = call.request.headers.get("if-none-match")
    if given is not None and not etags.matches(etag, None, given):
        response = HttpResponse(status=304)
    response.headers["etag"] = f'"{etag}"'
    return response


_TYPES: Final[dict[type[HoldfastError], str]] = {
    RequestTooLarge: "too_large",
    StoreUnusable: "unavailable",
    BadInput: "invalid_request",
}


def _failure(api: HttpApi, error: Exception) -> HttpResponse:
    known = api.dispatcher.known(error)
    if isinstance(known, TableError):
        return _json(error_body(known), known.status)
    type = next((_TYPES[each] for each in _TYPES if isinstance(known, each)), known.code)
    if isinstance(known, UnsupportedContent):
        type = known.code
    if known.status == 500:
        type = "internal_error"
    body = {"type": type, "title": known.message}
    if known.hint:
        body["detail"] = known.hint
    response = _json(body, known.status)
    response.headers.update(error_headers(known))
    return response


_SCHEMAS: Final = {"GET": _get_schema, "PUT": _put_schema, "DELETE": _delete_schema}
_ROWS: Final = {
    "GET": _get_rows,
    "PUT": _put_row,
    "POST": _post_rows,
    "DELETE": _delete_rows,
}
