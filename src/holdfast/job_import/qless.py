"""Jobs of a Redis that holds a Qless queue; specs/jobs.md, 10.2, lists its keys.

They come in the order in which they can be imported: the work lists best first, then all others,
and jobs that depend on others after those.
"""

import json
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

import msgspec

from holdfast.errors import BadInput
from holdfast.job_import.redis_reader import RedisReader
from holdfast.job_import.transfer import JobSource
from holdfast.jobs import Failure, HistoryEntry
from holdfast.jobs.imports import (
    ImportedDay,
    ImportedJob,
    ImportedRecurring,
    ImportedTimes,
)
from holdfast.limits import IMPORTED_PER_STEP

_LISTS: Final = ("-work", "-locks", "-scheduled", "-depends", "-recur")
_STATISTICS_KINDS: Final = ("wait", "run", "stats")  # the kinds of statistics keys
_TIERS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_STATES: Final = ("waiting", "stalled", "running", "scheduled", "depends", "failed", "complete")


class QlessSource(JobSource):
    """A Redis with the keys of Qless."""

    def __init__(self, redis: RedisReader) -> None:
        super().__init__()
        self._redis = redis
        self._tracked = {
            jid.decode() for page in redis.scored_pages("ql:tracked") for jid, _ in page
        }
        self.queues = sorted(self._queues())

    def _queues(self) -> set[str]:
        known = {
            name.decode() for page in self._redis.scored_pages("ql:queues") for name, _ in page
        }
        for key in self._redis.keys("ql:q:*"):
            name = key.decode()[len("ql:q:") :]
            for ending in _LISTS:
                if name.endswith(ending):
                    known.add(name.removesuffix(ending))
        return known

    def total(self) -> int:
        """Returns how many jobs the lists of the source hold."""
        endings = ("-work", "-locks", "-scheduled", "-depends")
        cards = [("ZCARD", f"ql:q:{queue}{ending}") for queue in self.queues for ending in endings]
        cards += [("LLEN", f"ql:f:{group}") for group in self._groups()]
        return sum(self._redis.pipeline([*cards, ("ZCARD", "ql:completed")]))

    def settings(self) -> dict[str, str]:
        pairs = self._redis.hashes(["ql:config"])[0]
        return {name.decode(): value.decode() for name, value in pairs.items()}

    def paused(self) -> list[str]:
        return [name.decode() for name in self._redis.call("SMEMBERS", "ql:paused_queues")]

    def _groups(self) -> list[str]:
        return sorted(group.decode() for group in self._redis.call("SMEMBERS", "ql:failures"))

    # --- jobs -----------------------------------------------------------------------------------

    def pages(self) -> Iterator[list[ImportedJob]]:
        """Yields all jobs in pages."""
        for ids in self._listed():
            yield self._jobs(ids)
        yield from self._blocked()

    def _listed(self) -> Iterator[dict[str, float]]:
        """Yields the ids of all jobs that depend on none, with their score in their list."""
        for queue in self.queues:
            for ending in ("-work", "-locks", "-scheduled"):
                pages = self._redis.scored_pages(f"ql:q:{queue}{ending}", reverse=ending == "-work")
                for page in pages:
                    yield {jid.decode(): score for jid, score in page}
        for group in self._groups():
            for failed in self._redis.list_pages(f"ql:f:{group}"):
                yield {jid.decode(): 0.0 for jid in reversed(failed)}
        for page in self._redis.scored_pages("ql:completed"):
            yield {jid.decode(): score for jid, score in page}

    def _blocked(self) -> Iterator[list[ImportedJob]]:
        """Yields jobs that depend on others, each after those."""
        scores: dict[str, float] = {}
        for queue in self.queues:
            for page in self._redis.scored_pages(f"ql:q:{queue}-depends"):
                scores |= {jid.decode(): score for jid, score in page}
        needs = {
            jid: [each.decode() for each in self._members(f"ql:j:{jid}-dependencies")]
            for jid in scores
        }
        try:
            order = [jid for jid in TopologicalSorter(needs).static_order() if jid in scores]
        except CycleError as circle:
            jids = ", ".join(circle.args[1])
            raise BadInput(f"jobs depend on each other in a cycle: {jids}") from None
        for begin in range(0, len(order), IMPORTED_PER_STEP):
            ids = order[begin : begin + IMPORTED_PER_STEP]
            yield self._jobs({jid: scores[jid] for jid in ids}, needs)

    def _members(self, key: str) -> list[bytes]:
        found: list[bytes] = self._redis.call("SMEMBERS", key)
        return found

    def _jobs(
        self, scores: dict[str, float], needs: dict[str, list[str]] | None = None
    ) -> list[ImportedJob]:
        hashes = self._redis.hashes([f"ql:j:{jid}" for jid in scores])
        histories = self._redis.pipeline(
            [("LRANGE", f"ql:j:{jid}-history", 0, -1) for jid in scores]
        )
        jobs = []
        for (jid, score), found, history in zip(scores.items(), hashes, histories, strict=True):
            if not found:
                self.leave_out(jid, "a list has it, and it does not exist")
                continue
            fields = {name.decode(): value.decode() for name, value in found.items()}
            entries = history if isinstance(history, list) else []
            try:
                jobs.append(self._job(jid, fields, entries, score, (needs or {}).get(jid, [])))
            except (ValueError, KeyError, TypeError, msgspec.MsgspecError) as error:
                self.leave_out(jid, f"it can't be read: {error}")
        return jobs

    def _job(
        self, jid: str, fields: dict[str, str], history: list[bytes], score: float, needs: list[str]
    ) -> ImportedJob:
        state = fields.get("state", "waiting")
        if state not in _STATES:
            raise ValueError(f"its state is {state!r}")
        failure = json.loads(fields.get("failure") or "{}")
        retries = float(fields.get("retries") or 5)
        time = float(fields.get("time") or 0)
        return ImportedJob(
            id=jid,
            queue=fields.get("queue", ""),
            klass=fields.get("klass", ""),
            data=fields.get("data") or "null",
            state=state,  # type: ignore[arg-type]  # one of them
            time=score if state in ("complete", "depends") else time,
            start=score if state == "scheduled" else float(fields.get("scheduled") or 0),
            priority=float(fields.get("priority") or 0),
            retries=retries,
            remaining=float(fields.get("remaining") or retries),
            tags=tuple(json.loads(fields.get("tags") or "[]") or ()),
            history=tuple(_old_history(fields) + [_entry(json.loads(each)) for each in history]),
            failure=Failure(**failure) if failure else None,
            spawned_from=fields.get("spawned_from_jid", ""),
            worker=fields.get("worker", "") if state == "running" else "",
            expires=score if state == "running" else 0.0,
            depends=tuple(needs),
            tracked=jid in self._tracked,
        )

    # --- statistics -----------------------------------------------------------------------------

    def statistics(self) -> Iterator[list[ImportedDay]]:
        """Yields what was counted on each day in each queue, in pages."""
        days: dict[tuple[str, str], None] = {}
        for key in self._redis.keys("ql:s:*:*:*"):
            parts = key.decode().split(":", 4)
            if len(parts) == 5 and parts[2] in _STATISTICS_KINDS and _is_number(parts[3]):
                days[parts[3], parts[4]] = None
        order = sorted(days)
        for begin in range(0, len(order), IMPORTED_PER_STEP):
            yield [self._day(*each) for each in order[begin : begin + IMPORTED_PER_STEP]]

    def _day(self, date: str, queue: str) -> ImportedDay:
        wait, run, tallies = (
            {name.decode(): float(value) for name, value in found.items()}
            for found in self._redis.hashes(
                [f"ql:s:{kind}:{date}:{queue}" for kind in _STATISTICS_KINDS]
            )
        )
        return ImportedDay(
            queue=queue,
            date=float(date),
            wait=_times(wait),
            run=_times(run),
            retries=int(tallies.get("retries", 0)),
            failures=int(tallies.get("failures", 0)),
        )

    # --- recurring jobs -------------------------------------------------------------------------

    def recurring(self) -> Iterator[list[ImportedRecurring]]:
        """Yields recurring jobs in pages."""
        for queue in self.queues:
            for page in self._redis.scored_pages(f"ql:q:{queue}-recur"):
                runs = {jid.decode(): score for jid, score in page}
                hashes = self._redis.hashes([f"ql:r:{jid}" for jid in runs])
                yield [
                    _recurring(jid, runs[jid], {k.decode(): v.decode() for k, v in found.items()})
                    for jid, found in zip(runs, hashes, strict=True)
                    if found
                ]


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _times(fields: dict[str, float]) -> ImportedTimes:
    """Reads the times of a day; the histogram has seconds, minutes, hours and days."""
    buckets = tuple(
        (_TIERS[name[0]] * int(name[1:]), int(number))
        for name, number in sorted(fields.items())
        if name[0] in _TIERS and name[1:].isdecimal()
    )
    return ImportedTimes(
        count=int(fields.get("total", 0)),
        mean=fields.get("mean", 0.0),
        vk=fields.get("vk", 0.0),
        buckets=buckets,
    )


