"""Access: who may connect, from where, and what they may do; how a server starts and ends."""

import base64
import json
import signal
import socket
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
import redis
import trustme

from holdfast import operations
from holdfast.users import GRANTABLE, Grant
from tests.server.serving import Server, run_command, serve_words, serving

# --- starting ------------------------------------------------------------------------------------


def refused(data: Path, *options: str, code: int = 1) -> str:
    """The one line with which `holdfast serve` gives up."""
    ended = run_command(*serve_words(data, *options))
    assert ended.exit_code == code, ended.output
    assert ended.stderr.count("\n") == 1
    return ended.stderr


def test_a_server_for_everyone_listens_on_this_machine_alone(tmp_path: Path) -> None:
    said = refused(tmp_path, "--http", "0.0.0.0:0")

    assert "0.0.0.0:0 can be reached from other machines, and the store has no users" in said
    assert "--insecure" in said
    assert "holdfast user add" in said


def test_an_insecure_server_can_be_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path, "--http", "0.0.0.0:0", "--insecure") as server:
        assert server.url.startswith("http://0.0.0.0:")


def test_a_port_in_use_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = f"127.0.0.1:{other.getsockname()[1]}"

        for option in ("--http", "--resp"):
            said = refused(tmp_path, option, place)
            assert said.startswith(f"Error: can't listen on {place}: address already in use")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--http", "127.0.0.1"), 2, "is not an address"),
        (("--http", "127.0.0.1:99999"), 2, "is not an address"),
        (("--resp", "nowhere.invalid:1"), 1, "is not an address of this machine"),
        (("--tls-cert", "cert.pem"), 2, "--tls-cert and --tls-key belong together"),
        (("--tls-cert", "no.pem", "--tls-key", "no.pem"), 1, "can't be used for TLS"),
        (("--engine", "gopher://host/db"), 1, "no engine serves the URL scheme 'gopher'"),
    ],
)
def test_a_mistake_at_the_start_is_said_in_one_line(
    tmp_path: Path, options: tuple[str, ...], code: int, said: str
) -> None:
    assert said in refused(tmp_path, *options, code=code)


def test_a_folder_that_holds_something_else_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")

    assert refused(tmp_path / "data").startswith("Error: ")


