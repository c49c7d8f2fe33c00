"""A TCP proxy that breaks connections: by chance, with a seed, or on demand.

It listens on a port of its own and passes everything on to a server, piece by piece. With each
piece it may delay it, split it, cut the connection before or behind it, swallow the answer to it,
close one direction alone, or end the connection and send its last bytes again on a new one. A
partition stops all traffic without closing anything, until it is healed: both sides see silence.
"""

import asyncio
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

PIECE_BYTES: Final = 1 << 16
FAULTS: Final = {  # how often each comes, beside the others
    "delay": 8,
    "split": 6,
    "cut before": 2,  # the piece does not arrive
    "cut behind": 2,  # the piece arrives, and nothing more in either direction
    "drop replies": 2,  # the piece arrives, and what the server says to it does not
    "half-close": 1,  # one direction ends, the other goes on
    "duplicate": 1,  # a connection ends, and its last bytes arrive again on one of their own
}
MAX_DELAY_SECONDS: Final = 0.05
SPLIT_BYTES: Final = 7


class Proxy:
    """A faulty way to a server on this machine.

    `rate` is the chance of a fault with each piece. `admits` decides by the address of who
    connects whether traffic passes at the moment; it is asked for every piece.
    """

    def __init__(
        self,
        port: int,
        chance: random.Random,
        *,
        rate: float = 0.0,
        listen_on: int = 0,
        admits: Callable[[str], bool] = lambda host: True,
    ) -> None:
        self.target = port
        self.rate = rate
        self.faults: Counter[str] = Counter()
        self._chance = chance
        self._admits = admits
        self._whole = True
        self._listening = socket.create_server(("127.0.0.1", listen_on))
        self.port: int = self._listening.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def partition(self) -> None:
        """Lets nothing pass, and closes nothing, until `heal`."""
        self._whole = False
        self.faults["partition"] += 1

    def heal(self) -> None:
        self._whole = True

    def calm(self) -> None:
        """Ends all faults: what follows passes as it is."""
        self.rate = 0.0
        self.heal()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # --- in the thread of the proxy --------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connect, sock=self._listening)
        )
        self._loop.run_forever()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        host = writer.get_extra_info("peername")[0]
        ends = [writer]
        try:
            await self._until_passable(host)
            there, out = await asyncio.open_connection("127.0.0.1", self.target)
            ends.append(out)
            link = _Link()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, out, host, link, upwards=True))
                group.create_task(self._pump(there, writer, host, link, upwards=False))
        except* (OSError, _Cut, asyncio.CancelledError):  # or the proxy is closed
            pass
        finally:
            for end in ends:
                _reset(end)
            self._tasks.discard(task)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        host: str,
        link: "_Link",
        *,
        upwards: bool,
    ) -> None:
        while piece := await reader.read(PIECE_BYTES):
            await self._until_passable(host)
            if link.deaf and not upwards:
                raise _Cut
            if link.ended[upwards]:
                continue  # nobody hears it any more
            if self._chance.random() < self.rate:
                await self._break(writer, piece, link, upwards=upwards)
            else:
                writer.write(piece)
                await writer.drain()
        if not link.ended[upwards]:
            writer.write_eof()

    async def _break(
        self, writer: asyncio.StreamWriter, piece: bytes, link: "_Link", *, upwards: bool
    ) -> None:
        [fault] = self._chance.choices(list(FAULTS), list(FAULTS.values()))
        self.faults[fault] += 1
        if fault == "cut before":
            raise _Cut
        if fault == "delay":
            await asyncio.sleep(self._chance.random() * MAX_DELAY_SECONDS)
        elif fault == "split":
            place = self._chance.randrange(1, SPLIT_BYTES)
            writer.write(piece[:place])
            await writer.drain()
            await asyncio.sleep(0.001)
            piece = piece[place:]
        writer.write(piece)
        await writer.drain()
        if fault == "cut behind":
            raise _Cut
        if fault == "duplicate":
            if upwards:
                await self._send_again(piece[-self._chance.randrange(1, SPLIT_BYTES) :])
            raise _Cut
        if fault == "drop replies" and upwards:
            link.deaf = True  # the next word of the server is lost, and the connection with it
        if fault == "half-close":
            link.ended[upwards] = True
            writer.write_eof()

    async def _send_again(self, end: bytes) -> None:
        """Sends the end of a connection on a new one. It is no whole request, so nothing is done.

        (A whole one that came twice would be done twice: who sends it again says so by its id.)
        """
        reader, again = await asyncio.open_connection("127.0.0.1", self.target)
        try:
            again.write(end)
            again.write_eof()
            with suppress(TimeoutError, OSError):
                await asyncio.wait_for(reader.read(PIECE_BYTES), MAX_DELAY_SECONDS)
        finally:
            _reset(again)

    async def _until_passable(self, host: str) -> None:
        while not (self._whole and self._admits(host)):
            await asyncio.sleep(0.01)


class _Link:
    """The state that both directions of a connection share."""

    def __init__(self) -> None:
        self.deaf = False  # the next word of the server is lost
        self.ended = {True: False, False: False}  # by direction: towards the server, and back


class _Cut(Exception):
    """The connection is to end, at once and in both directions."""


def _reset(writer: asyncio.StreamWriter) -> None:
    """Closes a connection without a good-bye, so that nothing that is under way still arrives."""
    with suppress(OSError, RuntimeError):
        if (sock := writer.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()
