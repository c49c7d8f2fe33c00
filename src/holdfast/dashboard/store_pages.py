"""The store itself: spaces, keys, users, settings, and slow calls."""

from typing import Any

from holdfast.dashboard import pages
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.errors import BadInput, NotFound
from holdfast.limits import ROWS_PER_PAGE
from holdfast.operations import find
from holdfast.server.http_exchange import HttpResponse
from holdfast.server.recorder import SLOW_TABLE, SPACE


@page("spaces", menu="spaces")
async def spaces(request: PageRequest) -> HttpResponse:
    """Shows the spaces of the store with their sizes, a page at a time."""
    after = request.parameter("cursor") or None
    found = await request.call("admin.space_sizes", after=after, limit=ROWS_PER_PAGE + 1)
    shown = found[:ROWS_PER_PAGE]
    return await request.render(
        "spaces.html",
        title="Spaces",
        sizes=shown,
        facts=await request.call("admin.server"),
        next=shown[-1].name if len(found) > len(shown) else None,
        rows=(
            ("space", "keys", "bytes", "complete"),
            [(each.name, each.keys, each.bytes, each.complete) for each in shown],
        ),
    )


@page("spaces/{name}", menu="spaces")
async def space(request: PageRequest) -> HttpResponse:
    """Shows the size of a space, and its keys."""
    name = request.names["name"]
    sizes = await request.call("admin.space_sizes", names=[name])
    if not sizes:
        raise NotFound(f"there is no space {name!r:.200}")
    request.space = name
    prefix, after = request.parameter("prefix"), request.parameter("cursor") or None
    number = await request.call("admin.count_keys") if request.parameter("count") else None
    found = await request.call("admin.inspect", prefix=prefix, limit=ROWS_PER_PAGE, after=after)
    return await request.render(
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
async def drop(request: PageRequest) -> HttpResponse:
    """Drops a space whose name was typed."""
    name = request.names["name"]
    if request.form.get("typed") != name:
        raise BadInput("the typed name does not match", hint="Nothing was dropped.")
    await request.call("admin.drop_space", name=name)
    request.space = request.api.dispatcher.store.name
    return request.redirect(request.link("spaces"), f"Dropped the space {name}.")


@page("users", menu="users")
async def users(request: PageRequest) -> HttpResponse:
    """Shows users and their grants."""
    return await _users(request)


@action("users")
async def change_user(request: PageRequest) -> HttpResponse:
    """Adds a user, gives other grants, makes a new token, or removes a user."""
    name, do = request.form.get("name", ""), request.form.get("do")
    grants = request.form.get("grants", "").replace(",", " ").split()
    if do == "grant":
        await request.call("admin.grant_user", name=name, grants=grants)
        return request.redirect(
            request.link("users"), f"{name} has these grants now: {' '.join(grants)}."
        )
    if do == "remove":
        await request.call("admin.remove_user", name=name)
        return request.redirect(request.link("users"), f"Removed {name}.")
    if do == "renew":
        return await _users(request, new=await request.call("admin.renew_token", name=name))
    password = request.form.get("password") or None
    new = await request.call("admin.add_user", name=name, grants=grants, password=password)
    request.calls.clear()  # "copy as" must not show a password
    return await _users(request, new=new)


async def _users(request: PageRequest, new: Any = None) -> HttpResponse:
    request.menu, request.served = "users", pages.served()  # also after a form
    request.calls.clear()
    found = await request.call("admin.users")
    rows = [(each.name, each.login, " ".join(each.grants)) for each in found]
    return await request.render(
        "users.html", title="Users", users=found, new=new, rows=(("name", "login", "grants"), rows)
    )


@page("settings", menu="settings")
async def settings(request: PageRequest) -> HttpResponse:
    """Shows the settings of the server with their origins, and its present figures."""
    facts = await request.call("admin.server")
    rows = [(each.name, each.value, each.origin) for each in facts.settings]
    return await request.render(
        "settings.html", title="Settings", facts=facts, rows=(("setting", "value", "from"), rows)
    )


@page("slow", menu="slow")
async def slow(request: PageRequest) -> HttpResponse:
    """Shows the slowest calls of the last day."""
    calls: list[dict[str, Any]] = []
    request.identity.require_operation(find("admin", "status"), request.space)
    if request.may("tables.get", space=SPACE):
        names = await request.call_in(SPACE, "tables.names")
        if SLOW_TABLE in names:
            found = await request.call_in(SPACE, "tables.get", table=SLOW_TABLE)
            calls = [
                {**call, "server": row["server"]} for row in found.items for call in row["calls"]
            ]
    calls.sort(key=lambda call: -call["seconds"])
    header = ("seconds", "at", "operation", "arguments", "server")
    rows = [[call[name] for name in header] for call in calls]
    return await request.render("slow.html", title="Slow calls", calls=calls, rows=(header, rows))
