"""`holdfast backup` and `holdfast restore`: what they write is verified, and nothing is lost."""

import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.backup_folder import keep_download
from holdfast.engine.contract import Backup
from holdfast.errors import BadInput, Forbidden, NotFound, StoreDamaged
from holdfast.jobs import space_keys as jobs
from holdfast.keys import prefix_range
from tests.cli.conftest import Command
from tests.cli.running import holdfast as run
from tests.server.serving import serving


def test_a_backup_is_a_store_of_its_own(
    command: Command, store: holdfast.Store, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store.space("shop").jobs.put("emails", id="first")
    is_server = "server" in request.node.callspec.id
    target = tmp_path / "backups" / "monday"

    result = command("backup", "monday" if is_server else target, "--json")

    assert (result.json["target"], result.json["keys"]) == (str(target), store.stats()["keys"])
    with holdfast.open(target) as copy:
        assert copy.space("shop").jobs.get("first") is not None


def test_a_backup_into_a_folder_with_something_in_it_is_refused(folder: Path) -> None:
    result = run("backup", "--data", folder, folder, "--json")

    assert (result.code, result.error["code"]) == (1, "bad_input")
    assert "is not empty" in result.error["message"]


@pytest.mark.parametrize("command", ["server"], indirect=True)
@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "..", "", "a\0b", "long" * 60])
def test_a_server_writes_backups_below_its_own_folder_only(command: Command, name: str) -> None:
    result = command("backup", name, "--json")

    assert (result.code, result.error["code"]) == (1, "bad_input")


def test_a_server_without_such_a_folder_makes_none(folder: Path) -> None:
    from tests.server.serving import serving

    with serving(folder) as server:
        result = run("backup", "x", "--url", f"holdfast://127.0.0.1:{server.resp_port}", "--json")

    assert (result.code, result.error["code"]) == (1, "forbidden")
    assert "--backups" in result.error["hint"]


def test_a_backup_is_restored_and_verified(folder: Path, tmp_path: Path) -> None:
    with holdfast.open(folder) as store:
        store.jobs.put("emails", id="first")
    run("backup", "--data", folder, tmp_path / "backup")

    result = run("restore", tmp_path / "backup", "--data", tmp_path / "again", "--json")

    assert result.code == 0, result.err
    with holdfast.open(tmp_path / "again") as again, holdfast.open(folder) as store:
        assert again.jobs.get("first") == store.jobs.get("first")
        assert result.json["keys"] == store.stats()["keys"]
    assert run("check", "--data", tmp_path / "again").code == 0


def test_a_store_is_never_overwritten(folder: Path, tmp_path: Path) -> None:
    run("backup", "--data", folder, tmp_path / "backup")

    result = run("restore", tmp_path / "backup", "--data", folder)

    assert result.code == 1
    assert "is not empty" in result.err


def test_a_damaged_backup_is_not_restored(folder: Path, tmp_path: Path) -> None:
    with holdfast.open(folder) as store:
        for number in range(2_000):
            store.jobs.put("emails", data="x" * 200, id=f"job-{number}")
    run("backup", "--data", folder, tmp_path / "backup")
    file = tmp_path / "backup" / "data.mdb"
    content = bytearray(file.read_bytes())
    content[20 * 4096 : 60 * 4096] = b"\xa5" * (40 * 4096)
    file.write_bytes(content)

    result = run("restore", tmp_path / "backup", "--data", tmp_path / "again")

    assert result.code != 0
    assert not (tmp_path / "again" / "data.mdb").exists()


def test_what_is_no_backup_and_a_server_are_refused(tmp_path: Path) -> None:
    nothing = run("restore", tmp_path, "--data", tmp_path / "again", "--json")
    server = run("restore", tmp_path, "--url", "holdfast://127.0.0.1:1", "--json")

    assert (nothing.code, nothing.error["code"]) == (1, "no_store")
    assert (server.code, server.error["code"]) == (1, "not_on_a_server")


def test_a_folder_of_dated_backups_is_answered_with_the_newest(
    folder: Path, tmp_path: Path
) -> None:
    made = run("backup", "--data", folder, tmp_path / "kept", "--keep", "7d", "--json").json["made"]

    refused = run("restore", tmp_path / "kept", "--data", tmp_path / "restored", "--json")

    assert str(tmp_path / "kept" / made["name"]) in refused.error["hint"]


def test_problems_that_come_with_a_backup_are_named(folder: Path, tmp_path: Path) -> None:
    with holdfast.open(folder) as store:
        store.jobs.put("emails", id="first")
        place = jobs.keys_of(store.prefix).queue("emails").work
        store.engine.transact(lambda tx: tx.clear(*prefix_range(place)), space=store.prefix)
    run("backup", "--data", folder, tmp_path / "backup")

    result = run("restore", tmp_path / "backup", "--data", tmp_path / "again")

    assert result.code == 3
    assert "job first: it is waiting, but not in that list" in result.out


