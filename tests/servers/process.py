"""A server process that does not outlive the tests, and waiting for one."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

START_SECONDS: Final = 60  # a machine with two cores may have eight other things to do

# The shell that keeps a server: it ends the server on a word from us, or when its standard input is
# closed, which happens by itself when the process of the tests is killed; then it removes the
# server's folder too. As the server's parent it sees to it that the server's number belongs to no
# other process before `close`.
_KEEPER: Final = """
exec 3<&0
stop=$1; log=$2; shift 2
"$@" </dev/null >>"$log" 2>&1 3<&- &
echo $!
exec >/dev/null
word=
read -r word <&3
kill -s "$stop" $! 2>/dev/null
wait
[ -n "$word" ] || rm -rf "$(dirname "$log")"
"""


class NotStarted(Exception):
    """A server could not be started: the message is the end of its log."""


class ServerProcess:
    """A running command, and the shell that keeps it."""

    def __init__(
        self, command: Sequence[str], *, log: Path, stop: str = "KILL", user: int | None = None
    ) -> None:
        self._log = log
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "keeper", stop, str(log), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            start_new_session=True,  # Ctrl-C is for the tests, which end their servers in order
            cwd=log.parent,
        )
        assert self._keeper.stdout is not None
        self.pid = int(self._keeper.stdout.readline())

    def is_running(self) -> bool:
        """Whether it is there and no zombie, whose parent (the keeper) waits for our word."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] not in "ZX"

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def await_ready(self, is_ready: Callable[[], bool]) -> None:
        """Returns when `is_ready()`, or raises `NotStarted` if the process is gone before."""
        await_true(
            lambda: is_ready() or not self.is_running(),
            seconds=START_SECONDS,
            what=f"the start of a server, whose log is {self._log}",
        )
        if not self.is_running():
            raise NotStarted(self._log.read_text(errors="replace")[-4_000:])

    def await_end(self) -> None:
        await_true(lambda: not self.is_running(), seconds=START_SECONDS, what="the end of a server")

    def close(self) -> None:
        """Ends it, if it is there, and its keeper."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write(b"end it\n")
        self._keeper.stdin.close()
        self._keeper.stdout.close()
        self._keeper.wait()


def await_true(condition: Callable[[], bool], *, seconds: float, what: str) -> float:
    """Asks until `condition()`, and returns how many seconds that took; fails after `seconds`.

    For what other processes do by themselves. All that is Holdfast's own is waited for without
    asking again and again.
    """
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            raise AssertionError(f"waited {seconds} seconds for {what}")
        time.sleep(0.005)
    return time.monotonic() - begin


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; the caller has to try again if one is taken."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
