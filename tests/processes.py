"""Child processes for tests: started fast, spoken to through a pipe, killed on purpose."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# A server process that has imported the store already forks the children: they start in a few
# milliseconds and share nothing with the test's own threads. A child imports the test module that
# holds its function, so what such modules import is loaded too: hypothesis alone takes 0.2 s.
_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "holdfast",
        "holdfast.cli.serve",
        "holdfast.dashboard",
        "holdfast.server.server",
        "holdfast.engine.lmdb",
        "holdfast.engine.postgres",
        "holdfast.engine.valkey",
        "holdfast.server.processes",
        "holdfast.tasks.worker",
        "hypothesis",
        "pytest",
        "tests.processes",
        "tests.stores",
        "uvloop",
    ]
)


class Child:
    """A process that runs `target(*arguments, connection)`."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self._ours, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=target, args=(*arguments, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def connection(self) -> Any:
        """Returns what to wait for, beside other children, until it has sent something."""
        return self._ours

    def send(self, message: Any) -> None:
        self._ours.send(message)

    def receive(self) -> Any:
        """Returns what the child sends next; EOFError if it is gone."""
        return self._ours.recv()

    def ask(self, message: Any) -> Any:
        self.send(message)
        return self.receive()

    def receive_all(self) -> list[Any]:
        """All that the child had sent before its end."""
        messages = []
        try:
            while True:
                messages.append(self.receive())
        except (EOFError, ConnectionResetError):
            return messages

    def kill(self) -> None:
        """Ends it at once, wherever it is, as a crash would. A second call does nothing."""
        assert self._process.pid is not None
        if self._process.exitcode is None:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(self._process.pid, signal.SIGKILL)
        self._process.join()

    def stop(self) -> None:
        """Freezes it where it is."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Lets it run again after `stop`."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def join(self) -> int | None:
        self._process.join()
        return self._process.exitcode


def start(target: Callable[..., None], *arguments: Any) -> Child:
    return Child(target, *arguments)


class Command:
    """`holdfast ...` in a process of its own, without the second that Python needs to import it.

    It has the folder and the environment of the test, its standard output is read from `stdout`,
    and what it says of errors goes to the end of a file. `subprocess.Popen` has the same names.
    """

    def __init__(self, words: Sequence[str], *, log: str | Path = os.devnull) -> None:
        reading, writing = _CONTEXT.Pipe(duplex=False)
        place = (os.getcwd(), dict(os.environ), str(log))
        self._process = _CONTEXT.Process(
            target=_run_command, args=(list(words), *place, writing), daemon=True
        )
        self._process.start()
        writing.close()
        self.stdout = os.fdopen(os.dup(reading.fileno()), "r")
        reading.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Returns its exit code, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Returns its exit code when it has ended."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("holdfast", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and we are not told yet
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run_command(
    words: list[str], folder: str, variables: dict[str, str], log: str, writing: Connection
) -> None:
    from holdfast.cli import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 2)
    os.dup2(writing.fileno(), 1)
    writing.close()
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    main(words, prog_name="holdfast")


__all__ = ["Child", "Command", "Connection", "start"]
