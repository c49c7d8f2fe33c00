"""Soak

The same work over and over: a job is put, popped and completed, an entity, an event, a metric and a
limit are written and expire; among 10,000 spaces, one is dropped, and created and filled again. A
process that uses the library does so with a clock that jumps days ahead and back, and a server does
so for its clients. Given the minutes, it is 1,000,000 cycles.

Nothing may grow: not the files, not the memory, not the descriptors, not the threads. Each is
measured all the time, and the line through the lowest values of the second half has to be level.
The first half is a warm-up. A file levels off when it has the pages that are copied between two
checkpoints, beside the live ones, and the blocks that are reserved behind them, at most twice the
live pages and 16 MiB: some 90 MB here, after 20,000 cycles. So a shorter run may still have a step
of that size in its second half, and a longer one no more than one step of a reservation.
"""

import os
import random as random_module
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import holdfast
from holdfast.entities import Model, column, index, schema_yaml
from holdfast.entities.messages import PutEntity
from holdfast.errors import HoldfastError
from holdfast.testing import Clock
from tests.campaign.frame import Result
from tests.processes import Connection, start
from tests.server.serving import serving
from tests.stores import problems_of

SAMPLES: Final = 60  # of one run; the line goes through the second half
MOST_CYCLES: Final = 500_000  # of the library, and of the server
CYCLES_TOGETHER: Final = 100  # of a round: one by itself, the others in one transaction
FEWEST_ROUNDS: Final = 8  # of a run, however short: with fewer samples no trend can be seen
ROUNDS_PER_JUMP: Final = 5  # of the clock
SPACES_AT_ONCE: Final = 10_000
CHANGING_SPACES: Final = 500  # of them
FEW_SPACES_AT_ONCE: Final = 10  # of a run that is too short to create more
FILLING_SECONDS: Final = 60.0  # of a run that is long enough
STRETCHES: Final = 10  # of the second half; the lowest value of each counts
CYCLE_SECONDS: Final = 0.5  # by which the clock of the library is turned in each cycle
DAY: Final = 86_400.0
TTL_SECONDS: Final = 60
MARKS: Final = 500  # names that come again

# What may be gained over all samples of the line: a file grows by steps of 16 MiB (RESERVED_BYTES),
# caches fill, a busy process starts threads and opens a descriptor for each. It does not grow with
# the cycles, so over a long run it is nothing.
WARM_CYCLES: Final = 100_000  # in the first half of a run that is long enough
ALLOWED: Final = {"file": 16 * 2**20, "memory": 4 * 2**20, "descriptors": 4, "threads": 2}
ALLOWED_EARLY: Final = {"file": 40 * 2**20, "memory": 8 * 2**20, "descriptors": 8, "threads": 8}


class Thing(Model, schema="soak", table="Things", primary=("name",), indexes=[index("colour")]):
    name: str = column(required=True)
    colour: str = column(default="")


# Runs steps as one transaction, or as one batch of a client.
Together: TypeAlias = Callable[[Callable[[Any], object]], object]


class Sample(NamedTuple):
    """The memory and disk of a process and its store after a number of cycles."""

    cycles: int
    file: int
    memory: int
    descriptors: int
    threads: int


