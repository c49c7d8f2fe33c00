"""RESTBase's requests about schemas: list the tables of a domain, get, put and delete a schema."""

from typing import Any

import msgspec

from holdfast.compat.restbase.bodies import created_body
from holdfast.compat.restbase.table_call import (
    ROWS_HINT,
    TableCall,
    json_response,
    refuse_rows,
    run_read,
    run_write,
    with_etag,
)
from holdfast.errors import (
    InvalidTableQuery,
    InvalidTableRequest,
    InvalidTableSchema,
)
from holdfast.limits import DEFAULT_PAGE_ROWS, MAX_PAGE_ROWS
from holdfast.server.http_exchange import HttpResponse
from holdfast.tables import Tables
from holdfast.tables.schema import normalise
from holdfast.tables.urls import parse_parameters


async def list_tables(call: TableCall) -> HttpResponse:
    """Returns a page of the names of a domain's tables."""
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
        names = await run_read(call, space, lambda tables: tables.names(after=after, limit=limit))
    body: dict[str, Any] = {"items": names, "count": len(names)}
    if len(names) == limit:
        body["next"] = names[-1]
    return json_response(body, 200)


async def get_schema(call: TableCall) -> HttpResponse:
    await call.allow("read")
    await refuse_rows(call)
    space = await call.space()
    with call.checking(space):
        with_stats = call.flag("stats")

    def work(tables: Tables) -> tuple[dict[str, Any], str]:
        schema = dict(tables.schema(call.table))
        if with_stats:
            schema["stats"] = msgspec.to_builtins(tables.facts(call.table))
        return schema, tables.schema_etag(call.table)

    schema, etag = await run_read(call, space, work)
    return with_etag(call, json_response(schema, 200), etag)


async def put_schema(call: TableCall) -> HttpResponse:
    await call.allow("admin")
    schema = await call.body()
    call.refuse_parameters()
    if not isinstance(schema, dict):
        raise InvalidTableRequest("The body is a schema, an object")
    try:
        if not await call.has_domain():
            normalise(call.table, schema)  # a bad schema must not create the domain
        space = await call.new_space()
        result = await run_write(
            call, space, lambda tables: tables.create(schema, table=call.table)
        )
    except InvalidTableSchema as error:
        if "index" not in schema:  # perhaps a row was meant
            error.hint = error.hint or ROWS_HINT
        raise
    return json_response(created_body(call.target.domain, result), 201)


async def delete_schema(call: TableCall) -> HttpResponse:
    await call.allow("admin")
    await refuse_rows(call)
    call.refuse_parameters()
    if await call.has_domain():
        space = await call.space()
        await run_write(call, space, lambda tables: tables.drop(call.table))
    return HttpResponse(status=204)
