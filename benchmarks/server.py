"""How many requests of a client in C does a server answer per second, compared with Valkey?

redis-benchmark asks, because a client in Python takes more of the machine than most servers: with
1, 8, 32 and 64 connections that send one request at a time, and with 32 that send 16 in a
pipeline. The servers take turns in rounds, and a ratio is the median of the rounds. Reads are
compared with a Valkey that keeps nothing on disk, writes with one that syncs before it answers, as
Holdfast does. Clients in Python are measured by `benchmarks.server_clients`.

    HOLDFAST_BEFORE=/path/to/another/tree python -m benchmarks.server [--quick]

measures the server of another source tree in the same rounds. A server of two processes is measured
too; on two cores, it shares them with the client.
"""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import redis

from benchmarks.rounds import reach, report, run_benchmark, skip
from benchmarks.servers import ALWAYS, SYNCED, holdfast, valkey

OURS: Final = "Holdfast"
TWO: Final = "Holdfast, 2 processes"
BEFORE: Final = "Holdfast before"
SCHEMA: Final = (
    "schema: shop\ntables:\n  Users:\n    primary: {type: random}\n"
    "    columns: {name: {type: Text}}\n    indexes: [{type: compound, columns: [name]}]\n"
)


class Setting(NamedTuple):
    """How many connections ask, and how many requests each sends at once."""

    connections: int
    pipeline: int = 1

    def __str__(self) -> str:
        what = "connection" if self.connections == 1 else "connections"
        piped = f", pipelines of {self.pipeline}" if self.pipeline > 1 else ""
        return f"{self.connections} {what}{piped}"


class Question(NamedTuple):
    """One request to Holdfast, and the one to Valkey that it is compared with."""

    name: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    is_synced: bool
    wanted: Mapping[Setting, float]  # as many requests per second as Valkey, times this
    reason: str  # why it is missed, where it is


SETTINGS: Final = (Setting(1), Setting(8), Setting(32), Setting(64), Setting(32, 16))
QUESTIONS: Final = (
    Question(
        "PING",
        ("PING",),
        ("PING",),
        False,
        {Setting(32): 0.8},
        "reading and sending in uvloop take three times as long as our own 4 µs",
    ),
    Question(
        "an entity vs GET",
        ("ENTITIES.GET", '{"table":"shop.Users","ids":["ann"]}'),
        ("GET", "key"),
        False,
        dict.fromkeys(SETTINGS[:4], 0.45),
        "the layer's own Python, from arguments to Extended JSON, takes 20 µs with warm caches",
    ),
    Question(
        "a synced job put vs SET",
        ("JOBS.PUT", '{"queue":"emails","klass":"Email","data":{"to":"ann"}}'),
        ("SET", "key:__rand_int__", "x" * 50),
        True,
        dict(zip(SETTINGS, (0.8, 0.6, 0.5, 0.5), strict=False)),
        "a put writes four keys with history and statistics in 20 to 35 µs of Python",
    ),
)


def main(quick: bool) -> None:
    if shutil.which("redis-benchmark") is None:
        skip("the client in C", "redis-benchmark is not installed: see .ci/tools")
        return
    seconds, rounds = (0.25, 3) if quick else (0.7, 5)
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name, ExitStack() as servers:
        folder = Path(name)
        ports = {OURS: _prepared(servers.enter_context(holdfast(folder / "ours")).resp)}
        two = servers.enter_context(holdfast(folder / "two", "--processes", "2"))
        ports[TWO] = _prepared(two.resp)
        if tree := os.environ.get("HOLDFAST_BEFORE"):
            before = servers.enter_context(holdfast(folder / "before", tree=tree))
            ports[BEFORE] = _prepared(before.resp)
        unsynced = servers.enter_context(valkey(folder))
        synced = servers.enter_context(valkey(folder, *ALWAYS))
        for question in QUESTIONS:
            theirs = {"Valkey": synced if question.is_synced else unsynced}
            for setting in SETTINGS:
                show(question, setting, measure(question, setting, ports | theirs, seconds, rounds))


def _prepared(port: int) -> int:
    with redis.Redis(port=port) as client:
        client.execute_command("ENTITIES.DEPLOY", _payload(schemas=[SCHEMA]))
        ann = {"id": "ann", "properties": {"name": "Ann"}}
        client.execute_command("ENTITIES.PUT", _payload(table="shop.Users", entities=[ann]))
    return port


def _payload(**arguments: Any) -> str:
    return json.dumps(arguments)


def measure(
    question: Question, setting: Setting, ports: Mapping[str, int], seconds: float, rounds: int
) -> dict[str, list[float]]:
    """Returns the requests per second of each server, one figure for each round."""
    rates: dict[str, list[float]] = {name: [] for name in ports}
    counts = dict.fromkeys(ports, 200 * setting.connections * setting.pipeline)
    for number in range(rounds + 1):
        for name, port in ports.items():
            command = question.theirs if name == "Valkey" else question.ours
            rate = _ask(port, command, setting, counts[name])
            counts[name] = max(100, int(rate * seconds))
            if number:  # the first is for warming up, and to know how many are enough
                rates[name].append(rate)
    return rates


def _ask(port: int, command: tuple[str, ...], setting: Setting, count: int) -> float:
    """Returns how many requests per second redis-benchmark has seen answered."""
    connections, pipeline = str(setting.connections), str(setting.pipeline)
    options = ["-p", str(port), "-c", connections, "-P", pipeline, "-n", str(count), "-r", "1000"]
    done = subprocess.run(
        ["redis-benchmark", *options, "--csv", *command], capture_output=True, text=True, check=True
    )
    line = done.stdout.splitlines()[-1]
    return float(line.rsplit('","', 7)[-7])


def show(question: Question, setting: Setting, rates: Mapping[str, list[float]]) -> None:
    seconds = {name: 1 / statistics.median(found) for name, found in rates.items()}
    title = f"{question.name}, {setting}"
    report(title, seconds, baseline="Valkey", durability=SYNCED if question.is_synced else "")
    pairs = zip(rates[OURS], rates["Valkey"], strict=True)
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    if setting in question.wanted:
        what, wanted = f"{title}: of Valkey's rate", question.wanted[setting]
        reach(what, ratio, wanted, at_most=False, reason=question.reason)
        if not question.is_synced and setting.connections >= 32:
            _compare_processes(title, rates)


def _compare_processes(title: str, rates: Mapping[str, list[float]]) -> None:
    pairs = zip(rates[TWO], rates[OURS], strict=True)
    ratio = statistics.median(two / one for two, one in pairs)
    reason = "the client and two servers share two cores"
    reach(f"{title}: two processes vs one", ratio, 1.4, at_most=False, reason=reason)


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
