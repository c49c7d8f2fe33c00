"""RESTBase's paths over HTTP: `/{domain}/sys/table/{table}/...`, on the raw request target.

A domain is a space. This module chooses the handler of a path and a method (`schemas.py`,
`rows.py`) and answers errors in RESTBase's own form.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from holdfast.compat.restbase.bodies import error_body
from holdfast.compat.restbase.paths import parse_path
from holdfast.compat.restbase.rows import delete_rows, get_rows, post_rows, put_row
from holdfast.compat.restbase.schemas import delete_schema, get_schema, list_tables, put_schema
from holdfast.compat.restbase.table_call import ROWS_HINT, TableCall, json_response, run_write
from holdfast.errors import (
    AnswerTooLarge,
    BadInput,
    BatchTooLong,
    HoldfastError,
    InvalidTableRequest,
    MethodNotAllowed,
    RequestTooLarge,
    StoreUnusable,
    TableError,
    UnsupportedContent,
    ValueTooLarge,
)
from holdfast.server.call_tracing import ended_with
from holdfast.server.http import ANY_METHOD, HttpApi, route
from holdfast.server.http_exchange import HttpRequest, HttpResponse, error_headers
from holdfast.tables import EVERY_DOMAIN
from holdfast.tables.domains import no_rows

_READ_METHODS: Final = ("GET", "HEAD", "QUERY")
_SCHEMA_METHODS: Final = (*_READ_METHODS, "PUT", "DELETE")
_ROW_METHODS: Final = (*_READ_METHODS, "PUT", "POST", "DELETE")


@route(ANY_METHOD, "/{domain}/sys/table")
@route(ANY_METHOD, "/{domain}/sys/table/{rest...}")
async def tables(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    """Answers every request below `/{domain}/sys/table`."""
    try:
        target = parse_path(request.raw_path)
        call = TableCall(api, request, target, _method(request))
        if target.table is None:
            _require_method(call, _READ_METHODS)
            return await _traced(call, list_tables)
        if target.is_rows:
            _require_method(call, _ROW_METHODS)
            return await _traced(call, _ROWS[call.method])
        _require_method(call, _SCHEMA_METHODS)
        return await _traced(call, _SCHEMAS[call.method])
    except Exception as error:
        return _failure(api, request, error)


@route(ANY_METHOD, "/{domain}/sys/batch")
async def batch(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    """Runs puts and deletes on any tables of a domain as one transaction."""
    try:
        target = parse_path(request.raw_path.replace(b"/sys/batch", b"/sys/table"))
        call = TableCall(api, request, target, _method(request))
        _require_method(call, ("POST",))
        return await _traced(call, batch_rows)
    except Exception as error:
        return _failure(api, request, error)


async def batch_rows(call: TableCall) -> HttpResponse:
    await call.allow("write")
    body = await call.body()
    if not isinstance(body, dict) or body.keys() - {"operations"}:
        raise InvalidTableRequest("The body is an object with `operations` and nothing else")
    operations = body.get("operations")
    if not isinstance(operations, list):
        raise InvalidTableRequest("The body is an object with `operations`, an array")
    if call.target.domain == EVERY_DOMAIN:
        raise no_rows()
    space = await call.new_space()
    result = await run_write(call, space, lambda tables: tables.batch(operations))
    return json_response(msgspec.to_builtins(result), 200)


async def _traced(
    call: TableCall, handler: Callable[[TableCall], Coroutine[Any, Any, HttpResponse]]
) -> HttpResponse:
    """Answers a request, as a traced call."""
    name = f"restbase.{handler.__name__}"
    call.traced = call.api.traced(call.request, name, call.target.domain)
    return await ended_with(call.traced, handler(call))


def _method(request: HttpRequest) -> str:
    """Returns the method; `QUERY`, or a header of a POST, means a GET with a body."""
    override = request.headers.get("x-http-method-override", "").upper()
    if request.method in ("QUERY", "HEAD") or (request.method == "POST" and override == "GET"):
        return "GET"
    return request.method


def _require_method(call: TableCall, allowed: tuple[str, ...]) -> None:
    if call.method not in allowed:
        message = f"This path takes {', '.join(allowed)}, not {call.request.method}"
        hint = ROWS_HINT if allowed is _SCHEMA_METHODS else None
        raise MethodNotAllowed(message, allowed=allowed, hint=hint)


_TYPES: Final[dict[type[HoldfastError], str]] = {
    RequestTooLarge: "too_large",
    BatchTooLong: "too_large",
    AnswerTooLarge: "too_large",
    ValueTooLarge: "too_large",
    UnsupportedContent: UnsupportedContent.code,
    StoreUnusable: "unavailable",
    BadInput: "invalid_request",
}


def _failure(api: HttpApi, request: HttpRequest, error: Exception) -> HttpResponse:
    known = api.dispatcher.as_known_error(error, request.ids)
    if isinstance(known, TableError):
        return json_response(error_body(known), known.status)
    body = {"type": type_of(known), "title": known.message}
    if known.hint:
        body["detail"] = known.hint
    response = json_response(body, known.status)
    response.headers.update(error_headers(known))
    return response


def type_of(error: HoldfastError) -> str:
    """Returns the name that RESTBase's answers have for an error that is not of the tables."""
    if error.status == 500:
        return "internal_error"
    return next((_TYPES[each] for each in _TYPES if isinstance(error, each)), error.code)


_SCHEMAS: Final = {"GET": get_schema, "PUT": put_schema, "DELETE": delete_schema}
_ROWS: Final = {
    "GET": get_rows,
    "PUT": put_row,
    "POST": post_rows,
    "DELETE": delete_rows,
}
