"""The keys of one space: `Keys` knows where each kind begins, and packs what follows.

layout.py has the map of all of them.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from holdfast.bounded_cache import BoundedCache, SharedBound, of_spaces
from holdfast.jobs.layout import LAYER, Code, QueueKeys, WorkerKeys
from holdfast.keys import pack_float, pack_int, pack_str
from holdfast.limits import MAX_NAMES_KEPT_PACKED, MAX_SPACES_KEPT_PACKED


class Keys:
    """All keys of the layer in one space."""

    __slots__ = (
        "_base",
        "_batch_counts",
        "_batch_jobs",
        "_data",
        "_dependencies",
        "_dependents",
        "_log",
        "_rate_waiters",
        "_result",
        "_signals",
        "_steps",
        "_tracked",
        "_unique",
        "batches",
        "bulk_actions",
        "cached_queue",
        "cached_worker",
        "complete",
        "completed",
        "failed",
        "failure_groups",
        "jobs",
        "queue",
        "queues",
        "recurring",
        "settings",
        "tag_counts",
        "tag_ranks",
        "tags",
        "throttle_holders",
        "throttle_waiters",
        "throttles",
        "worker",
        "worker_programs",
        "workers",
    )

    def __init__(self, space: bytes) -> None:
        base = self._base = space + pack_int(LAYER)
        self.settings = base + pack_int(Code.SETTINGS)
        self.queues = base + pack_int(Code.QUEUE)
        self.workers = base + pack_int(Code.WORKER)
        self.complete = base + pack_int(Code.COMPLETE_COUNT)
        self._tracked = base + pack_int(Code.TRACKED)
        self.failure_groups = base + pack_int(Code.FAILED_COUNT)
        self.throttles = base + pack_int(Code.THROTTLE)
        self.throttle_holders = base + pack_int(Code.THROTTLE_HOLDER)
        self.throttle_waiters = base + pack_int(Code.THROTTLE_WAITER)
        self._unique = base + pack_int(Code.UNIQUE_KEY)
        self.recurring = base + pack_int(Code.RECURRING)
        self.failed = base + pack_int(Code.FAILED)
        self.tags = base + pack_int(Code.TAGGED)
        self.tag_counts = base + pack_int(Code.TAG_COUNT)
        self.tag_ranks = base + pack_int(Code.TAG_RANK)
        self._dependents = base + pack_int(Code.DEPENDENT)
        self._dependencies = base + pack_int(Code.DEPENDENCY)
        self.completed = base + pack_int(Code.COMPLETE)
        self._data = base + pack_int(Code.DATA)
        self._result = base + pack_int(Code.RESULT)
        self.jobs = base + pack_int(Code.JOB)
        self._log = base + pack_int(Code.LOG)
        self._steps = base + pack_int(Code.STEP)
        self._signals = base + pack_int(Code.SIGNAL)
        self.worker_programs = base + pack_int(Code.WORKER_PROGRAM)
        self._rate_waiters = base + pack_int(Code.RATE_WAITER)
        self.batches = base + pack_int(Code.BATCH)
        self._batch_counts = base + pack_int(Code.BATCH_COUNT)
        self._batch_jobs = base + pack_int(Code.BATCH_JOB)
        self.bulk_actions = base + pack_int(Code.BULK_ACTION)
        # Of the queues and workers that were asked for, so that their keys are packed once.
        queues = BoundedCache(partial(QueueKeys, space, base), MAX_NAMES_KEPT_PACKED, shared=_names)
        self.queue: Callable[[str], QueueKeys] = queues.__getitem__
        self.cached_queue: Callable[[str], QueueKeys | None] = queues.get
        workers = BoundedCache(partial(WorkerKeys, base), MAX_NAMES_KEPT_PACKED, shared=_names)
        self.worker: Callable[[str], WorkerKeys] = workers.__getitem__
        self.cached_worker: Callable[[str], WorkerKeys | None] = workers.get

    @property
    def all(self) -> bytes:
        """The beginning of every key of the layer."""
        return self._base

    @property
    def all_queue_counts(self) -> bytes:
        """The beginning of the counters of all queues."""
        return self._base + pack_int(Code.COUNT)

    @property
    def tracked_jobs(self) -> bytes:
        return self._tracked

    def job(self, jid: str) -> bytes:
        return self.jobs + pack_str(jid)

    def data(self, jid: str) -> bytes:
        return self._data + pack_str(jid)

    def result(self, jid: str) -> bytes:
        return self._result + pack_str(jid)

    def log(self, jid: str) -> bytes:
        return self._log + pack_str(jid)

    def worker_program(self, name: str) -> bytes:
        return self.worker_programs + pack_str(name)

    def steps_of(self, jid: str) -> bytes:
        return self._steps + pack_str(jid)

    def signals_of(self, jid: str) -> bytes:
        return self._signals + pack_str(jid)

    def signals_named(self, jid: str, name: str) -> bytes:
        return self._signals + pack_str(jid) + pack_str(name)

    def recurring_job(self, jid: str) -> bytes:
        return self.recurring + pack_str(jid)

    def held_job(self, worker: str, jid: str) -> bytes:
        return self.worker(worker).held + pack_str(jid)

    def tracked(self, jid: str) -> bytes:
        return self._tracked + pack_str(jid)

    def unique(self, key: str) -> bytes:
        return self._unique + pack_str(key)

    def failure_group(self, group: str) -> bytes:
        return self.failure_groups + pack_str(group)

    def failed_in(self, group: str) -> bytes:
        return self.failed + pack_str(group)

    def failed_at(self, group: str, time: float, jid: str) -> bytes:
        return self.failed + pack_str(group) + pack_float(time) + pack_str(jid)

    def tagged(self, tag: str) -> bytes:
        return self.tags + pack_str(tag)

    def tagged_at(self, tag: str, time: float, jid: str) -> bytes:
        return self.tags + pack_str(tag) + pack_float(time) + pack_str(jid)

    def tag_count(self, tag: str) -> bytes:
        return self.tag_counts + pack_str(tag)

    def tag_rank(self, number: int, tag: str) -> bytes:
        return self.tag_ranks + pack_int(number) + pack_str(tag)

    def dependents_of(self, jid: str) -> bytes:
        return self._dependents + pack_str(jid)

    def dependent(self, jid: str, dependent: str) -> bytes:
        return self._dependents + pack_str(jid) + pack_str(dependent)

    def dependencies_of(self, jid: str) -> bytes:
        return self._dependencies + pack_str(jid)

    def dependency(self, jid: str, dependency: str) -> bytes:
        return self._dependencies + pack_str(jid) + pack_str(dependency)

    def batch(self, batch: str) -> bytes:
        return self.batches + pack_str(batch)

    def batch_count(self, batch: str, outcome: str) -> bytes:
        return self._batch_counts + pack_str(batch) + pack_str(outcome)

    def batch_counts_of(self, batch: str) -> bytes:
        return self._batch_counts + pack_str(batch)

    def batch_jobs_of(self, batch: str) -> bytes:
        return self._batch_jobs + pack_str(batch)

    def batch_job(self, batch: str, jid: str) -> bytes:
        return self._batch_jobs + pack_str(batch) + pack_str(jid)

    def bulk_action(self, id: str) -> bytes:
        return self.bulk_actions + pack_str(id)

    def rate_waiters(self, queue: str, rate_key: str) -> bytes:
        return self._rate_waiters + pack_str(queue) + pack_str(rate_key)

    def throttle(self, name: str) -> bytes:
        return self.throttles + pack_str(name)

    def holders_of(self, throttle: str) -> bytes:
        return self.throttle_holders + pack_str(throttle)

    def holder(self, throttle: str, jid: str) -> bytes:
        return self.throttle_holders + pack_str(throttle) + pack_str(jid)

    def waiters_of(self, throttle: str) -> bytes:
        return self.throttle_waiters + pack_str(throttle)

    def waiter(self, throttle: str, time: float, jid: str) -> bytes:
        return self.throttle_waiters + pack_str(throttle) + pack_float(time) + pack_str(jid)


_kept: Final = of_spaces(BoundedCache(Keys, entries=MAX_SPACES_KEPT_PACKED))
_names: Final = SharedBound(MAX_NAMES_KEPT_PACKED, drop=_kept.clear)
keys_of: Final[Callable[[bytes], Keys]] = _kept.__getitem__  # the keys of a space
