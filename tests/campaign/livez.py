"""Asks two servers for `/livez` at the same moment, again and again, in a process of its own.

    python -m tests.campaign.livez ATTACKED_PORT ALONE_PORT ATTACKED_PID

One server is attacked and the other one is left alone. What delays both, a busy machine or this
very process, is not the attack's doing: an answer is late by as much as the attacked server needed
longer than the other one, or longer than it had to wait for a processor, whichever is less. A line
on its standard input begins a watch, the next one ends it, and it prints what it saw as JSON. The
process ends when its standard input does.
"""

import os
import select
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

PAUSE_SECONDS: Final = 0.01
ANSWER_SECONDS: Final = 30.0
REQUEST: Final = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Seen(msgspec.Struct, kw_only=True):
    """The slowest answers, in seconds."""

    answers: int = 0
    slowest: float = 0.0  # of the attacked server
    latest: float = 0.0  # beyond what the machine explains: see `lateness`
    most_work: float = 0.0  # of the processor, that the attacked one's loop had before one answer
    failure: str | None = None


class Processor(NamedTuple):
    """What the threads of a server have had of the machine, in seconds."""

    work: float  # of its loop, which is its first thread
    waiting: dict[str, float]  # of each thread, ready to run, for a processor

    @classmethod
    def of(cls, pid: int) -> Self:
        """Returns what the kernel has counted so far."""
        work, waiting = 0.0, {}
        for thread in Path(f"/proc/{pid}/task").iterdir():
            try:
                ran, waited, _ = (thread / "schedstat").read_text().split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # the thread has ended
            waiting[thread.name] = int(waited) / 10**9
            if thread.name == str(pid):
                work = int(ran) / 10**9
        return cls(work, waiting)

    def starved_since(self, before: Self, pid: int) -> float:
        """Returns how long the loop waited for a processor, and for the thread that waited longest:
        it may have held the interpreter meanwhile."""
        grown = {
            thread: waited - before.waiting.get(thread, waited)
            for thread, waited in self.waiting.items()
        }
        loop = grown.pop(str(pid), 0.0)
        return loop + max(grown.values(), default=0.0)


def lateness(took: float, usual: float, starved: float, work: float) -> float:
    """Returns how late an answer is, without what a busy machine explains. What the loop itself
    worked before the answer, no machine explains.

    >>> lateness(0.25, usual=0.125, starved=0.0, work=0.0)
    0.125
    >>> lateness(0.25, usual=0.0, starved=0.25, work=0.125)
    0.125
    """
    return max(took - max(usual, starved), min(took, work))


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


def ask(ports: list[int], first_answered: Callable[[], None]) -> list[float]:
    """Asks all of them at once; returns the seconds that each answer took. `first_answered` is
    called when the answer of the first one has come."""
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
                    if question is questions[0]:
                        first_answered()
                    poll.unregister(number)
                    del by_number[number]
        return [each.seconds or 0.0 for each in questions]
    finally:
        for each in questions:
            each.socket.close()


def watch(attacked: int, alone: int, pid: int) -> Seen:
    seen = Seen()
    ended = select.poll()
    ended.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    after = [Processor.of(pid)]
    try:
        while not ended.poll(PAUSE_SECONDS * 1000):
            before = Processor.of(pid)
            took, usual = ask([attacked, alone], lambda: after.append(Processor.of(pid)))
            now = after.pop()
            starved = now.starved_since(before, pid)
            work = now.work - before.work
            seen.most_work = max(seen.most_work, work)
            seen.slowest = max(seen.slowest, took)
            seen.latest = max(seen.latest, lateness(took, usual, starved, work))
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
