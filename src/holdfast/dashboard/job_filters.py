"""The filters of a list of jobs, read from the query of its page, and the actions on jobs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.dashboard.page_request import PageRequest, number_of
from holdfast.errors import BadInput
from holdfast.server.http_exchange import HttpResponse

FILTERS: Final = ("klass", "tag", "text", "worker", "since", "before")
ACTIONS: Final = {
    "retry": "Retry",
    "cancel": "Cancel",
    "run": "Run now",
    "move": "Move to queue …",
    "priority": "Set priority …",
    "tag": "Add tag …",
    "untag": "Remove tag …",
}


def search_of(given: dict[str, str], **fixed: str | None) -> dict[str, Any]:
    """Returns the search for the filters of a page; times are UTC, as `2026-11-17T10:00`."""
    search: dict[str, Any] = {name: value for name, value in fixed.items() if value}
    for name in ("klass", "tag", "text", "worker"):
        if given.get(name):
            search[name] = given[name]
    for name in ("since", "before"):
        if given.get(name):
            search[name] = _moment(name, given[name])
    return search


def _moment(name: str, text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(
            f"{name} must be a time such as 2026-11-17T10:00, not {text!r:.40}"
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


async def apply(request: PageRequest, search: dict[str, Any], back: str) -> HttpResponse:
    """Applies the action of a form to the selected jobs, or to all that match.

    For all that match, it starts a bulk action, which runs in the background.
    """
    form = request.form
    action, value = form.get("action", ""), form.get("value", "").strip()
    if action not in ACTIONS:
        raise BadInput(f"there is no action {action!r:.40}")
    if action in ("move", "priority", "tag", "untag") and not value:
        raise BadInput(f"{action} needs a value", hint="Write the queue, number or tag.")
    if form.get("which") == "all":
        started = await request.call(
            "jobs.bulk_start", action=action, search=search, **_more(action, value)
        )
        return request.redirect(request.link("bulk", started.id))
    ids = request.form_lists.get("id", [])
    if not ids:
        raise BadInput("no job is selected", hint="Tick some, or choose all that match.")
    await _apply_to(request, action, value, ids)
    return request.redirect(back, f"{ACTIONS[action].rstrip(' …')}: {len(ids)} jobs.")


def _more(action: str, value: str) -> dict[str, Any]:
    if action == "move":
        return {"queue": value}
    if action in ("tag", "untag"):
        return {"tag": value}
    return {"priority": number_of("priority", value)} if action == "priority" else {}


async def _apply_to(request: PageRequest, action: str, value: str, ids: Sequence[str]) -> None:
    if action == "cancel":
        await request.call("jobs.cancel", ids=ids)
        return
    for id in ids:
        if action == "retry":
            await request.call("jobs.requeue", queue=None, id=id)
        elif action == "move":
            await request.call("jobs.requeue", queue=value, id=id)
        elif action == "run":
            job = await request.call("jobs.get", id=id)
            if job is not None:
                await request.call("jobs.requeue", queue=job.queue or None, id=id)
        elif action == "priority":
            await request.call("jobs.priority", id=id, priority=number_of("priority", value))
        else:
            await request.call(f"jobs.{action}", id=id, tags=[value])
