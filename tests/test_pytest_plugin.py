"""The pytest plugin: a store and a clock as fixtures, without an import."""

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

from tests.forking import IMPORT_PATH, ROOT

A_USERS_TEST = """
def test_the_store_runs_on_the_clock(holdfast_store, holdfast_clock):
    before = holdfast_clock()
    holdfast_clock.advance(seconds=60)
    with holdfast_store.view() as view:
        assert view.now == before + 60
    holdfast_store.space("left by the first test")
    print("folder:", holdfast_store.engine.path)


def test_every_test_gets_an_empty_store(holdfast_store):
    assert holdfast_store.spaces() == ["default"]
    print("folder:", holdfast_store.engine.path)
"""


def test_a_users_tests_get_a_store_and_a_clock_as_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(A_USERS_TEST)

    # Named here, because this tree need not be installed.
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", "-p", "holdfast.pytest_plugin", "test_mine.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": IMPORT_PATH, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "2 passed" in run.stdout, run.stdout + run.stderr
    folders = [line.split()[-1] for line in run.stdout.splitlines() if "folder:" in line]
    assert len(set(folders)) == 2
    assert not any(Path(folder).exists() for folder in folders)


def test_pytest_finds_the_plugin_where_holdfast_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    plugin = import_module(project["entry-points"]["pytest11"]["holdfast"])

    assert {"holdfast_clock", "holdfast_store"} <= vars(plugin).keys()
