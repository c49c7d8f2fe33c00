"""Schedules: recurring jobs that are declared next to their tasks."""

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.errors import BadTask
from holdfast.jobs.records import RecurringJob
from holdfast.store import Space

if TYPE_CHECKING:
    from holdfast.tasks.registry import Tasks
    from holdfast.tasks.task import Task

__all__ = ["Schedule", "Scheduled", "deploy"]

_PAGE: Final = 1_000
_encode_json: Final = msgspec.json.Encoder(order="deterministic").encode


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule of a task: when it runs, with which arguments."""

    cron: str | None = None
    tz: str = "UTC"
    interval: float | None = None
    args: dict[str, Any] = {}
    task: str = ""

    def of(self, task: str) -> "Schedule":
        """Returns the schedule for a task."""
        return msgspec.structs.replace(self, task=task)

    def recurring_job(self, registry: str, task: "Task[Any, Any, Any, Any] | None") -> "Scheduled":
        """Returns the recurring job of the schedule, as a registry of that name declares it."""
        if task is None:
            raise BadTask(f"task {self.task} has a schedule, but is not in a registry")
        new = task.new_job(**self.args)
        # The id tells what was declared, so that another time or argument is another job.
        declared = _encode_json([self.cron, self.tz, self.interval, self.args])
        digest = hashlib.sha256(declared).hexdigest()[:8]
        return Scheduled(
            id=f"{prefix_of(registry)}{task.name}:{digest}",
            queue=new.queue,
            klass=task.name,
            # Without headers: its runs are not part of the trace of the deploy.
            data=task.parameters.encode((), self.args),
            cron=self.cron,
            tz=self.tz,
            interval=self.interval,
            priority=new.priority or 0,
            retries=task.options_given.retries if task.options_given.retries is not None else 5,
            tags=new.tags or (),
            throttles=new.throttles or (),
            unique=new.unique,
            unique_for=new.unique_for,
        )


class Scheduled(msgspec.Struct, frozen=True, kw_only=True):
    """A recurring job as it is declared."""

    id: str
    queue: str
    klass: str
    data: Any
    cron: str | None
    tz: str
    interval: float | None
    priority: float
    retries: float
    tags: tuple[Any, ...]
    throttles: tuple[str, ...]
    unique: str | None
    unique_for: str | float

    def describe(self) -> str:
        """Returns the task and when it runs, in words."""
        when = f"every {self.interval:g} s" if self.cron is None else f"{self.cron} {self.tz}"
        return f"{self.klass} ({when})"

    def matches(self, found: RecurringJob) -> bool:
        """Returns whether the store's recurring job needs no change."""
        return (
            found.queue == self.queue
            and found.klass == self.klass
            and found.data == self.data
            and (found.cron or None) == self.cron
            and (self.cron is None or found.tz == self.tz)
            and (self.interval is None or found.interval == self.interval)
            and found.priority == self.priority
            and found.retries == self.retries
            and tuple(found.tags) == tuple(self.tags)
            and found.throttles == self.throttles
            and (found.unique, found.unique_for) == (self.unique, self.unique_for)
        )


def prefix_of(registry: str) -> str:
    """Returns the prefix of the ids of all recurring jobs that a registry has declared."""
    return f"schedule:{registry}:"


def deploy(store: Any, tasks: "Tasks") -> None:
    """Makes the recurring jobs of a store equal to what is declared; see `Tasks.deploy`."""
    wanted = {each.id: each for each in tasks.schedules}
    owned = tuple(prefix_of(registry.name) for registry in tasks.registries())
    if isinstance(store, Space):  # one commit: when fifty workers start, one makes each job
        store.transact(lambda tx: _apply(tx.jobs, wanted, owned, tasks))
    else:
        _apply(store.jobs, wanted, owned, tasks)


def _apply(jobs: Any, wanted: dict[str, Scheduled], owned: tuple[str, ...], tasks: "Tasks") -> None:
    for queue in jobs.queues():
        for id in _recurring(jobs, queue.name):
            if id.startswith(owned) and id not in wanted:
                jobs.unrecur(id)
    for each in wanted.values():
        found = jobs.recur_get(each.id)
        if found is None or not each.matches(found):
            jobs.recur(
                each.queue,
                each.klass,
                each.data,
                id=each.id,
                cron=each.cron,
                interval=each.interval,
                tz=each.tz,
                offset=each.interval or 0,
                priority=each.priority,
                retries=each.retries,
                tags=each.tags,
                throttles=each.throttles,
                unique=each.unique,
                unique_for=each.unique_for,
                backlog=1,
            )
    _deploy_throttles(jobs, tasks)


def _deploy_throttles(jobs: Any, tasks: "Tasks") -> None:
    for task in tasks:
        most = task.options_given.max_concurrency
        if most:
            throttle = jobs.throttle_get(f"task:{task.name}")
            if throttle.maximum != most:
                jobs.throttle_set(f"task:{task.name}", most)


def _recurring(jobs: Any, queue: str) -> list[str]:
    """Returns the ids of all recurring jobs of a queue, read page by page."""
    found: list[str] = []
    while True:
        page = jobs.jobs("recurring", queue, offset=len(found), count=_PAGE)
        found += page
        if len(page) < _PAGE:
            return found
