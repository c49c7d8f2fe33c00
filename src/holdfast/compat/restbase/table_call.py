"""One request about tables: its access, body and parameters, how it runs, and its answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from holdfast.compat.restbase.paths import TablePath
from holdfast.declarations import Role
from holdfast.errors import (
    InvalidTablePath,
    InvalidTableQuery,
    InvalidTableRequest,
    RequestTooLarge,
    TableError,
    TableMismatch,
    UnsupportedContent,
)
from holdfast.limits import MAX_BODY_BYTES
from holdfast.server import bigints
from holdfast.server.auth import Recheck
from holdfast.server.call_tracing import TracedCall
from holdfast.server.http import HttpApi
from holdfast.server.http_exchange import JSON, HttpRequest, HttpResponse
from holdfast.server.piecewise_encoding import in_pieces
from holdfast.store import Space, Tx
from holdfast.tables import EVERY_DOMAIN, StoreTables, catalogue, etags
from holdfast.tables.domains import no_rows
from holdfast.tables.json_parser import parse_json
from holdfast.tables.queries import index_of
from holdfast.tables.urls import parse_parameters

STREAM_TYPES: Final = {"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
READS: Final = "restbase"  # the kind of these reads: see server/large_reads.py
ROWS_HINT: Final = "Rows are at /{domain}/sys/table/{table}/, with a slash after the table."


class TableCall:
    """One HTTP request about the tables of a domain."""

    def __init__(self, api: HttpApi, request: HttpRequest, target: TablePath, method: str) -> None:
        self.api = api
        self.request = request
        self.target = target
        self.method = method
        self.query_string = request.query.decode("latin-1")
        self._body: Any = None
        self._has_body = False
        self.traced: TracedCall | None = None

    @property
    def table(self) -> str:
        assert self.target.table is not None
        return self.target.table

    async def allow(self, role: Role) -> Recheck:
        """Raises unless the client has the role in the domain. Returns what checks it again."""
        identity = await self.api.identify(self.request)

        def recheck() -> None:
            now = self.api.dispatcher.authenticator.recheck(identity)
            now.require(role, space=self.target.domain, layer="tables")

        recheck()
        return recheck

    async def has_domain(self) -> bool:
        """Returns whether the domain exists; with tables in domain `*`, every domain does."""
        dispatcher, domain = self.api.dispatcher, self.target.domain
        if domain == EVERY_DOMAIN and self.method != "GET":
            return True
        return await dispatcher.has_space(domain) or await dispatcher.has_space(EVERY_DOMAIN)

    async def space(self) -> Space:
        """Returns the space of the domain; a request for a table does not create its domain."""
        if not await self.has_domain():
            raise catalogue.not_found(self.table)
        return await self.new_space()

    async def row_space(self) -> Space:
        """Returns the space for a request about rows; domain `*` has schemas only."""
        if self.target.domain == EVERY_DOMAIN:
            raise no_rows()
        return await self.space()

    async def new_space(self) -> Space:
        return await self.api.dispatcher.space(self.target.domain)

    @contextmanager
    def checking(self, space: Space, index: Any = None) -> Iterator[None]:
        """Wraps the checks of a request; a missing table or index is reported before a bad request.

        The table is read only if a check fails: most requests are right.
        """
        try:
            yield
        except TableMismatch:
            raise  # the body names another table: that comes first, even if none exists
        except TableError:
            if self.target.domain != EVERY_DOMAIN:
                with space.view() as view:
                    plan = catalogue.find(view.raw, self.table)
                    index_of(view.raw, plan, index if isinstance(index, str) else None)
            raise

    async def body(self) -> Any:
        """Returns the JSON of the body, or None if it is empty."""
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
            raise UnsupportedContent(f"The body must be JSON, not {self.request.content_type}")
        return await self.api.decoded(body, parse_json)

    def flag(self, name: str) -> bool:
        """Returns whether the parameter `name` is true; any other parameter is refused."""
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

    def pop_format(self) -> str | None:
        """Removes the parameter `format` from the query string and returns it."""
        kept, format = [], None
        for piece in self.query_string.split("&"):
            if piece.partition("=")[0] == "format":
                if format is not None:
                    raise InvalidTableQuery("The parameter format is given twice")
                format = piece.partition("=")[2]
                if format not in STREAM_TYPES:
                    raise InvalidTableQuery(f"The format must be ndjson or csv, not {format!r}")
            else:
                kept.append(piece)
        self.query_string = "&".join(kept)
        return format


async def refuse_rows(call: TableCall) -> None:
    """Raises for a request about rows that lacks the slash after the table.

    Its query would be ignored, and a delete would drop the table instead of some rows.
    """
    if await call.body() not in (None, {}):
        raise InvalidTableRequest(
            "This path is the schema of the table, and takes no body", hint=ROWS_HINT
        )


# --- running and answering -----------------------------------------------------------------------


async def run_read(call: TableCall, space: Space, work: Any) -> Any:
    if call.target.domain == EVERY_DOMAIN:
        return await _run_in_every_domain(call, space.tables, work)
    return await call.api.dispatcher.read(space, lambda view: work(view.tables), READS)


async def run_write(call: TableCall, space: Space, work: Any) -> Any:
    if call.target.domain == EVERY_DOMAIN:
        return await _run_in_every_domain(call, space.tables, work)

    def on_transaction(tx: Tx) -> Any:
        return work(tx.tables)

    traced = call.traced
    run = on_transaction if traced is None else traced.around(on_transaction)
    return await call.api.dispatcher.write(space, run)


async def _run_in_every_domain(call: TableCall, tables: StoreTables, work: Any) -> Any:
    """Runs work on domain `*`, with a transaction for each domain."""
    return await call.api.dispatcher.in_thread(lambda: work(tables))


def json_response(content: Any, status: int) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(content), status=status)


def rows_response(call: TableCall, content: Any, status: int) -> HttpResponse:
    """Returns an answer with rows; their `json` attributes may hold integers of any size."""
    return HttpResponse(encode_rows(call, content), status=status)


def encode_rows(call: TableCall, content: Any) -> bytes:
    """Returns rows as JSON, with integers in the form that the client asks for."""
    encode = bigints.encode if call.request.integers_as_text else msgspec.json.encode
    return in_pieces(encode, msgspec.json.encode)(content)


def with_etag(call: TableCall, response: HttpResponse, etag: str) -> HttpResponse:
    given = call.request.headers.get("if-none-match")
    if given is not None and not etags.matches(etag, None, given):
        response = HttpResponse(status=304)
    response.headers["etag"] = f'"{etag}"'
    return response
