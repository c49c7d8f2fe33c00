"""What a server does by itself: it removes what has expired and goes on with what was begun."""

import asyncio
from typing import cast

from holdfast.binding import EVERY_SPACE
from holdfast.errors import HoldfastError
from holdfast.limits import EXPIRED_PER_STEP, SERVER_SWEEP_SECONDS
from holdfast.server.execution import Execution
from holdfast.tables import EveryDomainTables


async def sweep(execution: Execution) -> None:
    """Removes what has expired in all spaces, a bounded step at a time, while the server runs."""
    await _resume_defaults(execution)
    while True:
        await asyncio.sleep(SERVER_SWEEP_SECONDS)
        try:
            await _sweep_all(execution)
        except HoldfastError as error:  # an engine that is away now may be back the next time
            execution.report(error)


async def _resume_defaults(execution: Execution) -> None:
    """Carries to the end what a crash has interrupted in the space of all spaces."""
    store = execution.store

    def resume() -> None:
        if EVERY_SPACE in store.spaces():
            cast(EveryDomainTables, store.space(EVERY_SPACE).tables).resume()

    try:
        await execution.in_thread(resume)
    except HoldfastError as error:
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
