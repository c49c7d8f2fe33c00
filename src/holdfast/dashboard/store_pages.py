"""The store itself: spaces, keys, users, backups, checks, settings, and slow calls."""

from typing import Any

from holdfast.dashboard import pages
from holdfast.dashboard.pages import action, page
from holdfast.dashboard.visit import Visit
from holdfast.errors import BadInput, NotFound
from holdfast.limits import ROWS_PER_PAGE
from holdfast.operations import find
from holdfast.server.http_exchange import HttpResponse
from holdfast.server.recorder import SLOW_TABLE, SPACE


def _require(visit: Visit, name: str) -> None:
    """Raises `Forbidden` for those who may not call the operation that a page is about."""
    visit.identity.require_operation(find("admin", name), visit.space)


@page("spaces", menu="spaces")
async def spaces(visit: Visit) -> HttpResponse:
    """Shows the spaces of the store and the figures of its engine."""
    after = visit.parameter("cursor") or None
    found = await visit.call("admin.spaces", after=after, limit=ROWS_PER_PAGE + 1)
    names = found.spaces[:ROWS_PER_PAGE]
    status = await visit.call("admin.status")
    return await visit.render(
        "spaces.html",
        title="Spaces",
        names=names,
        status=status,
        next=names[-1] if len(found.spaces) > len(names) else None,
        rows=(("space",), [(each,) for each in names]),
    )


@page("spaces/{name}", menu="spaces")
async def space(visit: Visit) -> HttpResponse:
    """Shows how many keys a space has, and what they are."""
    name = visit.names["name"]
    if not await visit.api.dispatcher.has_space(name):
        raise NotFound(f"there is no space {name!r:.200}")
    visit.space = name
    prefix, after = visit.parameter("prefix"), visit.parameter("cursor") or None
    number = await visit.call("admin.count_keys") if visit.parameter("count") else None
    found = await visit.call("admin.inspect", prefix=prefix, limit=ROWS_PER_PAGE, after=after)
    return await visit.render(
        "space.html",
        title=name,
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
        raise BadInput("the name that was typed is another one", hint="Nothing was dropped.")
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


@page("backups", menu="backups")
async def backups(visit: Visit) -> HttpResponse:
    """Shows the form that makes a backup."""
    _require(visit, "backup")
    return await _backups(visit)


@action("backups")
async def back_up(visit: Visit) -> HttpResponse:
    """Makes a backup, reads it back, and shows what it holds."""
    return await _backups(visit, await visit.call("admin.backup", target=visit.form.get("name")))


async def _backups(visit: Visit, made: Any = None) -> HttpResponse:
    visit.menu, visit.served = "backups", pages.served()  # also after a form
    folder = visit.api.dispatcher.backups
    return await visit.render("backups.html", title="Backups", made=made, folder=folder)


@page("check", menu="check")
async def check(visit: Visit) -> HttpResponse:
    """Looks at a part of this space, and leads to the next part until all has been seen."""
    _require(visit, "check")
    step = None
    if visit.parameter("run"):
        step = await visit.call("admin.check", after=visit.parameter("cursor") or None)
    checked = _whole(visit.parameter("checked")) + (step.checked if step else 0)
    found = _whole(visit.parameter("found")) + (len(step.problems) if step else 0)
    return await visit.render("check.html", title="Check", step=step, checked=checked, found=found)


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 19 else 0


@action("check/engine")
async def check_engine(visit: Visit) -> HttpResponse:
    """Reads everything that the engine stores."""
    problems = await visit.call("admin.check_engine")
    said = "; ".join(problems[:5]) if problems else "The engine has read all that it stores."
    return visit.leave(visit.link("check"), said)


@page("settings", menu="settings")
async def settings(visit: Visit) -> HttpResponse:
    """Shows what the server was started with, its figures, and those of the engine."""
    status = await visit.call("admin.status")
    dispatcher = visit.api.dispatcher
    return await visit.render(
        "settings.html",
        title="Settings",
        status=status,
        settings=dispatcher.settings(),
        figures=dispatcher.figures(),
    )


@page("slow", menu="slow")
async def slow(visit: Visit) -> HttpResponse:
    """Shows the slowest calls of the last day."""
    calls: list[dict[str, Any]] = []
    _require(visit, "status")
    if await visit.api.dispatcher.has_space(SPACE) and visit.may("tables.get", space=SPACE):
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
