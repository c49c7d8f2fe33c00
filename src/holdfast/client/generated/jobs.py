"""The operations of jobs, for a client. Made by `make client` from operations.py."""

from collections.abc import Sequence
from typing import Any, Final

from holdfast.client.calls import Call
from holdfast.client.faces import AwaitFace, CallFace, Handle, RecordFace
from holdfast.jobs.failures import Match
from holdfast.jobs.logs import LogLine
from holdfast.jobs.records import (
    DeadLetters,
    Job,
    JobPage,
    NewJob,
    QueueCounts,
    QueueStats,
    RecurringJob,
    Tag,
    Throttle,
    TrackedJobs,
    WorkerCounts,
    WorkerJobs,
)
from holdfast.jobs.reports import Report, Reported, Take
from holdfast.jobs.settings import Value
from holdfast.jobs.settlements import UNSET
from holdfast.jobs.worker_programs import WorkerProgram

_ANNOUNCE_WORKER: Final[Call[None]] = Call(
    "jobs.announce_worker", "write", only_reads=False, result=None
)

_CANCEL: Final[Call[list[str]]] = Call("jobs.cancel", "long", only_reads=False, result=list[str])

_CANCEL_QUEUE: Final[Call[int]] = Call("jobs.cancel_queue", "long", only_reads=False, result=int)

_COMPLETE: Final[Call[str]] = Call("jobs.complete", "write", only_reads=False, result=str)

_COMPLETE_AND_POP: Final[Call[list[Job]]] = Call(
    "jobs.complete_and_pop", "write", only_reads=False, result=list[Job]
)

_CONFIG: Final[Call[dict[str, Value]]] = Call(
    "jobs.config", "read", only_reads=True, result=dict[str, Value]
)

_CONFIG_GET: Final[Call[Value | None]] = Call(
    "jobs.config_get", "read", only_reads=True, result=Value | None
)

_CONFIG_SET: Final[Call[None]] = Call("jobs.config_set", "write", only_reads=False, result=None)

_CONFIG_UNSET: Final[Call[None]] = Call("jobs.config_unset", "write", only_reads=False, result=None)

_COUNTS: Final[Call[QueueCounts]] = Call("jobs.counts", "long", only_reads=True, result=QueueCounts)

_DEAD_LETTERS: Final[Call[DeadLetters]] = Call(
    "jobs.dead_letters", "read", only_reads=True, result=DeadLetters
)

_DEPENDS_OFF: Final[Call[None]] = Call("jobs.depends_off", "write", only_reads=False, result=None)

_DEPENDS_ON: Final[Call[None]] = Call("jobs.depends_on", "write", only_reads=False, result=None)

_FAIL: Final[Call[str]] = Call("jobs.fail", "write", only_reads=False, result=str)

_FAILED: Final[Call[dict[str, int]]] = Call(
    "jobs.failed", "read", only_reads=True, result=dict[str, int]
)

_FAILED_IN: Final[Call[JobPage]] = Call("jobs.failed_in", "read", only_reads=True, result=JobPage)

_GET: Final[Call[Job | None]] = Call("jobs.get", "read", only_reads=True, result=Job | None)

_HEARTBEAT: Final[Call[float]] = Call("jobs.heartbeat", "write", only_reads=False, result=float)

_JOBS: Final[Call[list[str]]] = Call("jobs.jobs", "long", only_reads=True, result=list[str])

_LENGTH: Final[Call[int]] = Call("jobs.length", "read", only_reads=True, result=int)

_LOG: Final[Call[None]] = Call("jobs.log", "write", only_reads=False, result=None)

_MULTIGET: Final[Call[list[Job]]] = Call("jobs.multiget", "read", only_reads=True, result=list[Job])

_PAUSE: Final[Call[None]] = Call("jobs.pause", "long", only_reads=False, result=None)

_PEEK: Final[Call[list[Job]]] = Call("jobs.peek", "long", only_reads=True, result=list[Job])

_POP: Final[Call[list[Job]]] = Call("jobs.pop", "write", only_reads=False, result=list[Job])

_POP_WAIT: Final[Call[list[Job]]] = Call(
    "jobs.pop_wait", "wait", only_reads=False, result=list[Job]
)

_PRIORITY: Final[Call[None]] = Call("jobs.priority", "write", only_reads=False, result=None)

_PUT: Final[Call[str]] = Call("jobs.put", "write", only_reads=False, result=str)

_PUT_MANY: Final[Call[list[str]]] = Call(
    "jobs.put_many", "write", only_reads=False, result=list[str]
)

_QUEUE_FORGET: Final[Call[None]] = Call("jobs.queue_forget", "write", only_reads=False, result=None)

_QUEUES: Final[Call[list[QueueCounts]]] = Call(
    "jobs.queues", "long", only_reads=True, result=list[QueueCounts]
)

_READ_LOG: Final[Call[tuple[LogLine, ...]]] = Call(
    "jobs.read_log", "read", only_reads=True, result=tuple[LogLine, ...]
)

_RECUR: Final[Call[str]] = Call("jobs.recur", "write", only_reads=False, result=str)

_RECUR_GET: Final[Call[RecurringJob | None]] = Call(
    "jobs.recur_get", "read", only_reads=True, result=RecurringJob | None
)

_RECUR_TAG: Final[Call[tuple[Tag, ...]]] = Call(
    "jobs.recur_tag", "write", only_reads=False, result=tuple[Tag, ...]
)

_RECUR_UNTAG: Final[Call[tuple[Tag, ...]]] = Call(
    "jobs.recur_untag", "write", only_reads=False, result=tuple[Tag, ...]
)

_RECUR_UPDATE: Final[Call[None]] = Call("jobs.recur_update", "write", only_reads=False, result=None)

_REPORT: Final[Call[Reported]] = Call("jobs.report", "write", only_reads=False, result=Reported)

_REQUEUE: Final[Call[str]] = Call("jobs.requeue", "write", only_reads=False, result=str)

_RESULT: Final[Call[Any]] = Call("jobs.result", "read", only_reads=True, result=Any)

_RESULT_WAIT: Final[Call[Job]] = Call("jobs.result_wait", "wait", only_reads=True, result=Job)

_RETRY: Final[Call[int]] = Call("jobs.retry", "write", only_reads=False, result=int)

_RETRY_FAILED: Final[Call[int]] = Call("jobs.retry_failed", "long", only_reads=False, result=int)

_STATS: Final[Call[QueueStats]] = Call("jobs.stats", "read", only_reads=True, result=QueueStats)

_TAG: Final[Call[tuple[Tag, ...]]] = Call(
    "jobs.tag", "write", only_reads=False, result=tuple[Tag, ...]
)

_TAGGED: Final[Call[JobPage]] = Call("jobs.tagged", "read", only_reads=True, result=JobPage)

_THROTTLE_DELETE: Final[Call[int]] = Call(
    "jobs.throttle_delete", "long", only_reads=False, result=int
)

_THROTTLE_GET: Final[Call[Throttle]] = Call(
    "jobs.throttle_get", "read", only_reads=True, result=Throttle
)

_THROTTLE_LOCKS: Final[Call[JobPage]] = Call(
    "jobs.throttle_locks", "read", only_reads=True, result=JobPage
)

_THROTTLE_PENDING: Final[Call[JobPage]] = Call(
    "jobs.throttle_pending", "read", only_reads=True, result=JobPage
)

_THROTTLE_SET: Final[Call[None]] = Call("jobs.throttle_set", "write", only_reads=False, result=None)

_TIMEOUT: Final[Call[None]] = Call("jobs.timeout", "write", only_reads=False, result=None)

_TOP_TAGS: Final[Call[tuple[str, ...]]] = Call(
    "jobs.top_tags", "read", only_reads=True, result=tuple[str, ...]
)

_TRACK: Final[Call[bool]] = Call("jobs.track", "write", only_reads=False, result=bool)

_TRACKED: Final[Call[TrackedJobs]] = Call(
    "jobs.tracked", "read", only_reads=True, result=TrackedJobs
)

_UNFAIL: Final[Call[int]] = Call("jobs.unfail", "long", only_reads=False, result=int)

_UNPAUSE: Final[Call[None]] = Call("jobs.unpause", "write", only_reads=False, result=None)

_UNRECUR: Final[Call[None]] = Call("jobs.unrecur", "write", only_reads=False, result=None)

_UNTAG: Final[Call[tuple[Tag, ...]]] = Call(
    "jobs.untag", "write", only_reads=False, result=tuple[Tag, ...]
)

_UNTRACK: Final[Call[bool]] = Call("jobs.untrack", "write", only_reads=False, result=bool)

_WITHDRAW_WORKER: Final[Call[None]] = Call(
    "jobs.withdraw_worker", "write", only_reads=False, result=None
)

_WORKER: Final[Call[WorkerJobs]] = Call("jobs.worker", "read", only_reads=True, result=WorkerJobs)

_WORKER_DEREGISTER: Final[Call[None]] = Call(
    "jobs.worker_deregister", "write", only_reads=False, result=None
)

_WORKER_PROGRAMS: Final[Call[list[WorkerProgram]]] = Call(
    "jobs.worker_programs", "read", only_reads=True, result=list[WorkerProgram]
)

