"""Commands that search for jobs, and that apply one action to all matches.

None of the originals has them. A search is a JSON object: `{"queue": "emails", "state":
"failed"}`; an empty one finds all jobs.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.compat.qless import replies
from holdfast.compat.qless.arguments import Arguments, json, number, whole
from holdfast.compat.qless.read_commands import Reply
from holdfast.error_text import misfit
from holdfast.errors import BadArgument
from holdfast.jobs import bulk
from holdfast.jobs.search import JobSearch, page

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


def search(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    """Runs `search search [cursor text] [count n]`: a page of jobs, and where the next begins."""
    wanted = _wanted(arguments, "Search")
    given = arguments.known_options("Search", "cursor", "count")
    count = whole(given.get("count", "25"), 'Search(): Arg "count" not a number: ')
    found, position = page(ledger, wanted, given.get("cursor"), count, replies.job)
    return replies.text(
        {
            "jobs": replies.listed(found),
            "cursor": position.text(),
            "searched": position.searched,
            "of": position.of,
        }
    )


def _wanted(arguments: Arguments, call: str) -> JobSearch:
    value = json(arguments.optional(), f'{call}(): Arg "search" missing or not JSON: ')
    try:
        return msgspec.convert(value, JobSearch)
    except msgspec.ValidationError as error:
        raise BadArgument(
            f'{call}(): Arg "search" not as expected: {misfit(error, "it")}'
        ) from None


def bulk_start(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    """Runs `bulk.start action search [queue q | tag t | priority p] [id id]`."""
    action: Any = arguments.required('Bulk(): Arg "action" missing')
    wanted = _wanted(arguments, "Bulk")
    given = arguments.known_options("Bulk", "queue", "tag", "priority", "id")
    priority = None
    if "priority" in given:
        priority = number(given["priority"], 'Bulk(): Arg "priority" not a number: ')
    started = bulk.start(
        ledger, action, wanted, given.get("queue"), given.get("tag"), priority, given.get("id"), now
    )
    return replies.text(replies.bulk_action(started))


def bulk_step(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    record = bulk.require(ledger, arguments.name("Bulk", "id"))
    return replies.text(replies.bulk_action(bulk.step(ledger, record, now)))


def bulk_stop(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    record = bulk.require(ledger, arguments.name("Bulk", "id"))
    return replies.text(replies.bulk_action(bulk.stop(ledger, record, now)))


def bulk_get(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    record = bulk.load(ledger, arguments.name("Bulk", "id"))
    return None if record is None else replies.text(replies.bulk_action(record))


def bulk_list(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    return replies.text(
        replies.listed([replies.bulk_action(each) for each in bulk.recent_actions(ledger)])
    )
