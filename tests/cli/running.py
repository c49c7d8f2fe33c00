"""`holdfast` as people run it: a process of its own, its output, its errors and its exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from tests.forking import IMPORT_PATH, forking


class Ran:
    """The output of a command."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.bytes = out
        self.out = out.decode(errors="replace")
        self.err = err.decode()

    @property
    def json(self) -> Any:
        assert self.code in (0, 3), self.err
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error that `--json` has put on standard error."""
        return json.loads(self.err)["error"]


def environment(**variables: str) -> dict[str, str]:
    """That of this process without settings of Holdfast, and with `variables`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return kept | {"PYTHONPATH": IMPORT_PATH} | variables


def holdfast(
    *words: str | Path, input: str | bytes = "", cwd: Path | None = None, **variables: str
) -> Ran:
    """Runs `holdfast` with these words to its end, in a process of its own."""
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(input.encode() if isinstance(input, str) else input)
        for file in (given, out, err):
            file.seek(0)
        files = [file.fileno() for file in (given, out, err)]
        code = forking().run([*map(str, words)], cwd or Path.cwd(), environment(**variables), files)
        out.seek(0)
        err.seek(0)
        return Ran(code, out.read(), err.read())


def from_scratch(*words: str | Path, **variables: str) -> Ran:
    """Runs a command with a Python of its own, as a shell does: half a second more."""
    return _ran(
        subprocess.run(
            [sys.executable, "-m", "holdfast", *map(str, words)],
            capture_output=True,
            env=environment(**variables),
            timeout=120,
        )
    )


def _ran(process: subprocess.CompletedProcess[bytes]) -> Ran:
    return Ran(process.returncode, process.stdout, process.stderr)
