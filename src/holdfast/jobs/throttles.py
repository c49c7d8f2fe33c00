"""Throttles: named limits of how many jobs run at once, over all queues.

A job that names throttles takes a slot of each when it is popped, and releases it when its lock
ends for any reason. When one of them is full, the job is set aside in the state `throttled` until a
slot is free; the job that has waited longest comes first.
"""

from typing import TYPE_CHECKING

from holdfast.declarations import operation
from holdfast.errors import BadArgument
from holdfast.jobs import throttle_slots
from holdfast.jobs.arguments import check_name, check_page_count
from holdfast.jobs.layout import below, last_part
from holdfast.jobs.lists import admit
from holdfast.jobs.records import JobPage, Throttle, ThrottleRecord
from holdfast.keys import unpack

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


class ThrottleOperations:
    """Operations on throttles."""

    _ledger: "Ledger"

    @operation()
    def throttle_set(
        self, name: str, maximum: int, *, ttl: float | None = None, now: float | None = None
    ) -> None:
        """Limits how many jobs that name this throttle run at once; 0 removes the limit.

        With a `ttl` the limit ends after that many seconds. Running jobs continue. Reads 1 key,
        writes 1, and up to `JOBS_PER_STEP` jobs that may run now.
        """
        set_throttle(self._ledger, name, maximum, ttl, self._ledger.time(now))

    @operation(reads=True)
    def throttle_get(self, name: str, *, now: float | None = None) -> Throttle:
        """Returns a throttle: its maximum, how many jobs hold it, and how many wait for it.

        Reads 1 key.
        """
        check_name(name, "name")
        return _to_throttle(name, throttle_slots.load(self._ledger, name, self._ledger.time(now)))

    @operation(reads=True)
    def throttles(
        self, *, after: str | None = None, count: int = 25, now: float | None = None
    ) -> list[Throttle]:
        """Returns up to `count` throttles by name, beginning after `after`.

        Lists those that have a maximum, or that jobs hold or wait for. Reads 1 key for each.
        """
        ledger = self._ledger
        prefix = ledger.keys.throttles
        begin, end = below(prefix)
        if after is not None:
            begin = ledger.keys.throttle(after) + b"\0"
        check_page_count(count)
        names = [last_part(key, prefix) for key, _ in ledger.tx.scan(begin, end, limit=count)]
        time = ledger.time(now)
        return [_to_throttle(name, throttle_slots.load(ledger, name, time)) for name in names]

    @operation()
    def throttle_delete(self, name: str, *, now: float | None = None) -> int:
        """Removes the limit; returns how many waiting jobs are left to release, 0 when it is done.

        One call releases at most `JOBS_PER_STEP` jobs; `store.jobs` repeats it until none is left.
        Reads 3 keys and writes 1; reads 4 and writes 5 for each job that waited.
        """
        set_throttle(self._ledger, name, 0, None, self._ledger.time(now))
        return self.throttle_get(name).pending

    @operation(reads=True)
    def throttle_locks(self, name: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """Returns the jobs that hold the throttle. Reads 1 key for each job up to the end of the
        page."""
        check_name(name, "name")
        total = throttle_slots.load(self._ledger, name, self._ledger.tx.now).held
        return _page(self._ledger, self._ledger.keys.holders_of(name), total, offset, count)

    @operation(reads=True)
    def throttle_pending(self, name: str, *, offset: int = 0, count: int = 25) -> JobPage:
        """Returns the jobs that wait for the throttle, the longest waiting first.

        Reads 1 key for each job up to the end of the page.
        """
        check_name(name, "name")
        total = throttle_slots.load(self._ledger, name, self._ledger.tx.now).waiting
        return _page(self._ledger, self._ledger.keys.waiters_of(name), total, offset, count)


def set_throttle(ledger: "Ledger", name: str, maximum: int, ttl: float | None, now: float) -> None:
    check_name(name, "name")
    if not 0 <= maximum < 1 << 63:
        raise BadArgument.named("maximum", f"must be from 0 to 2^63 - 1, not {maximum}")
    record = throttle_slots.load(ledger, name, now)
    record.maximum = maximum
    record.expires = now + ttl if ttl else None
    throttle_slots.save(ledger, name, record)
    admit(ledger, name, now)


def _to_throttle(name: str, record: ThrottleRecord) -> Throttle:
    return Throttle(
        name=name,
        maximum=record.maximum,
        expires=record.expires,
        locks=record.held,
        pending=record.waiting,
    )


def _page(ledger: "Ledger", prefix: bytes, total: int, offset: int, count: int) -> JobPage:
    keys = ledger.page(below(prefix), offset, count)
    return JobPage(total=total, jobs=tuple(str(unpack(key, len(prefix))[-1]) for key in keys))
