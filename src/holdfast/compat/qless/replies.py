"""Records as JSON for Qless clients: `{}` for an empty list, whole numbers without a point."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.jobs.arguments import int_if_whole
from holdfast.jobs.bulk import BulkAction
from holdfast.jobs.dependencies import dependencies_of, dependents_of
from holdfast.jobs.history import qless_history_of
from holdfast.jobs.records import (
    COMPLETE,
    Batch,
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
    """Returns the object of a job in replies of `get`, `multiget`, `peek`, `pop` and `track`."""
    shown = {
        "jid": record.jid,
        "klass": record.klass,
        "state": record.state,
        "queue": record.queue,
        "worker": record.worker,
        "tracked": record.tracked,
        "priority": int_if_whole(record.priority),
        "expires": int_if_whole(record.expires),
        "retries": int_if_whole(record.retries),
        # In Qless, a complete job has all of its retries again; our record has those left.
        "remaining": int(record.retries if record.state == COMPLETE else record.remaining),
        "data": ledger.data_of(record),
        "tags": listed(_tags(record.tags)),
        "history": listed([_entry(entry) for entry in qless_history_of(record)]),
        "failure": _failure(record),
        "spawned_from_jid": record.spawned_from or False,
        "dependents": listed(dependents_of(ledger, record)),
        "dependencies": listed(dependencies_of(ledger, record)),
    }
    return shown | _additions(record)


def _additions(record: JobRecord) -> dict[str, Any]:
    """Returns the fields that no original has, only where they are set: other jobs look as in
    Qless."""
    numbers = {
        "progress": record.progress,
        "timeout": record.timeout or None,
        "start_by": record.start_by or None,
    }
    others = {
        "progress_text": record.progress_text,
        "throttles": record.throttles,
        "unique": record.unique,
        "rate_key": record.rate_key,
        "batch": record.batch,
        "from": record.origin,
    }
    found = {name: int_if_whole(value) for name, value in numbers.items() if value is not None}
    return found | {name: value for name, value in others.items() if value}


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
        "when": int_if_whole(failure.when),
        "worker": failure.worker,
    }


def _tags(tags: Sequence[Tag]) -> list[Tag]:
    return [tag if isinstance(tag, str) else int_if_whole(tag) for tag in tags]


def recurring(record: RecurringRecord) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "jid": record.jid,
        "klass": record.klass,
        "state": "recur",
        "queue": record.queue,
        "priority": int_if_whole(record.priority),
        "interval": int_if_whole(record.interval),
        "retries": int_if_whole(record.retries),
        "count": record.count,
        "data": record.data,
        "tags": listed(_tags(record.tags)),
        "backlog": int_if_whole(record.backlog),
    }
    if record.cron:
        next_run = record.next if record.paused_run is None else record.paused_run
        shown |= {
            "spec": "cron",
            "cron": record.cron,
            "tz": record.tz,
            "next": int_if_whole(next_run),
        }
    return shown


def queue(counts: QueueCounts, *, has_rate: bool) -> dict[str, Any]:
    """Returns the keys that clients expect, and further ones only where they are set.

    For a queue with a rate, `limited` is the number of seconds until the next job may start.
    """
    shown = {
        "name": counts.name,
        "waiting": counts.waiting,
        "running": counts.running,
        "stalled": counts.stalled,
        "scheduled": counts.scheduled,
        "depends": counts.depends,
        "recurring": counts.recurring,
        "paused": counts.paused,
    }
    if has_rate:
        shown["limited"] = int_if_whole(counts.limited)
    if counts.throttled:
        shown["throttled"] = counts.throttled
    return shown


def page(found: JobPage) -> dict[str, Any]:
    return {"total": found.total, "jobs": listed(found.jobs)}


def stats(found: QueueStats) -> dict[str, Any]:
    shown = {
        "wait": _times(found.wait),
        "run": _times(found.run),
        "retries": found.retries,
        "failed": found.failed,
        "failures": found.failures,
    }
    return shown | {"expired": found.expired} if found.expired else shown


def _times(times: Times) -> dict[str, Any]:
    return {
        "count": times.count,
        "mean": int_if_whole(times.mean),
        "std": int_if_whole(times.std),
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
        "mean": int_if_whole(times.mean),
        "std": int_if_whole(times.std),
        "p50": int_if_whole(times.p50),
        "p90": int_if_whole(times.p90),
        "p99": int_if_whole(times.p99),
    }


def throttle(found: Throttle) -> dict[str, Any]:
    return {
        "id": found.name,
        "maximum": found.maximum,
        "expires": None if found.expires is None else int_if_whole(found.expires),
        "locks": found.locks,
        "pending": found.pending,
    }


def batch(found: Batch) -> dict[str, Any]:
    return {
        "id": found.id,
        "opened": int_if_whole(found.opened),
        "closed": None if found.closed is None else int_if_whole(found.closed),
        "total": found.total,
        "complete": found.complete,
        "failed": found.failed,
        "canceled": found.canceled,
        "pending": found.pending,
        "settled": found.is_settled,
    }


def bulk_action(found: BulkAction) -> dict[str, Any]:
    """Returns an action, the jobs that it changes, and its progress."""
    target = {"queue": found.queue, "tag": found.tag, "priority": found.priority}
    return {
        "id": found.id,
        "action": found.action,
        "search": found.search,
        **{name: value for name, value in target.items() if value is not None},
        "state": found.state,
        "started": int_if_whole(found.started),
        "ended": None if found.ended is None else int_if_whole(found.ended),
        "searched": found.searched,
        "of": found.of,
        "changed": found.changed,
        "passed_over": found.passed_over,
    }
