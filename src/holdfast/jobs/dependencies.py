"""Dependencies: a job in state `depends` waits until all that it depends on are complete.

Both directions are stored, a job's `dependencies` and its `dependents`, with one key for each pair.
The job's record says how many jobs it waits for, and whether others may wait for it, so jobs
without dependencies cost nothing extra.
"""

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from holdfast import expiry
from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.errors import BadArgument, CircularDependency, JobNeeded, UnknownJob, WrongState
from holdfast.jobs import lists
from holdfast.jobs.layout import below, last_part
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.records import COMPLETE, DEPENDS, JobRecord
from holdfast.keys import after as key_after
from holdfast.keys import pack, pack_int, unpack
from holdfast.limits import (
    DEPENDENTS_RELEASED_AT_ONCE,
    JOBS_PER_STEP,
    MAX_DEPENDENCY_WALK,
    MAX_JOB_DEPENDENCIES,
)

RELEASE_KIND: Final = "jobs.release"


def dependents_of(ledger: Ledger, job: JobRecord) -> list[str]:
    """Returns the jobs that wait for the job, ascending."""
    return list(each_dependent(ledger, job))


def each_dependent(ledger: Ledger, job: JobRecord, limit: int | None = None) -> Iterator[str]:
    """Yields the jobs that wait for the job, ascending, at most `limit`."""
    if job.has_dependents:
        prefix = ledger.keys.dependents_of(job.jid)
        for key, _ in ledger.tx.scan(*below(prefix), limit=limit):
            yield last_part(key, prefix)


def is_awaited(ledger: Ledger, job: JobRecord) -> bool:
    """Returns whether a job waits for this one. Reads 1 key if one may."""
    return any(True for _ in each_dependent(ledger, job, 1))


def dependencies_of(ledger: Ledger, job: JobRecord) -> list[str]:
    """Returns the jobs that the job waits for, ascending."""
    if not job.unmet:
        return []
    prefix = ledger.keys.dependencies_of(job.jid)
    return [last_part(key, prefix) for key, _ in ledger.tx.scan(*below(prefix))]


# --- changing ---------------------------------------------------------------------------------


def replace(ledger: Ledger, job: JobRecord, jids: list[str]) -> None:
    """Makes the job wait for exactly those of `jids` that exist and are not complete."""
    wanted = set(jids)
    for jid in dependencies_of(ledger, job):
        if jid not in wanted:
            forget(ledger, job, jid)
    depend(ledger, job, jids)


def depend(ledger: Ledger, job: JobRecord, jids: list[str]) -> None:
    """Makes the job also wait for those of `jids` that exist and are not complete."""
    if job.jid in jids:
        raise CircularDependency.of(job.jid)
    if job.unmet + len(jids) > MAX_JOB_DEPENDENCIES:
        raise BadArgument(f"more dependencies than the {MAX_JOB_DEPENDENCIES} that fit a job")
    tx, keys = ledger.tx, ledger.keys
    for jid in jids:
        if job.unmet and tx.get(keys.dependency(job.jid, jid)) is not None:
            continue
        other = ledger.job(jid)
        if other is None or other.state == COMPLETE:
            continue
        if not other.has_dependents:
            other.has_dependents = True
            ledger.save(other)
        tx.put(keys.dependent(jid, job.jid), pack_int(other.round) if other.round else b"")
        tx.put(keys.dependency(job.jid, jid), b"")
        job.unmet += 1
    if job.has_dependents and job.unmet:
        _refuse_cycle(ledger, job)


def _refuse_cycle(ledger: Ledger, job: JobRecord) -> None:
    """Raises if the job would wait for itself; only one that others wait for can close a cycle."""
    if ledger.timer is not None:
        ledger.timer.check()
    seen: set[str] = set()
    to_visit = dependencies_of(ledger, job)
    while to_visit:
        jid = to_visit.pop()
        if jid == job.jid:
            raise CircularDependency.of(jid)
        if jid in seen:
            continue
        seen.add(jid)
        if len(seen) > MAX_DEPENDENCY_WALK:
            raise CircularDependency(
                f"job {job.jid!r} depends on more than {MAX_DEPENDENCY_WALK} others"
            )
        other = ledger.job(jid)
        if other is not None:
            to_visit += dependencies_of(ledger, other)


def forget(ledger: Ledger, job: JobRecord, jid: str) -> None:
    """Removes `jid` from the job's dependencies, whatever became of it.

    The caller saves the record.
    """
    key = ledger.keys.dependency(job.jid, jid)
    if ledger.tx.get(key) is not None:
        ledger.tx.delete(key)
        ledger.tx.delete(ledger.keys.dependent(jid, job.jid))
        job.unmet -= 1


def forget_all(ledger: Ledger, job: JobRecord) -> None:
    """Removes all dependencies of the job. The caller saves the record."""
    for jid in dependencies_of(ledger, job):
        forget(ledger, job, jid)


def refuse_missing_dependents(
    ledger: Ledger, jids: list[str], mentioned: Collection[str] | None = None
) -> None:
    """Raises `JobNeeded` if a job depends on one of `jids` and isn't `mentioned` (in `jids`)."""
    named = set(jids) if mentioned is None else mentioned
    for jid in jids:
        job = ledger.job(jid)
        if job is None or job.state == COMPLETE:
            continue
        for dependent in each_dependent(ledger, job):
            if dependent not in named:
                raise JobNeeded.by(jid, dependent)


