"""Many clients at once: requests wait for a turn with time left, and health checks do not wait."""

import asyncio
from pathlib import Path

import holdfast
from holdfast.server.addresses import Address
from holdfast.server.application import make_dispatcher
from holdfast.server.http import HttpApi
from holdfast.server.loop_turns import LoopTurns
from holdfast.server.uvicorn_server import HttpServer
from tests.server.running import DEADLINE


class BusyTurns(LoopTurns):
    """Turns without any time left, until the rush is over."""

    is_busy = True

    def is_over(self) -> bool:
        return self.is_busy or super().is_over()

    def _schedule_next_turn(self) -> None:
        if not self.is_busy:
            super()._schedule_next_turn()

    def calm_down(self) -> None:
        self.is_busy = False
        self._schedule_next_turn()


async def ask(port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return reader, writer


def test_a_health_check_is_answered_while_small_requests_wait_to_be_parsed(tmp_path: Path) -> None:
    async def run() -> None:
        with holdfast.open(tmp_path / "store", durability="interval") as store:
            dispatcher = make_dispatcher(store)
            turns = dispatcher.turns = BusyTurns(asyncio.get_running_loop())
            api = HttpApi(dispatcher)
            server = HttpServer(api, None)
            listening = Address.parse("127.0.0.1:0").listen()
            await server.open(listening)
            port = listening.getsockname()[1]
            async with asyncio.timeout(DEADLINE):
                others = [await ask(port, "/metrics") for _ in range(3)]

                check, writer = await ask(port, "/livez")
                assert (await check.readline()).startswith(b"HTTP/1.1 200")
                assert len(server._server.server_state.tasks) == 0
                turns.calm_down()

                for reader, other in others:
                    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
                    other.close()
                writer.close()
            await server.close()
            await dispatcher.close()

    asyncio.run(run())
