"""Backups and checks: starts them in the background of the server, and shows their progress."""

from pathlib import PurePath

from holdfast.dashboard.pages import action, page
from holdfast.dashboard.visit import Visit
from holdfast.server.http_exchange import HttpResponse


@page("backups", menu="backups")
async def backups(visit: Visit) -> HttpResponse:
    """Shows the backups of the server's folder, and those that are being made."""
    facts = await visit.call("admin.server")
    # Running ones first: a backup that ends between the two calls is then in both, not in neither.
    runs = [each for each in await visit.call("admin.maintenance") if each.kind == "backup"]
    listed = await visit.call("admin.backups")
    return await visit.render(
        "backups.html",
        title="Backups",
        folder=facts.backups,
        listed=listed,
        runs=runs,
        digests={PurePath(each.target).name: each for each in runs if each.state == "done"},
        rows=(("name", "bytes", "made"), [(e.name, e.bytes, e.made) for e in listed]),
    )


@action("backups")
async def back_up(visit: Visit) -> HttpResponse:
    """Begins a backup."""
    name = visit.form.get("name", "")
    await visit.call("admin.backup_start", target=name)
    return visit.leave(visit.link("backups"), f"The backup {name} is being made.")


@page("check", menu="check")
async def check(visit: Visit) -> HttpResponse:
    """Shows the checks of this space."""
    runs = [
        each
        for each in await visit.call("admin.maintenance")
        if each.kind == "check" and each.space == visit.space
    ]
    return await visit.render("check.html", title="Check", runs=runs)


@action("check")
async def start_check(visit: Visit) -> HttpResponse:
    """Begins a check of this space."""
    engine = True if visit.form.get("engine") else None
    await visit.call("admin.check_start", engine=engine)
    return visit.leave(visit.link("check"))


@action("maintenance/{id}/stop")
async def stop(visit: Visit) -> HttpResponse:
    """Stops a check."""
    stopped = await visit.call("admin.maintenance_stop", id=visit.names["id"])
    return visit.leave(visit.link("check"), "Stopping." if stopped else "It has ended already.")
