"""Records: those that are stored, then those that callers get."""

from typing import Any, Final, Literal

import msgspec

from holdfast.error_text import reason_of

# --- stored -----------------------------------------------------------------------------------

WAITING: Final = "waiting"
SCHEDULED: Final = "scheduled"
DEPENDS: Final = "depends"
RUNNING: Final = "running"
STALLED: Final = "stalled"
FAILED: Final = "failed"
COMPLETE: Final = "complete"
THROTTLED: Final = "throttled"

Tag = str | int | float
DEFAULT_RETRIES: Final = 5.0
NO_SEPARATE_DATA: Final = " "  # data of a job that has no data yet, and no separate key for it
NEVER: Final = float("inf")


class HistoryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened to a job, at a whole second; `more` has the details."""

    what: str
    when: int
    more: dict[str, Any] = {}


class Failure(msgspec.Struct, frozen=True):
    """The last failure of a job. It stays visible until the job completes."""

    group: str
    message: str
    when: float
    worker: str

    @property
    def reason(self) -> str:
        """The message in one line: of a traceback, the exception."""
        return reason_of(self.message)


class JobRecord(msgspec.Struct, omit_defaults=True):
    """A job as it is stored.

    Operations change a decoded copy and write it back, so it isn't frozen.
    """

    jid: str
    klass: str
    state: str
    queue: str
    place: bytes = b""  # the one key of a list that the job occupies, by which it leaves the list
    time: float = 0.0  # when it was last put, popped or completed: waits are measured from it
    data: str = ""  # JSON text, or "" when it has its own key
    worker: str = ""
    expires: float = 0.0  # as its holder was told; a grace period is not in it
    lock: int = 0  # the fencing number of the newest lock
    priority: float = 0.0
    retries: float = DEFAULT_RETRIES
    remaining: float = DEFAULT_RETRIES
    history: bytes = b""  # its entries, each encoded separately: adding one decodes no others
    entries: int = 0  # how many these are
    tags: list[Tag] = []
    tagged: list[float] = []  # when each of `tags` was attached
    failure: Failure | None = None
    spawned_from: str = ""
    tracked: bool = False
    # The holder of this lock was told that its lock had expired.
    holder_notified: bool = msgspec.field(default=False, name="noticed")
    start: float = 0.0  # start time to use once dependencies are met
    unmet: int = 0  # how many jobs it waits for
    # Other jobs may wait for it.
    has_dependents: bool = msgspec.field(default=False, name="needed")
    # How often it was put again while jobs that had waited for its completion were not released
    # yet: those that wait for it since then carry the number.
    round: int = 0
    progress: float | None = None
    progress_text: str = ""
    has_result: bool = False
    unique: str = ""
    unique_for: str = ""
    throttles: list[str] = []
    # The throttles that this lock occupies.
    held_throttles: list[str] = msgspec.field(default_factory=list, name="holds")
    waits_for_throttle: str = msgspec.field(default="", name="aside")
    has_log: bool = False
    origin: str = ""  # the queue that it failed in, of a job in a dead-letter queue
    rate_key: str = ""
    rate_waits: bool = False  # scheduled for when the rate of its key lets it go
    timeout: float = 0.0  # how long one run may take; 0 is no limit
    start_by: float = 0.0  # it is dropped if it has not started by this time; 0 is no limit
    batch: str = ""
    has_steps: bool = False  # or signals
    awaits: str = ""  # the signal that ends its wait early
    parent: str = ""  # the workflow that waits for it, and continues after its failure too
    waited: float = 0.0  # how long it had waited when it was popped


class QueueRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A queue as it is stored, without its lists."""

    known_since: float | None = None
    paused: bool = False
    wake: float = NEVER  # no lock ends, no job becomes due and none recurs before this time
    # The store's clock when `wake` was written; 0 if there is no such time.
    clock_at_wake: float = msgspec.field(default=0.0, name="looked")
    # No two jobs of one priority entered its work list at a later time.
    last_shared_time: float = msgspec.field(default=-NEVER, name="crowded")


class RecurringRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A recurring job as it is stored."""

    jid: str
    klass: str
    queue: str
    data: str
    next: float
    interval: float = 0.0
    cron: str = ""
    tz: str = ""
    priority: float = 0.0
    retries: float = 0.0
    backlog: float = 0.0
    count: int = 0
    tags: list[Tag] = []
    made: float = 0.0  # when `next` was chosen by a caller; 0 once it follows from another run
    throttles: list[str] = []
    paused_run: float | None = None  # while it is paused, the run that would be next
    unique: str = ""
    unique_for: str | float = "running"


class UniqueRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The owner of a unique key, and until when if it is owned for a time."""

    jid: str
    until: float | None = None
    since: float = 0.0  # when it was taken for a time


class ThrottleRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A named maximum of jobs that run at once; 0 is no limit."""

    maximum: int = 0
    expires: float | None = None
    held: int = 0
    waiting: int = 0


class BatchRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A batch as it is stored; its counts are counters of their own."""

    id: str
    opened: float
    closed: float | None = None
    on_success: "NewJob | None" = None
    on_settled: "NewJob | None" = None
    success_put: bool = False  # a callback is put once
    settled_put: bool = False


class ResultRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The result of a job as JSON text, and until when it is kept."""

    text: str
    expires: float | None = None


# --- given to callers -------------------------------------------------------------------------
# Empty fields are encoded too: a client that reads JSON in another language knows no defaults.

State = Literal[
    "waiting", "scheduled", "depends", "running", "stalled", "failed", "complete", "throttled"
]


class Job(msgspec.Struct, frozen=True):
    """A job at one moment.

    `lock` is the fencing number: it grows with every lock, so that heartbeat, complete, fail and
    retry can tell the present holder from one whose lock was given away.
    """

    id: str
    klass: str
    state: State
    queue: str = ""
    worker: str = ""
    data: Any = None
    priority: float = 0.0
    expires: float = 0.0
    lock: int = 0
    retries: float = DEFAULT_RETRIES
    remaining: float = DEFAULT_RETRIES
    tags: tuple[Tag, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    failure: Failure | None = None
    spawned_from: str | None = None
    tracked: bool = False
    dependents: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    progress: float | None = None
    progress_text: str = ""
    throttles: tuple[str, ...] = ()
    unique: str | None = None
    origin: str | None = None
    rate_key: str | None = None
    timeout: float | None = None
    start_by: float | None = None
    batch: str | None = None


class NewJob(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A job for `put_many`: the arguments of `put`."""

    queue: str
    klass: str = ""
    data: Any = None
    id: str | None = None
    delay: float = 0
    priority: float | None = None
    tags: tuple[Tag, ...] | None = None
    retries: float | None = None
    depends: tuple[str, ...] | None = None
    throttles: tuple[str, ...] | None = None
    unique: str | None = None
    unique_for: str | float = "running"
    unique_mode: str = "keep"
    at: float | None = None
    expires: float | None = None
    timeout: float | None = None
    rate_key: str | None = None
    batch: str | None = None
    parent: str = ""  # the workflow whose child it is, which a failure continues too


class RecurringJob(msgspec.Struct, frozen=True, kw_only=True):
    """A recurring job; `count` is how many jobs it has spawned, `next` its next run.

    While it is `paused`, `next` is the run that would be next without the pause.
    """

    id: str
    klass: str
    queue: str
    data: Any
    next: float
    spec: Literal["interval", "cron"] = "interval"
    interval: float = 0.0
    cron: str = ""
    tz: str = ""
    priority: float = 0.0
    retries: float = 0.0
    backlog: float = 0.0
    count: int = 0
    tags: tuple[Tag, ...] = ()
    throttles: tuple[str, ...] = ()
    paused: bool = False
    unique: str | None = None
    unique_for: str | float = "running"


class QueueCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of jobs in each list of a queue. `stalled` counts locks that have ended.

    `limited` is the number of seconds until the queue's rate allows the next job; 0 means now.
    """

    name: str
    waiting: int = 0
    running: int = 0
    stalled: int = 0
    scheduled: int = 0
    depends: int = 0
    recurring: int = 0
    throttled: int = 0
    paused: bool = False
    limited: float = 0.0


class WorkerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of jobs that a worker holds, and of its locks that have ended."""

    name: str
    jobs: int = 0
    stalled: int = 0
    seen: float = 0.0


class WorkerJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that a worker holds, and those whose locks have ended, newest lock first."""

    jobs: tuple[str, ...] = ()
    stalled: tuple[str, ...] = ()


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of job ids and how many there are in all."""

    total: int
    jobs: tuple[str, ...] = ()


class TrackedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Tracked jobs, and the ids of tracked jobs that are gone."""

    jobs: tuple[Job, ...] = ()
    expired: tuple[str, ...] = ()


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Wait or run times of a day in seconds.

    `histogram` has the 148 numbers s0..s59, m1..m59, h1..h23, d1..d6.
    """

    count: int = 0
    mean: float = 0.0
    std: float = 0.0
    histogram: tuple[int, ...] = ()


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of a queue on one day."""

    wait: Times
    run: Times
    retries: int = 0
    failures: int = 0
    failed: int = 0
    expired: int = 0


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds: their mean, and what half, 90 % and 99 % of them do not exceed."""

    count: int = 0
    mean: float = 0.0
    std: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    longest: float = 0.0


class StatsRow(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes of the jobs of one class, tag or worker.

    `retries` are runs whose lock has ended, and runs that used up a retry, as after an error.
    """

    name: str
    completed: int = 0
    failures: int = 0
    retries: int = 0
    wait: Spread = Spread()
    run: Spread = Spread()


class StatsTable(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of a queue by name, over the days from `since` to before `until`.

    `names` is the number of names with their own row; `others` is the sum of all other names, None
    if there are no others.
    """

    queue: str
    by: str
    since: float
    until: float
    names: int = 0
    rows: tuple[StatsRow, ...] = ()
    others: StatsRow | None = None


class Throttle(msgspec.Struct, frozen=True, kw_only=True):
    """A named maximum of jobs that run at once; 0 is no limit."""

    name: str
    maximum: int = 0
    expires: float | None = None
    locks: int = 0
    pending: int = 0


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of jobs: how many there are, and what became of them.

    `is_settled` when it is closed and none of its jobs is `pending`.
    """

    id: str
    opened: float
    closed: float | None = None
    total: int = 0
    complete: int = 0
    failed: int = 0
    canceled: int = 0
    pending: int = 0
    is_settled: bool = False


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """A page of failed jobs; `cursor` is where the next page begins, None after the last."""

    jobs: tuple[Job, ...] = ()
    cursor: str | None = None
