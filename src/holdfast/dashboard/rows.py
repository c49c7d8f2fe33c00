"""One row of a table, beside its other revisions; and rows as files."""

from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any

import msgspec

from holdfast.dashboard.differences import compare
from holdfast.dashboard.page_request import PageRequest, as_csv
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.row_addresses import RowQuery, key_address, key_names, values_of
from holdfast.dashboard.tables import json_of
from holdfast.errors import BadInput, NotFound
from holdfast.limits import EXPORTED_ROWS_PER_STEP, SHOWN_REVISIONS
from holdfast.server.http_exchange import HttpResponse

_TYPES = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}


@page("tables/{table}/rows/{key}", menu="tables")
async def row(request: PageRequest) -> HttpResponse:
    """Shows a row, and its differences from another revision."""
    name, path = request.names["table"], request.names["key"]
    schema = await request.call("tables.schema", table=name)
    found = await request.call("tables.get_by_url", table=name, values=values_of(path))
    if not found.items:
        raise NotFound(f"{name} has no row {path!r:.200}")
    item, key = found.items[0], key_names(schema)
    revisions = await _revisions(request, schema, path)
    other = _other(revisions, item, key, request.parameter("with"))
    return await request.render(
        "row.html",
        title=" / ".join(values_of(path)),
        schema=schema,
        key=key,
        item=item,
        etag=found.etag,
        text=msgspec.json.format(msgspec.json.encode(item), indent=2).decode(),
        key_text=msgspec.json.encode({each: item[each] for each in key}).decode(),
        version=key[-1],
        revisions=[(key_address(each, key), each.get(key[-1])) for each in revisions],
        here=key_address(item, key),
        other=other,
        other_address=key_address(other, key) if other else "",
        differences=compare(other, item, list(schema["attributes"])) if other else [],
    )


async def _revisions(
    request: PageRequest, schema: Mapping[str, Any], path: str
) -> list[dict[str, Any]]:
    """Returns the rows whose keys differ from this one only in the last part."""
    if not any(each["type"] == "range" for each in schema["index"]):
        return []
    values = values_of(path)[:-1]
    found = await request.call(
        "tables.get_by_url",
        table=request.names["table"],
        values=values,
        query_string=f"limit={SHOWN_REVISIONS}",
    )
    items: list[dict[str, Any]] = found.items
    return items


def _other(
    revisions: list[dict[str, Any]], item: dict[str, Any], key: list[str], wanted: str
) -> dict[str, Any] | None:
    """Returns the revision that was asked for, or the one listed after this one."""
    addresses = [key_address(each, key) for each in revisions]
    if wanted in addresses:
        return revisions[addresses.index(wanted)]
    here = key_address(item, key)
    position = addresses.index(here) + 1 if here in addresses else 0
    return revisions[position] if position < len(revisions) else None


@action("tables/{table}/put")
async def put(request: PageRequest) -> HttpResponse:
    """Puts a row; with an etag, only if the row is still as it was shown."""
    name = request.names["table"]
    attributes = json_of(request, "attributes")
    result = await request.call(
        "tables.put",
        table=name,
        attributes=attributes,
        if_match=request.form.get("etag") or None,
    )
    key = key_names(await request.call("tables.schema", table=name))
    if result.tid is not None and attributes.get(key[-1]) is None:
        attributes[key[-1]] = str(result.tid)
    address = key_address(attributes, key)
    to = request.link("tables", name, "rows", address) if address else request.link("tables", name)
    return request.redirect(to, "Put the row.")


@action("tables/{table}/delete")
async def delete(request: PageRequest) -> HttpResponse:
    """Deletes the row of a whole primary key."""
    name = request.names["table"]
    attributes = json_of(request, "key")
    schema = await request.call("tables.schema", table=name)
    if attributes.keys() != set(key_names(schema)):
        raise BadInput("a row is deleted by all attributes of its key")
    deleted = await request.call("tables.delete", table=name, attributes=attributes)
    return request.redirect(request.link("tables", name), f"Deleted {deleted.count:,} rows.")


@page("tables/{table}/export", menu="tables")
async def export(request: PageRequest) -> HttpResponse:
    """Sends all rows of a query as CSV or NDJSON, a step at a time."""
    form = request.parameter("as", "csv")
    if form not in _TYPES:
        raise BadInput(f"rows are exported as csv or ndjson, not as {form!r:.40}")
    schema = await request.call("tables.schema", table=request.names["table"])
    first = await _step(request, "")
    headers = {"content-disposition": f'attachment; filename="rows.{form}"'}
    lines = _lines(request, form, list(schema["attributes"]), first)
    return HttpResponse(lines, content_type=_TYPES[form], headers=headers)


async def _step(request: PageRequest, cursor: str) -> Any:
    query = RowQuery.of(request)
    return await request.call_in(
        request.space,
        "tables.get_by_url",
        is_large=True,
        table=request.names["table"],
        values=query.values,
        query_string=query.export_parameters(cursor, EXPORTED_ROWS_PER_STEP),
    )


async def _lines(
    request: PageRequest, form: str, names: list[str], found: Any
) -> AsyncGenerator[bytes]:
    """Yields the lines of an export, step by step.

    Each step is consistent in itself; rows that are put meanwhile may or may not be included.
    """
    if form == "csv":
        yield as_csv(names, [])
    while True:
        items, cursor = found.items, found.next
        if form == "csv":
            encode = partial(_as_csv_lines, items, names)
        else:
            encode = partial(_as_json_lines, items)
        lines = await request.encode(encode)
        del (
            found,
            items,
            encode,
        )  # the client may read slowly, so only the encoded rows stay in memory
        yield lines
        if not cursor:
            return
        found = await _step(request, cursor)


def _as_csv_lines(items: list[Any], names: list[str]) -> bytes:
    return as_csv(None, ([item.get(name) for name in names] for item in items))


def _as_json_lines(items: list[Any]) -> bytes:
    return b"".join(msgspec.json.encode(item) + b"\n" for item in items)
