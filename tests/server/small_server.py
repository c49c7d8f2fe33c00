"""A RESP server in this process, with bounds so small that a test can reach them."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import holdfast
from holdfast.engine.contract import Engine
from holdfast.server.blocking_calls import WAITS
from holdfast.server.client_limits import ClientLimits
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.options import DispatcherOptions
from holdfast.server.resp_server import RespServer
from tests.server.running import DEADLINE, RawClient


class SmallServer:
    """Where it listens, and what it knows about itself."""

    def __init__(self, dispatcher: Dispatcher, port: int) -> None:
        self.dispatcher = dispatcher
        self.port = port

    def connect(self) -> RawClient:
        return RawClient(self.port)

    def until(self, condition: Callable[[], bool]) -> None:
        """Waits for something that is about to happen."""
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline
            threading.Event().wait(0.002)


@contextmanager
def small_server(
    folder: Path, prepare: Callable[[Engine], None] = lambda engine: None, **bounds: Any
) -> Iterator[SmallServer]:
    """A server for the block, on a loop in a thread of its own; `prepare` may add users before."""
    started: list[SmallServer] = []
    ready, stopped = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    async def run() -> None:
        with holdfast.open(folder / "small", durability="interval") as store:
            prepare(store.engine)
            dispatcher = Dispatcher(store, DispatcherOptions(bounds=ClientLimits(**bounds)))
            dispatcher.waits.update(WAITS)
            listener = RespServer(dispatcher)
            server = await listener.open("127.0.0.1", 0)
            started.append(SmallServer(dispatcher, server.sockets[0].getsockname()[1]))
            ready.set()
            await asyncio.to_thread(stopped.wait)
            await listener.close()
            await dispatcher.close()

    def target() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=target)
    thread.start()
    try:
        assert ready.wait(DEADLINE)
        yield started[0]
    finally:
        stopped.set()
        thread.join(DEADLINE)
    assert not failures, failures
