"""`pip install .` brings little, which is enough for all but the server."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from tests.cli.running import environment

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

CORE = {"click", "cramjam", "hiredis", "lmdb", "msgspec", "pyyaml"}

# Uses every layer, the client, BSON, and the modules that a program imports by itself.
PROGRAM = """
import holdfast, holdfast.aio, holdfast.asgi, holdfast.testing, holdfast.wsgi
from holdfast.compat.meduza import mdzctl
from holdfast.tasks import Tasks
from holdfast.testing import temporary_store

with temporary_store() as store:
    store.entities.deploy("schema: shop\\ntables: {Orders: {columns: {total: {type: Int}}}}")
    store.entities.put_raw("shop.Orders", [{"total": 7, "at": [1, {"n": b"x"}]}])
    [dumped] = store.entities.dump("shop.Orders", format="bson")
    print(store.entities.load("shop.Orders", [dumped]))
    store.jobs.put("emails", data=1)
    store.metrics.define({"orders": {}})
    store.metrics.incr("orders")
    store.tables.create({"table": "T", "attributes": {"k": "string"},
                         "index": [{"attribute": "k", "type": "hash"}]})
    store.tables.put("T", {"k": "a"})
    store.events
print(type(holdfast.connect))
"""


def test_the_core_needs_six_packages_and_they_need_no_others() -> None:
    needed = {name_of(each) for each in PROJECT["dependencies"]}
    theirs = {
        name_of(each)
        for package in CORE
        for each in requires(package) or []
        if "extra ==" not in each and not re.search(r"win32|Windows|python_version *<", each)
    }

    assert needed == CORE
    assert theirs <= CORE


def test_all_but_the_server_works_with_the_core_alone() -> None:
    done = core_python(PROGRAM)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "1"


@pytest.mark.parametrize("missing", ["jinja2", "uvicorn", "uvloop"])
def test_a_server_without_its_packages_names_the_command_that_installs_them(
    missing: str, tmp_path: Path
) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['holdfast', 'serve', '--data', "
        f"{str(tmp_path)!r}]; from holdfast.cli import main; main()"
    )

    done = python(program)

    assert done.returncode == 1
    assert f"the server needs the package {missing}" in done.stderr
    assert "pip install 'holdfastdb[server]'" in done.stderr


def name_of(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return found.group().lower()


def core_python(program: str) -> subprocess.CompletedProcess[str]:
    """Runs `program` where only the core's packages can be imported."""
    blocked = {
        module
        for module, owners in packages_distributions().items()
        if CORE.isdisjoint(name.lower() for name in owners) and "holdfastdb" not in owners
    }
    lines = f"sys.modules.update((name, None) for name in {blocked!r} if name not in sys.modules)"
    return python(f"import sys; {lines}\n{program}")


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
