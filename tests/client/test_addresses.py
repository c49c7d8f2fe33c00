"""Names of hosts are looked up within the time-out, and all of their addresses are tried."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.client import addresses
from holdfast.errors import Unreachable
from tests.client.both_clients import connected
from tests.server.running import DEADLINE, Server

NAME = "db.example"


@pytest.fixture
def slow_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A resolver that answers no name before the event is set; addresses it knows at once."""
    asked = socket.getaddrinfo
    answered = threading.Event()

    def look_up(host: Any, *given: Any, **options: Any) -> Any:
        if host == NAME:
            if options.get("flags"):
                raise socket.gaierror(socket.EAI_NONAME, "no address")
            answered.wait(DEADLINE)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return asked(host, *given, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield answered
    answered.set()
    for thread in lookups():
        thread.join(DEADLINE)


def lookups() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == f"holdfast-dns-{NAME}"]


def test_a_resolver_that_hangs_costs_no_more_than_the_time_out(
    slow_names: threading.Event, mode: str
) -> None:
    begin = time.monotonic()

    with (
        pytest.raises(Unreachable, match=NAME),
        connected(mode, f"holdfast://{NAME}?connect_timeout=0.2&timeout=0.5&retries=0"),
    ):
        pass

    assert time.monotonic() - begin < 5


def test_those_who_ask_for_the_same_name_share_one_look_up(slow_names: threading.Event) -> None:
    for _ in range(5):
        with pytest.raises(Unreachable):
            holdfast.connect(f"holdfast://{NAME}", connect_timeout=0.05, timeout=0.1, retries=0)

    assert len(lookups()) == 1


def test_one_who_waits_no_longer_takes_the_answer_from_no_one_else(
    slow_names: threading.Event,
) -> None:
    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(addresses.look_up(NAME, 1)), 0.01)

    waiting = addresses.look_up(NAME, 1)
    asyncio.run(give_up())
    slow_names.set()

    assert isinstance(waiting.exception(DEADLINE), socket.gaierror)


def test_a_name_that_does_not_exist_is_unreachable(mode: str) -> None:
    with (
        pytest.raises(Unreachable, match=r"nowhere\.invalid"),
        connected(mode, "holdfast://nowhere.invalid?retries=0"),
    ):
        pass


def test_addresses_that_do_not_answer_are_passed_over(
    server: Server, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = socket.getaddrinfo
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = closed.getsockname()[1]

    def look_up(host: Any, port: Any, *given: Any, **options: Any) -> Any:
        if host != NAME:
            return asked(host, port, *given, **options)
        if options.get("flags"):
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, ("127.0.0.1", dead)), (*kind, ("127.0.0.1", server.resp_port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    with connected(mode, f"holdfast://{NAME}") as client:
        client.ping()
