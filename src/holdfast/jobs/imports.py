"""Imports the jobs of another system as they are, each exactly once.

`holdfast jobs import` reads them from a Redis; see `holdfast.job_import`. A job whose id exists
here is skipped, so an interrupted import can be run again.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.declarations import operation
from holdfast.engine.contract import read_counter
from holdfast.errors import BadArgument
from holdfast.jobs import deadlines, dependencies, lists, recurring, statistics, tags
from holdfast.jobs.arguments import (
    JsonText,
    check_jobs_count,
    check_name,
    check_numbers,
    check_tags,
    check_time,
    cut_message,
    json_text,
    tag_text,
)
from holdfast.jobs.history import shorten
from holdfast.jobs.layout import HIGH, pack_time
from holdfast.jobs.ledger import encode
from holdfast.jobs.records import (
    COMPLETE,
    DEFAULT_RETRIES,
    DEPENDS,
    FAILED,
    NO_SEPARATE_DATA,
    RUNNING,
    SCHEDULED,
    STALLED,
    WAITING,
    Failure,
    HistoryEntry,
    JobRecord,
    RecurringRecord,
    State,
    Tag,
)
from holdfast.keys import pack_str
from holdfast.limits import MAX_IMPORTED_COUNT, MAX_JOB_HISTORY_ENTRIES

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

_encode_json: Final = msgspec.json.Encoder().encode


class ImportedJob(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A job of another system. `data` is its JSON text; `time` is when it entered its list."""

    id: str
    queue: str
    klass: str = ""
    data: str = "null"
    state: State = WAITING
    time: float = 0.0
    start: float = 0.0  # of a job that is scheduled, or will be once nothing blocks it
    priority: float = 0.0
    retries: float = DEFAULT_RETRIES
    remaining: float = DEFAULT_RETRIES
    tags: tuple[Tag, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    failure: Failure | None = None
    spawned_from: str = ""
    worker: str = ""
    expires: float = 0.0
    depends: tuple[str, ...] = ()
    tracked: bool = False
    timeout: float = 0.0
    start_by: float = 0.0  # it is dropped if it has not started by this time

    def digest(self) -> bytes:
        """Returns a digest of what no worker changes."""
        return _digest(
            self.id, self.klass, self.priority, self.retries, map(tag_text, self.tags), self.data
        )


class ImportedRecurring(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A recurring job of another system, which has run `count` times."""

    id: str
    queue: str
    interval: float
    next: float
    klass: str = ""
    data: str = "null"
    priority: float = 0.0
    retries: float = 0.0
    backlog: float = 0.0
    count: int = 0
    tags: tuple[Tag, ...] = ()


class ImportedTimes(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Times of one day: how many, their mean, the sum of their squared deviations, a histogram.

    `buckets` are pairs of whole seconds and how many times took so long, or as long as the minute,
    hour or day that begins there.
    """

    count: int = 0
    mean: float = 0.0
    vk: float = 0.0
    buckets: tuple[tuple[int, int], ...] = ()


class ImportedDay(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The statistics of a queue on one day (UTC), which `date` falls into."""

    queue: str
    date: float
    wait: ImportedTimes = ImportedTimes()
    run: ImportedTimes = ImportedTimes()
    retries: int = 0
    failures: int = 0


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The number of jobs that were imported, and of those that existed here already."""

    imported: int = 0
    present: int = 0


class JobsDigest(msgspec.Struct, frozen=True, kw_only=True):
    """The number of jobs by state, and a digest of all of them that ignores their order."""

    count: int
    digest: str
    states: dict[str, int]


class ImportOperations:
    """Operations of an import."""

    _ledger: "Ledger"

    @operation(role="admin")
    def import_jobs(
        self,
        jobs: Sequence[ImportedJob],
        *,
        recurring: Sequence[ImportedRecurring] = (),
        statistics: Sequence[ImportedDay] = (),
    ) -> Imported:
        """Imports jobs of another system as they are: state, history, failure, lock and time.

        A job whose id exists here is skipped. List a job after those that it depends on; a
        dependency that does not exist counts as complete. Publishes no notices and changes no
        statistics; those of past days can be given, and are skipped for days that have some here.
        Reads 4 keys for each and writes 3; each tag adds 4, each dependency 3. A day reads and
        writes 4.
        """
        given = len(jobs) + len(recurring) + len(statistics)
        check_jobs_count(given)
        ledger = self._ledger
        taken = sum(import_job(ledger, job) for job in jobs)
        taken += sum(_import_recurring(ledger, job) for job in recurring)
        taken += sum(_import_day(ledger, day) for day in statistics)
        return Imported(imported=taken, present=given - taken)

    @operation(reads=True)
    def digest(self, ids: Sequence[str]) -> JobsDigest:
        """Returns a digest of jobs: of their ids, classes, data, priorities, retries and tags.

        Jobs that do not exist are left out. It does not depend on the order. Reads 1 key for each,
        2 if its data is long.
        """
        check_jobs_count(len(ids))
        found = [job for job in self._ledger.jobs(list(ids)) if job is not None]
        whole = combined_digest(
            _digest(
                job.jid,
                job.klass,
                job.priority,
                job.retries,
                map(tag_text, job.tags),
                self._ledger.data_of(job),
            )
            for job in found
        )
        return JobsDigest(
            count=len(found),
            digest=whole.hex(),
            states=dict(Counter(job.state for job in found)),
        )


def _digest(
    id: str, klass: str, priority: float, retries: float, tags: Iterable[str], data: str
) -> bytes:
    parts = [id, klass, float(priority), float(retries), sorted(tags), data]
    return hashlib.sha256(_encode_json(parts)).digest()


def combined_digest(digests: Iterable[bytes]) -> bytes:
    """Returns a digest of all `digests`, the same in any order."""
    whole = 0
    for each in digests:
        whole ^= int.from_bytes(each, "big")
    return whole.to_bytes(32, "big")


# --- how it is done ---------------------------------------------------------------------------


def import_job(ledger: "Ledger", new: ImportedJob) -> bool:
    """Imports one job; returns whether it was new here."""
    check_name(new.id, "id")
    if ledger.job(new.id) is not None:
        return False
    job = _record_of(ledger, new)
    if new.state == COMPLETE:
        pairs: dict[bytes, bytes] = {}
        lists.enter_complete(ledger, job, pack_str(job.jid), new.time, pairs)
        ledger.tx.put_all(pairs, checked=True)
    else:
        keys = ledger.keys.queue(check_name(new.queue, "queue"))
        ledger.register_queue(keys, new.time)
        _ENTER[new.state](ledger, job, new)
    if new.start_by:
        deadlines.set_deadline(ledger, job, new.start_by, ledger.tx.now)
    if new.tracked:
        ledger.tx.put(ledger.keys.tracked(job.jid), pack_time(new.time))
    ledger.save(job)
    return True


def _record_of(ledger: "Ledger", new: ImportedJob) -> JobRecord:
    if new.klass:
        check_name(new.klass, "klass")
    if new.state not in (COMPLETE, *_ENTER):
        raise BadArgument.named("state", f"can't be imported: {new.state}")
    check_numbers(priority=new.priority, retries=new.retries, remaining=new.remaining)
    for time in (new.time, new.start, new.expires, new.timeout, new.start_by):
        check_time(time)
    job = JobRecord(
        jid=new.id,
        klass=new.klass,
        state=new.state,
        queue=new.queue,
        time=float(new.time),
        data=NO_SEPARATE_DATA,
        priority=new.priority + 0.0,
        retries=float(new.retries),
        remaining=float(new.remaining),
        failure=_with_short_message(new.failure),
        spawned_from=new.spawned_from,
        tracked=new.tracked,
        timeout=float(new.timeout),
    )
    ledger.set_data(job, json_text(JsonText(new.data)))
    for entry in new.history[-MAX_JOB_HISTORY_ENTRIES:]:
        job.history += encode(entry)
        job.entries += 1
    if job.entries > ledger.settings().history_length:
        shorten(job, ledger.settings().history_length)
    for tag in check_tags(list(new.tags)):
        tags.attach(ledger, job, tag, new.time)
    return job


def _with_short_message(failure: Failure | None) -> Failure | None:
    if failure is None:
        return None
    group = check_name(failure.group, "group")
    return Failure(group, cut_message(failure.message), failure.when, failure.worker)


def _enter_work(ledger: "Ledger", job: JobRecord, new: ImportedJob) -> None:
    lists.enter_work(ledger, job, new.time, front=new.state == STALLED)


def _enter_blocked(ledger: "Ledger", job: JobRecord, new: ImportedJob) -> None:
    """Enters a job with dependencies; it starts if they are complete, as it would have there."""
    dependencies.depend(ledger, job, list(new.depends))
    lists.enter(ledger, job, new.time, new.start)


def _enter_schedule(ledger: "Ledger", job: JobRecord, new: ImportedJob) -> None:
    lists.enter_schedule(ledger, job, new.start)


def _enter_lock(ledger: "Ledger", job: JobRecord, new: ImportedJob) -> None:
    """Enters a running job; it stays with its worker, which may renew the lock here."""
    keys = ledger.keys.queue(job.queue)
    worker = ledger.keys.worker(check_name(new.worker, "worker"))
    job.worker = new.worker
    job.expires = float(new.expires)
    job.place = keys.lock(job.expires, job.jid)
    ledger.tx.put(job.place, b"")
    ledger.tx.put(worker.held + pack_str(job.jid), pack_time(job.expires))
    if ledger.tx.get(worker.seen) is None:
        ledger.tx.put(worker.seen, pack_time(new.time))
    ledger.tx.add(keys.work_counts, HIGH)
    ledger.schedule_queue_check(keys, job.expires)


def _enter_failed(ledger: "Ledger", job: JobRecord, new: ImportedJob) -> None:
    """Puts the job into its group; the failure itself was counted where it happened."""
    failure = job.failure
    if failure is None:
        raise BadArgument.named("failure", "is missing: the job has failed")
    job.place = ledger.keys.failed_at(failure.group, failure.when, job.jid)
    ledger.tx.put(job.place, b"")
    ledger.tx.add(ledger.keys.failure_group(failure.group), 1)
    day = statistics.day_of(failure.when)
    statistics.tally(ledger, ledger.keys.queue(job.queue), "failed", day)


_ENTER: Final = {
    WAITING: _enter_work,
    STALLED: _enter_work,
    DEPENDS: _enter_blocked,
    SCHEDULED: _enter_schedule,
    RUNNING: _enter_lock,
    FAILED: _enter_failed,
}


def _import_recurring(ledger: "Ledger", new: ImportedRecurring) -> bool:
    if recurring.load(ledger, check_name(new.id, "id")) is not None:
        return False
    check_time(new.next)
    record = RecurringRecord(
        jid=new.id,
        klass=new.klass,
        queue=new.queue,
        data=json_text(JsonText(new.data)),
        next=float(new.next),
        interval=float(new.interval),
        priority=float(new.priority),
        retries=float(new.retries),
        backlog=float(new.backlog),
        count=new.count,
        tags=check_tags(list(new.tags)),
    )
    recurring.recur(ledger, record, ledger.tx.now)
    return True


def _import_day(ledger: "Ledger", new: ImportedDay) -> bool:
    """Imports a queue's day if nothing was counted here on it; returns whether it did."""
    keys = ledger.keys.queue(check_name(new.queue, "queue"))
    day = statistics.day_of(check_time(new.date))
    taken = False
    for kind, times in (("wait", new.wait), ("run", new.run)):
        check_numbers(mean=times.mean, vk=times.vk)
        taken |= times.count > 0 and statistics.import_times(
            ledger, keys, day, kind, (times.count, times.mean, times.vk), times.buckets
        )
    for name, number in (("retries", new.retries), ("failures", new.failures)):
        if number > 0 and not read_counter(ledger.tx.get(keys.tally(day, name))):
            statistics.tally(ledger, keys, name, day, min(number, MAX_IMPORTED_COUNT))
            taken = True
    return taken
