"""Bulk actions: apply one change to all jobs that a search finds, in bounded steps.

An action is a stored record, so it survives a crash. Its steps are run by the store's expiry: by
the server's background task or, in a library, along with later writes. A caller that wants it done
now calls `bulk_step` until the action has ended. Other writes go on between two steps, and anyone
can read the action's progress or stop it.
"""

from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec

from holdfast import expiry
from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.error_text import did_you_mean
from holdfast.errors import BadArgument, JobNeeded, UnknownBulkAction
from holdfast.jobs import lists, tags, tracking
from holdfast.jobs.arguments import check_name, check_numbers, tag_text
from holdfast.jobs.cancellation import cancel_jobs
from holdfast.jobs.failures import requeue_failed
from holdfast.jobs.layout import below
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.puts import KeepData, new_jid, put
from holdfast.jobs.records import COMPLETE, FAILED, SCHEDULED, JobRecord, NewJob, Tag
from holdfast.jobs.search import JobSearch, first_position, next_jobs, read_cursor
from holdfast.limits import BULK_ACTION_KEPT_SECONDS, JOBS_PER_STEP, MAX_BULK_ACTIONS, MAX_JOB_TAGS

if TYPE_CHECKING:
    from holdfast.engine.contract import Reader

Action = Literal["cancel", "retry", "move", "tag", "untag", "priority", "run"]
BULK_KIND: Final = "jobs.bulk"
_ARGUMENTS: Final = {"move": "queue", "tag": "tag", "untag": "tag", "priority": "priority"}


class BulkAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action on all jobs that match a search, and its progress.

    So far, it has `searched` a number of jobs, of about `of`, and `changed` some of them. The jobs
    that it has `passed_over` match but can't be changed: a job that others depend on, for example,
    can't be canceled.
    """

    id: str
    action: Action
    search: JobSearch
    queue: str | None = None
    tag: Tag | None = None
    priority: float | None = None
    state: Literal["running", "stopped", "done"] = "running"
    started: float = 0.0
    ended: float | None = None
    searched: int = 0
    of: int = 0
    changed: int = 0
    passed_over: int = 0
    cursor: str | None = None


decode: Final = msgspec.msgpack.Decoder(BulkAction).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class BulkOperations:
    """Operations on bulk actions."""

    _ledger: Ledger

    @operation()
    def bulk_start(
        self,
        action: Action,
        search: JobSearch,
        *,
        queue: str | None = None,
        tag: Tag | None = None,
        priority: float | None = None,
        id: str | None = None,
        now: float | None = None,
    ) -> BulkAction:
        """Starts an action on all jobs that match `search`: "cancel", "retry", "move", "tag",
        "untag", "priority" or "run" (now).

        >>> _ = store.jobs.put("emails", id="welcome", delay=600)
        >>> action = store.jobs.bulk_start("run", JobSearch(queue="emails", state="scheduled"))
        >>> store.jobs.bulk_step(action.id).changed
        1

        "move" takes the `queue`, "tag" and "untag" the `tag`, "priority" the `priority`. The action
        continues in the background, step by step; `bulk` returns its progress. Reads a counter for
        each list to search, writes 2 keys.
        """
        return start(self._ledger, action, search, queue, tag, priority, id, self._ledger.time(now))

    @operation()
    def bulk_step(self, id: str, *, now: float | None = None) -> BulkAction:
        """Runs the next step of a bulk action: reads some jobs, and changes those that match.

        Reads `JOBS_PER_STEP` jobs; costs what the action does for each that matches.
        """
        return step(self._ledger, require(self._ledger, id), self._ledger.time(now))

    @operation()
    def bulk_stop(self, id: str, *, now: float | None = None) -> BulkAction:
        """Stops a bulk action; its changes so far stay. Reads 1 key, writes 2."""
        return stop(self._ledger, require(self._ledger, id), self._ledger.time(now))

    @operation(reads=True)
    def bulk(self, id: str) -> BulkAction | None:
        """Returns a bulk action, or None if it is unknown or ended a week ago. Reads 1 key."""
        return load(self._ledger, check_name(id, "id"))

    @operation(reads=True)
    def bulks(self) -> list[BulkAction]:
        """Returns all bulk actions that run or ended within a week. Reads 1 key for each."""
        return recent_actions(self._ledger)


# --- how it is done ---------------------------------------------------------------------------


def load(ledger: Ledger, id: str) -> BulkAction | None:
    value = ledger.tx.get(ledger.keys.bulk_action(id))
    return None if value is None else decode(value)


def recent_actions(ledger: Ledger) -> list[BulkAction]:
    """Returns all actions that run or ended lately."""
    found = ledger.tx.scan(*below(ledger.keys.bulk_actions), limit=MAX_BULK_ACTIONS)
    return [decode(value) for _, value in found]


def require(ledger: Ledger, id: str) -> BulkAction:
    record = load(ledger, check_name(id, "id"))
    if record is None:
        raise UnknownBulkAction(f"there is no bulk action {id!r}")
    return record


def _save(ledger: Ledger, record: BulkAction) -> BulkAction:
    ledger.tx.put(ledger.keys.bulk_action(record.id), _encode(record))
    return record


def start(
    ledger: Ledger,
    action: Action,
    search: JobSearch,
    queue: str | None,
    tag: Tag | None,
    priority: float | None,
    id: str | None,
    now: float,
) -> BulkAction:
    _check(action, {"queue": queue, "tag": tag, "priority": priority})
    kept = sum(1 for _ in ledger.tx.scan(*below(ledger.keys.bulk_actions), limit=MAX_BULK_ACTIONS))
    if kept == MAX_BULK_ACTIONS:
        raise BadArgument(
            f"{kept} bulk actions are kept already",
            hint="Finished ones are removed after a week.",
        )
    record = BulkAction(
        id=new_jid(now) if id is None else check_name(id, "id"),
        action=action,
        search=search,
        queue=queue,
        tag=tag,
        priority=priority,
        started=now,
        of=first_position(ledger, search).of,
    )
    if load(ledger, record.id) is not None:
        raise BadArgument.named("id", f"is that of another bulk action: {record.id}")
    expiry.begin_work(ledger.tx, BULK_KIND, record.id.encode())
    return _save(ledger, record)


def _check(action: str, given: dict[str, str | float | None]) -> None:
    """Refuses an action without its argument, and an argument that it does not take."""
    if action not in get_args(Action):
        raise BadArgument(f"unknown action {action!r}{did_you_mean(action, get_args(Action))}")
    wanted = _ARGUMENTS.get(action)
    for name, value in given.items():
        if (value is not None) != (name == wanted):
            verb = "needs" if name == wanted else "takes no"
            raise BadArgument(f"the action {action} {verb} {name}")
    if action == "move":
        check_name(str(given["queue"]), "queue")
    elif wanted == "tag":
        tag = given["tag"]
        assert tag is not None
        check_name(tag_text(tag), "tag")
    elif action == "priority":
        check_numbers(priority=given["priority"])  # type: ignore[arg-type]  # a number: see above


def step(ledger: Ledger, record: BulkAction, now: float) -> BulkAction:
    """Applies the action to those of the next `JOBS_PER_STEP` jobs that match."""
    if record.state != "running":
        return record
    search = record.search
    position = read_cursor(record.cursor) if record.cursor else first_position(ledger, search)
    # All are found before the first is changed: a change moves jobs in the lists being searched.
    found = [job.jid for job in next_jobs(ledger, search, position, JOBS_PER_STEP) if job]
    changed = _change_all(ledger, record, found, now)
    record = msgspec.structs.replace(
        record,
        searched=position.searched,
        of=max(record.of, position.searched),
        changed=record.changed + changed,
        passed_over=record.passed_over + len(found) - changed,
        cursor=position.text(),
    )
    return _end(ledger, record, "done", now) if record.cursor is None else _save(ledger, record)


def stop(ledger: Ledger, record: BulkAction, now: float) -> BulkAction:
    """Ends a running action early."""
    return _end(ledger, record, "stopped", now) if record.state == "running" else record


def _end(
    ledger: Ledger, record: BulkAction, state: Literal["stopped", "done"], now: float
) -> BulkAction:
    end = ledger.tx.now + BULK_ACTION_KEPT_SECONDS
    expiry.schedule(ledger.tx, end, BULK_KIND, record.id.encode())
    return _save(ledger, msgspec.structs.replace(record, state=state, ended=now, cursor=None))


def _change_all(ledger: Ledger, record: BulkAction, jids: list[str], now: float) -> int:
    """Applies the action to each job that can be changed; returns how many were."""
    changed, needed = 0, jids
    while needed:
        waiting, needed = needed, []
        for jid in waiting:
            job = ledger.job(jid)
            try:
                changed += job is not None and _change(ledger, record, job, now)
            except JobNeeded:  # perhaps by one of these, which is canceled after it
                needed.append(jid)
        if len(needed) == len(waiting):
            break
    return changed


def _change(ledger: Ledger, record: BulkAction, job: JobRecord, now: float) -> bool:
    """Applies the action to one job; returns whether that changed anything."""
    match record.action:
        case "cancel" if job.state != COMPLETE:
            cancel_jobs(ledger, [job.jid], now)
        case "retry" if job.origin:
            _move(ledger, job, job.origin, now)
        case "retry" if job.state == FAILED:
            requeue_failed(ledger, job, job.queue, now)
        case "move" if record.queue and job.state != COMPLETE and job.queue != record.queue:
            _move(ledger, job, record.queue, now)
        case "tag" if record.tag is not None and _can_take(job, record.tag):
            tags.add_tags(ledger, job.jid, [record.tag], now)
        case "untag" if record.tag is not None and _has_tag(job, record.tag):
            tags.remove_tags(ledger, job.jid, [record.tag])
        case "priority" if record.priority is not None and job.priority != record.priority:
            tracking.set_priority(ledger, job.jid, record.priority)
        case "run" if job.state == SCHEDULED:
            lists.leave(ledger, job, now)
            lists.enter_work(ledger, job, now)
            ledger.save(job)
        case _:
            return False
    return True


def _move(ledger: Ledger, job: JobRecord, queue: str, now: float) -> None:
    put(ledger, NewJob(queue=queue, id=job.jid, klass=job.klass, data=KeepData), "", now)


def _can_take(job: JobRecord, tag: Tag) -> bool:
    return not _has_tag(job, tag) and len(job.tags) < MAX_JOB_TAGS


def _has_tag(job: JobRecord, tag: Tag) -> bool:
    return tag_text(tag) in map(tag_text, job.tags)


def continue_bulk(tx: Transaction, subject: bytes) -> bool:
    """Runs the next step of an action, or forgets one that ended long ago; called by expiry."""
    ledger = Ledger(tx)
    record = load(ledger, subject.decode())
    if record is None:
        return True
    if record.state == "running":
        return step(ledger, record, tx.now).state != "running"
    if record.ended is not None and _is_old(record.ended, tx):
        tx.delete(ledger.keys.bulk_action(record.id))
    return True


def _is_old(ended: float, reader: "Reader") -> bool:
    return ended + BULK_ACTION_KEPT_SECONDS <= reader.now
