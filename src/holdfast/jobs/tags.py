"""Tags: the index from a tag to its jobs, and the operations on it."""

from typing import TYPE_CHECKING

from holdfast.declarations import operation
from holdfast.engine.contract import pack_counter, read_counter
from holdfast.errors import BadArgument, UnknownJob
from holdfast.jobs.arguments import check_jid, check_name, tag_text
from holdfast.jobs.layout import below, time_and_jid
from holdfast.jobs.records import JobPage, JobRecord, Tag
from holdfast.keys import unpack
from holdfast.limits import MAX_JOB_TAGS

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

# --- the index --------------------------------------------------------------------------------


def attach(ledger: "Ledger", job: JobRecord, tag: Tag, now: float) -> None:
    """Gives the job one more tag, which it does not carry yet."""
    text = tag_text(tag)
    job.tags.append(tag)
    job.tagged.append(now)
    ledger.tx.put(ledger.keys.tagged_at(text, now, job.jid), b"")
    _count(ledger, text, 1)


def reattach(ledger: "Ledger", job: JobRecord, at: int, now: float) -> None:
    """Sets the time of the tag at index `at` to now."""
    text = tag_text(job.tags[at])
    ledger.tx.delete(ledger.keys.tagged_at(text, job.tagged[at], job.jid))
    job.tagged[at] = now
    ledger.tx.put(ledger.keys.tagged_at(text, now, job.jid), b"")


def detach(ledger: "Ledger", job: JobRecord, at: int) -> None:
    """Takes the tag at index `at` from the job."""
    text = tag_text(job.tags.pop(at))
    ledger.tx.delete(ledger.keys.tagged_at(text, job.tagged.pop(at), job.jid))
    _count(ledger, text, -1)


def detach_all(ledger: "Ledger", job: JobRecord) -> None:
    while job.tags:
        detach(ledger, job, len(job.tags) - 1)


def _count(ledger: "Ledger", tag: str, delta: int) -> None:
    """Counts the jobs of a tag, and keeps tags of two jobs and more in order of that number."""
    tx, keys = ledger.tx, ledger.keys
    before = read_counter(tx.get(keys.tag_count(tag)))
    after = before + delta
    if before > 1:
        tx.delete(keys.tag_rank(before, tag))
    if after > 1:
        tx.put(keys.tag_rank(after, tag), b"")
    if after:
        tx.put(keys.tag_count(tag), pack_counter(after))
    else:
        tx.delete(keys.tag_count(tag))


# --- operations -------------------------------------------------------------------------------


def _require_job(ledger: "Ledger", jid: str) -> JobRecord:
    job = ledger.job(check_jid(jid))
    if job is None:
        raise UnknownJob.of(jid)
    return job


def add_tags(ledger: "Ledger", jid: str, tags: list[Tag], now: float) -> list[Tag]:
    job = _require_job(ledger, jid)
    carried = {tag_text(tag): at for at, tag in enumerate(job.tags)}
    for tag in tags:
        text = check_name(tag_text(tag), "tag")
        if text in carried:
            reattach(ledger, job, carried[text], now)
        else:
            carried[text] = len(job.tags)
            attach(ledger, job, tag, now)
    if len(job.tags) > MAX_JOB_TAGS:
        raise BadArgument(f"{len(job.tags)} tags, at most {MAX_JOB_TAGS} fit")
    ledger.save(job)
    return job.tags


def remove_tags(ledger: "Ledger", jid: str, tags: list[Tag]) -> list[Tag]:
    job = _require_job(ledger, jid)
    unwanted = {tag_text(tag) for tag in tags}
    for at in range(len(job.tags) - 1, -1, -1):
        if tag_text(job.tags[at]) in unwanted:
            detach(ledger, job, at)
    ledger.save(job)
    return job.tags


def jobs_with_tag(ledger: "Ledger", tag: str, offset: int, count: int) -> JobPage:
    check_name(tag, "tag")
    prefix = ledger.keys.tagged(tag)
    found = ledger.page(below(prefix), offset, count)
    return JobPage(
        total=read_counter(ledger.tx.get(ledger.keys.tag_count(tag))),
        jobs=tuple(time_and_jid(key, prefix)[1] for key in found),
    )


def most_used_tags(ledger: "Ledger", offset: int, count: int) -> list[str]:
    prefix = ledger.keys.tag_ranks
    found = ledger.page(below(prefix), offset, count, reverse=True)
    return [str(unpack(key, len(prefix))[1]) for key in found]


class TagOperations:
    """Operations on tags."""

    _ledger: "Ledger"

    @operation()
    def tag(self, id: str, *tags: Tag, now: float | None = None) -> tuple[Tag, ...]:
        """Adds tags to a job and returns all of its tags.

        If it has a tag already, it becomes the newest job of that tag. Reads 2 keys, writes 4 for
        each new tag.
        """
        return tuple(add_tags(self._ledger, id, list(tags), self._ledger.time(now)))

    @operation()
    def untag(self, id: str, *tags: Tag) -> tuple[Tag, ...]:
        """Removes tags from a job and returns the rest.

        Reads 2 keys, writes 4 for each tag.
        """
        return tuple(remove_tags(self._ledger, id, list(tags)))

    @operation(reads=True)
    def tagged(self, tag: Tag, *, offset: int = 0, count: int = 25) -> JobPage:
        """Returns the jobs that have `tag`, in the order in which they got it.

        Reads 1 key for each job up to the page's end.
        """
        return jobs_with_tag(self._ledger, tag_text(tag), offset, count)

    @operation(reads=True)
    def top_tags(self, *, offset: int = 0, count: int = 25) -> tuple[str, ...]:
        """Returns the tags that at least two jobs have, the most used first.

        Reads 1 key for each tag up to the page's end.
        """
        return tuple(most_used_tags(self._ledger, offset, count))
