"""Tries all that a page says as a reader would: saves files, runs programs, types commands.

The reader sits at one shell in an empty folder, with `holdfast`, `mdzctl` and `python` installed,
and goes through the page from top to bottom. The documented ports are replaced by free ones.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Final, NamedTuple, Self

from tests.forking import IMPORT_PATH, forking
from tests.pages import Block, ConsoleCommand, blocks, console_commands
from tests.servers.process import free_ports

HTTP, RESP = "9966", "9977"  # where `holdfast serve` listens unless told otherwise
PATIENCE_SECONDS: Final = 120.0  # for one command or program, on a busy machine

# A command of these is not run: it would install, or run the tests again.
NOT_RUN: Final = ("make", "pip", "git", "apt-get", "npm", ".ci/")

# What a shell finds under these names. An error reply of a server is a failed command.
PYTHON: Final = '#!/bin/sh\nexec {python} "$@"\n'
REDIS_CLI: Final = '#!/bin/sh\nexec {redis_cli} -e --no-auth-warning "$@"\n'
CURLRC: Final = "silent\nshow-error\nfail-with-body\n"

# Runs the program of each block in one namespace, and says so when it has ended well.
INTERPRETER: Final = """
import sys
for order in sys.stdin:
    line_number, file = order.split()
    with open(file) as opened:
        program = "\\n" * (int(line_number) - 1) + opened.read()
    exec(compile(program, sys.argv[1], "exec"), globals())
    print(f"\\nthe block at line {line_number} has run", flush=True)
