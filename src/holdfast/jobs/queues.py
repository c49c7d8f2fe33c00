"""Queues: counts by state, lists of ids, pausing and forgetting."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.declarations import operation
from holdfast.errors import BadArgument
from holdfast.jobs import lists, rates
from holdfast.jobs.arguments import EMPTY_NAME, check_queue
from holdfast.jobs.layout import QueueKeys, below, last_part, since, time_and_jid, until
from holdfast.jobs.records import NEVER, QueueCounts, QueueRecord
from holdfast.keys import after as key_after
from holdfast.keys import pack_str, unpack
from holdfast.limits import JOBS_PER_STEP, MAX_FORGOTTEN_QUEUES_READ

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

LISTS: Final = ("complete", "running", "stalled", "scheduled", "depends", "recurring")
_decode_queue: Final = msgspec.msgpack.Decoder(QueueRecord).decode


class QueueOperations:
    """Operations on queues."""

    _ledger: "Ledger"

    @operation()
    def queues(self, *, now: float | None = None) -> list[QueueCounts]:
        """Returns the counts of all known queues, in the order in which they were first used.

        Starts scheduled jobs that are due, so it may write. Reads 6 keys for each queue, and the
        ended or the valid locks, whichever are fewer.
        """
        time = self._ledger.time(now)
        return [counts(self._ledger, name, time) for name in known_queues(self._ledger)]

    @operation()
    def counts(self, queue: str, *, now: float | None = None) -> QueueCounts:
        """Returns the counts of one queue, all 0 if it was never used.

        Reads what `queues` does for one.
        """
        return counts(self._ledger, check_queue(queue), self._ledger.time(now))

    @operation(reads=True)
    def length(self, queue: str) -> int:
        """Returns how many jobs of the queue wait, are scheduled or run. Reads 4 keys."""
        return length(self._ledger, check_queue(queue))

    @operation()
    def jobs(
        self,
        state: str,
        queue: str = "",
        *,
        offset: int = 0,
        count: int = 25,
        now: float | None = None,
    ) -> list[str]:
        """Returns ids of the "complete" jobs, or of the jobs of a queue that are "running",
        "stalled", "scheduled", "depends" or "recurring".

        `count=-1` returns all of them. "scheduled" first starts jobs that are due. Reads 1 key for
        each job up to the page's end.
        """
        return listed(self._ledger, state, queue, offset, count, self._ledger.time(now))

    @operation(local=True)
    def erase_some(self, limit: int) -> int:
        """Erases up to `limit` keys of this layer, whatever they hold, and returns how many; 0 when
        nothing is left. Deletes `limit` keys."""
        tx = self._ledger.tx
        begin, end = below(self._ledger.keys.all)
        keys = [key for key, _ in tx.scan(begin, end, limit=limit)]
        if keys:
            tx.clear(begin, key_after(keys[-1]))
        return len(keys)

    @operation()
    def pause(self, *queues: str) -> None:
        """Pauses `queues`: their pops return nothing, and everything else continues.

        Reads 1 key and writes 1 for each.
        """
        for queue in queues:
            set_paused(self._ledger, queue, True)

    @operation()
    def unpause(self, *queues: str) -> None:
        """Resumes `queues`: pops return their jobs again. Reads 1 key and writes 1 for each."""
        for queue in queues:
            set_paused(self._ledger, queue, False)

    @operation()
    def queue_forget(self, *queues: str) -> None:
        """Removes `queues` from the list of known queues; their jobs stay. A put lists them again.

        Reads 1 key and writes 1 for each.
        """
        for queue in queues:
            forget_queue(self._ledger, queue)

    @operation(reads=True, local=True)
    def waiting(self, queue: str) -> int:
        """Returns how many jobs wait in the queue: a pop now returns at most that many.

        A server uses it to wake no more waiting clients than there are jobs. Reads 1 key.
        """
        return self._ledger.work_counts(self._ledger.keys.queue(queue))[0]

    @operation(reads=True, local=True)
    def next_wake(self, *queues: str) -> float | None:
        """Returns when the next lock ends or job becomes due in any of `queues`; None if never.

        A caller that waits for a job sleeps until then; only a notice `jobs.ready` can make a job
        available sooner. Reads 1 key for each.
        """
        return next_wake(self._ledger, queues)


# --- counts -----------------------------------------------------------------------------------


def known_queues(ledger: "Ledger") -> list[str]:
    prefix = ledger.keys.queues
    known: list[tuple[float, str]] = []
    for key, value in ledger.tx.scan(*below(prefix)):
        record = _decode_queue(value)
        if record.known_since is not None:
            known.append((record.known_since, last_part(key, prefix)))
    return [name for _, name in sorted(known, key=_by_time_and_name)]


def queue_names_after(ledger: "Ledger", after: str, count: int) -> list[str]:
    """Returns up to `count` known queues, by name, after the name `after`. Reads 1 key each."""
    prefix = ledger.keys.queues
    begin, end = below(prefix)
    if after:
        begin = key_after(prefix + pack_str(after))
    found = []
    for key, value in ledger.tx.scan(begin, end, limit=count + MAX_FORGOTTEN_QUEUES_READ):
        if _decode_queue(value).known_since is not None:
            found.append(last_part(key, prefix))
        if len(found) == count:
            break
    return found


def _by_time_and_name(entry: tuple[float, str]) -> tuple[float, bytes]:
    return entry[0], entry[1].encode()


def counts(ledger: "Ledger", name: str, now: float) -> QueueCounts:
    keys = ledger.keys.queue(name)
    due = start_due(
        ledger, keys, now
    )  # they count as waiting, even if they have not been moved yet
    return _counts(ledger, keys, name, now, due)


def counts_at(ledger: "Ledger", name: str, now: float) -> QueueCounts:
    """Like `counts`, but moves nothing: a job that is due counts as scheduled until a pop."""
    return _counts(ledger, ledger.keys.queue(name), name, now, 0)


def _counts(ledger: "Ledger", keys: QueueKeys, name: str, now: float, due: int) -> QueueCounts:
    waiting, locks = ledger.work_counts(keys)
    scheduled, depends = ledger.pair(keys.blocked)
    throttled, recurring = ledger.pair(keys.other)
    ended = until(keys.locks, now)[1]
    stalled = ledger.count_before(ended, keys.locks, locks) if locks else 0
    rate = ledger.settings().rate_of(name)
    return QueueCounts(
        name=name,
        waiting=waiting + due,
        running=locks - stalled,
        stalled=stalled,
        scheduled=scheduled - due,
        depends=depends,
        recurring=recurring,
        throttled=throttled,
        paused=ledger.read_queue(keys).paused,
        limited=0.0 if rate is None else _limited(ledger, rate, name, now),
    )


def _limited(ledger: "Ledger", rate: rates.QueueRate, queue: str, now: float) -> float:
    """Returns in how many seconds the queue's rate allows the next job."""
    number, wait = rates.left(ledger, rate, now, queue)
    return 0.0 if number else wait


