"""Events: schemas with their handlers, a playground, and the keys that events have written."""

from typing import Any

import msgspec

from holdfast.dashboard import pages
from holdfast.dashboard.event_charts import chart_of
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.tables import json_of
from holdfast.dashboard.visit import Visit
from holdfast.errors import HoldfastError, NotFound
from holdfast.limits import ROWS_PER_PAGE
from holdfast.server.http_exchange import HttpResponse

_EXAMPLE = (
    '{\n  "name": "shop:view",\n  "attributes": {"visitor": "ann", "artwork": "mona-lisa"}\n}'
)


@page("events", menu="events")
async def events(visit: Visit) -> HttpResponse:
    """Shows the deployed schemas with their handlers, and the keys that events have written."""
    prefix = visit.parameter("prefix")
    found = await visit.call(
        "events.keys", prefix=prefix, limit=ROWS_PER_PAGE, after=visit.parameter("cursor") or None
    )
    return await visit.render(
        "events.html",
        title="Events",
        schemas=await visit.call("events.schemas"),
        dialects=await visit.call("events.dialects"),
        settings=await visit.call("events.settings"),
        fan_outs=await visit.call("events.fan_outs", limit=ROWS_PER_PAGE),
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
async def event_key(visit: Visit) -> HttpResponse:
    """Shows a key: members of its set, its leaderboard, its counters over time, its numbers."""
    key = visit.names["key"]
    about = await visit.call("events.describe", key=key)
    if not about.kinds:
        raise NotFound(f"no event has written the key {key!r:.200}, or it has expired")
    members, top, numbers = None, [], None
    if "set" in about.kinds:
        after = visit.parameter("cursor") or None
        members = await visit.call("events.members", key=key, limit=ROWS_PER_PAGE, after=after)
    if "leaderboard" in about.kinds:
        top = await visit.call("events.top", key=key, k=ROWS_PER_PAGE)
    if "numbers" in about.kinds:
        numbers = await visit.call("events.aggregate", key=key)
    return await visit.render(
        "event_key.html",
        title=key,
        about=about,
        members=members,
        top=top,
        numbers=numbers,
        chart=await chart_of(visit, key, has_numbers=numbers is not None),
        rows=_csv_rows(members, top),
    )


def _csv_rows(members: Any, top: list[Any]) -> Any:
    if top:
        return ("value", "count", "error"), [(each.value, each.count, each.error) for each in top]
    if members:
        return ("value", "at"), [(each.value, each.at) for each in members.members]
    return None


@page("events/playground", menu="events")
async def playground(visit: Visit) -> HttpResponse:
    """Shows the form of an event."""
    return await _playground(visit, _EXAMPLE)


@action("events/playground")
async def explain(visit: Visit) -> HttpResponse:
    """Explains an event, which writes nothing; or sends it."""
    text, schema = visit.form.get("event", ""), visit.form.get("schema") or None
    explained = sent = problem = None
    try:
        event = json_of(visit, "event")
        if visit.form.get("do") == "send":
            sent = await visit.call("events.send", event=event, schema=schema)
        else:
            explained = await visit.call("events.explain", event=event, schema=schema)
    except HoldfastError as error:
        if error.status in (401, 403):
            raise
        problem = error
    return await _playground(visit, text, explained=explained, sent=sent, problem=problem)


async def _playground(visit: Visit, text: str, **found: Any) -> HttpResponse:
    visit.menu, visit.served = "events", pages.served()  # also after a form
    calls = list(visit.calls)
    schemas = await visit.call("events.schemas")
    visit.calls = calls  # "copy as" shows the event alone
    shown = {"explained": None, "sent": None, "problem": None, **found}
    return await visit.render(
        "event_playground.html",
        title="Playground",
        text=text,
        schemas=sorted(schemas),
        schema=visit.form.get("schema", ""),
        **shown,
    )


@page("events/schemas/{name}", menu="events")
async def event_schema(visit: Visit) -> HttpResponse:
    """Shows one schema as JSON, and the problems of a schema of Flux."""
    name = visit.names["name"]
    schemas = await visit.call("events.schemas")
    if name not in schemas:
        raise NotFound(f"there is no schema {name!r:.200}")
    dialects = await visit.call("events.dialects")
    problems = (
        await visit.call("events.problems", name=name) if dialects.get(name) == "flux" else []
    )
    text = msgspec.json.format(msgspec.json.encode(schemas[name]), indent=2).decode()
    return await visit.render(
        "event_schema.html",
        title=name,
        schema=schemas[name],
        text=text,
        dialect=dialects.get(name, "mql"),
        problems=problems,
    )


@action("events/deploy")
async def deploy(visit: Visit) -> HttpResponse:
    """Deploys a schema."""
    name = visit.form.get("name", "") or "default"
    dialect = visit.form.get("dialect") or None
    await visit.call(
        "events.deploy", schema=visit.form.get("schema", ""), name=name, dialect=dialect
    )
    return visit.leave(visit.link("events", "schemas", name), f"Deployed {name}.")


@action("events/schemas/{name}/withdraw")
async def withdraw(visit: Visit) -> HttpResponse:
    """Withdraws a schema."""
    await visit.call("events.withdraw", name=visit.names["name"])
    said = f"Withdrew {visit.names['name']}; what it has written stays."
    return visit.leave(visit.link("events"), said)


@action("events/keys/{key}/forget")
async def forget(visit: Visit) -> HttpResponse:
    """Deletes a key."""
    await visit.call("events.forget", key=visit.names["key"])
    return visit.leave(visit.link("events"), f"Forgot {visit.names['key']}.")
