"""Qless commands that read."""

from typing import TYPE_CHECKING, Any, Final

from holdfast.compat.qless import replies
from holdfast.compat.qless.arguments import Arguments
from holdfast.compat.qless.arguments import name as word_as_name
from holdfast.errors import BadArgument, UnknownJob
from holdfast.jobs import (
    breakdown,
    failures,
    pops,
    queues,
    recurring,
    results,
    settings,
    statistics,
    tags,
    tracking,
    workers,
)
from holdfast.jobs.arguments import check_jobs_count
from holdfast.jobs.breakdown import GroupBy
from holdfast.jobs.records import StatsRow, Tag
from holdfast.jobs.throttles import ThrottleOperations

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

Reply = str | int | list[str] | None
_STATISTICS: Final[dict[str, GroupBy]] = {"klass": "class", "tag": "tag", "worker": "worker"}


def get(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    record = ledger.job(arguments.jid())
    return None if record is None else replies.text(replies.job(ledger, record))


def multiget(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jids = arguments.jids()
    check_jobs_count(len(jids))
    found = [record for record in ledger.jobs(jids) if record is not None]
    return replies.text(replies.jobs(ledger, found))


def jobs(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    state = arguments.required('Jobs(): Arg "state" missing')
    queue = "" if state == "complete" else arguments.required('Jobs(): Arg "queue" missing')
    offset, count = arguments.page("Jobs")
    if state not in queues.LISTS:
        raise BadArgument(f'Jobs(): Unknown type "{state}"')
    return queues.listed(ledger, state, queue, offset, count, now)


def queues_command(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    name = arguments.optional()
    if name is not None:
        return replies.text(_queue(ledger, word_as_name(name, "Queue", "queue"), now))
    known = queues.known_queues(ledger)
    return replies.text(replies.listed([_queue(ledger, each, now) for each in known]))


def _queue(ledger: "Ledger", name: str, now: float) -> dict[str, Any]:
    counts = queues.counts(ledger, name, now)
    return replies.queue(counts, has_rate=ledger.settings().rate_of(name) is not None)


def workers_command(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    name = arguments.optional()
    if name is None:
        found = workers.workers(ledger, now)
        shown = [{"name": each.name, "jobs": each.jobs, "stalled": each.stalled} for each in found]
        return replies.text(replies.listed(shown))
    workers.forget_if_old(ledger, word_as_name(name, "Workers", "worker"), now)
    held = workers.jobs_of(ledger, name, now)
    return replies.text(
        {"jobs": replies.listed(held.jobs), "stalled": replies.listed(held.stalled)}
    )


def failed(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    group = arguments.optional()
    if group is None:
        return replies.text(failures.group_counts(ledger))
    start, limit = arguments.page("Failed", ("start", "limit"), "is ")
    word_as_name(group, "Failed", "group")
    return replies.text(replies.page(failures.failed_in(ledger, group, start, limit)))


def stats(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    queue = arguments.queue()
    date = arguments.number('Stats(): Arg "date" missing or not a number: ')
    by = arguments.optional()
    if by is None:
        return replies.text(replies.stats(statistics.stats_on(ledger, queue, date)))
    if by not in _STATISTICS:
        raise BadArgument('Stats(): Arg "by" must be "klass", "tag" or "worker"')
    name = arguments.name("Stats", by)
    table = breakdown.stats_by(ledger, queue, _STATISTICS[by], name, date, date, 1)
    return replies.text(replies.stats_row(table.rows[0] if table.rows else StatsRow(name=name)))


def length(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    return queues.length(ledger, arguments.queue())


def peek(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    queue = arguments.queue()
    count = arguments.whole('Peek(): Arg "count" missing or not a number: ')
    return replies.text(replies.jobs(ledger, pops.peek(ledger, queue, count, now)))


def config_get(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    option = arguments.optional()
    if option is None:
        return replies.text(settings.all_options(ledger))
    found = settings.get_option(ledger, option)
    return int(found) if isinstance(found, float) else found


def recur_get(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    record = recurring.load(ledger, arguments.jid("Recurring"))
    return None if record is None else replies.text(replies.recurring(record))


def result(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    return results.result_text(ledger, arguments.jid())


# --- commands that read or write, by their first word -------------------------------------------


def tag(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    action = arguments.required('Tag(): Arg "command" must be "add", "remove", "get" or "top"')
    if action == "get":
        name = arguments.required('Tag(): Arg "tag" missing')
        offset, count = arguments.page("Tag")
        if offset == count == 0:
            count = -1  # all of them: in the originals, an accident of how ranges are computed
        return replies.text(replies.page(tags.jobs_with_tag(ledger, name, offset, count)))
    if action == "top":
        offset, count = arguments.page("Tag")
        return replies.text(replies.listed(tags.most_used_tags(ledger, offset, count)))
    if action not in ("add", "remove"):
        raise BadArgument('Tag(): First argument must be "add", "remove" or "get"')
    jid = arguments.required('Tag(): Arg "jid" missing')
    named: list[Tag] = list(arguments.rest())
    if action == "add":
        carried = tags.add_tags(ledger, jid, named, now)
    else:
        carried = tags.remove_tags(ledger, jid, named)
    return replies.text(replies.listed(carried))


def track(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    action = arguments.optional()
    if action is None:
        found, expired = tracking.tracked_jobs(ledger)
        return replies.text(
            {"jobs": replies.jobs(ledger, found), "expired": replies.listed(expired)}
        )
    jid = arguments.required('Track(): Arg "jid" missing')
    if action.lower() == "untrack":
        return "1" if tracking.untrack(ledger, jid) else "0"
    if action.lower() == "track":
        return "1" if tracking.track(ledger, jid, now) else "0"
    if ledger.job(jid) is None:
        raise UnknownJob.of(jid)
    raise BadArgument(f'Track(): Unknown action "{action}"')


def throttle_get(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    name = arguments.name("Throttle", "id")
    return replies.text(replies.throttle(_throttling(ledger).throttle_get(name, now=now)))


def throttle_locks(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    return list(_throttling(ledger).throttle_locks(arguments.name("Throttle", "id"), count=-1).jobs)


def throttle_pending(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    return list(
        _throttling(ledger).throttle_pending(arguments.name("Throttle", "id"), count=-1).jobs
    )


def _throttling(ledger: "Ledger") -> ThrottleOperations:
    operations = ThrottleOperations()
    operations._ledger = ledger
    return operations
