"""Live updates: a stream that tells a page that something in its space has changed.

The message has no content. The page then requests itself again, with its reader's own rights, and
replaces the parts that are live. Changes are combined: there is at most one message every
`LIVE_SECONDS`.
"""

import asyncio
from collections.abc import AsyncGenerator

from holdfast.dashboard.page_request import PageRequest
from holdfast.engine.contract import Notice
from holdfast.errors import ServerBusy
from holdfast.limits import LIVE_QUIET_SECONDS, LIVE_SECONDS, MAX_LIVE_STREAMS
from holdfast.server.http_exchange import EVENT_STREAM, HttpResponse
from holdfast.server.streams import next_or_none


class LiveStreams:
    """Counts the open streams of a server."""

    def __init__(self) -> None:
        self.count = 0


_streams = LiveStreams()


def live(request: PageRequest) -> HttpResponse:
    """Returns a stream of `changed`, as server-sent events."""
    if _streams.count >= MAX_LIVE_STREAMS:
        raise ServerBusy(
            f"{_streams.count} pages of the dashboard are updated live already",
            hint="Close some of them; this page still updates when it is loaded again.",
        )
    headers = {"cache-control": "no-store"}
    return HttpResponse(_changes(request), content_type=EVENT_STREAM, headers=headers)


async def _changes(request: PageRequest) -> AsyncGenerator[bytes]:
    dispatcher = request.api.dispatcher
    changed = asyncio.Event()

    def on_notice(notice: Notice) -> None:
        changed.set()

    space = await dispatcher.space(request.space)
    listen = dispatcher.notice_feed.listen
    end = dispatcher.listen(space, lambda prefix: listen(on_notice, space=prefix))
    stopped = asyncio.ensure_future(request.api.stopped.wait())
    _streams.count += 1
    try:
        yield b"retry: 5000\n: listening\n\n"
        while not stopped.done():
            await next_or_none(changed.wait(), stopped, seconds=LIVE_QUIET_SECONDS)
            if request.session.identity(dispatcher.authenticator) is None:
                return  # the session has ended
            # Also without a notice: not every change has one, and the shown ages grow.
            yield b"event: changed\ndata: now\n\n"
            changed.clear()
            await asyncio.wait({stopped}, timeout=LIVE_SECONDS)
    finally:
        _streams.count -= 1
        stopped.cancel()
        end()