_WORKERS: Final[Call[list[WorkerCounts]]] = Call(
    "jobs.workers", "long", only_reads=True, result=list[WorkerCounts]
)


def _announce_worker(program: WorkerProgram, *, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"program": program}
    if now is not None:
        given["now"] = now
    return given


def _cancel(*ids: str, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if ids:
        given["ids"] = ids
    if now is not None:
        given["now"] = now
    return given


def _cancel_queue(queue: str) -> dict[str, Any]:
    return {"queue": queue}


def _complete(
    id: str,
    worker: str,
    *,
    queue: str | None = None,
    data: Any = UNSET,
    next: str | None = None,
    delay: float = 0,
    depends: Sequence[str] = (),
    result: Any = UNSET,
    result_ttl: float | None = None,
    lock: int | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id, "worker": worker}
    if queue is not None:
        given["queue"] = queue
    if data is not UNSET:
        given["data"] = data
    if next is not None:
        given["next"] = next
    if delay != 0:
        given["delay"] = delay
    if depends != ():
        given["depends"] = depends
    if result is not UNSET:
        given["result"] = result
    if result_ttl is not None:
        given["result_ttl"] = result_ttl
    if lock is not None:
        given["lock"] = lock
    if now is not None:
        given["now"] = now
    return given


def _complete_and_pop(
    id: str,
    worker: str,
    count: int = 1,
    *,
    pop_from: str | None = None,
    data: Any = UNSET,
    next: str | None = None,
    result: Any = UNSET,
    lock: int | None = None,
    lock_seconds: float | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id, "worker": worker}
    if count != 1:
        given["count"] = count
    if pop_from is not None:
        given["pop_from"] = pop_from
    if data is not UNSET:
        given["data"] = data
    if next is not None:
        given["next"] = next
    if result is not UNSET:
        given["result"] = result
    if lock is not None:
        given["lock"] = lock
    if lock_seconds is not None:
        given["lock_seconds"] = lock_seconds
    if now is not None:
        given["now"] = now
    return given


def _config_get(option: str) -> dict[str, Any]:
    return {"option": option}


def _config_set(option: str, value: Value) -> dict[str, Any]:
    return {"option": option, "value": value}


def _config_unset(option: str) -> dict[str, Any]:
    return {"option": option}


def _counts(queue: str, *, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"queue": queue}
    if now is not None:
        given["now"] = now
    return given


def _dead_letters(
    match: Match | None = None, *, cursor: str | None = None, count: int = 25
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if match is not None:
        given["match"] = match
    if cursor is not None:
        given["cursor"] = cursor
    if count != 25:
        given["count"] = count
    return given


def _depends_off(id: str, *ids: str, all: bool = False, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id}
    if ids:
        given["ids"] = ids
    if all is not False:
        given["all"] = all
    if now is not None:
        given["now"] = now
    return given


def _depends_on(id: str, *ids: str) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id}
    if ids:
        given["ids"] = ids
    return given


def _fail(
    id: str,
    worker: str,
    group: str,
    message: str,
    *,
    data: Any = UNSET,
    lock: int | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id, "worker": worker, "group": group, "message": message}
    if data is not UNSET:
        given["data"] = data
    if lock is not None:
        given["lock"] = lock
    if now is not None:
        given["now"] = now
    return given


def _failed_in(group: str, *, offset: int = 0, count: int = 25) -> dict[str, Any]:
    given: dict[str, Any] = {"group": group}
    if offset != 0:
        given["offset"] = offset
    if count != 25:
        given["count"] = count
    return given


def _get(id: str) -> dict[str, Any]:
    return {"id": id}


def _heartbeat(
    id: str,
    worker: str,
    *,
    data: Any = UNSET,
    progress: float | None = None,
    progress_text: str = "",
    lock: int | None = None,
    lock_seconds: float | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id, "worker": worker}
    if data is not UNSET:
        given["data"] = data
    if progress is not None:
        given["progress"] = progress
    if progress_text != "":
        given["progress_text"] = progress_text
    if lock is not None:
        given["lock"] = lock
    if lock_seconds is not None:
        given["lock_seconds"] = lock_seconds
    if now is not None:
        given["now"] = now
    return given


def _jobs(
    state: str, queue: str = "", *, offset: int = 0, count: int = 25, now: float | None = None
) -> dict[str, Any]:
    given: dict[str, Any] = {"state": state}
    if queue != "":
        given["queue"] = queue
    if offset != 0:
        given["offset"] = offset
    if count != 25:
        given["count"] = count
    if now is not None:
        given["now"] = now
    return given


def _length(queue: str) -> dict[str, Any]:
    return {"queue": queue}


def _log(
    id: str, message: str, data: dict[str, Any] | None = None, *, now: float | None = None
) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id, "message": message}
    if data is not None:
        given["data"] = data
    if now is not None:
        given["now"] = now
    return given


def _multiget(*ids: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if ids:
        given["ids"] = ids
    return given


def _pause(*queues: str, stop_running: bool = False) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if queues:
        given["queues"] = queues
    if stop_running is not False:
        given["stop_running"] = stop_running
    return given


def _peek(queue: str, count: int = 1, *, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"queue": queue}
    if count != 1:
        given["count"] = count
    if now is not None:
        given["now"] = now
    return given


def _pop(
    queue: str,
    worker: str,
    count: int = 1,
    *,
    lock_seconds: float | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"queue": queue, "worker": worker}
    if count != 1:
        given["count"] = count
    if lock_seconds is not None:
        given["lock_seconds"] = lock_seconds
    if now is not None:
        given["now"] = now
    return given


def _pop_wait(
    queues: str | Sequence[str],
    worker: str,
    count: int = 1,
    *,
    timeout: float | None = None,
    lock_seconds: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"queues": queues, "worker": worker}
    if count != 1:
        given["count"] = count
    if timeout is not None:
        given["timeout"] = timeout
    if lock_seconds is not None:
        given["lock_seconds"] = lock_seconds
    return given


def _priority(id: str, priority: float) -> dict[str, Any]:
    return {"id": id, "priority": priority}


def _put(
    queue: str,
    klass: str = "",
    data: Any = None,
    *,
    id: str | None = None,
    delay: float = 0,
    priority: float | None = None,
    tags: Sequence[Tag] | None = None,
    retries: float | None = None,
    depends: Sequence[str] | None = None,
    throttles: Sequence[str] | None = None,
    unique: str | None = None,
    unique_for: str | float = "running",
    unique_mode: str = "keep",
    worker: str = "",
    now: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"queue": queue}
    if klass != "":
        given["klass"] = klass
    if data is not None:
        given["data"] = data
    if id is not None:
        given["id"] = id
    if delay != 0:
        given["delay"] = delay
    if priority is not None:
        given["priority"] = priority
    if tags is not None:
        given["tags"] = tags
    if retries is not None:
        given["retries"] = retries
    if depends is not None:
        given["depends"] = depends
    if throttles is not None:
        given["throttles"] = throttles
    if unique is not None:
        given["unique"] = unique
    if unique_for != "running":
        given["unique_for"] = unique_for
    if unique_mode != "keep":
        given["unique_mode"] = unique_mode
    if worker != "":
        given["worker"] = worker
    if now is not None:
        given["now"] = now
    return given


def _put_many(
    jobs: Sequence[NewJob], *, worker: str = "", now: float | None = None
) -> dict[str, Any]:
    given: dict[str, Any] = {"jobs": jobs}
    if worker != "":
        given["worker"] = worker
    if now is not None:
        given["now"] = now
    return given


def _queue_forget(*queues: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if queues:
        given["queues"] = queues
    return given


def _queues(*, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if now is not None:
        given["now"] = now
    return given


def _read_log(id: str) -> dict[str, Any]:
    return {"id": id}


def _recur(
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
    now: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"queue": queue}
    if klass != "":
        given["klass"] = klass
    if data is not None:
        given["data"] = data
    if interval is not None:
        given["interval"] = interval
    if cron is not None:
        given["cron"] = cron
    if tz != "UTC":
        given["tz"] = tz
    if offset != 0:
        given["offset"] = offset
    if id is not None:
        given["id"] = id
    if priority != 0:
        given["priority"] = priority
    if tags != ():
        given["tags"] = tags
    if retries != 0:
        given["retries"] = retries
    if backlog != 0:
        given["backlog"] = backlog
    if now is not None:
        given["now"] = now
    return given


def _recur_get(id: str) -> dict[str, Any]:
    return {"id": id}


def _recur_tag(id: str, *tags: Tag) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id}
    if tags:
        given["tags"] = tags
    return given


def _recur_untag(id: str, *tags: Tag) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id}
    if tags:
        given["tags"] = tags
    return given


def _recur_update(
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
) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id}
    if priority is not None:
        given["priority"] = priority
    if interval is not None:
        given["interval"] = interval
    if retries is not None:
        given["retries"] = retries
    if data is not None:
        given["data"] = data
    if klass is not None:
        given["klass"] = klass
    if queue is not None:
        given["queue"] = queue
    if backlog is not None:
        given["backlog"] = backlog
    if now is not None:
        given["now"] = now
    return given


