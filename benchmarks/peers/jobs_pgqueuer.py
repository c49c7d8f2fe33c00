"""PgQueuer on PostgreSQL: jobs enqueued one by one and run per second, in batches of ten."""

import asyncio
import time

import asyncpg
from pgqueuer import AsyncpgPoolDriver, PgQueuer, Queries
from pgqueuer.models import Job
from pgqueuer.types import QueueExecutionMode
from timing import THREADS, arguments, say


async def measure(url: str, count: int) -> None:
    async with asyncpg.create_pool(url, min_size=THREADS, max_size=THREADS + 2) as pool:
        driver = AsyncpgPoolDriver(pool)
        queries = Queries(driver)
        await queries.install()

        async def enqueue() -> None:
            for _ in range(count // THREADS):
                await queries.enqueue(["nothing"], [None], [0])

        begin = time.perf_counter()
        await asyncio.gather(*(enqueue() for _ in range(THREADS)))
        enqueued = count / (time.perf_counter() - begin)

        queue = PgQueuer(driver)

        @queue.entrypoint("nothing")
        async def nothing(job: Job) -> None:
            pass

        begin = time.perf_counter()
        await queue.run(mode=QueueExecutionMode.drain)
        completed = count / (time.perf_counter() - begin)
    say("pgqueuer", enqueued=enqueued, completed=completed)


asyncio.run(measure(*arguments()))
