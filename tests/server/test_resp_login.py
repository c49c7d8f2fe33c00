"""Users over RESP: a client that has not logged in gets nothing, others what they are granted."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import hiredis
import pytest
import redis

from holdfast.engine.contract import Engine
from holdfast.limits import MAX_BYTES_BEFORE_LOGIN
from holdfast.users import Grant, add_user, remove_user
from tests.server.running import RawClient, command
from tests.server.small_server import SmallServer, small_server


def _add_users(engine: Engine) -> None:
    add_user(engine, "default", "all", (Grant(role="admin"),))
    add_user(engine, "ann", "secret", (Grant(role="write", space="default", layer="jobs"),))
    add_user(engine, "eve", "spy", (Grant(role="read", space="default", layer="metrics"),))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SmallServer]:
    """A server with three users."""
    with small_server(tmp_path, _add_users) as server:
        yield server


def _logged_in(server: SmallServer, user: str, password: str) -> RawClient:
    client = server.connect()
    assert client.ask("AUTH", user, password) == b"OK"
    return client


def test_a_stranger_may_only_log_in_or_leave(server: SmallServer) -> None:
    with server.connect() as client:
        for words in (["PING"], ["JOBS.QUEUES"], ["NONSENSE"], ["HELLO", "3"], ["MULTI"]):
            assert str(client.ask(*words)).startswith("NOAUTH Authentication required")
        assert client.ask("RESET") == b"RESET"
        client.socket.sendall(b"QUIT\r\n")
        assert client.rest() == b"+OK\r\n"


def test_a_right_password_is_accepted_and_a_wrong_one_refused(server: SmallServer) -> None:
    with server.connect() as client:
        assert str(client.ask("AUTH", "ann", "wrong")).startswith("WRONGPASS ")
        assert str(client.ask("AUTH", "nobody", "secret")).startswith("WRONGPASS ")
        assert client.ask("AUTH", "ann", "secret") == b"OK"
        assert client.ask("PING") == b"PONG"
        assert client.ask("AUTH", "all") == b"OK"


def test_hello_logs_in_too(server: SmallServer) -> None:
    with server.connect() as client:
        wrong = client.ask("HELLO", "3", "AUTH", "ann", "wrong")
        assert str(wrong).startswith("WRONGPASS ")
        assert client.ask("HELLO", "3", "AUTH", "ann", "secret")[b"proto"] == 3
    with redis.Redis(port=server.port, username="ann", password="secret") as library:
        assert library.ping()


def test_commands_behind_auth_in_one_packet_are_the_users(server: SmallServer) -> None:
    with server.connect() as client:
        client.socket.sendall(b"AUTH ann secret\r\nPING\r\n")

        assert (client.receive(), client.receive()) == (b"OK", b"PONG")


def test_a_user_may_do_what_is_granted_and_nothing_else(server: SmallServer) -> None:
    with _logged_in(server, "ann", "secret") as ann, _logged_in(server, "eve", "spy") as eve:
        assert ann.ask("JOBS.PUT", '{"queue":"q","id":"a"}') == b'"a"'
        assert ann.ask("ZCARD", "ql:q:q-work") == 1
        for client, words in (
            (ann, ["METRICS.INCR", '{"metric":"m"}']),
            (ann, ["SPACE", "elsewhere"]),
            (ann, ["SELECT", "3"]),
            (ann, ["FLUSHDB"]),
            (ann, ["PUBLISH", "news", "x"]),
            (eve, ["JOBS.PUT", '{"queue":"q"}']),
            (eve, ["QLESS", "queues", "*"]),
            (eve, ["KEYS", "*"]),
            (eve, ["SCRIPT", "FLUSH"]),
            (eve, ["PUBLISH", "ql:log", "x"]),
            (eve, ["PUT", b"\x05\0\0\0\0"]),
        ):
            refused = client.ask(*words)
            assert isinstance(refused, hiredis.ReplyError), words
            assert str(refused).startswith("FORBIDDEN "), words


def test_a_subscriber_hears_only_what_it_may_read(server: SmallServer) -> None:
    with _logged_in(server, "ann", "secret") as ann, _logged_in(server, "eve", "spy") as eve:
        eve.ask("PSUBSCRIBE", "*")
        ann.ask("JOBS.PUT", '{"queue":"q"}')
        eve.send("PUNSUBSCRIBE")

        assert eve.receive() == [b"punsubscribe", b"*", 0]


def test_notices_reach_only_clients_that_may_read_them(server: SmallServer) -> None:
    with (
        _logged_in(server, "ann", "secret") as ann,
        _logged_in(server, "eve", "spy") as eve,
        _logged_in(server, "ann", "secret") as other,
    ):
        other.ask("NOTICES", "jobs.ready")
        eve.ask("NOTICES")
        ann.ask("JOBS.PUT", '{"queue":"q"}')

        assert other.receive() == [b"notice", b"jobs.ready", b"q"]
        assert eve.ask("PING") == [b"pong", b""]


def test_who_may_read_events_hears_of_their_keys_and_nothing_else(server: SmallServer) -> None:
    may_read = Grant(role="read", space="default", layer="events")
    add_user(server.dispatcher.store.engine, "fan", "secret", (may_read,))
    with _logged_in(server, "default", "all") as admin, _logged_in(server, "fan", "secret") as fan:
        schema = '{"schema":{"signup":[{"targets":["[\'users\']"],"add":"who"}]}}'
        assert admin.ask("EVENTS.DEPLOY", schema) == b"null"
        fan.ask("PSUBSCRIBE", "*")
        admin.ask("JOBS.PUT", '{"queue":"q"}')
        admin.ask("EVENTS.SEND", "signup", '{"who":"ann"}')

        assert fan.receive() == [b"pmessage", b"*", b"events:users", b"set"]


def test_a_stranger_can_not_fill_the_memory(server: SmallServer) -> None:
    with server.connect() as client:
        client.socket.sendall(b"*2\r\n$4\r\nAUTH\r\n$%d\r\n" % MAX_BYTES_BEFORE_LOGIN)

        assert client.rest().startswith(b"-ERR message too large: a command may have")


def _large_put() -> bytes:
    data = "x" * (2 * MAX_BYTES_BEFORE_LOGIN)
    return command("JOBS.PUT", json.dumps({"queue": "q", "id": "large", "data": data}))


@pytest.mark.parametrize(
    "login", [["AUTH", "ann", "secret"], ["HELLO", "2", "AUTH", "ann", "secret"]]
)
def test_what_follows_a_login_may_be_large(server: SmallServer, login: list[str]) -> None:
    sent = command("CLIENT", "GETNAME") + command(*login) + command("PING") + _large_put()
    with server.connect() as client:
        client.socket.sendall(sent)
        client.socket.shutdown(socket.SHUT_WR)

        assert client.rest().endswith(b'+PONG\r\n$7\r\n"large"\r\n')


def test_what_follows_a_refused_login_may_not_be_large(server: SmallServer) -> None:
    with server.connect() as client:
        client.socket.sendall(command("AUTH", "ann", "wrong") + _large_put()[:100])

        assert re.fullmatch(
            rb"-WRONGPASS .*\r\n-ERR message too large: a command may have .*\r\n", client.rest()
        )


def test_a_password_of_any_bytes_is_only_wrong(server: SmallServer) -> None:
    with server.connect() as client:
        assert str(client.ask("AUTH", "ann", b"\xff\xfe\x00")).startswith("WRONGPASS ")


def test_who_is_removed_is_out_at_once_and_a_changed_grant_counts(server: SmallServer) -> None:
    engine = server.dispatcher.store.engine
    with _logged_in(server, "ann", "secret") as ann, _logged_in(server, "eve", "spy") as eve:
        remove_user(engine, "ann")
        add_user(engine, "eve", "spy", (Grant(role="read", space="default", layer="jobs"),))
        server.dispatcher.authenticator.reload()

        assert str(ann.ask("PING")).startswith("NOAUTH ")
        assert eve.ask("JOBS.LENGTH", '{"queue":"q"}') == b"0"


def test_the_first_user_of_a_store_ends_the_time_of_everyone(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        assert client.ask("PING") == b"PONG"
        _add_users(server.dispatcher.store.engine)
        server.dispatcher.authenticator.reload()

        assert str(client.ask("PING")).startswith("NOAUTH ")