"""


class PageMistake(AssertionError):
    """The page says something that is not so."""


class CommandResult(NamedTuple):
    """The output of a command, and how it ended."""

    code: int
    out: str
    err: str


class Reader:
    """Someone who reads a page and does what it says."""

    def __init__(self, page: Path, folder: Path) -> None:
        self._page = page
        self._scratch = folder
        self._folder = folder / "reader"
        self._folder.mkdir()
        http, resp = map(str, free_ports(2))
        self._ports = {HTTP: http, RESP: resp}
        self._environment = self._install(folder / "bin")
        self._shell: subprocess.Popen[str] | None = None
        self._python: subprocess.Popen[str] | None = None
        self._server: subprocess.Popen[str] | None = None

    def _install(self, programs: Path) -> dict[str, str]:
        programs.mkdir()
        forking().write_program(programs / "holdfast")
        forking().write_program(programs / "mdzctl", "mdzctl")
        redis_cli = shutil.which("redis-cli") or "/redis-cli-is-missing/run/.ci/tools"
        for program, text in {"python": PYTHON, "redis-cli": REDIS_CLI}.items():
            (programs / program).write_text(text.format(python=sys.executable, redis_cli=redis_cli))
            (programs / program).chmod(0o755)
        (self._scratch / ".curlrc").write_text(CURLRC)
        kept = {name: each for name, each in os.environ.items() if "HOLDFAST_" not in name}
        return kept | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": IMPORT_PATH,
            "CURL_HOME": str(self._scratch),
            "HOME": str(self._scratch),
            "HOLDFAST_HTTP": f"127.0.0.1:{self._ports[HTTP]}",
            "HOLDFAST_RESP": f"127.0.0.1:{self._ports[RESP]}",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in (self._python, self._shell):
            if process is not None:
                _end_group(process)
        self._stop_server()

    def read(self) -> None:
        """Goes through the page, and raises `PageMistake` where it does not do what it says."""
        for block in blocks(self._page):
            if block.file is not None:
                target = self._folder / block.file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(self._with_free_ports(block.text))
            elif block.language == "python":
                self._run_program(block)
            elif block.language == "console":
                for each in console_commands(block):
                    self._run_command(each)
        if self._python is not None:
            self._end_programs()

    # --- programs ---------------------------------------------------------------------------------

    def _run_program(self, block: Block) -> None:
        """Runs a python block behind those before it, in the same namespace."""
        if self._python is None:
            self._python = self._start(
                [sys.executable, "-W", "error", "-c", INTERPRETER, str(self._page)]
            )
        file = self._scratch / f"line-{block.line_number}.py"
        file.write_text(self._with_free_ports(block.text))
        stdin, stdout = _pipes(self._python)
        stdin.write(f"{block.line_number} {file}\n")
        stdin.flush()
        with _alarm(self._python):
            done = any(
                printed == f"the block at line {block.line_number} has run\n" for printed in stdout
            )
        if not done:
            raise PageMistake(f"{self._page.name}:\n{self._read_errors('python')}")

    def _end_programs(self) -> None:
        assert self._python is not None
        with _alarm(self._python):
            self._python.communicate()
        if self._python.returncode != 0:
            raise PageMistake(f"{self._page.name}:\n{self._read_errors('python')}")
        self._python = None

    # --- commands ---------------------------------------------------------------------------------

    def _run_command(self, each: ConsoleCommand) -> None:
        command = self._with_free_ports(each.command)
        if command.startswith(NOT_RUN):
            return
        if re.match(r"holdfast serve\b", command):
            self._serve(command.removesuffix(" &"), each)
            return
        if self._server is None and self._needs_server(each.command):
            self._serve("holdfast serve --data data", each)
        result = self._run_in_shell(command)
        where = f"{self._page.name}, line {each.line_number}: $ {each.command}"
        if result.code != 0 and not _is_expected(result, each.output):
            raise PageMistake(f"{where}\nended with {result.code}\n{result.out}{result.err}")
        if each.output:
            # Programs that report progress do so on standard error; what a page shows of a failed
            # command is there too.
            printed = (
                self._with_documented_ports(result.out),
                self._with_documented_ports(result.out + result.err),
            )
            if not any(matches(each.output, words) for words in printed):
                raise PageMistake(f"{where}\nprints\n{printed[1]}\nand not\n{each.output}")

    def _needs_server(self, command: str) -> bool:
        words = command.split()
        is_client = words[0] in ("redis-cli", "mdzctl") and words[1] not in ("check", "gen")
        return is_client or HTTP in command or RESP in command

    def _run_in_shell(self, command: str) -> CommandResult:
        """Types a command into the shell, which keeps its variables and its folder."""
        if self._shell is None:
            self._shell = self._start(["bash", "--norc", "-s"])
        stdin, stdout = _pipes(self._shell)
        file = self._scratch / "command.sh"
        file.write_text(command)
        printed = {name: self._scratch / f"command.{name}" for name in ("out", "err")}
        redirected = f">{printed['out']} 2>{printed['err']} </dev/null"
        stdin.write(f'eval "$(cat {file})" {redirected}; echo "$?"\n')
        stdin.flush()
        with _alarm(self._shell):
            code = stdout.readline()
        if not code:
            raise PageMistake(f"{self._page.name}: $ {command}\ndoes not end")
        return CommandResult(int(code), *(each.read_text() for each in printed.values()))

    # --- the server -------------------------------------------------------------------------------

    def _serve(self, command: str, each: ConsoleCommand) -> None:
        """Starts the server that the page asks for, instead of the one before it."""
        self._stop_server()
        real = command.replace("holdfast", f"{sys.executable} -m holdfast", 1)  # hears signals
        self._server = self._start(["bash", "-c", f"exec {real}"], "server")
        _, stdout = _pipes(self._server)
        with _alarm(self._server):
            announcement = stdout.readline()
        if "listens" not in announcement:
            _end_group(self._server)
            self._server = None
            raise PageMistake(
                f"{self._page.name}, line {each.line_number}: $ {command}\n{announcement}"
                f"{self._read_errors('server')}"
            )

    def _stop_server(self) -> None:
        if self._server is None:
            return
        self._server.send_signal(signal.SIGTERM)
        with _alarm(self._server):
            self._server.communicate()
        assert self._server.returncode == 0, self._read_errors("server")
        self._server = None

    # --- processes and words ----------------------------------------------------------------------

    def _start(self, words: list[str], name: str | None = None) -> subprocess.Popen[str]:
        with (self._scratch / f"{name or Path(words[0]).name}.err").open("w") as errors:
            return subprocess.Popen(
                words,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def _read_errors(self, name: str) -> str:
        return (self._scratch / f"{name}.err").read_text()

    def _with_free_ports(self, text: str) -> str:
        for documented, free in self._ports.items():
            text = re.sub(rf"(?<!\d){documented}(?!\d)", free, text)
        return text

    def _with_documented_ports(self, text: str) -> str:
        for documented, free in self._ports.items():
            text = re.sub(rf"(?<!\d){free}(?!\d)", documented, text)
        return text


def matches(expected: str, printed: str) -> bool:
    """Returns whether a command printed what a page shows, where `...` matches anything.

    >>> matches("... keys, nothing wrong", "12 keys, nothing wrong")
    True
    """
    pattern = ".*".join(map(re.escape, _lines(expected).split("...")))
    return re.fullmatch(pattern, _lines(printed), re.DOTALL) is not None


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _is_expected(failed: CommandResult, output: str) -> bool:
    """Returns whether a page shows the failure, or the findings of a command that ended with 3."""
    is_shown = re.search(r"^(Error:|curl:|[A-Z]+(_[A-Z]+)* \w)|\"error\"", output, re.MULTILINE)
    return is_shown is not None or (bool(output) and failed.code == 3)


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def _end_group(process: subprocess.Popen[str]) -> None:
    """Ends a process that we started, and what it left running in the background."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


class _alarm:  # noqa: N801  # read as `with _alarm(process):`
    """Kills a process that is not done in time, so that no test waits for it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._timer = threading.Timer(PATIENCE_SECONDS, process.kill)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
