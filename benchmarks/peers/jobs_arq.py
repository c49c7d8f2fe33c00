"""arq: jobs enqueued and run per second, eight at a time in one event loop."""

import asyncio
import time
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker
from timing import THREADS, arguments, say


async def nothing(context: dict[Any, Any]) -> None:
    pass


async def measure(url: str, count: int) -> None:
    settings = RedisSettings.from_dsn(url)
    pool = await create_pool(settings)

    async def enqueue() -> None:
        for _ in range(count // THREADS):
            await pool.enqueue_job("nothing")

    begin = time.perf_counter()
    await asyncio.gather(*(enqueue() for _ in range(THREADS)))
    enqueued = count / (time.perf_counter() - begin)
    worker = Worker([nothing], redis_pool=pool, burst=True, max_jobs=THREADS, poll_delay=0.001)
    begin = time.perf_counter()
    await worker.async_run()
    completed = count / (time.perf_counter() - begin)
    await pool.aclose()
    say("arq", enqueued=enqueued, completed=completed)


asyncio.run(measure(*arguments()))