def _report(
    reports: Sequence[Report],
    *,
    takes: Sequence[Take] = (),
    all_or_none: bool = False,
    now: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"reports": reports}
    if takes != ():
        given["takes"] = takes
    if all_or_none is not False:
        given["all_or_none"] = all_or_none
    if now is not None:
        given["now"] = now
    return given


def _requeue(
    queue: str,
    id: str,
    *,
    klass: str | None = None,
    data: Any = None,
    delay: float = 0,
    priority: float | None = None,
    tags: Sequence[Tag] | None = None,
    retries: float | None = None,
    depends: Sequence[str] | None = None,
    worker: str = "",
    now: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"queue": queue, "id": id}
    if klass is not None:
        given["klass"] = klass
    if data is not None:
        given["data"] = data
    if delay != 0:
        given["delay"] = delay
    if priority is not None:
        given["priority"] = priority
    if tags is not None:
        given["tags"] = tags
    if retries is not None:
        given["retries"] = retries
    if depends is not None:
        given["depends"] = depends
    if worker != "":
        given["worker"] = worker
    if now is not None:
        given["now"] = now
    return given


def _result(id: str) -> dict[str, Any]:
    return {"id": id}


def _result_wait(id: str, *, timeout: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id}
    if timeout is not None:
        given["timeout"] = timeout
    return given


def _retry(
    id: str,
    worker: str,
    *,
    queue: str | None = None,
    delay: float = 0,
    group: str | None = None,
    message: str | None = None,
    free: bool = False,
    lock: int | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id, "worker": worker}
    if queue is not None:
        given["queue"] = queue
    if delay != 0:
        given["delay"] = delay
    if group is not None:
        given["group"] = group
    if message is not None:
        given["message"] = message
    if free is not False:
        given["free"] = free
    if lock is not None:
        given["lock"] = lock
    if now is not None:
        given["now"] = now
    return given


def _retry_failed(match: Match) -> dict[str, Any]:
    return {"match": match}


def _stats(queue: str, date: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"queue": queue}
    if date is not None:
        given["date"] = date
    return given


def _tag(id: str, *tags: Tag, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id}
    if tags:
        given["tags"] = tags
    if now is not None:
        given["now"] = now
    return given


def _tagged(tag: Tag, *, offset: int = 0, count: int = 25) -> dict[str, Any]:
    given: dict[str, Any] = {"tag": tag}
    if offset != 0:
        given["offset"] = offset
    if count != 25:
        given["count"] = count
    return given


def _throttle_delete(name: str, *, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name}
    if now is not None:
        given["now"] = now
    return given


def _throttle_get(name: str, *, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name}
    if now is not None:
        given["now"] = now
    return given


def _throttle_locks(name: str, *, offset: int = 0, count: int = 25) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name}
    if offset != 0:
        given["offset"] = offset
    if count != 25:
        given["count"] = count
    return given


def _throttle_pending(name: str, *, offset: int = 0, count: int = 25) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name}
    if offset != 0:
        given["offset"] = offset
    if count != 25:
        given["count"] = count
    return given


def _throttle_set(
    name: str, maximum: int, *, ttl: float | None = None, now: float | None = None
) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name, "maximum": maximum}
    if ttl is not None:
        given["ttl"] = ttl
    if now is not None:
        given["now"] = now
    return given


