"""Asks two servers for `/livez` at the same moment, again and again, in a process of its own.

    python -m tests.campaign.livez ATTACKED_PORT ALONE_PORT ATTACKED_PID

One server is attacked and the other one is left alone. What delays both, a busy machine or this
very process, is not the attack's doing: an answer is late by as much as the attacked server needed
longer than the other one. A line on its standard input begins a watch, the next one ends it, and it
prints what it saw as JSON. The process ends when its standard input does.
"""

import os
import select
import socket
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

PAUSE_SECONDS: Final = 0.01
ANSWER_SECONDS: Final = 30.0
REQUEST: Final = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Seen(msgspec.Struct, kw_only=True):
    """The slowest answers, in seconds."""

    answers: int = 0
    slowest: float = 0.0  # of the attacked server
    latest: float = 0.0  # behind the server that was left alone, at the same moment
    most_work: float = 0.0  # of the processor, that the attacked one's loop had before one answer
    failure: str | None = None


class _Question:
    """One question to one server."""

    def __init__(self, port: int) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", port))
        self.is_asked = False
        self.said = b""
        self.seconds: float | None = None

    def proceed(self, begin: float) -> None:
        """Sends or receives what can be sent or received now."""
        if not self.is_asked:
            self.socket.sendall(REQUEST)
            self.is_asked = True
            return
        more = self.socket.recv(65_536)
        self.said += more
        if not more or b"\r\n\r\n" in self.said:
            self.seconds = time.monotonic() - begin
            if not self.said.startswith(b"HTTP/1.1 200 "):
                raise OSError(f"answered {self.said[:100]!r}")


def ask(ports: list[int]) -> list[float]:
    """Asks all of them at once; returns the seconds that each answer took."""
    begin = time.monotonic()
    questions = [_Question(port) for port in ports]
    try:
        poll = select.poll()
        by_number = {each.socket.fileno(): each for each in questions}
        for number in by_number:
            poll.register(number, select.POLLOUT)
        while by_number:
            ready = poll.poll(ANSWER_SECONDS * 1000)
            if not ready:
                raise OSError(f"no answer within {ANSWER_SECONDS:.0f} s")
            for number, _ in ready:
                question = by_number[number]
                question.proceed(begin)
                poll.modify(number, select.POLLIN)
                if question.seconds is not None:
                    poll.unregister(number)
                    del by_number[number]
        return [each.seconds or 0.0 for each in questions]
    finally:
        for each in questions:
            each.socket.close()


def worked(pid: int) -> float:
    """Returns the seconds of the processor that a server's loop has had: its first thread."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 10**9


def watch(attacked: int, alone: int, pid: int) -> Seen:
    seen = Seen()
    ended = select.poll()
    ended.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    try:
        while not ended.poll(PAUSE_SECONDS * 1000):
            before = worked(pid)
            took, usual = ask([attacked, alone])
            seen.most_work = max(seen.most_work, worked(pid) - before)
            seen.slowest = max(seen.slowest, took)
            seen.latest = max(seen.latest, took - usual)
            seen.answers += 1
            if seen.answers == 1:
                print("ready", flush=True)
    except OSError as error:
        seen.failure = repr(error)
        if not seen.answers:
            print("ready", flush=True)
    return seen


if __name__ == "__main__":
    while os.read(0, 1):
        found = watch(*map(int, sys.argv[1:4]))
        os.read(0, 1)
        print(msgspec.json.encode(found).decode(), flush=True)
