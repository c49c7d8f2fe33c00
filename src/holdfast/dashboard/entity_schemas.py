"""Schemas of entities: shows them as YAML, previews the plan of a new one, and deploys it."""

from typing import Any

import msgspec

from holdfast.dashboard import pages
from holdfast.dashboard.entity_filters import with_index
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.entities.schema import Index
from holdfast.entities.schema_dump import dump_schema
from holdfast.entities.schema_file import parse_schema
from holdfast.errors import HoldfastError
from holdfast.server.http_exchange import HttpResponse

_EXAMPLE = """schema: shop
tables:
  Users:
    columns:
      name: {type: Text, required: true}
      country: {type: Text}
    indexes:
      - {type: compound, columns: [country, name]}
"""


@page("schemas", menu="entities")
async def schema(request: PageRequest) -> HttpResponse:
    """Shows a schema as YAML in a form that plans and deploys it."""
    name, text = request.parameter("schema"), _EXAMPLE
    if name:
        found = await request.call("entities.schema", name=name)
        columns = request.parameter("index")
        if found is not None and columns:
            index = Index(columns=tuple(columns.split(",")))
            found = with_index(found, request.parameter("table"), index)
        text = dump_schema(found, filled=False) if found else f"schema: {name}\ntables: {{}}\n"
    return await _render(request, text, title=name or "A new schema")


@action("schemas")
async def plan(request: PageRequest) -> HttpResponse:
    """Plans a schema and shows what would change; or deploys it."""
    text, prune = request.form.get("yaml", ""), request.form.get("prune") == "on"
    if request.form.get("do") == "deploy":
        plans = await request.call("entities.deploy", schemas=[text], prune=prune, wait=False)
        changed = sum(table.action != "keep" for each in plans for table in each.tables)
        return request.redirect(
            request.link("entities"), f"Deployed: {changed} tables have changed."
        )
    lines: list[str] = []
    problem = None
    try:
        given = msgspec.to_builtins(parse_schema(text))
        planned = await request.call("entities.plan", schema=given, prune=prune)
        lines = planned.lines() or ["Nothing would change."]
    except HoldfastError as error:
        problem = error
    return await _render(request, text, title="Plan", lines=lines, prune=prune, problem=problem)


async def _render(request: PageRequest, text: str, *, title: str, **values: Any) -> HttpResponse:
    request.menu, request.served = "entities", pages.served()  # also after a form
    shown = {"lines": None, "prune": False, "problem": None, **values}
    return await request.render("entity_schema.html", title=title, text=text, **shown)
