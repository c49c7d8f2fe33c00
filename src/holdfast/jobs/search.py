"""Search: jobs by queue, state, class, tag, group, worker, time and text, a page at a time.

A search walks the shortest list that contains every possible match: that of a tag, a failure group,
a worker, or a queue and a state; without any of these, all jobs. A page looks at a bounded number
of jobs, and says how many were searched so far, and of how many.
"""

import base64
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar

import msgspec

from holdfast.declarations import operation
from holdfast.engine.contract import read_counter
from holdfast.errors import BadArgument
from holdfast.jobs.arguments import check_name, check_page_count, tag_text
from holdfast.jobs.layout import below, unpack_complete
from holdfast.jobs.records import (
    COMPLETE,
    DEPENDS,
    FAILED,
    RUNNING,
    SCHEDULED,
    STALLED,
    THROTTLED,
    WAITING,
    Job,
    JobRecord,
    State,
    Tag,
)
from holdfast.jobs.views import to_job
from holdfast.keys import after, unpack
from holdfast.limits import JOBS_SEARCHED_PER_PAGE, MAX_ANSWER_BYTES, MAX_COUNTED_NAMES

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

T = TypeVar("T")


class JobSearch(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Selects jobs: those that meet every condition that is given.

    `since` and `before` bound the time at which a job was last put, popped, completed or failed.
    `text` is searched for in its data, as JSON text.
    """

    queue: str | None = None
    state: State | None = None
    klass: str | None = None
    tag: Tag | None = None
    group: str | None = None
    worker: str | None = None
    since: float | None = None
    before: float | None = None
    text: str | None = None


class SearchPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of jobs that were found.

    `cursor` is where the next page begins, None after the last. The search has looked at `searched`
    jobs so far, of about `of`; jobs in more than `MAX_COUNTED_NAMES` queues or failure groups are
    not all counted.
    """

    jobs: tuple[Job, ...] = ()
    cursor: str | None = None
    searched: int = 0
    of: int = 0


class SearchOperations:
    """The operation that finds jobs."""

    _ledger: "Ledger"

    @operation(reads=True)
    def search(
        self, search: JobSearch | None = None, *, cursor: str | None = None, count: int = 25
    ) -> SearchPage:
        """Returns jobs that match `search`, a page at a time.

        >>> id = store.jobs.put("emails", "SendMail", {"to": "ann"})
        >>> page = store.jobs.search(JobSearch(queue="emails", text="ann"))
        >>> [job.id for job in page.jobs] == [id], page.searched, page.of
        (True, 1, 1)

        A page looks at no more than `JOBS_SEARCHED_PER_PAGE` jobs, so it may hold fewer than
        `count` even if more follow: continue until `cursor` is None. Reads 2 keys for each job that
        it looks at.
        """
        found, position = page(self._ledger, search or JobSearch(), cursor, count, to_job)
        return SearchPage(
            jobs=tuple(found), cursor=position.text(), searched=position.searched, of=position.of
        )


def page(
    ledger: "Ledger",
    search: JobSearch,
    cursor: str | None,
    count: int,
    show: "Callable[[Ledger, JobRecord], T]",
) -> "tuple[list[T], SearchPosition]":
    """Returns up to `count` jobs, converted by `show`, and where the search continues."""
    check_page_count(count)
    position = read_cursor(cursor) if cursor else first_position(ledger, search)
    found: list[T] = []
    begun = ledger.long_data_bytes
    for job in next_jobs(ledger, search, position, JOBS_SEARCHED_PER_PAGE):
        if job is not None:
            found.append(show(ledger, job))
        if len(found) >= count or ledger.long_data_bytes - begun > MAX_ANSWER_BYTES // 2:
            break
    position.of = max(position.of, position.searched)
    return found, position


# --- where a search is --------------------------------------------------------------------------


class SearchPosition:
    """The progress of a search: the list, the last key, and what it has searched."""

    __slots__ = ("last_key", "list_number", "of", "searched")

    def __init__(self, list_number: int | None, last_key: bytes, searched: int, of: int) -> None:
        self.list_number = list_number  # None: at the end
        self.last_key = last_key  # relative to the beginning of its list
        self.searched = searched
        self.of = of

    def text(self) -> str | None:
        """Returns the cursor that leads here; None at the end."""
        if self.list_number is None:
            return None
        parts = (self.list_number, self.last_key, self.searched, self.of)
        return base64.urlsafe_b64encode(msgspec.msgpack.encode(parts)).decode()


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Cursor = tuple[_Count, bytes, _Count, _Count]


def read_cursor(cursor: str) -> SearchPosition:
    try:
        decoded = base64.b64decode(cursor, b"-_", validate=True)
        return SearchPosition(*msgspec.msgpack.decode(decoded, type=_Cursor))
    except (ValueError, msgspec.DecodeError):
        raise BadArgument.named("cursor", "is not one that a search has returned") from None


def first_position(ledger: "Ledger", search: JobSearch) -> SearchPosition:
    """Returns where a search begins. Reads a counter for each list, or for each of the first
    `MAX_COUNTED_NAMES` queues."""
    return SearchPosition(0, b"", 0, sum(each.size() for each in _lists(ledger, search)))


def next_jobs(
    ledger: "Ledger", search: JobSearch, position: SearchPosition, limit: int
) -> Iterator[JobRecord | None]:
    """Looks at the next `limit` jobs: yields each that matches, None for each that does not.

    `position` is always just after the job that was yielded last.
    """
    lists = _lists(ledger, search)
    left = limit
    while position.list_number is not None:
        if position.list_number >= len(lists):
            position.list_number = None
            return
        prefix, read_jid, _ = lists[position.list_number]
        begin, end = below(prefix)
        begin = after(prefix + position.last_key) if position.last_key else begin
        entries = list(ledger.tx.scan(begin, end, limit=left))
        for key, value in entries:
            position.last_key = key[len(prefix) :]
            position.searched += 1
            job = ledger.job(read_jid(key, value))
            yield job if job is not None and matches(ledger, search, job) else None
        if len(entries) == left:
            return
        left -= len(entries)
        position.list_number, position.last_key = position.list_number + 1, b""


def matches(ledger: "Ledger", search: JobSearch, job: JobRecord) -> bool:
    """Returns whether the job matches the search."""
    time = job.failure.when if job.failure is not None and job.state == FAILED else job.time
    return (
        (search.queue is None or job.queue == search.queue)
        and (search.state is None or job.state == search.state)
        and (search.klass is None or job.klass == search.klass)
        and (search.worker is None or job.worker == search.worker)
        and (search.since is None or time >= search.since)
        and (search.before is None or time < search.before)
        and (
            search.group is None or (job.failure is not None and job.failure.group == search.group)
        )
        and (search.tag is None or tag_text(search.tag) in map(tag_text, job.tags))
        and (search.text is None or search.text in ledger.data_of(job))
    )


# --- lists to search ----------------------------------------------------------------------------


class _List(NamedTuple):
    """A list of jobs: where it is, how an entry names its job, and about how many it has."""

    prefix: bytes
    read_jid: Callable[[bytes, bytes], str]
    size: Callable[[], int]


_IN_QUEUES: Final = (WAITING, STALLED, RUNNING, SCHEDULED, DEPENDS)


def _lists(ledger: "Ledger", search: JobSearch) -> list[_List]:
    """Returns the shortest lists that together contain every possible match."""
    keys, tx = ledger.keys, ledger.tx
    if search.tag is not None:
        tag = check_name(tag_text(search.tag), "tag")
        counter = keys.tag_count(tag)
        return [_List(keys.tagged(tag), _id_in_key, lambda: read_counter(tx.get(counter)))]
    if search.worker is not None:
        held = keys.worker(check_name(search.worker, "worker")).held
        return [_List(held, _id_in_key, lambda: sum(1 for _ in tx.scan(*below(held))))]
    if search.state == COMPLETE:
        return [
            _List(keys.completed, _id_in_key, lambda: unpack_complete(tx.get(keys.complete))[0])
        ]
    if search.state == FAILED:
        return [_failed(ledger, search.group)]
    if search.state == THROTTLED:
        return [_throttled(ledger)]
    if search.queue is None:
        return [_List(keys.jobs, _id_in_key, lambda: _all_jobs(ledger))]
    lists = _queue_lists(ledger, check_name(search.queue, "queue"))
    if search.state in _IN_QUEUES:
        return [lists[_IN_QUEUES.index(search.state) - (search.state != WAITING)]]
    return [*lists, _throttled(ledger), _failed(ledger, search.group)]


def _queue_lists(ledger: "Ledger", queue: str) -> list[_List]:
    """Returns the work list, the locks, the schedule and the blocked jobs of a queue."""
    keys = ledger.keys.queue(queue)
    return [
        _List(keys.work, _id_in_value, lambda: ledger.work_counts(keys)[0]),
        _List(keys.locks, _id_in_key, lambda: ledger.work_counts(keys)[1]),
        _List(keys.scheduled, _id_in_key, lambda: ledger.pair(keys.blocked)[0]),
        _List(keys.depends, _id_in_key, lambda: ledger.pair(keys.blocked)[1]),
    ]


def _failed(ledger: "Ledger", group: str | None) -> _List:
    keys = ledger.keys
    if group is None:
        return _List(keys.failed, _id_in_key, lambda: _all_failed(ledger))
    counter = keys.failure_group(check_name(group, "group"))
    return _List(keys.failed_in(group), _id_in_key, lambda: read_counter(ledger.tx.get(counter)))


def _throttled(ledger: "Ledger") -> _List:
    """Returns the list of jobs that wait for throttles, which all queues share."""
    return _List(
        ledger.keys.throttle_waiters,
        _id_in_key,
        lambda: sum(ledger.pair(ledger.keys.queue(queue).other)[0] for queue in _queues(ledger)),
    )


def _all_jobs(ledger: "Ledger") -> int:
    total = unpack_complete(ledger.tx.get(ledger.keys.complete))[0]
    total += _all_failed(ledger)
    for queue in _queues(ledger):
        keys = ledger.keys.queue(queue)
        total += sum(ledger.work_counts(keys)) + sum(ledger.pair(keys.blocked))
        total += ledger.pair(keys.other)[0]
    return total


def _queues(ledger: "Ledger") -> list[str]:
    """Returns the first queues that have counters, each up to six, known or not."""
    prefix = ledger.keys.all_queue_counts
    counters = ledger.tx.scan(*below(prefix), limit=6 * MAX_COUNTED_NAMES)
    return list(dict.fromkeys(str(unpack(key, len(prefix))[0]) for key, _ in counters))


def _all_failed(ledger: "Ledger") -> int:
    groups = ledger.tx.scan(*below(ledger.keys.failure_groups), limit=MAX_COUNTED_NAMES)
    return sum(read_counter(value) for _, value in groups)


def _id_in_key(key: bytes, value: bytes) -> str:
    """Returns the id at the end of a key."""
    return str(unpack(key)[-1])


def _id_in_value(key: bytes, value: bytes) -> str:
    return str(unpack(value)[0])