def start_due(ledger: "Ledger", keys: QueueKeys, now: float) -> int:
    """Starts scheduled jobs that are due, in one bounded step; returns how many are left for later.

    Reads 1 key if none is due; if many are left, those or the others, whichever are fewer.
    """
    if ledger.read_queue(keys).wake > now or lists.move_due(ledger, keys, now) < JOBS_PER_STEP:
        return 0
    scheduled, _ = ledger.pair(keys.blocked)
    return ledger.count_before(until(keys.scheduled, now)[1], keys.scheduled, scheduled)


def count_running(ledger: "Ledger", keys: QueueKeys, now: float, limit: int) -> int:
    """Returns how many locks have not ended, if they are fewer than `limit`; otherwise at least
    `limit`.

    Reads up to `JOBS_PER_STEP` keys, or those of the ended or the valid locks, if they are fewer.
    """
    begin, end = since(keys.locks, now)
    if limit <= JOBS_PER_STEP:
        return sum(1 for _ in ledger.tx.scan(begin, end, limit=limit))
    # The counter is read only here: it would make each pop conflict with puts on remote engines.
    locks = ledger.work_counts(keys)[1]
    return locks - ledger.count_before(begin, keys.locks, locks)


def length(ledger: "Ledger", queue: str) -> int:
    keys = ledger.keys.queue(queue)
    waiting, locks = ledger.work_counts(keys)
    scheduled, _ = ledger.pair(keys.blocked)
    return waiting + locks + scheduled


def next_wake(ledger: "Ledger", queues: Iterable[str]) -> float | None:
    """Returns when one of `queues` can have a job without a notice; None if never."""
    wake = min((_wake(ledger, name) for name in queues), default=NEVER)
    return None if wake == NEVER else wake


