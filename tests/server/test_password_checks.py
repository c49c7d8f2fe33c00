"""Floods of wrong passwords: they delay neither valid logins nor anything else."""

import asyncio
import base64
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hiredis
import msgspec
import pytest

from holdfast.engine.contract import Engine, Transaction
from holdfast.keys import pack
from holdfast.limits import (
    FREE_LOGIN_FAILURES,
    MAX_LOGIN_RECORDS,
    MAX_LOGIN_WAIT_SECONDS,
    MAX_QUEUED_PASSWORDS,
)
from holdfast.server import password_checks, routes  # noqa: F401  # the latter serves /metrics
from holdfast.server.auth import Authenticator, has_password
from holdfast.server.http import HttpApi
from holdfast.server.password_checks import Failures
from holdfast.spaces import DIRECTORY
from holdfast.users import Grant, User, add_user, digest_of, remove_user, scrypt_of
from tests.server.running import command
from tests.server.small_server import SmallServer, small_server

ADMIN = (Grant(role="admin"),)
TOKEN: list[str] = []


def _add_users(engine: Engine) -> None:
    add_user(engine, "ann", "secret", ADMIN)
    add_user(engine, "bob", "other", ADMIN)
    TOKEN[:] = [add_user(engine, "tool", None, ADMIN) or ""]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SmallServer]:
    with small_server(tmp_path, _add_users) as server:
        yield server


@pytest.fixture
def flood(server: SmallServer) -> Iterator[None]:
    """Four connections that send wrong passwords for known and unknown users without a pause."""
    stopped = threading.Event()

    def guess(number: int) -> None:
        with server.connect() as client:
            round = 0
            while not stopped.is_set():
                round += 1
                names = ["ann", "ann", f"nobody{number}-{round}"]
                words = [command("AUTH", name, f"wrong {number} {round}") for name in names]
                client.socket.sendall(b"".join(words))
                for _ in words:
                    assert isinstance(client.receive(), hiredis.ReplyError)

    with ThreadPoolExecutor(4) as threads:
        guessing = [threads.submit(guess, number) for number in range(4)]
        server.until(lambda: len(server.dispatcher.password_checks.unknown) > 8)
        yield
        stopped.set()
        for each in guessing:
            each.result()


def _seconds(call: Callable[[], object]) -> float:
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


def test_a_flood_of_wrong_passwords_delays_no_other_login(server: SmallServer, flood: None) -> None:
    with server.connect() as client, server.connect() as other:
        assert client.ask("AUTH", TOKEN[0]) == b"OK"
        assert client.ask("AUTH", "tool", TOKEN[0]) == b"OK"
        # They took 108 s when all passwords waited in one line.
        assert _seconds(lambda: client.ask("PING")) < 20
        assert _seconds(lambda: other.ask("AUTH", "bob", "other")) < 20
        assert other.ask("PING") == b"PONG"


def test_a_token_is_accepted_while_no_more_passwords_can_be_checked(server: SmallServer) -> None:
    server.dispatcher.password_checks._queued = MAX_QUEUED_PASSWORDS
    with server.connect() as client:
        assert client.ask("AUTH", TOKEN[0]) == b"OK"
        assert "many passwords are being checked" in str(client.ask("AUTH", "bob", "other"))


def test_a_guesser_has_to_wait_and_hears_for_how_long(server: SmallServer) -> None:
    server.dispatcher.password_checks.failures = Failures(clock=lambda: 0.0)
    with server.connect() as client:
        for guess in range(FREE_LOGIN_FAILURES):
            assert str(client.ask("AUTH", "ann", f"{guess}")).startswith("WRONGPASS ")

        refused = [str(client.ask("AUTH", "ann", f"{guess}")) for guess in range(100, 200)]

        assert all("TOO_MANY_LOGINS" in each and "wait 1 s" in each for each in refused)
        assert "TOO_MANY_LOGINS" in str(client.ask("HELLO", "3", "AUTH", "ann", "secret"))
        assert client.ask("AUTH", "bob", "other") == b"OK"


