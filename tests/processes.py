"""Child processes for tests: started fast, spoken to through a pipe, killed on purpose."""

import os
import signal
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

# A server process that has imported the store already forks the children: they start in a few
# milliseconds and share nothing with the test's own threads.
_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "holdfast",
        "holdfast.server.server",
        "holdfast.engine.lmdb",
        "holdfast.engine.postgres",
        "holdfast.engine.valkey",
        "holdfast.tasks.worker",
        "pytest",
        "tests.processes",
        "tests.stores",
    ]
)


class Child:
    """A process that runs `target(*arguments, connection)`."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self._ours, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=target, args=(*arguments, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def send(self, message: Any) -> None:
        self._ours.send(message)

    def receive(self) -> Any:
        """What the child sends next; EOFError if it is gone."""
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


__all__ = ["Child", "Connection", "start"]
