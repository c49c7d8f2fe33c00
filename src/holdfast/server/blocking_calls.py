"""Operations that wait, without holding a transaction or a thread meanwhile."""

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from holdfast.engine.contract import Notice
from holdfast.errors import BadArgument, UnknownJob
from holdfast.jobs.ledger import LOG, event_marker
from holdfast.jobs.records import COMPLETE, FAILED, Job
from holdfast.limits import MAX_WAIT_SECONDS
from holdfast.server.auth import Recheck
from holdfast.server.dispatcher import Dispatcher
from holdfast.store import Space, Tx, View

T = TypeVar("T")


async def pop_wait(
    dispatcher: Dispatcher, space: Space, arguments: Any, recheck: Recheck
) -> list[Job]:
    """`StoreJobs.pop_wait`: pops as soon as one of the queues has a job."""
    queues = [arguments.queues] if isinstance(arguments.queues, str) else list(arguments.queues)
    count = _or_default(arguments.count, 1)
    lock_seconds = _or_default(arguments.lock_seconds, None)

    def pop(queue: str) -> Callable[[Tx], list[Job]]:
        return partial(_pop, queue, arguments.worker, count, lock_seconds)

    timeout = _or_default(arguments.timeout, None)
    return await first_jobs(dispatcher, space, queues, pop, timeout, recheck) or []


async def first_jobs(
    dispatcher: Dispatcher,
    space: Space,
    queues: Sequence[str],
    pop: Callable[[str], Callable[[Tx], T]],
    timeout: float | None,
    recheck: Recheck,
    ahead: float = 0.0,
) -> T | None:
    """Pops the first jobs of one of `queues`; None if none arrives within `timeout` seconds.

    `recheck` raises if the caller may no longer pop. Its clock may be `ahead` of the store's.
    """
    deadline = _deadline(timeout)
    await dispatcher.created(space)
    with (
        dispatcher.job_waiters.join(space, queues) as waiter,
        dispatcher.ended_with_server(waiter.wake),
    ):
        while True:
            recheck()
            for queue in queues:
                jobs: T = await dispatcher.write(space, pop(queue))
                if jobs:
                    return jobs
            rest = await dispatcher.read(space, partial(_seconds_until_next, queues, ahead))
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or dispatcher.stopping:
                return None
            was_woken = await waiter.sleep(left if rest is None else min(left, rest))
            if dispatcher.stopping or (not was_woken and (rest is None or rest >= left)):
                return None


def _seconds_until_next(queues: Sequence[str], ahead: float, view: View) -> float | None:
    """Returns the seconds until something in the queues becomes due by itself."""
    wake = view.jobs.next_wake(*queues)
    return None if wake is None else max(0.001, wake - view.now - ahead)


def _pop(queue: str, worker: str, count: int, lock_seconds: float | None, tx: Tx) -> list[Job]:
    return tx.jobs.pop(queue, worker, count, lock_seconds=lock_seconds)


async def result_wait(
    dispatcher: Dispatcher, space: Space, arguments: Any, recheck: Recheck
) -> Job:
    """`StoreJobs.result_wait`: returns the job as soon as it is complete or failed."""
    timeout = _or_default(arguments.timeout, None)
    return await wait_until_ended(dispatcher, space, arguments.id, timeout, recheck)


async def wait_until_ended(
    dispatcher: Dispatcher, space: Space, id: str, timeout: float | None, recheck: Recheck
) -> Job:
    """Returns the job as soon as it is complete or failed, or as it is after `timeout` seconds.

    `recheck` raises if the caller may no longer read it.
    """
    deadline = _deadline(timeout)
    marker = event_marker(id)
    with _NoticeWaiter(dispatcher, space, LOG, lambda notice: marker in notice.payload) as waiter:
        while True:
            recheck()
            job = await dispatcher.read(space, lambda view: view.jobs.get(id))
            if job is None:
                raise UnknownJob.of(id)
            if job.state in (COMPLETE, FAILED) or not await waiter.listen(deadline, None):
                return job


WAITS: Final[dict[str, Callable[[Dispatcher, Space, Any, Recheck], Coroutine[Any, Any, Any]]]] = {
    "jobs.pop_wait": pop_wait,
    "jobs.result_wait": result_wait,
}


class _NoticeWaiter:
    """Listens for the notices that one wait is interested in."""

    def __init__(
        self, dispatcher: Dispatcher, space: Space, topic: str, wanted: Callable[[Notice], bool]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._dispatcher = dispatcher
        self._noticed = asyncio.Event()
        self._end_wait = dispatcher.add_wait(self._noticed.set)
        self._wanted = wanted
        self._end = dispatcher.notice_feed.listen(
            self._on_notice, space=space.prefix, topic_prefix=topic
        )

    def _on_notice(self, notice: Notice) -> None:
        if self._wanted(notice):
            self._noticed.set()

    async def listen(self, deadline: float, rest: float | None) -> bool:
        """Waits for a notice, or for `rest` seconds; False if the deadline comes first.

        When the server stops, every deadline has passed.
        """
        left = deadline - self._loop.time()
        if left <= 0 or self._dispatcher.stopping:
            return False
        try:
            await asyncio.wait_for(self._noticed.wait(), left if rest is None else min(left, rest))
        except TimeoutError:
            return self._loop.time() < deadline
        self._noticed.clear()
        return not self._dispatcher.stopping

    def __enter__(self) -> "_NoticeWaiter":
        return self

    def __exit__(self, *exc: object) -> None:
        self._end()
        self._end_wait()


def _deadline(timeout: float | None) -> float:
    if timeout is not None and math.isnan(timeout):  # msgpack can carry NaN
        raise BadArgument('Arg "timeout" not a number or None: nan')
    seconds = MAX_WAIT_SECONDS if timeout is None else min(timeout, MAX_WAIT_SECONDS)
    return asyncio.get_running_loop().time() + seconds


def _or_default(given: Any, default: Any) -> Any:
    return default if given is msgspec.UNSET else given
