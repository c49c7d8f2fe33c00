"""The figures of queues, for scrapers and for people: states, ages, counters that only grow."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.declarations import operation
from holdfast.engine.contract import read_counter
from holdfast.jobs import queues, statistics
from holdfast.jobs.arguments import check_jobs_count, check_page_count, check_queue
from holdfast.jobs.layout import QueueKeys, below
from holdfast.jobs.queues import queue_names_after
from holdfast.jobs.records import QueueCounts
from holdfast.keys import unpack
from holdfast.limits import MAX_COUNTED_NAMES, MAX_PRIORITIES_AGED, MAX_QUEUES_EXPOSED

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

BOUNDS: Final = (1, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400)  # of histograms, in seconds


class TimesFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Wait or run times since the queue was created; `buckets` are cumulative, see `BOUNDS`."""

    count: int
    sum: float
    buckets: tuple[int, ...]


class QueueFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one queue: jobs by state, and totals since the queue was created."""

    counts: QueueCounts
    oldest_age: float  # seconds since the oldest waiting job entered the queue, 0 if none waits
    failures: int
    retries: int
    puts: int
    wait: TimesFigures
    run: TimesFigures


class JobTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of names and failed jobs, each counted up to `MAX_COUNTED_NAMES` names."""

    queues: int
    failed: int  # jobs, of all groups
    programs: int  # of workers, alive or just lost
    schedules: int
    throttles: int


class FigureOperations:
    """Operations that return the figures of queues."""

    _ledger: "Ledger"

    @operation(reads=True)
    def figures(self, *queues: str, after: str = "", count: int = 25) -> list[QueueFigures]:
        """Returns the figures of `queues`, or of the `count` queues whose names follow `after`.

        >>> _ = store.jobs.put("emails")
        >>> [figures] = store.jobs.figures()
        >>> figures.counts.waiting, figures.run.count
        (1, 0)

        Reads some 10 keys for each queue, and 2 for each of its days.
        """
        ledger = self._ledger
        check_page_count(count)
        check_jobs_count(max(1, len(queues)))
        names = [check_queue(each) for each in queues] or queue_names_after(ledger, after, count)
        return [_figures(ledger, name, ledger.tx.now) for name in names]

    @operation(reads=True)
    def totals(self) -> JobTotals:
        """Returns how many queues, failed jobs, worker programs, schedules and throttles there are.

        >>> _ = store.jobs.put("emails")
        >>> store.jobs.totals().queues
        1

        Reads 1 key for each queue, group and other name, at most 1,000 of each kind.
        """
        ledger = self._ledger
        keys = ledger.keys
        groups = ledger.tx.scan(*below(keys.failure_groups), limit=MAX_COUNTED_NAMES)
        return JobTotals(
            queues=len(queue_names_after(ledger, "", MAX_COUNTED_NAMES)),
            failed=sum(read_counter(value) for _, value in groups),
            programs=_names(ledger, keys.worker_programs),
            schedules=_names(ledger, keys.recurring),
            throttles=_names(ledger, keys.throttles),
        )


def _names(ledger: "Ledger", prefix: bytes) -> int:
    return sum(1 for _ in ledger.tx.scan(*below(prefix), limit=MAX_COUNTED_NAMES))


def figures(ledger: "Ledger", now: float) -> list[QueueFigures]:
    """Returns the figures of the known queues, the first `MAX_QUEUES_EXPOSED` of them.

    Reads some 10 keys for each queue, and 2 for each of its days.
    """
    names = queues.known_queues(ledger)[:MAX_QUEUES_EXPOSED]
    return [_figures(ledger, name, now) for name in names]


def _figures(ledger: "Ledger", name: str, now: float) -> QueueFigures:
    keys = ledger.keys.queue(name)
    totals = statistics.totals(ledger, keys)
    times = [min(now, time) for time in _first_times(ledger, keys)]
    return QueueFigures(
        counts=queues.counts_at(ledger, name, now),
        oldest_age=now - min(times) if times else 0.0,
        failures=totals.tallies["failures"],
        retries=totals.tallies["retries"],
        puts=read_counter(ledger.tx.get(keys.puts)),
        wait=_times(totals.wait),
        run=_times(totals.run),
    )


def _first_times(ledger: "Ledger", keys: QueueKeys) -> Iterator[float]:
    """Yields when the first job of each priority entered the work list, of a few priorities."""
    begin = keys.work
    for _ in range(MAX_PRIORITIES_AGED):
        found = next(ledger.tx.scan(begin, keys.work_end, limit=1), None)
        if found is None:
            return
        key, packed_jid = found
        front, priority, *_ = unpack(key, len(keys.work))
        job = ledger.job_at(ledger.keys.jobs + packed_jid)
        if job is not None:
            yield job.time
        begin = (keys.line(priority) if front else keys.front_work) + b"\xff"


def _times(total: statistics.LifetimeTotal) -> TimesFigures:
    buckets = [sum(total.tiers[: statistics.bucket_of(bound)]) for bound in BOUNDS]
    return TimesFigures(count=total.number, sum=total.seconds, buckets=tuple(buckets))