def test_a_password_that_is_known_to_be_right_can_not_be_guessed_faster(
    server: SmallServer,
) -> None:
    """It was accepted at once, whatever wrong ones came before: thousands of guesses a second."""
    server.dispatcher.password_checks.failures = Failures(clock=lambda: 0.0)
    with server.connect() as owner, server.connect() as guesser:
        assert owner.ask("AUTH", "ann", "secret") == b"OK"
        for guess in range(FREE_LOGIN_FAILURES):
            guesser.ask("AUTH", "ann", f"{guess}")

        assert "TOO_MANY_LOGINS" in str(guesser.ask("AUTH", "ann", "secret"))
        assert owner.ask("PING") == b"PONG"  # who is logged in stays so
        checks = server.dispatcher.password_checks
        assert checks._unless_it_waits("192.0.2.9", "ann") is None  # others do not wait


def test_many_connections_that_log_in_at_once_are_one_login(server: SmallServer) -> None:
    clients = [server.connect() for _ in range(40)]
    for client in clients:
        client.send("AUTH", "ann", "secret")

    assert [client.receive() for client in clients] == [b"OK"] * 40
    assert len(server.dispatcher.password_checks.failures) == 0
    for client in clients:
        client.close()


@pytest.mark.parametrize("words", [["AUTH", ""], ["AUTH", "ann", ""], ["AUTH", "", ""]])
def test_an_empty_password_opens_nothing(server: SmallServer, words: list[str]) -> None:
    with server.connect() as client:
        assert str(client.ask(*words)).startswith("WRONGPASS ")
        assert str(client.ask("HELLO", "3", "AUTH", "ann", "")).startswith("WRONGPASS ")


def test_an_empty_secret_opens_nothing_even_if_one_is_stored(tmp_path: Path) -> None:
    """An early version stored empty passwords; `add_user` refuses them now."""
    salt = b"0123456789abcdef"
    stored = [
        User(name="ann", grants=ADMIN, salt=salt, password=scrypt_of("", salt)),
        User(name="tool", grants=ADMIN, token=digest_of("")),
    ]

    def prepare(engine: Engine) -> None:
        def put(tx: Transaction) -> None:
            for user in stored:
                tx.put(pack(0, "user", user.name), msgspec.msgpack.encode(user))

        engine.transact(put, space=DIRECTORY)

    with small_server(tmp_path, prepare) as server, server.connect() as client:
        for words in (["ann", ""], ["tool", ""], [""]):
            assert str(client.ask("AUTH", *words)).startswith("WRONGPASS ")
        assert _get(server, b"Basic " + base64.b64encode(b"ann:"))[0] == 401
        assert _get(server, b"Bearer ")[0] == 401


