"""Failures: groups of failed jobs, putting them back, and dead letters, the view of all groups."""

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.declarations import operation
from holdfast.engine.contract import read_counter
from holdfast.errors import BadArgument
from holdfast.jobs import dependencies, lists
from holdfast.jobs.arguments import check_name, tag_text
from holdfast.jobs.layout import below, last_part, time_and_jid
from holdfast.jobs.records import FAILED, DeadLetters, JobPage, JobRecord, Tag
from holdfast.jobs.views import to_job
from holdfast.keys import unpack
from holdfast.limits import JOBS_PER_STEP

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Selects failed jobs: those that meet every condition that is given."""

    group: str | None = None
    queue: str | None = None
    klass: str | None = None
    tag: Tag | None = None
    message: str | None = None  # a part of the failure's message
    failed_since: float | None = None
    failed_before: float | None = None

    def fits_letter(self, job: JobRecord) -> bool:
        """Returns whether a job of a dead-letter queue meets the conditions; `queue` is the queue
        that it came from."""
        failure = job.failure
        assert failure is not None
        return (self.group is None or failure.group == self.group) and self.fits(job, failure.when)

    def fits(self, job: JobRecord, failed_at: float) -> bool:
        """Returns whether a failed job meets the conditions."""
        failure = job.failure
        assert failure is not None
        return (
            (self.queue is None or self.queue == (job.origin or job.queue))
            and (self.klass is None or job.klass == self.klass)
            and (self.message is None or self.message in failure.message)
            and (self.failed_since is None or failed_at >= self.failed_since)
            and (self.failed_before is None or failed_at < self.failed_before)
            and (self.tag is None or tag_text(self.tag) in map(tag_text, job.tags))
        )


class FailureOperations:
    """Operations on jobs that have failed."""

    _ledger: "Ledger"

    @operation(reads=True)
    def failed(self) -> dict[str, int]:
        """Returns how many jobs are in each failure group. Reads 1 key for each group."""
        return group_counts(self._ledger)

    @operation(reads=True)
    def failed_in(self, group: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """Returns the failed jobs of a group, newest first.

        Reads 1 key for each job up to the end of the page.
        """
        return failed_in(self._ledger, check_name(group, "group"), offset, count)

    @operation()
    def unfail(self, queue: str, group: str, count: int = 25, *, now: float | None = None) -> int:
        """Puts the `count` oldest jobs of a failure group into `queue`; returns how many.

        Reads 5 keys and writes 7 for each.
        """
        if count > JOBS_PER_STEP:
            raise BadArgument(
                f"{count} jobs, at most {JOBS_PER_STEP} fit one transaction",
                hint="`store.jobs.unfail` takes any number, in several transactions.",
            )
        return unfail(self._ledger, queue, group, count, self._ledger.time(now))

    @operation(reads=True)
    def dead_letters(
        self, match: Match | None = None, *, cursor: str | None = None, count: int = 25
    ) -> DeadLetters:
        """Returns failed jobs that match, by group and then oldest first, a page at a time.

        A page looks at no more than `JOBS_PER_STEP` jobs, so it may hold fewer than `count` even if
        more follow: continue until `cursor` is None. Reads 2 keys for each job looked at.
        """
        ledger = self._ledger
        found: list[JobRecord] = []
        following = None
        for at, (key, failed_at, job) in enumerate(_failed_jobs(ledger, match or Match(), cursor)):
            if len(found) == count or at == JOBS_PER_STEP:
                following = _cursor(ledger, key)
                break
            if (match or Match()).fits(job, failed_at):
                found.append(job)
        return DeadLetters(jobs=tuple(to_job(ledger, job) for job in found), cursor=following)

    @operation(local=True)
    def retry_step(
        self, match: Match, *, cursor: str | None = None, now: float | None = None
    ) -> tuple[int, str | None]:
        """Runs one bounded step of `retry_failed`; returns how many jobs were put back, and where
        to continue.

        Looks at no more than `JOBS_PER_STEP` jobs.
        """
        ledger = self._ledger
        time = ledger.time(now)
        batch: list[JobRecord] = []
        following = None
        for at, (key, failed_at, job) in enumerate(_failed_jobs(ledger, match, cursor)):
            if at == JOBS_PER_STEP:
                following = _cursor(ledger, key)
                break
            if match.fits(job, failed_at):
                batch.append(job)
        for job in batch:
            requeue_failed(ledger, job, job.queue, time)
        return len(batch), following


# --- how it is done ---------------------------------------------------------------------------


def group_counts(ledger: "Ledger") -> dict[str, int]:
    prefix = ledger.keys.failure_groups
    pairs = ledger.tx.scan(*below(prefix))
    counts = {last_part(key, prefix): read_counter(value) for key, value in pairs}
    return {group: count for group, count in counts.items() if count}


def failed_in(ledger: "Ledger", group: str, offset: int, count: int) -> JobPage:
    prefix = ledger.keys.failed_in(group)
    found = ledger.page(below(prefix), offset, count, reverse=True)
    return JobPage(
        total=read_counter(ledger.tx.get(ledger.keys.failure_group(group))),
        jobs=tuple(time_and_jid(key, prefix)[1] for key in found),
    )


def unfail(ledger: "Ledger", queue: str, group: str, count: int, now: float) -> int:
    check_name(queue, "queue")
    check_name(group, "group")
    prefix = ledger.keys.failed_in(group)
    found = list(ledger.tx.scan(*below(prefix), limit=max(0, count)))
    for key, _ in found:
        job = ledger.job(time_and_jid(key, prefix)[1])
        assert job is not None
        requeue_failed(ledger, job, queue, now)
    return len(found)


def requeue_failed(ledger: "Ledger", job: JobRecord, queue: str, now: float) -> None:
    """Puts a failed job into a queue as work; its failure stays visible until it completes."""
    assert job.state == FAILED
    lists.leave(ledger, job, now)
    dependencies.forget_all(ledger, job)  # it starts whether or not they are complete
    job.queue = queue
    job.remaining = job.retries
    ledger.add_to_history(job, "put", now, {"q": queue})
    ledger.tx.add(ledger.keys.queue(queue).puts, 1)
    ledger.register_queue(ledger.keys.queue(queue), now)
    lists.enter_work(ledger, job, now)
    ledger.save(job)


def _failed_jobs(
    ledger: "Ledger", match: Match, cursor: str | None
) -> Iterator[tuple[bytes, float, JobRecord]]:
    """Yields the failed jobs of the group that `match` names, or of all groups, from `cursor` on,
    each with its key and the time at which it failed."""
    prefix = ledger.keys.failed
    whole = prefix if match.group is None else ledger.keys.failed_in(match.group)
    begin, end = below(whole)
    if cursor is not None:
        try:
            begin = max(begin, prefix + base64.b64decode(cursor, b"-_", validate=True))
        except ValueError:
            raise BadArgument(f"{cursor} is not a cursor of dead letters") from None
    for key, _ in ledger.tx.scan(begin, end, limit=JOBS_PER_STEP + 1):
        _, failed_at, jid = unpack(key, len(prefix))
        job = ledger.job(jid)
        assert job is not None
        yield key, failed_at, job


def _cursor(ledger: "Ledger", key: bytes) -> str:
    return base64.urlsafe_b64encode(key[len(ledger.keys.failed) :]).decode()
