"""Tables: a list of them, and one table with its key, its indexes and its rows."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.row_addresses import RowQuery, key_address, key_names
from holdfast.errors import BadInput, HoldfastError
from holdfast.limits import MAX_SHOWN_COLUMNS, TABLES_PER_PAGE
from holdfast.server.http_exchange import HttpResponse

_EXAMPLE = """{
  "table": "revisions",
  "attributes": {"title": "string", "rev": "int", "tid": "timeuuid", "body": "string"},
  "index": [
    {"attribute": "title", "type": "hash"},
    {"attribute": "rev", "type": "range", "order": "desc"},
    {"attribute": "tid", "type": "range", "order": "desc"}
  ]
}
"""


class ListedTable(NamedTuple):
    """A table in the list."""

    name: str
    facts: Any
    schema: Mapping[str, Any]
    building: list[Any]  # the indexes that are not complete


@page("tables", menu="tables")
async def tables(request: PageRequest) -> HttpResponse:
    """Shows the tables with their rows, bytes and the states of their indexes."""
    after = request.parameter("cursor")
    names = await request.call("tables.names", after=after or None, limit=TABLES_PER_PAGE + 1)
    shown = names[:TABLES_PER_PAGE]
    listed = [await _listed(request, name) for name in shown]
    header = ("table", "rows", "bytes", "index entries", "rows that expire")
    rows = [
        (each.name, each.facts.rows, each.facts.bytes, each.facts.entries, each.facts.expiring)
        for each in listed
    ]
    return await request.render(
        "tables.html",
        title="Tables",
        tables=listed,
        next=shown[-1] if len(names) > len(shown) else None,
        example=_EXAMPLE,
        rows=(header, rows),
    )


async def _listed(request: PageRequest, name: str) -> ListedTable:
    schema = await request.call("tables.schema", table=name)
    facts = await request.call("tables.facts", table=name)
    states = [
        await request.call("tables.index_progress", table=name, index=index)
        for index in schema.get("secondaryIndexes", {})
    ]
    return ListedTable(name, facts, schema, [each for each in states if not each.complete])


@page("tables/{table}", menu="tables")
async def table(request: PageRequest) -> HttpResponse:
    """Shows a table, and the rows that a path and its parameters select."""
    name = request.names["table"]
    schema = await request.call("tables.schema", table=name)
    query = RowQuery.of(request)
    found, problem = None, None
    try:
        found = await query.read(request)
    except HoldfastError as error:
        if error.status != HTTPStatus.BAD_REQUEST:
            raise
        problem = error
    items = found.items if found else []
    columns = _columns(schema, items)
    key = key_names(schema)
    return await request.render(
        "table.html",
        title=name,
        schema=schema,
        facts=await request.call("tables.facts", table=name),
        indexes=[
            (index, elements, await request.call("tables.index_progress", table=name, index=index))
            for index, elements in schema.get("secondaryIndexes", {}).items()
        ],
        query=query,
        found=found,
        problem=problem,
        columns=columns,
        links=[key_address(item, key) for item in items],
        rows=(columns, [[item.get(column) for column in columns] for item in items]),
    )


def _columns(schema: Mapping[str, Any], items: list[dict[str, Any]]) -> list[str]:
    """Returns the attributes to show: those of the key, then the others that rows have."""
    key = key_names(schema)
    found = {name for item in items for name in item}
    others = [name for name in schema["attributes"] if name not in key]
    return [name for name in (*key, *others) if name in found or not items][:MAX_SHOWN_COLUMNS]


@action("tables/create")
async def create(request: PageRequest) -> HttpResponse:
    """Creates a table, or migrates it."""
    schema = json_of(request, "schema")
    created = await request.call("tables.create", schema=schema)
    notice = "; ".join(
        [f"{created.table} has version {created.version} of its schema", *created.warnings]
    )
    return request.redirect(request.link("tables", created.table), f"{notice}.")


@action("tables/{table}/drop")
async def drop(request: PageRequest) -> HttpResponse:
    """Drops a table whose name was typed."""
    name = request.names["table"]
    if request.form.get("typed") != name:
        raise BadInput("the typed name does not match", hint="Nothing was dropped.")
    await request.call("tables.drop", table=name)
    return request.redirect(request.link("tables"), f"Dropped {name}.")


@action("tables/{table}/add-index")
async def add_index(request: PageRequest) -> HttpResponse:
    """Adds a secondary index, which is built in the background."""
    name, index = request.names["table"], request.form.get("index", "").strip()
    elements = [
        {"attribute": attribute.strip(), "type": kind}
        for kind in ("hash", "range", "proj")
        for attribute in request.form.get(kind, "").split(",")
        if attribute.strip()
    ]
    await request.call("tables.add_index", table=name, index=index, elements=elements)
    return request.redirect(request.link("tables", name), f"The index {index} is being built.")


def json_of(request: PageRequest, field: str) -> Any:
    """Returns a field of a form that holds a JSON object."""
    try:
        found = msgspec.json.decode(request.form.get(field, ""))
    except msgspec.DecodeError as error:
        raise BadInput(f"the {field} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadInput(f"the {field} is not a JSON object")
    return found
