"""What does a put cost in an asyncio program, by `store.aio` and by `run_in_executor`?

Run: python -m benchmarks.async_store [--quick]

A number of tasks put jobs one after the other into an embedded store, each waiting for its own put
to be durable. `run_in_executor` is what a program without `store.aio` does: a thread of asyncio's
own pool for each call. `on the loop` calls the store without a thread, and blocks all other
tasks meanwhile. A task that sleeps for a millisecond again and again measures for how long.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable

import holdfast
from benchmarks.rounds import fact, reach, report, run_benchmark, seconds_each
from holdfast.store import Durability, Store

Put = Callable[[], Awaitable[object]]
LOOP = "on the loop"
EXECUTOR = "run_in_executor"
AIO = "store.aio"
REASON = "a put alone waits for one thread either way, and `store.aio` also cancels and counts"


def main(quick: bool) -> None:
    count, rounds = (400, 1) if quick else (2_000, 5)
    durabilities: list[tuple[Durability, str]] = [("commit", "fsync"), ("interval", "interval")]
    for durability, label in durabilities:
        for tasks in (1, 50):
            measured = run(durability, tasks, count // (5 if tasks == 1 else 1), rounds)
            what = f"a put, {tasks} tasks at a time, {label}: run_in_executor / store.aio"
            wanted = 1.5 if tasks > 1 else 0.8
            reach(what, measured[EXECUTOR] / measured[AIO], wanted, at_most=False, reason=REASON)


def run(durability: Durability, tasks: int, count: int, rounds: int) -> dict[str, float]:
    """Returns the seconds of each put, by the way in which it is called."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        holdfast.open(folder, durability=durability) as store,
    ):
        ways = {LOOP: _on_the_loop, EXECUTOR: _in_executor, AIO: _by_aio}
        asyncio.run(_puts(_by_aio(store), 1, 1))  # so that modules imported at first use are loaded
        held_up: dict[str, list[float]] = {name: [] for name in ways}

        def contender(name: str) -> Callable[[], int]:
            def put_all() -> int:
                held_up[name].append(asyncio.run(_puts(ways[name](store), tasks, count)))
                return count

            return put_all

        figures = seconds_each({name: contender(name) for name in ways}, rounds=rounds)
        title = f"a put, {tasks} tasks at a time, {durability}"
        report(title, figures, baseline=EXECUTOR, durability=durability)
        for name, longest in held_up.items():
            fact(f"{title}: the longest that {name} held up the loop", f"{min(longest):.1f} ms")
        return figures


async def _puts(put: Put, tasks: int, count: int) -> float:
    """Puts `count` jobs and returns the longest time, in ms, for which the loop was blocked."""

    async def some() -> None:
        for _ in range(count // tasks):
            await put()

    ticking = asyncio.create_task(_longest_tick())
    await asyncio.gather(*(some() for _ in range(tasks)))
    ticking.cancel()
    return await ticking


async def _longest_tick() -> float:
    """Returns the longest time, in ms, by which a sleep of a millisecond was late."""
    longest = 0.0
    try:
        while True:
            begin = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - begin - 0.001)
    except asyncio.CancelledError:
        return longest * 1e3


def _on_the_loop(store: Store) -> Put:
    async def put() -> object:
        result = store.jobs.put("emails")
        await asyncio.sleep(0)
        return result

    return put


def _in_executor(store: Store) -> Put:
    return lambda: asyncio.get_running_loop().run_in_executor(None, store.jobs.put, "emails")


def _by_aio(store: Store) -> Put:
    return lambda: store.aio.jobs.put("emails")


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