def _wake(ledger: "Ledger", queue: str) -> float:
    """Returns when a pop may find a job. A paused or full queue is not polled."""
    keys = ledger.keys.queue(queue)
    record = ledger.queue(keys)
    if record.paused:
        return NEVER
    rate = ledger.settings().rate_of(queue)
    if rate is not None and (wait := _limited(ledger, rate, queue, ledger.tx.now)):
        waiting = ledger.work_counts(keys)[0]
        return ledger.tx.now + wait if waiting else max(record.wake, ledger.tx.now + wait)
    limit = ledger.settings().concurrency_of(queue)
    if limit <= 0 or record.wake > ledger.tx.now:
        return record.wake
    if count_running(ledger, keys, ledger.tx.now, limit) < limit:
        return record.wake
    [(first, _)] = ledger.tx.scan(*since(keys.locks, ledger.tx.now), limit=1)
    return time_and_jid(first, keys.locks)[0]


# --- lists ------------------------------------------------------------------------------------


def listed(
    ledger: "Ledger", state: str, queue: str, offset: int, count: int, now: float
) -> list[str]:
    if not state:
        raise BadArgument.named("state", EMPTY_NAME)
    if state == "complete":
        prefix = ledger.keys.completed
        return _page(ledger, prefix, below(prefix), offset, count, reverse=True)
    if not queue:
        raise BadArgument.named("queue", EMPTY_NAME)
    keys = ledger.keys.queue(queue)
    if state == "running":
        # A lock that ends at this moment is in both lists, as in a worker's.
        return _page(ledger, keys.locks, since(keys.locks, now), offset, count)
    if state == "stalled":
        return _page(ledger, keys.locks, until(keys.locks, now), offset, count)
    if state == "scheduled":
        start_due(ledger, keys, now)
        ahead = (until(keys.scheduled, now)[1], keys.scheduled + b"\xff")
        return _page(ledger, keys.scheduled, ahead, offset, count)
    if state == "depends":
        return _page(ledger, keys.depends, below(keys.depends), offset, count)
    if state == "recurring":
        return _page(ledger, keys.recurring, below(keys.recurring), offset, count)
    raise BadArgument(
        f"there is no list of {state!r} jobs",
        hint="Use complete, running, stalled, scheduled, depends or recurring.",
    )


def some_jobs(ledger: "Ledger", queue: str, limit: int) -> list[str]:
    """Returns up to `limit` jobs of a queue, from any of its lists."""
    keys = ledger.keys.queue(queue)
    found = [str(unpack(value)[0]) for _, value in ledger.tx.scan(*below(keys.work), limit=limit)]
    for prefix in (keys.scheduled, keys.depends, keys.locks):
        if len(found) < limit:
            found += _page(ledger, prefix, below(prefix), 0, limit - len(found))
    throttled, _ = ledger.pair(keys.other)
    return found + list(islice(_throttled_jobs(ledger, queue), min(throttled, limit - len(found))))


def _throttled_jobs(ledger: "Ledger", queue: str) -> Iterator[str]:
    """Yields jobs of a queue that wait for a throttle; all queues store these together."""
    prefix = ledger.keys.throttle_waiters
    for key, _ in ledger.tx.scan(*below(prefix)):
        job = ledger.job(str(unpack(key, len(prefix))[2]))
        if job is not None and job.queue == queue:
            yield job.jid


def _page(
    ledger: "Ledger",
    prefix: bytes,
    bounds: tuple[bytes, bytes],
    offset: int,
    count: int,
    *,
    reverse: bool = False,
) -> list[str]:
    keys = ledger.page(bounds, offset, count, reverse=reverse)
    return [time_and_jid(key, prefix)[1] for key in keys]


# --- changing ---------------------------------------------------------------------------------


def set_paused(ledger: "Ledger", queue: str, paused: bool) -> None:
    keys = ledger.keys.queue(check_queue(queue))
    record = ledger.queue(keys)
    record.paused = paused
    ledger.save_queue(keys, record)
    if not paused:
        ledger.announce_ready(keys)


def forget_queue(ledger: "Ledger", queue: str) -> None:
    keys = ledger.keys.queue(check_queue(queue))
    record = ledger.queue(keys)
    record.known_since = None
    ledger.save_queue(keys, record)