@pytest.mark.parametrize("change", ["removed", "given another password"])
def test_a_user_who_changes_during_a_login_is_not_let_in(
    server: SmallServer, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Checking a password takes 50 ms in a thread; what it was checked against may be gone."""
    authenticator = server.dispatcher.authenticator

    def slow(user: User, password: str) -> bool:
        is_right = has_password(user, password)
        if change == "removed":
            remove_user(authenticator._engine, "ann")
        else:
            add_user(authenticator._engine, "ann", "another", ADMIN)
        asyncio.run_coroutine_threadsafe(_reload(authenticator), server.dispatcher._loop).result(20)
        return is_right

    monkeypatch.setattr(password_checks, "has_password", slow)
    with server.connect() as client:
        assert str(client.ask("AUTH", "ann", "secret")).startswith("WRONGPASS ")
        assert authenticator.with_known_password("ann", "secret") is None


async def _reload(authenticator: Authenticator) -> None:
    authenticator.reload()


def test_http_asks_guessers_to_wait_too(server: SmallServer) -> None:
    server.dispatcher.password_checks.failures = Failures(clock=lambda: 0.0)

    def ask(name: str, password: str) -> tuple[int, dict[bytes, bytes]]:
        secret = base64.b64encode(f"{name}:{password}".encode())
        return _get(server, b"Basic " + secret)

    statuses = [ask("ann", f"wrong {guess}")[0] for guess in range(FREE_LOGIN_FAILURES)]
    refused, headers = ask("ann", "secret")

    assert statuses == [401] * FREE_LOGIN_FAILURES
    assert (refused, headers[b"retry-after"]) == (429, b"1")
    assert ask("bob", "other")[0] == 200
    assert ask("bob", "")[0] == 401
    assert _get(server, b"Bearer " + TOKEN[0].encode())[0] == 200
    assert _get(server, b"Bearer ")[0] == 401


def _get(server: SmallServer, authorization: bytes) -> tuple[int, dict[bytes, bytes]]:
    """Asks the HTTP side of the same server for its metrics."""
    sent: list[dict[str, object]] = []

    async def ask() -> None:
        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: object) -> None:
            sent.append(message)  # type: ignore[arg-type]  # a dict, as ASGI says

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/metrics",
            "raw_path": b"/metrics",
            "root_path": "",
            "query_string": b"",
            "http_version": "1.1",
            "scheme": "http",
            "client": ("192.0.2.1", 1),
            "headers": [(b"host", b"127.0.0.1"), (b"authorization", authorization)],
        }
        await HttpApi(server.dispatcher)(scope, receive, send)

    asyncio.run_coroutine_threadsafe(ask(), server.dispatcher._loop).result(20)
    headers = dict(sent[0]["headers"])  # type: ignore[call-overload]  # pairs, as ASGI says
    return int(str(sent[0]["status"])), headers


# --- the records of wrong passwords ------------------------------------------------------------


def test_each_wrong_password_doubles_the_wait_up_to_a_minute() -> None:
    now = [0.0]
    failures = Failures(lambda: now[0])
    waits = []
    for _ in range(FREE_LOGIN_FAILURES + 8):
        failures.add(("192.0.2.1", "ann"))
        waits.append(failures.wait_before(("192.0.2.1", "ann")))
        now[0] += waits[-1]

    assert waits[: FREE_LOGIN_FAILURES - 1] == [0.0] * (FREE_LOGIN_FAILURES - 1)
    assert waits[FREE_LOGIN_FAILURES - 1 :][:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == MAX_LOGIN_WAIT_SECONDS
    assert failures.wait_before(("192.0.2.1", "bob")) == 0.0
    assert failures.wait_before(("192.0.2.2", "ann")) == 0.0


def test_the_records_of_wrong_passwords_are_of_bounded_number() -> None:
    failures = Failures()
    for number in range(MAX_LOGIN_RECORDS + 1_000):
        failures.add((f"network {number}", "ann"))

    assert len(failures) == MAX_LOGIN_RECORDS


def test_the_right_password_and_time_make_wrong_ones_forgotten() -> None:
    now = [0.0]
    failures = Failures(lambda: now[0])
    key = ("192.0.2.1", "ann")
    for _ in range(20):
        failures.add(key)
    failures.forget(key)
    assert failures.wait_before(key) == 0.0
    for _ in range(20):
        failures.add(key)
    now[0] += 11 * MAX_LOGIN_WAIT_SECONDS
    failures.add(key)

    assert failures.wait_before(key) == 0.0


def test_names_that_nobody_has_do_not_make_the_guesses_of_a_user_forgotten(
    server: SmallServer,
) -> None:
    checks = server.dispatcher.password_checks
    for _ in range(2 * FREE_LOGIN_FAILURES + 2):  # by now a minute has to pass
        checks.failures.add(("192.0.2.9", "ann"))

    async def spray() -> None:
        numbers = range(MAX_LOGIN_RECORDS + 100)
        tries = [checks.check("192.0.2.9", f"nobody {each}", "guess") for each in numbers]
        await asyncio.gather(*tries, return_exceptions=True)

    asyncio.run_coroutine_threadsafe(spray(), server.dispatcher._loop).result(60)

    assert checks.failures.wait_before(("192.0.2.9", "ann")) > 0
