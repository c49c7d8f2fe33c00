"""Resource oracle

Every attack runs against a server, while another process asks `/livez` again and again. The
server's memory stays below a bound, `/livez` is answered in time, no internal error is logged, and
when the attacker has gone, connections, descriptors and memory are back to what they were. Attacks
are what clients and users can send: lengths that lie, requests that never end, answers that nobody
reads, nesting, floods, wrong passwords, patterns and schemas that are made to be slow, reads of
very much, cookies, forms and paths that are made to be read twice, packets of one byte, and numbers
and texts that are none in every command and form.

In time means within 100 ms. A machine that does other things too delays every answer. So a second
server, which nobody attacks, is asked at the same moment, and the kernel tells how long threads of
the attacked one had to wait for a processor: what counts is how much longer the answer took. The
time of the processor that its loop had meanwhile is shown beside it.
"""

import contextlib
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from tests.campaign import head_attacks, page_attacks, read_attacks  # noqa: F401  # add attacks
from tests.campaign.attacks import ATTACKS, MEGABYTE, Attacker
from tests.campaign.frame import Result
from tests.campaign.livez import Seen
from tests.server.serving import Server, serving

MOST_MEMORY: Final = 900 * MEGABYTE  # twice the unsent answers, one in the making, and the parser
LEFT_MEMORY: Final = 160 * MEGABYTE  # that the allocator may keep afterwards
LIVEZ_SECONDS: Final = 0.1  # the promise
BACK_SECONDS: Final = 30.0
OVERTIME_SECONDS: Final = 100.0  # beyond the time that is given, for attacks that were not run yet

# By which a late answer is told: the delay that the machine does not explain, or, on a machine
# that does much else, the work of the loop before the answer.
Measure = Literal["latest", "most_work"]