def test_check_and_backup_count_the_same_keys(folder: Path, tmp_path: Path) -> None:
    with holdfast.open(folder) as store:
        store.space("shop").jobs.put("emails", id="first")

    checked = run("check", "--data", folder, "--json").json["keys"]
    backed_up = run("backup", "--data", folder, tmp_path / "backup", "--json").json["keys"]

    assert checked == backed_up


def test_a_backup_of_no_bytes_is_not_restored(folder: Path, tmp_path: Path) -> None:
    run("backup", "--data", folder, tmp_path / "backup")
    (tmp_path / "backup" / "data.mdb").write_bytes(b"")

    result = run("restore", tmp_path / "backup", "--data", tmp_path / "again", "--json")

    assert (result.code, result.error["code"]) == (1, "store_damaged")
    assert not (tmp_path / "again" / "data.mdb").exists()


def test_backups_of_a_server_are_downloaded_kept_and_proven(folder: Path, tmp_path: Path) -> None:
    kept, there = tmp_path / "kept", tmp_path / "there"
    with serving(folder, "--backups", str(there)) as server:
        url = f"holdfast://127.0.0.1:{server.resp_port}"
        with holdfast.connect(url) as client:
            client.jobs.put("emails", data="x" * 5_000, id="first")
            client.admin.backup("monday")
        words = ("backup", "--url", url, kept, "--keep", "7d", "--incremental", "--json")
        full = run(*words)
        with holdfast.connect(url) as client:
            piece = client.admin.backup_read("monday", offset=4096, count=10)
            with pytest.raises(Forbidden):
                client.admin.backup_remove("monday")
            with pytest.raises(BadInput):
                client.admin.backup_read("../data")
            with pytest.raises(NotFound):
                client.admin.backup_read("tuesday")
            assert not client.admin.backup_remove("download-none")

    assert len(piece) == 10
    assert full.json["made"]["base"] is None
    assert [each.name for each in there.iterdir()] == ["monday"]
    assert [each.name for each in kept.iterdir()] == [full.json["made"]["name"]]
    drill = run("drill", kept, "--json")
    assert (drill.code, drill.json["problems"]) == (0, [])


def test_what_killed_downloads_have_left_on_the_server_is_removed_after_a_day(
    folder: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    with holdfast.open(folder) as store:
        for name in ("download-old", "download-new", "monday"):
            store.backup(there / name)
    for name in ("download-old", "monday"):
        os.utime(there / name / "data.mdb", (0, time.time() - 2 * 86_400))

    with serving(folder, "--backups", str(there)) as server:
        url = f"holdfast://127.0.0.1:{server.resp_port}"
        assert run("backup", "--url", url, tmp_path / "kept", "--keep", "7d").code == 0

    assert {each.name for each in there.iterdir()} == {"download-new", "monday"}


def test_a_download_is_kept_as_changes_or_not_at_all(folder: Path, tmp_path: Path) -> None:
    now, kept = 1_700_000_000, tmp_path / "kept"
    with holdfast.open(folder) as store:
        told = store.backup(tmp_path / "there")
    copy = (tmp_path / "there" / "data.mdb").read_bytes()

    def download(file: Path, more_keys: int = 0) -> Backup:
        file.write_bytes(copy)
        return Backup(keys=told.keys + more_keys, digest=told.digest)

    full = keep_download(download, kept, now=now, is_incremental=True)
    changes = keep_download(download, kept, now=now + 60, is_incremental=True)
    with pytest.raises(StoreDamaged, match="nothing was kept"):
        keep_download(partial(download, more_keys=1), kept, now=now + 120)

    assert (full.base, changes.base) == (None, full.name)
    assert {each.name for each in kept.iterdir()} == {full.name, changes.name}


def test_whatever_lies_in_the_folder_of_backups_is_no_error_of_the_server(
    folder: Path, tmp_path: Path
) -> None:
    there = tmp_path / "backups"
    with serving(folder, "--backups", str(there)) as server:

        def ask(operation: str, **arguments: object) -> tuple[int, Any]:
            reply = server.request("POST", f"/default/admin/{operation}", json.dumps(arguments))
            return reply.status, json.loads(reply.body).get("result")

        assert ask("backup", target="good")[0] == 200
        for name in (b"download-pipe", b"link-inside", b"\xff"):
            (there / os.fsdecode(name)).mkdir()
        (there / os.fsdecode(b"\xff") / "data.mdb").touch()
        os.mkfifo(there / "download-pipe" / "data.mdb")
        (there / "link-inside" / "data.mdb").symlink_to("nowhere")
        (there / "download-link").symlink_to(there / "good")

        status, listed = ask("backups")
        assert (status, {each["name"] for each in listed}) == (200, {"good", "download-link"})
        assert ask("backup_remove", name="download-link") == (200, False)
        assert ask("backup_remove", name="download-pipe") == (200, False)
        assert ask("backup_read", name="download-pipe")[0] == 404
        assert ask("backup_read", name="good", offset=2**63 - 1) == (200, "")
        assert ask("backup_read", name="é" * 200)[0] == 400
        assert ask("backup_remove", name="download-" + "é" * 190)[0] == 400
    assert (there / "good" / "data.mdb").is_file()
