"""The state machine of jobs as simply as it can be said: dicts, lists and sorting, without any
thought of cost.
"""

from dataclasses import dataclass, field
from typing import Any

HEARTBEAT = 60
GRACE = 10


class Refused(Exception):
    """A call that the layer must refuse as well."""


@dataclass
class ModelJob:
    jid: str
    queue: str = ""
    state: str = ""
    priority: float = 0
    retries: float = 5
    remaining: float = 5
    worker: str = ""
    expires: float = 0
    holder_notified: bool = False
    start: float = 0  # remembered while it depends on others
    entered: tuple[float, ...] = ()  # what its list is ordered by
    tags: list[str] = field(default_factory=list)
    tagged: list[float] = field(default_factory=list)
    history: list[tuple[str, int, dict[str, Any]]] = field(default_factory=list)
    failure: dict[str, Any] | None = None
    failed_at: float = 0
    spawned_from: str | None = None
    depends: set[str] = field(default_factory=set)
    in_batch: bool = False
    origin: str | None = None
    klass: str = ""
    popped: float = 0
    timeout: float = 0  # how long one run may take; 0: as long as it renews its lock
    start_by: float = 0  # dropped if it has not started; 0: whenever


@dataclass
class ModelRecurring:
    queue: str
    interval: int
    next: float
    count: int = 0


