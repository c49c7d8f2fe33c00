"""The tools beside Python that tests of generated code and of other languages' clients run.

A tool that is absent is installed; one that can't be is a failure of the test that asked for it.
"""

import functools
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / ".tools"
PACKAGES = TOOLS / "node_modules"


@functools.cache
def installed() -> None:
    """Installs what is missing, once for a process; `.ci/tools` is quick when all are there."""
    done = subprocess.run([ROOT / ".ci" / "tools"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def tool(name: str) -> str:
    """The path of `go`, `gofmt`, `node` or `tsc`."""
    installed()
    path = name if Path(name).is_absolute() else shutil.which(name)
    path = path or shutil.which(name, path=str(PACKAGES / ".bin"))
    assert path is not None, f"{name} is not installed and .ci/tools did not install it"
    return path


def environment() -> dict[str, str]:
    """Where the tools find packages, and keep what they have compiled."""
    own = {"GOCACHE": str(TOOLS / "go"), "GO111MODULE": "off", "NODE_PATH": str(PACKAGES)}
    return os.environ | own


def run(command: str, *arguments: str | Path, cwd: Path = ROOT, input: str | None = None) -> str:
    """Returns what a tool says; a failure fails the test."""
    done = subprocess.run(
        [tool(command), *arguments],
        cwd=cwd,
        env=environment(),
        input=input,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command} {arguments}:\n{done.stdout}{done.stderr}"
    return done.stdout