def leaves_first(ledger: Ledger, jids: Iterable[str], limit: float = math.inf) -> list[str]:
    """Returns `jids` and all jobs that depend on them, directly or through others, each after all
    that depend on it: so they can be canceled in steps. Raises if there are more than `limit`."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    to_visit = list(jids)
    while to_visit:
        jid = to_visit[-1]
        if jid in seen:
            found.setdefault(to_visit.pop())
            continue
        seen.add(jid)
        if len(seen) > limit:
            raise BadArgument(f"more than {limit} jobs: these, and those that depend on them")
        job = ledger.job(jid)
        if job is not None and job.state != COMPLETE:
            to_visit += (other for other in each_dependent(ledger, job) if other not in seen)
    return list(found)


def release_dependents(ledger: Ledger, job: JobRecord, now: float) -> None:
    """Starts the jobs that waited for this one alone, now that it is complete.

    All jobs that one call completes release `DEPENDENTS_RELEASED_AT_ONCE` together. Expiry releases
    the others in steps; until then they wait for a complete job, which retention keeps.
    """
    room = DEPENDENTS_RELEASED_AT_ONCE - ledger.released
    waiting = list(each_dependent(ledger, job, room + 1))
    for jid in waiting[:room]:
        _release(ledger, jid, job.jid, now)
        ledger.released += 1
    job.has_dependents = len(waiting) > room
    if job.has_dependents:
        expiry.begin_work(ledger.tx, RELEASE_KIND, pack(job.jid, "", now))


def _release(ledger: Ledger, jid: str, dependency: str, now: float) -> None:
    """Takes a dependency from a job, and starts the job if it was the last one."""
    job = ledger.job(jid)
    assert job is not None
    forget(ledger, job, dependency)
    start_if_unblocked(ledger, job, now)
    ledger.save(job)


def continue_release(tx: Transaction, subject: bytes) -> bool:
    """Releases more jobs that waited for a job which was completed; see expiry.py.

    The subject is that job, the last job that was looked at, and the time of the completion. The
    job may have been put again since; then those that came later wait for its next completion.
    """
    dependency, last, now = unpack(subject)
    ledger = Ledger(tx)
    job = ledger.job(dependency)
    prefix = ledger.keys.dependents_of(dependency)
    begin, end = below(prefix)
    if last:
        begin = key_after(ledger.keys.dependent(dependency, last))
    found = list(tx.scan(begin, end, limit=JOBS_PER_STEP))
    for key, value in found:
        last = last_part(key, prefix)
        if job is None or job.state == COMPLETE or (unpack(value) or (0,))[0] < job.round:
            _release(ledger, last, dependency, now)
    if len(found) == JOBS_PER_STEP:
        expiry.begin_work(tx, RELEASE_KIND, pack(dependency, last, now))
    elif job is not None and not is_awaited(ledger, job):
        job.has_dependents = False
        ledger.save(job)
    return True


def release_parent(ledger: Ledger, job: JobRecord, now: float) -> None:
    """Continues a workflow that waited for this failed job alone."""
    parent = ledger.job(job.parent)
    if parent is not None:
        forget(ledger, parent, job.jid)
        start_if_unblocked(ledger, parent, now)
        ledger.save(parent)


def start_if_unblocked(ledger: Ledger, job: JobRecord, now: float) -> None:
    """Starts a blocked job that no longer waits for another, at the time it was put for."""
    if job.unmet or job.state != DEPENDS:  # the seed's Fail may have failed it while it was blocked
        return
    lists.leave(ledger, job, now)
    start, job.start = job.start, 0.0
    if start:
        lists.enter_schedule(ledger, job, start)
    else:
        lists.enter_work(ledger, job, now)


# --- operations -------------------------------------------------------------------------------


def blocked_job(ledger: Ledger, jid: str) -> JobRecord:
    job = ledger.job(jid)
    if job is None:
        raise UnknownJob.of(jid)
    if job.state != DEPENDS:
        raise WrongState.of(jid, job.state, "blocked by other jobs")
    return job


def depend_on(ledger: Ledger, jid: str, jids: list[str]) -> None:
    job = blocked_job(ledger, jid)
    depend(ledger, job, jids)
    ledger.save(job)


def depend_off(ledger: Ledger, jid: str, jids: list[str] | None, now: float) -> None:
    """Removes `jids` from the job's dependencies; None removes all."""
    job = blocked_job(ledger, jid)
    for other in dependencies_of(ledger, job) if jids is None else jids:
        forget(ledger, job, other)
    start_if_unblocked(ledger, job, now)
    ledger.save(job)


class DependencyOperations:
    """Operations on dependencies."""

    _ledger: Ledger

    @operation()
    def depends_on(self, id: str, *ids: str) -> None:
        """Makes a job in state `depends` wait for more jobs; complete ones count as met.

        Reads 2 keys and writes 3 for each of `ids`.
        """
        depend_on(self._ledger, id, list(dict.fromkeys(ids)))

    @operation()
    def depends_off(self, id: str, *ids: str, all: bool = False, now: float | None = None) -> None:
        """Removes `ids`, or all, from a job's dependencies; it starts when none is left.

        Reads 1 key and deletes 2 for each of `ids`.
        """
        depend_off(self._ledger, id, None if all else list(ids), self._ledger.time(now))
