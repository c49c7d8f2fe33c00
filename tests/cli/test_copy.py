"""`holdfast copy`: a whole store, from engine to engine."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

import holdfast
from holdfast.engine import open_engine
from holdfast.engine.contract import Engine
from holdfast.jobs import NewJob
from holdfast.keys import pack
from tests.cli.running import environment
from tests.cli.running import holdfast as run


@pytest.fixture
def full(folder: Path) -> Path:
    """A store with some thousand keys in three spaces."""
    with holdfast.open(folder, durability="interval") as store:
        for name in ("default", "shop", "wiki"):
            list(store.space(name).jobs.put_all([NewJob(queue="q", data=n) for n in range(1_500)]))
    return folder


def everything(folder: Path) -> list[tuple[bytes, bytes]]:
    engine: Engine = open_engine(folder)
    try:
        with engine.view() as view:
            return list(view.scan(b"", b"\xff" * 600))
    finally:
        engine.close()


def test_a_copy_holds_everything(full: Path, tmp_path: Path) -> None:
    result = run("copy", full, tmp_path / "copy", "--json")

    assert (result.json["spaces"], result.json["removed"]) == (3, 0)
    assert result.json["keys"] == result.json["written"] == len(everything(full))
    assert everything(tmp_path / "copy") == everything(full)
    assert run("check", "--data", tmp_path / "copy").code == 0
    with holdfast.open(tmp_path / "copy") as copy:
        assert copy.space("wiki").jobs.length("q") == 1_500


def test_a_copy_that_was_killed_goes_on_when_it_is_run_again(full: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    program = (
        "import os, signal, sys\n"
        "from holdfast import store_copy\n"
        "from holdfast.cli import main\n"
        "write = store_copy._write\n"
        "steps = iter(range(3))\n"
        "def write_or_die(tx, put, gone):\n"
        "    if next(steps, None) is None: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    write(tx, put, gone)\n"
        "store_copy._write = write_or_die\n"
        "main(sys.argv[1:])\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, "copy", str(full), str(target)], env=environment()
    )
    assert killed.returncode == -signal.SIGKILL
    there = len(everything(target))
    assert 0 < there < len(everything(full))

    half = run("status", "--data", target, "--json")
    result = run("copy", full, target, "--json")

    assert (half.code, half.error["code"]) == (1, "copy_unfinished")
    assert result.json["written"] < result.json["keys"]
    assert everything(target) == everything(full)


def test_a_copy_goes_on_from_another_working_directory(
    full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy"
    engine = open_engine(target)
    mark = pack(0, "copying")
    engine.transact(lambda tx: tx.put(mark, str(full).encode()))
    engine.close()

    monkeypatch.chdir(full.parent)
    result = run("copy", full.name, target, "--json")

    assert result.code == 0, result.err
    assert everything(target) == everything(full)


def test_a_source_that_has_changed_since_is_followed(full: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    run("copy", full, target)
    engine = open_engine(target)  # as if the copy had been interrupted at its very end
    mark = pack(0, "copying")
    engine.transact(lambda tx: tx.put(mark, str(full).encode()))
    engine.close()
    with holdfast.open(full) as store:
        store.jobs.put("q", id="new")
        store.space("shop").jobs.cancel_queue("q")

    result = run("copy", full, target, "--json")

    assert result.json["removed"] > 0
    assert everything(target) == everything(full)


def test_a_store_is_not_copied_over_another_one(full: Path, tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "other") as other:
        other.jobs.put("q", id="precious")

    result = run("copy", full, tmp_path / "other", "--json")

    assert (result.code, result.error["code"]) == (1, "bad_input")
    with holdfast.open(tmp_path / "other") as other:
        assert other.jobs.get("precious") is not None


def test_half_a_copy_is_neither_gone_on_with_from_elsewhere_nor_copied(
    full: Path, tmp_path: Path
) -> None:
    engine = open_engine(tmp_path / "half")
    mark = pack(0, "copying")
    engine.transact(lambda tx: tx.put(mark, b"elsewhere"))
    engine.close()

    into = run("copy", full, tmp_path / "half")
    out_of = run("copy", tmp_path / "half", tmp_path / "new")

    assert (into.code, out_of.code) == (1, 1)
    assert "half a copy of elsewhere" in into.err
    assert "is not finished" in out_of.err


@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_a_store_is_copied_while_a_process_has_it_open(
    full: Path, tmp_path: Path, durability: Literal["commit", "interval"]
) -> None:
    with holdfast.open(full, durability=durability):
        result = run("copy", full, tmp_path / "copy", "--json")

    assert result.json["spaces"] == 3


def test_nothing_and_itself_are_not_copied(full: Path, tmp_path: Path) -> None:
    assert run("copy", tmp_path / "nowhere", tmp_path / "copy").code == 1
    assert not (tmp_path / "copy").exists()
    assert "the same store" in run("copy", full, full).err
