"""Recurring jobs: templates from which pop and peek make a job whenever one is due."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.declarations import operation
from holdfast.errors import BadArgument, UnknownRecurringJob
from holdfast.jobs import cron, lists, tags, unique
from holdfast.jobs.arguments import (
    check_jid,
    check_name,
    check_numbers,
    check_page_count,
    check_size,
    check_tags,
    from_json,
    json_text,
    tag_text,
)
from holdfast.jobs.layout import HIGH, QueueKeys, below, time_and_jid, until
from holdfast.jobs.puts import new_jid
from holdfast.jobs.records import (
    NEVER,
    NO_SEPARATE_DATA,
    WAITING,
    JobRecord,
    NewJob,
    RecurringJob,
    RecurringRecord,
    Tag,
)
from holdfast.limits import MAX_CRON_BACKLOG, MIN_RECURRING_SECONDS

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

_decode: Final = msgspec.msgpack.Decoder(RecurringRecord).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class RecurringOperations:
    """Operations on recurring jobs."""

    _ledger: "Ledger"

    @operation()
    def recur(
        self,
        queue: str,
        klass: str = "",
        data: Any = None,
        *,
        interval: float | None = None,
        cron: str | None = None,
        tz: str = "UTC",
        offset: float = 0,
        id: str | None = None,
        priority: float = 0,
        tags: Sequence[Tag] = (),
        retries: float = 0,
        backlog: float = 0,
        throttles: Sequence[str] = (),
        unique: str | None = None,
        unique_for: str | float = "running",
        now: float | None = None,
    ) -> str:
        """Creates a recurring job and returns its id. Replacing one keeps its count and its pause.

        Give either an `interval` in seconds (first run after `offset` seconds) or a `cron`
        expression with its time zone `tz`. If nobody popped the queue for a while, missed runs are
        caught up on: all of them, or with a `backlog` above 0 at most the newest `backlog` + 1; of
        a cron expression, a backlog is at most `MAX_CRON_BACKLOG`. The jobs take slots of
        `throttles`, and own the key `unique` as with `put`: a run that is due while another job
        owns the key is skipped. Reads 3 keys, writes 4.
        """
        ledger = self._ledger
        time = ledger.time(now)
        record = RecurringRecord(
            jid=new_jid(time) if id is None else id,
            klass=klass,
            queue=queue,
            data=json_text(data),
            next=time + offset,
            interval=interval or 0.0,
            cron=cron or "",
            tz=tz if cron else "",
            priority=float(priority),
            retries=retries,
            backlog=backlog,
            tags=check_tags(list(tags)),
            throttles=[check_name(name, "throttles") for name in throttles],
            unique="" if unique is None else check_name(unique, "unique"),
            unique_for=unique_for,
        )
        if (interval is None) == (cron is None):
            raise BadArgument("give either an interval or a cron expression")
        return recur(ledger, record, time)

    @operation()
    def unrecur(self, id: str) -> None:
        """Ends a recurring job; jobs that it has spawned stay. Reads 1 key, writes 3."""
        unrecur(self._ledger, check_jid(id))

    @operation()
    def recur_pause(self, id: str) -> None:
        """Pauses a recurring job: it spawns no jobs until `recur_resume`.

        >>> id = store.jobs.recur("reports", "Nightly", cron="30 2 * * *")
        >>> store.jobs.recur_pause(id)
        >>> store.jobs.recur_get(id).paused
        True

        Reads 1 key, writes 3.
        """
        pause(self._ledger, check_jid(id))

    @operation()
    def recur_resume(self, id: str, *, now: float | None = None) -> None:
        """Ends the pause of a recurring job; runs that it has missed are not caught up on.

        Reads 1 key, writes 4.
        """
        resume(self._ledger, check_jid(id), self._ledger.time(now))

    @operation(reads=True)
    def recurring(self, *, after: str | None = None, count: int = 25) -> list[RecurringJob]:
        """Returns up to `count` recurring jobs of all queues, by id, beginning after `after`.

        Reads 1 key for each.
        """
        ledger = self._ledger
        begin, end = below(ledger.keys.recurring)
        if after is not None:
            begin = ledger.keys.recurring_job(after) + b"\0"
        check_page_count(count)
        return [
            _to_recurring_job(_decode(value))
            for _, value in ledger.tx.scan(begin, end, limit=count)
        ]

    @operation(reads=True)
    def recur_get(self, id: str) -> RecurringJob | None:
        """Returns the recurring job, or None if it does not exist. Reads 1 key."""
        record = load(self._ledger, check_jid(id))
        return None if record is None else _to_recurring_job(record)

    @operation()
    def recur_update(
        self,
        id: str,
        *,
        priority: float | None = None,
        interval: float | None = None,
        retries: float | None = None,
        data: Any = None,
        klass: str | None = None,
        queue: str | None = None,
        backlog: float | None = None,
        now: float | None = None,
    ) -> None:
        """Changes the given attributes of a recurring job; None keeps one as it is.

        A new `interval` moves the next run by the difference.

        Reads 3 keys, writes up to 5.
        """
        ledger = self._ledger
        changes = {
            "priority": None if priority is None else float(priority),
            "interval": interval,
            "retries": retries,
            "data": None if data is None else json_text(data),
            "klass": klass,
            "queue": queue,
            "backlog": backlog,
        }
        given = {name: value for name, value in changes.items() if value is not None}
        update(ledger, id, given, ledger.time(now))

    @operation()
    def recur_tag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Adds tags to the jobs that a recurring job will spawn; returns all of its tags.

        Reads 1 key, writes 1.
        """
        return tuple(tag(self._ledger, id, list(tags)))

    @operation()
    def recur_untag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Removes tags from the jobs that a recurring job will spawn; returns the rest.

        Reads 1 key, writes 1.
        """
        return tuple(untag(self._ledger, id, list(tags)))


# --- how it is done ---------------------------------------------------------------------------


def load(ledger: "Ledger", jid: str) -> RecurringRecord | None:
    value = ledger.tx.get(ledger.keys.recurring_job(jid))
    return None if value is None else _decode(value)


def require(ledger: "Ledger", jid: str) -> RecurringRecord:
    """Returns the recurring job; raises `UnknownRecurringJob` if it does not exist."""
    record = load(ledger, jid)
    if record is None:
        raise UnknownRecurringJob.of(jid)
    return record


def save(ledger: "Ledger", record: RecurringRecord) -> None:
    check_size(record.data, f"the data of recurring job {record.jid}")
    ledger.tx.put(ledger.keys.recurring_job(record.jid), _encode(record))


def recur(ledger: "Ledger", record: RecurringRecord, now: float) -> str:
    """Stores a recurring job under its id, in place of any that is there."""
    check_name(record.queue, "queue")
    check_name(record.jid, "id")
    check_numbers(offset=record.next)
    _check_runs(record)
    if record.cron:
        record.next = cron.parsed(record.cron, record.tz).next_after(now)
    unique.check(_unique_claim(record))
    if not isinstance(record.unique_for, str):
        check_numbers(unique_for=record.unique_for)
    record.made = now
    before = load(ledger, record.jid)
    if before is not None:
        record.count = before.count
        if before.paused_run is not None:
            record.paused_run, record.next = record.next, NEVER
        _leave(ledger, before)
    ledger.register_queue(ledger.keys.queue(record.queue), now)
    _enter(ledger, record)
    return record.jid


def _check_runs(record: RecurringRecord) -> None:
    """Refuses runs that a pop could not count: too close together, or too many to look for."""
    check_numbers(interval=record.interval, priority=record.priority)
    if record.cron:
        if record.backlog > MAX_CRON_BACKLOG:
            raise BadArgument.named("backlog", f"must be at most {MAX_CRON_BACKLOG} for a cron")
    elif record.interval <= 0:
        raise BadArgument.named("interval", "must be greater than 0")
    elif record.interval < MIN_RECURRING_SECONDS:
        raise BadArgument.named("interval", f"must be at least {MIN_RECURRING_SECONDS} seconds")


def unrecur(ledger: "Ledger", jid: str) -> None:
    record = load(ledger, jid)
    if record is not None:
        _leave(ledger, record)
        ledger.tx.delete(ledger.keys.recurring_job(jid))


def pause(ledger: "Ledger", jid: str) -> None:
    """Moves the next run to a time that never comes, so that no other code has to know of it."""
    record = require(ledger, jid)
    if record.paused_run is None:
        _leave(ledger, record)
        record.paused_run, record.next = record.next, NEVER
        _enter(ledger, record)


def resume(ledger: "Ledger", jid: str, now: float) -> None:
    record = require(ledger, jid)
    if record.paused_run is not None:
        _leave(ledger, record)
        record.next, record.paused_run = _first_run_since(record, record.paused_run, now), None
        _enter(ledger, record)


def _first_run_since(record: RecurringRecord, run: float, now: float) -> float:
    """Returns the first run of a recurring job, from `run` on, that is not over at `now`."""
    if run >= now:
        return run
    if record.cron:
        return cron.parsed(record.cron, record.tz).next_after(now)
    return run + math.ceil((now - run) / record.interval) * record.interval


def _enter(ledger: "Ledger", record: RecurringRecord) -> None:
    keys = ledger.keys.queue(record.queue)
    ledger.tx.put(keys.next_run(record.next, record.jid), b"")
    ledger.tx.add(keys.other, HIGH)
    ledger.schedule_queue_check(keys, record.next)
    ledger.announce_ready(keys)  # a waiting worker sleeps until the run at most
    save(ledger, record)


def _leave(ledger: "Ledger", record: RecurringRecord) -> None:
    keys = ledger.keys.queue(record.queue)
    ledger.tx.delete(keys.next_run(record.next, record.jid))
    ledger.tx.add(keys.other, -HIGH)


def update(ledger: "Ledger", jid: str, changes: dict[str, Any], now: float) -> None:
    before = require(ledger, jid)
    if "interval" in changes and before.cron:
        raise BadArgument(f"recurring job {jid!r} has a cron expression, not an interval")
    record = msgspec.structs.replace(before, **changes)
    check_name(record.queue, "queue")
    _check_runs(record)
    _leave(ledger, before)
    if "interval" in changes:
        longer = record.interval - before.interval
        record.next = max(0.0, record.next + longer)  # of one that is paused, it stays never
        if record.paused_run is not None:
            record.paused_run = max(0.0, record.paused_run + longer)
    if "queue" in changes:
        ledger.register_queue(ledger.keys.queue(record.queue), now)
    _enter(ledger, record)


def tag(ledger: "Ledger", jid: str, more: list[Tag]) -> list[Tag]:
    record = require(ledger, jid)
    record.tags = check_tags([*record.tags, *more])
    save(ledger, record)
    return record.tags


def untag(ledger: "Ledger", jid: str, less: list[Tag]) -> list[Tag]:
    record = require(ledger, jid)
    unwanted = {tag_text(each) for each in less}
    record.tags = [each for each in record.tags if tag_text(each) not in unwanted]
    save(ledger, record)
    return record.tags


def _to_recurring_job(record: RecurringRecord) -> RecurringJob:
    return RecurringJob(
        id=record.jid,
        klass=record.klass,
        queue=record.queue,
        data=from_json(record.data),
        next=record.next if record.paused_run is None else record.paused_run,
        spec="cron" if record.cron else "interval",
        interval=record.interval,
        cron=record.cron,
        tz=record.tz,
        priority=record.priority,
        retries=record.retries,
        backlog=record.backlog,
        count=record.count,
        tags=tuple(record.tags),
        throttles=tuple(record.throttles),
        paused=record.paused_run is not None,
        unique=record.unique or None,
        unique_for=record.unique_for,
    )


# --- spawning ---------------------------------------------------------------------------------


def spawn(ledger: "Ledger", keys: QueueKeys, now: float, room: int) -> None:
    """Makes the jobs that are due, at most `room`, those of the earliest recurring job first."""
    if room <= 0:
        return
    for key, _ in list(ledger.tx.scan(*until(keys.recurring, now), limit=room)):
        if room <= 0:
            return
        record = load(ledger, time_and_jid(key, keys.recurring)[1])
        assert record is not None
        spawned = _spawn_from(ledger, record, now, room)
        room -= spawned
        ledger.tx.delete(key)
        ledger.tx.put(keys.next_run(record.next, record.jid), b"")
        save(ledger, record)


def _spawn_from(ledger: "Ledger", record: RecurringRecord, now: float, room: int) -> int:
    """Makes the due jobs of one recurring job; its record then holds the new count and next run."""
    spawned = 0
    run = _skip_backlog(record, math.floor(record.next), now)
    while run <= now and spawned < room:
        if not _spawn(ledger, record, run, now):
            run = _first_after(record, run, now)  # the key is owned now, so it is for all of them
        else:
            spawned += 1
            run = _run_after(record, run)
        record.made = 0.0
    record.next = run
    return spawned


def _first_after(record: RecurringRecord, run: float, now: float) -> float:
    """Returns the first run that is later than `now`; `run` is not."""
    if record.cron:
        return cron.parsed(record.cron, record.tz).next_after(now)
    return run + (math.floor((now - run) / record.interval) + 1) * record.interval


def _run_after(record: RecurringRecord, run: float) -> float:
    return (
        cron.parsed(record.cron, record.tz).next_after(run)
        if record.cron
        else run + record.interval
    )


def _skip_backlog(record: RecurringRecord, run: float, now: float) -> float:
    """Returns the first run to catch up on: a backlog above 0 skips all but the newest."""
    if record.backlog <= 0 or run > now:
        return run
    if record.cron:
        kept = int(min(record.backlog, MAX_CRON_BACKLOG)) + 1
        return cron.parsed(record.cron, record.tz).newest_runs(run, now, kept)[0]
    missed = (now - run) / record.interval
    if missed > record.backlog:
        return run + math.ceil(missed - record.backlog) * record.interval
    return run


def _spawn(ledger: "Ledger", record: RecurringRecord, run: float, now: float) -> bool:
    """Makes one job that was due at `run`, under the next number that is free.

    Its wait is counted from that time; its tags are attached now. Returns False, and makes no job,
    if another job owns the unique key.
    """
    count = _free_number(ledger, record)
    jid = f"{record.jid}-{count}"
    if record.unique and unique.claim(ledger, _unique_claim(record), jid, now) is not None:
        return False
    record.count = count
    job = JobRecord(
        jid=jid,
        klass=record.klass,
        state=WAITING,
        queue=record.queue,
        time=run,
        data=NO_SEPARATE_DATA,
        priority=record.priority,
        retries=record.retries,
        remaining=record.retries,
        spawned_from=record.jid,
        throttles=record.throttles,
        unique=record.unique,
        unique_for=record.unique_for if isinstance(record.unique_for, str) else "",
        tracked=ledger.tx.get(ledger.keys.tracked(jid)) is not None,
    )
    ledger.set_data(job, record.data)
    for each in record.tags:
        tags.attach(ledger, job, each, now)
    ledger.add_to_history(job, "put", run, {"q": record.queue})
    ledger.tx.add(ledger.keys.queue(record.queue).puts, 1)
    lists.enter_work(ledger, job, run)
    ledger.save(job)
    return True


def _free_number(ledger: "Ledger", record: RecurringRecord) -> int:
    """Returns the number of the next job, which no job has yet.

    Usually that is the first number that is tried. If numbers start over, those in use follow each
    other, so doubled and then halved steps find their end in a few reads.
    """

    def is_used(number: int) -> bool:
        return ledger.tx.get(ledger.keys.job(f"{record.jid}-{number}")) is not None

    used, step = record.count, 1
    while is_used(used + step):
        used, step = used + step, step * 2
    while step > 1:
        half = step // 2
        if is_used(used + half):
            used, step = used + half, step - half
        else:
            step = half
    return used + 1


def _unique_claim(record: RecurringRecord) -> NewJob:
    return NewJob(queue=record.queue, unique=record.unique, unique_for=record.unique_for)
