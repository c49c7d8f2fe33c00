"""What a server does by itself: it removes what has expired and goes on with what was begun."""

import asyncio

from holdfast.errors import HoldfastError
from holdfast.limits import EXPIRED_PER_STEP, SERVER_SWEEP_SECONDS
from holdfast.server.execution import Execution


async def sweep(execution: Execution) -> None:
    """Removes what has expired in all spaces, a bounded step at a time, while the server runs."""
    while True:
        await asyncio.sleep(SERVER_SWEEP_SECONDS)
        try:
            await _sweep_all(execution)
        except HoldfastError as error:  # an engine that is away now may be back the next time
            execution.report(error)


async def _sweep_all(execution: Execution) -> None:
    for name in await execution.in_thread(execution.store.spaces):
        try:
            space = await execution.space(name)
            while await execution.in_thread(space.sweep) == EXPIRED_PER_STEP:
                await asyncio.sleep(0)
        except HoldfastError as error:
            execution.report(error)
    await execution.in_thread(execution.store.resume_drops)
