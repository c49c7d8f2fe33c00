"""The tutorial, run as a reader would: its files are saved, its commands typed, their output
compared.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_documentation import ROOT, Block, blocks, command_exists

PAGE = ROOT / "docs" / "tutorial.md"
SAVE_AS = re.compile(r"Save this as `(\w+\.py)`:\n\n\Z")
PORTS = ("9966", "9977")
SERVING = " &"


class Reader:
    """Someone at a shell, in an empty folder, with `holdfast` installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "reader"
        self._folder.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        for name, words in {"holdfast": "-m holdfast", "python": ""}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
            (programs / name).chmod(0o755)
        self._ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
        kept = {name: each for name, each in os.environ.items() if "HOLDFAST_" not in name}
        self._environment = kept | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOLDFAST_HTTP": f"127.0.0.1:{self._ports['9966']}",
            "HOLDFAST_RESP": f"127.0.0.1:{self._ports['9977']}",
        }
        self._server: subprocess.Popen[str] | None = None

    def save(self, name: str, text: str) -> None:
        (self._folder / name).write_text(self._with_ports(text))

    def type(self, command: str) -> str:
        """What the command prints, errors included."""
        command = self._with_ports(command)
        if command.endswith(SERVING):
            return self._serve(command.removesuffix(SERVING))
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"
        is_expected_to_fail = "||" in command
        return ran.stdout if is_expected_to_fail else self._shown(ran)

    def _shown(self, ran: subprocess.CompletedProcess[str]) -> str:
        is_about_progress = "curl" in str(ran.args)
        return ran.stdout if is_about_progress else ran.stdout + ran.stderr

    def _serve(self, command: str) -> str:
        self._server = subprocess.Popen(
            command.split(),
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._server.stdout is not None
        assert "listens" in self._server.stdout.readline()
        return ""

    def leave(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGTERM)
            self._server.communicate(timeout=60)
            assert self._server.returncode == 0

    def _with_ports(self, text: str) -> str:
        for documented, free in self._ports.items():
            text = text.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{free}")
        return text


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.leave()


def test_every_step_of_the_tutorial_does_what_it_says(reader: Reader) -> None:
    text = PAGE.read_text()
    for block in blocks(PAGE):
        if block.language == "python":
            before = "".join(text.splitlines(keepends=True)[: block.line - 2])
            found = SAVE_AS.search(before)
            assert found is not None, f"line {block.line}: say what the file is to be called"
            reader.save(found[1], block.text)
        elif block.language == "console":
            for command, expected in typed(block):
                if command.startswith("pip "):
                    assert command_exists(command)
                else:
                    assert_prints(command, reader.type(command), expected)


def typed(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a block, and the lines that stand below it."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def assert_prints(command: str, printed: str, expected: str) -> None:
    pattern = ".*".join(map(re.escape, expected.rstrip("\n").split("...")))
    assert re.fullmatch(pattern, printed.rstrip("\n")), f"$ {command}\n{printed}"


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
