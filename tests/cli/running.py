"""`holdfast` as people run it: a process of its own, its output, its errors and its exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


class Ran:
    """What a command said."""

    def __init__(self, process: subprocess.CompletedProcess[bytes]) -> None:
        self.code = process.returncode
        self.bytes = process.stdout
        self.out = process.stdout.decode()
        self.err = process.stderr.decode()

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
    return kept | {"PYTHONPATH": str(ROOT)} | variables


def holdfast(
    *words: str | Path, input: str | bytes = "", cwd: Path | None = None, **variables: str
) -> Ran:
    """Runs `holdfast` with these words to its end."""
    given = input.encode() if isinstance(input, str) else input
    return Ran(
        subprocess.run(
            [sys.executable, "-m", "holdfast.cli", *map(str, words)],
            input=given,
            capture_output=True,
            cwd=cwd,
            env=environment(**variables),
            timeout=120,
        )
    )
