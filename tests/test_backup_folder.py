"""A folder of dated backups: each can be restored, and those of too much are removed."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.backup_folder import (
    DatedBackup,
    backups_in,
    kept,
    make_backup,
    parse_keep,
    remove_old,
)
from holdfast.engine.lmdb.changes import applied, differences
from holdfast.engine.lmdb.restore import restore
from holdfast.errors import BadInput, StoreDamaged, StoreUnusable
from holdfast.limits import FULL_BACKUP_SECONDS
from tests.cli.running import environment
from tests.cli.running import holdfast as run

DAY = 86_400.0
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[holdfast.Store]:
    with holdfast.open(tmp_path / "data", durability="interval") as store:
        for number in range(50):
            store.jobs.put("emails", data="x" * 200, id=f"job-{number}")
        yield store


def backup(store: holdfast.Store, folder: Path, *, days: float = 0) -> DatedBackup:
    return make_backup(store.engine, folder, now=NOON + days * DAY, is_incremental=True)


pairs = st.dictionaries(st.binary(min_size=1, max_size=2), st.binary(max_size=2), max_size=12)


@settings(max_examples=200, deadline=None)
@given(pairs, pairs)
def test_the_differences_of_two_stores_make_one_out_of_the_other(
    old: dict[bytes, bytes], new: dict[bytes, bytes]
) -> None:
    base, wanted = sorted(old.items()), sorted(new.items())

    found = list(differences(iter(base), iter(wanted)))

    assert list(applied(iter(base), iter(found))) == wanted
    assert len(found) == len({*base} ^ {*wanted}) - len(
        [key for key in old if key in new and old[key] != new[key]]
    )


def test_an_incremental_backup_holds_what_has_changed_and_restores_all(
    filled: holdfast.Store, tmp_path: Path
) -> None:
    full = backup(filled, tmp_path / "backups")
    filled.jobs.put("emails", data="y" * 10_000, id="new")
    filled.jobs.cancel("job-7")
    second = backup(filled, tmp_path / "backups", days=1)
    filled.jobs.put("emails", id="newer")
    third = backup(filled, tmp_path / "backups", days=2)

    has_digest = restore(tmp_path / "backups" / second.name, tmp_path / "again")

    assert (full.base, second.base, third.base) == (None, full.name, full.name)
    assert second.bytes < full.bytes / 2
    with holdfast.open(tmp_path / "again") as again:
        new = again.jobs.get("new")
        assert new is not None
        assert new.data == "y" * 10_000
        assert [again.jobs.get(id) for id in ("job-7", "newer")] == [None, None]
        assert again.jobs.get("job-8") == filled.jobs.get("job-8")
        assert again.check() == []
    assert has_digest


def test_a_new_base_is_made_after_a_week_and_when_much_has_changed(
    filled: holdfast.Store, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    backup(filled, folder)
    filled.jobs.put("emails", data="y" * 300_000, id="large")
    large = backup(filled, folder, days=1)
    after_much = backup(filled, folder, days=2)
    after_a_week = backup(filled, folder, days=2 + FULL_BACKUP_SECONDS / DAY)

    assert large.base is not None
    assert (after_much.base, after_a_week.base) == (None, None)


@pytest.mark.parametrize("place", ["begin", "middle", "tail", "checksum", "cut", "empty"])
def test_a_damaged_link_is_refused_and_nothing_is_left(
    filled: holdfast.Store, tmp_path: Path, place: str
) -> None:
    backup(filled, tmp_path / "backups")
    filled.jobs.put("emails", id="new")
    made = backup(filled, tmp_path / "backups", days=1)
    file = tmp_path / "backups" / made.name / "changes"
    content = bytearray(file.read_bytes())
    at = {"begin": 3, "middle": len(content) // 2, "tail": -50, "checksum": -1}.get(place, 0)
    content[at] ^= 1
    kept_bytes = {"cut": len(content) - 9, "empty": 0}.get(place, len(content))
    file.write_bytes(content[:kept_bytes])

    with pytest.raises(StoreDamaged, match=f"{made.name}.* is damaged"):
        restore(file.parent, tmp_path / "again")

    assert not (tmp_path / "again" / "data.mdb").exists()


def test_a_missing_or_changed_base_is_named(filled: holdfast.Store, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    full = backup(filled, folder)
    made = backup(filled, folder, days=1)
    with holdfast.open(folder / full.name) as opened:
        opened.jobs.put("emails", id="written to a backup")
    with pytest.raises(StoreDamaged, match="is not the one that"):
        restore(folder / made.name, tmp_path / "again")
    (folder / full.name).rename(folder / "elsewhere")
    with pytest.raises(StoreDamaged, match=f"{full.name}, which is missing"):
        restore(folder / made.name, tmp_path / "again")

    [listed] = backups_in(folder)

    assert listed.problem is not None
    assert "is missing" in listed.problem
    with pytest.raises(StoreUnusable, match="holds an incremental backup"):
        holdfast.open(folder / made.name)


@pytest.mark.parametrize("where", ["os.fsync", "changes.ChangesWriter.close"])
def test_a_killed_backup_does_not_count_and_the_next_one_removes_it(
    filled: holdfast.Store, tmp_path: Path, where: str
) -> None:
    folder = tmp_path / "backups"
    full = backup(filled, folder)
    program = (
        "import os, pathlib, holdfast\n"
        "from holdfast.backup_folder import make_backup\n"
        "from holdfast.engine.lmdb import changes\n"
        "store = holdfast.open('data', durability='interval')\n"
        f"{where} = lambda *given: os.kill(os.getpid(), 9)\n"
        f"make_backup(store.engine, pathlib.Path('backups'), now={NOON + DAY}, is_incremental=True)"
    )
    killed = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment())
    left = [path.name for path in folder.iterdir()]
    counted = [each.name for each in backups_in(folder)]

    made = backup(filled, folder, days=2)

    assert killed.returncode == -9
    assert (len(left), counted) == (2, [full.name])
    assert {path.name for path in folder.iterdir()} == {full.name, made.name}


def dated(days: float, base: str | None = None) -> DatedBackup:
    made = NOON + days * DAY
    name = datetime.fromtimestamp(made, UTC).strftime("%Y%m%dT%H%M%SZ")
    return DatedBackup(name=name, made=made, bytes=1, base=base)


def test_the_newest_of_days_weeks_and_months_are_kept() -> None:
    twice_a_day = [dated(-half / 2) for half in range(800)]

    stay = sorted(kept(twice_a_day, parse_keep("7d,4w,12m")), reverse=True)

    days = [name[:8] for name in stay]
    assert days[:7] == [f"202611{day}" for day in range(17, 10, -1)]
    assert days[7:9] == ["20261108", "20261101"]  # the Sundays before, of which one is in days
    assert days[9:] == [
        *("20261031", "20260930", "20260831", "20260731", "20260630", "20260531"),
        *("20260430", "20260331", "20260228", "20260131", "20251231"),
    ]


def test_the_newest_good_one_and_what_a_kept_one_needs_are_never_removed() -> None:
    base = dated(-40)
    broken = DatedBackup(name=dated(1).name, made=NOON + DAY, bytes=1, problem="is missing")
    backups = [broken, dated(0, base.name), dated(-1, base.name), dated(-20), base]

    assert kept(backups, parse_keep("1y")) == {backups[1].name, base.name}


@pytest.mark.parametrize("text", ["", "7", "7x", "0d", "7d,", "-1d", "9999999d", "1001d"])
def test_what_does_not_say_how_many_to_keep_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="how many backups"):
        parse_keep(text)


def test_old_backups_are_removed_from_the_disk(filled: holdfast.Store, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    names = [backup(filled, folder, days=days).name for days in (0, 0.1, 0.2, 1)]

    removed = remove_old(folder, parse_keep("2d"))

    assert removed == [names[1]]
    assert {path.name for path in folder.iterdir()} == {names[0], names[2], names[3]}


def test_the_commands_back_up_and_prove_it(filled: holdfast.Store, tmp_path: Path) -> None:
    options = ("--data", tmp_path / "data", "--keep", "7d", "--incremental", "--json")
    first = run("backup", tmp_path / "backups", *options).json
    filled.close()

    proved = run("drill", tmp_path / "backups", "--json")
    too_old = run("drill", tmp_path / "backups", "--max-age", "0.0000001")
    (tmp_path / "backups" / first["made"]["name"] / "data.mdb").write_bytes(b"x" * 9_000)
    damaged = run("drill", tmp_path / "backups", "--json")
    nothing = run("drill", tmp_path, "--json")

    assert [each["name"] for each in first["kept"]] == [first["made"]["name"]]
    assert (proved.code, proved.json["problems"]) == (0, [])
    assert proved.json["keys"] > 50
    assert (too_old.code, "is older than" in too_old.out) == (3, True)
    assert damaged.code == 3
    assert damaged.json["problems"] != []
    assert (nothing.code, nothing.error["code"]) == (1, "no_backup")
