"""`holdfast user`, and a server that asks for a token."""

from pathlib import Path

import holdfast
from tests.cli.conftest import Command
from tests.cli.running import holdfast as run
from tests.server.serving import serving


def test_users_are_added_listed_and_removed_in_a_folder(folder: Path) -> None:
    data = ("--data", folder)

    token = run("user", "add", "web", *data, "--grant", "write:shop", "--json").json["token"]
    run("user", "add", "ann", "--password", "--grant", "write", *data, input="s3cret\n")
    listed = run("user", "list", *data, "--json").json["users"]
    removed = run("user", "remove", "web", *data, "--json").json

    assert len(token) > 30
    assert listed == [
        {"name": "ann", "login": "password", "grants": ["write:*:*"]},
        {"name": "web", "login": "token", "grants": ["write:shop:*"]},
    ]
    assert removed == {"removed": "web"}
    assert "ann   password  write:*:*" in run("user", "list", *data).out


def test_a_server_takes_users_and_then_asks_for_a_token(folder: Path) -> None:
    with serving(folder) as server:
        url = ("--url", f"holdfast://127.0.0.1:{server.resp_port}", "--json")
        admin = run("user", "add", "boss", "--grant", "admin", *url).json["token"]

        stranger = run("status", *url)
        guest = run("user", "add", "guest", "--grant", "admin:shop", *url, HOLDFAST_TOKEN=admin)
        token = guest.json["token"]
        elsewhere = run("status", *url, "--token", token)
        whole = run("space", "list", *url, "--token", token)
        own = run("status", *url, "--space", "shop", "--token", token)

    assert (stranger.code, stranger.error["code"]) == (1, "noauth")
    assert (elsewhere.code, elsewhere.error["code"]) == (1, "forbidden")
    assert (whole.code, whole.error["code"]) == (1, "forbidden")
    assert own.json["space"] == "shop"


def test_bad_grants_and_unknown_users_are_refused(command: Command, store: holdfast.Store) -> None:
    grant = command("user", "add", "web", "--grant", "owner", "--json")
    unknown = command("user", "remove", "nobody", "--json")

    assert (grant.code, grant.error["code"]) == (1, "bad_input")
    assert (unknown.code, unknown.error["code"]) == (1, "unknown_user")


def test_a_user_is_not_added_without_a_grant_nor_replaced_without_a_word(folder: Path) -> None:
    data = ("--data", folder)
    without = run("user", "add", "web", "--json", *data)
    empty = run("user", "add", "web", "--grant", "write:", "--json", *data)
    first = run("user", "add", "web", "--grant", "read:shop", "--json", *data)
    again = run("user", "add", "web", "--grant", "write", "--json", *data)
    listed = run("user", "list", "--json", *data).json["users"]
    replaced = run("user", "add", "web", "--grant", "write", "--replace", "--json", *data)

    assert without.code == 2
    assert (empty.code, empty.error["code"]) == (1, "bad_input")
    assert (first.code, again.code, again.error["code"]) == (0, 1, "user_exists")
    assert "--replace" in again.error["hint"]
    assert listed == [{"name": "web", "login": "token", "grants": ["read:shop:*"]}]
    assert replaced.json["token"] != first.json["token"]


def test_grants_and_tokens_of_a_user_are_changed(folder: Path) -> None:
    data = ("--data", folder)
    first = run("user", "add", "web", "--grant", "read:shop", "--json", *data).json["token"]

    granted = run("user", "grant", "web", "--grant", "write:shop", *data).out
    second = run("user", "token", "web", "--json", *data).json["token"]
    revoked = run("user", "token", "web", "--revoke", "--json", *data).json
    unknown = run("user", "token", "nobody", "--json", *data)

    assert granted == "web  write:shop:*\n"
    assert second not in (None, first)
    assert revoked == {"name": "web", "token": None}
    assert unknown.error["code"] == "unknown_user"


def test_a_server_that_is_not_there_is_told_so() -> None:
    result = run("status", "--url", "holdfast://127.0.0.1:1", "--json")

    assert (result.code, result.error["code"]) == (1, "unreachable")
