"""Ends the connections of Redis clients that are silent, do not log in, or send too slowly.

The number of connections is limited. Without this, a stranger could occupy all of them by sending a
byte of an endless command now and then.
"""

import asyncio
import time
from typing import Final, Protocol

from holdfast.limits import LOGIN_SECONDS, MIN_REQUEST_BYTES_PER_SECOND
from holdfast.server.client_limits import ClientLimits
from holdfast.server.resp_session import RespSession
from holdfast.wire import CommandReader

_LEAST_PAUSE_SECONDS: Final = 1.0  # between two looks at a client


class WatchedClient(Protocol):
    """The part of a connection that the watch uses."""

    session: RespSession
    reader: CommandReader
    last_received: float
    command_began: float  # when the incomplete command began; 0 if there is none

    @property
    def is_busy(self) -> bool:
        """Returns whether the client waits for the server, not the server for the client."""

    def finish(self) -> None: ...


class SlowClientWatch:
    """Checks a client from time to time, and closes its connection if it is too slow."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bounds: ClientLimits, client: WatchedClient
    ) -> None:
        self._loop = loop
        self._bounds = bounds
        self._client: WatchedClient | None = client
        self._began = time.monotonic()
        self._check_after(bounds.idle_seconds)

    def end(self) -> None:
        """Stops checking, and drops the reference to the client."""
        self._timer.cancel()
        self._client = None

    def _check_after(self, seconds: float) -> None:
        seconds = min(seconds, self._bounds.stalled_seconds, LOGIN_SECONDS)
        self._timer = self._loop.call_later(seconds, self._check)

    def _check(self) -> None:
        client, now = self._client, time.monotonic()
        assert client is not None  # `end` has cancelled the timer
        rest = client.last_received + self._bounds.idle_seconds - now
        is_silent = rest <= 0 and not client.session.subscribed
        if not client.is_busy and (is_silent or self._is_too_slow(client, now)):
            client.finish()
        else:
            self._check_after(max(_LEAST_PAUSE_SECONDS, rest))

    def _is_too_slow(self, client: WatchedClient, now: float) -> bool:
        if client.session.identity is None and now - self._began >= LOGIN_SECONDS:
            return True
        if not client.command_began:
            return False
        most = self._bounds.stalled_seconds + client.reader.held / MIN_REQUEST_BYTES_PER_SECOND
        return now - client.command_began >= most
