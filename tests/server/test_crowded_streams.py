"""A notice that thousands of streams wait for does not hold up other clients."""

import asyncio
from types import SimpleNamespace
from typing import Any

from holdfast.engine.contract import Notice
from holdfast.server.streams import _notices


class Feed:
    """A feed of notices, and turns that end when the test says so."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []
        self.has_time = asyncio.Event()
        self.waited: list[str] = []

    def listen(self, on_notice: Any, **_: Any) -> Any:
        self.listeners.append(on_notice)
        return lambda: self.listeners.remove(on_notice)

    async def wait_for_time(self, client: str) -> None:
        self.waited.append(client)
        await self.has_time.wait()


def test_a_stream_that_a_notice_has_woken_waits_for_its_turn() -> None:
    """All streams encoded and sent it in one turn: 0.2 s for 1,000 of them."""

    async def run() -> None:
        feed = Feed()
        dispatcher = SimpleNamespace(
            notice_feed=feed, turns=feed, listen=lambda space, listen: listen(b"prefix")
        )
        api: Any = SimpleNamespace(dispatcher=dispatcher, stopped=asyncio.Event())
        space: Any = None
        stream = _notices(api, space, "", "192.0.2.1", lambda: True)
        assert await anext(stream) == b": listening\n\n"

        sent = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        feed.listeners[0](Notice("news", b"first"))
        while not feed.waited:
            await asyncio.sleep(0)

        assert not sent.done()
        feed.has_time.set()
        assert await sent == b"event: news\ndata: first\n\n"
        assert feed.waited == ["192.0.2.1"]
        feed.listeners[0](Notice("news", b"second"))
        assert await anext(stream) == b"event: news\ndata: second\n\n"
        api.stopped.set()
        assert await anext(stream, None) is None
        assert feed.listeners == []

    asyncio.run(run())