class Asking:
    """The process that asks two servers for `/livez`, for all attacks of a run."""

    def __init__(self, server: Server, alone: Server) -> None:
        words = (server.http_port, alone.http_port, server.process.pid)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.campaign.livez", *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> None:
        """Returns when it has had its first answer."""
        self._say()
        assert self._hear() == "ready\n"

    def end(self) -> Seen:
        """Returns what was seen since it began."""
        self._say()
        return msgspec.json.decode(self._hear(), type=Seen)

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _say(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(".")
        self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


class Watch:
    """Looks at a server during an attack: a process asks for `/livez`, a thread sees the memory."""

    def __init__(self, server: Server, asking: Asking) -> None:
        self._server = server
        self._ended = threading.Event()
        self.peak = 0
        self._asking = asking
        asking.begin()
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()

    def _look(self) -> None:
        with contextlib.suppress(OSError):  # the server is gone, and `livez` says so
            while not self._ended.wait(0.02):
                self.peak = max(self.peak, self._server.memory_bytes())

    def end(self) -> Seen:
        """Ends it, and returns what was seen."""
        seen = self._asking.end()
        self._ended.set()
        self._looking.join()
        return seen


@contextlib.contextmanager
def servers() -> Iterator[tuple[Server, Server]]:
    """One to attack, and one that is left alone."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(
            Path(folder) / "attacked",
            *("--backups", f"{folder}/backups"),
            log=Path(folder) / "attacked.log",
        ) as server,
        serving(Path(folder) / "alone") as alone,
    ):
        yield server, alone


def run(random: random.Random, seconds: float) -> Result:
    """Runs each attack once, in random order, and again until the time is over."""
    return _attack_servers(list(ATTACKS), random, seconds)


def run_rest(left: Iterable[str], random: random.Random, seconds: float) -> Result:
    """Runs the attacks that another run has left."""
    wanted = set(left)
    return _attack_servers([name for name in ATTACKS if name in wanted], random, seconds)


def _attack_servers(names: list[str], random: random.Random, seconds: float) -> Result:
    with servers() as (server, alone):
        os.nice(10)  # attackers are on machines of their own, and take no time from the server
        most = seconds + OVERTIME_SECONDS
        return oracle(server, alone, random, seconds, names=names, most_seconds=most)


def oracle(
    server: Server,
    alone: Server,
    random: random.Random,
    seconds: float,
    *,
    scale: float = 1.0,
    measure: Measure = "latest",
    livez_seconds: float = LIVEZ_SECONDS,
    names: Sequence[str] = tuple(ATTACKS),
    most_seconds: float = math.inf,
) -> Result:
    """Attacks a server until the time is over and every attack was run, or `most_seconds` are: then
    the result names those that are left."""
    tried = {"attacks": 0, "latest /livez in ms": 0, "most memory in MiB": 0}
    broken: list[str] = []
    rows: dict[str, dict[str, int]] = {}
    begin = time.monotonic()
    end = begin + seconds
    asking = Asking(server, alone)
    while not tried["attacks"] or time.monotonic() < end:
        for name in random.sample(names, len(names)):
            attacker = Attacker(server, random, scale)
            found, row = _attacked(server, asking, attacker, name, measure, livez_seconds)
            tried["attacks"] += 1
            tried["latest /livez in ms"] = max(tried["latest /livez in ms"], row["ms late"])
            tried["most memory in MiB"] = max(tried["most memory in MiB"], row["MiB"])
            rows[name] = row
            broken += found
            if server.process.poll() is not None:
                broken.append(f"{name}: the server is gone")
                asking.close()
                return Result(tried=tried, broken=broken, rows=rows)
            is_first = tried["attacks"] <= len(names)
            if time.monotonic() > (begin + most_seconds if is_first else end):
                break
    asking.close()
    left = [name for name in names if name not in rows]
    return Result(tried=tried, broken=broken, rows=rows, left=left)


def _attacked(
    server: Server,
    asking: Asking,
    attacker: Attacker,
    name: str,
    measure: Measure,
    livez_seconds: float,
) -> tuple[list[str], dict[str, int]]:
    """One attack: what it broke, and what it took."""
    server.get("/livez")
    memory, descriptors = server.memory_bytes(), _descriptors(server)
    logged = len(server.logged_errors())
    watch = Watch(server, asking)
    try:
        ATTACKS[name](attacker)
        threading.Event().wait(0.1)  # while the attack lasts
    finally:
        attacker.leave()
    threading.Event().wait(0.1)  # so many connections end at once
    seen = watch.end()
    broken = []
    grown = watch.peak - memory
    if seen.failure is not None:
        broken.append(f"{name}: /livez was not answered: {seen.failure}")
    if (seen.latest if measure == "latest" else seen.most_work) > livez_seconds:
        broken.append(
            f"{name}: /livez was answered {seen.latest * 1000:.0f} ms later than the machine "
            f"explains; the loop worked for {seen.most_work * 1000:.0f} ms before one answer"
        )
    if grown > MOST_MEMORY:
        broken.append(f"{name}: the server took {grown // MEGABYTE} MiB")
    broken += [f"{name}: {left}" for left in _left_over(server, memory, descriptors)]
    failures = sorted(set(server.logged_errors()[logged:]))
    broken += [f"{name}: the server failed: {failure}" for failure in failures]
    row = {
        "answers": seen.answers,
        "ms late": round(seen.latest * 1000),
        "ms of work": round(seen.most_work * 1000),
        "MiB": max(0, grown) // MEGABYTE,
    }
    return broken, row


def _left_over(server: Server, memory: int, descriptors: int) -> list[str]:
    """Returns what a server still holds some time after the attacker has gone."""
    deadline = time.monotonic() + BACK_SECONDS
    while True:
        left = []
        if (open_ := _connections(server)) > 1:
            left.append(f"{open_} connections are left")
        if (more := _descriptors(server) - descriptors) > 8:
            left.append(f"{more} descriptors are left")
        if (kept := server.memory_bytes() - memory) > LEFT_MEMORY:
            left.append(f"{kept // MEGABYTE} MiB are left")
        if not left or time.monotonic() > deadline:
            return left
        threading.Event().wait(0.05)


def _connections(server: Server) -> int:
    text = server.get("/metrics").body
    return int(text.split(b"\nholdfast_connections ")[1].split(b"\n")[0])


def _descriptors(server: Server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