class Model:
    """All operations with a time; every method raises `Refused` before it changes anything."""

    def __init__(self) -> None:
        self.jobs: dict[str, ModelJob] = {}
        self.recurring: dict[str, ModelRecurring] = {}
        self.paused: set[str] = set()
        self.known: dict[str, float] = {}
        self.workers: dict[str, float] = {}
        self.held: dict[str, dict[str, float]] = {}
        self.counters: dict[tuple[str, str], int] = {}
        self.arrivals = 0
        self.grace = GRACE
        self.letters = ""  # the dead-letter queue of queue two
        self.batch_total = self.batch_canceled = 0
        # Completed, failures and retries, by queue, what kind of name, and name.
        self.by_name: dict[tuple[str, str, str], list[int]] = {}
        self.stats_tags = ("x", "y")
        self.rate = (2, 60)  # of queue slow
        self.starts: list[float] = []

    # --- lists ----------------------------------------------------------------------------------

    def listed(self, queue: str, *states: str) -> list[ModelJob]:
        found = [job for job in self.jobs.values() if job.queue == queue and job.state in states]
        return sorted(found, key=lambda job: (job.entered, job.jid))

    def work(self, queue: str) -> list[ModelJob]:
        return self.listed(queue, "waiting", "stalled")

    def dependents(self, jid: str) -> list[str]:
        return sorted(job.jid for job in self.jobs.values() if jid in job.depends)

    def count(self, queue: str, name: str, delta: int = 1) -> None:
        self.counters[queue, name] = self.counters.get((queue, name), 0) + delta

    def count_for(self, job: ModelJob, what: int) -> None:
        """Counts what became of a job for its class, its tags and the worker that holds it."""
        names = [("class", job.klass), ("worker", job.worker)]
        names += [("tag", tag) for tag in job.tags if tag in self.stats_tags]
        for kind, name in names:
            if name or kind == "class":
                self.by_name.setdefault((job.queue, kind, name), [0, 0, 0])[what] += 1

    def left(self, now: float) -> int:
        """Returns how many jobs of the queue with a rate may start."""
        jobs, seconds = self.rate
        return max(0, jobs - sum(start > now - seconds for start in self.starts))

    def batch(self) -> tuple[int, int, int, int]:
        """Total, complete, failed and canceled jobs of the one batch."""
        states = [job.state for job in self.jobs.values() if job.in_batch]
        complete, failed = states.count("complete"), states.count("failed")
        return self.batch_total, complete, failed, self.batch_canceled

    def remember_put(self, job: ModelJob, queue: str, now: float) -> None:
        job.history.append(("put", int(now), {"q": queue}))
        self.count(queue, "puts")

    # --- moving ---------------------------------------------------------------------------------

    def _enter_work(self, job: ModelJob, time: float, front: bool = False) -> None:
        self.arrivals += 1
        job.state = "stalled" if front else "waiting"
        priority = 0 if front else -job.priority
        job.entered = (0 if front else 1, priority, time, self.arrivals)

    def _enter(self, job: ModelJob, now: float, delay: float) -> None:
        self.known.setdefault(job.queue, now)
        job.start = 0
        if job.depends:
            job.state, job.entered = "depends", (now,)
            job.start = now + delay if delay > 0 else 0
        elif delay > 0:
            job.state, job.entered = "scheduled", (now + delay,)
        else:
            self._enter_work(job, now)

    def _leave(self, job: ModelJob) -> None:
        if job.state == "running":
            self.held.get(job.worker, {}).pop(job.jid, None)
        if job.state == "failed":
            self.count(job.queue, "failed", -1)
        job.worker, job.expires, job.holder_notified = "", 0, False

    def _start_if_free(self, job: ModelJob, now: float) -> None:
        if not job.depends and job.state == "depends":
            if job.start:
                job.state, job.entered = "scheduled", (job.start,)
            else:
                self._enter_work(job, now)
            job.start = 0

    def _move_due(self, queue: str, now: float) -> None:
        for job in self.listed(queue, "scheduled"):
            if job.entered[0] <= now:
                self._enter_work(job, now)

    def _reaches(self, jid: str, target: str) -> bool:
        return jid == target or any(self._reaches(each, target) for each in self.jobs[jid].depends)

    # --- operations -----------------------------------------------------------------------------

    def put(
        self,
        queue: str,
        jid: str,
        now: float,
        *,
        delay: float,
        priority: float | None,
        tags: list[str] | None,
        retries: int | None,
        depends: list[str] | None,
        batch: str | None = None,
        klass: str = "",
        timeout: float | None = None,
        expires: float | None = None,
    ) -> None:
        job = self.jobs.get(jid) or ModelJob(jid)
        wanted = set(job.depends)
        if depends:
            unfinished = [j for j in depends if j in self.jobs and self.jobs[j].state != "complete"]
            wanted = {j for j in unfinished if j != jid}
            if jid in depends or any(self._reaches(j, jid) for j in wanted if jid in self.jobs):
                raise Refused
        self.jobs[jid] = job
        self._leave(job)
        job.depends = wanted
        job.queue = queue
        job.priority = job.priority if priority is None else priority
        job.retries = job.retries if retries is None else retries
        job.remaining = job.retries
        job.tags = job.tags if tags is None else list(dict.fromkeys(tags))
        job.tagged = [now] * len(job.tags)
        job.origin = None
        job.klass = klass
        job.timeout = job.timeout if timeout is None else timeout
        job.start_by = expires or 0
        if batch is not None and not job.in_batch:
            job.in_batch = True
            self.batch_total += 1
        self.remember_put(job, queue, now)
        self._enter(job, now, delay)

    def pop(self, queue: str, worker: str, count: int, now: float) -> list[str]:
        if queue in self.paused or count <= 0:
            return []
        self.workers[worker] = now
        if queue == "slow":
            count = min(count, self.left(now))
        given: list[ModelJob] = []
        for job in [j for j in self.listed(queue, "running") if j.entered[0] <= now][:count]:
            if not job.holder_notified or self.grace <= 0:
                job.history.append(("timed-out", int(now), {}))
                self.held[job.worker].pop(job.jid, None)
                self.count(queue, "retries")
                self.count_for(job, 2)
                if not job.holder_notified and self.grace > 0:
                    job.holder_notified = True
                    job.entered = (now + self.grace,)
                    continue
            job.remaining -= 1
            if job.remaining < 0:
                self._exhaust(job, now)
            else:
                given.append(job)
        if len(given) < count:
            self._spawn(queue, now, count - len(given))
            self._move_due(queue, now)
        for job in self.work(queue):
            if len(given) < count:
                if 0 < job.start_by <= now:
                    self._drop(job, now)
                else:
                    given.append(job)
        if queue == "slow":
            self.starts += [now] * len(given)
        for job in given:
            self._leave(job)
            job.state, job.worker = "running", worker
            job.popped, job.start_by = now, 0
            job.expires = self._lock_end(job, now)
            job.entered = (job.expires,)
            self.held.setdefault(worker, {})[job.jid] = job.expires
            job.history.append(("popped", int(now), {"worker": worker}))
            self.count(queue, "wait")
        return [job.jid for job in given]

    def _lock_end(self, job: ModelJob, now: float) -> float:
        if job.timeout:
            return min(now + HEARTBEAT, job.popped + job.timeout)
        return now + HEARTBEAT

    def _drop(self, job: ModelJob, now: float) -> None:
        """A job that is too late goes, or fails if others wait for it."""
        self.count(job.queue, "expired")
        if self.dependents(job.jid):
            message = f"the job did not start by {job.start_by:.3f}"
            job.history.append(("failed", int(now), {"group": "expired"}))
            self.count_for(job, 1)
            job.failure = {"group": "expired", "message": message, "when": int(now), "worker": ""}
            job.state, job.failed_at, job.start_by = "failed", now, 0
            self.count(job.queue, "failures")
            self.count(job.queue, "failed")
        else:
            del self.jobs[job.jid]
            self.batch_canceled += job.in_batch

    def _exhaust(self, job: ModelJob, now: float, why: dict[str, Any] | None = None) -> None:
        group = f"failed-retries-{job.queue}"
        message = f'Job exhausted retries in queue "{job.queue}"'
        job.history.append(("failed", int(now), {"group": group}))
        self._fail(job, {"group": group, "message": message, "when": now, "worker": ""}, now)
        if job.state == "failed":
            job.remaining = -1

    def _fail(self, job: ModelJob, failure: dict[str, Any], now: float) -> None:
        self.count_for(job, 1)
        self._leave(job)
        job.failure = failure
        self.count(job.queue, "failures")
        if self.letters and job.queue == "two":
            job.origin = job.origin or job.queue
            job.queue, job.remaining = self.letters, job.retries
            self.remember_put(job, job.queue, now)
            self._enter(job, now, 0)
            return
        job.state, job.failed_at = "failed", now
        self.count(job.queue, "failed")

    def _spawn(self, queue: str, now: float, room: int) -> None:
        due = [(each.next, jid) for jid, each in self.recurring.items()
               if each.queue == queue and each.next <= now]  # fmt: skip
        for _, jid in sorted(due)[: max(0, room)]:
            each = self.recurring[jid]
            while each.next <= now and room > 0:
                room -= 1
                each.count += 1
                child = ModelJob(f"{jid}-{each.count}", queue, retries=0, remaining=0)
                child.spawned_from = jid
                self.remember_put(child, queue, each.next)
                self._enter_work(child, each.next)
                self.jobs[child.jid] = child
                each.next += each.interval

    def peek(self, queue: str, count: int, now: float) -> list[str]:
        ended = [j.jid for j in self.listed(queue, "running") if j.entered[0] <= now][:count]
        if len(ended) < count:
            self._spawn(queue, now, count - len(ended))
            self._move_due(queue, now)
        return ended + [job.jid for job in self.work(queue)[: count - len(ended)]]

    def _held(self, jid: str, worker: str) -> ModelJob:
        job = self.jobs.get(jid)
        if job is None or job.state != "running" or job.worker != worker:
            raise Refused
        return job

    def heartbeat(self, jid: str, worker: str, now: float) -> float:
        job = self._held(jid, worker)
        job.expires, job.holder_notified = self._lock_end(job, now), False
        job.entered = (job.expires,)
        self.held.setdefault(worker, {})[jid] = job.expires
        self.workers[worker] = now
        return job.expires

    def complete(self, jid: str, worker: str, now: float, *, next: str | None, delay: float) -> str:
        job = self._held(jid, worker)
        self.count(job.queue, "run")
        self.count_for(job, 0)
        job.history.append(("done", int(now), {}))
        self._leave(job)
        job.failure = None
        if next is not None:
            job.queue, job.remaining = next, job.retries
            self.remember_put(job, next, now)
            self._enter(job, now, delay)
            return job.state
        job.state, job.queue, job.entered = "complete", "", (now,)
        for dependent in self.dependents(jid):
            self.jobs[dependent].depends.discard(jid)
            self._start_if_free(self.jobs[dependent], now)
        return "complete"

    def fail(self, jid: str, worker: str, group: str, now: float) -> None:
        job = self._held(jid, worker)
        job.history.append(("failed", int(now), {"worker": worker, "group": group}))
        failure = {"group": group, "message": "message", "when": int(now), "worker": worker}
        self._fail(job, failure, now)

    def retry(self, jid: str, worker: str, delay: float, now: float) -> float:
        job = self._held(jid, worker)
        job.remaining -= 1
        if job.remaining < 0:
            self._exhaust(job, now)
            return -1
        job.history.append(("retried", int(now), {"worker": worker, "remaining": job.remaining}))
        self._leave(job)
        self._enter(job, now, delay)
        return job.remaining

    def timeout(self, jid: str, now: float) -> None:
        job = self.jobs.get(jid)
        if job is None or job.state != "running":
            raise Refused
        self._leave(job)
        job.history.append(("timed-out", int(now), {}))
        self._enter_work(job, now, front=True)

    def cancel(self, jids: list[str]) -> None:
        gone = [j for j in jids if j in self.jobs and self.jobs[j].state != "complete"]
        if any(dependent not in jids for jid in gone for dependent in self.dependents(jid)):
            raise Refused
        for jid in dict.fromkeys(gone):
            job = self.jobs.pop(jid)
            self._leave(job)
            self.batch_canceled += job.in_batch

    def group(self, group: str) -> list[str]:
        failed = [job for job in self.jobs.values() if job.state == "failed" and job.failure]
        found = [
            (job.failed_at, job.jid)
            for job in failed
            if job.failure is not None and job.failure["group"] == group
        ]
        return [jid for _, jid in sorted(found)]

    def unfail(self, queue: str, group: str, count: int, now: float) -> int:
        moved = self.group(group)[:count]
        for jid in moved:
            job = self.jobs[jid]
            self._leave(job)
            job.queue, job.remaining = queue, job.retries
            self.remember_put(job, queue, now)
            self._enter(job, now, 0)
        return len(moved)

    def set_priority(self, jid: str, priority: float) -> None:
        if jid not in self.jobs:
            raise Refused
        job = self.jobs[jid]
        job.priority = priority
        if (state := job.state) in ("waiting", "stalled"):
            self._enter_work(job, -1)
            job.state = state

    def depends_off(self, jid: str, others: list[str] | None, now: float) -> None:
        job = self.jobs.get(jid)
        if job is None or job.state != "depends":
            raise Refused
        job.depends = set() if others is None else job.depends - set(others)
        self._start_if_free(job, now)

    def tag(self, jid: str, tag: str, now: float) -> None:
        if jid not in self.jobs:
            raise Refused
        job = self.jobs[jid]
        if tag in job.tags:
            job.tagged[job.tags.index(tag)] = now
        else:
            job.tags.append(tag)
            job.tagged.append(now)

    def recur(self, queue: str, jid: str, interval: int, offset: int, now: float) -> None:
        self.known.setdefault(queue, now)
        count = self.recurring[jid].count if jid in self.recurring else 0
        self.recurring[jid] = ModelRecurring(queue, interval, now + offset, count)
