"""Events: schemas with their handlers, a playground, and the keys that events have written."""

from typing import Any

import msgspec

from holdfast.dashboard import pages
from holdfast.dashboard.event_charts import chart_of
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.tables import json_of
from holdfast.errors import HoldfastError, NotFound
from holdfast.limits import ROWS_PER_PAGE
from holdfast.server.http_exchange import HttpResponse

_EXAMPLE = (
    '{\n  "name": "shop:view",\n  "attributes": {"visitor": "ann", "artwork": "mona-lisa"}\n}'
)


@page("events", menu="events")
async def events(request: PageRequest) -> HttpResponse:
    """Shows the deployed schemas with their handlers, and the keys that events have written."""
    prefix = request.parameter("prefix")
    found = await request.call(
        "events.keys", prefix=prefix, limit=ROWS_PER_PAGE, after=request.parameter("cursor") or None
    )
    return await request.render(
        "events.html",
        title="Events",
        schemas=await request.call("events.schemas"),
        dialects=await request.call("events.dialects"),
        settings=await request.call("events.settings"),
        fan_outs=await request.call("events.fan_outs", limit=ROWS_PER_PAGE),
        prefix=prefix,
        keys=_by_key(found.keys),
        next=found.next,
        rows=(("key", "kind"), [(each.key, each.kind) for each in found.keys]),
    )


def _by_key(found: list[Any]) -> dict[str, list[str]]:
    """Returns the kinds of each key, in the order of the keys."""
    kinds: dict[str, list[str]] = {}
    for each in found:
        kinds.setdefault(each.key, []).append(each.kind)
    return kinds


@page("events/keys/{key}", menu="events")
async def event_key(request: PageRequest) -> HttpResponse:
    """Shows a key: members of its set, its leaderboard, its counters over time, its numbers."""
    key = request.names["key"]
    about = await request.call("events.describe", key=key)
    if not about.kinds:
        raise NotFound(f"no event has written the key {key!r:.200}, or it has expired")
    members, top, numbers = None, [], None
    if "set" in about.kinds:
        after = request.parameter("cursor") or None
        members = await request.call("events.members", key=key, limit=ROWS_PER_PAGE, after=after)
    if "leaderboard" in about.kinds:
        top = await request.call("events.top", key=key, k=ROWS_PER_PAGE)
    if "numbers" in about.kinds:
        numbers = await request.call("events.aggregate", key=key)
    return await request.render(
        "event_key.html",
        title=key,
        about=about,
        members=members,
        top=top,
        numbers=numbers,
        chart=await chart_of(request, key, has_numbers=numbers is not None),
        rows=_csv_rows(members, top),
    )


def _csv_rows(members: Any, top: list[Any]) -> Any:
    if top:
        return ("value", "count", "error"), [(each.value, each.count, each.error) for each in top]
    if members:
        return ("value", "at"), [(each.value, each.at) for each in members.members]
    return None


@page("events/playground", menu="events")
async def playground(request: PageRequest) -> HttpResponse:
    """Shows the form of an event."""
    return await _playground(request, _EXAMPLE)


@action("events/playground")
async def explain(request: PageRequest) -> HttpResponse:
    """Explains an event, which writes nothing; or sends it."""
    text, schema = request.form.get("event", ""), request.form.get("schema") or None
    explained = sent = problem = None
    try:
        event = json_of(request, "event")
        if request.form.get("do") == "send":
            sent = await request.call("events.send", event=event, schema=schema)
        else:
            explained = await request.call("events.explain", event=event, schema=schema)
    except HoldfastError as error:
        if error.status in (401, 403):
            raise
        problem = error
    return await _playground(request, text, explained=explained, sent=sent, problem=problem)


async def _playground(request: PageRequest, text: str, **found: Any) -> HttpResponse:
    request.menu, request.served = "events", pages.served()  # also after a form
    calls = list(request.calls)
    schemas = await request.call("events.schemas")
    request.calls = calls  # "copy as" shows only the event
    shown = {"explained": None, "sent": None, "problem": None, **found}
    return await request.render(
        "event_playground.html",
        title="Playground",
        text=text,
        schemas=sorted(schemas),
        schema=request.form.get("schema", ""),
        **shown,
    )


@page("events/schemas/{name}", menu="events")
async def event_schema(request: PageRequest) -> HttpResponse:
    """Shows one schema as JSON, and the problems of a schema of Flux."""
    name = request.names["name"]
    schemas = await request.call("events.schemas")
    if name not in schemas:
        raise NotFound(f"there is no schema {name!r:.200}")
    dialects = await request.call("events.dialects")
    problems = (
        await request.call("events.problems", name=name) if dialects.get(name) == "flux" else []
    )
    text = msgspec.json.format(msgspec.json.encode(schemas[name]), indent=2).decode()
    return await request.render(
        "event_schema.html",
        title=name,
        schema=schemas[name],
        text=text,
        dialect=dialects.get(name, "mql"),
        problems=problems,
    )


@action("events/deploy")
async def deploy(request: PageRequest) -> HttpResponse:
    """Deploys a schema."""
    name = request.form.get("name", "") or "default"
    dialect = request.form.get("dialect") or None
    await request.call(
        "events.deploy", schema=request.form.get("schema", ""), name=name, dialect=dialect
    )
    return request.redirect(request.link("events", "schemas", name), f"Deployed {name}.")


@action("events/schemas/{name}/withdraw")
async def withdraw(request: PageRequest) -> HttpResponse:
    """Withdraws a schema."""
    await request.call("events.withdraw", name=request.names["name"])
    notice = f"Withdrew {request.names['name']}; what it has written stays."
    return request.redirect(request.link("events"), notice)


@action("events/keys/{key}/forget")
async def forget(request: PageRequest) -> HttpResponse:
    """Deletes a key."""
    await request.call("events.forget", key=request.names["key"])
    return request.redirect(request.link("events"), f"Forgot {request.names['key']}.")
