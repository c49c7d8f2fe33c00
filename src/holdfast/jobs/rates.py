"""Rates: limit how many jobs of a queue, or of each rate key, may start within a time.

With `<queue>-rate` set to `100/60`, at most 100 jobs start in any 60 seconds; a pop returns no more
than that allows. `<queue>-rate-per-key` applies to the jobs of each `rate_key`: a job whose key has
nothing left is scheduled for the time of its turn, so it does not block the jobs behind it.

The metrics layer does the counting. This layer does not import it: the store passes in a
`RateLimiter`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from holdfast.engine.contract import Transaction, pack_counter, read_counter
from holdfast.errors import BadArgument
from holdfast.jobs.arguments import number_from, shortened
from holdfast.limits import MAX_JOB_RATE, MAX_JOB_RATE_SECONDS

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger
    from holdfast.jobs.records import JobRecord

_PREFIX: Final = "holdfast.jobs"


class QueueRate(NamedTuple):
    """At most `jobs` in any `seconds`."""

    jobs: int
    seconds: float


class RateLimiter(Protocol):
    """The part of the metrics layer that counts starts of jobs."""

    def peek(
        self,
        operations: Sequence[Any],
        conditions: Any,
        *,
        algorithm: Any,
        prefix: Any,
        at: float | None,
    ) -> Any: ...

    def limit_incr(
        self,
        operations: Sequence[Any],
        conditions: Any,
        *,
        algorithm: Any,
        prefix: Any,
        at: float | None,
    ) -> None: ...


MakeLimiter: TypeAlias = Callable[[Transaction], RateLimiter]


def rate_from(text: str) -> QueueRate:
    """Reads a rate.

    >>> rate_from("100/60")
    QueueRate(jobs=100, seconds=60.0)
    """
    count_text, _, seconds_text = text.partition("/")
    count, seconds = number_from(count_text), number_from(seconds_text)
    if (
        count is None
        or seconds is None
        or count != int(count)
        or not 1 <= count <= MAX_JOB_RATE
        or not 0 < seconds <= MAX_JOB_RATE_SECONDS
    ):
        raise BadArgument.named(
            "value",
            f"must be jobs per seconds, as in 100/60, not {shortened(text)}",
            hint=f"At most {MAX_JOB_RATE} jobs, in up to {MAX_JOB_RATE_SECONDS} seconds.",
        )
    return QueueRate(int(count), seconds)


def left(
    ledger: "Ledger", rate: QueueRate, now: float, queue: str, rate_key: str = ""
) -> tuple[int, float]:
    """Returns how many jobs may start now, and in how many seconds the next one may.

    Reads 2 keys, and up to 30 more if none started lately.
    """
    if ledger.limiter is None:
        raise TypeError("Jobs(tx, limiter) needs a limiter: this queue has a rate")
    result = ledger.limiter(ledger.tx).peek(
        [_operation(rate, queue, rate_key, 1)],
        _conditions(rate),
        algorithm="strict",
        prefix=_PREFIX,
        at=now,
    )
    [found] = result.results
    wait = rate.seconds if found.retry_after is None else found.retry_after
    return max(0, found.remaining), wait


def charge(
    ledger: "Ledger", rate: QueueRate, now: float, queue: str, rate_key: str = "", count: int = 1
) -> None:
    """Counts `count` jobs that start now. Reads 1 key, writes 2."""
    assert ledger.limiter is not None
    ledger.limiter(ledger.tx).limit_incr(
        [_operation(rate, queue, rate_key, count)],
        _conditions(rate),
        algorithm="strict",
        prefix=_PREFIX,
        at=now,
    )


def _operation(rate: QueueRate, queue: str, rate_key: str, count: int) -> dict[str, Any]:
    entity = ["key", queue, rate_key] if rate_key else ["queue", queue]
    return {"condition": _name(rate), "entity": entity, "amount": count}


def _conditions(rate: QueueRate) -> dict[str, Any]:
    return {_name(rate): {"limit": rate.jobs, "window": rate.seconds}}


def _name(rate: QueueRate) -> str:
    """Returns the name of the condition: one name can't have two windows."""
    return f"starts in {rate.seconds!r} s"


# --- jobs that wait for the rate of their key -----------------------------------------------------


def next_turn(
    ledger: "Ledger", job: "JobRecord", rate: QueueRate, now: float, wait: float
) -> float:
    """Returns when the job, which must wait for the rate of its key, should be tried again.

    `rate.jobs` jobs share each turn, so a job is set aside about once, however many wait.
    """
    key = ledger.keys.rate_waiters(job.queue, job.rate_key)
    waiting = read_counter(ledger.tx.get(key))
    ledger.tx.put(key, pack_counter(waiting + 1))
    job.rate_waits = True
    return now + max(wait, 0.001) + waiting // rate.jobs * rate.seconds


def leave_waiters(ledger: "Ledger", job: "JobRecord") -> None:
    """Removes a job from the count of those that wait for the rate of its key."""
    job.rate_waits = False
    key = ledger.keys.rate_waiters(job.queue, job.rate_key)
    waiting = read_counter(ledger.tx.get(key)) - 1
    if waiting > 0:
        ledger.tx.put(key, pack_counter(waiting))
    else:
        ledger.tx.delete(key)
