"""A server that other machines can reach is never open, however its last user is removed."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import hiredis
import pytest

import holdfast
from holdfast.server.auth import Authenticator
from holdfast.users import Grant, users_of
from holdfast.users import add_user as add
from holdfast.users import remove_user as remove
from tests.server.running import DEADLINE, RawClient
from tests.server.serving import Server, run_command, serving

EVERYWHERE = ("--resp", "0.0.0.0:0", "--http", "0.0.0.0:0")


def add_user(data: Path, name: str, grant: str) -> str:
    added = run_command("user", "add", "--data", str(data), name, "--grant", grant)
    assert added.exit_code == 0, added.output
    return added.stdout.split()[0]


def remove_user(data: Path, name: str) -> None:
    assert run_command("user", "remove", "--data", str(data), name).exit_code == 0


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline


def status(server: Server, headers: dict[str, str] | None = None) -> int:
    return server.request("POST", "/default/jobs/queues", "{}", headers).status


def test_a_server_for_other_machines_closes_with_its_last_user(tmp_path: Path) -> None:
    token = add_user(tmp_path, "root", "admin")
    with serving(tmp_path, *EVERYWHERE, log=tmp_path / "log") as server:
        with RawClient(server.resp_port) as inside, RawClient(server.resp_port) as outside:
            assert inside.ask("AUTH", token) == b"OK"
            remove_user(tmp_path, "root")  # by another process, in the folder
            until(lambda: status(server, bearer(token)) == 401)

            for client in (inside, outside):
                for words in (["PING"], ["JOBS.QUEUES"], ["HELLO", "3"], ["AUTH", token]):
                    assert isinstance(client.ask(*words), hiredis.ReplyError), words
            assert "refuses everyone" in str(inside.ask("PING"))
        said = server.call("jobs.queues").error
        assert (said["code"], "holdfast user add" in said["hint"]) == ("noauth", True)
        assert server.get("/metrics").status == 401
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "reloaded the users" in (tmp_path / "log").read_text())
        assert status(server) == 401

        again = add_user(tmp_path, "boss", "admin")
        until(lambda: status(server, bearer(again)) == 200)
    assert "refuses everyone" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("options", [(), (*EVERYWHERE, "--insecure")])
def test_a_server_that_may_be_open_opens_again_with_its_last_user(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    add_user(tmp_path, "root", "admin")
    with serving(tmp_path, *options) as server:
        assert status(server) == 401
        remove_user(tmp_path, "root")

        until(lambda: status(server) == 200)


def test_the_last_admin_can_not_be_removed_over_the_network(tmp_path: Path) -> None:
    root = bearer(add_user(tmp_path, "root", "admin"))
    add_user(tmp_path, "web", "write")
    with serving(tmp_path, *EVERYWHERE) as server:
        removed = json.dumps({"name": "root"})
        granted = json.dumps({"name": "root", "grants": ["read"]})
        for path, body in (("remove_user", removed), ("grant_user", granted)):
            reply = server.request("POST", f"/default/admin/{path}", body, root)
            assert (reply.status, reply.error["code"]) == (409, "last_admin")

        assert status(server, root) == 200


def test_users_that_changed_unheard_are_found(tmp_path: Path) -> None:
    with holdfast.open(tmp_path) as store:
        add(store.engine, "ann", "secret", (Grant(role="read"),))
        authenticator = Authenticator(store.engine)
        authenticator.require_login()
        version = authenticator.version
        authenticator.refresh(users_of(store.engine))
        assert authenticator.version == version

        remove(store.engine, "ann")  # and no notice comes
        authenticator.refresh(users_of(store.engine))

        assert (authenticator.version, authenticator.is_open, authenticator.anonymous()) == (
            version + 1,
            False,
            None,
        )
        assert authenticator.user_with_password("ann") is None