def _entry(entry: list[Any]) -> HistoryEntry:
    """Reads an entry of the later form: [when, what, more], where more may be missing."""
    when, what, *more = entry
    return HistoryEntry(str(what), int(when), (more[0] if more else None) or {})


def _old_history(fields: dict[str, str]) -> list[HistoryEntry]:
    """Reads the older form: for each queue one object with times, in a field of the job."""
    entries = []
    for visit in json.loads(fields.get("history") or "[]") or []:
        if visit.get("put") is not None:
            entries.append(HistoryEntry("put", int(visit["put"]), {"q": visit.get("q", "")}))
        if visit.get("popped") is not None:
            worker = {"worker": visit["worker"]} if visit.get("worker") else {}
            entries.append(HistoryEntry("popped", int(visit["popped"]), worker))
        for what in ("failed", "done"):
            if visit.get(what) is not None:
                entries.append(HistoryEntry(what, int(visit[what]), {}))
    return entries


def _recurring(jid: str, next_run: float, fields: dict[str, str]) -> ImportedRecurring:
    return ImportedRecurring(
        id=jid,
        queue=fields["queue"],
        interval=float(fields["interval"]),
        next=next_run,
        klass=fields.get("klass", ""),
        data=fields.get("data") or "null",
        priority=float(fields.get("priority") or 0),
        retries=float(fields.get("retries") or 0),
        backlog=float(fields.get("backlog") or 0),
        count=int(float(fields.get("count") or 0)),
        tags=tuple(json.loads(fields.get("tags") or "[]") or ()),
    )
