"""Records as JSON for Qless clients: `{}` for an empty list, whole numbers without a point."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.jobs.arguments import plain
from holdfast.jobs.dependencies import dependencies_of, dependents_of
from holdfast.jobs.history import original_history_of
from holdfast.jobs.records import (
    COMPLETE,
    HistoryEntry,
    JobPage,
    JobRecord,
    QueueCounts,
    QueueStats,
    RecurringRecord,
    Spread,
    StatsRow,
    Tag,
    Throttle,
    Times,
)
from holdfast.jobs.views import check_answer

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

_encode: Final = msgspec.json.Encoder().encode


def text(value: Any) -> str:
    return _encode(value).decode()


def listed(values: Sequence[Any]) -> Any:
    """Returns a list for JSON; an empty one is written as the originals' encoder writes it."""
    return list(values) if values else {}


def job(ledger: "Ledger", record: JobRecord) -> dict[str, Any]:
    """Returns the object that `get`, `multiget`, `peek`, `pop` and `track` show of a job."""
    return {
        "jid": record.jid,
        "klass": record.klass,
        "state": record.state,
        "queue": record.queue,
        "worker": record.worker,
        "tracked": record.tracked,
        "priority": plain(record.priority),
        "expires": plain(record.expires),
        "retries": plain(record.retries),
        # Here a complete job has all of its retries again; ours tells how many were left.
        "remaining": int(record.retries if record.state == COMPLETE else record.remaining),
        "data": ledger.data_of(record),
        "tags": listed(_tags(record.tags)),
        "history": listed([_entry(entry) for entry in original_history_of(record)]),
        "failure": _failure(record),
        "spawned_from_jid": record.spawned_from or False,
        "dependents": listed(dependents_of(ledger, record)),
        "dependencies": listed(dependencies_of(ledger, record)),
    }


def jobs(ledger: "Ledger", records: Sequence[JobRecord]) -> Any:
    found = []
    before = ledger.long_data_bytes
    for record in records:
        found.append(job(ledger, record))
        check_answer(ledger, before, len(found))
    return listed(found)


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    return {**entry.more, "what": entry.what, "when": entry.when}


def _failure(record: JobRecord) -> dict[str, Any]:
    failure = record.failure
    if failure is None:
        return {}
    return {
        "group": failure.group,
        "message": failure.message,
        "when": plain(failure.when),
        "worker": failure.worker,
    }


def _tags(tags: Sequence[Tag]) -> list[Tag]:
    return [tag if isinstance(tag, str) else plain(tag) for tag in tags]


def recurring(record: RecurringRecord) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "jid": record.jid,
        "klass": record.klass,
        "state": "recur",
        "queue": record.queue,
        "priority": plain(record.priority),
        "interval": plain(record.interval),
        "retries": plain(record.retries),
        "count": record.count,
        "data": record.data,
        "tags": listed(_tags(record.tags)),
        "backlog": plain(record.backlog),
    }
    if record.cron:
        next_run = record.next if record.paused_run is None else record.paused_run
        shown |= {"spec": "cron", "cron": record.cron, "tz": record.tz, "next": plain(next_run)}
    return shown


def queue(counts: QueueCounts) -> dict[str, Any]:
    """Returns exactly the keys that clients expect."""
    return {
        "name": counts.name,
        "waiting": counts.waiting,
        "running": counts.running,
        "stalled": counts.stalled,
        "scheduled": counts.scheduled,
        "depends": counts.depends,
        "recurring": counts.recurring,
        "paused": counts.paused,
    }


def page(found: JobPage) -> dict[str, Any]:
    return {"total": found.total, "jobs": listed(found.jobs)}


def stats(found: QueueStats) -> dict[str, Any]:
    return {
        "wait": _times(found.wait),
        "run": _times(found.run),
        "retries": found.retries,
        "failed": found.failed,
        "failures": found.failures,
    }


def _times(times: Times) -> dict[str, Any]:
    return {
        "count": times.count,
        "mean": plain(times.mean),
        "std": plain(times.std),
        "histogram": times.histogram,
    }


def stats_row(found: StatsRow) -> dict[str, Any]:
    return {
        "wait": _spread(found.wait),
        "run": _spread(found.run),
        "retries": found.retries,
        "failures": found.failures,
    }


def _spread(times: Spread) -> dict[str, Any]:
    return {
        "count": times.count,
        "mean": plain(times.mean),
        "std": plain(times.std),
        "p50": plain(times.p50),
        "p90": plain(times.p90),
        "p99": plain(times.p99),
    }


def throttle(found: Throttle) -> dict[str, Any]:
    return {
        "id": found.name,
        "maximum": found.maximum,
        "expires": None if found.expires is None else plain(found.expires),
        "locks": found.locks,
        "pending": found.pending,
    }
