"""`holdfast` without the half second that Python needs to import it.

A process imports Holdfast once, opens nothing, and listens on a socket. For each command that it is
sent it forks, takes the files, the folder and the environment of the caller, and runs the command.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
IMPORT_PATH: Final = (
    f"{ROOT / 'src'}{os.pathsep}{ROOT}"  # this tree, whether or not it is installed
)

_PROGRAM: Final = """
import json, os, signal, socket, sys
import holdfast.client.client, holdfast.entities.dumps, holdfast.entities.schema_file
import holdfast.cli.location, holdfast.store_copy, holdfast.jobs, holdfast.store
from holdfast.cli import COMMANDS, main
from holdfast.compat.meduza.mdzctl import command as mdzctl
for name in COMMANDS:
    main.get_command(None, name)

def run(words, cwd, variables, files):
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")
    code = 1
    try:
        if words[:1] == ["mdzctl"]:
            mdzctl(words[1:], prog_name="mdzctl")
        main(words, prog_name="holdfast")
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        import traceback
        traceback.print_exc()
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except BrokenPipeError:
            pass
    return code

signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen(64)
print("listens", flush=True)
while True:
    connection, _ = listening.accept()
    if not os.fork():
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listening.close()
        order, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        while not order.endswith(b"\\n"):
            order += connection.recv(1 << 20)
        code = run(*json.loads(order), files)
        connection.sendall(b"%d" % code)
        os._exit(0)
    connection.close()
"""

# `holdfast` of a shell: hands over what it was given, and ends as the command does.
CLIENT: Final = """#!{python} -IS
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({path!r})
order = json.dumps([{words} + sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n"
sent = socket.send_fds(connection, [order], [0, 1, 2])
if sent < len(order):  # a command that has ended by now would make even an empty message fail
    connection.sendall(order[sent:])
sys.exit(int(connection.recv(16) or b"1"))
"""


class Forking:
    """The process that forks, started once for all tests of a worker."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-forks-")
        self._path = f"{self._folder.name}/socket"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, self._path],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": IMPORT_PATH},
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"listens\n"
        atexit.register(self._end)

    def run(
        self, words: Sequence[str], cwd: Path, variables: dict[str, str], files: Sequence[int]
    ) -> int:
        """Runs `holdfast` with these words and open files, and returns its exit code."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._path)
            order = json.dumps([list(words), str(cwd), variables]).encode() + b"\n"
            sent = socket.send_fds(connection, [order], files)
            if sent < len(order):  # see CLIENT
                connection.sendall(order[sent:])
            return int(connection.recv(16))

    def write_program(self, file: Path, *words: str) -> None:
        """Writes a program that runs `holdfast` with these words and its own."""
        text = CLIENT.format(python=sys.executable, path=self._path, words=list(words))
        file.write_text(text)
        file.chmod(0o755)

    def _end(self) -> None:
        self._process.terminate()
        self._process.communicate()
        self._folder.cleanup()


@cache
def forking() -> Forking:
    return Forking()
