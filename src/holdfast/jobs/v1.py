"""`jobs.v1`: the calls of the seed, the first Qless of 2012, in terms of today's operations.

Arguments are positional. Priorities are negated on the way in and out, because the seed runs the
lower one first. `jobs-history` is in days. A refused call returns None and raises no error. The
caller gives the time at which a lock ends, and an expired lock is handed over without a grace
period. The same calls as words of the wire, `QLESS1`, are in `compat.qless.v1_commands`.
"""

import inspect
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.binding import Runner, per_call
from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.errors import BadArgument, UnknownJob, WrongState
from holdfast.jobs import locks, pops, settings, settlements, statistics
from holdfast.jobs.argument_types import check_argument_types
from holdfast.jobs.arguments import (
    JsonText,
    check_name,
    int_if_whole,
    json_text,
    number_from,
    number_text,
    shortened,
)
from holdfast.jobs.history import RETRIED, history_of
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.puts import put as put_job
from holdfast.jobs.rates import MakeLimiter
from holdfast.jobs.records import COMPLETE, FAILED, RUNNING, JobRecord, NewJob, Tag
from holdfast.jobs.statistics import DAY, DayTimes

if TYPE_CHECKING:
    from holdfast.jobs.records import HistoryEntry

Row = tuple[str, int, int | None, int | None, str | None]

_IN_DAYS: Final = "jobs-history"
_STATES: Final = {RUNNING: "pending", COMPLETE: "complete", FAILED: "failed"}
_encode: Final = msgspec.json.Encoder().encode


