"""One entity: its properties with their types, and the forms that change it."""

from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, Final

import msgspec

from holdfast.dashboard.entities import table_of
from holdfast.dashboard.page_request import PageRequest, is_count
from holdfast.dashboard.pages import action, page
from holdfast.errors import BadInput, NotFound
from holdfast.operations import find
from holdfast.server import payloads
from holdfast.server.http_exchange import HttpResponse

_EXACT_DIGITS: Final = 15  # of an integer that every JSON parser reads exactly
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@page("entities/{table}/new", menu="entities")
async def new_entity(request: PageRequest) -> HttpResponse:
    """Shows the form that puts an entity."""
    table = await table_of(request, request.names["table"])
    properties = {column.name: None for column in table.columns} if table else {}
    return await request.render(
        "entity_new.html",
        title=f"New entity of {request.names['table']}",
        text=_json(properties),
        table=table,
    )


@page("entities/{table}/ids/{id}", menu="entities")
async def entity(request: PageRequest) -> HttpResponse:
    """Shows one entity."""
    name, id = request.names["table"], request.names["id"]
    found = await request.call("entities.get", table=name, ids=[id])
    if not found:
        raise NotFound(f"{name} has no entity {id!r:.200}")
    table = await table_of(request, name)
    [written] = payloads.as_encodable(find("entities", "get"), found, is_json=True)
    properties = {each: relaxed(value) for each, value in written.properties.items()}
    return await request.render(
        "entity.html",
        title=id,
        entity=found[0],
        table=table,
        properties=[
            (each, _type(table, each, value), value) for each, value in found[0].properties.items()
        ],
        text=_json(properties),
    )


@action("entities/{table}/put")
async def put(request: PageRequest) -> HttpResponse:
    """Puts an entity; with `version`, only if that is its stored version."""
    name, id = request.names["table"], request.form.get("id", "")
    try:
        properties = msgspec.json.decode(request.form.get("properties", ""))
    except msgspec.DecodeError as error:
        raise BadInput(f"the properties are not JSON: {error}") from None
    if not isinstance(properties, dict):
        raise BadInput("the properties are not an object")
    version = request.form.get("version", "")
    entity: dict[str, Any] = {"properties": properties}
    if id:
        entity["id"] = id
    if version and not is_count(version):
        raise BadInput(f"the version must be a whole number, not {version!r:.40}")
    if version:
        entity["if_version"] = int(version)
    [id] = await request.call("entities.put", table=name, entities=[entity], mode="replace")
    return request.redirect(request.link("entities", name, "ids", id), f"Put {id}.")


def relaxed(value: Any) -> Any:
    """Returns a value of Extended JSON as people write it: plain numbers, and times as text.

    >>> relaxed({"$numberLong": "7"}), relaxed({"$date": {"$numberLong": "0"}})
    (7, {'$date': '1970-01-01T00:00:00+00:00'})
    """
    if isinstance(value, list):
        return [relaxed(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$numberLong"} and len(value["$numberLong"]) <= _EXACT_DIGITS:
        return int(value["$numberLong"])
    if value.keys() == {"$numberDouble"} and isfinite(float(value["$numberDouble"])):
        return float(value["$numberDouble"])
    if value.keys() == {"$date"}:
        return _date(value)
    return {name: relaxed(each) for name, each in value.items()} if "$map" not in value else value


def _date(value: dict[str, Any]) -> dict[str, Any]:
    try:
        moment = _EPOCH + timedelta(milliseconds=int(value["$date"]["$numberLong"]))
    except OverflowError:
        return value
    return {"$date": moment.isoformat()}


def _json(properties: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(properties), indent=2).decode()


def _type(table: Any, name: str, value: Any) -> str:
    """Returns the type of the column, or of the value if there is no column."""
    column = table.column(name) if table else None
    if column is None:
        return f"{type(value).__name__}, no column"
    return f"{column.type} of {column.subtype}" if column.subtype else str(column.type)