def run(random: random_module.Random, seconds: float) -> Result:
    """Runs the library and a server, at the same time."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-soak-") as folder,
        ThreadPoolExecutor(1) as thread,
    ):
        library = thread.submit(in_library, Path(folder), random.random(), seconds)
        through = through_server(Path(folder), random, seconds)
        runs = {"library, with clock jumps": library.result(), "server": through}
    broken = [f"{name}: {each}" for name, (_, found) in runs.items() for each in found]
    rows = {name: figures for name, (figures, _) in runs.items()}
    return Result(tried=_sum(rows.values()), broken=broken, rows=rows)


# --- the work ------------------------------------------------------------------------------------


def prepare(space: Any) -> None:
    """Makes the tables, handlers and metrics that a cycle uses, all with an end."""
    space.entities.deploy(schema_yaml(Thing))
    handler = {"targets": ["[mark]"], "add": "value", "expire_after": f"{TTL_SECONDS}s"}
    space.events.deploy({"seen": [handler]})
    sequence = {"timeStep": 1, "expiry": TTL_SECONDS}
    space.metrics.define({"cycles": {"sequences": [sequence]}})
    space.jobs.config_set("jobs-history", "60")
    space.jobs.config_set("jobs-history-count", "100")


def write(layers: Any, number: int) -> None:
    """The writes of one cycle, in a transaction or in a batch."""
    mark = f"thing {number % MARKS}"
    thing = PutEntity({"name": mark, "colour": f"{number % 7}"}, mark, ttl=TTL_SECONDS * 10**9)
    layers.entities.put_raw("soak.Things", [thing])
    layers.jobs.put("mill", "Grind", {"mark": mark}, id=f"job {number}")
    # A set that is added to again and again never expires, so its members are few.
    layers.events.send({"name": "seen", "attributes": {"mark": mark, "value": f"{number % 7}"}})
    layers.metrics.incr("cycles", [mark])


def write_several(layers: Any, first: int, count: int) -> None:
    for number in range(first, first + count):
        write(layers, number)


def work_off(space: Any, together: Together, count: int) -> None:
    """Pops what is there, and completes it; every tenth fails and is canceled."""
    jobs = space.jobs.pop("mill", "worker", count)

    def settle(layers: Any) -> None:
        for job in jobs:
            if job.id.endswith("7"):
                layers.jobs.fail(job.id, "worker", "soak", "it was to fail")
            else:
                layers.jobs.complete(job.id, "worker")

    together(settle)
    for job in jobs:
        if job.id.endswith("7"):
            space.jobs.cancel(job.id)


def take_round(space: Any, together: Together, first: int) -> None:
    """Runs the cycles of one round: the first by itself, and the others in one transaction."""
    together(lambda layers: write(layers, first))
    work_off(space, together, 2)
    together(lambda layers: write_several(layers, first + 1, CYCLES_TOGETHER - 1))
    work_off(space, together, 2 * CYCLES_TOGETHER)


def drop_and_fill(store: Any, number: int, drop: Callable[[str], object], at_once: int) -> None:
    """Drops the oldest of the last few spaces, and creates and fills a new one of that name.

    The names come again, since a server keeps the totals of every queue for nine days: what it
    keeps grows with new names, and with nothing else.
    """
    name = f"space {at_once - 1 - number % min(at_once, CHANGING_SPACES)}"
    drop(name)
    space = store.space(name)
    space.jobs.put("mill", id="only")
    space.metrics.define({"own": {"sequences": [{"timeStep": 1, "expiry": 60}]}})
    space.metrics.incr("own")


def fill(store: holdfast.Store, at_once: int) -> None:
    """Creates the first spaces, in one transaction each."""
    definition = {"own": {"sequences": [{"timeStep": 1, "expiry": 60}]}}

    def work(tx: Any) -> None:
        tx.jobs.put("mill", id="only")
        tx.metrics.define(definition)
        tx.metrics.incr("own")

    for number in range(at_once):
        store.space(f"space {number}").transact(work)


def spaces_at_once(seconds: float) -> int:
    return SPACES_AT_ONCE if seconds >= FILLING_SECONDS else FEW_SPACES_AT_ONCE


# --- the library ---------------------------------------------------------------------------------


def in_library(folder: Path, seed: float, seconds: float) -> tuple[dict[str, int], list[str]]:
    """Runs cycles in a process of its own, which reports what it takes."""
    child = start(_cycle_in_library, folder / "library", seed, seconds)
    try:
        samples: list[Sample] = []
        while isinstance(message := child.receive(), Sample):
            samples.append(message)
    finally:
        child.kill()
    figures, problems = message
    return _figures(samples, figures), problems + _slopes(samples)


def _cycle_in_library(folder: Path, seed: float, seconds: float, ours: Connection) -> None:
    random, clock = random_module.Random(seed), Clock()
    at_once = spaces_at_once(seconds)
    counts = {"cycles": 0, "spaces": at_once, "clock jumps": 0}
    with holdfast.open(folder, durability="interval", clock=clock) as store:
        prepare(store)
        fill(store, at_once)
        limiter = store.metrics.limiter({"hits": "1000/second"})

        def measure() -> None:
            ours.send(_sample(counts["cycles"], os.getpid(), folder))

        for number in _rounds(seconds, measure, counts):
            take_round(store, store.transact, counts["cycles"])
            for each in range(CYCLES_TOGETHER):
                limiter.try_incr("hits", [f"{(counts['cycles'] + each) % MARKS}"])
            clock.advance(seconds=CYCLE_SECONDS * CYCLES_TOGETHER)
            drop_and_fill(store, number, store.drop_space, at_once)
            if number % ROUNDS_PER_JUMP == 0:
                ahead = random.choice([DAY, 30 * DAY, 3_600.0])
                clock.advance(seconds=ahead)
                write(store, -number)
                clock.advance(seconds=-ahead)
                counts["clock jumps"] += 2
        while store.sweep():
            pass
        problems = store.check() + problems_of(store)
        spaces = len(store.spaces())
        if spaces > at_once + 1:
            problems.append(f"{spaces} spaces are there, at most {at_once + 1} were not dropped")
    ours.send((counts, problems))


# --- a server ------------------------------------------------------------------------------------


def through_server(
    folder: Path, random: random_module.Random, seconds: float
) -> tuple[dict[str, int], list[str]]:
    """Runs cycles over the network, and measures the server from outside."""
    data, samples = folder / "server", list[Sample]()
    at_once = spaces_at_once(seconds)
    counts = {"cycles": 0, "spaces": at_once, "connections": 0}
    with holdfast.open(data, durability="interval") as store:
        fill(store, at_once)
    with serving(data) as server:
        pid, url = server.process.pid, f"holdfast://127.0.0.1:{server.resp_port}"
        client = holdfast.connect(url)
        prepare(client)

        def measure() -> None:
            samples.append(_sample(counts["cycles"], pid, data))

        def together(work: Callable[[Any], object]) -> None:
            with client.batch() as batch:
                work(batch)

        for number in _rounds(seconds, measure, counts):
            take_round(client, together, counts["cycles"])
            drop_and_fill(client, number, client.admin.drop_space, at_once)
            if random.random() < 0.5:  # a client that goes away in the middle of something
                client.close()
                client = holdfast.connect(url)
                counts["connections"] += 1
        problems = _left_behind(client, at_once)
        client.close()
        if server.stop() != 0:
            problems.append("the server did not end well")
    with holdfast.open(data) as store:
        problems += store.check() + problems_of(store)
    return _figures(samples, counts), problems + _slopes(samples)


def _left_behind(client: Any, at_once: int) -> list[str]:
    try:
        spaces = client.admin.spaces().spaces
    except HoldfastError as error:
        return [f"the server does not answer: {error}"]
    most = at_once + 2  # the default one, and `system`, to which the server writes its own figures
    return [f"{len(spaces)} spaces are there, at most {most} are"] if len(spaces) > most else []


# --- measuring -----------------------------------------------------------------------------------


def _rounds(seconds: float, measure: Callable[[], None], counts: dict[str, int]) -> Iterator[int]:
    """Yields the numbers of rounds, for so long or up to the most cycles, and not too few on a busy
    machine; counts what each of them does, and takes samples at regular times."""
    begin = time.monotonic()
    part, taken, number = 0.0, 0, 0  # the part of the run that is over
    while part < 1 or number < FEWEST_ROUNDS:
        number += 1
        yield number
        counts["cycles"] += CYCLES_TOGETHER
        counts["spaces"] += 1
        part = max((time.monotonic() - begin) / seconds, counts["cycles"] / MOST_CYCLES)
        if part >= taken / SAMPLES:
            measure()
            taken += 1


def _sample(cycles: int, pid: int, folder: Path) -> Sample:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return Sample(
        cycles=cycles,
        file=sum(each.stat().st_blocks * 512 for each in folder.rglob("*") if each.is_file()),
        memory=int(status["RssAnon"].split()[0]) * 1024,
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        threads=int(status["Threads"]),
    )


def _slopes(samples: list[Sample]) -> list[str]:
    """Returns a sentence for everything that grows."""
    half = samples[len(samples) // 2 :]
    if len(half) < 3:
        return ["too few samples to tell"]
    size = -(-len(half) // STRETCHES)
    stretches = [half[at : at + size] for at in range(0, len(half), size)]
    found = []
    is_warm = half[0].cycles >= WARM_CYCLES
    for name, allowed in (ALLOWED if is_warm else ALLOWED_EARLY).items():
        # What is in use for a moment is no leak, and a leak is in the lowest values too.
        lowest = [min(getattr(each, name) for each in stretch) for stretch in stretches]
        gained = growth([stretch[0].cycles for stretch in stretches], lowest)
        if gained > allowed:
            cycles = half[-1].cycles - half[0].cycles
            found.append(f"{name} grew by {gained:.0f} in {cycles} cycles")
    return found


def growth(cycles: list[int], values: list[int]) -> float:
    """Returns the rise of the least-squares line from the first to the last sample, or of the
    samples themselves if that is less: one step in the middle raises the line by more than itself.

    >>> growth([0, 10, 20], [5, 7, 9]), growth([0, 10, 20], [5, 9, 5])
    (4.0, 0.0)
    >>> growth([0, 10, 20, 30], [0, 0, 16, 16])
    16.0
    """
    middle = sum(cycles) / len(cycles)
    average = sum(values) / len(values)
    spread = sum((each - middle) ** 2 for each in cycles)
    pairs = zip(cycles, values, strict=True)
    slope = sum((x - middle) * (y - average) for x, y in pairs) / spread if spread else 0.0
    return min(slope * (cycles[-1] - cycles[0]), float(values[-1] - values[0]))


def _figures(samples: list[Sample], counts: dict[str, int]) -> dict[str, int]:
    last = samples[-1]
    return {**counts, "file KiB": last.file // 1024, "memory KiB": last.memory // 1024,
            "descriptors": last.descriptors, "threads": last.threads}  # fmt: skip


def _sum(rows: Any) -> dict[str, int]:
    total: dict[str, int] = {}
    for row in rows:
        for name in ("cycles", "spaces", "clock jumps", "connections"):
            total[name] = total.get(name, 0) + row.get(name, 0)
    return total
