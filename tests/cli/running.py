"""`holdfast` as people run it: a process of its own, its output, its errors and its exit code."""

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent.parent


class Ran:
    """What a command said."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.bytes = out
        self.out = out.decode()
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
    return kept | {"PYTHONPATH": str(ROOT)} | variables


def holdfast(
    *words: str | Path, input: str | bytes = "", cwd: Path | None = None, **variables: str
) -> Ran:
    """Runs `holdfast` with these words to its end, in a process of its own."""
    given = input.encode() if isinstance(input, str) else input
    return _nursery().run(list(map(str, words)), given, cwd or Path.cwd(), environment(**variables))


def from_scratch(*words: str | Path, **variables: str) -> Ran:
    """The same with a Python of its own, as a shell starts it: half a second more."""
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


# A process that has imported Holdfast and opened nothing; every command is a fork of it.
_PROGRAM = """
import json, os, sys
import holdfast.client.client, holdfast.entities.dumping, holdfast.entities.schema_file
import holdfast.cli.place, holdfast.copying, holdfast.jobs, holdfast.store
from holdfast.cli import COMMANDS, main
for name in COMMANDS:
    main.get_command(None, name)
for line in sys.stdin:
    words, cwd, variables, files = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    for number, (file, mode) in enumerate(zip(files, (os.O_RDONLY, os.O_RDWR, os.O_RDWR))):
        os.dup2(os.open(file, mode), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")
    code = 1
    try:
        main(words, prog_name="holdfast")
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        import traceback
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
"""


class _Nursery:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        atexit.register(self._end)

    def run(self, words: list[str], given: bytes, cwd: Path, variables: dict[str, str]) -> Ran:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("in", "out", "err")]
            for file in files:
                file.write_bytes(given if file.name == "in" else b"")
            request = [words, str(cwd), variables, [str(file) for file in files]]
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            return Ran(code, files[1].read_bytes(), files[2].read_bytes())

    def _end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@cache
def _nursery() -> _Nursery:
    return _Nursery()