def test_the_start_shows_the_dashboard_and_three_commands_to_try(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        shown = [server.process.stdout.readline() for _ in range(5)]

        assert shown[0] == f"The dashboard is at {server.url}/ui/\n"
        assert shown[1] == "Try:\n"
        assert f"redis-cli -p {server.resp_port} " in shown[2]
        assert f"curl {server.url}/" in shown[3]
        assert f"curl {server.url}/" in shown[4]


def test_a_server_without_a_dashboard_names_none(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-ui") as server:
        assert server.process.stdout.readline() == "Try:\n"


# --- ending --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_what_is_in_flight_and_exits_0(
    tmp_path: Path, number: signal.Signals
) -> None:
    with serving(tmp_path) as server:
        slow = server.connect()
        body = json.dumps({"queue": "q", "data": {"n": 1}}).encode()
        slow.putrequest("POST", "/default/jobs/put")
        slow.putheader("Content-Length", str(len(body)))
        slow.endheaders()
        slow.send(body[:5])
        assert server.get("/livez").status == 200  # the server has seen the slow one's head

        server.process.send_signal(number)
        slow.send(body[5:])

        assert slow.getresponse().status == 200
        slow.close()
        assert server.process.wait(20) == 0

    with serving(tmp_path) as server:
        assert server.call("jobs.length", queue="q").result == 1


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(tmp_path / "data", log=log) as server:
        stuck = server.connect()
        stuck.putrequest("POST", "/default/jobs/put")
        stuck.putheader("Content-Length", "10")
        stuck.endheaders()
        stuck.send(b"{")
        assert server.get("/livez").status == 200

        server.process.send_signal(signal.SIGTERM)
        wait_for_log(log, "stopping")
        while server.process.poll() is None:  # those that follow at once count as the first
            server.process.send_signal(signal.SIGTERM)

        assert server.process.wait(10) == -signal.SIGKILL
        stuck.close()


def wait_for_log(log: Path, word: str) -> None:
    """Returns when the word is in the log; each look follows a word from the file system."""
    for _ in range(1_000_000):
        if word in log.read_text():
            return
    raise AssertionError(f"{word!r} is not in {log.read_text()!r}")


# --- users ---------------------------------------------------------------------------------------


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def add_user(data: Path, name: str, *grants: str) -> str:
    """Adds a user and returns its token."""
    words = [word for grant in grants for word in ("--grant", grant)]
    added = run_command("user", "add", "--data", str(data), name, *words)
    assert added.exit_code == 0, added.stderr
    return added.stdout.strip()


def status(server: Server, operation: str, headers: dict[str, str], space: str = "default") -> int:
    path = f"/{space}/{operation.replace('.', '/')}"
    bodies = {
        "jobs.put": {"queue": "q", "data": {}},
        "jobs.length": {"queue": "q"},
        "tables.drop": {"table": "t"},
    }
    return server.request("POST", path, json.dumps(bodies[operation]), headers).status


def test_users_and_tokens_can_use_both_protocols_for_what_they_were_granted(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert status(server, "jobs.put", {}) == 200
        writer = add_user(tmp_path, "web", "write:*:jobs")
        reader = add_user(tmp_path, "eye", "read:default")
        admin = add_user(tmp_path, "root", "admin")

        wait_until_closed(server, admin)
        assert status(server, "jobs.put", bearer("wrong")) == 401
        assert status(server, "jobs.put", bearer(writer)) == 200
        assert status(server, "jobs.put", bearer(writer), space="other") == 200
        assert status(server, "tables.drop", bearer(writer)) == 403
        assert status(server, "jobs.length", bearer(reader)) == 200
        assert status(server, "jobs.put", bearer(reader)) == 403
        assert status(server, "jobs.length", bearer(reader), space="other") == 403
        assert status(server, "tables.drop", bearer(admin)) == 200
        assert server.get("/livez").status == 200
        assert server.get("/metrics").status == 401
        assert server.get("/default/notices").status == 401
        assert server.get("/default/sys/table/").json["type"] == "noauth"
        assert server.request("POST", "/deploy", "schema: x", bearer(writer)).status == 403

        client: Any = redis.Redis(port=server.resp_port)
        with pytest.raises(redis.AuthenticationError):
            client.ping()
        client.close()
        client = redis.Redis(port=server.resp_port, username="eye", password=reader)
        assert client.execute_command("JOBS.LENGTH", '{"queue": "q"}') == b"2"
        with pytest.raises(redis.ResponseError, match=r"(?i)forbidden"):
            client.execute_command("JOBS.PUT", '{"queue": "q", "data": 1}')
        client.close()


def wait_until_closed(server: Server, last: str | None = None) -> None:
    """The server hears of new users by notices, which come soon; `last` is the last one's token."""
    for _ in range(1_000):
        reply = server.call("jobs.length", queue="q")
        if reply.status == 401:
            assert reply.headers["www-authenticate"] == "Bearer"
            if last is None or status(server, "jobs.length", bearer(last)) != 401:
                return
    raise AssertionError("the server never heard of the user")


def test_a_password_is_checked_and_a_removed_user_stays_out(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    with serving(tmp_path, log=tmp_path / "log") as server:
        words = ("user", "add", *data, "ann", "--password", "--grant", "write")
        added = run_command(*words, stdin="s3cret pass\n")
        assert (added.exit_code, added.stdout) == (0, "")
        token = add_user(tmp_path, "tool", "read")
        wait_until_closed(server, token)

        assert status(server, "jobs.put", basic("ann", "s3cret pass")) == 200
        assert status(server, "jobs.put", basic("ann", "s3cret pass")) == 200
        assert status(server, "jobs.put", basic("ann", "guess")) == 401
        assert status(server, "jobs.put", basic("ben", "s3cret pass")) == 401
        assert status(server, "jobs.put", {"Authorization": "Basic %%%"}) == 401
        assert status(server, "jobs.length", basic("tool", token)) == 200
        assert status(server, "jobs.length", basic("ann", token)) == 401

        listed = run_command("user", "list", *data).stdout
        assert listed.splitlines()[1:] == ["ann   password  write:*:*", "tool  token     read:*:*"]
        assert run_command("user", "remove", *data, "ann").exit_code == 0
        missing = run_command("user", "remove", *data, "ann")
        assert missing.exit_code == 1
        assert missing.stderr.startswith("Error: there is no user 'ann'\n")

        for _ in range(1_000):
            if status(server, "jobs.put", basic("ann", "s3cret pass")) == 401:
                break
        else:
            raise AssertionError("the user is still let in")
        server.stop()
    log = (tmp_path / "log").read_text()
    assert "s3cret" not in log
    assert token not in log
    for line in log.splitlines():
        assert json.loads(line)["level"]


def test_a_store_keeps_no_password_and_no_token(tmp_path: Path) -> None:
    token = add_user_to_new_store(tmp_path)

    for path in tmp_path.rglob("*"):
        if stat.S_ISREG(path.stat().st_mode):
            assert token.encode() not in path.read_bytes()


def add_user_to_new_store(data: Path) -> str:
    return add_user(data, "web", "write:shop", "read:*:metrics")


def test_a_store_with_users_may_be_served_to_other_machines(tmp_path: Path) -> None:
    add_user_to_new_store(tmp_path)

    with serving(tmp_path, "--http", "0.0.0.0:0") as server:
        assert server.get("/livez").status == 200


@pytest.mark.parametrize("grant", ["owner", "", "read:shop:job", "write:localhost:8080"])
def test_a_grant_that_makes_no_sense_is_refused(tmp_path: Path, grant: str) -> None:
    words = ("user", "add", "--data", str(tmp_path), "web", "--grant", grant)

    assert run_command(*words).exit_code == 1


def test_a_grant_may_be_for_any_layer_and_for_a_space_with_colons_in_its_name() -> None:
    assert set(GRANTABLE) == {*operations.LAYER_CLASSES, "pubsub", "*"}
    assert Grant.parse("write:localhost:8080:*").space == "localhost:8080"


def test_a_stream_of_notices_ends_with_the_grant_of_its_reader(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        root = bearer(add_user(tmp_path, "root", "admin"))
        token = add_user(tmp_path, "eye", "read:default:jobs")
        reader = bearer(token)
        wait_until_closed(server, token)
        connection = server.connect()
        connection.request("GET", "/default/notices?topic=jobs.log", headers=reader)
        response = connection.getresponse()
        assert response.readline() == b": listening\n"

        put = json.dumps({"queue": "q"})
        server.request("POST", "/default/jobs/put", put, root)
        assert response.readline() == b"\n"
        assert response.readline() == b"event: jobs.log\n"
        removed = json.dumps({"name": "eye"})
        server.request("POST", "/default/admin/remove_user", removed, root)
        server.request("POST", "/default/jobs/put", put, root)

        assert response.read().count(b"event:") == 0
        connection.close()


# --- TLS -----------------------------------------------------------------------------------------


def issue(
    authority: trustme.CA, folder: Path, name: str, key: trustme.KeyType = trustme.KeyType.ECDSA
) -> None:
    certificate = authority.issue_cert("127.0.0.1", common_name=name, key_type=key)
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))


def common_name(server: Server, port: int) -> str:
    """The name in the certificate that a port shows."""
    assert server.tls is not None
    with (
        socket.create_connection((server.host, port), timeout=20) as plain,
        server.tls.wrap_socket(plain, server_hostname=server.host) as secure,
    ):
        shown: Any = secure.getpeercert()
    [[(_, name)]] = [part for part in shown["subject"] if part[0][0] == "commonName"]
    return str(name)


def test_both_protocols_speak_tls_and_read_a_new_certificate_when_told(tmp_path: Path) -> None:
    authority = trustme.CA()
    issue(authority, tmp_path, "first")
    options = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))

    with serving(tmp_path / "data", *options, log=tmp_path / "log") as server:
        server.tls = ssl.create_default_context()
        authority.configure_trust(server.tls)
        assert server.url.startswith("https://")
        assert server.call("jobs.put", queue="q", data={}).status == 200
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        client = redis.Redis(
            host=server.host, port=server.resp_port, ssl=True, ssl_ca_certs=str(tmp_path / "ca.pem")
        )
        assert client.ping()
        client.close()

        issue(authority, tmp_path, "second")
        server.process.send_signal(signal.SIGHUP)
        wait_for_log(tmp_path / "log", "reloaded the users")
        assert common_name(server, server.http_port) == "second"
        assert common_name(server, server.resp_port) == "second"

        (tmp_path / "cert.pem").write_text("damaged")
        server.process.send_signal(signal.SIGHUP)
        wait_for_log(tmp_path / "log", "nothing was changed")
        assert common_name(server, server.http_port) == "second"
        assert server.stop() == 0


def test_a_new_certificate_replaces_one_whose_key_has_another_type(tmp_path: Path) -> None:
    authority = trustme.CA()
    issue(authority, tmp_path, "elliptic")
    options = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))

    with serving(tmp_path / "data", *options, log=tmp_path / "log") as server:
        server.tls = ssl.create_default_context()
        authority.configure_trust(server.tls)
        assert common_name(server, server.http_port) == "elliptic"

        issue(authority, tmp_path, "rsa", trustme.KeyType.RSA)
        server.process.send_signal(signal.SIGHUP)
        wait_for_log(tmp_path / "log", "reloaded the users")

        assert common_name(server, server.http_port) == "rsa"
        assert common_name(server, server.resp_port) == "rsa"