class JobV1(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the seed shows it: data and tags as JSON texts, a row of history for each stay."""

    id: str
    priority: float
    data: str
    tags: str
    worker: str
    expires: float
    state: str
    queue: str | None
    history: tuple[Row, ...]


class TimesV1(msgspec.Struct, frozen=True, kw_only=True):
    """Times of a day; `histogram` has the seed's 286 numbers."""

    total: int
    mean: float
    variance: float
    histogram: tuple[int, ...]


class StatsV1(TimesV1, frozen=True, kw_only=True):
    """The statistics of a day: run times at the top, and once more beside the wait times."""

    wait: TimesV1
    run: TimesV1


@check_argument_types
class JobsV1:
    """The calls of the seed on one transaction."""

    def __init__(self, tx: Transaction, limiter: MakeLimiter | None = None) -> None:
        self._ledger = Ledger(tx, limiter)

    @operation(local=True)
    def set_config(self, option: str, value: str | float | None = None) -> None:
        """Sets an option, or resets it to its default if no value is given."""
        if value is None:
            settings.unset_option(self._ledger, option)
            return
        number = number_from(value) if isinstance(value, str) else value
        if option == _IN_DAYS and number is not None:
            value = number * DAY
        text = value if isinstance(value, str) else number_text(value)
        settings.set_option(self._ledger, option, text)

    @operation(reads=True, local=True)
    def get_config(self, option: str) -> str | None:
        """Returns the option's value as text, its default if it was not set, None if there is no
        such option."""
        value = settings.get_option(self._ledger, option)
        return None if value is None else str(_in_days(option, value))

    @operation(reads=True, local=True)
    def configuration(self) -> dict[str, settings.Value]:
        """Returns all options."""
        found = settings.all_options(self._ledger)
        return {option: _in_days(option, value) for option, value in found.items()}

    @operation(local=True)
    def put(
        self,
        queue: str,
        id: str,
        data: Any,
        now: float,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        delay: float = 0,
    ) -> str:
        """Puts a job; a worker that holds it loses it. A str as `data` is JSON text.

        Class and retries of a job that exists stay, and so do priority and tags that are not given.
        """
        before = self._ledger.job(id)
        new = NewJob(
            queue=queue,
            id=id,
            klass="" if before is None else before.klass,
            data=JsonText(data) if isinstance(data, str) else data,
            priority=None if priority is None else -priority,
            tags=None if tags is None else tuple(tags),
            delay=delay,
        )
        return put_job(self._ledger, new, "", self._ledger.time(now))

    @operation(reads=True, local=True)
    def get(self, id: str) -> JobV1 | None:
        """Returns the job, or None."""
        job = self._ledger.job(id)
        return None if job is None else self._to_job_v1(job)

    @operation(local=True)
    def pop(
        self, queue: str, worker: str, count: int, now: float, expiration: float
    ) -> list[JobV1]:
        """Pops jobs with locks that end at the time `expiration`."""
        time = self._ledger.time(now)
        jobs = pops.pop(
            self._ledger, queue, worker, count, time, expires=expiration, grace_period=0
        )
        return [self._to_job_v1(job) for job in jobs]

    @operation(local=True)
    def peek(self, queue: str, count: int, now: float) -> list[JobV1]:
        """Shows the next jobs."""
        jobs = pops.peek(self._ledger, queue, count, self._ledger.time(now))
        return [self._to_job_v1(job) for job in jobs]

    @operation(local=True)
    def heartbeat(
        self, id: str, worker: str, expiration: float, data: Any = settlements.UNSET
    ) -> float | None:
        """Sets the end of the lock to `expiration`; None if the worker does not hold the job."""
        ledger = self._ledger
        text = None if data is settlements.UNSET else _text(data)
        try:
            locks.heartbeat(ledger, id, worker, text, ledger.tx.now, expires=expiration)
        except (UnknownJob, WrongState):
            return None
        return expiration

    @operation(local=True)
    def complete(
        self,
        id: str,
        data: Any = settlements.UNSET,
        queue: str | None = None,
        delay: float = 0,
        worker: str | None = None,
    ) -> str | None:
        """Completes the job or moves it to `queue`, for its holder; None if it is not running.

        A `worker` that does not hold the job gets None. A call without a worker counts as the
        holder's, unless an earlier put took the job from another worker: then the call may come
        from that worker, and gets None too.
        """
        ledger = self._ledger
        text = None if data is settlements.UNSET else _text(data)
        job = ledger.job(id)
        if job is None or job.state != RUNNING:
            return None
        if worker is None:
            if _interrupted_workers(history_of(job)) - {job.worker}:
                return None
        elif worker != job.worker:
            return None
        delay = delay if queue else 0
        state, _ = settlements.complete(
            ledger, id, job.worker, None, text, ledger.tx.now, next_queue=queue, delay=delay
        )
        return state

    @operation(local=True)
    def fail(self, id: str, type: str, message: str, now: float) -> str | None:
        """Fails a job in any state but complete; None for a complete or unknown one."""
        check_name(type, "type")
        time = self._ledger.time(now)
        job = self._ledger.job(id)
        if job is None or job.state == COMPLETE:
            return None
        settlements.fail_job(self._ledger, job, job.worker, type, message, time)
        return id

    @operation(reads=True, local=True)
    def stats(self, queue: str, date: float | str) -> StatsV1:
        """Returns the statistics of the day that `date` falls into, a time or `YYYY-MM-DD`."""
        day = statistics.day_of(_time_of(date))
        wait, run = statistics.day_times(self._ledger, queue, day)
        top = _times(run)
        return StatsV1(
            total=top.total,
            mean=top.mean,
            variance=top.variance,
            histogram=top.histogram,
            wait=_times(wait),
            run=top,
        )

    def _to_job_v1(self, job: JobRecord) -> JobV1:
        return JobV1(
            id=job.jid,
            priority=int_if_whole(-job.priority),
            data=self._ledger.data_of(job),
            tags=_encode(job.tags).decode(),
            worker=job.worker,
            expires=int_if_whole(job.expires),
            state=_STATES.get(job.state, "waiting"),
            queue=job.queue or None,
            history=v1_history(history_of(job)),
        )


def call_v1(jobs: JobsV1, name: str, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """Runs one of the seed's calls by its name; records become dicts."""
    if name not in V1_CALLS:
        raise BadArgument.named("name", f"is unknown: {shortened(name)}")
    method: Callable[..., Any] = getattr(jobs, name)
    try:
        inspect.signature(method).bind(*arguments, **named)
    except TypeError as error:
        raise BadArgument.named("arguments", f"don't fit {name}: {error}") from None
    return msgspec.to_builtins(method(*arguments, **named))


V1_CALLS: Final = tuple(name for name in vars(JobsV1) if not name.startswith("_"))


if TYPE_CHECKING:

    class StoreJobsV1(JobsV1):
        """The calls of the seed on a store, one transaction each."""

        def __init__(self, runner: Runner, make: Callable[[Any], JobsV1] = ...) -> None: ...

else:
    StoreJobsV1 = per_call(JobsV1)


# --- translation ------------------------------------------------------------------------------


def v1_history(history: "tuple[HistoryEntry, ...]") -> tuple[Row, ...]:
    """Returns the seed's rows, `[queue, put, popped, done, worker]` for each stay in a queue."""
    rows: list[list[Any]] = []
    for entry in history:
        if entry.what == "put":
            rows.append([entry.more.get("q"), entry.when, None, None, None])
        elif rows and entry.what == "popped":
            rows[-1][2] = entry.when
            rows[-1][4] = entry.more.get("worker")
        elif rows and entry.what == "done":
            rows[-1][3] = entry.when
    return tuple(tuple(row) for row in rows)


def _interrupted_workers(history: "tuple[HistoryEntry, ...]") -> set[str]:
    """Returns the workers that a put took the job from, and that may not have noticed."""
    interrupted: set[str] = set()
    holder = ""
    for entry in history:
        if entry.what == "popped":
            holder = str(entry.more.get("worker", ""))
        elif entry.what == "put" and holder:
            interrupted.add(holder)
            holder = ""
        elif entry.what in ("done", "failed", "timed-out", RETRIED):
            holder = ""
    return interrupted


def _in_days(option: str, value: settings.Value) -> settings.Value:
    if option != _IN_DAYS:
        return value
    seconds = number_from(value) if isinstance(value, str) else value
    return value if seconds is None else int_if_whole(seconds / DAY)


def _text(data: Any) -> str:
    return json_text(JsonText(data) if isinstance(data, str) else data)


def _time_of(date: float | str) -> float:
    if not isinstance(date, str):
        return date
    number = number_from(date)
    if number is not None:
        return number
    try:
        return datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise BadArgument(f'Stats(): Arg "date" missing or not a number: {date}') from None


def _times(measured: DayTimes) -> TimesV1:
    return TimesV1(
        total=measured.count,
        mean=int_if_whole(measured.mean),
        variance=int_if_whole(measured.variance),
        histogram=measured.v1_histogram(),
    )
