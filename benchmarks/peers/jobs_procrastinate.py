"""procrastinate on PostgreSQL: jobs deferred and run per second, eight at a time."""

import asyncio
import logging
import time

from procrastinate import App, PsycopgConnector
from timing import THREADS, arguments, say


async def measure(url: str, count: int) -> None:
    logging.disable()
    app = App(connector=PsycopgConnector(conninfo=url, min_size=THREADS, max_size=THREADS + 2))

    @app.task(name="nothing")
    async def nothing() -> None:
        pass

    async with app.open_async():
        await app.schema_manager.apply_schema_async()

        async def defer() -> None:
            for _ in range(count // THREADS):
                await nothing.defer_async()

        begin = time.perf_counter()
        await asyncio.gather(*(defer() for _ in range(THREADS)))
        enqueued = count / (time.perf_counter() - begin)
        begin = time.perf_counter()
        await app.run_worker_async(
            wait=False, concurrency=THREADS, install_signal_handlers=False, listen_notify=False
        )
        completed = count / (time.perf_counter() - begin)
    say("procrastinate", enqueued=enqueued, completed=completed)


asyncio.run(measure(*arguments()))
