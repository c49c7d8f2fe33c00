"""Converts jobs from the form of the original script to Holdfast's records.

Lua does not distinguish an empty list from an empty object, so a reply may have either.
"""

from typing import Any

import msgspec

from holdfast.jobs.records import Failure, HistoryEntry, Job, QueueCounts

__all__ = ["job_of", "queues_of"]

_COUNTS = ("waiting", "running", "stalled", "scheduled", "depends", "recurring")


def job_of(shown: dict[str, Any]) -> Job:
    """Returns the job in a reply of `get`, `peek` or `pop`."""
    failure = shown.get("failure") or {}
    return Job(
        id=shown["jid"],
        klass=shown["klass"],
        state=shown["state"],
        queue=shown.get("queue") or "",
        worker=shown.get("worker") or "",
        data=msgspec.json.decode(shown.get("data") or "{}"),
        priority=float(shown.get("priority") or 0),
        expires=float(shown.get("expires") or 0),
        retries=float(shown.get("retries") or 0),
        remaining=float(shown.get("remaining") or 0),
        tags=tuple(_listed(shown.get("tags"))),
        history=tuple(_entry(each) for each in _listed(shown.get("history"))),
        failure=_failure(failure) if failure else None,
        spawned_from=shown.get("spawned_from_jid") or None,
        tracked=bool(shown.get("tracked")),
        dependents=tuple(_listed(shown.get("dependents"))),
        dependencies=tuple(_listed(shown.get("dependencies"))),
    )


def queues_of(reply: bytes) -> list[QueueCounts]:
    """Returns the queues in a reply of the command `queues`."""
    return [
        QueueCounts(
            name=each["name"],
            paused=bool(each.get("paused")),
            **{name: int(each.get(name) or 0) for name in _COUNTS},
        )
        for each in msgspec.json.decode(reply) or ()
    ]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):  # the published Python client's script returns tags like this
        value = msgspec.json.decode(value)
    return value if isinstance(value, list) else []


def _entry(shown: dict[str, Any]) -> HistoryEntry:
    more = {name: value for name, value in shown.items() if name not in ("what", "when")}
    return HistoryEntry(str(shown.get("what")), int(shown.get("when") or 0), more)


def _failure(shown: dict[str, Any]) -> Failure:
    return Failure(
        str(shown.get("group") or ""),
        str(shown.get("message") or ""),
        float(shown.get("when") or 0),
        str(shown.get("worker") or ""),
    )
