"""Transfer: jobs go from a source into a store in bounded steps, and each step is verified.

Nothing is remembered between two runs: a job that the store already has is skipped, so an
interrupted run can be started again.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from holdfast.errors import BadArgument
from holdfast.jobs.imports import ImportedDay, ImportedJob, ImportedRecurring, combined_digest
from holdfast.limits import MAX_REPORTED_PROBLEMS


class JobSource(ABC):
    """The system that jobs come from. It leaves out what can't be imported, with the reason."""

    def __init__(self) -> None:
        self.left_out: list[str] = []
        self.left_out_count = 0

    def leave_out(self, id: str, why: str) -> None:
        """Notes a job that can't be imported."""
        self.left_out_count += 1
        if len(self.left_out) < MAX_REPORTED_PROBLEMS:
            self.left_out.append(f"job {id}: {why}")

    @abstractmethod
    def total(self) -> int:
        """Returns about how many jobs there are."""

    @abstractmethod
    def pages(self) -> Iterator[list[ImportedJob]]:
        """Yields all jobs, a step at a time."""

    def recurring(self) -> Iterator[list[ImportedRecurring]]:
        """Yields recurring jobs; most sources have none."""
        yield from ()

    def statistics(self) -> Iterator[list[ImportedDay]]:
        """Yields what the source has counted in the past; most sources count nothing."""
        yield from ()

    def settings(self) -> dict[str, str]:
        """Returns options to set."""
        return {}

    def paused(self) -> list[str]:
        """Returns queues to pause."""
        return []


class Transfer(msgspec.Struct, kw_only=True):
    """Counts of an import. `differing` jobs were here already and are not what the source has."""

    read: int = 0
    imported: int = 0
    present: int = 0
    recurring: int = 0
    days: int = 0
    left_out: int = 0
    differing: int = 0
    states: dict[str, int] = msgspec.field(default_factory=dict)
    digest: str = "00" * 32
    problems: list[str] = msgspec.field(default_factory=list)


def transfer(source: JobSource, jobs: Any, progress: Callable[[int], None]) -> Transfer:
    """Imports everything of `source` into `jobs`, the jobs of a store or of a client."""
    done = Transfer()
    for option, value in source.settings().items():
        try:
            jobs.config_set(option, value)
        except BadArgument as refused:
            done.problems.append(f"option {option}: {refused}")
    paused = source.paused()
    if paused:
        jobs.pause(*paused)
    seen: set[str] = set()
    for page in source.pages():
        new = [job for job in page if job.id not in seen]
        seen.update(job.id for job in new)
        if new:
            _import_page(jobs, new, done)
            progress(done.read)
    for recurring in source.recurring():
        done.recurring += jobs.import_jobs([], recurring=recurring).imported
    for days in source.statistics():
        done.days += jobs.import_jobs([], statistics=days).imported
    done.left_out = source.left_out_count
    done.problems += source.left_out
    return done


def _import_page(jobs: Any, page: list[ImportedJob], done: Transfer) -> None:
    taken = jobs.import_jobs(page)
    found = jobs.digest([job.id for job in page])
    expected = combined_digest(job.digest() for job in page)
    if found.count != len(page) or found.digest != expected.hex():
        _report_differences(jobs, page, done)
    done.read += len(page)
    done.imported += taken.imported
    done.present += taken.present
    done.states = dict(Counter(done.states) + Counter(found.states))
    done.digest = combined_digest([bytes.fromhex(done.digest), bytes.fromhex(found.digest)]).hex()


def _report_differences(jobs: Any, page: list[ImportedJob], done: Transfer) -> None:
    """Reports the jobs of a page that differ from those of the source."""
    for job in page:
        found = jobs.digest([job.id])
        if found.digest != job.digest().hex():
            done.differing += 1
            if len(done.problems) < MAX_REPORTED_PROBLEMS:
                done.problems.append(f"job {job.id}: what is here is not what the source has")