def _timeout(*ids: str, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if ids:
        given["ids"] = ids
    if now is not None:
        given["now"] = now
    return given


def _top_tags(*, offset: int = 0, count: int = 25) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if offset != 0:
        given["offset"] = offset
    if count != 25:
        given["count"] = count
    return given


def _track(id: str, *, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id}
    if now is not None:
        given["now"] = now
    return given


def _unfail(queue: str, group: str, count: int = 25, *, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"queue": queue, "group": group}
    if count != 25:
        given["count"] = count
    if now is not None:
        given["now"] = now
    return given


def _unpause(*queues: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if queues:
        given["queues"] = queues
    return given


def _unrecur(id: str) -> dict[str, Any]:
    return {"id": id}


def _untag(id: str, *tags: Tag) -> dict[str, Any]:
    given: dict[str, Any] = {"id": id}
    if tags:
        given["tags"] = tags
    return given


def _untrack(id: str) -> dict[str, Any]:
    return {"id": id}


def _withdraw_worker(name: str) -> dict[str, Any]:
    return {"name": name}


def _worker(worker: str, *, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"worker": worker}
    if now is not None:
        given["now"] = now
    return given


def _worker_deregister(*workers: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if workers:
        given["workers"] = workers
    return given


def _worker_programs(*, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if now is not None:
        given["now"] = now
    return given


def _workers(*, now: float | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if now is not None:
        given["now"] = now
    return given


class CalledJobs(CallFace):
    """The operations of `Jobs`, each a call to a server."""

    def announce_worker(self, program: WorkerProgram, *, now: float | None = None) -> None:
        """Says that a worker program is alive, and what it is doing."""
        return self._call(_ANNOUNCE_WORKER, _announce_worker(program, now=now))

    def cancel(self, *ids: str, now: float | None = None) -> list[str]:
        """Cancels jobs and returns `ids`; unknown and complete ones are passed over."""
        return self._call(_CANCEL, _cancel(*ids, now=now))

    def cancel_queue(self, queue: str) -> int:
        """Cancels every job that waits, is blocked or runs in `queue`; returns how many."""
        return self._call(_CANCEL_QUEUE, _cancel_queue(queue))

    def complete(
        self,
        id: str,
        worker: str,
        *,
        queue: str | None = None,
        data: Any = UNSET,
        next: str | None = None,
        delay: float = 0,
        depends: Sequence[str] = (),
        result: Any = UNSET,
        result_ttl: float | None = None,
        lock: int | None = None,
        now: float | None = None,
    ) -> str:
        """Ends the job, or with `next` moves it on to that queue; returns its new state."""
        return self._call(
            _COMPLETE,
            _complete(
                id,
                worker,
                queue=queue,
                data=data,
                next=next,
                delay=delay,
                depends=depends,
                result=result,
                result_ttl=result_ttl,
                lock=lock,
                now=now,
            ),
        )

    def complete_and_pop(
        self,
        id: str,
        worker: str,
        count: int = 1,
        *,
        pop_from: str | None = None,
        data: Any = UNSET,
        next: str | None = None,
        result: Any = UNSET,
        lock: int | None = None,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> list[Job]:
        """Completes the job as `complete` does and hands out the next `count` jobs as `pop`
        does.
        """
        return self._call(
            _COMPLETE_AND_POP,
            _complete_and_pop(
                id,
                worker,
                count,
                pop_from=pop_from,
                data=data,
                next=next,
                result=result,
                lock=lock,
                lock_seconds=lock_seconds,
                now=now,
            ),
        )

    def config(self) -> dict[str, Value]:
        """The seven documented options and all that was set. Reads 1 key."""
        return self._call(_CONFIG, {})

    def config_get(self, option: str) -> Value | None:
        """The string that was set for `option`, else its default, else None. Reads 1 key."""
        return self._call(_CONFIG_GET, _config_get(option))

    def config_set(self, option: str, value: Value) -> None:
        """Sets any option; those with a numeric meaning take numbers only."""
        return self._call(_CONFIG_SET, _config_set(option, value))

    def config_unset(self, option: str) -> None:
        """Takes an option back to its default. Reads 1 key, writes 1."""
        return self._call(_CONFIG_UNSET, _config_unset(option))

    def counts(self, queue: str, *, now: float | None = None) -> QueueCounts:
        """The counts of one queue, zeros for one that nobody has used."""
        return self._call(_COUNTS, _counts(queue, now=now))

    def dead_letters(
        self, match: Match | None = None, *, cursor: str | None = None, count: int = 25
    ) -> DeadLetters:
        """Failed jobs that fit `match`, by group and then oldest first, a page at a time."""
        return self._call(_DEAD_LETTERS, _dead_letters(match, cursor=cursor, count=count))

    def depends_off(self, id: str, *ids: str, all: bool = False, now: float | None = None) -> None:
        """Lets a job wait for `ids` no longer, or for nobody; it starts when none is left."""
        return self._call(_DEPENDS_OFF, _depends_off(id, *ids, all=all, now=now))

    def depends_on(self, id: str, *ids: str) -> None:
        """Lets a job in state `depends` wait for more jobs; complete ones count as met."""
        return self._call(_DEPENDS_ON, _depends_on(id, *ids))

    def fail(
        self,
        id: str,
        worker: str,
        group: str,
        message: str,
        *,
        data: Any = UNSET,
        lock: int | None = None,
        now: float | None = None,
    ) -> str:
        """Puts the job into the failure group `group` and returns its id."""
        return self._call(_FAIL, _fail(id, worker, group, message, data=data, lock=lock, now=now))

    def failed(self) -> dict[str, int]:
        """How many jobs are in each failure group. Reads 1 key for each group."""
        return self._call(_FAILED, {})

    def failed_in(self, group: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """The failed jobs of a group, newest first."""
        return self._call(_FAILED_IN, _failed_in(group, offset=offset, count=count))

    def get(self, id: str) -> Job | None:
        """The job, or None if there is none."""
        return self._call(_GET, _get(id))

    def heartbeat(
        self,
        id: str,
        worker: str,
        *,
        data: Any = UNSET,
        progress: float | None = None,
        progress_text: str = "",
        lock: int | None = None,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> float:
        """Renews the lock and returns when it ends now. Reads 3 keys, writes 4."""
        return self._call(
            _HEARTBEAT,
            _heartbeat(
                id,
                worker,
                data=data,
                progress=progress,
                progress_text=progress_text,
                lock=lock,
                lock_seconds=lock_seconds,
                now=now,
            ),
        )

    def jobs(
        self,
        state: str,
        queue: str = "",
        *,
        offset: int = 0,
        count: int = 25,
        now: float | None = None,
    ) -> list[str]:
        """Ids of jobs in a list: "complete", or of a queue "running", "stalled", "scheduled",
        "depends", "recurring".
        """
        return self._call(_JOBS, _jobs(state, queue, offset=offset, count=count, now=now))

    def length(self, queue: str) -> int:
        """How many jobs of the queue wait, are scheduled or run. Reads 4 keys."""
        return self._call(_LENGTH, _length(queue))

    def log(
        self, id: str, message: str, data: dict[str, Any] | None = None, *, now: float | None = None
    ) -> None:
        """Adds an entry to the job's history: `message` as what happened, `data` as more about
        it.
        """
        return self._call(_LOG, _log(id, message, data, now=now))

    def multiget(self, *ids: str) -> list[Job]:
        """The jobs of those `ids` that exist, in their order. Reads 1 key for each."""
        return self._call(_MULTIGET, _multiget(*ids))

    def pause(self, *queues: str, stop_running: bool = False) -> None:
        """Lets every pop of `queues` give nothing; `stop_running` also takes back what runs."""
        return self._call(_PAUSE, _pause(*queues, stop_running=stop_running))

    def peek(self, queue: str, count: int = 1, *, now: float | None = None) -> list[Job]:
        """The next `count` jobs of `queue`, left where they are."""
        return self._call(_PEEK, _peek(queue, count, now=now))

    def pop(
        self,
        queue: str,
        worker: str,
        count: int = 1,
        *,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> list[Job]:
        """Hands the next `count` jobs of `queue` to `worker`, each locked for `lock_seconds`."""
        return self._call(_POP, _pop(queue, worker, count, lock_seconds=lock_seconds, now=now))

    def pop_wait(
        self,
        queues: str | Sequence[str],
        worker: str,
        count: int = 1,
        *,
        timeout: float | None = None,
        lock_seconds: float | None = None,
    ) -> list[Job]:
        """Pops from the first of `queues` that has a job; waits up to `timeout` seconds."""
        return self._call(
            _POP_WAIT, _pop_wait(queues, worker, count, timeout=timeout, lock_seconds=lock_seconds)
        )

    def priority(self, id: str, priority: float) -> None:
        """Changes the job's priority; a waiting job goes to the front of its new one."""
        return self._call(_PRIORITY, _priority(id, priority))

    def put(
        self,
        queue: str,
        klass: str = "",
        data: Any = None,
        *,
        id: str | None = None,
        delay: float = 0,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        retries: float | None = None,
        depends: Sequence[str] | None = None,
        throttles: Sequence[str] | None = None,
        unique: str | None = None,
        unique_for: str | float = "running",
        unique_mode: str = "keep",
        worker: str = "",
        now: float | None = None,
    ) -> str:
        """Puts a job into `queue` and returns its id; a job of that id moves there."""
        return self._call(
            _PUT,
            _put(
                queue,
                klass,
                data,
                id=id,
                delay=delay,
                priority=priority,
                tags=tags,
                retries=retries,
                depends=depends,
                throttles=throttles,
                unique=unique,
                unique_for=unique_for,
                unique_mode=unique_mode,
                worker=worker,
                now=now,
            ),
        )

    def put_many(
        self, jobs: Sequence[NewJob], *, worker: str = "", now: float | None = None
    ) -> list[str]:
        """Puts all `jobs`, or none if one of them is refused, and returns their ids in order."""
        return self._call(_PUT_MANY, _put_many(jobs, worker=worker, now=now))

    def queue_forget(self, *queues: str) -> None:
        """Takes `queues` off the known ones; their jobs stay, and a put brings them back."""
        return self._call(_QUEUE_FORGET, _queue_forget(*queues))

    def queues(self, *, now: float | None = None) -> list[QueueCounts]:
        """The counts of all known queues, in the order in which they became known."""
        return self._call(_QUEUES, _queues(now=now))

    def read_log(self, id: str) -> tuple[LogLine, ...]:
        """Returns what the workers of a job wrote about their work, oldest first."""
        return self._call(_READ_LOG, _read_log(id))

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
        now: float | None = None,
    ) -> str:
        """Makes a recurring job and returns its id; one of that id is replaced, but for its
        count.
        """
        return self._call(
            _RECUR,
            _recur(
                queue,
                klass,
                data,
                interval=interval,
                cron=cron,
                tz=tz,
                offset=offset,
                id=id,
                priority=priority,
                tags=tags,
                retries=retries,
                backlog=backlog,
                now=now,
            ),
        )

    def recur_get(self, id: str) -> RecurringJob | None:
        """The recurring job, or None if there is none. Reads 1 key."""
        return self._call(_RECUR_GET, _recur_get(id))

    def recur_tag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Gives the jobs to come more tags, and returns all. Reads 1 key, writes 1."""
        return self._call(_RECUR_TAG, _recur_tag(id, *tags))

    def recur_untag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Takes tags from the jobs to come, and returns those left. Reads 1 key, writes 1."""
        return self._call(_RECUR_UNTAG, _recur_untag(id, *tags))

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
        """Changes what is given. A new `interval` moves the next run by the difference."""
        return self._call(
            _RECUR_UPDATE,
            _recur_update(
                id,
                priority=priority,
                interval=interval,
                retries=retries,
                data=data,
                klass=klass,
                queue=queue,
                backlog=backlog,
                now=now,
            ),
        )

    def report(
        self,
        reports: Sequence[Report],
        *,
        takes: Sequence[Take] = (),
        all_or_none: bool = False,
        now: float | None = None,
    ) -> Reported:
        """Settles jobs, or renews their locks, and hands out the next ones, in one commit."""
        return self._call(_REPORT, _report(reports, takes=takes, all_or_none=all_or_none, now=now))

    def requeue(
        self,
        queue: str,
        id: str,
        *,
        klass: str | None = None,
        data: Any = None,
        delay: float = 0,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        retries: float | None = None,
        depends: Sequence[str] | None = None,
        worker: str = "",
        now: float | None = None,
    ) -> str:
        """Puts a job that exists into `queue`; class and data stay unless others are given."""
        return self._call(
            _REQUEUE,
            _requeue(
                queue,
                id,
                klass=klass,
                data=data,
                delay=delay,
                priority=priority,
                tags=tags,
                retries=retries,
                depends=depends,
                worker=worker,
                now=now,
            ),
        )

    def result(self, id: str) -> Any:
        """What the job returned when it completed, or None. Reads 1 key."""
        return self._call(_RESULT, _result(id))

    def result_wait(self, id: str, *, timeout: float | None = None) -> Job:
        """The job as soon as it is complete or failed, or as it is after `timeout` seconds."""
        return self._call(_RESULT_WAIT, _result_wait(id, timeout=timeout))

    def retry(
        self,
        id: str,
        worker: str,
        *,
        queue: str | None = None,
        delay: float = 0,
        group: str | None = None,
        message: str | None = None,
        free: bool = False,
        lock: int | None = None,
        now: float | None = None,
    ) -> int:
        """Puts the job back, after `delay` seconds, and returns how many retries remain."""
        return self._call(
            _RETRY,
            _retry(
                id,
                worker,
                queue=queue,
                delay=delay,
                group=group,
                message=message,
                free=free,
                lock=lock,
                now=now,
            ),
        )

    def retry_failed(self, match: Match) -> int:
        """Puts every failed job that fits `match` back into its queue; returns how many."""
        return self._call(_RETRY_FAILED, _retry_failed(match))

    def stats(self, queue: str, date: float | None = None) -> QueueStats:
        """The statistics of `queue` on the day (UTC) that `date` falls into; today's by
        default.
        """
        return self._call(_STATS, _stats(queue, date))

    def tag(self, id: str, *tags: Tag, now: float | None = None) -> tuple[Tag, ...]:
        """Gives a job more tags and returns all that it carries."""
        return self._call(_TAG, _tag(id, *tags, now=now))

    def tagged(self, tag: Tag, *, offset: int = 0, count: int = 25) -> JobPage:
        """The jobs that carry `tag`, in the order in which they got it."""
        return self._call(_TAGGED, _tagged(tag, offset=offset, count=count))

    def throttle_delete(self, name: str, *, now: float | None = None) -> int:
        """Lifts the limit and lets all jobs back that wait for it, in steps of
        `JOBS_PER_STEP`.
        """
        return self._call(_THROTTLE_DELETE, _throttle_delete(name, now=now))

    def throttle_get(self, name: str, *, now: float | None = None) -> Throttle:
        """The throttle's maximum and how many jobs hold it and wait for it. Reads 1 key."""
        return self._call(_THROTTLE_GET, _throttle_get(name, now=now))

    def throttle_locks(self, name: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """The jobs that hold the throttle. Reads 1 key for each job up to the end of the page."""
        return self._call(_THROTTLE_LOCKS, _throttle_locks(name, offset=offset, count=count))

    def throttle_pending(self, name: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """The jobs that wait for the throttle, longest first."""
        return self._call(_THROTTLE_PENDING, _throttle_pending(name, offset=offset, count=count))

    def throttle_set(
        self, name: str, maximum: int, *, ttl: float | None = None, now: float | None = None
    ) -> None:
        """Lets at most `maximum` jobs that name this throttle run at once; 0 lifts the limit."""
        return self._call(_THROTTLE_SET, _throttle_set(name, maximum, ttl=ttl, now=now))

    def timeout(self, *ids: str, now: float | None = None) -> None:
        """Takes running jobs from their workers at once; they come first in their queues."""
        return self._call(_TIMEOUT, _timeout(*ids, now=now))

    def top_tags(self, *, offset: int = 0, count: int = 25) -> tuple[str, ...]:
        """The tags of at least two jobs, those of most jobs first."""
        return self._call(_TOP_TAGS, _top_tags(offset=offset, count=count))

    def track(self, id: str, *, now: float | None = None) -> bool:
        """Has all that happens to the job published; says whether that is new."""
        return self._call(_TRACK, _track(id, now=now))

    def tracked(self) -> TrackedJobs:
        """All tracked jobs, first tracked first, and the ids of those that are gone."""
        return self._call(_TRACKED, {})

    def unfail(self, queue: str, group: str, count: int = 25, *, now: float | None = None) -> int:
        """Puts the `count` oldest jobs of a failure group into `queue`; returns how many."""
        return self._call(_UNFAIL, _unfail(queue, group, count, now=now))

    def unpause(self, *queues: str) -> None:
        """Ends a pause. Reads 1 key and writes 1 for each."""
        return self._call(_UNPAUSE, _unpause(*queues))

    def unrecur(self, id: str) -> None:
        """Ends a recurring job; jobs that it has spawned stay. Reads 1 key, writes 3."""
        return self._call(_UNRECUR, _unrecur(id))

    def untag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Takes tags from a job and returns those that are left."""
        return self._call(_UNTAG, _untag(id, *tags))

    def untrack(self, id: str) -> bool:
        """Ends the tracking of a job, also of one that is gone; says whether it was tracked."""
        return self._call(_UNTRACK, _untrack(id))

    def withdraw_worker(self, name: str) -> None:
        """Removes the record of a worker program that has ended. Writes 1 key."""
        return self._call(_WITHDRAW_WORKER, _withdraw_worker(name))

    def worker(self, worker: str, *, now: float | None = None) -> WorkerJobs:
        """The jobs that a worker holds, newest lock first; empty for one that nobody knows."""
        return self._call(_WORKER, _worker(worker, now=now))

    def worker_deregister(self, *workers: str) -> None:
        """Takes workers off the list; a worker comes back when it pops or heartbeats."""
        return self._call(_WORKER_DEREGISTER, _worker_deregister(*workers))

    def worker_programs(self, *, now: float | None = None) -> list[WorkerProgram]:
        """Returns the worker programs that are alive, by name."""
        return self._call(_WORKER_PROGRAMS, _worker_programs(now=now))

    def workers(self, *, now: float | None = None) -> list[WorkerCounts]:
        """All workers, those seen last first; forgets those not seen for `max-worker-age`
        seconds.
        """
        return self._call(_WORKERS, _workers(now=now))


class AwaitedJobs(AwaitFace):
    """The operations of `Jobs`, each a coroutine."""

    async def announce_worker(self, program: WorkerProgram, *, now: float | None = None) -> None:
        """Says that a worker program is alive, and what it is doing."""
        return await self._call(_ANNOUNCE_WORKER, _announce_worker(program, now=now))

    async def cancel(self, *ids: str, now: float | None = None) -> list[str]:
        """Cancels jobs and returns `ids`; unknown and complete ones are passed over."""
        return await self._call(_CANCEL, _cancel(*ids, now=now))

    async def cancel_queue(self, queue: str) -> int:
        """Cancels every job that waits, is blocked or runs in `queue`; returns how many."""
        return await self._call(_CANCEL_QUEUE, _cancel_queue(queue))

    async def complete(
        self,
        id: str,
        worker: str,
        *,
        queue: str | None = None,
        data: Any = UNSET,
        next: str | None = None,
        delay: float = 0,
        depends: Sequence[str] = (),
        result: Any = UNSET,
        result_ttl: float | None = None,
        lock: int | None = None,
        now: float | None = None,
    ) -> str:
        """Ends the job, or with `next` moves it on to that queue; returns its new state."""
        return await self._call(
            _COMPLETE,
            _complete(
                id,
                worker,
                queue=queue,
                data=data,
                next=next,
                delay=delay,
                depends=depends,
                result=result,
                result_ttl=result_ttl,
                lock=lock,
                now=now,
            ),
        )

    async def complete_and_pop(
        self,
        id: str,
        worker: str,
        count: int = 1,
        *,
        pop_from: str | None = None,
        data: Any = UNSET,
        next: str | None = None,
        result: Any = UNSET,
        lock: int | None = None,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> list[Job]:
        """Completes the job as `complete` does and hands out the next `count` jobs as `pop`
        does.
        """
        return await self._call(
            _COMPLETE_AND_POP,
            _complete_and_pop(
                id,
                worker,
                count,
                pop_from=pop_from,
                data=data,
                next=next,
                result=result,
                lock=lock,
                lock_seconds=lock_seconds,
                now=now,
            ),
        )

    async def config(self) -> dict[str, Value]:
        """The seven documented options and all that was set. Reads 1 key."""
        return await self._call(_CONFIG, {})

    async def config_get(self, option: str) -> Value | None:
        """The string that was set for `option`, else its default, else None. Reads 1 key."""
        return await self._call(_CONFIG_GET, _config_get(option))

    async def config_set(self, option: str, value: Value) -> None:
        """Sets any option; those with a numeric meaning take numbers only."""
        return await self._call(_CONFIG_SET, _config_set(option, value))

    async def config_unset(self, option: str) -> None:
        """Takes an option back to its default. Reads 1 key, writes 1."""
        return await self._call(_CONFIG_UNSET, _config_unset(option))

    async def counts(self, queue: str, *, now: float | None = None) -> QueueCounts:
        """The counts of one queue, zeros for one that nobody has used."""
        return await self._call(_COUNTS, _counts(queue, now=now))

    async def dead_letters(
        self, match: Match | None = None, *, cursor: str | None = None, count: int = 25
    ) -> DeadLetters:
        """Failed jobs that fit `match`, by group and then oldest first, a page at a time."""
        return await self._call(_DEAD_LETTERS, _dead_letters(match, cursor=cursor, count=count))

    async def depends_off(
        self, id: str, *ids: str, all: bool = False, now: float | None = None
    ) -> None:
        """Lets a job wait for `ids` no longer, or for nobody; it starts when none is left."""
        return await self._call(_DEPENDS_OFF, _depends_off(id, *ids, all=all, now=now))

    async def depends_on(self, id: str, *ids: str) -> None:
        """Lets a job in state `depends` wait for more jobs; complete ones count as met."""
        return await self._call(_DEPENDS_ON, _depends_on(id, *ids))

    async def fail(
        self,
        id: str,
        worker: str,
        group: str,
        message: str,
        *,
        data: Any = UNSET,
        lock: int | None = None,
        now: float | None = None,
    ) -> str:
        """Puts the job into the failure group `group` and returns its id."""
        return await self._call(
            _FAIL, _fail(id, worker, group, message, data=data, lock=lock, now=now)
        )

    async def failed(self) -> dict[str, int]:
        """How many jobs are in each failure group. Reads 1 key for each group."""
        return await self._call(_FAILED, {})

    async def failed_in(self, group: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """The failed jobs of a group, newest first."""
        return await self._call(_FAILED_IN, _failed_in(group, offset=offset, count=count))

    async def get(self, id: str) -> Job | None:
        """The job, or None if there is none."""
        return await self._call(_GET, _get(id))

    async def heartbeat(
        self,
        id: str,
        worker: str,
        *,
        data: Any = UNSET,
        progress: float | None = None,
        progress_text: str = "",
        lock: int | None = None,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> float:
        """Renews the lock and returns when it ends now. Reads 3 keys, writes 4."""
        return await self._call(
            _HEARTBEAT,
            _heartbeat(
                id,
                worker,
                data=data,
                progress=progress,
                progress_text=progress_text,
                lock=lock,
                lock_seconds=lock_seconds,
                now=now,
            ),
        )

    async def jobs(
        self,
        state: str,
        queue: str = "",
        *,
        offset: int = 0,
        count: int = 25,
        now: float | None = None,
    ) -> list[str]:
        """Ids of jobs in a list: "complete", or of a queue "running", "stalled", "scheduled",
        "depends", "recurring".
        """
        return await self._call(_JOBS, _jobs(state, queue, offset=offset, count=count, now=now))

    async def length(self, queue: str) -> int:
        """How many jobs of the queue wait, are scheduled or run. Reads 4 keys."""
        return await self._call(_LENGTH, _length(queue))

    async def log(
        self, id: str, message: str, data: dict[str, Any] | None = None, *, now: float | None = None
    ) -> None:
        """Adds an entry to the job's history: `message` as what happened, `data` as more about
        it.
        """
        return await self._call(_LOG, _log(id, message, data, now=now))

    async def multiget(self, *ids: str) -> list[Job]:
        """The jobs of those `ids` that exist, in their order. Reads 1 key for each."""
        return await self._call(_MULTIGET, _multiget(*ids))

    async def pause(self, *queues: str, stop_running: bool = False) -> None:
        """Lets every pop of `queues` give nothing; `stop_running` also takes back what runs."""
        return await self._call(_PAUSE, _pause(*queues, stop_running=stop_running))

    async def peek(self, queue: str, count: int = 1, *, now: float | None = None) -> list[Job]:
        """The next `count` jobs of `queue`, left where they are."""
        return await self._call(_PEEK, _peek(queue, count, now=now))

    async def pop(
        self,
        queue: str,
        worker: str,
        count: int = 1,
        *,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> list[Job]:
        """Hands the next `count` jobs of `queue` to `worker`, each locked for `lock_seconds`."""
        return await self._call(
            _POP, _pop(queue, worker, count, lock_seconds=lock_seconds, now=now)
        )

    async def pop_wait(
        self,
        queues: str | Sequence[str],
        worker: str,
        count: int = 1,
        *,
        timeout: float | None = None,
        lock_seconds: float | None = None,
    ) -> list[Job]:
        """Pops from the first of `queues` that has a job; waits up to `timeout` seconds."""
        return await self._call(
            _POP_WAIT, _pop_wait(queues, worker, count, timeout=timeout, lock_seconds=lock_seconds)
        )

    async def priority(self, id: str, priority: float) -> None:
        """Changes the job's priority; a waiting job goes to the front of its new one."""
        return await self._call(_PRIORITY, _priority(id, priority))

    async def put(
        self,
        queue: str,
        klass: str = "",
        data: Any = None,
        *,
        id: str | None = None,
        delay: float = 0,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        retries: float | None = None,
        depends: Sequence[str] | None = None,
        throttles: Sequence[str] | None = None,
        unique: str | None = None,
        unique_for: str | float = "running",
        unique_mode: str = "keep",
        worker: str = "",
        now: float | None = None,
    ) -> str:
        """Puts a job into `queue` and returns its id; a job of that id moves there."""
        return await self._call(
            _PUT,
            _put(
                queue,
                klass,
                data,
                id=id,
                delay=delay,
                priority=priority,
                tags=tags,
                retries=retries,
                depends=depends,
                throttles=throttles,
                unique=unique,
                unique_for=unique_for,
                unique_mode=unique_mode,
                worker=worker,
                now=now,
            ),
        )

    async def put_many(
        self, jobs: Sequence[NewJob], *, worker: str = "", now: float | None = None
    ) -> list[str]:
        """Puts all `jobs`, or none if one of them is refused, and returns their ids in order."""
        return await self._call(_PUT_MANY, _put_many(jobs, worker=worker, now=now))

    async def queue_forget(self, *queues: str) -> None:
        """Takes `queues` off the known ones; their jobs stay, and a put brings them back."""
        return await self._call(_QUEUE_FORGET, _queue_forget(*queues))

    async def queues(self, *, now: float | None = None) -> list[QueueCounts]:
        """The counts of all known queues, in the order in which they became known."""
        return await self._call(_QUEUES, _queues(now=now))

    async def read_log(self, id: str) -> tuple[LogLine, ...]:
        """Returns what the workers of a job wrote about their work, oldest first."""
        return await self._call(_READ_LOG, _read_log(id))

    async def recur(
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
        now: float | None = None,
    ) -> str:
        """Makes a recurring job and returns its id; one of that id is replaced, but for its
        count.
        """
        return await self._call(
            _RECUR,
            _recur(
                queue,
                klass,
                data,
                interval=interval,
                cron=cron,
                tz=tz,
                offset=offset,
                id=id,
                priority=priority,
                tags=tags,
                retries=retries,
                backlog=backlog,
                now=now,
            ),
        )

    async def recur_get(self, id: str) -> RecurringJob | None:
        """The recurring job, or None if there is none. Reads 1 key."""
        return await self._call(_RECUR_GET, _recur_get(id))

    async def recur_tag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Gives the jobs to come more tags, and returns all. Reads 1 key, writes 1."""
        return await self._call(_RECUR_TAG, _recur_tag(id, *tags))

    async def recur_untag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Takes tags from the jobs to come, and returns those left. Reads 1 key, writes 1."""
        return await self._call(_RECUR_UNTAG, _recur_untag(id, *tags))

    async def recur_update(
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
        """Changes what is given. A new `interval` moves the next run by the difference."""
        return await self._call(
            _RECUR_UPDATE,
            _recur_update(
                id,
                priority=priority,
                interval=interval,
                retries=retries,
                data=data,
                klass=klass,
                queue=queue,
                backlog=backlog,
                now=now,
            ),
        )

    async def report(
        self,
        reports: Sequence[Report],
        *,
        takes: Sequence[Take] = (),
        all_or_none: bool = False,
        now: float | None = None,
    ) -> Reported:
        """Settles jobs, or renews their locks, and hands out the next ones, in one commit."""
        return await self._call(
            _REPORT, _report(reports, takes=takes, all_or_none=all_or_none, now=now)
        )

    async def requeue(
        self,
        queue: str,
        id: str,
        *,
        klass: str | None = None,
        data: Any = None,
        delay: float = 0,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        retries: float | None = None,
        depends: Sequence[str] | None = None,
        worker: str = "",
        now: float | None = None,
    ) -> str:
        """Puts a job that exists into `queue`; class and data stay unless others are given."""
        return await self._call(
            _REQUEUE,
            _requeue(
                queue,
                id,
                klass=klass,
                data=data,
                delay=delay,
                priority=priority,
                tags=tags,
                retries=retries,
                depends=depends,
                worker=worker,
                now=now,
            ),
        )

    async def result(self, id: str) -> Any:
        """What the job returned when it completed, or None. Reads 1 key."""
        return await self._call(_RESULT, _result(id))

    async def result_wait(self, id: str, *, timeout: float | None = None) -> Job:
        """The job as soon as it is complete or failed, or as it is after `timeout` seconds."""
        return await self._call(_RESULT_WAIT, _result_wait(id, timeout=timeout))

    async def retry(
        self,
        id: str,
        worker: str,
        *,
        queue: str | None = None,
        delay: float = 0,
        group: str | None = None,
        message: str | None = None,
        free: bool = False,
        lock: int | None = None,
        now: float | None = None,
    ) -> int:
        """Puts the job back, after `delay` seconds, and returns how many retries remain."""
        return await self._call(
            _RETRY,
            _retry(
                id,
                worker,
                queue=queue,
                delay=delay,
                group=group,
                message=message,
                free=free,
                lock=lock,
                now=now,
            ),
        )

    async def retry_failed(self, match: Match) -> int:
        """Puts every failed job that fits `match` back into its queue; returns how many."""
        return await self._call(_RETRY_FAILED, _retry_failed(match))

    async def stats(self, queue: str, date: float | None = None) -> QueueStats:
        """The statistics of `queue` on the day (UTC) that `date` falls into; today's by
        default.
        """
        return await self._call(_STATS, _stats(queue, date))

    async def tag(self, id: str, *tags: Tag, now: float | None = None) -> tuple[Tag, ...]:
        """Gives a job more tags and returns all that it carries."""
        return await self._call(_TAG, _tag(id, *tags, now=now))

    async def tagged(self, tag: Tag, *, offset: int = 0, count: int = 25) -> JobPage:
        """The jobs that carry `tag`, in the order in which they got it."""
        return await self._call(_TAGGED, _tagged(tag, offset=offset, count=count))

    async def throttle_delete(self, name: str, *, now: float | None = None) -> int:
        """Lifts the limit and lets all jobs back that wait for it, in steps of
        `JOBS_PER_STEP`.
        """
        return await self._call(_THROTTLE_DELETE, _throttle_delete(name, now=now))

    async def throttle_get(self, name: str, *, now: float | None = None) -> Throttle:
        """The throttle's maximum and how many jobs hold it and wait for it. Reads 1 key."""
        return await self._call(_THROTTLE_GET, _throttle_get(name, now=now))

    async def throttle_locks(self, name: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """The jobs that hold the throttle. Reads 1 key for each job up to the end of the page."""
        return await self._call(_THROTTLE_LOCKS, _throttle_locks(name, offset=offset, count=count))

    async def throttle_pending(self, name: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """The jobs that wait for the throttle, longest first."""
        return await self._call(
            _THROTTLE_PENDING, _throttle_pending(name, offset=offset, count=count)
        )

    async def throttle_set(
        self, name: str, maximum: int, *, ttl: float | None = None, now: float | None = None
    ) -> None:
        """Lets at most `maximum` jobs that name this throttle run at once; 0 lifts the limit."""
        return await self._call(_THROTTLE_SET, _throttle_set(name, maximum, ttl=ttl, now=now))

    async def timeout(self, *ids: str, now: float | None = None) -> None:
        """Takes running jobs from their workers at once; they come first in their queues."""
        return await self._call(_TIMEOUT, _timeout(*ids, now=now))

    async def top_tags(self, *, offset: int = 0, count: int = 25) -> tuple[str, ...]:
        """The tags of at least two jobs, those of most jobs first."""
        return await self._call(_TOP_TAGS, _top_tags(offset=offset, count=count))

    async def track(self, id: str, *, now: float | None = None) -> bool:
        """Has all that happens to the job published; says whether that is new."""
        return await self._call(_TRACK, _track(id, now=now))

    async def tracked(self) -> TrackedJobs:
        """All tracked jobs, first tracked first, and the ids of those that are gone."""
        return await self._call(_TRACKED, {})

    async def unfail(
        self, queue: str, group: str, count: int = 25, *, now: float | None = None
    ) -> int:
        """Puts the `count` oldest jobs of a failure group into `queue`; returns how many."""
        return await self._call(_UNFAIL, _unfail(queue, group, count, now=now))

    async def unpause(self, *queues: str) -> None:
        """Ends a pause. Reads 1 key and writes 1 for each."""
        return await self._call(_UNPAUSE, _unpause(*queues))

    async def unrecur(self, id: str) -> None:
        """Ends a recurring job; jobs that it has spawned stay. Reads 1 key, writes 3."""
        return await self._call(_UNRECUR, _unrecur(id))

    async def untag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Takes tags from a job and returns those that are left."""
        return await self._call(_UNTAG, _untag(id, *tags))

    async def untrack(self, id: str) -> bool:
        """Ends the tracking of a job, also of one that is gone; says whether it was tracked."""
        return await self._call(_UNTRACK, _untrack(id))

    async def withdraw_worker(self, name: str) -> None:
        """Removes the record of a worker program that has ended. Writes 1 key."""
        return await self._call(_WITHDRAW_WORKER, _withdraw_worker(name))

    async def worker(self, worker: str, *, now: float | None = None) -> WorkerJobs:
        """The jobs that a worker holds, newest lock first; empty for one that nobody knows."""
        return await self._call(_WORKER, _worker(worker, now=now))

    async def worker_deregister(self, *workers: str) -> None:
        """Takes workers off the list; a worker comes back when it pops or heartbeats."""
        return await self._call(_WORKER_DEREGISTER, _worker_deregister(*workers))

    async def worker_programs(self, *, now: float | None = None) -> list[WorkerProgram]:
        """Returns the worker programs that are alive, by name."""
        return await self._call(_WORKER_PROGRAMS, _worker_programs(now=now))

    async def workers(self, *, now: float | None = None) -> list[WorkerCounts]:
        """All workers, those seen last first; forgets those not seen for `max-worker-age`
        seconds.
        """
        return await self._call(_WORKERS, _workers(now=now))


class RecordedJobs(RecordFace):
    """The operations of `Jobs`, kept to be sent together."""

    def announce_worker(self, program: WorkerProgram, *, now: float | None = None) -> Handle[None]:
        """Says that a worker program is alive, and what it is doing."""
        return self._record(_ANNOUNCE_WORKER, _announce_worker(program, now=now))

    def complete(
        self,
        id: str,
        worker: str,
        *,
        queue: str | None = None,
        data: Any = UNSET,
        next: str | None = None,
        delay: float = 0,
        depends: Sequence[str] = (),
        result: Any = UNSET,
        result_ttl: float | None = None,
        lock: int | None = None,
        now: float | None = None,
    ) -> Handle[str]:
        """Ends the job, or with `next` moves it on to that queue; returns its new state."""
        return self._record(
            _COMPLETE,
            _complete(
                id,
                worker,
                queue=queue,
                data=data,
                next=next,
                delay=delay,
                depends=depends,
                result=result,
                result_ttl=result_ttl,
                lock=lock,
                now=now,
            ),
        )

    def complete_and_pop(
        self,
        id: str,
        worker: str,
        count: int = 1,
        *,
        pop_from: str | None = None,
        data: Any = UNSET,
        next: str | None = None,
        result: Any = UNSET,
        lock: int | None = None,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> Handle[list[Job]]:
        """Completes the job as `complete` does and hands out the next `count` jobs as `pop`
        does.
        """
        return self._record(
            _COMPLETE_AND_POP,
            _complete_and_pop(
                id,
                worker,
                count,
                pop_from=pop_from,
                data=data,
                next=next,
                result=result,
                lock=lock,
                lock_seconds=lock_seconds,
                now=now,
            ),
        )

    def config(self) -> Handle[dict[str, Value]]:
        """The seven documented options and all that was set. Reads 1 key."""
        return self._record(_CONFIG, {})

    def config_get(self, option: str) -> Handle[Value | None]:
        """The string that was set for `option`, else its default, else None. Reads 1 key."""
        return self._record(_CONFIG_GET, _config_get(option))

    def config_set(self, option: str, value: Value) -> Handle[None]:
        """Sets any option; those with a numeric meaning take numbers only."""
        return self._record(_CONFIG_SET, _config_set(option, value))

    def config_unset(self, option: str) -> Handle[None]:
        """Takes an option back to its default. Reads 1 key, writes 1."""
        return self._record(_CONFIG_UNSET, _config_unset(option))

    def dead_letters(
        self, match: Match | None = None, *, cursor: str | None = None, count: int = 25
    ) -> Handle[DeadLetters]:
        """Failed jobs that fit `match`, by group and then oldest first, a page at a time."""
        return self._record(_DEAD_LETTERS, _dead_letters(match, cursor=cursor, count=count))

    def depends_off(
        self, id: str, *ids: str, all: bool = False, now: float | None = None
    ) -> Handle[None]:
        """Lets a job wait for `ids` no longer, or for nobody; it starts when none is left."""
        return self._record(_DEPENDS_OFF, _depends_off(id, *ids, all=all, now=now))

    def depends_on(self, id: str, *ids: str) -> Handle[None]:
        """Lets a job in state `depends` wait for more jobs; complete ones count as met."""
        return self._record(_DEPENDS_ON, _depends_on(id, *ids))

    def fail(
        self,
        id: str,
        worker: str,
        group: str,
        message: str,
        *,
        data: Any = UNSET,
        lock: int | None = None,
        now: float | None = None,
    ) -> Handle[str]:
        """Puts the job into the failure group `group` and returns its id."""
        return self._record(_FAIL, _fail(id, worker, group, message, data=data, lock=lock, now=now))

    def failed(self) -> Handle[dict[str, int]]:
        """How many jobs are in each failure group. Reads 1 key for each group."""
        return self._record(_FAILED, {})

    def failed_in(self, group: str, *, offset: int = 0, count: int = 25) -> Handle[JobPage]:
        """The failed jobs of a group, newest first."""
        return self._record(_FAILED_IN, _failed_in(group, offset=offset, count=count))

    def get(self, id: str) -> Handle[Job | None]:
        """The job, or None if there is none."""
        return self._record(_GET, _get(id))

    def heartbeat(
        self,
        id: str,
        worker: str,
        *,
        data: Any = UNSET,
        progress: float | None = None,
        progress_text: str = "",
        lock: int | None = None,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> Handle[float]:
        """Renews the lock and returns when it ends now. Reads 3 keys, writes 4."""
        return self._record(
            _HEARTBEAT,
            _heartbeat(
                id,
                worker,
                data=data,
                progress=progress,
                progress_text=progress_text,
                lock=lock,
                lock_seconds=lock_seconds,
                now=now,
            ),
        )

    def length(self, queue: str) -> Handle[int]:
        """How many jobs of the queue wait, are scheduled or run. Reads 4 keys."""
        return self._record(_LENGTH, _length(queue))

    def log(
        self, id: str, message: str, data: dict[str, Any] | None = None, *, now: float | None = None
    ) -> Handle[None]:
        """Adds an entry to the job's history: `message` as what happened, `data` as more about
        it.
        """
        return self._record(_LOG, _log(id, message, data, now=now))

    def multiget(self, *ids: str) -> Handle[list[Job]]:
        """The jobs of those `ids` that exist, in their order. Reads 1 key for each."""
        return self._record(_MULTIGET, _multiget(*ids))

    def pop(
        self,
        queue: str,
        worker: str,
        count: int = 1,
        *,
        lock_seconds: float | None = None,
        now: float | None = None,
    ) -> Handle[list[Job]]:
        """Hands the next `count` jobs of `queue` to `worker`, each locked for `lock_seconds`."""
        return self._record(_POP, _pop(queue, worker, count, lock_seconds=lock_seconds, now=now))

    def priority(self, id: str, priority: float) -> Handle[None]:
        """Changes the job's priority; a waiting job goes to the front of its new one."""
        return self._record(_PRIORITY, _priority(id, priority))

    def put(
        self,
        queue: str,
        klass: str = "",
        data: Any = None,
        *,
        id: str | None = None,
        delay: float = 0,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        retries: float | None = None,
        depends: Sequence[str] | None = None,
        throttles: Sequence[str] | None = None,
        unique: str | None = None,
        unique_for: str | float = "running",
        unique_mode: str = "keep",
        worker: str = "",
        now: float | None = None,
    ) -> Handle[str]:
        """Puts a job into `queue` and returns its id; a job of that id moves there."""
        return self._record(
            _PUT,
            _put(
                queue,
                klass,
                data,
                id=id,
                delay=delay,
                priority=priority,
                tags=tags,
                retries=retries,
                depends=depends,
                throttles=throttles,
                unique=unique,
                unique_for=unique_for,
                unique_mode=unique_mode,
                worker=worker,
                now=now,
            ),
        )

    def put_many(
        self, jobs: Sequence[NewJob], *, worker: str = "", now: float | None = None
    ) -> Handle[list[str]]:
        """Puts all `jobs`, or none if one of them is refused, and returns their ids in order."""
        return self._record(_PUT_MANY, _put_many(jobs, worker=worker, now=now))

    def queue_forget(self, *queues: str) -> Handle[None]:
        """Takes `queues` off the known ones; their jobs stay, and a put brings them back."""
        return self._record(_QUEUE_FORGET, _queue_forget(*queues))

    def read_log(self, id: str) -> Handle[tuple[LogLine, ...]]:
        """Returns what the workers of a job wrote about their work, oldest first."""
        return self._record(_READ_LOG, _read_log(id))

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
        now: float | None = None,
    ) -> Handle[str]:
        """Makes a recurring job and returns its id; one of that id is replaced, but for its
        count.
        """
        return self._record(
            _RECUR,
            _recur(
                queue,
                klass,
                data,
                interval=interval,
                cron=cron,
                tz=tz,
                offset=offset,
                id=id,
                priority=priority,
                tags=tags,
                retries=retries,
                backlog=backlog,
                now=now,
            ),
        )

    def recur_get(self, id: str) -> Handle[RecurringJob | None]:
        """The recurring job, or None if there is none. Reads 1 key."""
        return self._record(_RECUR_GET, _recur_get(id))

    def recur_tag(self, id: str, *tags: Tag) -> Handle[tuple[Tag, ...]]:
        """Gives the jobs to come more tags, and returns all. Reads 1 key, writes 1."""
        return self._record(_RECUR_TAG, _recur_tag(id, *tags))

    def recur_untag(self, id: str, *tags: Tag) -> Handle[tuple[Tag, ...]]:
        """Takes tags from the jobs to come, and returns those left. Reads 1 key, writes 1."""
        return self._record(_RECUR_UNTAG, _recur_untag(id, *tags))

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
    ) -> Handle[None]:
        """Changes what is given. A new `interval` moves the next run by the difference."""
        return self._record(
            _RECUR_UPDATE,
            _recur_update(
                id,
                priority=priority,
                interval=interval,
                retries=retries,
                data=data,
                klass=klass,
                queue=queue,
                backlog=backlog,
                now=now,
            ),
        )

    def report(
        self,
        reports: Sequence[Report],
        *,
        takes: Sequence[Take] = (),
        all_or_none: bool = False,
        now: float | None = None,
    ) -> Handle[Reported]:
        """Settles jobs, or renews their locks, and hands out the next ones, in one commit."""
        return self._record(
            _REPORT, _report(reports, takes=takes, all_or_none=all_or_none, now=now)
        )

    def requeue(
        self,
        queue: str,
        id: str,
        *,
        klass: str | None = None,
        data: Any = None,
        delay: float = 0,
        priority: float | None = None,
        tags: Sequence[Tag] | None = None,
        retries: float | None = None,
        depends: Sequence[str] | None = None,
        worker: str = "",
        now: float | None = None,
    ) -> Handle[str]:
        """Puts a job that exists into `queue`; class and data stay unless others are given."""
        return self._record(
            _REQUEUE,
            _requeue(
                queue,
                id,
                klass=klass,
                data=data,
                delay=delay,
                priority=priority,
                tags=tags,
                retries=retries,
                depends=depends,
                worker=worker,
                now=now,
            ),
        )

    def result(self, id: str) -> Handle[Any]:
        """What the job returned when it completed, or None. Reads 1 key."""
        return self._record(_RESULT, _result(id))

    def retry(
        self,
        id: str,
        worker: str,
        *,
        queue: str | None = None,
        delay: float = 0,
        group: str | None = None,
        message: str | None = None,
        free: bool = False,
        lock: int | None = None,
        now: float | None = None,
    ) -> Handle[int]:
        """Puts the job back, after `delay` seconds, and returns how many retries remain."""
        return self._record(
            _RETRY,
            _retry(
                id,
                worker,
                queue=queue,
                delay=delay,
                group=group,
                message=message,
                free=free,
                lock=lock,
                now=now,
            ),
        )

    def stats(self, queue: str, date: float | None = None) -> Handle[QueueStats]:
        """The statistics of `queue` on the day (UTC) that `date` falls into; today's by
        default.
        """
        return self._record(_STATS, _stats(queue, date))

    def tag(self, id: str, *tags: Tag, now: float | None = None) -> Handle[tuple[Tag, ...]]:
        """Gives a job more tags and returns all that it carries."""
        return self._record(_TAG, _tag(id, *tags, now=now))

    def tagged(self, tag: Tag, *, offset: int = 0, count: int = 25) -> Handle[JobPage]:
        """The jobs that carry `tag`, in the order in which they got it."""
        return self._record(_TAGGED, _tagged(tag, offset=offset, count=count))

    def throttle_get(self, name: str, *, now: float | None = None) -> Handle[Throttle]:
        """The throttle's maximum and how many jobs hold it and wait for it. Reads 1 key."""
        return self._record(_THROTTLE_GET, _throttle_get(name, now=now))

    def throttle_locks(self, name: str, *, offset: int = 0, count: int = 25) -> Handle[JobPage]:
        """The jobs that hold the throttle. Reads 1 key for each job up to the end of the page."""
        return self._record(_THROTTLE_LOCKS, _throttle_locks(name, offset=offset, count=count))

    def throttle_pending(self, name: str, *, offset: int = 0, count: int = 25) -> Handle[JobPage]:
        """The jobs that wait for the throttle, longest first."""
        return self._record(_THROTTLE_PENDING, _throttle_pending(name, offset=offset, count=count))

    def throttle_set(
        self, name: str, maximum: int, *, ttl: float | None = None, now: float | None = None
    ) -> Handle[None]:
        """Lets at most `maximum` jobs that name this throttle run at once; 0 lifts the limit."""
        return self._record(_THROTTLE_SET, _throttle_set(name, maximum, ttl=ttl, now=now))

    def timeout(self, *ids: str, now: float | None = None) -> Handle[None]:
        """Takes running jobs from their workers at once; they come first in their queues."""
        return self._record(_TIMEOUT, _timeout(*ids, now=now))

    def top_tags(self, *, offset: int = 0, count: int = 25) -> Handle[tuple[str, ...]]:
        """The tags of at least two jobs, those of most jobs first."""
        return self._record(_TOP_TAGS, _top_tags(offset=offset, count=count))

    def track(self, id: str, *, now: float | None = None) -> Handle[bool]:
        """Has all that happens to the job published; says whether that is new."""
        return self._record(_TRACK, _track(id, now=now))

    def tracked(self) -> Handle[TrackedJobs]:
        """All tracked jobs, first tracked first, and the ids of those that are gone."""
        return self._record(_TRACKED, {})

    def unpause(self, *queues: str) -> Handle[None]:
        """Ends a pause. Reads 1 key and writes 1 for each."""
        return self._record(_UNPAUSE, _unpause(*queues))

    def unrecur(self, id: str) -> Handle[None]:
        """Ends a recurring job; jobs that it has spawned stay. Reads 1 key, writes 3."""
        return self._record(_UNRECUR, _unrecur(id))

    def untag(self, id: str, *tags: Tag) -> Handle[tuple[Tag, ...]]:
        """Takes tags from a job and returns those that are left."""
        return self._record(_UNTAG, _untag(id, *tags))

    def untrack(self, id: str) -> Handle[bool]:
        """Ends the tracking of a job, also of one that is gone; says whether it was tracked."""
        return self._record(_UNTRACK, _untrack(id))

    def withdraw_worker(self, name: str) -> Handle[None]:
        """Removes the record of a worker program that has ended. Writes 1 key."""
        return self._record(_WITHDRAW_WORKER, _withdraw_worker(name))

    def worker(self, worker: str, *, now: float | None = None) -> Handle[WorkerJobs]:
        """The jobs that a worker holds, newest lock first; empty for one that nobody knows."""
        return self._record(_WORKER, _worker(worker, now=now))

    def worker_deregister(self, *workers: str) -> Handle[None]:
        """Takes workers off the list; a worker comes back when it pops or heartbeats."""
        return self._record(_WORKER_DEREGISTER, _worker_deregister(*workers))

    def worker_programs(self, *, now: float | None = None) -> Handle[list[WorkerProgram]]:
        """Returns the worker programs that are alive, by name."""
        return self._record(_WORKER_PROGRAMS, _worker_programs(now=now))
