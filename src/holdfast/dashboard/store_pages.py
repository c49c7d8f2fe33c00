"""The store itself: spaces, keys, users, settings, and slow calls."""

from typing import Any

from holdfast.dashboard import pages
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.visit import Visit
from holdfast.errors import BadInput, NotFound
from holdfast.limits import ROWS_PER_PAGE
from holdfast.operations import find
from holdfast.server.http_exchange import HttpResponse
from holdfast.server.recorder import SLOW_TABLE, SPACE


@page("spaces", menu="spaces")
async def spaces(visit: Visit) -> HttpResponse:
    """Shows the spaces of the store with their sizes, a page at a time."""
    after = visit.parameter("cursor") or None
    found = await visit.call("admin.space_sizes", after=after, limit=ROWS_PER_PAGE + 1)
    shown = found[:ROWS_PER_PAGE]
    return await visit.render(
        "spaces.html",
        title="Spaces",
        sizes=shown,
        facts=await visit.call("admin.server"),
        next=shown[-1].name if len(found) > len(shown) else None,
        rows=(
            ("space", "keys", "bytes", "complete"),
            [(each.name, each.keys, each.bytes, each.complete) for each in shown],
        ),
    )


@page("spaces/{name}", menu="spaces")
async def space(visit: Visit) -> HttpResponse:
    """Shows how large a space is, and what its keys are."""
    name = visit.names["name"]
    sizes = await visit.call("admin.space_sizes", names=[name])
    if not sizes:
        raise NotFound(f"there is no space {name!r:.200}")
    visit.space = name
    prefix, after = visit.parameter("prefix"), visit.parameter("cursor") or None
    number = await visit.call("admin.count_keys") if visit.parameter("count") else None
    found = await visit.call("admin.inspect", prefix=prefix, limit=ROWS_PER_PAGE, after=after)
    return await visit.render(
        "space.html",
        title=name,
        size=sizes[0],
        number=number,
        prefix=prefix,
        entries=found.entries,
        next=found.next,
        rows=(("key", "value", "bytes"), [(e.key, e.value, e.bytes) for e in found.entries]),
    )


@action("spaces/{name}/drop")
async def drop(visit: Visit) -> HttpResponse:
    """Drops a space whose name was typed."""
    name = visit.names["name"]
    if visit.form.get("typed") != name:
        raise BadInput("the typed name does not match", hint="Nothing was dropped.")
    await visit.call("admin.drop_space", name=name)
    visit.space = visit.api.dispatcher.store.name
    return visit.leave(visit.link("spaces"), f"Dropped the space {name}.")


@page("users", menu="users")
async def users(visit: Visit) -> HttpResponse:
    """Shows users and their grants."""
    return await _users(visit)


@action("users")
async def change_user(visit: Visit) -> HttpResponse:
    """Adds a user, gives other grants, makes a new token, or removes a user."""
    name, do = visit.form.get("name", ""), visit.form.get("do")
    grants = visit.form.get("grants", "").replace(",", " ").split()
    if do == "grant":
        await visit.call("admin.grant_user", name=name, grants=grants)
        return visit.leave(visit.link("users"), f"{name} has these grants now: {' '.join(grants)}.")
    if do == "remove":
        await visit.call("admin.remove_user", name=name)
        return visit.leave(visit.link("users"), f"Removed {name}.")
    if do == "renew":
        return await _users(visit, new=await visit.call("admin.renew_token", name=name))
    password = visit.form.get("password") or None
    new = await visit.call("admin.add_user", name=name, grants=grants, password=password)
    visit.calls.clear()  # "copy as" must not show a password
    return await _users(visit, new=new)


async def _users(visit: Visit, new: Any = None) -> HttpResponse:
    visit.menu, visit.served = "users", pages.served()  # also after a form
    visit.calls.clear()
    found = await visit.call("admin.users")
    rows = [(each.name, each.login, " ".join(each.grants)) for each in found]
    return await visit.render(
        "users.html", title="Users", users=found, new=new, rows=(("name", "login", "grants"), rows)
    )


@page("settings", menu="settings")
async def settings(visit: Visit) -> HttpResponse:
    """Shows what the server was started with and where it came from, and figures of now."""
    facts = await visit.call("admin.server")
    rows = [(each.name, each.value, each.origin) for each in facts.settings]
    return await visit.render(
        "settings.html", title="Settings", facts=facts, rows=(("setting", "value", "from"), rows)
    )


@page("slow", menu="slow")
async def slow(visit: Visit) -> HttpResponse:
    """Shows the slowest calls of the last day."""
    calls: list[dict[str, Any]] = []
    visit.identity.require_operation(find("admin", "status"), visit.space)
    if visit.may("tables.get", space=SPACE):
        names = await visit.call_in(SPACE, "tables.names")
        if SLOW_TABLE in names:
            found = await visit.call_in(SPACE, "tables.get", table=SLOW_TABLE)
            calls = [
                {**call, "server": row["server"]} for row in found.items for call in row["calls"]
            ]
    calls.sort(key=lambda call: -call["seconds"])
    header = ("seconds", "at", "operation", "arguments", "server")
    rows = [[call[name] for name in header] for call in calls]
    return await visit.render("slow.html", title="Slow calls", calls=calls, rows=(header, rows))
