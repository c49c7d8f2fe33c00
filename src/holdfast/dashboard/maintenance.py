"""Backups and checks: starts them in the background of the server, and shows their progress."""

from pathlib import PurePath

from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.server.http_exchange import HttpResponse


@page("backups", menu="backups")
async def backups(request: PageRequest) -> HttpResponse:
    """Shows the backups of the server's folder, and those that are being made."""
    facts = await request.call("admin.server")
    # The running ones first: a backup that ends between the two calls is then in both lists.
    runs = [each for each in await request.call("admin.maintenance") if each.kind == "backup"]
    listed = await request.call("admin.backups")
    return await request.render(
        "backups.html",
        title="Backups",
        folder=facts.backups,
        listed=listed,
        runs=runs,
        digests={PurePath(each.target).name: each for each in runs if each.state == "done"},
        rows=(("name", "bytes", "made"), [(e.name, e.bytes, e.made) for e in listed]),
    )


@action("backups")
async def back_up(request: PageRequest) -> HttpResponse:
    """Begins a backup."""
    name = request.form.get("name", "")
    await request.call("admin.backup_start", target=name)
    return request.redirect(request.link("backups"), f"The backup {name} is being made.")


@page("check", menu="check")
async def check(request: PageRequest) -> HttpResponse:
    """Shows the checks of this space."""
    runs = [
        each
        for each in await request.call("admin.maintenance")
        if each.kind == "check" and each.space == request.space
    ]
    return await request.render("check.html", title="Check", runs=runs)


@action("check")
async def start_check(request: PageRequest) -> HttpResponse:
    """Begins a check of this space."""
    engine = True if request.form.get("engine") else None
    await request.call("admin.check_start", engine=engine)
    return request.redirect(request.link("check"))


@action("maintenance/{id}/stop")
async def stop(request: PageRequest) -> HttpResponse:
    """Stops a check."""
    stopped = await request.call("admin.maintenance_stop", id=request.names["id"])
    return request.redirect(
        request.link("check"), "Stopping." if stopped else "It has ended already."
    )
